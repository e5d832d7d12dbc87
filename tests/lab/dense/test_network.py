"""Networks of the fill: compiled and in NumPy, bounded, and the file of the package's models."""

import json

import numpy as np
import pytest

from d3s.lab.dense.candidates import PathModel
from d3s.lab.dense.evidence import EVIDENCE_FEATURES, EvidenceModel
from d3s.lab.dense.judge import FEATURES, FillModel, Network, compiled_outputs, outputs_of
from d3s.lab.dense.model import (
    MODEL_FILE,
    DenseModel,
    FrameScale,
    SigmaModel,
    load_model,
    sigma_of,
    write_model,
)


def network(features, units, seed=0):
    rng = np.random.default_rng(seed)

    def some(*shape):
        return rng.normal(0, 0.5, shape).astype(np.float32)

    scale = np.abs(some(features)) + np.float32(0.5)
    return Network(
        some(features),
        scale,
        some(features),
        np.float32(0.25),
        some(features, units),
        some(units),
        some(units),
    )


def test_compiled_network_agrees_with_numpy():
    features = np.random.default_rng(1).normal(0, 3, (500, 7)).astype(np.float32)
    one = network(7, 5)
    found = compiled_outputs(one, features)
    assert np.allclose(found, outputs_of(one, features), atol=1e-5)


def test_output_is_that_of_the_formula():
    one = Network(
        mean=np.array([1, 0], np.float32),
        scale=np.array([0.5, 1], np.float32),
        linear=np.array([2, 0], np.float32),
        bias=np.float32(0.1),
        hidden=np.array([[0], [1]], np.float32),
        hidden_bias=np.array([0.5], np.float32),
        output=np.array([3], np.float32),
    )
    found = outputs_of(one, np.array([[2, 0.25]], np.float32))
    assert found[0] == pytest.approx(2 * 0.5 + 3 * 0.75 / 1.75 + 0.1, rel=1e-6)


def test_models_are_read_as_they_were_written(tmp_path):
    model = DenseModel(
        EvidenceModel(network(4, 2, 1), network(4, 2, 2)),
        PathModel(np.float32(1.5), np.float32(-1), np.float32(-2)),
        FillModel(network(6, 3, 3), network(6, 3, 4)),
        SigmaModel(outside=0.01, falling=0.5),
    )
    write_model(model, tmp_path / "model.json")
    found = load_model(tmp_path / "model.json")
    assert found.paths == model.paths
    assert found.sigma == model.sigma
    for name in Network._fields:
        kept, wanted = getattr(found.fill.error, name), getattr(model.fill.error, name)
        assert kept.dtype == np.float32
        assert np.allclose(kept, wanted, rtol=1e-4)


def test_coefficients_of_the_package_are_those_of_its_features():
    named = json.loads(MODEL_FILE.read_text(encoding="utf-8"))
    assert tuple(named["evidence_features"]) == EVIDENCE_FEATURES
    assert tuple(named["fill_features"]) == FEATURES
    model = load_model()
    for one in model.evidence:
        assert one.mean.shape == (len(EVIDENCE_FEATURES),)
    assert np.array_equal(model.fill.gross.mean, model.fill.error.mean)
    assert np.array_equal(model.fill.gross.scale, model.fill.error.scale)
    for one in model.fill:
        assert one.hidden.shape == (len(FEATURES), one.output.size)


def test_sigma_is_a_third_of_what_few_errors_exceed():
    """Errors drawn from the two falling parts of the model are outside as rarely as is asked."""
    rng = np.random.default_rng(0)
    model, span = SigmaModel(outside=0.02, falling=0.7), FrameScale(per_dpt_px=23.2, depth_m=1.0)
    depth_m, error_px, gross = (np.full(200_000, one) for one in (1.0, 0.3, 0.005))
    sigma_m = sigma_of(depth_m, error_px, gross, span, model)
    right = rng.exponential(0.7 * 0.3 / 23.2, depth_m.size)
    error_m = np.where(rng.random(depth_m.size) < gross, 1.0, right)
    assert np.mean(error_m > 3 * sigma_m) == pytest.approx(0.02, abs=0.002)
