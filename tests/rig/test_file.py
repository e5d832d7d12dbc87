"""Rig files: a saved rig is restored exactly, and wrong files are rejected."""

import copy
import errno
import os
import string
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
from d3s.rig import Calibration, Optics, Provenance, Rig
from d3s.rig.rig import RIG_FILE

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


def test_the_document_of_these_tests_is_valid(path: Path) -> None:
    path.write_text(tomli_w.dumps(DOCUMENT))
    rig = Rig.load(path)
    assert rig.name == "bench camera 3"
    assert rig.calibration is not None
    assert rig.calibration.virtual_baselines_m == (0.00045, 0.0005, 0.00055)


def test_file_is_readable_and_says_what_it_is(path: Path) -> None:
    Rig.paper_prototype().save(path)
    lines = path.read_text().splitlines()
    assert lines[0].startswith("# A D3S camera rig")
    assert "SI units" in lines[0]
    assert lines[4:8] == [
        "schema_version = 1",
        'name = "paper prototype"',
        "",
        "[optics]",
    ]
    assert "baseline_m = 0.00384" in lines
    assert not any("calibration" in line for line in lines)


def test_whole_numbers_and_a_byte_order_mark_are_accepted(path: Path) -> None:
    text = tomli_w.dumps(changed(("optics", "disparity_offset_px"), 1))
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert Rig.load(str(path)).optics.disparity_offset_px == 1.0


def test_a_rig_without_calibration(path: Path) -> None:
    path.write_text(tomli_w.dumps(changed(("calibration",), remove=True)))
    assert Rig.load(path).calibration is None


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


def floats(low: float, high: float, **options: Any) -> st.SearchStrategy[float]:
    return st.floats(low, high, **options)


LABELS = st.text(
    st.one_of(st.sampled_from(string.printable[:95] + "\"'\\.=#äλ→𝛼"), st.characters()), max_size=20
).filter(lambda text: text.strip() and text.isprintable())


@st.composite
def optics(draw: st.DrawFn) -> Optics:
    distance_m = draw(floats(1e-4, 1, exclude_max=True))
    powers = floats(max(1, 0.5 / distance_m), min(2e4, 2 / distance_m))
    return Optics(
        baseline_m=draw(floats(1e-4, min(0.99, 50 * distance_m))),
        sensor_distance_m=distance_m,
        optical_power_left_dpt=draw(powers),
        optical_power_right_dpt=draw(powers),
        aperture_radius_m=draw(floats(0, min(0.099, distance_m))),
        pixel_pitch_m=draw(floats(1e-7, 1e-4, exclude_min=True, exclude_max=True)),
        aperture_gaussian_width=draw(floats(0, 1, exclude_min=True)),
        disparity_offset_px=draw(floats(-1e5, 1e5)),
    )


PROVENANCES = st.builds(
    Provenance,
    residuals=st.dictionaries(LABELS, floats(-1e12, 1e12), max_size=4),
    input_sha256=st.dictionaries(
        LABELS, st.text("0123456789abcdef", min_size=64, max_size=64), max_size=3
    ),
    created=st.datetimes(timezones=st.timezones()).map(lambda time: time.isoformat()),
    d3s_version=LABELS,
)
PAIRS = st.tuples(floats(-1e5, 1e5), floats(-1e5, 1e5))
CUBICS = st.tuples(*[floats(-1e18, 1e18)] * 4)
VIRTUAL = floats(-0.099, 0.099).filter(lambda value: abs(value) > 1e-12)
FRAMES = st.tuples(st.integers(1, 65536), st.integers(1, 65536))
NOISES = st.tuples(*[floats(0, 1, exclude_max=True)] * 2)


def calibration(
    frame: tuple[int, int] | None, noise: tuple[float, float] | None, **values: Any
) -> Calibration:
    if frame is not None:
        values |= {"frame_rows_px": frame[0], "frame_cols_px": frame[1]}
    if noise is not None:
        values |= {"noise_read": noise[0], "noise_gain": noise[1]}
    return Calibration(**values)


CALIBRATIONS = st.builds(
    calibration,
    frame=st.none() | FRAMES,
    noise=st.none() | NOISES,
    baseline_angle_rad=floats(-0.499, 0.499),
    anchor_left_px=PAIRS,
    anchor_right_px=PAIRS,
    crop_rows_px=st.integers(1, 65536),
    crop_cols_px=st.integers(1, 65536),
    rectify_scale=floats(0.5, 2),
    rectify_angle_rad=floats(-0.499, 0.499),
    rectify_shift_y_px=floats(-1e4, 1e4),
    virtual_baselines_m=st.sets(VIRTUAL, min_size=1, max_size=32).map(sorted),
    a_cubic_m_px=CUBICS,
    b_cubic_m=CUBICS,
    provenance=PROVENANCES,
)


@st.composite
def rigs(draw: st.DrawFn) -> Rig:
    camera, calibration = draw(optics()), draw(st.none() | CALIBRATIONS)
    if calibration is not None:
        # Scaled below the baseline, in the order drawn.
        scale = min(camera.baseline_m, 0.1) / 0.1
        virtual_m = sorted({scale * value for value in calibration.virtual_baselines_m})
        calibration = calibration.replace(virtual_baselines_m=virtual_m)
    return Rig(optics=camera, calibration=calibration, name=draw(LABELS))


@given(rig=rigs())
@settings(max_examples=150, deadline=None)
def test_save_then_load_is_exact(rig: Rig) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rig.toml")
        rig.save(path)
        loaded = Rig.load(path)
    assert loaded == rig
    assert repr(loaded) == repr(rig)  # repr tells -0.0 from 0.0, and has every bit of a float


def test_longest_file_that_can_be_saved_can_be_loaded(path: Path) -> None:
    """The largest number of inputs, with the longest names of multi-byte letters and quotes."""
    names = [f"{number:04d}" + '"\U0001d6fc' * 125 for number in range(500)]
    provenance = Provenance(
        residuals=dict.fromkeys(names[:100], -1.2345678901234568e-300),
        input_sha256=dict.fromkeys(names, "f" * 64),
        created="2026-01-01T00:00:00+00:00",
        d3s_version="x" * 255,
    )
    path.write_text(tomli_w.dumps(DOCUMENT))
    calibration = Rig.load(path).calibration
    assert calibration is not None
    rig = Rig.paper_prototype().replace(calibration=calibration.replace(provenance=provenance))
    rig.save(path, overwrite=True)
    assert Rig.load(path) == rig
    for field, entry in (("input_sha256", "f" * 64), ("residuals", 0.0)):
        most = {"input_sha256": 500, "residuals": 100}[field]
        with pytest.raises(RigError, match=f"{field}.* must have at most {most} values"):
            provenance.replace(**{field: {str(n): entry for n in range(most + 1)}})


@pytest.mark.parametrize(("place", "wrong"), list(wrong_values()))
def test_wrong_value_of_every_field(path: Path, place: Place, wrong: Any) -> None:
    error = refusal(path, changed(place, wrong))
    assert all(name.startswith(dotted(place)) for name in names(error))


@pytest.mark.parametrize("place", [place for place, _ in NODES if removable(place)], ids=dotted)
def test_every_field_missing(path: Path, place: Place) -> None:
    (problem,) = refusal(path, changed(place, remove=True)).problems
    assert problem.startswith(f"{dotted(place)} is missing: ")
    assert len(problem) > len(f"{dotted(place)} is missing: .")


@pytest.mark.parametrize("place", LISTS, ids=dotted)
def test_list_too_long(path: Path, place: Place) -> None:
    error = refusal(path, changed(place, [i * 1e-4 for i in range(1, 40)]))
    assert names(error) == [dotted(place)]
    assert "must have at most" in error.problems[0]


@pytest.mark.parametrize(
    "place", [place for place in LISTS if "virtual" not in place[-1]], ids=dotted
)
def test_list_too_short(path: Path, place: Place) -> None:
    error = refusal(path, changed(place, [1.0]))
    assert f"{dotted(place)}[1] is missing: " in str(error)


@pytest.mark.parametrize(
    "place", [p for p, v in NODES if isinstance(p[-1], str) and not isinstance(v, dict)]
)
@pytest.mark.parametrize("insert", ["{key} = null", "{key} = ", "{line}\n{line}"])
def test_null_nothing_and_twice_for_every_key(path: Path, place: Place, insert: str) -> None:
    text = RIG_FILE.format({key: DOCUMENT[key] for key in DOCUMENT if key != "schema_version"})
    key = str(place[-1])
    (start,) = (line for line in text.splitlines() if line.startswith(f"{key} ="))
    whole = text[text.index(start) :].split("]\n")[0] + "]" if start.endswith("[") else start
    (problem,) = refusal(path, text.replace(whole, insert.format(key=key, line=whole))).problems
    assert problem.startswith("is not valid TOML: ")
    assert "at line " in problem
    assert key in problem


@pytest.mark.parametrize("table", [(), *TABLES], ids=dotted)
def test_unknown_field_in_every_table(path: Path, table: Place) -> None:
    if table and table[-1] in FREE_TABLES:
        return
    place = (*table, "colour")
    (problem,) = refusal(path, changed(place, "red")).problems
    assert problem.startswith(f"{dotted(place)} is unknown. Known are: ")


def test_a_slip_of_the_pen_is_recognised(path: Path) -> None:
    document = changed(("calibration", "provenance", "residual"), {})
    assert refusal(path, document).problems == (
        "calibration.provenance.residual is unknown. Did you mean residuals?",
    )


@given(st.sets(st.sampled_from([place for place, _ in VALUES]), min_size=1))
@settings(max_examples=60, deadline=None)
def test_all_wrong_fields_at_once(places: set[Place]) -> None:
    document = copy.deepcopy(DOCUMENT)
    for place in places:
        node: Any = document
        for part in place[:-1]:
            node = node[part]
        node[place[-1]] = True
    with tempfile.TemporaryDirectory() as folder:
        error = refusal(Path(folder, "rig.toml"), document)
    assert sorted(names(error)) == sorted(map(dotted, places))


def test_the_words_of_millimetres(path: Path) -> None:
    error = refusal(path, changed(("optics", "baseline_m"), 3.84))
    assert str(error) == (
        f"{path}: optics.baseline_m=3.84 must be at most 50 times sensor_distance_m=0.0121: no "
        "lens is so small beside its neighbour: it is in metres. Did you pass millimetres?"
    )


def test_several_problems_have_a_line_each(path: Path) -> None:
    document = changed(("optics", "aperture_radius_m"), 1.0)
    document["optics"]["pixel_pitch_m"] = -1
    assert str(refusal(path, document)).splitlines() == [
        f"{path}: 2 problems",
        "  optics.aperture_radius_m=1.0 must be below 0.1: it is in metres. Did you pass "
        "millimetres?",
        "  optics.pixel_pitch_m=-1 must be above 1e-07: it is in metres.",
    ]


def test_schema_version_missing(path: Path) -> None:
    error = refusal(path, changed(("schema_version",), remove=True))
    assert error.problems[0].startswith("schema_version is missing: this D3S reads version 1.")


@pytest.mark.parametrize("version", [0, 2, -1, 10**30])
def test_unknown_schema_version_says_nothing_else(path: Path, version: int) -> None:
    error = refusal(path, {"schema_version": version, "optics": {"new": 1}})
    assert error.problems[0].startswith("schema_version=")
    assert error.problems[0].endswith(" is unknown: this D3S reads version 1.")
    assert len(error.problems) == 1


@pytest.mark.parametrize("version", [True, 1.0, "1", [1], float("nan")])
def test_schema_version_that_is_no_whole_number(path: Path, version: Any) -> None:
    (problem,) = refusal(path, changed(("schema_version",), version)).problems
    assert " must be a whole number: this D3S reads version 1." in problem


def test_no_such_file(path: Path) -> None:
    with pytest.raises(RigError, match=r"rig\.toml: there is no such file\."):
        Rig.load(path)


def test_load_a_folder(tmp_path: Path) -> None:
    with pytest.raises(RigError, match=r"is a folder\. Name the rig file in it\."):
        Rig.load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_load_a_pipe(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(RigError, match="is no ordinary file"):
        Rig.load(path)


def test_load_a_path_no_system_accepts() -> None:
    with pytest.raises(RigError, match=r"cannot be read: .*embedded null"):
        Rig.load("rig\0.toml")


def test_not_allowed_to_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_bytes(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    path.write_text("")
    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    with pytest.raises(RigError, match=r"cannot be read: .*Permission denied"):
        Rig.load(path)


def test_too_big_is_refused_before_reading(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a hole, which takes no space
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail("it was read"))
    with pytest.raises(RigError, match=r"has 1099511627776 bytes: a rig file has at most"):
        Rig.load(path)


def test_empty_file(path: Path) -> None:
    assert "schema_version is missing" in str(refusal(path, ""))


def test_not_utf8(path: Path) -> None:
    assert "is not UTF-8 text (at byte 8)" in str(refusal(path, b'name = "\xff"'))


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


def test_place_in_a_list_of_several_lines(path: Path) -> None:
    (problem,) = refusal(path, "anchor = [\n  1.0,\n  null,\n]").problems
    assert problem == (
        "is not valid TOML: Invalid value (at line 3, column 3): 'null,', after 'anchor = ['"
    )


def test_tables_within_tables(path: Path) -> None:
    place = ("calibration", "provenance", "residuals", "a")
    key = ".".join(["a"] * 400)
    text = tomli_w.dumps(changed(place, "@")).replace('a = "@"', f"{key} = 1")
    (problem,) = refusal(path, text).problems
    assert problem.startswith("calibration.provenance.residuals.a={'a': ")
    assert len(problem) < 200


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
