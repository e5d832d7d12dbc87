"""Lower bound of the joint method by stage: bytes to move and operations to do.

It counts only work that no kernel can avoid: each picture read and written once where it does not
fit into a cache, each window as a running sum. Together with the limits of the machine, measured in
the same run, it shows how much faster the same method could be.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import d3s
from d3s.estimate.candidates import default_depth_range_m
from figures import shown_time
from sheets import Sheet

FLOAT, FLAGS = 4, 2  # bytes
SCALE = 2  # pixels of the frame per pixel of the search, along each axis

# Operations per pixel of the frame, both views: a Gaussian of 11 taps along each axis; one of 16
# taps that keeps half of the rows and then half of the columns; one of 22 taps applied to its
# result; noise and mean.
PREFILTER = 2 * (2 * 16 + 23 * 3 / 4 + 32 * 3 / 16 + 12 + 3)
# Operations per cell of the search, one shift of one pixel: difference and square, running sums
# along both axes, normalisation by noise and texture, rounding; then four paths of seven
# operations, and the choice.
COST, PATHS, PICK = 18, 4 * 7, 6
# Each cell is one byte, written once and read twice.
CELL_BYTES = 3
# Operations of the fit per pixel (spline, weights, Laplacians, products), and per cell of 2 x 2
# pixels (running sums of twelve planes over three windows, the choice among them, sigma, tilt).
# Once at full size and twice at half the size.
AT_PIXEL, AT_CELL = 105, 12 * 3 * 4 + 120
REFINE = (1 + 2 / 4) * (AT_PIXEL + AT_CELL / 4)
JUDGE = 35  # interpolation, depth, sigma, confidence, flags


class Need(NamedTuple):
    """Least bytes and operations of a stage."""

    bytes: float
    operations: float


def needs(rows: int, cols: int) -> dict[str, Need]:
    """Least work for a frame at the default range, by the stage names of `timings_s`."""
    pixels = rows * cols
    optics = d3s.Rig.paper_prototype().optics
    near_px, far_px = (
        float(optics.disparity_px(depth_m)) / SCALE for depth_m in default_depth_range_m(optics)
    )
    shifts = math.ceil(near_px) - math.floor(far_px) + 3  # one extra at each end
    cells = pixels / SCALE**2 * shifts
    image = FLOAT * pixels
    return {
        "prefilter": Need(2 * image * (1 + 1 + 1 / 4 + 1 / 16), PREFILTER * pixels),
        "search": Need(2 * image / SCALE**2 + CELL_BYTES * cells, (COST + PATHS + PICK) * cells),
        "refine": Need(2 * image * (1 + 1 / 4) + 5 * image / 4, REFINE * pixels),
        "confidence": Need(3 * image + FLAGS * pixels, JUDGE * pixels),
    }


def against(stages: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """Least time of each stage on this machine with all threads, beside the measured one.

    `stages` is from `measures.stages`, `limits` from `machine.limits`.
    """
    copy = 1e9 * limits["copy_gb_s"]["all"]
    flops = 1e9 * limits["float32_gflop_s"]["all"]
    lines = []
    for stage, need in needs(stages["rows"], stages["cols"]).items():
        by_memory, by_arithmetic = need.bytes / copy, need.operations / flops
        lines.append(
            {
                "stage": stage,
                "bytes": need.bytes,
                "operations": need.operations,
                "by_memory_s": by_memory,
                "by_arithmetic_s": by_arithmetic,
                "least_s": max(by_memory, by_arithmetic),
                "measured_s": stages["stages_s"].get(stage),
            }
        )
    return {"lines": lines, "whole_s": stages["whole_s"]}


def sheet(table: Mapping[str, Any]) -> Sheet:
    """Table with one line per stage and one for the total."""
    names = ("bytes", "operations", "by_memory_s", "by_arithmetic_s", "least_s")
    total = {"stage": "all", "measured_s": table["whole_s"]}
    total |= {name: sum(line[name] for line in table["lines"]) for name in names}
    headings = (
        "stage",
        "bytes (MB)",
        "operations (G)",
        "by memory",
        "by arithmetic",
        "lower bound",
        "measured",
        "measured / bound",
    )
    lines = [_cells(line) for line in (*table["lines"], total)]
    title = "lower bound of the method on this machine"
    return Sheet(title, headings, lines)


def _cells(line: Mapping[str, Any]) -> tuple[str, ...]:
    measured, least = line["measured_s"], line["least_s"]
    return (
        line["stage"],
        f"{line['bytes'] / 1e6:.0f}",
        f"{line['operations'] / 1e9:.2f}",
        *(shown_time(line[name]) for name in ("by_memory_s", "by_arithmetic_s", "least_s")),
        shown_time(measured),
        "" if measured is None else f"{measured / least:.1f}",
    )
