"""`patchdyn`: the command line.

Importing this module loads argparse and nothing of weight; each command imports what it needs when
it runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from simulations.commands import BAD_INPUT, COMMANDS, FAILED, INTERRUPTED, BadInput
from simulations.commands.arguments import EXIT_CODES, Parser, join_negative_numbers

_DESCRIPTION = """\
Learning dynamics of attention, made executable: the reduced updates of two papers (Jelassi, Sander,
Li 2022; Huang, Wen, Chi, Liang 2024) derived, solved under a certified population expectation, and
checked claim by claim.
"""
_EPILOG = f"""\
examples:
  patchdyn reproduce --quick              every claim, small, in about two minutes
  patchdyn derive lemma-4.3               the increments of gamma and rho, with their proof
  patchdyn run --D 64 --C 4 --q 2/64      one trajectory of (alpha, gamma, rho)
  patchdyn sweep CONFIG.toml --out DIR    a grid of problems, then: patchdyn map DIR
  patchdyn falsify 'gamma >= rho'         search for a counterexample and simplify it

{EXIT_CODES}
"""


class _Version(argparse.Action):
    """Print the version, looked up only when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"patchdyn {version('patchdyn')}")
        parser.exit()


def build_parser(arguments: Sequence[str] = ()) -> Parser:
    """Return the parser with all commands; what is asked of one of them may change its flags."""
    parser = Parser(prog="patchdyn", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name in COMMANDS:
        module: Any = import_module(f"simulations.commands.{name}")
        if hasattr(module, "variant") and name in arguments[:1]:
            module = module.variant(list(arguments))
        command = commands.add_parser(
            name, help=module.HELP, description=module.DESCRIPTION, epilog=module.EPILOG
        )
        module.add_arguments(command)
        command.set_defaults(execute=module.execute)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 failed, 2 bad input, 130 interrupted."""
    arguments = join_negative_numbers(list(sys.argv[1:] if argv is None else argv))
    parser = build_parser(arguments)
    try:
        args = parser.parse_args(arguments)
        if args.command is None:
            parser.error(f"a command is missing: choose one of {', '.join(COMMANDS)}")
        return int(args.execute(args))
    except SystemExit as stop:  # argparse: --help, --version, bad arguments
        return stop.code if isinstance(stop.code, int) else BAD_INPUT
    except BadInput as refusal:
        return _complain(str(refusal), BAD_INPUT)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output went away, as in `patchdyn claims | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _complain(sentence: str, code: int) -> int:
    print(f"patchdyn: {sentence}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
