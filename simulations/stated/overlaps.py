"""A theory in overlaps at given sizes and constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy as sp
from flint import arb, ctx, fmpq

from dynamics.core.checks import finite
from dynamics.core.schedule import recorded_steps
from dynamics.overlaps.algebra import Algebra, Blocks
from dynamics.overlaps.formula import Coefficients, Expectations, Formula, Law
from dynamics.overlaps.one_pass import Noise, OnePassRisk
from dynamics.overlaps.risk import BITS, OverlapRisk
from dynamics.theory.risk import TheoryProblem
from symbolic.overlaps import OverlapTheory, Vectors
from symbolic.overlaps.expansion import Reduced
from symbolic.overlaps.export import equations
from symbolic.overlaps.gram import Pair
from symbolic.theory import TheoryError

if TYPE_CHECKING:
    from simulations.stated.overlap_check import OverlapCheck
    from simulations.stated.overlap_runs import StochasticRuns

#: Formats of exported modules.
MODULES = ("python", "jax")
#: Decimal digits of numbers that are not rational.
_DIGITS = 50


@dataclass(frozen=True)
class UserOverlapTheory:
    """A theory in overlaps that is stated in one file.

    Attributes
    ----------
    statement
        What the file states: vectors, data and loss.
    """

    statement: OverlapTheory

    @property
    def name(self) -> str:
        """Its name."""
        return self.statement.name

    @property
    def order_parameters(self) -> dict[str, sp.Expr]:
        """The number of pairs of vectors of each order parameter, in the sizes."""
        return self.statement.order_parameters

    @property
    def start(self) -> dict[str, sp.Expr]:
        """The initial value of each order parameter, in sizes and constants."""
        return self.statement.start

    @property
    def defaults(self) -> Mapping[str, float]:
        """Default values of sizes and constants."""
        return self.statement.defaults

    def check(self) -> OverlapCheck:
        """Compare descent on overlaps with descent on vectors at small sizes."""
        from simulations.stated.overlap_check import check

        return check(self.statement)

    def risk(self, **values: Any) -> OverlapRisk:
        """Return the risk at given sizes and constants, for the solvers.

        Parameters
        ----------
        values
            Sizes and constants; by default those of ``defaults``.

        Raises
        ------
        TheoryError
            If a value is missing or not allowed, or if the theory fails its check.
        """
        return risk(self.statement, self._checked(values))

    def _checked(self, values: Mapping[str, Any]) -> dict[str, float]:
        """Return validated sizes and constants of a theory that passes its check."""
        from simulations.stated.overlap_check import require_agreement

        theory = self.statement
        require_agreement(theory)
        used = {x.name for x in theory.sizes} | theory.free_constants.keys()
        defaults = {name: x for name, x in theory.defaults.items() if name in used}
        return theory.checked({**defaults, **values})

    def export(self, form: str = "text") -> str:
        """Return the derived loss for all sizes.

        Parameters
        ----------
        form
            ``"text"`` or ``"latex"``; ``"python"`` or ``"jax"``, a module that imports only NumPy,
            or JAX, and defines ``loss``, ``gradient`` and ``step``.

        Raises
        ------
        TheoryError
            If the theory fails its check, or for another form.
        """
        from simulations.stated.overlap_check import require_agreement

        require_agreement(self.statement)
        if form in MODULES:
            from simulations.stated.overlap_export import module

            return module(self.statement, form)
        return equations(self.statement, form)

    def one_pass(
        self, *, learning_rate: float, batch: int = 1, correction: bool = True, **values: Any
    ) -> OnePassRisk:
        """Return the risk whose gradient flow is the mean motion of SGD with one pass over data.

        Parameters
        ----------
        learning_rate
            Step size of the vectors; Saad and Solla's rate is ``learning_rate * d``.
        batch
            Number of data of each step.
        correction
            Whether to include the part of the noise that is not proportional to the dimension.
        values
            As for `risk`.

        Raises
        ------
        TheoryError
            As for `risk`; if there are vectors on a sphere; if the noise cannot be integrated.
        """
        return one_pass(
            self.statement,
            self._checked(values),
            learning_rate=learning_rate,
            batch=batch,
            correction=correction,
        )

    def stochastic_runs(
        self,
        *,
        learning_rate: float,
        steps: int,
        initial: Sequence[float] | None = None,
        records: int = 50,
        batch: int = 1,
        runs: int = 6,
        seed: int = 0,
        **values: Any,
    ) -> StochasticRuns:
        """Train vectors by SGD with new data at each step, to compare with `one_pass`.

        Parameters
        ----------
        learning_rate, steps, batch
            Step size of the vectors, number of steps, and number of data of each step.
        initial
            Initial overlaps; by default those of the theory.
        records
            Number of recorded steps, equally spaced.
        runs, seed
            Number of runs and root seed.
        values
            As for `risk`.

        Raises
        ------
        TheoryError, ParameterError
            As for `risk`; if there are vectors on a sphere; if a run diverges.
        """
        from simulations.stated.overlap_runs import stochastic_runs

        checked = self._checked(values)
        population = risk(self.statement, checked)
        start = population.problem.start
        if initial is not None:
            start = dict(zip(start, population.checked(initial)))
        return stochastic_runs(
            self.statement,
            checked,
            start,
            learning_rate=learning_rate,
            schedule=recorded_steps(steps, "linear", records),
            batch=batch,
            runs=runs,
            seed=seed,
        )


def risk(
    theory: OverlapTheory,
    values: Mapping[str, float],
    start: Mapping[str, float] | None = None,
) -> OverlapRisk:
    """Return the risk of a theory at checked sizes and constants.

    Parameters
    ----------
    theory, values
        The theory, and its sizes and constants.
    start
        Initial overlaps; by default those of the theory.
    """
    numbers = Numbers(values)
    require_dimension(theory, numbers)
    pairs = [x for x in theory.entries if numbers.integer(x.number)]
    entries = {pair: k for k, pair in enumerate(pairs)}
    orders = [pair for pair in theory.overlaps if pair in entries]
    names = [theory.names[pair] for pair in orders]
    if start is None:
        start = {name: finite(name, numbers.float(theory.start[name])) for name in names}
    problem = TheoryProblem(theory.name, dict(values), dict(start))
    fixed = [value for x in pairs if (value := theory.fixed(x)) is not None]
    with ctx.workprec(BITS):
        loss = formula([theory.reduced], numbers, entries)
        return OverlapRisk(
            problem, loss, tuple(map(numbers.ball, fixed)), algebra(theory, numbers, entries)
        )


def one_pass(
    theory: OverlapTheory,
    values: Mapping[str, float],
    start: Mapping[str, float] | None = None,
    *,
    learning_rate: float,
    batch: int = 1,
    correction: bool = True,
) -> OnePassRisk:
    """Return the risk whose gradient flow is the mean motion of one-pass SGD.

    Parameters
    ----------
    theory, values, start
        As for `risk`.
    learning_rate, batch
        Step size of the vectors, and number of data of each step.
    correction
        Whether to include the part of the second moments that is not proportional to the dimension.
        Without it, the flow is the limit of many dimensions.

    Raises
    ------
    TheoryError
        If there are vectors on a sphere, or if the second moments cannot be integrated.
    """
    population, numbers = risk(theory, values, start), Numbers(values)
    orders = list(population.order_parameters)
    pairs = [pair for pair in theory.noise if theory.names[pair] in orders]
    entries = {x: k for k, x in enumerate(x for x in theory.entries if numbers.integer(x.number))}
    sums = []
    for leading, rest in (theory.noise[pair] for pair in pairs):
        sums.append(leading._replace(terms=leading.terms + rest.terms) if correction else leading)
    with ctx.workprec(BITS):
        moments = formula(sums, numbers, entries)
    noise = Noise(tuple(orders.index(theory.names[pair]) for pair in pairs), moments)
    return OnePassRisk(population, noise, learning_rate, batch)


def require_dimension(theory: OverlapTheory, numbers: Numbers) -> None:
    """Raise `TheoryError` if a space has fewer dimensions than vectors."""
    for space in {x.space for x in theory.vectors}:
        dimension = numbers.float(space.dimension)
        count = sum(numbers.integer(x.number) for x in theory.vectors if x.space is space)
        if not dimension >= count:
            raise TheoryError(
                f"{space.name}: {space.dimension} = {dimension:g} dimensions for {count} vectors "
                "are not allowed: overlaps are independent only if the dimension is at least the "
                "number of vectors",
                theory.location,
            )


class Numbers:
    """Values of expressions in the sizes and constants of a theory.

    Parameters
    ----------
    values
        Mapping from names to values, which are taken as exact.
    """

    def __init__(self, values: Mapping[str, float]) -> None:
        self._values = {
            sp.Symbol(name): sp.Rational(*Fraction(x).as_integer_ratio())
            for name, x in values.items()
        }

    def exact(self, expression: sp.Expr) -> sp.Expr:
        """Return the exact value of an expression."""
        return sp.sympify(expression, strict=True).subs(self._values)

    def integer(self, expression: sp.Expr) -> int:
        """Return the value of a number of elements."""
        return int(self.exact(expression))

    def float(self, expression: sp.Expr) -> float:
        """Return the value as a float."""
        return float(self.exact(expression))

    def ball(self, expression: sp.Expr) -> arb:
        """Return a ball around the value."""
        value = self.exact(expression)
        if value.is_Rational:
            return arb(fmpq(int(value.p), int(value.q)))
        middle = arb(str(value.evalf(_DIGITS)))
        return middle + abs(middle) * arb(0, 10.0 ** (5 - _DIGITS))


def formula(many: Sequence[Reduced], numbers: Numbers, entries: Mapping[Pair, int]) -> Formula:
    """Return sums of products of the same expectations at given sizes and constants."""

    def coefficients(pairs: tuple[tuple[Pair, sp.Expr], ...]) -> Coefficients:
        values = ((entries[x], numbers.ball(c)) for x, c in pairs if x in entries)
        return tuple((entry, c) for entry, c in values if c != 0)

    sums = [[(c, own) for e, own in x.terms if (c := numbers.ball(e)) != 0] for x in many]
    used = sorted({k for terms in sums for _, own in terms for k in own})
    laws: dict[Any, int] = {}
    members = []
    for x in (many[0].components[k] for k in used):
        families, monomials = zip(*x.functions)
        law = laws.setdefault((families, x.mean, x.covariance), len(laws))
        members.append((law, monomials, numbers.integer(x.power)))
    converted = [
        Law(
            families,
            tuple(numbers.ball(constant) for constant, _ in mean),
            tuple(coefficients(pairs) for _, pairs in mean),
            tuple(tuple(map(coefficients, row)) for row in covariance),
        )
        for families, mean, covariance in laws
    ]
    order = {k: number for number, k in enumerate(used)}
    terms = (tuple((c, tuple(order[k] for k in own)) for c, own in x) for x in sums)
    return Formula(Expectations(tuple(converted), tuple(members)), tuple(terms))


def algebra(
    theory: OverlapTheory,
    numbers: Numbers,
    entries: Mapping[Pair, int],
    has_numbers: bool = True,
) -> Algebra:
    """Return the equivariant matrices of a theory, without irreducible blocks for symbols."""
    pairs = [pair for pair in theory.pairs if pair.unordered in entries]
    stored = {theory.pairs.index(pair): k for k, pair in enumerate(pairs)}
    index = {pair: k for k, pair in enumerate(pairs)}
    products = []
    for result, left, right, count in theory.multiplication():
        if {result, left, right} <= stored.keys() and (number := numbers.integer(count)):
            products.append((stored[result], stored[left], stored[right], number))

    def on_sphere(pair: Pair) -> bool:
        return pair.is_diagonal and isinstance(pair.first, Vectors) and pair.first.sphere

    orders = [pair for pair in entries if theory.fixed(pair) is None]
    return Algebra(
        products=tuple(products),
        entry=tuple(entries[pair.unordered] for pair in pairs),
        transposed=tuple(index[pair.transposed] for pair in pairs),
        diagonal=tuple(pair.is_diagonal for pair in pairs),
        trained=tuple(isinstance(pair.first, Vectors) for pair in pairs),
        sphere=tuple(map(on_sphere, pairs)),
        number=tuple(numbers.integer(pair.number) for pair in entries),
        representative=tuple(index[pair] for pair in orders),
        blocks=_blocks(theory, numbers, index) if has_numbers else Blocks((), ()),
    )


def _blocks(theory: OverlapTheory, numbers: Numbers, index: Mapping[Pair, int]) -> Blocks:
    """Return the irreducible blocks of the Gram matrix."""
    standard = []
    for over in {family.over for family in theory.vectors if family.over is not None}:
        if numbers.integer(over.size) < 2:
            continue
        for space in {family.space for family in theory.vectors if family.over is over}:
            members = [x for x in theory.vectors if x.over is over and x.space is space]
            orbits = [
                [[index[Pair(x, y, relation)] for y in members] for x in members]
                for relation in ("same", "other")
            ]
            standard.append(tuple(orbits))
    rows = []
    for x in theory.vectors:
        row = []
        for y in theory.vectors:
            shared = x.over is not None and x.over is y.over
            same = index.get(Pair(x, y, "same" if shared else ""), -1)
            other = index.get(Pair(x, y, "other"), -1) if shared else -1
            row.append((same, other, numbers.float(x.number), numbers.float(y.number)))
        rows.append(tuple(row))
    return Blocks(tuple(standard), tuple(rows))  # type: ignore[arg-type]
