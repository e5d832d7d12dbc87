"""`CheckReport`: what a check has found, its verdict, the mended rig; and the log of such checks.

The log is a file beside the rig file, with one line of JSON for each check.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from d3s.atomic import write_text
from d3s.check.drift_quantities import CORE, Quantity, State
from d3s.check.mend import mended
from d3s.errors import InputError
from d3s.rig import Change, Rig
from d3s.types import FloatArray

_NOT_MENDED = ("noise", "spots")
_REMEDIES = {
    "noise": "The rig file is not changed: calibrate the noise again, or look for what warms the "
    "sensor.",
    "spots": "Clean the sensor glass and the lenses.",
}
_SUMMARIES: dict[State, str] = {
    "steady": "Nothing has drifted by an amount that matters. Use the rig as it is.",
    "drifted": "The camera is not as it was calibrated.",
    "unknown": "These frames cannot tell whether the camera has drifted.",
}
_DAYS_FOR_A_RATE = 7.0
# Error of the disparity by rows that are off: texture at all angles passes about this share.
_ROWS_SHARE = 0.3


class FrameSummary(NamedTuple):
    """One frame of a check, for the report."""

    name: str
    blocks: int  # places that were compared
    density: float  # share of the pixels that have a depth
    rows_px: float  # median of the residual rows, NaN if there is none
    light: float  # median of the log of the ratio of the views
    distance_m: float | None = None  # of a wall


class Map(NamedTuple):
    """Places of all frames: residual rows and light over the view, before anything is mended."""

    x_px: FloatArray  # from the middle of the view
    y_px: FloatArray
    rows_px: FloatArray
    light: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckReport:
    """Result of `d3s.check`."""

    rig: Rig
    quantities: tuple[Quantity, ...]
    frames: tuple[FrameSummary, ...]
    shape: tuple[int, int]  # rows and columns of a view
    made: str
    version: str
    rows_offset_px: float = 0.0  # to add to rows_px if the turn is mended too
    map: Map | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Quantity:
        """Quantity by its name; an `InputError` if it was not measured."""
        for one in self.quantities:
            if one.name == name:
                return one
        names = ", ".join(one.name for one in self.quantities)
        raise InputError(f"name={name!r} must be one of {names}.")

    @property
    def drifted(self) -> tuple[Quantity, ...]:
        """Quantities that have drifted."""
        return tuple(one for one in self.quantities if one.state == "drifted")

    @property
    def verdict(self) -> State:
        """Drifted, steady, or unknown if rows, roll, scale or gain are unknown.

        Frames of a wall at a known distance tell its disparity, whatever else is unknown.
        """
        if self.drifted:
            return "drifted"
        states = {one.name: one.state for one in self.quantities}
        needed = ("disparity_px",) if "disparity_px" in states else CORE
        return "unknown" if any(states[name] == "unknown" for name in needed) else "steady"

    @property
    def summary(self) -> str:
        """Verdict in a sentence."""
        return _SUMMARIES[self.verdict]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Drifts in words; if nothing is known, the reasons."""
        drifted = [
            " ".join(filter(None, (_capital(one.sentence), _REMEDIES.get(one.name, ""))))
            for one in self.drifted
        ]
        if drifted or self.verdict == "steady":
            return tuple(drifted)
        return tuple(dict.fromkeys(map(_why_unknown, self._unknown_core())))

    def _unknown_core(self) -> list[Quantity]:
        names = (*CORE, "disparity_px")
        return [one for one in self.quantities if one.name in names and one.state == "unknown"]

    @property
    def drift(self) -> dict[str, float]:
        """Drift to take out of the rig: significant quantities that can be mended, by name."""
        found = {one.name: one.value for one in self.drifted if one.name not in _NOT_MENDED}
        if "turn_rad" in found:
            found["rows_px"] = found.get("rows_px", 0.0) + self.rows_offset_px
        return found

    @property
    def can_mend(self) -> bool:
        """Whether there is a drift that a rig file can take out."""
        return bool(self.drift) and (
            self.rig.calibration is not None
            or set(self.drift) <= {"disparity_px", "focal_baseline", "focus_dpt"}
        )

    @property
    def mended_rig(self) -> Rig:
        """Rig without the drift, with the change in its history; the same rig if there is none.

        An `InputError` if the rig has no calibration to mend.
        """
        drift = self.drift
        if not drift:
            return self.rig
        rig = mended(self.rig, drift)
        calibration = rig.calibration
        if calibration is None:
            return rig
        sigmas = {name: self[name].sigma for name in drift}
        names = ", ".join(self[name].kind.title for name in drift)
        change = Change(
            made=self.made,
            reason=f"d3s check: {names} had drifted",
            frames=len(self.frames),
            drift=drift,
            drift_sigma=sigmas,
            d3s_version=self.version,
        )
        return rig.replace(
            calibration=calibration.replace(
                history=(*(calibration.history or ()), change),
                drift_sigma_px=self.left_sigma_px,
                drift_px_per_year=self._rate(drift),
            )
        )

    @property
    def left_sigma_px(self) -> float:
        """Standard deviation of the disparity that the mended rig has left, over a view."""
        return self._disparity_rms(
            {one.name: one.sigma for one in self.quantities if np.isfinite(one.sigma)}
        )

    def _disparity_rms(self, size: Mapping[str, float]) -> float:
        """Root mean square over a view of the disparity that a drift adds."""
        half_rows, half_cols = (one / 2 / np.sqrt(3) for one in self.shape)
        parts = (
            size.get("rows_px", 0.0) * _ROWS_SHARE,
            size.get("roll_rad", 0.0) * half_rows,
            size.get("scale", 0.0) * half_cols,
            size.get("disparity_px", 0.0),
        )
        return float(np.sqrt(np.sum(np.square(parts))))

    def _rate(self, drift: Mapping[str, float]) -> float | None:
        """Drift of the disparity in a year, from that since the calibration or the last change."""
        calibration = self.rig.calibration
        if calibration is None:
            return None
        before = calibration.provenance.created
        if calibration.history:
            before = calibration.history[-1].made
        passed = datetime.fromisoformat(self.made) - datetime.fromisoformat(before)
        days = passed.total_seconds() / 86400
        if days < _DAYS_FOR_A_RATE:
            return calibration.drift_px_per_year
        return min(self._disparity_rms(drift) / (days / 365.25), 100.0)

    def as_json(self) -> dict[str, Any]:
        """All numbers, as JSON can hold them."""
        return {
            "rig": self.rig.name,
            "made": self.made,
            "d3s_version": self.version,
            "verdict": self.verdict,
            "remarks": list(self.remarks),
            "quantities": {one.name: one.as_json() for one in self.quantities},
            "drift": self.drift,
            "frames": [
                {key: _finite(value) for key, value in one._asdict().items()} for one in self.frames
            ],
            "refused": dict(self.refused),
            "notes": list(self.notes),
        }


def _why_unknown(one: Quantity) -> str:
    if one.reason:
        return f"Not known: {one.kind.title}. {_capital(one.reason)}"
    return (
        f"Not known: {one.kind.title}, which is certain to {one.shown('sigma')} {one.kind.unit} "
        "only. Take more frames, of other scenes, with texture all over."
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


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
