"""A static page that checks certificates in a browser: the checker in pure Python, and Pyodide."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

from simulations.files import write_bytes

#: Version of the package `pyodide` of npm, and its files that a page needs.
PYODIDE = "314.0.7"
PYODIDE_FILES = (
    "package.json",
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)
_PACKAGE = "simulations/positional/validated"
_SOURCES = ("balls", "lists", "model", "multisets", "series", "text")
SOURCES = (
    "simulations/outward.py",
    f"{_PACKAGE}/checker.py",
    *(f"{_PACKAGE}/checker_{name}.py" for name in _SOURCES),
)
ADVICE = f"unpack the package of 'npm pack pyodide@{PYODIDE}' and name its folder 'package'"


def write_page(folder: Path, pyodide: Path) -> None:
    """Write a page that checks certificates in a browser, without a network.

    Parameters
    ----------
    folder
        Folder of the page: ``index.html``, ``worker.mjs``, ``source/`` and ``pyodide/``.
    pyodide
        Folder with the files of the package `pyodide` of npm, version `PYODIDE`.

    Raises
    ------
    ValueError
        If files of Pyodide are missing, or of another version.
    FileError
        If a file cannot be written.
    """
    missing = [name for name in PYODIDE_FILES if not (pyodide / name).is_file()]
    if missing:
        raise ValueError(f"it does not contain {missing[0]}: {ADVICE}")
    version = json.loads((pyodide / "package.json").read_text(encoding="utf-8")).get("version")
    if version != PYODIDE:
        raise ValueError(f"it contains version {version}: {ADVICE}")
    templates = files("simulations.positional.validated").joinpath("templates")
    for name in ("index.html", "worker.mjs"):
        write_bytes(folder / name, templates.joinpath(name).read_bytes())
    for name in SOURCES:
        source = files("simulations").joinpath(name.removeprefix("simulations/"))
        write_bytes(folder / "source" / name, source.read_bytes())
    listed = "".join(f"{name}\n" for name in SOURCES)
    write_bytes(folder / "source" / "files.txt", listed.encode())
    for name in PYODIDE_FILES:
        write_bytes(folder / "pyodide" / name, (pyodide / name).read_bytes())
