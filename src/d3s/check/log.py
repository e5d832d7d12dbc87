"""Log of the checks of a camera: one line of JSON for each, in a file beside the rig file."""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from d3s.atomic import write_text
from d3s.check.report import CheckReport
from d3s.errors import InputError

_MAX_BYTES = 50_000_000


class Entry(NamedTuple):
    """One check of the past."""

    made: str
    verdict: str
    frames: int
    rig_sha256: str  # of the rig file: values of another rig file do not continue
    values: dict[str, float | None]  # by the names of the quantities
    sigmas: dict[str, float | None]


def log_path(rig_file: Path) -> Path:
    """Path of the log of a rig file: rig.toml has rig.checks.jsonl."""
    return rig_file.with_suffix(".checks.jsonl")


def read_log(path: Path) -> list[Entry]:
    """Read the entries of a log, oldest first; none if there is no file."""
    if not path.exists():
        return []
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InputError(f"{path}: is too large for a log of checks. Move it away.")
        lines = path.read_text("utf-8").splitlines()
        return [_entry(json.loads(line)) for line in lines if line.strip()]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: is no log of checks ({error}). Move it away.") from error


def _entry(values: dict[str, Any]) -> Entry:
    quantities = values["quantities"]
    return Entry(
        made=str(values["made"]),
        verdict=str(values["verdict"]),
        frames=int(values["frames"]),
        rig_sha256=str(values["rig_sha256"]),
        values={name: one["value"] for name, one in quantities.items()},
        sigmas={name: one["sigma"] for name, one in quantities.items()},
    )


def append_log(report: CheckReport, rig_file: Path, path: Path | None = None) -> Path:
    """Add a check to the log of a rig file; returns the path of the log.

    The log is beside the rig file if no path is given.
    """
    target = log_path(rig_file) if path is None else path
    before = target.read_text("utf-8") if target.exists() else ""
    if before and not before.endswith("\n"):
        before += "\n"
    line = {
        "made": report.made,
        "d3s_version": report.version,
        "rig_sha256": hashlib.sha256(rig_file.read_bytes()).hexdigest(),
        "frames": len(report.frames),
        "verdict": report.verdict,
        "quantities": {one.name: one.as_json() for one in report.quantities},
    }
    write_text(target, before + json.dumps(line, allow_nan=False) + "\n", overwrite=True)
    return target
