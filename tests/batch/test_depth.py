"""Depth maps of files: all that can be done is done."""

import errno
import os
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from d3s import DepthMap, atomic
from d3s.batch import DepthJob, estimate_files
from d3s.cli import app
from d3s.errors import OutputError
from d3s.files import read_depth, write_image
from d3s.frames import FrameFiles, find_frames
from pairs import DEPTH_M, RIG, views, write_views

QUICK = DepthJob(rig=RIG, method="bm", formats=("npz",))


def frames(folder: Path, count: int) -> tuple[FrameFiles, ...]:
    folder.mkdir(exist_ok=True)
    for i in range(count):
        write_views(folder / f"{i:03}_left.png", folder / f"{i:03}_right.png", seed=i)
    return find_frames([folder]).frames


def test_depth_and_figures_of_a_pair(tmp_path):
    job = DepthJob(rig=RIG, formats=("npz", "png", "ply", "preview"))
    batch = estimate_files(frames(tmp_path / "in", 1), job, tmp_path / "out")
    (done,) = batch.done
    assert not batch.refused
    assert done.density > 0.5
    assert done.nearest_m == pytest.approx(DEPTH_M, abs=0.1)
    assert done.farthest_m == pytest.approx(DEPTH_M, abs=0.1)
    assert 0 < done.median_sigma_m < 0.05
    assert done.time_s > 0
    names = ["000_depth.camera.json", "000_depth.npz", "000_depth.ply", "000_depth.png"]
    assert sorted(path.name for path in done.files) == [*names, "000_preview.png"]
    assert all(path.is_file() for path in done.files)
    found = DepthMap.load(tmp_path / "out/000_depth.npz")
    assert found.density == done.density
    assert np.nanmedian(found.depth_m) == pytest.approx(DEPTH_M, abs=0.05)


def test_swapped_views_are_named(tmp_path):
    left, right = tmp_path / "a.png", tmp_path / "b.png"
    write_views(right, left)
    batch = estimate_files([FrameFiles("a", left, right)], DepthJob(rig=RIG), tmp_path / "out")
    assert not batch.done
    assert "left and right seem to be swapped" in batch.refused[0].reason
    assert "other order" in batch.refused[0].reason
    assert not (tmp_path / "out").exists()


def messy(folder: Path, good: int, bad: int) -> list[str]:
    """A folder of good pairs, and each kind of bad one so often; names of the bad left views."""
    frames(folder, good)
    names = []
    for i in range(bad):
        (folder / f"empty {i}_left.png").touch()
        write_views(folder / "t_left.png", folder / f"empty {i}_right.png")
        whole = (folder / "t_left.png").read_bytes()
        (folder / f"cut{i}_left.png").write_bytes(whole[: len(whole) // 2])
        write_image(folder / f"cut{i}_right.png", views()[1])
        (folder / f"loop{i}_left.png").symlink_to(f"loop{i}_right.png")
        (folder / f"loop{i}_right.png").symlink_to(f"loop{i}_left.png")
        (folder / f"folder{i}_left.png").mkdir()
        write_image(folder / f"folder{i}_right.png", views()[1])
        (folder / f"text{i}_left.png").write_text("not an image")
        (folder / f"text{i}_right.png").write_text("not an image")
        write_image(folder / f"small{i}_left.png", views()[0][:30])
        write_image(folder / f"small{i}_right.png", views()[1])
        os.mkfifo(folder / f"pipe{i}_left.png")
        write_image(folder / f"pipe{i}_right.png", views()[1])
        (folder / "t_left.png").rename(folder / f"alone{i}_left.png")
        kinds = (f"empty {i}", f"cut{i}", f"loop{i}", f"folder{i}", f"text{i}", f"small{i}")
        names += [f"{kind}_left.png" for kind in (*kinds, f"pipe{i}", f"alone{i}")]
    write_views(folder / "odd [red]\n$é_left.png", folder / "odd [red]\n$é_right.png")
    (folder / "recipe.toml").touch()
    (folder / "sub").mkdir()
    (folder / "sub" / "up").symlink_to("..")
    return names


@pytest.mark.parametrize(("good", "bad"), [(12, 5), pytest.param(120, 48, marks=pytest.mark.slow)])
def test_a_messy_folder_has_all_good_pairs_done_and_all_others_named(tmp_path, good, bad):
    """The second has a thousand entries."""
    folder = tmp_path / "in"
    expected = messy(folder, good, bad)
    found = find_frames([folder])
    batch = estimate_files(found.frames, QUICK, tmp_path / "out")
    done = {one.name for one in batch.done}
    assert done == {*(f"{i:03}" for i in range(good)), "odd [red]\n$é"}
    assert all(one.density > 0.3 for one in batch.done)
    assert len(list((tmp_path / "out").glob("*.npz"))) == good + 1
    refused = [Path(one.name).name for one in (*found.refused, *batch.refused)]
    assert sorted(refused) == sorted(expected)
    assert {path.name for path in found.ignored} == {"recipe.toml", "sub"}


def test_earlier_results_are_not_replaced_unless_told(tmp_path):
    given = frames(tmp_path / "in", 2)
    estimate_files(given, QUICK, tmp_path / "out")
    before = (tmp_path / "out/001_depth.npz").read_bytes()
    (tmp_path / "out/000_depth.npz").unlink()
    with pytest.raises(OutputError, match=r"001_depth.npz exists\. .*--force"):
        estimate_files(given, QUICK, tmp_path / "out")
    assert not (tmp_path / "out/000_depth.npz").exists()
    batch = estimate_files(given, QUICK, tmp_path / "out", skip_done=True)
    assert [one.name for one in batch.done] == ["000"]
    assert batch.skipped == ("001",)
    assert (tmp_path / "out/001_depth.npz").read_bytes() == before
    assert len(estimate_files(given, QUICK, tmp_path / "out", overwrite=True).done) == 2


def test_an_input_is_never_replaced(tmp_path):
    write_views(tmp_path / "depth.png", tmp_path / "other.png")
    frame = FrameFiles("", tmp_path / "depth.png", tmp_path / "other.png")
    job = DepthJob(rig=RIG, method="bm", formats=("png",))
    with pytest.raises(OutputError, match=r"depth.png is one of the inputs"):
        estimate_files([frame], job, tmp_path, overwrite=True)


def test_a_full_disk_leaves_what_is_finished_and_goes_on_later(tmp_path, monkeypatch):
    given = frames(tmp_path / "in", 3)
    job = DepthJob(rig=RIG, method="bm", formats=("pfm", "npz"))
    written = []
    real = atomic._move

    def fill_up(temporary: Path, target: Path, overwrite: bool) -> None:
        written.append(target)
        if target.name == "001_depth.npz":
            raise OSError(errno.ENOSPC, "No space left on device")
        real(temporary, target, overwrite)

    monkeypatch.setattr(atomic, "_move", fill_up)
    words = r"001_depth.npz cannot be written: No space.*Free some space.*1 frames before.*goes on"
    with pytest.raises(OutputError, match=words):
        estimate_files(given, job, tmp_path / "out")
    assert DepthMap.load(tmp_path / "out/000_depth.npz").density > 0
    assert not (tmp_path / "out/001_depth.pfm").exists()
    assert "002_depth.pfm" not in [path.name for path in written]
    monkeypatch.undo()
    batch = estimate_files(given, job, tmp_path / "out", skip_done=True)
    assert batch.skipped == ("000",)
    assert [one.name for one in batch.done] == ["001", "002"]


def test_no_thread_goes_on_after_an_error(tmp_path, monkeypatch):
    given = frames(tmp_path / "in", 3)
    estimate_files(given, QUICK, tmp_path / "first")  # starts the threads that stay
    before = set(threading.enumerate())

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic, "_move", full)
    with pytest.raises(OutputError) as held:  # its traceback has all that ran
        estimate_files(given, QUICK, tmp_path / "out")
    assert set(threading.enumerate()) <= before
    assert held.value is not None


def test_a_name_that_becomes_too_long_does_not_stop_the_others(tmp_path):
    folder = tmp_path / "in"
    given = frames(folder, 1)
    long = "x" * 246
    write_views(folder / f"{long}_left.png", folder / "short.png")
    frame = FrameFiles(long, folder / f"{long}_left.png", folder / "short.png")
    batch = estimate_files([frame, *given], QUICK, tmp_path / "out")
    assert [one.name for one in batch.done] == ["000"]
    assert "too long" in batch.refused[0].reason


def far(monkeypatch, farthest_m: float, nearest_m: float = DEPTH_M) -> None:
    """Let the estimate find one depth far away, and one nearby."""
    real = DepthJob.estimate

    def estimate(self: DepthJob, *views: object) -> DepthMap:
        found = real(self, *views)
        depth_m = found.depth_m.copy()
        first, second = np.argwhere(found.valid)[:2]
        depth_m[tuple(first)], depth_m[tuple(second)] = farthest_m, nearest_m
        return replace(found, depth_m=depth_m)

    monkeypatch.setattr(DepthJob, "estimate", estimate)


def test_a_depth_beyond_the_png_chooses_a_coarser_unit_and_says_so(tmp_path, monkeypatch):
    far(monkeypatch, 70.0)
    job = DepthJob(rig=RIG, method="bm")
    batch = estimate_files(frames(tmp_path / "in", 1), job, tmp_path / "out")
    (done,) = batch.done
    assert not batch.incomplete
    assert done.png_unit_m == 0.002
    (remark,) = done.remarks
    assert "000_depth.png has units of 2 mm" in remark
    names = ["000_depth.camera.json", "000_depth.npz", "000_depth.png", "000_preview.png"]
    assert sorted(path.name for path in done.files) == names
    found = read_depth(tmp_path / "out/000_depth.png")
    assert np.nanmax(found.depth_m) == 70.0


@pytest.mark.parametrize(("farthest_m", "unit_m"), [(70.0, 0.001), (1e5, 0.05), (7e4, None)])
def test_no_limit_of_a_format_keeps_another_from_being_written(
    tmp_path, monkeypatch, farthest_m, unit_m
):
    far(monkeypatch, farthest_m)
    job = DepthJob(rig=RIG, method="bm", formats=("png", "npz", "tiff", "preview"), unit_m=unit_m)
    given = frames(tmp_path / "in", 2)
    batch = estimate_files(given, job, tmp_path / "out")
    assert not batch.refused
    assert batch.incomplete == batch.done
    for one in batch.done:
        (file,) = one.left_out
        assert file == f"{one.name}_depth.png"
        assert "does not fit into 16 bit" in one.left_out[file]
        assert one.png_unit_m is None
        endings = ["depth.npz", "depth.tiff", "preview.png"]
        assert sorted(path.name for path in one.files) == [f"{one.name}_{end}" for end in endings]
        assert np.nanmax(DepthMap.load(tmp_path / f"out/{one.name}_depth.npz").depth_m) > 60


def test_an_earlier_png_does_not_stay_beside_new_results(tmp_path, monkeypatch):
    given = frames(tmp_path / "in", 1)
    job = DepthJob(rig=RIG, method="bm", unit_m=0.001)
    estimate_files(given, job, tmp_path / "out")
    assert (tmp_path / "out/000_depth.png").exists()
    far(monkeypatch, 70.0)
    (done,) = estimate_files(given, job, tmp_path / "out", overwrite=True).done
    assert done.left_out
    assert not (tmp_path / "out/000_depth.png").exists()


def test_point_cloud_has_the_colours_of_the_input(tmp_path):
    tint = np.array([1.0, 0.7, 0.4])
    for name, view in zip(("left", "right"), views(), strict=True):
        picture = np.rint(255 * np.clip(view[:, :, np.newaxis], 0, 1) ** (1 / 2.2) * tint)
        Image.fromarray(picture.astype(np.uint8)).save(tmp_path / f"{name}.png")
    given = find_frames([tmp_path / "left.png", tmp_path / "right.png"]).frames
    (done,) = estimate_files(given, DepthJob(rig=RIG, formats=("npz",)), tmp_path / "out").done
    words = ["convert", str(done.files[0]), str(tmp_path / "points.ply")]
    assert CliRunner().invoke(app, words).exit_code == 0
    points = read_depth(tmp_path / "points.ply")
    assert points.colour is not None
    red, green, blue = points.colour.mean(axis=0)
    assert red > green > blue > 0
    assert done.remarks
