"""Tutorials of the documentation: their code runs, and they become notebooks."""

import json
import sys

import pytest

from pages import DOCS

sys.path.insert(0, str(DOCS))

import tutorial_pages

PAGES = sorted((DOCS / "tutorials").glob("*.md"))
PAGE = """# Title

```python
a = 2
print("three")
a + 1
```

The end.
"""


def test_cells_and_outputs_of_a_page():
    cells = tutorial_pages.cells_of(PAGE)
    assert [one.is_code for one in cells] == [False, True, False]
    outputs = tutorial_pages.run(cells, "page.md")
    assert outputs[1] == ("three\n", {"text/plain": "3"})
    shown = tutorial_pages.as_page(cells, outputs, "page.ipynb")
    assert shown.index("a + 1") < shown.index("```text\nthree") < shown.index("```text\n3\n")
    assert 'href="page.ipynb"' in shown


def test_notebook_is_valid():
    cells = tutorial_pages.cells_of(PAGE)
    made = tutorial_pages.as_notebook(cells, tutorial_pages.run(cells, "page.md"))
    assert [one["cell_type"] for one in made["cells"]] == ["markdown", "code", "markdown"]
    stream, result = made["cells"][1]["outputs"]
    assert (stream["text"], result["data"]["text/plain"]) == ("three\n", "3")
    json.dumps(made, allow_nan=False)
    pytest.importorskip("nbformat").validate(made)


def test_an_error_in_a_page_is_an_error_of_the_build():
    cells = tutorial_pages.cells_of("```python\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError):
        tutorial_pages.run(cells, "page.md")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorial_runs_and_shows_depth(page):
    cells = tutorial_pages.cells_of(page.read_text())
    outputs = tutorial_pages.run(cells, page.name)
    shown = [one.data for one in outputs if one.data]
    assert any("text/html" in one for one in shown)
    assert all(
        one.stream or one.data or not cell.is_code or "save" in cell.text or "import" in cell.text
        for cell, one in zip(cells, outputs, strict=True)
    )


def test_index_links_to_every_tutorial():
    index = (DOCS / "index.md").read_text()
    assert len(PAGES) == 3
    for page in PAGES:
        assert f"tutorials/{page.name}" in index
        assert f"\ntutorials/{page.stem}\n" in index
