"""Files that are written whole or not at all; `tests/rig/test_file.py` has it for rig files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from d3s import atomic
from d3s.errors import OutputError


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


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="is a file, and a folder is needed"):
        atomic.make_folder(tmp_path / "file")
    with pytest.raises(OutputError, match="Part of the path is a file"):
        atomic.make_folder(tmp_path / "file/below")
    with pytest.raises(OutputError, match="embedded null"):
        atomic.make_folder(Path("a\0b"))


KILLED_AT = """
import os, signal, sys
from d3s import atomic
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, sys.argv[2], die)
atomic.write_text(sys.argv[1], "half")
"""


def kill_at(step: str, path: Path) -> None:
    """Write a file in a process that is killed when it comes to a step."""
    subprocess.run([sys.executable, "-c", KILLED_AT, str(path), step], check=False, timeout=60)


@pytest.fixture
def forgetful():
    """As if this process had looked into no folder before."""
    atomic._clear_leftovers.cache_clear()


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("step", ["fsync", "link"])
def test_what_a_killed_process_left_goes_with_the_next_write(tmp_path, step):
    kill_at(step, tmp_path / "a.txt")
    assert [path.suffix for path in tmp_path.iterdir()] == [".tmp"]
    atomic.write_text(tmp_path / "b.txt", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["b.txt"]


def test_what_somebody_is_writing_is_not_cleared_away(tmp_path, monkeypatch):
    sync = os.fsync

    def slow_sync(descriptor: int) -> None:
        atomic._clear_leftovers.cache_clear()
        atomic.make_folder(tmp_path)
        assert len(list(tmp_path.iterdir())) == 1
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", slow_sync)
    atomic.write_text(tmp_path / "a.txt", "mine")
    assert (tmp_path / "a.txt").read_text() == "mine"


@pytest.mark.usefixtures("forgetful")
def test_nothing_of_the_users_is_cleared_away(tmp_path):
    kept = (".d3s-notes.tmp", "x.d3s-0123456789abcdef.tmp", ".d3s-0123456789ABCDEF.tmp")
    for name in kept:
        (tmp_path / name).touch()
    (tmp_path / ".d3s-0123456789abcdef.tmp").mkdir()
    (tmp_path / ".d3s-aaaaaaaaaaaaaaaa.tmp").symlink_to("x")
    os.mkfifo(tmp_path / ".d3s-bbbbbbbbbbbbbbbb.tmp")
    atomic.make_folder(tmp_path)
    assert len(list(tmp_path.iterdir())) == len(kept) + 3


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("platform", ["no locks here", "Windows"])
def test_without_locks_files_are_written_and_none_is_cleared_away(tmp_path, monkeypatch, platform):
    def no_locks(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    if platform == "Windows":
        monkeypatch.setattr(atomic, "fcntl", None)
    else:
        monkeypatch.setattr(atomic.fcntl, "flock", no_locks)
    (tmp_path / ".d3s-0123456789abcdef.tmp").touch()
    atomic.write_text(tmp_path / "a.txt", "mine")
    assert (tmp_path / "a.txt").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 2
