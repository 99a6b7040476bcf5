"""Load a theory from its file."""

from __future__ import annotations

import hashlib
import runpy
from pathlib import Path
from typing import TYPE_CHECKING

from symbolic.theory.errors import SourceLine, TheoryError, short_repr
from symbolic.theory.formulas import parsed
from symbolic.theory.numbers import Constant
from symbolic.theory.theory import Theory
from symbolic.theory.values import check_defaults

if TYPE_CHECKING:
    from symbolic.overlaps import OverlapTheory


def load_theory(path: str | Path) -> Theory:
    """Execute a theory file and return the `Theory` that it defines as ``THEORY``.

    The file is executed as a Python program, so load only files that you trust. The public names of
    `symbolic.theory` are predefined in it.

    Parameters
    ----------
    path
        Path of the file.

    Returns
    -------
    Theory
        With the constants of the file and the SHA-256 digest of its content.

    Raises
    ------
    TheoryError
        If the file cannot be read or executed, or if its theory, defaults or formulas are not
        allowed; one sentence that begins with the line.
    """
    from symbolic.overlaps import OverlapTheory

    theory = load_statement(path)
    if isinstance(theory, OverlapTheory):
        raise TheoryError(
            f"{theory.name} is a theory in overlaps, of which this command has no version: use "
            "patchdyn.load_theory in Python, or `patchdyn run --theory FILE.py`",
            theory.location,
        )
    return theory


def load_statement(path: str | Path) -> Theory | OverlapTheory:
    """Execute a theory file and return its `Theory` or `symbolic.overlaps.OverlapTheory`.

    The public names of `symbolic.theory` and of `symbolic.overlaps` are predefined in it.

    Parameters
    ----------
    path
        Path of the file.

    Raises
    ------
    TheoryError
        As `load_theory`.
    """
    from symbolic import overlaps
    from symbolic import theory as language

    file = Path(path)
    digest = hashlib.sha256(content(file)).hexdigest()
    known = {name: getattr(x, name) for x in (overlaps, language) for name in x.__all__}
    try:
        names = runpy.run_path(str(file), init_globals=known, run_name=file.stem)
    except TheoryError:
        raise
    except SyntaxError as error:
        raise TheoryError(
            f"this is no Python: {error.msg}", SourceLine(str(file), error.lineno or 1)
        ) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: a file that exits defines no theory
        raise TheoryError(_description(error), _line(error, file)) from error
    theory = names.get("THEORY")
    if not isinstance(theory, (Theory, overlaps.OverlapTheory)):
        raise TheoryError(
            f"THEORY = {short_repr(theory)} is not allowed: it must be a Theory",
            SourceLine(str(file), 1),
        )
    theory.constants = tuple(x for x in names.values() if isinstance(x, Constant))
    theory.digest = digest
    check_defaults(theory)
    if isinstance(theory, Theory):
        parsed(theory)
    return theory


def content(path: Path) -> bytes:
    """Return the bytes of a theory file; raises `TheoryError` if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as failure:
        sentence = f"the file cannot be read: {failure.strerror}"
        raise TheoryError(sentence, SourceLine(str(path), 1)) from None


def _description(error: BaseException) -> str:
    """Return type and text of an exception, the type alone if ``str(error)`` is empty or raises."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _line(error: BaseException, file: Path) -> SourceLine:
    """Return the innermost line of the file in the traceback of an exception."""
    line, entry = 1, error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_code.co_filename == str(file):
            line = entry.tb_lineno
        entry = entry.tb_next
    return SourceLine(str(file), line)
