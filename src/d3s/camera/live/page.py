"""The live page as a `Page` of a server."""

from importlib.resources import files

from d3s.camera.live.feed import Feed
from d3s.camera.live.server import Page


def live_page(feed: Feed) -> Page:
    """Page that shows a feed: a pipeline, or saved files."""
    folder = files("d3s.camera.live") / "pages" / "live"
    return Page(name="live", title=feed.show.title, files=folder, serve=feed.serve)
