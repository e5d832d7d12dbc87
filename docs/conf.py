"""Sphinx settings; `make docs` builds with warnings as errors."""

import d3s

project = "D3S"
author = "The D3S developers"
copyright = "2026, the D3S developers"
version = release = d3s.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
napoleon_google_docstring = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"D3S {version}"
