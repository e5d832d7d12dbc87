"""`d3s evaluate`: how good the methods are on simulated planes and scenes. One module a command.

options  what several of them are told in the same words
tables   tables and numbers as all of them print them
"""

import typer

from d3s.cli.evaluate.planes import planes
from d3s.cli.evaluate.quality import quality
from d3s.cli.evaluate.scenes import scenes
from d3s.cli.evaluate.thresholds import thresholds

evaluate = typer.Typer(
    help="See how good the methods are, where the truth is known.", no_args_is_help=True
)
evaluate.command()(planes)
evaluate.command()(scenes)
evaluate.command()(thresholds)
evaluate.command()(quality)
