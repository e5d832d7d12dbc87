"""Which files belong together, as people name them."""

from pathlib import Path

import pytest

from d3s.errors import InputError
from d3s.frames import find_frames


def made(folder: Path, *names: str) -> list[Path]:
    paths = [folder / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return paths


def told(found) -> list[tuple[str, str, str | None]]:
    return [(one.name, one.left.name, one.right and one.right.name) for one in found.frames]


@pytest.mark.parametrize(
    ("left", "right", "name"),
    [
        ("left.png", "right.png", ""),
        ("a_left.png", "a_right.png", "a"),
        ("left_003.png", "right_003.png", "003"),
        ("cam_Left_7.tif", "cam_Right_7.tif", "cam_7"),
        ("im0.png", "im1.png", "im0"),
        ("x/leftover.png", "y/bright.png", "leftover"),  # no words of their own
    ],
)
def test_two_files_are_a_pair(tmp_path, left, right, name):
    paths = made(tmp_path, left, right)
    (frame,) = find_frames(paths).frames
    assert frame[:3] == (name, *paths)


def test_the_right_view_first_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"a_right.png comes before .*other order"):
        find_frames(made(tmp_path, "a_right.png", "a_left.png"))
    made(tmp_path, "right/1.png", "left/1.png")
    with pytest.raises(InputError, match="the left view goes first"):
        find_frames([tmp_path / "right", tmp_path / "left"])


def test_a_list_of_the_shell_pairs_by_folder(tmp_path):
    paths = made(tmp_path, "left/1.png", "left/2.png", "right/1.png", "right/2.png")
    found = find_frames(paths)
    assert told(found) == [("1", "1.png", "1.png"), ("2", "2.png", "2.png")]
    assert not found.refused


@pytest.mark.parametrize(
    "names",
    [
        ("a/1.png", "a/2.png", "b/1.png", "b/3.png"),
        ("a/1.png", "a/2.png", "b/1.png"),
        ("a/1.png", "b/1.png", "a/2.png", "b/2.png"),
    ],
)
def test_files_that_do_not_pair_up_are_refused(tmp_path, names):
    with pytest.raises(InputError, match=rf"the {len(names)} files do not pair up"):
        find_frames(made(tmp_path, *names))


def test_a_folder_pairs_by_name_and_leaves_others_alone(tmp_path):
    made(
        tmp_path, "a_left.png", "a_right.png", "b_left.png", "truth.tiff", "note.txt", ".x_left.png"
    )
    found = find_frames([tmp_path])
    assert told(found) == [("a", "a_left.png", "a_right.png")]
    assert [Path(one.name).name for one in found.refused] == ["b_left.png"]
    assert [path.name for path in found.ignored] == ["note.txt", "truth.tiff"]


def test_two_views_of_one_name_are_not_guessed_between(tmp_path):
    made(tmp_path, "a_left.png", "a_left.tif", "a_right.png")
    found = find_frames([tmp_path])
    assert not found.frames
    assert len(found.refused) == 3
    assert all("several files" in one.reason for one in found.refused)


def test_two_folders_pair_by_name(tmp_path):
    made(tmp_path, "one/1.png", "two/1.png", "one/2.png")
    found = find_frames([tmp_path / "one", tmp_path / "two"])
    assert told(found) == [("1", "1.png", "1.png")]
    assert [Path(one.name).name for one in found.refused] == ["2.png"]


def test_a_folder_without_pairs_says_how_to_name_them(tmp_path):
    made(tmp_path, "1.png", "2.png")
    with pytest.raises(InputError, match=r"a_left.png and a_right.png; or say --raw"):
        find_frames([tmp_path])
    found = find_frames([tmp_path], one_file_each=True)
    assert told(found) == [("1", "1.png", None), ("2", "2.png", None)]


def test_results_of_one_name_are_made_once(tmp_path):
    found = find_frames(made(tmp_path, "a/1.png", "b/1.png"), one_file_each=True)
    assert len(found.frames) == 1
    assert "Rename one" in found.refused[0].reason


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ((), "there are no files"),
        (("rig.toml", "left.png", "right.png"), "is a rig file, by its name. Give it as --rig"),
        (("a.png", "folder/"), "is a folder, and 1 of the others are files"),
        (("a/", "b/", "c/"), "there are 3 folders, and at most two"),
    ],
)
def test_what_cannot_be_meant(tmp_path, names, words):
    paths = []
    for name in names:
        path = tmp_path / name
        path.mkdir() if name.endswith("/") else path.touch()
        paths.append(path)
    with pytest.raises(InputError, match=words):
        find_frames(paths)


def test_one_thing_given_twice_is_no_pair(tmp_path):
    (tmp_path / "a.png").touch()
    for path in (tmp_path / "a.png", tmp_path):
        with pytest.raises(InputError, match="is given twice, and a pair has two views"):
            find_frames([path, path])
