"""The book: built by ``make docs`` from these pages, the notebooks, the derivations and docstrings.

``PATCHDYN_REPORT`` names a folder of `patchdyn reproduce`: then the chapters show what it found.
``PATCHDYN_NOTEBOOKS=off`` leaves the notebooks as they are, without running them.
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
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # sliders need a kernel; nothing is loaded
numpydoc_show_class_members = False
autosummary_generate = True
autodoc_typehints = "none"  # docstrings tell shapes and units
html_theme = "alabaster"
html_theme_options = {"description": "Learning dynamics of attention, made executable"}
html_static_path = ["static"]
html_css_files = ["book.css"]
doctest_global_setup = "import numpy as np"

write_chapters(HERE, os.environ.get("PATCHDYN_REPORT"))
