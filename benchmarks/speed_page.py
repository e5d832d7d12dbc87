"""Tables, summary and chart of the speed pages, from the results of a run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import figures
import least
import machine
from figures import Row, shown_time
from sheets import Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Results = Mapping[str, Any]

COLOURS = {"joint": "#c8442d", "sgbm": "#4c78a8", "bm": "#54a24b", "consensus": "#b279a2"}
NAMES = {
    "joint": "joint",
    "sgbm": "OpenCV StereoSGBM",
    "bm": "OpenCV StereoBM",
    "consensus": "consensus",
}


def sheets(results: Results) -> dict[str, Sheet]:
    """All tables by name, in the order of printing."""
    return {
        "machine": machine.sheet(results["machine"]),
        "figures": figures.sheet([Row.from_json(row) for row in results["rows"]]),
        "stages": _stages(results["stages"]),
        "pixels": _pixels(results["growth"]["pixels"]),
        "candidates": _candidates(results["growth"]["candidates"]),
        "content": _content(results["growth"]["content"]),
        "budget": _budget(results["budget"]),
        "limit": least.sheet(results["least"]),
    }


def parts(results: Results) -> dict[str, str]:
    """Texts between the marks of the pages, by name.

    Raises
    ------
    SystemExit
        When the results are of a quick run.
    """
    if results["effort"] == "quick":
        raise SystemExit("These results are of --quick. The page takes those of a full run only.")
    tables = {name: sheet.as_markdown() for name, sheet in sheets(results).items()}
    return {"summary": summary(results), **tables}


def summary(results: Results) -> str:
    """Date, time per pair and missed targets of the run, as one paragraph."""
    rows = {row["key"]: Row.from_json(row) for row in results["rows"]}
    asked = [row for row in rows.values() if row.held is not None]
    missed = [row.target.what for row in asked if not row.held]
    stages = results["stages"]
    megapixels = stages["rows"] * stages["cols"] / 1e6
    whole_s = rows["sgbm"].ours_s or stages["whole_s"]
    text = (
        f"Measured on {results['date']} at commit `{results['commit']}`, d3s {results['d3s']}: "
        f"a pair of {stages['rows']} x {stages['cols']} pixels ({megapixels:.2f} Mpx) takes "
        f"{shown_time(whole_s)} on {results['machine']['cores']} cores, {1 / whole_s:.1f} pairs a "
        f"second. {len(asked) - len(missed)} of the {len(asked)} targets are met"
    )
    return text + (f"; missed: {'; '.join(missed)}." if missed else ".")


def _stages(stages: Results) -> Sheet:
    whole = stages["whole_s"]
    lines = [
        (name, shown_time(seconds), f"{seconds / whole:.0%}".replace("%", " %"))
        for name, seconds in (*stages["stages_s"].items(), ("all", whole))
    ]
    title = f"where the time goes, {stages['rows']} x {stages['cols']} px"
    return Sheet(title, ("stage", "time", "share"), lines)


def _pixels(table: list[Results]) -> Sheet:
    lines = [
        (
            f"{line['rows']} x {line['cols']}",
            f"{line['megapixels']:.2f}",
            *(shown_time(line[f"{name}_s"]) for name in ("joint", "sgbm", "bm")),
            f"{1e3 * line['joint_s'] / line['megapixels']:.1f}",
        )
        for line in table
    ]
    headings = ("frame (px)", "Mpx", "`joint`", "StereoSGBM", "StereoBM", "`joint`, ms / Mpx")
    return Sheet("time over pixels", headings, lines)


def _candidates(table: Mapping[str, list[Results]]) -> Sheet:
    words = {
        "joint": "`joint`, px of disparity in the range",
        "sgbm": "StereoSGBM, disparities",
        "consensus": "`consensus`, candidates",
    }
    lines = [
        (
            words[method],
            f"{line['candidates']}",
            f"{line['megapixels']:.2f}",
            shown_time(line["seconds"]),
            f"{1e3 * line['seconds'] / line['megapixels']:.1f}",
        )
        for method, some in table.items()
        for line in some
    ]
    return Sheet("time over candidates", ("method", "candidates", "Mpx", "time", "ms / Mpx"), lines)


def _content(table: list[Results]) -> Sheet:
    lines = [
        (line["picture"], shown_time(line["joint_s"]), f"{line['against_the_scene']:.2f}")
        for line in table
    ]
    return Sheet("time over content", ("picture", "`joint`", "relative to the scene"), lines)


def _budget(table: list[Results]) -> Sheet:
    lines = [
        (
            line["how"],
            shown_time(line["seconds"]),
            f"{line['share']:.2f}",
            f"{100 * line['density']:.1f}",
            "" if line["mae_m"] is None else f"{1e3 * line['mae_m']:.2f}",
        )
        for line in table
    ]
    headings = ("options", "time", "share of the default", "density (%)", "MAE (mm)")
    return Sheet("less work, less time", headings, lines)


# The chart ----------------------------------------------------------------------------------------


def chart(results: Results) -> "Figure":
    """Time over pixels and over candidates, each with a line of linear growth."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    pixels, candidates = figure.subplots(1, 2)
    _draw_pixels(pixels, results["growth"]["pixels"])
    _draw_candidates(candidates, results["growth"]["candidates"])
    return figure


def _draw_pixels(axes: "Axes", table: list[Results]) -> None:
    sizes = [line["megapixels"] for line in table]
    for name in ("joint", "sgbm", "bm"):
        times = [1e3 * line[f"{name}_s"] for line in table]
        axes.plot(sizes, times, "o-", color=COLOURS[name], label=NAMES[name])
    first = 1e3 * table[0]["joint_s"]
    _draw_guide(axes, sizes, [first * size / sizes[0] for size in sizes])
    axes.set_title("Time over pixels", fontsize="medium")
    axes.set(xlabel="pixels of the frame (million)", ylabel="time (ms)")
    _finish(axes, sizes, [f"{size:.1f}" for size in sizes])


def _draw_candidates(axes: "Axes", table: Mapping[str, list[Results]]) -> None:
    for name, some in table.items():
        counts = [line["candidates"] for line in some]
        times = [1e3 * line["seconds"] / line["megapixels"] for line in some]
        axes.plot(counts, times, "o-", color=COLOURS[name], label=NAMES[name])
    counts = [line["candidates"] for line in table["joint"]]
    last = 1e3 * table["joint"][-1]["seconds"] / table["joint"][-1]["megapixels"]
    _draw_guide(axes, counts, [last * count / counts[-1] for count in counts])
    axes.set_title("Time over candidates", fontsize="medium")
    axes.set(xlabel="disparities or candidates to choose from", ylabel="time (ms per megapixel)")
    ticks = sorted({line["candidates"] for some in table.values() for line in some})
    apart = [t for i, t in enumerate(ticks) if i == 0 or t >= 1.3 * ticks[i - 1]]
    _finish(axes, apart, [f"{tick}" for tick in apart])


def _draw_guide(axes: "Axes", x: list[float], y: list[float]) -> None:
    axes.plot(x, y, ":", color="#888888", label="linear", zorder=0)


def _finish(axes: "Axes", ticks: list[float], labels: list[str]) -> None:
    from matplotlib.ticker import LogLocator, NullLocator, ScalarFormatter

    axes.set(xscale="log", yscale="log")
    axes.set_xticks(ticks, labels=labels)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(color="#eeeeee")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize="small", frameon=False)
