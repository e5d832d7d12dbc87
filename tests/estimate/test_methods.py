"""`d3s.estimate`: one call for every method."""

import subprocess
import sys

import numpy as np
import pytest

import d3s
from d3s.errors import InputError, OptionsError
from d3s.estimate.methods import methods, parse_method, parse_option
from d3s.estimate.options import Options

RIG = d3s.Rig.paper_prototype()
VIEW = np.random.default_rng(0).uniform(size=(40, 90)).astype(np.float32)


@pytest.mark.parametrize("name", methods())
def test_each_method_runs_with_its_default_options(name):
    function, options = methods()[name].load()
    assert callable(function)
    assert issubclass(options, Options)
    assert options() == options()
    found = d3s.estimate(VIEW, VIEW, RIG, method=name)
    assert found.method == name
    assert found.options == options()
    assert found.rig == RIG
    assert found.depth_m.shape == VIEW.shape


@pytest.mark.parametrize("method", ["jiont", "", None, 3, ["joint"], "JOINT"])
def test_unknown_method_is_rejected(method):
    with pytest.raises(InputError, match=rf"method=.* must be one of {', '.join(methods())}\."):
        d3s.estimate(VIEW, VIEW, RIG, method=method)


@pytest.mark.parametrize("rig", [None, "rig.toml", RIG.optics, {}])
def test_wrong_rig_is_rejected(rig):
    with pytest.raises(InputError, match=r"must be a Rig\. Read a rig file with Rig\.load\."):
        d3s.estimate(VIEW, VIEW, rig)


def test_options_of_another_method_are_rejected():
    with pytest.raises(InputError, match="must be JointOptions, or a table of its fields, for"):
        d3s.estimate(VIEW, VIEW, RIG, options=d3s.ConsensusOptions())
    with pytest.raises(InputError, match=r"must be ConsensusOptions.*method='consensus'"):
        d3s.estimate(VIEW, VIEW, RIG, method="consensus", options=d3s.JointOptions())


def test_wrong_options_are_named_all_at_once():
    with pytest.raises(OptionsError) as caught:
        d3s.estimate(VIEW, VIEW, RIG, options={"rounds": 0, "windows": 3, "candidates": 1})
    words = str(caught.value)
    for part in ("rounds=0 must be at least 1", "windows is unknown", "candidates=1 must be at"):
        assert part in words


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"windows_px": (8,)}, r"windows_px\[0\]=8 must be odd: .* Try 9"),
        ({"windows_px": ()}, r"windows_px=\(\) must have at least 1 value"),
        ({"windows_px": (21, 9)}, "must be strictly increasing"),
        ({"candidates": 4097}, "candidates=4097 must be at most 4096"),
        ({"depth_range_m": (2, 1)}, "must be the nearest depth, then a larger one"),
        ({"depth_range_m": (0, 1)}, "depth_range_m"),
        ({"candidates_m": (1.0,)}, "must have at least 2 values"),
        ({"candidates_m": (1, 2), "depth_range_m": (1, 2)}, "not be given beside depth_range_m"),
        ({"prefilter_sigma_px": 0}, "prefilter_sigma_px=0 must be above 0"),
        ({"search_scale": 3}, "search_scale=3 must be 1, 2 or 4"),
        ({"finest_scale": 4}, "finest_scale=4 must be 1 or 2"),
        ({"finest_scale": 2, "search_scale": 1}, "must be 1 beside search_scale=1"),
        ({"smoothness": float("inf")}, "smoothness=inf"),
        ({"use_defocus": "perhaps"}, "use_defocus='perhaps'"),
    ],
    ids=str,
)
def test_wrong_options_in_words(fields, words):
    with pytest.raises(OptionsError, match=words):
        d3s.estimate(VIEW, VIEW, RIG, options=fields)


CALLS = """
import d3s
rig = d3s.Rig.paper_prototype()
d3s.estimate([[1.0]], [[1.0]], rig)
import d3s.estimate.options
d3s.estimate([[1.0]], [[1.0]], rig)
from d3s.estimate.joint import kernels
from d3s import estimate
estimate([[1.0]], [[1.0]], rig)
assert estimate is d3s.estimate
print("done")
"""


def test_function_survives_imports_of_the_package():
    command = [sys.executable, "-c", CALLS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "done\n"


def test_parse_method_and_option():
    assert parse_method("joint") == ("joint", {})
    written = parse_method("sgbm:block_size_px=7:mode=hh:depth_range_m=[0.3,2]")
    assert written == ("sgbm", {"block_size_px": 7, "mode": "hh", "depth_range_m": [0.3, 2]})
    assert parse_option("word=a:b=c") == ("word", "a:b=c")
    assert parse_option("deep=" + 100_000 * "[")[0] == "deep"
    with pytest.raises(InputError, match=r"method 'bm:block' has 'block', which says no value"):
        parse_method("bm:block")
    with pytest.raises(InputError, match=r"'rounds' says no value\. Write FIELD=VALUE"):
        parse_option("rounds")
