"""Frames that end their worker, by their names."""

import os

from d3s.batch import frame_maker as real


def make_frame(job, folder, overwrite, given):
    if given.frame.name.startswith("leaves"):
        os._exit(3)
    return real.make_frame(job, folder, overwrite, given)
