"""Search for cameras: answers meet the wish, nothing drawn at random beats them."""

from importlib import import_module

import numpy as np
import pytest

from d3s.errors import D3SError
from d3s.lab.design.candidates import FixedValues, Requirements, load_catalogue
from d3s.lab.design.predict import predict
from d3s.lab.design.search import (
    GOALS,
    MeritFunction,
    missed,
    search,
)
from d3s.lab.design.wall import Lighting, Wall

WISH = Requirements(reach_m=(0.3, 2.0), error_m=0.01, max_size_m=15e-3)


@pytest.fixture
def few_rounds(monkeypatch):
    """Half of the rounds of a search: enough where no answer has to be the best."""
    monkeypatch.setattr(import_module("d3s.lab.design.search"), "ROUNDS", 50)


@pytest.fixture(scope="module")
def found():
    return search(WISH)


def test_answers_meet_the_wish_when_predicted_in_full(found):
    assert [one.goal for one in found.answers] == list(GOALS)
    for one in found.answers:
        assert one.camera.size_m == pytest.approx(one.size_m, rel=1e-6)
        assert one.camera.size_m <= WISH.max_size_m
        assert one.camera.light_um2 == pytest.approx(one.light_um2, rel=1e-6)
        assert one.camera.field_of_view_rad[1] >= 0.99 * WISH.min_field_rad
        prediction = predict(one.camera, depths_m=[0.3, 0.5, 1.0, 2.0])
        assert (prediction.mae_m <= 0.01).all()
        assert float((prediction.mae_m / 0.01).max()) < one.worst  # which has a margin


def test_no_random_camera_beats_an_answer(found):
    figures = MeritFunction(WISH, FixedValues(), Lighting(), Wall())
    merits = figures(figures.draw(20_000, np.random.default_rng(1)))
    good = missed(WISH, merits) == 0
    assert good.sum() > 20
    for one in found.answers:
        beaten = (
            (merits.size_m < one.size_m)
            & (merits.light_um2 > one.light_um2)
            & (merits.worst < one.worst)
        )
        assert not (beaten & good).any()


def test_given_values_stay(few_rounds):
    catalogue = load_catalogue()
    given = FixedValues(
        sensors=(catalogue.sensor("OV9282"),),
        lenses=(catalogue.lens("AC050-010-A"),),
        baseline_m=8e-3,
    )
    wish = Requirements(reach_m=(0.4, 1.5), error_share=0.02, min_field_rad=0.1)
    answer = search(wish, given).answers[0]
    assert answer.sensor == "OV9282"
    assert answer.lens == "AC050-010-A"
    assert answer.camera.optics.baseline_m == 8e-3
    assert answer.camera.focal_length_m == pytest.approx(10e-3)
    assert answer.camera.f_number >= 10 / 4.5 - 1e-9
    assert answer.camera.lens_diameter_m == 5e-3


def test_wish_that_cannot_be_met_says_what_to_relax(few_rounds):
    found = search(WISH.replace(error_m=1e-3, max_size_m=6e-3))
    assert not found.answers
    words = found.relaxed
    assert {"error", "size", "farthest"} <= set(words)
    size_mm = float(words["size"].split()[3])
    assert 6 < size_mm < 12
    met = search(WISH.replace(error_m=1e-3, max_size_m=1.03e-3 * size_mm))
    assert met.answers


def test_texture_with_a_size_of_its_own_is_refused():
    with pytest.raises(D3SError, match="texture='bark' must look alike at every distance"):
        search(WISH, wall=Wall(texture="bark"))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"error_m": 0.0}, "error_share=0.0 or error_m must be above 0"),
        ({"reach_m": (2.0, 0.3)}, r"reach_m=.* must be the nearest depth, then a larger one"),
        ({"max_size_m": 15.0}, "max_size_m=15.0 must be at most 10"),
    ],
)
def test_wrong_wishes_are_named(wrong, words):
    with pytest.raises(D3SError, match=words):
        Requirements(**{"reach_m": (0.3, 2.0), "error_m": 0.01, **wrong})
