"""Files with one changed byte: what is read, lost, refused, or goes wrong, of three kinds of file.

A small recording, depth map (NPZ) and calibrated rig (TOML) are made, and one byte of each at a
time is changed by a seed. `python benchmarks/damage.py --changes 10000` is the whole run. A rig is
text without a checksum, to be edited by hand: a changed digit is another rig.
"""

import argparse
import io
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import d3s
from d3s.camera.recording import Recording, RecordingWriter
from d3s.camera.recording.conversion import recover
from d3s.cli.info import info
from d3s.errors import D3SError
from d3s.files.depth_files import read_depth
from d3s.frames import Frame
from d3s.rig import Calibration, Provenance
from sheets import Sheet, show

OUTCOMES = ("whole", "a part lost", "more lost", "refused", "other content", "traceback")
SHAPE, FRAMES = (24, 40), 6


class Kind(NamedTuple):
    """Kind of file."""

    name: str
    make: Callable[[Path], object]
    read: Callable[[Path], list[Any]]  # its parts; None for one that is refused


def rig() -> d3s.Rig:
    """Calibrated camera of small frames."""
    calibration = Calibration(
        anchor_left_px=(30.0, 12.0),
        anchor_right_px=(10.0, 12.0),
        crop_rows_px=8,
        crop_cols_px=10,
        frame_rows_px=SHAPE[0],
        frame_cols_px=SHAPE[1],
        rectify_scale=1.001,
        rectify_angle_rad=0.002,
        rectify_shift_y_px=0.3,
        virtual_baselines_m=(4e-4, 5e-4),
        a_cubic_m_px=(1.0, 0.25, 0.0, 0.0),
        b_cubic_m=(1e-3, 0.0, 0.0, 0.0),
        provenance=Provenance(
            residuals={"depth": 0.0125},
            input_sha256={"a.png": "0" * 64},
            created="2026-01-31T12:00:00+01:00",
            d3s_version="0.1.0",
        ),
    )
    return d3s.Rig.paper_prototype().replace(calibration=calibration)


def make_recording(path: Path) -> None:
    """Recording of a few frames of noise."""
    rng = np.random.default_rng(1)
    with RecordingWriter(path, rig=rig(), notes={"camera": "small"}) as writer:
        for number in range(FRAMES):
            counts = rng.integers(0, 4096, SHAPE, dtype=np.uint16)
            writer.write(Frame(number=number, counts=counts, full_scale=4095, time_s=0.1 * number))


def make_map(path: Path) -> None:
    """Depth map of noise."""
    noise = np.random.default_rng(2).random((4, *SHAPE), dtype=np.float32)
    d3s.DepthMap(
        depth_m=1 + noise[0],
        sigma_m=noise[1],
        confidence=noise[2],
        flags=np.zeros(SHAPE, np.uint16),
        intensity=noise[3],
        rig=rig(),
        method="joint",
        options=d3s.JointOptions(),
    ).save(path)


def read_recording(path: Path) -> list[Any]:
    """Rig, notes and frames."""
    whole = path.with_name("whole.mcap")
    with Recording(path) as recording:
        try:
            parts = [recording.rig().to_text(), recording.notes]
        except D3SError:
            parts = [None, recording.notes]
        for one in recording:
            is_frame = isinstance(one, Frame)
            parts.append((one.number, one.time_s, one.counts.tobytes()) if is_frame else None)
    recover(path, whole, overwrite=True)
    return parts


def read_map(path: Path) -> list[Any]:
    """Layers and rig, read in two ways."""
    found, image = d3s.DepthMap.load(path), read_depth(path)
    layers = (found.depth_m, found.sigma_m, found.confidence, found.flags, image.depth_m)
    return [*(one.tobytes() for one in layers), found.rig, found.options, image.centre_px]


def read_rig(path: Path) -> list[Any]:
    """Rig, with which a frame is split as well."""
    found = d3s.Rig.load(path)
    with suppress(D3SError):
        found.split(np.zeros(SHAPE, np.float32))
    return [found]


KINDS = (
    Kind("recording.mcap", make_recording, read_recording),
    Kind("depth.npz", make_map, read_map),
    Kind("rig.toml", lambda path: rig().save(path), read_rig),
)


def outcome(kind: Kind, path: Path, expected: list[Any]) -> str:
    """What comes of a file, of `OUTCOMES`; both the library and `d3s info` read it."""
    try:
        with suppress(D3SError), redirect_stdout(io.StringIO()):
            info([path], as_json=False)
        found = kind.read(path)
    except D3SError:
        return "refused"
    except Exception:  # noqa: BLE001 - this is what is looked for
        traceback.print_exc(limit=-3)
        return "traceback"
    if len(found) != len(expected) or any(
        one is not None and one != other for one, other in zip(found, expected, strict=True)
    ):
        return "other content"
    return OUTCOMES[min(found.count(None), 2)]


def counts(kind: Kind, changes: int, seed: int, folder: Path) -> Counter[str]:
    """Outcomes of single changes at places and to values by the seed."""
    path = folder / kind.name
    kind.make(path)
    expected, good = kind.read(path), path.read_bytes()
    rng = np.random.default_rng(seed)
    found: Counter[str] = Counter()
    for place in rng.integers(len(good), size=changes):
        changed = bytearray(good)
        changed[place] ^= int(rng.choice([1 << rng.integers(8), rng.integers(1, 256)]))
        path.write_bytes(changed)
        found[outcome(kind, path, expected)] += 1
    return found


def main() -> None:
    """Change, count and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=1000, help="of each kind of file")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            found = counts(kind, asked.changes, asked.seed, Path(folder))
            lines.append((kind.name, *(f"{found[one]}" for one in OUTCOMES)))
    show([Sheet(f"{asked.changes} changes of one byte", ("file", *OUTCOMES), lines)])


if __name__ == "__main__":
    main()
