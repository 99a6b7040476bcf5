"""`patchdyn`: the command line.

Importing this module loads argparse and nothing of weight; each command imports what it needs when
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
from simulations.commands.arguments import (
    EXIT_CODES,
    LONGEST,
    Parser,
    join_negative_numbers,
    refuse_bare_dashes,
)
from simulations.interrupts import interruptible

_DESCRIPTION = """\
Learning dynamics of attention, made executable. The reduced gradient updates of three papers
(Jelassi, Sander, Li 2022; Huang, Wen, Chi, Liang 2024; Li, Wang, Liu, Chen 2023) and of theories
that you state in one file are derived, solved under a certified population expectation, and checked
claim by claim.
"""
_EPILOG = f"""\
examples:
  patchdyn reproduce --quick              every claim, small, in about five minutes
  patchdyn derive lemma-4.3               the increments of gamma and rho, with their proof
  patchdyn run --D 64 --C 4 --q 2/64      one trajectory of (alpha, gamma, rho)
  patchdyn sweep CONFIG.toml --out DIR    a grid of problems, then: patchdyn map DIR
  patchdyn falsify 'gamma >= rho'         search for a counterexample and simplify it
  patchdyn report compare OLD NEW         which verdicts and numbers of two reports differ
  patchdyn theory FILE.py                 a theory of your own: derived, checked; --run: and run
  patchdyn explore --open                 a page with a slider for each parameter

{EXIT_CODES}
"""


class _Version(argparse.Action):
    """Print the version, looked up only when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"patchdyn {version('patchdyn')}")
        parser.exit()


def build_parser(arguments: Sequence[str] = ()) -> Parser:
    """Return the parser of a command line: all commands, and the flags of the one asked for."""
    parser = Parser(prog="patchdyn", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name in COMMANDS:
        module: Any = import_module(f"simulations.commands.{name}")
        if name not in arguments[:1]:
            commands.add_parser(name, help=module.HELP)
            continue
        if hasattr(module, "variant"):
            module = module.variant(list(arguments))
        command = commands.add_parser(
            name, help=module.HELP, description=module.DESCRIPTION, epilog=module.EPILOG
        )
        module.add_arguments(command)
        command.set_defaults(execute=module.execute)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 failed, 2 bad input, 130 interrupted."""
    _replace_closed_streams()
    arguments = join_negative_numbers(list(sys.argv[1:] if argv is None else argv))
    before, warnings.formatwarning = warnings.formatwarning, _one_line
    try:
        refuse_bare_dashes(arguments)
        parser = build_parser(arguments)
        args = parser.parse_args(arguments)
        if args.command is None:
            parser.error(f"a command is missing: choose one of {', '.join(COMMANDS)}")
        with interruptible():
            code = int(args.execute(args))
            sys.stdout.flush()
        return code
    except SystemExit as stop:  # argparse: --help, --version, bad arguments
        return stop.code if isinstance(stop.code, int) else BAD_INPUT
    except BadInput as refusal:
        return _complain(str(refusal), BAD_INPUT)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output went away, as in `patchdyn claims | head -1`
        _leave_standard_output()
        return FAILED
    except Exception as failure:
        told = explained(failure)
        if told is None:  # a defect of patchdyn: its traceback is what a report of it needs
            raise
        if isinstance(failure, OSError) and failure.filename is None:
            _leave_standard_output()
        return _complain(*told)
    finally:
        warnings.formatwarning = before


def explained(failure: Exception) -> tuple[str, int] | None:
    """Return the sentence and the exit code of a foreseen failure: the one place that knows them.

    What is asked for is refused with 2, what the machine cannot do ends with 1.
    """
    if _is(failure, "dynamics.core.errors", "ParameterError", "ToleranceError"):
        return str(failure), BAD_INPUT
    if _is(failure, "symbolic.theory.errors", "TheoryError"):
        return str(failure), BAD_INPUT
    if _is(failure, "simulations.sweep.config", "ConfigError"):
        return str(failure), BAD_INPUT
    if _is(failure, "dynamics.core.files", "FileError"):
        return str(failure), FAILED
    if isinstance(failure, OverflowError):
        return f"these numbers are too large to compute with: {failure}", BAD_INPUT
    if isinstance(failure, RecursionError):
        return "the input is nested too deeply", BAD_INPUT
    if isinstance(failure, MemoryError):
        return "the memory of this machine does not suffice", FAILED
    if isinstance(failure, OSError):
        what = f"use {failure.filename}" if failure.filename else "write the output"
        return f"cannot {what}: {failure.strerror or failure}", FAILED
    return None


def _is(failure: Exception, module: str, *names: str) -> bool:
    """Tell whether a failure is one of a module, which is not imported to ask."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(failure, tuple(getattr(loaded, n) for n in names))


def _replace_closed_streams() -> None:
    """Write to the null device where standard output or standard error is closed (``>&-``).

    The null device also takes the free descriptor, so that no file opened later becomes the
    standard output of a child process.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _leave_standard_output() -> None:
    """Let what is still buffered go nowhere, so that the interpreter ends without a complaint."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(sentence: str, code: int) -> int:
    if len(sentence) > LONGEST:  # what was asked for may be of any length
        sentence = sentence[: LONGEST - 3] + "..."
    with contextlib.suppress(OSError):
        print(f"patchdyn: {sentence}", file=sys.stderr)
    return code


def _one_line(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """Return a warning as a person reads it; where it was raised is of no use to them."""
    return f"patchdyn: note: {message}\n"


if __name__ == "__main__":
    sys.exit(main())
