"""Files that are written whole or not at all; `tests/rig/test_file.py` has it for rig files."""

import os
from pathlib import Path

import pytest

from d3s import atomic
from d3s.errors import OutputError


def test_new_file_is_written_and_nothing_else_is_left(tmp_path):
    atomic.write_bytes(tmp_path / "a.bin", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]
    assert (tmp_path / "a.bin").read_bytes() == b"new"


def test_another_file_is_kept_by_default_and_replaced_on_demand(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(OutputError, match=r"exists and holds something else.*--force"):
        atomic.write_text(path, "new")
    assert path.read_text() == "old"
    atomic.write_text(path, "old")
    atomic.write_text(path, "new", overwrite=True)
    assert path.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_file_that_somebody_makes_meanwhile_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    sync = os.fsync

    def slow_sync(descriptor: int) -> None:
        path.write_text("theirs")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", slow_sync)
    with pytest.raises(OutputError, match="exists and holds something else"):
        atomic.write_text(path, "mine")
    assert path.read_text() == "theirs"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_file_system_without_links(tmp_path, monkeypatch):
    def no_links(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    atomic.write_text(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 1


def test_link_that_leads_to_itself_is_not_replaced(tmp_path):
    path = tmp_path / "loop"
    path.symlink_to(path)
    with pytest.raises(OutputError, match="no ordinary file"):
        atomic.write_text(path, "new")
    assert path.is_symlink()


def test_folder_is_made_with_those_around_it(tmp_path):
    atomic.make_folder(tmp_path / "a/b")
    atomic.make_folder(tmp_path / "a/b")
    assert (tmp_path / "a/b").is_dir()


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="is a file, and a folder is needed"):
        atomic.make_folder(tmp_path / "file")
    with pytest.raises(OutputError, match="Part of the path is a file"):
        atomic.make_folder(tmp_path / "file/below")
    with pytest.raises(OutputError, match="embedded null"):
        atomic.make_folder(Path("a\0b"))
