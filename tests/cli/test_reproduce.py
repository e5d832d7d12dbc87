"""`d3s reproduce`, as a user runs it."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from d3s.cli import app
from d3s.lab.reproduce.item import Item, Result
from d3s.lab.reproduce.run import ITEMS


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")  # so that no sentence is wrapped


def run(*arguments):
    return CliRunner().invoke(app, ["reproduce", *arguments])


def refused(*arguments):
    result = run(*arguments)
    assert result.exit_code == 3
    assert result.stderr.startswith("d3s: ")
    assert "Traceback" not in result.output
    return result.stderr


def test_an_item_and_its_page_and_then_nothing_to_do():
    result = run("tables2", "--quick", "-o", "a [b]")
    assert result.exit_code == 0, result.output
    assert "[1/1] Fig. 6, Table S2: Working range against size" in result.stderr
    assert result.stdout == "systems          made\nPage: a [b]/index.html\n"
    page = Path("a [b]/index.html").read_text()
    for item in ITEMS:
        assert item.title in page
    for name in ("systems.png", "systems.pdf", "systems.csv"):
        assert Path("a [b]/systems", name).is_file()
    again = run("systems", "--quick", "-o", "a [b]")
    assert again.stdout.splitlines()[0] == "systems          kept from before"
    assert again.stderr == ""


def test_list_makes_nothing():
    result = run("--list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) == len([item for item in ITEMS if item.lens == "perfect"])
    assert any(line.startswith("zici             figs1    Fig. S1 ") for line in lines)
    assert any(line.startswith("accuracy         fig5     Fig. 5a, ") for line in lines)
    assert not Path("reproduction").exists()
    assert len(run("--list", "fig3b").stdout.splitlines()) == 1
    assert run("--list", "--lens", "typical").stdout.startswith("accuracy_typical fig5 ")


def test_an_item_that_is_not_known():
    words = refused("figure9")
    assert "'figure9': no such item" in words
    for item in ITEMS:
        assert (f"{item.name} ({item.reference})" in words) == (item.lens == "perfect")
    assert "There are accuracy_typical (" in refused("fig3b", "--lens", "typical")
    assert not Path("reproduction").exists()


def test_places_that_cannot_be_written():
    Path("file").write_text("mine")
    assert "file is a file" in refused("systems", "-o", "file")
    Path("full").mkdir()
    Path("full/thesis.tex").write_text("mine")
    assert "--force" in refused("systems", "-o", "full")
    if os.geteuid():  # root may write anywhere
        Path("shut").mkdir(mode=0o500)
        assert "shut" in refused("systems", "-o", "shut/x")
        assert "shut" in refused("systems", "-o", "shut")


def fakes(monkeypatch, *runs):
    """Items that cost nothing, in place of the registered ones."""
    items = tuple(
        Item(name=name, title=name, reference="Fig. 0", what="It.", needs="seconds", run=run)
        for name, run in runs
    )
    monkeypatch.setattr("d3s.lab.reproduce.run.find_items", lambda *_: items)


def test_an_item_that_fails_is_told_and_the_others_are_made(monkeypatch):
    def fail(context):
        raise KeyError("lost")

    fakes(monkeypatch, ("bad", fail), ("good", lambda context: Result()))
    result = run()
    assert result.exit_code == 4
    first, second, page = result.stdout.splitlines()
    assert first.startswith("bad              FAILED: KeyError: 'lost'")
    assert second == "good             made"
    assert page == "Page: reproduction/index.html"
