"""Parsers of the command line: options, numbers, and errors of one sentence."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from simulations.commands import BadInput

if TYPE_CHECKING:
    from dynamics.core.parameters import Parameter

EXIT_CODES = "exit codes: 0 done, 1 failed, 2 bad input, 130 interrupted (Ctrl-C)"

#: Largest number of characters of an error message, without the name of the command.
LONGEST = 900
#: Prefix that separates the parameters of a theory from other options in a namespace.
_PREFIX = "parameter "
#: Arguments that are negative numbers and not options; argparse alone reads -1e-3 as an option.
_NEGATIVE_NUMBER = re.compile(r"-(\.?\d|inf|nan)", re.IGNORECASE)


class Parser(argparse.ArgumentParser):
    """Argument parser with errors of one sentence and negative numbers such as ``-1e-3``."""

    def __init__(self, **options: object) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)  # type: ignore[arg-type]
        self._negative_number_matcher = _NEGATIVE_NUMBER

    def error(self, message: str) -> NoReturn:
        """Write one sentence to standard error and exit with code 2."""
        if len(message) > LONGEST:  # it may quote an argument of any length
            message = message[: LONGEST - 3] + "..."
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Convert the arguments of an option; reject ``--flag=--``, empty in Python 3.11."""
        if action.option_strings and arg_strings == ["--"]:
            self.error(f"{action.option_strings[0]} = -- is not allowed: it must be a value")
        return super()._get_values(action, arg_strings)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write and flush, so that a full device raises OSError instead of being ignored."""
        stream = file or sys.stderr
        stream.write(message)
        stream.flush()


class Command(Parser):
    """Parser of one command, which adds its options only when the command is chosen.

    Parameters
    ----------
    module
        Module of the command. It defines ``DESCRIPTION``, ``EPILOG``, ``add_arguments(parser)`` and
        ``execute(args)``; or, if its options depend on an argument, ``parse(prog, arguments)``.
    options
        Keyword arguments of `argparse.ArgumentParser`.
    """

    def __init__(self, module: Any = None, **options: object) -> None:
        super().__init__(**options)
        self._module = module

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Add the options of the command and parse."""
        if hasattr(self._module, "parse"):
            return self._module.parse(self.prog, args)
        if self.description is None:  # options have not been added yet
            self.description, self.epilog = self._module.DESCRIPTION, self._module.EPILOG
            self._module.add_arguments(self)
            self.set_defaults(execute=self._module.execute)
        return super().parse_known_args(args, namespace)


def number(text: str) -> int | float:
    """Return an integer, a float, or a ratio such as 2/64 from a text.

    Raises
    ------
    argparse.ArgumentTypeError
        If the text is not a number.
    """
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


class Range(NamedTuple):
    """An interval of a parameter."""

    low: int | float
    high: int | float


def number_or_range(text: str) -> int | float | Range:
    """Return a number, or an interval from ``LOW..HIGH``.

    Raises
    ------
    argparse.ArgumentTypeError
        If the text is neither.
    """
    low, dots, high = text.partition("..")
    return Range(number(low), number(high)) if dots else number(text)


def add_parameters(
    parser: argparse.ArgumentParser,
    parameters: Iterable[Parameter],
    convert: Callable[[str], Any] = number,
) -> None:
    """Add an option for each parameter of a theory; ``convert`` returns the value of a number."""
    group = parser.add_argument_group("parameters (numbers such as 64, 1e-3 or 2/64)")
    for parameter in parameters:
        _add_parameter(group, parameter, convert, dest=_PREFIX + parameter.name)


def _add_parameter(
    group: Any, parameter: Parameter, convert: Callable[[str], Any] = number, **options: Any
) -> None:
    """Add the option of a parameter."""
    dtype = str if parameter.dtype is str else convert
    group.add_argument(parameter.flag, metavar="X", help=parameter.help, type=dtype, **options)


def given_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return a mapping from name to value of the parameters on the command line."""
    return {
        name.removeprefix(_PREFIX): value
        for name, value in vars(args).items()
        if name.startswith(_PREFIX) and value is not None
    }


def add_optimizer(parser: argparse.ArgumentParser) -> None:
    """Add the options of the optimizer of gradient descent."""
    from dynamics.core.parameters import declared
    from simulations.solver_options import OPTIMIZER, Solver

    group = parser.add_argument_group("optimizer of gradient descent (solver gd)")
    for name in OPTIMIZER:
        _add_parameter(group, declared(Solver)[name])


def given_optimizer(args: argparse.Namespace) -> dict[str, Any]:
    """Return a mapping from name to value of the options of the optimizer that are given."""
    from simulations.solver_options import OPTIMIZER

    return {name: getattr(args, name) for name in OPTIMIZER if getattr(args, name) is not None}


def pair(flag: str, text: str) -> tuple[str, str]:
    """Return name and value of ``NAME=VALUE``; raises BadInput if one of them is empty."""
    name, _, value = (part.strip() for part in text.partition("="))
    if not name or not value:
        raise BadInput(f"{flag} {text} is not allowed: it must be NAME=VALUE, such as nu=0.01")
    return name, value


def assignment(flag: str, text: str) -> tuple[str, int | float | str]:
    """Return name and value of ``NAME=VALUE``; a value that is not a number stays a string."""
    name, value = pair(flag, text)
    try:
        return name, number(value)
    except argparse.ArgumentTypeError:
        return name, value


def number_range(flag: str, text: str) -> tuple[str, tuple[int | float, int | float]]:
    """Return name and ends of ``NAME=LOW..HIGH``; raises BadInput for another text."""
    name, value = pair(flag, text)
    low, dots, high = value.partition("..")
    try:
        if not dots:
            raise argparse.ArgumentTypeError
        return name, (number(low), number(high))
    except argparse.ArgumentTypeError:
        raise BadInput(
            f"{flag} {text} is not allowed: it must be NAME=LOW..HIGH, such as K=4..200"
        ) from None


def add_output(parser: argparse.ArgumentParser, out: tuple[str, str], plot: str = "") -> None:
    """Add the options ``--json``, ``--out`` and ``--force``, and ``--plot`` if it has a help text.

    Parameters
    ----------
    parser
        Parser of the command.
    out
        Metavar and help text of ``--out``.
    plot
        Help text of ``--plot``.
    """
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print the results as JSON")
    output.add_argument("--out", type=Path, metavar=out[0], help=out[1])
    if plot:
        output.add_argument("--plot", type=Path, metavar="FILE", help=plot)
    output.add_argument("--force", action="store_true", help="overwrite existing files")


def check_output(args: argparse.Namespace) -> None:
    """Raise BadInput if a file of ``--out`` or ``--plot`` cannot be written, or is not to be."""
    files = {flag: getattr(args, flag, None) for flag in ("out", "plot")}
    for flag, file in files.items():
        if file is not None:
            check_output_file(f"--{flag}", file, force=args.force)
    out, plot = files.values()
    if out is not None and plot is not None and _same_file(out, plot):
        raise BadInput(f"--out and --plot are not allowed to be the same file: {out}")


def _same_file(first: Path, second: Path) -> bool:
    """Return whether two paths may be the same file, also on file systems that ignore case."""
    if first.exists() and second.exists() and first.samefile(second):
        return True
    return str(first.resolve()).casefold() == str(second.resolve()).casefold()


def unfinished_file(out: Path) -> Path:
    """Return the path of the finished parts of an incomplete result."""
    return out.with_name(f"{out.name}.unfinished")


def report_written(file: Path) -> None:
    """Print the name of a file that was written."""
    print(f"patchdyn: wrote {file}", file=sys.stderr)


def check_output_file(flag: str, file: Path, *, force: bool) -> None:
    """Raise BadInput if a file cannot be written, or exists and ``force`` is not set.

    Parameters
    ----------
    flag, file
        Option and its file.
    force
        Whether an existing file is overwritten.
    """
    from dynamics.core.files import FileError, obstacle

    try:
        what, exists = obstacle(file), file.exists()
    except FileError as error:
        raise BadInput(f"{flag} is not allowed: {error}") from None
    if what is not None:
        raise BadInput(f"{flag} {file} is not allowed: it is {what}, not a regular file")
    if exists and not force:
        raise BadInput(f"{flag} {file} exists: choose another name, or overwrite it with --force")
