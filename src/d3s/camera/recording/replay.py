"""Depth of a recording, estimated again."""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from d3s.camera.recording.reader import Recording, rig_of
from d3s.camera.recording.writer import RecordingWriter
from d3s.errors import D3SError, InputError
from d3s.estimate import Options
from d3s.estimate.methods import estimate_quietly
from d3s.estimate.saving import as_image
from d3s.files.raw import path_text
from d3s.frames import Refused
from d3s.rig import Rig
from d3s.types import Progress


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Outcome of a replay."""

    frames: int  # that were estimated
    refused: tuple[Refused, ...]
    same: int  # frames whose depth has the bytes of the recorded one
    different: int  # frames whose depth has others
    median_density: float  # share of the pixels that have a depth; NaN without frames
    is_cut: bool  # whether the end of the recording is missing
    lost: int  # frames that the camera lost, or the recorder dropped


def replay(
    path: str | os.PathLike[str],
    *,
    rig: Rig | None = None,
    method: str = "joint",
    options: Options | Mapping[str, Any] | None = None,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Replay:
    """Estimate each frame of a recording again, and compare its depth with the recorded one.

    The rig is that of the recording if None; with an output, a recording of the frames and the new
    depth is written.
    """
    refused: list[Refused] = []
    densities: list[float] = []
    verdicts: list[bool] = []
    lost = 0
    with ExitStack() as stack:
        recording = stack.enter_context(Recording(path))
        camera, target = rig_of(recording, rig), None
        if output is not None:
            if Path(output).resolve() == recording.path.resolve():
                words = f"{path_text(path)} is the file that is read. Name another to write."
                raise InputError(words)
            target = RecordingWriter(output, rig=camera, notes=recording.notes, overwrite=overwrite)
            stack.enter_context(target)
        for place, outcome in enumerate(recording):
            try:
                if isinstance(outcome, Refused):
                    raise InputError(outcome.reason)
                lost += outcome.lost_before
                views = outcome.pair(camera)
                found = estimate_quietly(*views, camera, method=method, options=options)
            except D3SError as error:
                refused.append(Refused(f"frame {place}", str(error)))
            else:
                densities.append(float(np.isfinite(found.depth_m).mean()))
                recorded = recording.depth(place)
                if recorded is not None:
                    pairs = zip((found.depth_m, found.sigma_m), recorded, strict=True)
                    same = (two is None or one.tobytes() == two.tobytes() for one, two in pairs)
                    verdicts.append(all(same))
                if target is not None:
                    target.write(outcome)
                    target.write_depth(as_image(found), outcome.number)
            if progress is not None:
                progress(place + 1, recording.frame_count)
        return Replay(
            frames=len(densities),
            refused=tuple(refused),
            same=sum(verdicts),
            different=len(verdicts) - sum(verdicts),
            median_density=float(np.median(densities)) if densities else float("nan"),
            is_cut=recording.is_cut,
            lost=lost,
        )
