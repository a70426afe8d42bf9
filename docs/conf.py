"""The documentation: guides in Markdown, the reference from docstrings; scripts/docs builds it."""

import triosim

project = "TrioSim dashboard"
author = "its authors"
copyright = "MIT licence"
version = release = triosim.__version__

extensions = ["sphinx.ext.autodoc", "myst_parser"]
exclude_patterns = ["_build"]

# A name in backticks is code, and a link where the reference has it.
default_role = "py:obj"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # signatures with every type are hard to read; docstrings say shapes
myst_heading_anchors = 3  # links to parts of a page are checked

highlight_language = "none"  # what docstrings indent is seldom Python

html_theme = "furo"
html_title = "TrioSim dashboard"
html_show_copyright = False
html_copy_source = False
