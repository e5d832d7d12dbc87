"""`d3s simulate`: options in, a folder of simulated images with their truth out.

Modules::

    command   the command and its options
    options   values of the options, and combinations that are refused
    recipe    options to a recipe, which the library renders
"""

from d3s.cli.simulate.command import simulate
from d3s.cli.simulate.options import PsfName, SurfaceName

__all__ = ["PsfName", "SurfaceName", "simulate"]
