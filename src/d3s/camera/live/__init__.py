"""Live pages: frames of a source in, depth in a browser out.

A source (`d3s.frames`) gives frames; a pipeline splits them and estimates their depth; a page of
our own shows views, depth, sigma, confidence and flags, with values at a click. Saved depth maps,
recordings and folders are shown by the same page. The server answers this machine only, and only
requests with the token of its address.

slot        places for one item between threads: the newest wins; turns of threads evenly apart
results     settings; one frame with its depth map and light; pixel and profile at a click
pipeline    `Pipeline`: grab, compute, newest result; counters of frames and losses; recording
saved       `SavedShow`: saved depth maps, recordings and folders on a page
pictures    colours, JPEG and colour scales
feed        `Feed`: sessions of the live page, snapshots
channel     `Visit`: messages between page and server
foxglove    the same for the application Foxglove, if it is asked for
server      `Server` and `Page`: any number of pages; checks of token, Host and Origin

Pages are in the folder `pages`: HTML, CSS and JavaScript without a build step, of which `shared`
is for all pages.
"""

import importlib.util

from d3s.errors import MissingPackageError


def check_server() -> None:
    """Raise an `InputError` if the package that serves pages is not installed."""
    if importlib.util.find_spec("aiohttp") is None:
        raise MissingPackageError("live pages need the package aiohttp", "live")
