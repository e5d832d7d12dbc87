"""`d3s design`: from numbers of a camera to its errors, or from a wish to cameras.

Modules::

    command   the command and its options
    values    options to records of the library
    words     tables and sentences for the terminal, and the JSON
"""

from d3s.cli.design.command import design

__all__ = ["design"]
