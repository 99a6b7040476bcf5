"""How the command line reads numbers, and the help text around them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from simulations.commands import BadInput

if TYPE_CHECKING:
    from dynamics.core.parameters import Parameter

EXIT_CODES = "exit codes: 0 done, 1 failed, 2 bad input, 130 interrupted (Ctrl-C)"

#: Characters of a sentence at most, without the name of the command.
LONGEST = 900
_PREFIX = "parameter "  # keeps the parameters of a theory apart from other options


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, and whose help keeps its layout."""

    def __init__(self, **options: object) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Write the sentence to standard error and exit with code 2."""
        if len(message) > LONGEST:  # what was given may be of any length
            message = message[: LONGEST - 3] + "..."
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write at once; what argparse would pass over in silence, a full device, is told."""
        stream = file or sys.stderr
        stream.write(message)
        stream.flush()


class Command(Parser):
    """The parser of a command, whose module adds the options once the command is chosen.

    A module whose options depend on a choice defines ``parse(prog, arguments)`` instead of
    ``add_arguments(parser)`` and ``execute``.
    """

    def __init__(self, module: Any = None, **options: object) -> None:
        super().__init__(**options)
        self._module = module

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Add the options of the command and parse."""
        if hasattr(self._module, "parse"):
            return self._module.parse(self.prog, args)
        if self.description is None:  # not yet
            self.description, self.epilog = self._module.DESCRIPTION, self._module.EPILOG
            self._module.add_arguments(self)
            self.set_defaults(execute=self._module.execute)
        return super().parse_known_args(args, namespace)


def number(text: str) -> int | float:
    """Read an integer, a float, or a ratio such as 2/64; what it may be is decided elsewhere."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(Fraction(text)) if "/" in text else float(text)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not allowed: it must be a number such as 64, 1e-3 or 2/64"
        ) from None


def add_parameters(parser: argparse.ArgumentParser, parameters: Iterable[Parameter]) -> None:
    """Add an option for each parameter of a theory."""
    group = parser.add_argument_group("parameters (numbers may be written 1e-3 or 2/64)")
    for parameter in parameters:
        group.add_argument(
            parameter.flag, dest=_PREFIX + parameter.name, metavar="X", help=parameter.help,
            type=str if parameter.kind is str else number,
        )  # fmt: skip


def given_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters that were given, by name."""
    return {
        name.removeprefix(_PREFIX): value
        for name, value in vars(args).items()
        if name.startswith(_PREFIX) and value is not None
    }


def pair(flag: str, text: str) -> tuple[str, str]:
    """Read NAME=VALUE; what the name and the value may be is decided elsewhere."""
    name, _, value = (part.strip() for part in text.partition("="))
    if not name or not value:
        raise BadInput(f"{flag} {text} is not allowed: it must be NAME=VALUE, such as nu=0.01")
    return name, value


def assignment(flag: str, text: str) -> tuple[str, int | float | str]:
    """Read NAME=VALUE, a value that is no number as a word."""
    name, value = pair(flag, text)
    try:
        return name, number(value)
    except argparse.ArgumentTypeError:
        return name, value


def refuse_to_replace(flag: str, file: Path, *, force: bool) -> None:
    """Raise BadInput if a file to write is there; ``force`` replaces regular files alone."""
    from dynamics.core.files import FileError, obstacle

    try:
        what, exists = obstacle(file), file.exists()
    except FileError as refusal:
        raise BadInput(f"{flag} is not allowed: {refusal}") from None
    if what is not None:
        raise BadInput(f"{flag} {file} is not allowed: it is {what}, not a regular file")
    if exists and not force:
        raise BadInput(f"{flag} {file} exists: choose another name, or overwrite it with --force")


def refuse_bare_dashes(argv: list[str]) -> None:
    """Raise BadInput for ``--flag=--``, of which some versions of argparse make an empty list."""
    for argument in argv:
        flag, _, value = argument.partition("=")
        if flag.startswith("--") and value == "--":
            raise BadInput(f"{flag} = -- is not allowed: it must be a value")


def join_negative_numbers(argv: list[str]) -> list[str]:
    """Return the arguments with ``--flag -1e-3`` as ``--flag=-1e-3``.

    Otherwise argparse takes a negative number in scientific notation for a flag.
    """
    joined: list[str] = []
    for argument in argv:
        if joined and _is_flag(joined[-1]) and _is_negative_number(argument):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def _is_flag(argument: str) -> bool:
    return argument.startswith("--") and "=" not in argument and len(argument) > 2


def _is_negative_number(argument: str) -> bool:
    if not argument.startswith("-"):
        return False
    try:
        number(argument)
    except argparse.ArgumentTypeError:
        return False
    return True
