"""`LiveShow`: a pipeline as a page shows it, with recording and snapshots."""

import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

from d3s.atomic import make_folder
from d3s.camera.live.pictures import PANELS
from d3s.camera.live.pipeline import Pipeline
from d3s.camera.live.results import LiveDepth
from d3s.camera.live.settings import Settings
from d3s.camera.live.slot import Newest
from d3s.errors import InputError

_TIME = "%Y%m%d_%H%M%S"


class LiveShow:
    """Pipeline as a page shows it."""

    is_live = True
    panels = tuple(PANELS)

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        title: str,
        folder: Path | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.title = title
        self._folder = folder

    @property
    def results(self) -> Newest[LiveDepth]:
        """Results of the pipeline."""
        return self.pipeline.results

    @property
    def settings(self) -> Settings:
        """Settings of the pipeline."""
        return self.pipeline.settings

    def abilities(self) -> dict[str, Any]:
        """Controls that the page offers."""
        camera = self.pipeline.camera
        settings = {} if camera is None else camera.settings._asdict()
        return {
            "record": self.pipeline.can_record,
            "snapshot": self._folder is not None,
            "positions": None,
            "estimate": True,
            "camera": {
                name: {"value": one.value, "range": one.range}
                for name, one in settings.items()
                if one is not None
            },
        }

    def status(self) -> dict[str, Any]:
        """State, rates and losses."""
        pipeline = self.pipeline
        return {
            "state": pipeline.state,
            "stale": pipeline.is_stale,
            "recording": pipeline.is_recording,
            "rates": {name: rate.per_s() for name, rate in pipeline.rates.items()},
            "counts": asdict(pipeline.counts),
        }

    def change(self, changes: Mapping[str, Any]) -> None:
        """Change settings of the pipeline and of its camera."""
        self.pipeline.change(changes)

    def act(self, action: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Start or stop a recording: the action "record", with the value `on`."""
        if action != "record":
            raise InputError(f"{action} is for saved files.")
        if values.get("on"):
            words = f"Recording to {self.pipeline.start_recording().path.name}."
        else:
            ended = self.pipeline.stop_recording()
            words = "" if ended is None else f"Saved {ended.path.name}, {ended.written} frames."
        return {"recording": self.pipeline.is_recording, "text": words}

    def save(self, result: LiveDepth) -> dict[str, Any]:
        """Write the depth map that a page shows, filtered, as NPZ; return the name of the file."""
        return write_snapshot(result, self.settings, self._folder)


def write_snapshot(result: LiveDepth, settings: Settings, folder: Path | None) -> dict[str, Any]:
    """Write the depth map that is shown, filtered, as NPZ; return the name of the file."""
    if folder is None:
        raise InputError("there is no folder for snapshots. Start with --output FOLDER.")
    make_folder(folder)
    name = f"snapshot_{time.strftime(_TIME)}_{result.number:06d}"
    path = folder / f"{name}.npz"
    for number in count(2):
        if not os.path.lexists(path):
            break
        path = folder / f"{name}_{number}.npz"
    result.shown(settings.shown).save(path)
    return {"text": f"Saved {path.name}.", "file": path.name}
