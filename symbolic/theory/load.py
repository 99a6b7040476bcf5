"""Reading a theory from its file."""

import runpy
from pathlib import Path

from symbolic.theory.errors import TheoryError, Where, shown
from symbolic.theory.numbers import Constant
from symbolic.theory.theory import Theory
from symbolic.theory.values import check_usual


def load_theory(path: str | Path) -> Theory:
    """Run a user's file and return the `Theory` that it names ``THEORY``.

    The file is a program of the user's own and is run as one; the words of the language are there
    without being imported.

    Raises
    ------
    TheoryError
        One sentence with the line of the file; also if it cannot be read.
    """
    from symbolic import theory as words

    file = Path(path)
    content(file)
    known = {name: getattr(words, name) for name in words.__all__}
    try:
        names = runpy.run_path(str(file), init_globals=known, run_name=file.stem)
    except TheoryError:
        raise
    except SyntaxError as error:
        raise TheoryError(
            f"this is no Python: {error.msg}", Where(str(file), error.lineno or 1)
        ) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: a file that ends itself states no theory
        raise TheoryError(_described(error), _line(error, file)) from error
    found = names.get("THEORY")
    if not isinstance(found, Theory):
        raise TheoryError(
            f"THEORY = {shown(found)} is not allowed: it must be a Theory", Where(str(file), 1)
        )
    found.constants = tuple(x for x in names.values() if isinstance(x, Constant))
    check_usual(found)
    return found


def content(path: Path) -> bytes:
    """Return what is in the file of a theory; raises `TheoryError` if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as failure:
        sentence = f"the file cannot be read: {failure.strerror}"
        raise TheoryError(sentence, Where(str(path), 1)) from None


def _described(error: BaseException) -> str:
    """Return what an exception states; its own text may fail, too."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _line(error: BaseException, file: Path) -> Where:
    """Return the innermost line of the file that an exception went through."""
    line, step = 1, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == str(file):
            line = step.tb_lineno
        step = step.tb_next
    return Where(str(file), line)
