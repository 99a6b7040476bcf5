"""What a theory's file may get wrong: one sentence, with the file and the line it is about."""

import sys
from pathlib import Path
from typing import NamedTuple

_PACKAGE = str(Path(__file__).parent)


class Where(NamedTuple):
    """A line of a user's file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}, line {self.line}"


def here() -> Where:
    """Return the innermost line that is running outside this package: the user's own."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith((_PACKAGE, "<")):
        frame = frame.f_back
    return Where(frame.f_code.co_filename, frame.f_lineno)


class TheoryError(ValueError):
    """A theory is not stated as it must be; the message is one sentence, its line in front.

    Parameters
    ----------
    sentence
        What is wrong, its value, and what is allowed.
    at
        The line it is about; ``None``: the one that is running.
    """

    def __init__(self, sentence: str, at: Where | None = None) -> None:
        self.sentence, self.where = sentence, at or here()
        super().__init__(f"{self.where}: {sentence}")


def require(condition: bool, sentence: str, at: Where | None = None) -> None:
    """Raise `TheoryError` unless the condition holds."""
    if not condition:
        raise TheoryError(sentence, at)
