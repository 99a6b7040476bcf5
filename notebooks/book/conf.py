"""Sphinx configuration of the book, built by ``make docs``.

``PATCHDYN_REPORT`` names a folder written by `patchdyn reproduce`; the chapters then include its
results. ``PATCHDYN_NOTEBOOKS=off`` does not run the notebooks.
"""

import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from chapters import write_chapters

project = "patchdyn"
author = "The patchdyn authors"
version = release = version_of("patchdyn")
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "mathml",
]
html_math_renderer = "mathml"
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
nb_execution_mode = os.environ.get("PATCHDYN_NOTEBOOKS", "cache")
nb_execution_timeout = 900
nb_execution_raise_on_error = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # no scripts: sliders need a running kernel
numpydoc_show_class_members = False
autosummary_generate = True
autodoc_typehints = "none"  # docstrings contain shapes and units
html_theme = "alabaster"
html_theme_options = {"description": "Learning dynamics of attention, made executable"}
html_static_path = ["static"]
html_css_files = ["book.css"]
doctest_global_setup = "import numpy as np"

write_chapters(HERE, os.environ.get("PATCHDYN_REPORT"))
