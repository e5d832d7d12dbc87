"""Sphinx settings; `make docs` builds with warnings as errors.

Formulas are converted to MathML by docutils, so that the pages need no script and no network. The
names of the API page are those of `d3s.__all__`, and the keys on the page of the rig file those of
the records.
"""

import inspect
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

import d3s

sys.path.insert(0, str(Path(__file__).parent))

from rig_fields import rig_fields

project = "D3S"
author = "The D3S developers"
copyright = "2026, the D3S developers"
version = release = d3s.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
extensions += ["sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
napoleon_google_docstring = False
autodoc_member_order = "bysource"
autodoc_default_options = {"exclude-members": "model_config"}
autosummary_generate = False  # the page itself has the text of every name
autodoc_typehints = "none"  # evaluated ones fill five lines; the text has shapes and units
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"D3S {version}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["wide.css"]


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(tex2mathml(node.astext(), as_block=True))
    raise nodes.SkipNode


def _home(name: str) -> tuple[str, str]:
    """Directive and full name of a public name; of a callable package, its function."""
    found = getattr(d3s, name)
    if inspect.ismodule(found):
        found = getattr(found, name)
    return "autoclass" if inspect.isclass(found) else "autofunction", f"{found.__module__}.{name}"


def _public_names() -> str:
    """Summary and text of every public name."""
    homes = [_home(name) for name in d3s.__all__ if name != "__version__"]
    lines = [".. autosummary::", "", *(f"   ~{name}" for _, name in homes), ""]
    for directive, name in homes:
        members = ["   :members:"] if directive == "autoclass" else []
        lines += [f".. {directive}:: {name}", *members, ""]
    return "\n".join(["```{eval-rst}", *lines, "```"])


def _fill_in(app: Sphinx, name: str, source: list[str]) -> None:
    if name == "rig":
        source[0] = source[0].replace("<!-- fields -->", rig_fields())
    if name == "api":
        source[0] = source[0].replace("<!-- public names -->", _public_names())


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("source-read", _fill_in)
