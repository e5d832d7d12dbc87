"""`make calibration`: cameras with typical lenses beside one with perfect lenses.

    .venv/bin/python benchmarks/calibration_lenses.py [--folder FOLDER] [--sets NAME ...]
                                                      [--json FILE] [--read | --timing]

Each set is calibrated by `d3s calibrate` in a process of its own; then the calibrated camera, good
or bad, looks at walls of other textures, which are judged by ninth of the field. Sets that are not
named keep their results. Times need an idle machine: --timing measures only time and memory again.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import d3s
from calibration import FOLDER, out_folder, run_calibration
from calibration_field import measure_walls, read_cells, write_cells
from calibration_sets import LENS_DEPTHS_M, LENS_SETS, render, render_walls
from lens_figures import PERFECT, Results, sheets
from sheets import show

RESULTS = Path(__file__).parent / "results" / "calibration_lenses.json"
ALL_SETS = (PERFECT, *LENS_SETS)


def main(words: list[str] | None = None) -> None:
    """Render, calibrate, measure and show."""
    given = _arguments(words)
    if given.render:
        _render(given.sets, given.folder)
        return
    if given.timing:
        _time(given)
    elif not given.read:
        for name in given.sets:
            _render([name], given.folder)
            _measure(name, given.folder, given.json)
    show(sheets(read_results(given.json)))


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the captures are")
    parser.add_argument("--sets", nargs="+", choices=ALL_SETS, default=list(ALL_SETS))
    parser.add_argument("--render", action="store_true", help="only render the captures")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--read", action="store_true", help="measure nothing, read the results")
    how.add_argument("--timing", action="store_true", help="only time and memory")
    return parser.parse_args(words)


def _render(names: list[str], folder: Path) -> None:
    for name in names:
        render(name, folder / name)
        render_walls(name, folder / f"{name}_walls", LENS_DEPTHS_M)


def read_results(path: Path) -> Results:
    """Results of all sets that were measured, in the order of `ALL_SETS`."""
    sets = json.loads(path.read_text())["sets"] if path.exists() else {}
    cells = read_cells(path.with_suffix(".csv"))
    names = [name for name in ALL_SETS if name in sets and name in cells]
    return Results({name: sets[name] for name in names}, {name: cells[name] for name in names})


def _write(path: Path, results: Results) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {"version": d3s.__version__, "sets": results.sets}
    path.write_text(json.dumps(told, indent=1) + "\n")
    write_cells(path.with_suffix(".csv"), results.cells)


def _measure(name: str, folder: Path, path: Path) -> None:
    """Calibrate a set, measure its walls, and put both into the results."""
    out = out_folder(folder, name)
    usage = run_calibration(folder / name, out, bad=True)
    report = json.loads((out / "cal.json").read_text())
    # A bad calibration has no rig file; the report has what was found.
    rig = d3s.Rig(**report["rig"])
    cells = measure_walls(rig, folder / f"{name}_walls")
    told: dict[str, Any] = {"figures": usage, "view_px": _view_px(rig)}
    told |= {key: report[key] for key in ("verdict", "measures", "timings_s")}
    results = read_results(path)
    sets, all_cells = dict(results.sets) | {name: told}, dict(results.cells) | {name: cells}
    _write(path, Results(sets, all_cells))


def _view_px(rig: d3s.Rig) -> list[int]:
    found = rig.calibration
    return [] if found is None else [found.crop_rows_px, found.crop_cols_px]


def _time(given: argparse.Namespace) -> None:
    results = read_results(given.json)
    sets = {name: dict(one) for name, one in results.sets.items()}
    for name in given.sets:
        if name in sets:
            usage = run_calibration(given.folder / name, out_folder(given.folder, name), bad=True)
            sets[name]["figures"] = usage
    _write(given.json, Results(sets, results.cells))


if __name__ == "__main__":
    main()
