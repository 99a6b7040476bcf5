"""Observables, events and claims of a theory file, in the language of `symbolic.core.grammar`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from symbolic.core.grammar import RESERVED, FormulaError, parse
from symbolic.theory.errors import TheoryError, require, short_repr
from symbolic.theory.numbers import check_name, check_text

if TYPE_CHECKING:
    from symbolic.theory.theory import Theory

#: Names of the numbers of a run that are neither order parameters nor constants.
_OF_RUNS = ("time", "loss")
#: Further names of claims, which are about whole runs.
_OF_CLAIMS = (
    "horizon", "initial_loss", "gradient_bound", "largest_bound", "largest_gradient_bound",
)  # fmt: skip
#: Further names that an observable or event cannot have.
_TAKEN = frozenset({"t", *_OF_RUNS, *RESERVED})
#: Functions of a whole run; with one argument, `min` and `max` too.
_WHOLE = ("always", "eventually", "at_end")


@dataclass(frozen=True)
class Claim:
    """A claim about the runs of a theory, checked by ``patchdyn theory FILE --report``.

    Parameters
    ----------
    label
        Where the paper states it, such as ``"Theorem 2"``.
    statement
        The statement as text.
    condition
        The statement as a formula, such as ``"gamma >= rho"`` or ``"learned < forgotten"``.

    Raises
    ------
    TheoryError
        If an argument is no short text. The formula is checked when the file is loaded.

    Examples
    --------
    >>> from symbolic.theory import Claim
    >>> Claim("Theorem 2", "The gap never closes.", "gap >= 0").condition
    'gap >= 0'
    """

    label: str
    statement: str
    condition: str

    def __post_init__(self) -> None:
        for parameter, text in vars(self).items():
            check_text(f"{parameter} of a claim", text)

    @classmethod
    def of(cls, claim: Any) -> Claim:
        """Return a claim; a text is both statement and condition."""
        if isinstance(claim, cls):
            return claim
        check_text("claim", claim)
        return cls("claims of the file", claim, claim)


@dataclass(frozen=True)
class Formulas:
    """Parsed formulas of a theory: mappings from name to syntax tree, in the order of the file.

    Attributes
    ----------
    observables
        Numbers at each time of a run.
    events
        Statements about one time of a run.
    """

    observables: Mapping[str, ast.expr]
    events: Mapping[str, ast.expr]


def parsed(theory: Theory) -> Formulas:
    """Parse the observables, events and claims of a theory.

    An observable may use the observables before it, an event all of them, a claim events too.

    Raises
    ------
    TheoryError
        If a name or a formula is not allowed; one sentence that names it.
    """
    known = list(names_along_runs(theory))
    taken = _TAKEN | set(known)
    result: dict[str, dict[str, ast.expr]] = {"observables": {}, "events": {}}
    for argument, texts in (("observables", theory.observables), ("events", theory.events)):
        for name, text in texts.items():
            try:
                check_name(name)
            except TheoryError as error:
                raise TheoryError(f"{argument}: {error.sentence}", theory.location) from None
            require(
                name not in taken,
                f"{argument}: {name} is not allowed: this name means something else; choose "
                "another name",
                theory.location,
            )
            taken = taken | {name}
            result[argument][name] = _parsed(theory, argument, name, text, known)
            if argument == "observables":
                known.append(name)
    names = [*known, *theory.events, *_OF_CLAIMS]
    for claim in theory.claims:
        formula(theory, f"claims: {claim.label}", claim.condition, names, "statement")
    return Formulas(**result)


def names_along_runs(theory: Theory) -> Iterator[str]:
    """Yield the names that every formula may use: constants, order parameters, risk and time.

    Names of order parameters are `OrderParameter.identifier`; with ``0`` they are initial values.
    """
    yield from (size.name for size in theory.sizes)
    yield from theory.free_constants
    for order in theory.orders:
        yield from (order.identifier, f"{order.identifier}0")
    yield from _OF_RUNS


def _parsed(
    theory: Theory, argument: str, name: str, text: Any, known: Collection[str]
) -> ast.expr:
    """Return the syntax tree of an observable or event, or raise `TheoryError`."""
    is_event = argument == "events"
    tree = formula(
        theory, f"{argument}: {name}", text, known, "statement" if is_event else "number"
    )
    functions = _WHOLE if is_event else (*_WHOLE, "at_start")
    for node in ast.walk(tree):
        reason = ""
        match node:
            case ast.Call(func=ast.Name(id=function), args=arguments):
                if function in functions or (function in ("min", "max") and len(arguments) == 1):
                    reason = f"{function}(x) is no number of a single time"
            case ast.Compare(ops=operators) if is_event:
                if any(isinstance(operator, (ast.Eq, ast.NotEq)) for operator in operators):
                    reason = "the time of an equality depends on rounding; write <= or >="
        require(
            not reason,
            f"{argument}: {name} = {short_repr(text)} is not allowed: {reason}",
            theory.location,
        )
    return tree


def formula(theory: Theory, label: str, text: Any, known: Collection[str], wanted: str) -> ast.expr:
    """Return the syntax tree of a formula.

    Parameters
    ----------
    theory
        The theory.
    label
        Argument and name of the formula, for the error.
    text, known, wanted
        The formula, the names that it may use, and its type (`symbolic.core.grammar.parse`).

    Raises
    ------
    TheoryError
        If the formula is not allowed.
    """
    not_allowed = f"{label} = {short_repr(text)} is not allowed"
    require(isinstance(text, str), f"{not_allowed}: it must be text", theory.location)
    try:
        return parse(text, known, wanted)
    except FormulaError as error:
        raise TheoryError(
            f"{not_allowed}: {error.sentence} (character {error.at + 1})", theory.location
        ) from None
