"""Tables of docs/design.md, written from benchmarks/results/design.json."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).parents[1] / "docs" / "design.md"


def write_page(results: dict[str, Any]) -> None:
    """Replace the parts of the page between its marks whose figures are there."""
    text = PAGE.read_text(encoding="utf-8")
    parts: dict[str, tuple[str, Callable[[Any], str]]] = {
        "cameras": ("cameras", _cameras),
        "ranges": ("ranges", lambda figures: _ranges(results["cameras"]["ranges"], figures)),
        "prototype": ("prototype", _prototype),
        "wishes": ("wishes", _wishes),
        "mounted": ("mounted", _mounted),
        "times": ("times", _times),
        "example": ("example", _example),
        "baselines": ("explained", _baselines),
        "differences": ("explained", _differences),
        "tolerances": ("explained", lambda figures: _tolerances(figures["tolerances"])),
    }
    for name, (part, table) in parts.items():
        if part not in results:
            print(f"{name}: no figures, left as it is")
            continue
        marks = rf"(<!-- design: {name} -->\n).*?(<!-- end of {name} -->)"
        if not re.search(marks, text, re.DOTALL):
            raise SystemExit(f"{PAGE} has no marks of {name}.")
        filled = "\n" + table(results[part]) + "\n"
        text = re.sub(marks, lambda found, t=filled: found[1] + t + found[2], text, flags=re.DOTALL)
    PAGE.write_text(text, encoding="utf-8")


def _cameras(figures: dict[str, Any]) -> str:
    head = (
        "| measured / predicted sigma | points | median | within 25 % | 5 % to 95 % |\n"
        "|---|---|---|---|---|"
    )
    named = {
        "all textures together, at each depth": figures["pooled"],
        "each texture alone": figures["single"],
        **{f"alone, fitted at 1/{scale} size": one for scale, one in figures["by_scale"].items()},
    }
    rows = [
        f"| {name} | {one['points']} | {one['median']:.2f} | {100 * one['within_25']:.0f} % | "
        f"{one['tenth']:.2f} to {one['ninetieth']:.2f} |"
        for name, one in named.items()
    ]
    left_out = f"{figures['without_half']} points with less than half of their pixels are left out."
    return "\n".join([head, *rows, "", left_out])


def _ranges(coarse: dict[str, Any], fine: dict[str, Any]) -> str:
    rows = [
        "| predicted / measured | depths | cameras | median | within 10 % | within 25 % |",
        "|---|---|---|---|---|---|",
    ]
    for depths, some in (("six", coarse), ("nine, ends bisected", fine)):
        for title, name in (
            ("length of the working range", "length"),
            ("its near end", "near_end"),
            ("its far end", "far_end"),
        ):
            one = some[name]
            rows.append(
                f"| {title} | {depths} | {some['cameras']} | {one['median']:.2f} | "
                f"{100 * one['within_10']:.0f} % | {100 * one['within_25']:.0f} % |"
            )
    return "\n".join(rows)


def _mounted(figures: dict[str, Any]) -> str:
    depths = ", ".join(f"{one:g}" for one in figures["depths_m"])
    rows = [
        f"| camera | cause | amount | rig | measured at {depths} m (mm) | predicted (mm) |",
        "|---" * 6 + "|",
    ]
    titles = {"before": "as designed", "calibrated": "knows it"}
    for one in figures["rows"]:
        for kind, title in titles.items():
            if kind not in one:
                continue
            seen, told = (
                ", ".join("-" if mm is None or mm != mm else f"{mm:.3g}" for mm in one[kind][name])
                for name in ("measured", "predicted")
            )
            # What comes after the calibration is not known to it.
            title = "calibrated before" if "before" not in one else title
            rows.append(
                f"| {one['camera']} | {one['cause']} | {one['amount']:g} {one['unit']} | {title} | "
                f"{seen} | {told} |"
            )
    return "\n".join(rows)


def _prototype(figures: dict[str, Any]) -> str:
    rows = ["| depths searched | predicted (m) | measured (m) |", "|---|---|---|"]
    for name in ("default search", "wide search"):
        told, found = (figures[name][kind] for kind in ("predicted_m", "measured_m"))
        rows.append(
            f"| {name} | {told[0]:.2f} to {told[1]:.2f} | {found[0]:.2f} to {found[1]:.2f} |"
        )
    return "\n".join(rows)


def _wishes(figures: dict[str, Any]) -> str:
    errors, told = (np.array(figures[name]) for name in ("errors_over_wish", "predicted_over_wish"))
    return "\n".join(
        [
            "| | |",
            "|---|---|",
            f"| wishes whose camera was not found again | {len(figures['not_found_again'])} of "
            f"{figures['wishes']} |",
            f"| answers that meet their wish on the twin | {figures['answers_met']} of "
            f"{figures['answers']} |",
            f"| planes within the wish | {figures['planes_met']} of {figures['planes']} |",
            f"| largest error over the wish, predicted with its margin | {told.max():.2f}; above "
            f"0.9 for {np.count_nonzero(told > 0.9)} |",
            f"| largest error over the wish, measured | {errors.max():.2f}; above 0.8 for "
            f"{np.count_nonzero(errors > 0.8)} |",
            f"| answers beaten by a random search of {figures['random']} cameras | "
            f"{figures['dominated']} |",
        ]
    )


def _example(figures: dict[str, Any]) -> str:
    depths = ", ".join(f"{one:g}" for one in figures["depths_m"])
    rows = [
        f"| camera | sensor | f (mm) | f/ | baseline (mm) | focus (m) | size (mm) | field (deg) | "
        f"error at {depths} m (mm) |",
        "|---" * 9 + "|",
    ]
    for one in figures["rows"]:
        box = " x ".join(f"{side:.1f}" for side in one["box_mm"])
        focus = ", ".join(f"{z:.2f}" for z in one["focus_m"])
        errors = ", ".join(f"{mm:.2f}" for mm in one["error_mm"])
        rows.append(
            f"| {one['name']} | {one['sensor']} | {one['focal_mm']:.2f} | {one['f_number']:.1f} | "
            f"{one['baseline_mm']:.2f} | {focus} | {box} | {one['field_deg']:.0f} | {errors} |"
        )
    return "\n".join(rows)


def _baselines(figures: dict[str, Any]) -> str:
    return _varied(figures["baselines"], "baseline_mm", "baseline (mm)")


def _differences(figures: dict[str, Any]) -> str:
    return _varied(figures["differences"], "difference_um", "focus difference (um)")


def _varied(figures: list[dict[str, Any]], name: str, title: str) -> str:
    rows = [
        f"| {title} | view (px) | error at 0.3, 0.8, 2 m (mm) | share of defocus in the bound (%) "
        "| working range, 1 cm (m) |",
        "|---|---|---|---|---|",
    ]
    for one in figures:
        errors = ", ".join(f"{mm:.2f}" for mm in one["error_mm"])
        shares = ", ".join(f"{100 * share:.1f}" for share in one["defocus_share"])
        ends = one["range_m"]
        told = "none" if ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}"
        rows.append(f"| {one[name]:g} | {one['view_px']} | {errors} | {shares} | {told} |")
    return "\n".join(rows)


def _tolerances(figures: list[list[str]]) -> str:
    rows = [
        "| cause | amount | before calibration | calibrated | checked | loosest |",
        "|---|---|---|---|---|---|",
    ]
    for one in figures:
        rows.append("| " + " | ".join(one) + " |")
    return "\n".join(rows)


def _times(figures: dict[str, Any]) -> str:
    rows = ["| | wall (s) | processor (s) |", "|---|---|---|"]
    rows += [
        f"| {name} | {one['wall_s']:.1f} | {one['processor_s']:.1f} |"
        for name, one in figures.items()
    ]
    return "\n".join(rows)
