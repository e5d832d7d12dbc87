"""Numbers of the fill: models that `benchmarks/tune_dense.py` has fitted, and sigma from them."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from d3s.lab.dense.candidates import PathModel
from d3s.lab.dense.evidence import EVIDENCE_FEATURES, EvidenceModel
from d3s.lab.dense.judge import FEATURES, FillModel, Network
from d3s.types import Image, Mask

MODEL_FILE = Path(__file__).with_name("coefficients.json")
"""Coefficients that `benchmarks/tune_dense.py` writes."""
_DIGITS = 5  # of a coefficient

GROSS = 0.1
"""Error that counts as that of another surface, as a share of the depth."""
_GROSS_SHARE = 0.45  # mean size of a gross error, as a share of the range of depths
_AROUND = 21  # side of the window whose median sigma counts, in cells: best on tuning rooms
_LEAST_SIGMA = 0.002  # sigma below which no median counts, as a share of the range of depths
_LEVELS = 40.0  # of ln sigma, by which the median is found
_LEAST_SPAN = 0.3  # range of depths, as a share of their median, if all that is measured is flat


class SigmaModel(NamedTuple):
    """Numbers by which sigma follows from the models of errors."""

    outside: float  # share of the errors beyond 3 sigma that is aimed at
    falling: float  # size by which errors on the right surface fall off, in standard deviations


class DenseModel(NamedTuple):
    """Fitted models of evidence, paths, fills and sigma."""

    evidence: EvidenceModel
    paths: PathModel
    fill: FillModel
    sigma: SigmaModel


@cache
def load_model(path: Path = MODEL_FILE) -> DenseModel:
    """Models of the package, or those of another file."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return DenseModel(
        EvidenceModel(**{name: _network(one) for name, one in found["evidence"].items()}),
        PathModel(**{name: np.float32(one) for name, one in found["paths"].items()}),
        FillModel(**{name: _network(one) for name, one in found["fill"].items()}),
        SigmaModel(**found["sigma"]),
    )


def write_model(model: DenseModel, path: Path = MODEL_FILE) -> None:
    """Write models, with the names of their features."""
    names = {"evidence_features": EVIDENCE_FEATURES, "fill_features": FEATURES}
    text = json.dumps(names | _plain(model), indent=1)
    # One row of numbers a line.
    text = re.sub(r"\s+(?=-?\d)|(?<=\d)\s+(?=\])", " ", text)
    path.write_text(text + "\n", encoding="utf-8")


def _network(fields: dict[str, Any]) -> Network:
    bias = np.float32(fields.pop("bias"))
    arrays = {name: np.asarray(one, np.float32) for name, one in fields.items()}
    return Network(bias=bias, **arrays)


def _plain(value: Any) -> Any:
    """Named tuples as dictionaries, arrays as lists of rows, and numbers with few digits."""
    if hasattr(value, "_asdict"):
        return {name: _plain(one) for name, one in value._asdict().items()}
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value]
    return float(f"{value:.{_DIGITS}g}")


def depth_span_m(measured_m: Image) -> float:
    """Range of the measured depths, by which errors of another surface are reckoned."""
    if not measured_m.size:
        return 1.0
    low, middle, high = np.percentile(measured_m[:: max(measured_m.size // 20000, 1)], (5, 50, 95))
    return float(max(high - low, _LEAST_SPAN * middle))


class FrameScale(NamedTuple):
    """Numbers of a camera and its frame that turn disparities into depths."""

    per_dpt_px: float  # disparity of one dioptre
    depth_m: float  # range of depths, as `depth_span_m` gives it


def sigma_of(
    depth_m: Image, error_px: Image, gross: Image, span: FrameScale, model: SigmaModel
) -> Image:
    """Sigma in metres, such that few errors are beyond 3 sigma, those of other surfaces included.

    Errors on the right surface fall off exponentially, and so do those of other surfaces, far
    more slowly. Sigma is a third of the size that a share of `SigmaModel.outside` exceeds.

    `error_px` is the standard deviation of the disparity on the right surface, `gross` the
    probability of another one.
    """
    error_m = depth_m**2 * error_px / np.float32(span.per_dpt_px)
    # Share of the errors beyond 3 sigma that is left for the right surface.
    left = np.maximum(model.outside - gross, 0.1 * model.outside)
    near = model.falling * error_m * np.log(1 / left)
    size_m = GROSS * depth_m + _GROSS_SHARE * span.depth_m
    far = size_m * np.log(np.maximum(gross / model.outside, 1))
    return np.asarray((near + far) / 3)


def sigma_of_surroundings(sigma_m: Image, is_measured: Mask, span: FrameScale) -> Image:
    """Raise sigma to its median over the cells around it: no cell is known better than most there.

    The judge takes a few of many cells for sure by mistake. Those are islands among cells of which
    nobody knows the depth; cells that are rightly sure have neighbours that are.

    Sigma is NaN where there is no depth; measured cells count as known.
    """
    import cv2

    least_m = _LEAST_SIGMA * span.depth_m
    with np.errstate(invalid="ignore"):
        level = np.minimum(_LEVELS * np.log(np.maximum(sigma_m / np.float32(least_m), 1)), 255)
    level = np.where(is_measured, np.float32(0), np.nan_to_num(level, nan=255.0))
    median = cv2.medianBlur(level.astype(np.uint8), _AROUND).astype(np.float32)
    floor_m = np.where(median > 0, np.float32(least_m) * np.exp(median / np.float32(_LEVELS)), 0)
    return np.asarray(np.fmax(sigma_m, np.where(np.isnan(sigma_m), sigma_m, floor_m)), np.float32)
