"""Saving a rig: completely or not at all, and without replacing other files unasked."""

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from d3s.atomic import write_text
from d3s.errors import OutputError
from d3s.rig import Rig


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("exists", [True, False])
def test_failure_leaves_what_was_there(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    error: BaseException,
    exists: bool,
) -> None:
    def fail(*_: Any) -> None:
        raise error

    if exists:
        path.write_text("old")
    monkeypatch.setattr(os, step, fail)
    expected = OutputError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        Rig.paper_prototype().save(path, overwrite=True)
    assert list(path.parent.iterdir()) == ([path] if exists else [])
    assert not exists or path.read_text() == "old"
    if expected is OutputError:
        assert str(caught.value) == (
            f"{path} cannot be written: No space left. Free some space on the disk."
        )


def test_save_where_there_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"a/rig\.toml cannot be .*Make its folder first"):
        Rig.paper_prototype().save(tmp_path / "a/rig.toml")


def test_save_to_a_read_only_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if hasattr(os, "geteuid") and os.geteuid() != 0:
        path.parent.chmod(0o555)
    else:  # nothing is read-only to root
        opened = Path.open

        def refuse(self: Path, mode: str = "r", *args: Any) -> Any:
            if "x" in mode:
                raise PermissionError(errno.EACCES, "Permission denied", str(self))
            return opened(self, mode, *args)

        monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(OutputError, match=r"cannot be written: .* Choose a folder you may"):
        Rig.paper_prototype().save(path)
    path.parent.chmod(0o755)
    assert list(path.parent.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_mode_and_links_stay(path: Path) -> None:
    path.write_text("old")
    path.chmod(0o640)
    link = path.with_name("link.toml")
    link.symlink_to(path)
    write_text(link, "new", overwrite=True)
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
