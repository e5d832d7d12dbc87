"""Metadata, changelog and citation; wheel and sdist in clean environments."""

import email
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
import zipfile

import pytest
import yaml

from d3s.version import __version__
from pages import ROOT

sys.path.insert(0, str(ROOT / "packaging"))

import metadata_hook

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
README = (ROOT / "README.md").read_text()
ADDRESS = "https://host.example/owner/d3s"


def test_links_of_the_readme_hold_on_an_index():
    text = metadata_hook.for_index(README, ADDRESS)
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert len(targets) > 20
    assert all(target.startswith("https://") for target in targets)
    assert "![Objects before a plain wall" in text
    assert f"({ADDRESS}/raw/main/docs/_static/plain_wall.png)" in text
    assert f"({ADDRESS}/blob/main/docs/first_depth.md)" in text


def test_without_an_address_no_link_is_broken():
    text = metadata_hook.for_index(README, "")
    assert not re.search(r"\]\((?!https?:)", text)


def test_all_extras_of_users_are_in_all():
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    named = set(re.fullmatch(r"d3s\[(.+)\]", everything)[1].split(","))
    # PyTorch is a gigabyte that most have no use for.
    assert named == set(extras) - {"all", "docs", "dev", "marigold"}


def test_changelog_begins_with_this_version():
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    form = r"\d+\.\d+\.\d+ \((unreleased|\d{4}-\d\d-\d\d)\)"
    assert all(re.fullmatch(form, heading) for heading in headings)
    assert headings[0].split()[0] == __version__
    assert sum("unreleased" in heading for heading in headings) <= 1


def test_citation_is_complete_and_of_this_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert cited["version"] == __version__
    assert cited["license"] == PROJECT["license"]
    (paper,) = cited["references"]
    assert paper["title"] in " ".join(README.split())
    for author in paper["authors"]:
        assert f"{author['given-names']} {author['family-names']}" in " ".join(README.split())


def _run(*command: object, **more: object) -> str:
    done = subprocess.run(
        [str(one) for one in command], capture_output=True, text=True, check=False, **more
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Wheel, made from the sdist, and the sdist."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.mark.slow
def test_wheel_has_the_package_its_licence_and_nothing_else(built):
    with zipfile.ZipFile(built[0]) as archive:
        names = archive.namelist()
        (name,) = (one for one in names if one.endswith("/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    assert {one.split("/")[0] for one in names} == {"d3s", f"d3s-{__version__}.dist-info"}
    sources = {one for one in names if one.startswith("d3s/")}
    expected = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "d3s").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sources == expected
    assert any(one.endswith("LICENSE") for one in names)
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "Programming Language :: Python :: 3.12" in metadata.get_all("Classifier")


def _without_rights() -> list[str]:
    """Begin of a command that cannot write what is read only, not even as root."""
    if os.getuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root may write everywhere, and setpriv is not there")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


@pytest.mark.slow
def test_installation_in_a_clean_environment(built, tmp_path_factory):
    """`d3s doctor` where neither site-packages nor the home can be written.

    The wheel is made of the sdist, so this tests both.
    """
    folder = tmp_path_factory.mktemp("clean")
    environment = folder / "venv"
    _run(sys.executable, "-m", "venv", environment)
    python = environment / "bin" / "python"
    _run(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", built[0])
    (package,) = (environment / "lib").glob("python*/site-packages/d3s")
    for path in (package, *package.rglob("*")):
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    scratch = folder / "scratch"
    scratch.mkdir()
    home = folder / "home"
    home.mkdir(mode=0o555)
    bare = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(scratch)}
    doctor = [*_without_rights(), environment / "bin" / "d3s", "doctor"]
    told = " ".join(_run(*doctor, env=bare, cwd=scratch).split())
    assert "passed" in told
    assert "among temporary files" in told
    again = subprocess.run(
        [*map(str, doctor), "--json"],
        env=bare,
        cwd=scratch,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "compiling" not in again.stderr  # the loops were kept
