"""Rig files: a saved rig is restored exactly, and wrong files are rejected."""

import copy
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from d3s.errors import RigError
from d3s.rig import Rig

DOCUMENT: dict[str, Any] = {
    "schema_version": 1,
    "name": "bench camera 3",
    "optics": {
        "baseline_m": 0.00384,
        "sensor_distance_m": 0.0121,
        "optical_power_left_dpt": 83.88,
        "optical_power_right_dpt": 83.78,
        "aperture_radius_m": 0.001,
        "pixel_pitch_m": 2e-06,
        "aperture_gaussian_width": 0.5,
        "disparity_offset_px": 0.25,
    },
    "calibration": {
        "anchor_left_px": [1000.25, 750.5],
        "anchor_right_px": [2960.5, 752.0],
        "crop_rows_px": 902,
        "crop_cols_px": 1802,
        "rectify_scale": 1.001,
        "rectify_angle_rad": 0.002,
        "rectify_shift_y_px": 1.5,
        "baseline_angle_rad": -0.004,
        "frame_rows_px": 2160,
        "frame_cols_px": 3840,
        "noise_read": 0.002,
        "noise_gain": 0.0001,
        "virtual_baselines_m": [0.00045, 0.0005, 0.00055],
        "a_cubic_m_px": [1.0, 2000.0, 3e6, 4e9],
        "b_cubic_m": [0.01, 0.02, 0.03, 0.04],
        "tuned_candidates": 960,
        "tuned_window_px": 31,
        "tuned_prefilter_sigma_px": 4.0,
        "provenance": {
            "created": "2025-01-31T12:00:00+00:00",
            "d3s_version": "0.1.0",
            "residuals": {"anchor_px": 0.21, "depth_mae_m": 0.004},
            "input_sha256": {"near_1": "0123456789abcdef" * 4},
        },
    },
}
# Valid with either sign. All other numbers must reject one of the signs.
SIGNED = (
    "disparity_offset_px",
    "anchor_",
    "rectify_angle_rad",
    "rectify_shift_y_px",
    "_cubic",
    "residuals.",
)
# Tables with arbitrary keys: an entry more or less is valid.
FREE_TABLES = ("residuals", "input_sha256")
# Optional keys with their defaults; PAIRED keys are given together or not at all.
PAIRED = {"frame_rows_px": "frame_cols_px", "noise_read": "noise_gain"}
TUNED = ("tuned_candidates", "tuned_window_px", "tuned_prefilter_sigma_px")
OPTIONAL = {"baseline_angle_rad": 0.0, **dict.fromkeys((*PAIRED, *PAIRED.values(), *TUNED))}

Place = tuple[str | int, ...]


def walk(node: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every table, list and value of a document, with its path in the document."""
    children: Any = ()
    if isinstance(node, dict):
        children = node.items()
    elif isinstance(node, list):
        children = enumerate(node)
    if place:
        yield place, node
    for key, child in children:
        yield from walk(child, (*place, key))


def dotted(place: Place) -> str:
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return name.removeprefix(".")


def changed(place: Place, value: Any = None, *, remove: bool = False) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    node: Any = document
    for part in place[:-1]:
        node = node[part]
    if remove:
        del node[place[-1]]
    else:
        node[place[-1]] = value
    return document


NODES = [(place, value) for place, value in walk(DOCUMENT) if place != ("schema_version",)]
VALUES = [(place, value) for place, value in NODES if not isinstance(value, dict | list)]
LISTS = [place for place, value in NODES if isinstance(value, list)]
TABLES = [place for place, value in NODES if isinstance(value, dict)]


def removable(place: Place) -> bool:
    is_free = place == ("calibration",) or (len(place) > 1 and place[-2] in FREE_TABLES)
    is_free = is_free or place[-1] in OPTIONAL
    return isinstance(place[-1], str) and not is_free


def wrong_values() -> Iterator[Any]:
    for place, value in VALUES:
        wrongs = {"nan": float("nan"), "inf": float("inf"), "-inf": -float("inf"), "1e308": 1e308}
        wrongs |= {"bool": True, "string": "" if isinstance(value, str) else str(value)}
        wrongs |= {"list": [value], "table": {"a": 1}}
        if not any(part in dotted(place) for part in (*SIGNED, "virtual_baselines_m")):
            wrongs["negative"] = -1 if isinstance(value, int) else -1.0
        for kind, wrong in wrongs.items():
            yield pytest.param(place, wrong, id=f"{dotted(place)}-{kind}")
    for place in (*LISTS, *TABLES):
        for wrong in (1.5, "text", True, [], [[]]):
            yield pytest.param(place, wrong, id=f"{dotted(place)}-{wrong}")


def refusal(path: Path, content: dict[str, Any] | str | bytes) -> RigError:
    """Error on loading a file of this content; it names the file, with one line per problem."""
    if isinstance(content, dict):
        content = tomli_w.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(RigError) as caught:
        Rig.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert caught.value.path == str(path)
    assert not any("\n" in problem for problem in caught.value.problems)
    return caught.value


def names(error: RigError) -> list[str]:
    return [problem.split(" is ")[0].split("=")[0] for problem in error.problems]


def test_whole_numbers_and_a_byte_order_mark_are_accepted(path: Path) -> None:
    text = tomli_w.dumps(changed(("optics", "disparity_offset_px"), 1))
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert Rig.load(str(path)).optics.disparity_offset_px == 1.0


def test_files_from_before_some_fields_load_as_they_did(path: Path) -> None:
    document = copy.deepcopy(DOCUMENT)
    for name in OPTIONAL:
        del document["calibration"][name]
    path.write_text(tomli_w.dumps(document))
    calibration = Rig.load(path).calibration
    assert calibration is not None
    assert {name: getattr(calibration, name) for name in OPTIONAL} == OPTIONAL


@pytest.mark.parametrize(("one", "other"), PAIRED.items())
def test_what_goes_together_is_given_together(path: Path, one: str, other: str) -> None:
    (problem,) = refusal(path, changed(("calibration", one), remove=True)).problems
    assert problem.startswith(f"calibration.{other}=")
    assert problem.endswith(f" needs {one} beside it. Give both, or neither.")
    (problem,) = refusal(path, changed(("calibration", other), remove=True)).problems
    assert problem.startswith(f"calibration.{other} is missing: ")


@pytest.mark.parametrize(("place", "wrong"), list(wrong_values()))
def test_wrong_value_of_every_field(path: Path, place: Place, wrong: Any) -> None:
    error = refusal(path, changed(place, wrong))
    assert all(name.startswith(dotted(place)) for name in names(error))


@pytest.mark.parametrize("place", [place for place, _ in NODES if removable(place)], ids=dotted)
def test_every_field_missing(path: Path, place: Place) -> None:
    (problem,) = refusal(path, changed(place, remove=True)).problems
    assert problem.startswith(f"{dotted(place)} is missing: ")
    assert len(problem) > len(f"{dotted(place)} is missing: .")


@pytest.mark.parametrize("table", [(), *TABLES], ids=dotted)
def test_unknown_field_in_every_table(path: Path, table: Place) -> None:
    if table and table[-1] in FREE_TABLES:
        return
    place = (*table, "colour")
    (problem,) = refusal(path, changed(place, "red")).problems
    assert problem.startswith(f"{dotted(place)} is unknown. Known are: ")


@pytest.mark.parametrize("version", [0, 2, -1, 10**30])
def test_unknown_schema_version_says_nothing_else(path: Path, version: int) -> None:
    error = refusal(path, {"schema_version": version, "optics": {"new": 1}})
    assert error.problems[0].startswith("schema_version=")
    assert error.problems[0].endswith(" is unknown: this D3S reads version 1.")
    assert len(error.problems) == 1


def test_no_such_file(path: Path) -> None:
    with pytest.raises(RigError, match=r"rig\.toml: there is no such file\."):
        Rig.load(path)


def test_load_a_folder(tmp_path: Path) -> None:
    with pytest.raises(RigError, match=r"is a folder\. Name the rig file in it\."):
        Rig.load(tmp_path)


def test_too_big_is_refused_before_reading(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a hole, which takes no space
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail("it was read"))
    with pytest.raises(RigError, match=r"has 1099511627776 bytes: a rig file has at most"):
        Rig.load(path)


@pytest.mark.parametrize(
    "text",
    [
        "\0",
        "schema_version = 1\nname = ",
        ".".join("a" * 400_000) + " = 1",
        "a = " + "[\n" * 100_000,
        "a = " + "{a=" * 100,
        "a = " + "1" * 999_990,
        "[optics]\n[optics]",
        "anchor = [\n  1.0,\n  null,\n]",
    ],
    ids=range(8),
)
def test_not_toml(path: Path, text: str) -> None:
    (problem,) = refusal(path, text).problems
    assert problem.startswith(("is not valid TOML: ", "is not a rig file: "))
    assert len(problem) < 400


@given(st.integers(0, 2_000), st.integers(0, 255))
@settings(max_examples=200, deadline=None)
def test_mutated_bytes_are_refused_or_a_valid_rig(place: int, byte: int) -> None:
    raw = bytearray(tomli_w.dumps(DOCUMENT).encode())
    raw[place % len(raw)] = byte
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rig.toml")
        path.write_bytes(raw)
        with suppress(RigError):
            Rig.load(path).save(path, overwrite=True)
