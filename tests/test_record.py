"""Records show their fields: to `inspect`, to `help`, and to type checkers."""

import copy
import inspect
import pickle
import pkgutil
from importlib import import_module

import numpy as np
import pytest
from pydantic import BaseModel

import d3s
from d3s.errors import OptionsError
from d3s.estimate.options import ConsensusOptions, JointOptions
from d3s.record import Converted, Record

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
