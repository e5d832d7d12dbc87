"""`d3s evaluate`: measure methods where the truth is known.

Options come in; tables on the terminal and files of results go out.

sweeps    `d3s evaluate planes`, `scenes` and `thresholds`
rendered  `d3s evaluate rooms` and `twin`
measured  `d3s evaluate stereo` and `quality`
options   options that several commands share
tables    tables and numbers on the terminal
"""

import typer

from d3s.cli.evaluate.measured import quality, stereo
from d3s.cli.evaluate.rendered import rooms, twin
from d3s.cli.evaluate.sweeps import planes, scenes, thresholds

evaluate = typer.Typer(
    add_completion=False,
    help="See how good the methods are, where the truth is known.",
    no_args_is_help=True,
)
evaluate.command("planes")(planes)
evaluate.command("scenes")(scenes)
evaluate.command("rooms")(rooms)
evaluate.command("thresholds")(thresholds)
evaluate.command("quality")(quality)
evaluate.command("stereo")(stereo)
evaluate.command("twin")(twin)
