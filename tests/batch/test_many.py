"""Many frames: the same bytes at every place, resumed after any end, and told in a table."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import poison_frames
from d3s import DepthMap
from d3s.batch import DepthJob, depth_files, estimate_files, find_inputs
from d3s.batch.calibrations import calibrate_folders
from d3s.batch.table import JOB, TABLE
from d3s.batch.zarr_store import DepthStore
from d3s.errors import InputError, OutputError
from d3s.files import read_image, write_image
from pairs import RIG, views, write_views

QUICK = DepthJob(rig=RIG, method="bm", formats=("npz", "png", "preview"))
NPZ = replace(QUICK, formats=("npz",))
TOLD = {TABLE, JOB}
FLAT = np.full((93, 220), 0.5, np.float32)


def frames(folder: Path, count: int, start: int = 0):
    folder.mkdir(exist_ok=True)
    for i in range(start, start + count):
        write_views(folder / f"{i:03}_left.png", folder / f"{i:03}_right.png", seed=i)
    return find_inputs([folder]).frames


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in TOLD
    }


def rows(folder: Path) -> list[dict]:
    return list(csv.DictReader((folder / TABLE).read_text().splitlines()))


def test_processes_write_the_same_bytes(tmp_path):
    given = frames(tmp_path / "in", 6)
    job = replace(QUICK, formats=(*QUICK.formats, "zarr"))
    estimate_files(given, job, tmp_path / "here")
    seen = []
    batch = estimate_files(
        given,
        job,
        tmp_path / "processes",
        workers=2,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert [one.name for one in batch.done] == [f"{i:03}" for i in range(6)]
    assert seen == [(number, 6) for number in range(1, 7)]
    here = contents(tmp_path / "here")
    assert contents(tmp_path / "processes") == here
    assert len(here) == 6 * 4 + 1 + 6 * 6 + 6  # files; the group, its chunks and its arrays


def test_table_has_figures_and_beside_it_is_all_that_decides_them(tmp_path):
    given = frames(tmp_path / "in", 2)
    (tmp_path / "in/001_left.png").write_bytes(b"no image")
    batch = estimate_files(given, NPZ, tmp_path / "out")
    assert batch.table == tmp_path / "out" / TABLE
    settings = json.loads((tmp_path / "out" / JOB).read_text())
    assert settings["method"] == "bm"
    assert settings["rig"]["name"] == RIG.name
    good, bad = rows(tmp_path / "out")
    assert good["outcome"] == "done"
    assert float(good["density"]) == batch.done[0].density
    assert good["files"] == "000_depth.npz"
    assert good["inputs"] == "; ".join(str(path) for path in given[0].files)
    assert bad["outcome"] == "refused"
    assert bad["reason"] == batch.refused[0].reason


@pytest.mark.parametrize("workers", [1, 2])
def test_a_refused_file_is_named_as_it_was_given(tmp_path, monkeypatch, workers):
    frames(tmp_path / "in", 2)
    (tmp_path / "in/001_left.png").write_bytes(b"no image")
    monkeypatch.chdir(tmp_path)
    given = find_inputs(["in"]).frames
    (bad,) = estimate_files(given, NPZ, tmp_path / "out", workers=workers).refused
    assert bad.name == "in/001_left.png"
    assert bad.reason.startswith("in/001_left.png: ")


def test_frames_without_a_depth_are_told_and_the_table_is_in_order(tmp_path):
    given = frames(tmp_path / "in", 3)
    write_image(tmp_path / "in/001_left.png", FLAT, overwrite=True)
    write_image(tmp_path / "in/001_right.png", FLAT, overwrite=True)
    batch = estimate_files(given, NPZ, tmp_path / "out", workers=2)
    table = (tmp_path / "out" / TABLE).read_text().splitlines()
    assert [line.split(",")[0] for line in table[1:]] == ["000", "001", "002"]  # not as they came
    assert [one.name for one in batch.done] == ["000", "001", "002"]
    (empty,) = batch.empty
    assert empty.name == "001"
    assert np.isnan(empty.nearest_m)


def test_work_goes_on_and_figures_stay(tmp_path):
    given, out = frames(tmp_path / "in", 4), tmp_path / "out"
    whole = estimate_files(given, QUICK, out)
    before = contents(out)
    (out / "002_depth.png").unlink()
    with (out / TABLE).open("a") as file:
        file.write("002,done,0.")  # torn by a kill
    again = estimate_files(given, QUICK, out, skip_done=True)
    assert [one.name for one in again.done] == ["002"]
    assert again.skipped == ("000", "001", "003")
    assert contents(out) == before
    densities = {row["frame"]: float(row["density"]) for row in rows(out)}
    assert densities == {one.name: one.density for one in whole.done}
    (out / TABLE).unlink()  # without a row a frame is not known to be whole
    assert len(estimate_files(given, QUICK, out, skip_done=True).done) == 4
    assert contents(out) == before


def test_only_the_same_work_goes_on(tmp_path):
    given = frames(tmp_path / "in", 2)
    estimate_files(given, NPZ, tmp_path / "out")
    other = replace(NPZ, min_confidence=0.5)
    with pytest.raises(
        OutputError, match=r"has results with other min_confidence: None, and now 0.*--force"
    ):
        estimate_files(given, other, tmp_path / "out", skip_done=True)
    assert len(estimate_files(given, other, tmp_path / "out", overwrite=True).done) == 2


def test_a_frame_that_a_format_cannot_hold_is_not_done_again(tmp_path):
    given = frames(tmp_path / "in", 2)
    job = replace(NPZ, formats=("npz", "png"), unit_m=1e-6)  # no depth fits
    assert len(estimate_files(given, job, tmp_path / "out").incomplete) == 2
    assert estimate_files(given, job, tmp_path / "out", skip_done=True).skipped == ("000", "001")


def test_a_file_that_is_no_table_stays(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / TABLE).write_text("mine\n")
    with pytest.raises(InputError, match=r"frames.csv is no table of d3s"):
        estimate_files(frames(tmp_path / "in", 2), NPZ, tmp_path / "out")


def test_bad_frames_are_named_and_all_others_are_done(tmp_path, monkeypatch):
    monkeypatch.setattr(depth_files, "make_frame", poison_frames.make_frame)
    frames(tmp_path / "in", 6)
    for name in ("leaves", "cut"):
        write_views(tmp_path / f"in/{name}_left.png", tmp_path / f"in/{name}_right.png")
    cut = tmp_path / "in/cut_left.png"
    cut.write_bytes(cut.read_bytes()[:300])
    given = find_inputs([tmp_path / "in"]).frames
    refused = []
    batch = estimate_files(
        given,
        NPZ,
        tmp_path / "out",
        workers=2,
        on_refused=refused.append,
    )
    assert [one.name for one in batch.done] == [f"{i:03}" for i in range(6)]
    reasons = {Path(one.name).name: one.reason for one in batch.refused}
    assert sorted(refused) == sorted(batch.refused)
    assert reasons.pop("cut_left.png").startswith(str(cut))
    assert reasons == {
        "leaves_left.png": "its worker process died, 3 times, as when memory runs out."
    }
    told = {one["frame"]: one["outcome"] for one in rows(tmp_path / "out")}
    assert told["leaves"] == "refused"
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {f"{i:03}_depth.npz" for i in range(6)} | TOLD


def test_array_of_all_frames_grows_and_is_read_by_others(tmp_path):
    xarray = pytest.importorskip("xarray")
    given, out = frames(tmp_path / "in", 3), tmp_path / "out"
    job = replace(NPZ, formats=("npz", "zarr"))
    estimate_files(given[:2], job, out)
    store = DepthStore(out / "depth.zarr")
    assert store.places() == {"000": 0, "001": 1}
    (out / "depth.zarr/depth_m/c.1.0.0123.partial").touch()  # of a killed writer
    (out / "depth.zarr/done/c.1").unlink()
    batch = estimate_files(given, job, out, skip_done=True)
    assert batch.skipped == ("000",)
    assert store.finished() == {0, 1, 2}
    assert not list(out.rglob("*.partial"))
    data = xarray.open_zarr(out / "depth.zarr", consolidated=False)
    assert data.depth_m.dims == ("frame", "row", "col")
    assert data.attrs["rig"]["name"] == RIG.name
    assert data.done.values.tolist() == [1, 1, 1]
    for place, frame in enumerate(given):
        found = DepthMap.load(out / f"{frame.name}_depth.npz")
        for name in ("depth_m", "sigma_m", "confidence", "flags", "intensity"):
            np.testing.assert_array_equal(data[name][place].values, getattr(found, name))
    dask_array = pytest.importorskip("dask.array")
    depth_m = dask_array.from_zarr(out / "depth.zarr", component="depth_m")
    assert depth_m.chunks[0] == (1, 1, 1)


def test_frames_of_another_size_do_not_go_into_the_array(tmp_path):
    given = frames(tmp_path / "in", 2)
    write_views(given[1].left, given[1].right, seed=1)
    for path, view in zip(given[1].files, views(1), strict=True):
        write_image(path, view[:-8], overwrite=True)
    batch = estimate_files(given, replace(NPZ, formats=("zarr",)), tmp_path / "out")
    assert [one.name for one in batch.done] == ["000"]
    assert "Put frames of another size into another folder" in batch.refused[0].reason
    with pytest.raises(OutputError, match="is no array of d3s"):
        DepthStore(tmp_path / "in").remove()


def zarr_pairs(path: Path, pairs) -> None:
    """Write the views of files as two arrays."""
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(path, mode="w")
    for number, name in enumerate(("left", "right")):
        levels = np.stack([np.rint(65535 * read_image(one.files[number])) for one in pairs])
        chunks = (1, *levels.shape[1:])
        group.create_array(name, shape=levels.shape, chunks=chunks, dtype="u2")[:] = levels


def test_frames_of_arrays_and_of_several_folders(tmp_path):
    of_files = frames(tmp_path / "a", 2)
    zarr_pairs(tmp_path / "night.zarr", of_files)
    given = find_inputs([tmp_path / "night.zarr"]).frames
    assert [one.name for one in given] == ["000000", "000001"]
    estimate_files(given, NPZ, tmp_path / "arrays", workers=2)
    estimate_files(of_files, NPZ, tmp_path / "files")
    for i in range(2):
        same = tmp_path / f"arrays/{i:06}_depth.npz", tmp_path / f"files/{i:03}_depth.npz"
        assert same[0].read_bytes() == same[1].read_bytes()
    for name in ("b", "c"):
        frames(tmp_path / name, 1)
    folders = [tmp_path / name for name in "abc"]
    found = find_inputs([*folders, tmp_path / "night.zarr"])
    names = ["a_000", "a_001", "b_000", "c_000", "night_000000", "night_000001"]
    assert [one.name for one in found.frames] == names
    by_glob = find_inputs([f"{tmp_path}/[abc]"])
    assert [one.name for one in by_glob.frames] == names[:4]
    with pytest.raises(InputError, match=r"x\*\.png: no file has such a name"):
        find_inputs([tmp_path / "x*.png"])
    with pytest.raises(InputError, match=r"no\.mcap: there is no such file\. Check the name\.$"):
        find_inputs([tmp_path / "no.mcap"])


def test_recordings_are_done_in_any_number(tmp_path):
    pytest.importorskip("mcap")
    from d3s.camera.recording import RecordingWriter
    from d3s.frames import Frame

    for name, seeds in (("first", (0, 1)), ("second", (2,))):
        with RecordingWriter(tmp_path / f"{name}.mcap", rig=RIG) as writer:
            for number, seed in enumerate(seeds):
                writer.write(Frame(number=number, time_s=float(number), views=views(seed)))
    found = find_inputs([tmp_path / "first.mcap", tmp_path / "second.mcap"])
    names = ["first_000000", "first_000001", "second_000000"]
    assert [one.name for one in found.frames] == names
    batch = estimate_files(found.frames, NPZ, tmp_path / "out", workers=2)
    assert [one.name for one in batch.done] == names
    estimate_files(found.frames, NPZ, tmp_path / "here")
    assert contents(tmp_path / "here") == contents(tmp_path / "out")
    (tmp_path / "first.mcap").write_bytes(b"no recording")
    found = find_inputs([tmp_path / "first.mcap", tmp_path / "second.mcap"])
    assert len(found.frames) == 1
    assert "first.mcap" in found.refused[0].name


def test_frames_of_a_video(tmp_path):
    import cv2

    path, sides = tmp_path / "night.avi", [np.hstack(views(i)) for i in range(4)]
    rows, cols = sides[0].shape
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"FFV1"), 10, (cols, rows), False)
    for image in sides:
        writer.write(np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8))
    writer.release()
    found = find_inputs([path], one_file_each=True, side_by_side=True)
    assert [one.name for one in found.frames] == [f"{i:06}" for i in range(4)]
    job = replace(NPZ, side_by_side=True)
    batch = estimate_files(found.frames, job, tmp_path / "out", workers=2)
    assert [one.density > 0.3 for one in batch.done] == [True] * 4
    backwards = estimate_files(found.frames[::-1], job, tmp_path / "back")
    assert len(backwards.done) == 4
    assert contents(tmp_path / "out") == contents(tmp_path / "back")
    beyond = [found.frames[0]._replace(name="later", place=9), found.frames[0]]
    batch = estimate_files(beyond, job, tmp_path / "beyond")
    assert "ends before frame 9" in batch.refused[0].reason
    assert len(batch.done) == 1


def test_cameras_are_calibrated_in_any_number(tmp_path):
    """With frames that show nothing: what is refused is named by its folder."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    folders = [tmp_path / "one", tmp_path / "two"]
    found = calibrate_folders(folders, tmp_path / "rigs", workers=2)
    assert [Path(one.name).name for one in found.refused] == ["one", "two"]
    assert "distances.csv" in found.refused[0].reason
    (tmp_path / "other").mkdir()
    with pytest.raises(InputError, match="have one name"):
        calibrate_folders([tmp_path / "one", tmp_path / "other/../one"], tmp_path / "rigs")
    (tmp_path / "rigs/one.html").touch()
    with pytest.raises(OutputError, match=r"one.html exists.*--force"):
        calibrate_folders(folders, tmp_path / "rigs")
    again = calibrate_folders(folders, tmp_path / "rigs", skip_done=True, workers=1)
    assert again.skipped == ("one",)
    assert len(again.refused) == 1


def test_arrays_that_hold_no_frames_are_told(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.open_group(tmp_path / "empty.zarr", mode="w")
    with pytest.raises(InputError, match="has no array left, but nothing"):
        find_inputs([tmp_path / "empty.zarr"])
    zarr.open_array(tmp_path / "flat.zarr", mode="w", shape=(3, 4), dtype="u1")
    with pytest.raises(InputError, match="has an array of shape"):
        find_inputs([tmp_path / "flat.zarr"])
