"""`make calibration`: how right a calibration is, on simulated captures of home-made cameras."""

import argparse
from pathlib import Path

from calibration_sets import REPORT_SETS, SETS, render, render_walls


def main() -> None:
    """Render the captures that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--render", type=Path, metavar="FOLDER", help="where the captures go")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="NAME")
    given = parser.parse_args()
    for name in given.sets:
        render(name, given.render / name)
    for name in given.sets:
        if name in REPORT_SETS:
            render_walls(name, given.render / f"{name}_walls")


if __name__ == "__main__":
    main()
