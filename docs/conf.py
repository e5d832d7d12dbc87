"""Sphinx settings; `make docs` builds with warnings as errors.

Formulas become MathML while building, by the converter that docutils brings along: the pages need
no script from anywhere and read the same without a network.
"""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

import d3s

project = "D3S"
author = "The D3S developers"
copyright = "2026, the D3S developers"
version = release = d3s.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
napoleon_google_docstring = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # ArrayLike would fill five lines each time
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


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
