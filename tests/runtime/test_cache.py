"""Folders of compiled loops: written, read only, temporary, or none."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import d3s
from d3s.runtime import cache
from d3s.runtime.cache import Keeping

PACKAGE = Path(d3s.__file__).parent
SOURCE = PACKAGE / "estimate" / "intensity.py"
PLACE = Path(f"d3s-numba-{numba.__version__}", "estimate")


@pytest.fixture
def writable(monkeypatch, tmp_path):
    """Folders that can be written are those below a folder of this fixture."""
    allowed: list[Path] = []
    real = cache._is_writable

    def is_writable(folder: Path) -> bool:
        return any(one in (folder, *folder.parents) for one in allowed) and real(folder)

    monkeypatch.setattr(cache, "_is_writable", is_writable)
    monkeypatch.setattr(cache, "_private_folder", lambda: tmp_path / "private")
    monkeypatch.setattr(cache, "_has_loops", lambda folder: False)
    cache._folders.cache_clear()
    yield allowed
    cache._folders.cache_clear()


def test_beside_the_source_if_that_can_be_written(writable):
    writable.append(PACKAGE)
    found = cache._folders(SOURCE.parent, "")
    assert found == (SOURCE.parent / "__pycache__", (), Keeping.KEPT)


def test_home_of_the_user_if_the_installation_is_read_only(writable, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    writable.append(tmp_path)
    found = cache._folders(SOURCE.parent, "")
    assert found == (tmp_path / "home" / "d3s" / PLACE, (), Keeping.KEPT)


def test_temporary_folder_if_there_is_no_home(writable, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/nowhere")
    writable.append(tmp_path)
    found = cache._folders(SOURCE.parent, "")
    assert found == (tmp_path / "private" / PLACE, (), Keeping.TEMPORARY)


def test_loops_that_were_shipped_are_read(writable, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/nowhere")
    assert cache._folders(SOURCE.parent, "").keeping == Keeping.NOWHERE
    cache._folders.cache_clear()
    beside = SOURCE.parent / "__pycache__"
    monkeypatch.setattr(cache, "_has_loops", lambda folder: folder == beside)
    assert cache._folders(SOURCE.parent, "") == (None, (beside,), Keeping.SHIPPED)


def test_private_folder_is_our_own(tmp_path, monkeypatch):
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = cache._private_folder.__wrapped__()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)  # somebody else could put code there
    assert cache._private_folder.__wrapped__() is None
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    assert cache._private_folder.__wrapped__() is None


CALL = """
from pathlib import Path
from d3s.runtime import cache
if {read_only}:
    cache._is_writable = lambda folder: False
    cache._private_folder = lambda: None
from d3s.estimate.intensity import mask_outside
import numpy as np
view, out = np.zeros((2, 2, 2), np.float32)
mask_outside(0, 2, view, np.float32(-1), np.float32(1), out)
stats = mask_outside.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), stats.cache_path)
"""


def _started(folder: Path, read_only: bool) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", CALL.format(read_only=read_only)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _told(process: "subprocess.Popen[str]") -> tuple[int, int, str]:
    output, errors = process.communicate()
    assert not process.returncode, errors
    hits, misses, path = output.split()
    return int(hits), int(misses), path


def _call(folder: Path, read_only: bool) -> tuple[int, int, str]:
    return _told(_started(folder, read_only))


def test_folder_is_filled_once_and_then_serves_a_place_that_cannot_be_written(tmp_path):
    assert _call(tmp_path, False) == (0, 1, str(tmp_path / PLACE))
    assert _call(tmp_path, True) == (1, 0, str(tmp_path / PLACE))
    moved = tmp_path / "moved"
    (tmp_path / PLACE.parts[0]).rename(tmp_path / "taken")
    moved.mkdir()
    (tmp_path / "taken").rename(moved / PLACE.parts[0])
    assert _call(moved, True)[:2] == (1, 0)


def test_without_any_folder_loops_are_compiled_and_forgotten(tmp_path):
    empty = tmp_path / "empty"
    code = CALL.format(read_only=True).replace(
        "from d3s.estimate", "cache._has_loops = lambda folder: False\nfrom d3s.estimate", 1
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_CACHE_DIR": str(empty)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["0", "1", "None"] or done.stdout.split()[:2] == ["0", "0"]
    assert "in every run" in done.stderr
    assert not empty.exists()


def test_processes_that_start_together_compile_once(tmp_path):
    together = [_started(tmp_path, False) for _ in range(3)]
    told = [_told(one)[:2] for one in together]
    assert sorted(told) == [(0, 1), (1, 0), (1, 0)]


def test_lock_is_not_waited_for_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "_LONGEST_S", 0.1)
    first, second = (cache._Lock(tmp_path, test_private_folder_is_our_own) for _ in range(2))
    first.take()
    second.take()
    for one in (first, second):
        one.release()
    cache._Lock(tmp_path / "nowhere", test_private_folder_is_our_own).take()  # cannot be locked
