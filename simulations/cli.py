"""Command line interface: the program `patchdyn`.

This module imports only argparse and other light modules. Each command imports what it needs when
it runs.
"""

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from simulations.commands import BAD_INPUT, COMMANDS, FAILED, INTERRUPTED, BadInput
from simulations.commands.arguments import EXIT_CODES, LONGEST, Command, Parser
from simulations.interrupts import interruptible

_DESCRIPTION = """\
Theories of the learning dynamics of attention, as programs. patchdyn derives the reduced gradient
updates of three papers (Jelassi, Sander, Li 2022; Huang, Wen, Chi, Liang 2024; Li, Wang, Liu, Chen
2023), and of theories that you define in a file. It integrates them with certified population
expectations, and checks the claims of the papers.
"""
_EPILOG = f"""\
examples:
  patchdyn reproduce --quick              check all claims on small problems, in about five minutes
  patchdyn derive lemma-4.3               the increments of gamma and rho, with their proof
  patchdyn run --D 64 --C 4 --q 2/64      one trajectory of (alpha, gamma, rho)
  patchdyn against RUN.npz --theory FILE.py  a logged training run next to its theory
  patchdyn sweep CONFIG.toml --out DIR    a grid of problems; then draw it with: patchdyn map DIR
  patchdyn falsify 'gamma >= rho'         search for a counterexample and simplify it
  patchdyn report compare OLD NEW         differences between the results of two reports
  patchdyn theory FILE.py                 derive and check your own theory
  patchdyn explore --open                 a local web page with a slider for each parameter

{EXIT_CODES}
"""


class _Version(argparse.Action):
    """Print the version; it is looked up only if the option is given."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"patchdyn {version('patchdyn')}")
        parser.exit()


def build_parser() -> Parser:
    """Return the parser of the command line, with a subparser for each command."""
    parser = Parser(prog="patchdyn", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", parser_class=Command
    )
    for name in COMMANDS:
        module = import_module(f"simulations.commands.{name}")
        commands.add_parser(name, help=module.HELP, module=module)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv
        Arguments; by default those of the process.

    Returns
    -------
    int
        Exit code: 0 done, 1 failed, 2 bad input, 130 interrupted.
    """
    _replace_closed_streams()
    format_before, warnings.formatwarning = warnings.formatwarning, _format_warning
    try:
        parser = build_parser()
        args = parser.parse_args(argv)
        if args.command is None:
            parser.error(f"a command is missing: choose one of {', '.join(COMMANDS)}")
        with interruptible():
            code = int(args.execute(args))
            sys.stdout.flush()
        return code
    except SystemExit as stop:  # argparse: --help, --version, bad arguments
        return stop.code if isinstance(stop.code, int) else BAD_INPUT
    except BadInput as error:
        return _report_error(str(error), BAD_INPUT)
    except KeyboardInterrupt:
        return _report_error("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has ended, as in `patchdyn claims | head -1`
        _discard_standard_output()
        return FAILED
    except Exception as error:
        explanation = explain(error)
        if explanation is None:  # a bug: show the traceback
            raise
        if isinstance(error, OSError) and error.filename is None:
            _discard_standard_output()
        return _report_error(*explanation)
    finally:
        warnings.formatwarning = format_before


def explain(error: Exception) -> tuple[str, int] | None:
    """Return message and exit code of an expected exception.

    Parameters
    ----------
    error
        Exception raised by a command or by a job of a worker process.

    Returns
    -------
    tuple of str and int, or None
        One sentence for the user, and 2 for bad input or 1 for a failure; ``None`` for a bug.
    """
    if _is_instance(error, "dynamics.core.errors", "ParameterError", "ToleranceError"):
        return str(error), BAD_INPUT
    if _is_instance(error, "symbolic.theory.errors", "TheoryError"):
        return str(error), BAD_INPUT
    if _is_instance(error, "simulations.sweep.config", "ConfigError"):
        return str(error), BAD_INPUT
    if _is_instance(error, "dynamics.core.files", "FileError"):
        return str(error), FAILED
    if isinstance(error, OverflowError):
        return f"these numbers are too large to compute with: {error}", BAD_INPUT
    if isinstance(error, RecursionError):
        return "the input is nested too deeply", BAD_INPUT
    if isinstance(error, MemoryError):
        return "this machine has too little memory: choose a smaller problem", FAILED
    if isinstance(error, OSError):
        what = f"use {error.filename}" if error.filename else "write the output"
        return f"cannot {what}: {error.strerror or error}", FAILED
    return None


def _is_instance(error: Exception, module: str, *names: str) -> bool:
    """Return whether an exception is of a class of a module, without importing the module."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(error, tuple(getattr(loaded, n) for n in names))


def _replace_closed_streams() -> None:
    """Open the null device in place of a closed standard output or standard error (``>&-``).

    This also occupies the free descriptor: no file that is opened later becomes the standard output
    of a child process.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _discard_standard_output() -> None:
    """Discard buffered output, so that the interpreter does not fail to flush it at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_error(sentence: str, code: int) -> int:
    """Write an error message to standard error and return the exit code."""
    if len(sentence) > LONGEST:  # it may quote an argument of any length
        sentence = sentence[: LONGEST - 3] + "..."
    with contextlib.suppress(OSError):
        print(f"patchdyn: {sentence}", file=sys.stderr)
    return code


def _format_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """Return a warning as one line, without its place in the source."""
    return f"patchdyn: note: {message}\n"


if __name__ == "__main__":
    sys.exit(main())
