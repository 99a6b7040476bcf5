"""`patchdyn theory`: a theory in one file, derived and checked."""

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from simulations.commands import DONE, FAILED, BadInput
from simulations.commands.arguments import EXIT_CODES, number, pair

HELP = "derive, check and run a theory that is stated in one file"
DESCRIPTION = """\
Run FILE.py, which states a theory: index sets with symbolic sizes, data, parameters and the loss.
Print its order parameters with the number of entries of each, for all sizes; hold the derived loss
and gradient against the full model at small sizes, every entry and every configuration of the data;
prove in ball arithmetic how many digits of them are right, at the start and late in training; and
tell what the flow conserves and whether the invariant manifold repels there. With --export, --run,
--sweep, --falsify or --report, do that instead, as on the theories that come with patchdyn.
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
  t = Sequence("t", k, u)                            each of the k is one of the u: t["i", "j"] is 1
  g = Gaussian("g", (p, x), variance=1)              integrated exactly in a polynomial
  A = Tensor("A", (p, p), start=0); A.fix("diagonal", 1)
  A["i", "j"]  + - * / **  .exp() .log() .tanh() .sigmoid() .softplus() .softplus_of_minus()
  .sum("j")  .softmax(over="j")  Same(p)["i", "j"]  Inside(p, s)["i", "k"]
  THEORY = Theory("name", "paper", sizes=(D,), parameters=(A,), data=Data(c, y),
                  loss=lambda A, y: ..., names={{"A[same set]": "gamma"}})

examples:
  patchdyn theory --new mine                  write mine.py, a small theory to begin from
  patchdyn theory mine.py
  patchdyn theory mine.py --at n=6 b=0.5 --json
  patchdyn theory mine.py --export latex      the derived equations; also text, python, jax
  patchdyn theory mine.py --run n=6 horizon=1e4       as: patchdyn run --theory mine.py --n 6 ...
  patchdyn theory mine.py --sweep grid.toml --out DIR  then: patchdyn map DIR --theory mine.py
  patchdyn theory mine.py --falsify 'a <= 1'          without a conjecture: those of the file
  patchdyn theory mine.py --report DIR                reduction, conjectures and a figure, as HTML

{EXIT_CODES}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", nargs="?", metavar="FILE.py", help="the file, run as a program")
    parser.add_argument("--new", metavar="NAME", help="write NAME.py, a theory to begin from")
    parser.add_argument(
        "--at",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="sizes and constants of the check; default: small ones",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--export",
        choices=("text", "latex", "python", "jax"),
        help="print the reduced risk and its gradient, for all sizes: as equations, or as a module "
        "that needs NumPy or JAX only",
    )
    instead.add_argument(
        "--run",
        nargs="*",
        metavar="NAME=VALUE",
        help="solve one problem; parameters as in `patchdyn run --theory FILE.py --help`",
    )
    instead.add_argument("--sweep", metavar="CONFIG.toml", help="a grid of problems, into --out")
    instead.add_argument(
        "--falsify",
        nargs="?",
        const="",
        metavar="CONJECTURE",
        help="search for a counterexample to it, or to each claim of the file",
    )
    instead.add_argument("--report", type=Path, metavar="DIR", help="write a report")
    parser.add_argument("--out", metavar="DIR", help="of --sweep")
    parser.add_argument("--quick", action="store_true", help="of --report: shorter searches")


def execute(args: argparse.Namespace) -> int:
    """Print what is found; 0 if the derived model agrees with the full one."""
    if (args.file is None) == (args.new is None):
        raise BadInput("give FILE.py, or --new NAME for a file to begin from, and not both")
    if args.new is not None:
        return _begin(args.new)
    if (args.sweep is None) != (args.out is None):
        raise BadInput("--sweep CONFIG.toml and --out DIR are needed together")
    if args.at and not (
        args.export is args.run is args.sweep is args.falsify is args.report is None
    ):
        raise BadInput("--at is of the check alone: --run takes NAME=VALUE itself")
    if args.export is not None:
        return _export(args)
    if args.run is not None:
        return _run(args)
    if args.sweep is not None:
        return _sweep(args)
    if args.falsify is not None:
        return _falsify(args)
    if args.report is not None:
        return _report(args)
    from simulations.files.as_json import to_json
    from simulations.stated.digits import along_flow
    from simulations.stated.findings import described, examine
    from symbolic.theory import load_theory

    theory = load_theory(args.file)
    findings = examine(theory, _values(args.at))
    if findings.agrees:  # else nothing is run
        findings = replace(findings, digits=along_flow(theory, findings.check.at))
    print(to_json(findings) if args.json else described(findings))
    return DONE if findings.agrees else FAILED


def _export(args: argparse.Namespace) -> int:
    """Print the derived equations of a theory that passes its check."""
    from simulations.stated.user_theory import load_theory

    print(load_theory(args.file).export(args.export), end="")
    return DONE


def _run(args: argparse.Namespace) -> int:
    """Solve one problem, as `patchdyn run --theory` does."""
    from simulations import theories
    from simulations.commands.run import solve

    theory = theories.from_file(args.file)
    values: dict[str, Any] = {}
    for text in args.run:
        name, equals, value = text.partition("=")
        parameter = theory.parameter(name)
        if not equals or parameter is None:
            known = ", ".join(one.name for one in theory.parameters)
            raise BadInput(
                f"--run {text} is not allowed: it must be NAME=VALUE with one of {known}"
            )
        values[name] = value if parameter.kind is str else _number("--run", text, value)
    return solve(theory, values, as_json=args.json)


def _sweep(args: argparse.Namespace) -> int:
    """Compute a sweep, as `patchdyn sweep --theory` does."""
    from simulations.commands.sweep import compute

    return compute(Path(args.sweep), Path(args.out), Path(args.file))


def _falsify(args: argparse.Namespace) -> int:
    """Search for a counterexample, as `patchdyn falsify --theory` does."""
    from simulations import theories
    from simulations.commands.falsify import search
    from symbolic.theory import load_theory

    conjectures = [args.falsify] if args.falsify else load_theory(args.file).claims
    if not conjectures:
        raise BadInput(f"{args.file} states no claims: give a conjecture, --falsify 'a <= 1'")
    system = theories.from_file(args.file).name
    return max(search(text, system, as_json=args.json) for text in conjectures)


def _report(args: argparse.Namespace) -> int:
    """Write a report of what the file states."""
    from simulations import theories
    from simulations.commands.reproduce import run_claims
    from simulations.stated.report import claims_of

    claims = claims_of(theories.from_file(args.file))
    return run_claims(claims, args.report, quick=args.quick, force=True, workers=1)


def _begin(name: str) -> int:
    """Write a theory to begin from; a file that is there stays as it is."""
    from simulations.files.store import write_bytes
    from simulations.stated.skeleton import SKELETON

    if not name.isidentifier():
        raise BadInput(f"--new {name} is not allowed: it must be a name of letters and digits")
    path = Path(f"{name}.py")
    if os.path.lexists(path):
        raise BadInput(f"--new {name} is not allowed: {name}.py exists")
    write_bytes(path, SKELETON.replace("NAME", name).encode())
    print(f"{name}.py states a small theory: change it, then run patchdyn theory {name}.py")
    return DONE


def _values(pairs: list[str]) -> dict[str, float]:
    values: dict[str, float] = {}
    for text in pairs:
        name, value = pair("--at", text)
        values[name] = _number("--at", text, value)
    return values


def _number(flag: str, text: str, value: str) -> int | float:
    try:
        return number(value)
    except argparse.ArgumentTypeError as refusal:
        raise BadInput(f"{flag} {text}: {refusal}") from None
