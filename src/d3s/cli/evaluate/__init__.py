"""`d3s evaluate`: measure methods where the truth is known. One module for each command.

Options come in; tables on the terminal and files of results go out.

options        options that several commands share
sweep_command  builder of the commands that run a sweep
tables         tables and numbers on the terminal
planes         `d3s evaluate planes`
scenes         `d3s evaluate scenes`
rooms          `d3s evaluate rooms`
thresholds     `d3s evaluate thresholds`
quality        `d3s evaluate quality`
stereo         `d3s evaluate stereo`
twin           `d3s evaluate twin`
"""

import typer

from d3s.cli.evaluate.planes import planes
from d3s.cli.evaluate.quality import quality
from d3s.cli.evaluate.rooms import rooms
from d3s.cli.evaluate.scenes import scenes
from d3s.cli.evaluate.stereo import stereo
from d3s.cli.evaluate.thresholds import thresholds
from d3s.cli.evaluate.twin import twin

evaluate = typer.Typer(
    help="See how good the methods are, where the truth is known.", no_args_is_help=True
)
evaluate.command("planes")(planes)
evaluate.command("scenes")(scenes)
evaluate.command("rooms")(rooms)
evaluate.command("thresholds")(thresholds)
evaluate.command("quality")(quality)
evaluate.command("stereo")(stereo)
evaluate.command("twin")(twin)
