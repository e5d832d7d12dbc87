"""Records show their fields: to `inspect`, to `help`, and to type checkers."""

import copy
import inspect
import os
import pickle
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel, Field

import d3s
from d3s.errors import OptionsError, RecordError
from d3s.estimate.options import ConsensusOptions, JointOptions
from d3s.record import Converted, Record

ROOT = Path(__file__).parents[1]

# Once a model is built, pydantic before 2.12 shows constraints in place of types.
HAS_PLAIN_TYPES = hasattr(BaseModel, "__pydantic_on_complete__")


def _subclasses(kind: type) -> set[type]:
    direct = set(kind.__subclasses__())
    return direct.union(*map(_subclasses, direct))


def _all_records() -> list[type[Record]]:
    for module in pkgutil.walk_packages(d3s.__path__, "d3s."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    found = [kind for kind in _subclasses(Record) if kind.__module__.startswith("d3s.")]
    return sorted(found, key=lambda kind: kind.__qualname__)


RECORDS = _all_records()


def test_the_walk_finds_the_public_records():
    public = {value for name in d3s.__all__ if isinstance(value := getattr(d3s, name), type)}
    assert {kind for kind in public if issubclass(kind, Record)} <= set(RECORDS)
    assert len(RECORDS) > 25


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_signature_has_every_field_with_type_and_default(record):
    for _ in range(2):  # before the model is built, and after
        parameters = inspect.signature(record).parameters
        assert list(parameters) == list(record.model_fields)
        for name, field in record.model_fields.items():
            parameter = parameters[name]
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
            assert parameter.annotation is not inspect.Parameter.empty
            assert "Annotated" not in str(parameter) or not HAS_PLAIN_TYPES
            if field.is_required():
                assert parameter.default is inspect.Parameter.empty
            else:
                assert parameter.default == field.default
        record.model_rebuild()


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_help_explains_every_field(record):
    text = inspect.getdoc(record)
    for name, field in record.model_fields.items():
        assert f"\n{name} : " in text
        assert field.description, f"{name} of {record.__name__} has no description"
        assert f"    {field.description[0].upper()}{field.description[1:]}." in text


@pytest.mark.skipif(not HAS_PLAIN_TYPES, reason="needs pydantic 2.12")
def test_signature_by_hand():
    assert str(inspect.signature(d3s.Optics)) == (
        "(*, sensor_distance_m: float, aperture_radius_m: float, baseline_m: float, "
        "optical_power_left_dpt: float, optical_power_right_dpt: float, pixel_pitch_m: float, "
        "aperture_gaussian_width: float, disparity_offset_px: float)"
    )
    parameters = inspect.signature(JointOptions).parameters
    assert str(parameters["windows_px"]) == "windows_px: tuple[int, ...] | None = None"
    assert str(parameters["depth_range_m"]) == "depth_range_m: tuple[float, float] | None = None"


def test_signature_of_an_instance_is_an_error():
    with pytest.raises(TypeError, match="is not a callable"):
        inspect.signature(d3s.Rig.paper_prototype())


def test_parameters_stand_before_the_examples():
    class Board(Record):
        """Board of squares.

        Examples
        --------
        >>> Board(side_m=0.5).side_m
        0.5
        """

        side_m: float = Field(gt=0, le=2, description="the side of the board")

    assert inspect.getdoc(Board) == (
        "Board of squares.\n\n"
        "Parameters\n----------\nside_m : float, > 0, <= 2\n    The side of the board.\n\n"
        "Examples\n--------\n>>> Board(side_m=0.5).side_m\n0.5"
    )


def test_all_wrong_fields_are_named_at_once_and_before_the_first_good_one():
    with pytest.raises(OptionsError) as caught:
        JointOptions(windows_px=[8], rounds=0, round=3)
    assert caught.value.problems == (
        "windows_px[0]=8 must be odd: a window has a pixel at its centre. Try 9.",
        "rounds=0 must be at least 1.",
        "round is unknown. Did you mean rounds?",
    )


def test_lists_and_arrays_are_kept_as_tuples():
    assert Converted[tuple[float, ...]] == tuple[float, ...]
    options = JointOptions(windows_px=[9, 23], candidates_m=np.array([0.5, 1.0]))
    assert options.windows_px == (9, 23)
    assert options.candidates_m == (0.5, 1.0)
    assert hash(options) == hash(JointOptions(windows_px=(9, 23), candidates_m=(0.5, 1.0)))


@pytest.mark.parametrize(
    "record",
    [
        d3s.Rig.paper_prototype(),
        d3s.JointOptions(depth_range_m=(0.3, 2.0)),
        ConsensusOptions(virtual_baselines_m=[0.0005]),
        d3s.Sensor(noise=0.01, gain=(1.0, 0.9)),
        d3s.Plane(depth_m=1.0),
        d3s.Layered(layers=[d3s.Layer(depth_m=1.0)]),
    ],
    ids=lambda record: type(record).__name__,
)
def test_pickled_and_copied_records_are_equal(record):
    assert pickle.loads(pickle.dumps(record)) == record
    assert copy.copy(record) == record
    assert copy.deepcopy(record) == record
    assert record.replace() == record


CALLS = """
from typing import Any

import numpy as np

import d3s

table: dict[str, Any] = {}
depths_m = np.linspace(0.3, 1.0, 10)
d3s.Plane(depth_m=1)
d3s.Plane(depth_m=depths_m[3], texture=np.zeros((3, 3)))
d3s.Layered(layers=[d3s.Layer(depth_m=1.0, mask=np.zeros((3, 3)))])
d3s.Rig(optics=d3s.Optics(**table), name="mine").replace(calibration=None)
d3s.JointOptions(windows_px=[9, 23], candidates_m=depths_m)
d3s.JointOptions(windows_px=(9, 23), depth_range_m=[0.3, 1.0], search_scale=4)
d3s.ConsensusOptions(virtual_baselines_m=np.array([0.0005]), candidates_m=None)
d3s.Sensor(noise=0.01, gain=[1.0, 0.9], bits=None)
d3s.RandomScene(seed=0, patterns=["leaves"])
windows_px: tuple[int, ...] | None = d3s.JointOptions().windows_px
d3s.Plane(dept_m=1.0, depth_m=1.0)  # wrong: Unexpected keyword argument "dept_m"
d3s.Plane(depth_m="1")  # wrong: Argument "depth_m" to "Plane" has incompatible type "str"
d3s.Plane()  # wrong: Missing named argument "depth_m"
d3s.Plane(1.0)  # wrong: Too many positional arguments
d3s.JointOptions(search_scale=3)  # wrong: Argument "search_scale"
d3s.JointOptions(rounds=1.5)  # wrong: Argument "rounds"
d3s.JointOptions(windows_px=9)  # wrong: Argument "windows_px"
d3s.Sensor(saturates="yes")  # wrong: Argument "saturates"
d3s.Rig(name="mine")  # wrong: Missing named argument "optics"
"""


@pytest.mark.slow
def test_mypy_accepts_right_calls_and_rejects_wrong_ones(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "calls.py").write_text(CALLS)
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\nignore_missing_imports = true\n")
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "calls.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in result.stdout.splitlines() if ": error: " in line]
    expected = {
        number: line.partition("# wrong: ")[2]
        for number, line in enumerate(CALLS.splitlines(), start=1)
        if "# wrong: " in line
    }
    assert len(errors) == len(expected), result.stdout + result.stderr
    for error, (number, words) in zip(errors, expected.items(), strict=True):
        assert error.startswith(f"calls.py:{number}: error: {words}"), error


def test_every_problem_class_is_a_record_error():
    assert all(issubclass(record.error, RecordError) for record in RECORDS)
