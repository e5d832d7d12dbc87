"""Facts of a recording, for people: frames, times, topics, losses."""

import os
from collections import Counter
from typing import Any

from d3s.camera.recording import topics
from d3s.camera.recording.index import McapReader
from d3s.camera.recording.reader import Recording
from d3s.errors import D3SError


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Facts of an MCAP file; more if d3s has recorded it.

    Raises
    ------
    InputError
        When it cannot be read.
    """
    reader = McapReader(path)
    index = reader.index
    reader.close()
    counts = Counter(topic for topic, _, _ in index.places)
    times = [time for _, time, _ in index.places]
    facts: dict[str, Any] = {
        "format": "MCAP",
        "is_cut": index.is_cut,
        "seconds": (max(times) - min(times)) / 1e9 if times else 0.0,
        "topics": {
            one.name: f"{counts[one.name]} of {one.schema or 'no type'}"
            for one in sorted(index.topics.values())
        },
        "attachments": sorted(index.attachments),
    }
    if topics.FRAME not in counts:
        return facts
    with Recording(path) as recording:
        facts |= {"frames": recording.frame_count, **recording.notes}
        try:
            first = recording.frame(0)
            facts |= {
                "rows": first.shape[0],
                "cols": first.shape[1],
                "dropped": recording.dropped(),
            }
            if first.counts is not None:
                facts["full_scale"] = first.full_scale
            rig = recording.rig()
            facts["rig"] = None if rig is None else rig.name
        except D3SError as error:
            facts["damaged"] = str(error)
    return facts
