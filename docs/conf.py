# ruff: noqa: INP001 - Sphinx reads it, nobody imports it
"""How Sphinx makes the site of these pages: `make docs`. What it warns of is an error."""

from perftrack import __version__

project = "perftrack"
author = "The perftrack developers"
copyright = author  # noqa: A001 - Sphinx calls it so
version = release = __version__

extensions = ["myst_parser", "sphinx_click"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"perftrack {__version__}"
html_copy_source = False
html_show_sphinx = False

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
# transcripts have words that no lexer of a console knows
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure"]
