"""The digest of the package: another one after any edit of a source file."""

import shutil
from pathlib import Path

import pytest

import d3s
from d3s.runtime.digest import _digest, package_digest

SOURCE = Path(d3s.__file__).parent


@pytest.mark.parametrize("edited", ["estimate/joint/plan.py", "lab/evaluate/tuned_rig.toml"])
def test_any_edit_in_any_package_changes_it(tmp_path, edited):
    copy = tmp_path / "d3s"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = _digest(copy)
    assert before == package_digest()
    (copy / edited).write_text((copy / edited).read_text() + "\n")
    after = _digest(copy)
    assert after != before
    (copy / edited).rename(copy / f"other{Path(edited).suffix}")
    assert _digest(copy) != after


def test_other_files_do_not_count(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    before = _digest(tmp_path)
    (tmp_path / "notes.txt").write_text("no source\n")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.py").write_text("no source\n")
    assert _digest(tmp_path) == before
