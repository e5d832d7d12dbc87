"""Tables of docs/design.md, written from benchmarks/results/design.json."""

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "design.md"


def write_page(results: dict[str, Any]) -> None:
    """Replace the parts of the page between its marks."""
    text = PAGE.read_text(encoding="utf-8")
    parts = {
        "cameras": _cameras(results["cameras"]),
        "prototype": _prototype(results["prototype"]),
        "wishes": _wishes(results["wishes"]),
        "times": _times(results["times"]),
        "example": _example(results["example"]),
        "baselines": _varied(results["explained"]["baselines"], "baseline_mm", "baseline (mm)"),
        "differences": _varied(
            results["explained"]["differences"], "difference_um", "focus difference (um)"
        ),
        "tolerances": _tolerances(results["explained"]["tolerances"]),
    }
    for name, table in parts.items():
        marks = rf"(<!-- design: {name} -->\n).*?(<!-- end of {name} -->)"
        if not re.search(marks, text, re.DOTALL):
            raise SystemExit(f"{PAGE} has no marks of {name}.")
        filled = "\n" + table + "\n"
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
    ranges = figures["ranges"]
    return "\n".join(
        [
            head,
            *rows,
            "",
            f"Working ranges of {ranges['cameras']} cameras, for an error drawn between the least "
            f"and the largest of each: median {ranges['median']:.2f} of the measured length, "
            f"{100 * ranges['within_10']:.0f} % of them within 10 % and "
            f"{100 * ranges['within_25']:.0f} % within 25 %. {figures['without_half']} points with "
            "less than half of their pixels are left out.",
        ]
    )


def _prototype(figures: dict[str, Any]) -> str:
    rows = ["| depths searched | predicted (m) | measured (m) |", "|---|---|---|"]
    for name in ("default search", "wide search"):
        told, found = (figures[name][kind] for kind in ("predicted_m", "measured_m"))
        rows.append(
            f"| {name} | {told[0]:.2f} to {told[1]:.2f} | {found[0]:.2f} to {found[1]:.2f} |"
        )
    return "\n".join(rows)


def _wishes(figures: dict[str, Any]) -> str:
    return "\n".join(
        [
            "| | |",
            "|---|---|",
            f"| answers that meet their wish on the twin | {figures['answers_met']} of "
            f"{figures['answers']} |",
            f"| planes within the wish | {figures['planes_met']} of {figures['planes']} |",
            f"| largest error over the wish | {figures['largest_error_over_wish']:.2f} |",
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


def _tolerances(figures: list[dict[str, Any]]) -> str:
    rows = [
        "| cause | amount | before calibration (mm) | calibrated (mm) | checked (mm) | loosest |",
        "|---|---|---|---|---|---|",
    ]
    for one in figures:
        before = "-" if one["before_mm"] is None else f"{one['before_mm']:.3g}"
        loosest = "any" if one["is_any"] else f"{one['loosest']:.3g} {one['unit']}"
        rows.append(
            f"| {one['cause']} | {one['amount']} | {before} | {one['calibrated_mm']:.3g} | "
            f"{one['checked_mm']:.3g} | {loosest} |"
        )
    return "\n".join(rows)


def _times(figures: dict[str, Any]) -> str:
    rows = ["| | wall (s) | processor (s) |", "|---|---|---|"]
    rows += [
        f"| {name} | {one['wall_s']:.1f} | {one['processor_s']:.1f} |"
        for name, one in figures.items()
    ]
    return "\n".join(rows)
