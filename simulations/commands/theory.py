"""`patchdyn theory`: derive, check and run a user-defined theory."""

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from simulations.commands import DONE, FAILED, BadInput
from simulations.commands.arguments import EXIT_CODES, number, pair

HELP = "derive, check and run your own theory, defined in a file"
DESCRIPTION = """\
Load a theory from FILE.py: index sets with symbolic sizes, data, parameters and the loss. Derive
its order parameters for all sizes, and print each with its number of entries. Check every entry of
the derived loss and gradient against the full model at small sizes, on all configurations of the
data. Prove in ball arithmetic how many digits are correct, at the start and late in training. Print
conserved quantities of the flow, and whether the invariant manifold is repelling. With
--export, --run, --sweep, --falsify or --report, do that instead, as for the built-in theories.
"""
EPILOG = f"""\
the language (the file needs no imports; choose names of arrays and indices freely):
  D = Size("D", "patches", least=4, divides="E")     q, nu = constants(q="in (0, 1]", nu="> 0")
  s = Exchangeable("set", D / C)                     interchangeable elements
  p = Exchangeable("patch", C, inside=s)             C of them in each set
  x = Signed("coordinate", d)                        sign symmetry: odd entries vanish
  u = Union("key", p, r)                             disjoint union of index sets
  c = Choice("c", s)      m = Subset("m", p, M)      1 on the choice, 0 elsewhere
  y = Colouring("y", p, {{+1: q/2, 0: 1 - q, -1: q/2}}, given={{c: +1}})
  t = Sequence("t", k, u)                            t["i", "j"] = 1 if entry i of k is j in u
  i = Ordered("position", 8)                         positions, each different
  w = Words("w", i, s, polya(1))                     tokens of a sequence; also iid(), chain(stay),
                                                     tree(parent); Chain("w", i, p, q): 0 or 1
  f = Frame("f", i, x, {{"coordinate": [0, 1, ...]}})  vectors of a random orthonormal frame; with
                                                     x = Turned("coordinate", planes): M^2 = -1
  r = relation(lambda a, b: a <= b, a=i, b=i)        mask: .softmax(over="a", where=r)
  g = Gaussian("g", (p, x), variance=1)              polynomials are integrated exactly
  A = Tensor("A", (p, p), start=0); A.fix("diagonal", 1)
  B = Tensor("B", (p,), start=normal(0.1))           random: one number for each orbit, see --seed
  A["i", "j"]  + - * / **  .exp() .log() .tanh() .sigmoid() .softplus() .softplus_of_minus()
  .sum("j")  .softmax(over="j")  Same(p)["i", "j"]  Inside(p, s)["i", "k"]
  THEORY = Theory("name", "paper", sizes=(D,), parameters=(A,), data=Data(c, y),
                  loss=lambda A, y: ..., names={{"A[same set]": "gamma"}},
                  observables={{"gap": "gamma - rho"}},        numbers of a run
                  events={{"learned": "loss < 0.1*nu"}},       first time of a statement
                  claims=[Claim("Lemma 1", "The gap stays open.", "gap >= 0")])

examples:
  patchdyn theory --new mine                  write mine.py, a small example theory
  patchdyn theory mine.py
  patchdyn theory mine.py --at n=6 b=0.5 --json
  patchdyn theory mine.py --export latex      the derived equations; also text, python, jax
  patchdyn theory mine.py --run n=6 horizon=1e4       as: patchdyn run --theory mine.py --n 6 ...
  patchdyn theory mine.py --sweep grid.toml --out DIR  then: patchdyn map DIR --theory mine.py
  patchdyn theory mine.py --falsify 'a <= 1'          default: the claims of the file
  patchdyn theory mine.py --report DIR                HTML report of reduction, claims and a run

{EXIT_CODES}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE.py",
        help="file of the theory; it is executed as a Python program",
    )
    parser.add_argument("--new", metavar="NAME", help="write NAME.py, an example theory to edit")
    parser.add_argument(
        "--at",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="sizes and constants of the check (default: small ones)",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
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
        help="compute one trajectory; parameters as in `patchdyn run --theory FILE.py --help`",
    )
    instead.add_argument("--sweep", metavar="CONFIG.toml", help="compute a sweep; requires --out")
    instead.add_argument(
        "--falsify",
        nargs="?",
        const="",
        metavar="CONJECTURE",
        help="search for a counterexample to a conjecture (default: each claim of the file)",
    )
    instead.add_argument("--report", type=Path, metavar="DIR", help="write an HTML report")
    parser.add_argument("--out", metavar="DIR", help="folder of the results of --sweep")
    parser.add_argument("--quick", action="store_true", help="with --report: shorter searches")


def execute(args: argparse.Namespace) -> int:
    """Print the results; the exit code is 0 if the derived model agrees with the full model."""
    if (args.file is None) == (args.new is None):
        raise BadInput("give either FILE.py, or --new NAME to write an example theory")
    if args.new is not None:
        return _write_example(args.new)
    if (args.sweep is None) != (args.out is None):
        raise BadInput("--sweep CONFIG.toml and --out DIR are needed together")
    if args.at and not (
        args.export is args.run is args.sweep is args.falsify is args.report is None
    ):
        raise BadInput(
            "--at is not allowed with --export, --run, --sweep, --falsify or --report: "
            "it sets the sizes of the check"
        )
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
    from simulations.files import to_json
    from simulations.stated import overlap_findings
    from simulations.stated.digits import along_flow
    from simulations.stated.findings import described, examine
    from symbolic.overlaps import OverlapTheory
    from symbolic.theory.load import load_statement

    theory = load_statement(args.file)
    if isinstance(theory, OverlapTheory):
        result = overlap_findings.examine(theory, _values(args.at))
        print(to_json(result) if args.json else overlap_findings.described(result))
        return DONE if result.agrees else FAILED
    findings = examine(theory, _values(args.at))
    if findings.agrees:  # a wrong theory is not run
        findings = replace(findings, digits=along_flow(theory, findings.check.at))
    print(to_json(findings) if args.json else described(findings))
    return DONE if findings.agrees else FAILED


def _export(args: argparse.Namespace) -> int:
    """Print the derived equations of a theory that passes its check."""
    from simulations.stated.user_theory import load_theory

    print(load_theory(args.file).export(args.export), end="")
    return DONE


def _run(args: argparse.Namespace) -> int:
    """Compute one trajectory, as `patchdyn run --theory`."""
    from simulations import theories
    from simulations.commands.run import solve

    theory = theories.from_file(args.file)
    values: dict[str, Any] = {}
    for text in args.run:
        name, equals, value = text.partition("=")
        parameter = theory.parameter(name)
        if not equals or parameter is None:
            known = ", ".join(parameter.name for parameter in theory.parameters)
            raise BadInput(
                f"--run {text} is not allowed: it must be NAME=VALUE with one of {known}"
            )
        values[name] = value if parameter.dtype is str else _number("--run", text, value)
    return solve(theory, values, as_json=args.json)


def _sweep(args: argparse.Namespace) -> int:
    """Compute a sweep, as `patchdyn sweep --theory`."""
    from simulations.commands.sweep import compute

    return compute(Path(args.sweep), Path(args.out), Path(args.file))


def _falsify(args: argparse.Namespace) -> int:
    """Search for a counterexample, as `patchdyn falsify --theory`."""
    from simulations import theories
    from simulations.commands.falsify import search
    from symbolic.theory.load import load_statement

    claims = load_statement(args.file).claims
    conjectures = [args.falsify] if args.falsify else [claim.condition for claim in claims]
    if not conjectures:
        raise BadInput(f"{args.file} has no claims: give a conjecture as in --falsify 'a <= 1'")
    system = theories.from_file(args.file).name
    return max(search(text, system, as_json=args.json) for text in conjectures)


def _report(args: argparse.Namespace) -> int:
    """Write a report on the theory and its claims."""
    from simulations import theories
    from simulations.commands.reproduce import run_claims
    from simulations.reproduction.claim import Context
    from simulations.stated.report import claims_of

    claims = claims_of(theories.from_file(args.file))
    return run_claims(claims, args.report, Context(args.quick), force=True, workers=1)


def _write_example(name: str) -> int:
    """Write an example theory; raises BadInput if the file exists."""
    from simulations.files import write_bytes
    from simulations.stated.skeleton import SKELETON

    if not name.isidentifier():
        raise BadInput(f"--new {name} is not allowed: it must be a name of letters and digits")
    path = Path(f"{name}.py")
    if os.path.lexists(path):
        raise BadInput(f"--new {name} is not allowed: {name}.py exists")
    write_bytes(path, SKELETON.replace("NAME", name).encode())
    print(f"wrote {name}.py, a small example theory: edit it, then run patchdyn theory {name}.py")
    return DONE


def _values(pairs: list[str]) -> dict[str, float]:
    """Return a mapping from name to value for texts NAME=VALUE."""
    values: dict[str, float] = {}
    for text in pairs:
        name, value = pair("--at", text)
        values[name] = _number("--at", text, value)
    return values


def _number(flag: str, text: str, value: str) -> int | float:
    """Return a number; raises BadInput with the option that contains it."""
    try:
        return number(value)
    except argparse.ArgumentTypeError as error:
        raise BadInput(f"{flag} {text}: {error}") from None
