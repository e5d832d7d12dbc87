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
    }
    for name, table in parts.items():
        marks = rf"(<!-- design: {name} -->\n).*?(<!-- end of {name} -->)"
        if not re.search(marks, text, re.DOTALL):
            raise SystemExit(f"{PAGE} has no marks of {name}.")
        filled = "\n" + table + "\n"
        text = re.sub(marks, lambda found, t=filled: found[1] + t + found[2], text, flags=re.DOTALL)
    PAGE.write_text(text, encoding="utf-8")


def _cameras(figures: dict[str, Any]) -> str:
    head = "| measured / predicted sigma | points | median | within 25 % | 5 % to 95 % |\n|---|---|---|---|---|"
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
            f"| further wishes that cannot be met, of these told what to relax | "
            f"{figures['infeasible']}, {figures['infeasible_told']} |",
        ]
    )


def _times(figures: dict[str, Any]) -> str:
    rows = ["| | wall (s) | processor (s) |", "|---|---|---|"]
    rows += [
        f"| {name} | {one['wall_s']:.1f} | {one['processor_s']:.1f} |"
        for name, one in figures.items()
    ]
    return "\n".join(rows)
