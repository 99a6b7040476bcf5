"""`patchdyn theory`: a theory in one file, derived and checked."""

from __future__ import annotations

import argparse

from simulations.commands import DONE, FAILED, BadInput
from simulations.commands.arguments import EXIT_CODES

HELP = "derive and check a theory that is stated in one file"
DESCRIPTION = """\
Run FILE.py, which states a theory: index sets with symbolic sizes, data, parameters and the loss.
Print its order parameters with the number of entries of each, for all sizes; hold the derived loss
and gradient against the full model at small sizes, every entry and every configuration of the data;
and tell what the flow conserves and whether the invariant manifold repels there.
"""
EPILOG = f"""\
the language (no import is needed in the file; names of arrays and indices are yours):
  D = Size("D", "patches", least=4, divides="E")     q, nu = constants(q="in (0, 1]", nu="> 0")
  s = Exchangeable("set", D / C)                     elements that are alike
  p = Exchangeable("patch", C, inside=s)             C of them in each set
  x = Signed("coordinate", d)                        may be flipped too: odd entries vanish
  u = Union("key", p, r)                             index sets side by side
  c = Choice("c", s)      m = Subset("m", p, M)      1 on what is chosen, 0 elsewhere
  y = Colouring("y", p, {{+1: q/2, 0: 1 - q, -1: q/2}}, given={{c: +1}})
  A = Tensor("A", (p, p), start=0); A.fix("diagonal", 1)
  A["i", "j"]  + - * / **  .exp() .log() .tanh() .sigmoid() .softplus() .softplus_of_minus()
  .sum("j")  .softmax(over="j")  Same(p)["i", "j"]  Inside(p, s)["i", "k"]
  THEORY = Theory("name", "paper", sizes=(D,), parameters=(A,), data=Data(c, y),
                  loss=lambda A, y: ..., names={{"A[same set]": "gamma"}})

examples:
  patchdyn theory --new mine                  write mine.py, a small theory to begin from
  patchdyn theory mine.py
  patchdyn theory mine.py --at n=6 b=0.5 --json

{EXIT_CODES}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", nargs="?", metavar="FILE.py", help="the file, run as a program")
    parser.add_argument("--new", metavar="NAME", help="write NAME.py, a theory to begin from")
    parser.add_argument(
        "--at", nargs="+", default=[], metavar="NAME=VALUE",
        help="sizes and constants of the check; default: small ones",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(args: argparse.Namespace) -> int:
    """Print what is found; 0 if the derived model agrees with the full one."""
    if (args.file is None) == (args.new is None):
        raise BadInput("give FILE.py, or --new NAME for a file to begin from, and not both")
    if args.new is not None:
        return _begin(args.new)
    from simulations.files.as_json import to_json
    from simulations.stated.findings import described, examine
    from symbolic.theory import load_theory

    findings = examine(load_theory(args.file), _values(args.at))
    print(to_json(findings) if args.json else described(findings))
    return DONE if findings.agrees else FAILED


def _begin(name: str) -> int:
    """Write a theory to begin from; a file that is there stays as it is."""
    from simulations.stated.skeleton import SKELETON

    if not name.isidentifier():
        raise BadInput(f"--new {name} is not allowed: it must be a name of letters and digits")
    try:
        with open(f"{name}.py", "x", encoding="utf-8") as file:
            file.write(SKELETON.replace("NAME", name))
    except FileExistsError:
        raise BadInput(f"--new {name} is not allowed: {name}.py exists") from None
    print(f"{name}.py states a small theory: change it, then run patchdyn theory {name}.py")
    return DONE


def _values(pairs: list[str]) -> dict[str, float]:
    from simulations.commands.arguments import number

    values: dict[str, float] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise BadInput(f"--at {pair} is not allowed: it must be NAME=VALUE")
        try:
            values[name] = number(text)
        except argparse.ArgumentTypeError as refusal:
            raise BadInput(f"--at {pair}: {refusal}") from None
    return values
