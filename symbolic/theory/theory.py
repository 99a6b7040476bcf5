"""A theory as it is stated: sizes, parameters, data, loss; and what is derived from it."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from symbolic.theory.cost import require_affordable
from symbolic.theory.errors import here, require, shown
from symbolic.theory.expression import Array, Node
from symbolic.theory.lifted import OPAQUE, RAISED, Lift, Step
from symbolic.theory.numbers import Constant, Size, described, named
from symbolic.theory.orbit_data import Home, homes
from symbolic.theory.patterns import Orbit, orbits
from symbolic.theory.places import Pattern
from symbolic.theory.sets import Exchangeable, IndexSet
from symbolic.theory.tangent import Tangent
from symbolic.theory.tensors import Data, Gaussian, Source, Tensor
from symbolic.theory.tensors import Sequence as Tokens
from symbolic.theory.values import checked
from symbolic.theory.weights import centred
from symbolic.theory.wick import Mean


@dataclass(frozen=True)
class OrderParameter:
    """Entries of a tensor that stay equal: the symbol of their value, how many, where they start.

    ``orbit`` is its name as derived, such as ``A[same set]``; ``name`` that of the paper.
    """

    name: str
    orbit: str
    tensor: Tensor
    key: tuple[Any, ...]
    count: sp.Expr
    start: sp.Expr

    @property
    def symbol(self) -> sp.Symbol:
        """The symbol of its value in derived expressions."""
        return sp.Symbol(self.name)


@dataclass(frozen=True)
class Reduced:
    """What is derived for one configuration of the data, given up to symmetry, for all sizes.

    ``loss``, and ``gradient`` by order parameter: the derivative in one entry, d loss / d x over
    the number of entries, which is what gradient descent multiplies by minus the learning rate.
    Sums run over the families of `symbolic.theory.orbit_data`; ``steps`` holds what the names of
    values stand for.
    """

    loss: sp.Expr
    gradient: Mapping[str, sp.Expr]
    steps: Mapping[Any, Step]

    def expanded(self, expression: sp.Expr) -> sp.Expr:
        """Return an expression with its names written out."""
        named = [x for x in expression.atoms(AppliedUndef) if x.func in self.steps]
        if named:
            contents = {x: self.steps[x.func] for x in named}
            expression = expression.xreplace(
                {
                    x: self.expanded(step.value.xreplace(dict(zip(step.families, x.args))))
                    for x, step in contents.items()
                }
            )
        known = {OPAQUE[name]: getattr(sp, name) for name in ("exp", "log", "tanh")}
        expression = expression.replace(
            lambda x: x.func is RAISED, lambda x: sp.exp(x.args[0])
        )  # the largest score cancels
        return expression.replace(lambda x: x.func in known, lambda x: known[x.func](*x.args))


class Theory:
    """A theory stated in one file.

    Parameters
    ----------
    name, paper
        What it is called, and where it is from.
    sizes
        Every `Size` that it uses.
    parameters
        Every `Tensor` that is trained.
    data
        Its random inputs; none for a loss without data.
    loss
        A function of tensors and data by name (``lambda A, v, s: ...``) that returns an expression
        without free indices, for one configuration of the data; the risk is its mean.
    names
        Names of the paper for orbits, ``{"A[same set]": "gamma"}``.
    claims
        Conjectures about order parameters, ``"gamma >= rho"``.
    usual
        Sizes, constants and ``horizon`` where none are given, ``{"D": 16, "horizon": 1e6}``.

    Raises
    ------
    TheoryError
        One sentence with the line it is about.
    """

    def __init__(
        self,
        name: str,
        paper: str,
        *,
        sizes: Sequence[Size],
        parameters: Sequence[Tensor],
        loss: Callable[..., Node],
        data: Data | None = None,
        names: Mapping[str, str] | None = None,
        claims: Sequence[str] = (),
        usual: Mapping[str, float] | None = None,
    ) -> None:
        self.name, self.paper, self.where = name, paper, here()
        self.sizes, self.parameters = tuple(sizes), tuple(parameters)
        self.data = Data() if data is None else data
        described("name", name)
        described("paper", paper)
        require(
            re.fullmatch(r"[\w.-][\w .-]*", name) is not None,
            f"name = {shown(name)} is not allowed: a theory is named by letters and digits",
        )
        require(
            not isinstance(claims, str),
            f"claims = {shown(claims)} is not allowed: it must be a sequence of texts",
        )
        self.claims, self.usual = tuple(claims), dict(usual or {})
        for claim in self.claims:
            described("claim", claim)
        self.constants: tuple[Constant, ...] = ()  # `load_theory` takes those of the file
        self.digest: str | None = None  # of the file that `load_theory` read
        for what, kind, given in (
            ("sizes", Size, self.sizes),
            ("parameters", Tensor, self.parameters),
            ("data", Source, self.data),
        ):
            for x in given:
                require(
                    isinstance(x, kind),
                    f"{what}: {x!r} is not allowed: each must be a {kind.__name__}",
                )
        for size in self.sizes:
            require(
                size.divides is None or size.divides in [x.name for x in self.sizes],
                f"divides = {size.divides} of {size.name} is not allowed: it must be a size",
                size.where,
            )
        letters = [x.name for x in (*self.sizes, *self.parameters, *self.data)]
        twice = sorted({x for x in letters if letters.count(x) > 1})
        require(not twice, f"{', '.join(twice)} names two things: each name must be used once")
        require(len(self.parameters) > 0, "parameters = () is not allowed: at least one is trained")
        self._require_bare_tokens()
        self.loss = self._traced(loss)
        sets = [part.name for part in self.sets]
        twice = sorted({name for name in sets if sets.count(name) > 1})
        require(not twice, f"{', '.join(twice)} names two index sets: each must have its own name")
        self.orders = tuple(self._orders(dict(names or {})))

    def _require_bare_tokens(self) -> None:
        """Refuse what is indexed by the tokens of a sequence, or by sets inside its vocabulary."""
        for sequence in (x for x in self.data if isinstance(x, Tokens)):
            for array in (*self.parameters, *self.data):
                require(
                    array is sequence or sequence.over not in array.axes,
                    f"{array.name} over {sequence.over} is not allowed: the tokens of "
                    f"{sequence.name} carry no parameter and no other data",
                    array.where,
                )

    def _traced(self, loss: Callable[..., Node]) -> Node:
        """Return the expression of the loss, its arrays handed over by name."""
        arrays: dict[str, Array] = {x.name: x for x in (*self.parameters, *self.data)}
        wanted = list(inspect.signature(loss).parameters)
        for name in wanted:
            require(
                name in arrays,
                f"loss({', '.join(wanted)}) is not allowed: {name} is neither a "
                f"parameter nor data ({', '.join(arrays)})",
            )
        found = loss(**{name: arrays[name] for name in wanted})
        if isinstance(found, Array) and not found.axes:
            found = found[()]
        require(isinstance(found, Node), f"the loss is {shown(found)}: it must be an expression")
        free = ", ".join(found.axes)
        require(not free, f"the loss has the free index {free}: sum over it", found.where)
        return found

    def _orders(self, names: dict[str, str]) -> Iterator[OrderParameter]:
        """Yield the order parameters, tensors in the order in which they are given."""
        taken = {x.name for x in self.sizes} | self._reserved
        derived = [
            f"{tensor.name}[{orbit.name}]" if orbit.name else tensor.name
            for tensor in self.parameters
            for orbit in _free(tensor)
        ]
        for asked in names:
            require(
                asked in derived,
                f"names: {asked!r} is no order parameter; there are {', '.join(derived)}",
                self.where,
            )
        for tensor in self.parameters:
            for orbit in _free(tensor):
                raw = f"{tensor.name}[{orbit.name}]" if orbit.name else tensor.name
                name = names.get(raw, raw)
                if raw in names:
                    named(name)
                require(
                    name not in taken,
                    f"{name} names two things: each name must be used once",
                    self.where,
                )
                taken.add(name)
                start = _of_orbit(tensor.starts, orbit, tensor.start)
                yield OrderParameter(name, raw, tensor, orbit.key, orbit.count, start)

    @property
    def order_parameters(self) -> dict[str, sp.Expr]:
        """The order parameters, and how many entries each stands for, in the sizes."""
        return {order.name: order.count for order in self.orders}

    @property
    def start(self) -> dict[str, sp.Expr]:
        """Where each order parameter starts, in sizes and constants."""
        return {order.name: order.start for order in self.orders}

    @cached_property
    def homes(self) -> tuple[Home, ...]:
        """The larger sets of the theory and what lies inside them, with their data."""
        sets: dict[IndexSet, None] = {}
        for array in (*self.parameters, *self.data):
            sets.update(dict.fromkeys(array.axes))
        for x in self.nodes:
            sets.update(dict.fromkeys(x.axes.values()))
        parts = [part for where in sets for part in where.parts]
        parts += [part.inside for part in parts if part.inside is not None]
        return homes(parts, [x for x in self.data if not isinstance(x, Gaussian)])

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every node of the loss, arguments before what uses them."""
        return self.loss.all

    @cached_property
    def mean(self) -> Mean:
        """The mean of the loss over Gaussian data, an expression without them."""
        return Mean(self.loss)

    @cached_property
    def reduced(self) -> Reduced:
        """Loss and gradient per entry on the invariant manifold, for all sizes."""
        require_affordable(self)
        lift = Lift(self.homes, self.entries)
        gradient = {}
        loss = self.mean.loss
        for order in self.orders:
            slope = Tangent(order.tensor, order.key).of(loss)
            total = sp.Integer(0) if slope is None else lift.value(centred(slope), Pattern())
            gradient[order.name] = total / order.count
        found = Reduced(lift.value(centred(loss), Pattern()), gradient, lift.steps)
        values = [found.loss, *gradient.values(), *(step.value for step in found.steps.values())]
        singular = any(value.has(sp.nan, sp.zoo, sp.oo, -sp.oo) for value in values)
        require(not singular, "the loss or its gradient divides by 0 for all sizes", self.where)
        return found

    def export(self, form: str = "text") -> str:
        """Return the derived risk and its gradient, for all sizes.

        Parameters
        ----------
        form
            ``"text"``; ``"latex"``, a fragment; ``"python"`` or ``"jax"``, a module that imports
            only NumPy, or NumPy and JAX, and defines ``loss(x, **values)`` and
            ``gradient(x, **values)``.

        Raises
        ------
        TheoryError
            If the theory cannot be derived, or for another format.
        """
        from symbolic.theory.export import FORMATS

        require(
            form in FORMATS,
            f"export = {shown(form)} is not allowed: it must be one of {', '.join(FORMATS)}",
        )
        return FORMATS[form](self)

    @cached_property
    def entries(self) -> dict[tuple[Tensor, tuple[Any, ...]], sp.Expr]:
        """The value of each orbit of each tensor: a symbol, or what it is fixed at."""
        values = {}
        for tensor in self.parameters:
            for orbit in orbits(tensor.axes):
                fixed = _of_orbit(tensor.fixed, orbit, None)
                if fixed is not None:
                    values[tensor, orbit.key] = fixed
        for order in self.orders:
            values[order.tensor, order.key] = order.symbol
        return values

    @cached_property
    def unknown(self) -> dict[str, Constant]:
        """The constants that occur, by name; those that were not stated may be any number."""
        stated = {constant.name: constant for constant in self.constants}
        own = {size.name for size in self.sizes}
        found = set().union(*(expression.free_symbols for expression in self.scalars()))
        names = sorted(symbol.name for symbol in found if symbol.name not in own)
        for name in names:
            taken = name in self._reserved or name in self.order_parameters
            require(not taken, f"{name} names two things: each name must be used once", self.where)
        return {name: stated.get(name) or Constant(name) for name in names}

    def scalars(self) -> Iterator[sp.Expr]:
        """Yield every expression in sizes and constants."""
        yield from (x.detail for x in self.nodes if x.op in ("constant", "power"))
        for order in self.orders:
            yield order.start
        for tensor in self.parameters:
            yield from tensor.fixed.values()
        for source in self.data:
            yield from getattr(source, "law", {}).values()
            yield from getattr(source, "law", ())
            yield getattr(source, "size", sp.Integer(0))
            yield from getattr(source, "variances", ())
            yield from getattr(source, "chances", {}).values()
        for home in self.homes:
            yield home.size
            yield from (members.part.size for members in home.inner)

    def checked(self, values: Mapping[str, Any]) -> dict[str, float]:
        """Return sizes and constants as numbers, each within its domain.

        Raises
        ------
        TheoryError
            If one is missing, unknown or outside its domain, if a set has no whole number of
            elements, at least one, or if a number of the theory is singular or the law of the
            data is none there.
        """
        return checked(self, values)

    @property
    def _reserved(self) -> set[str]:
        """Names that derived expressions use for data."""
        arrays = {name for home in self.homes for name in home.arrays}
        return arrays | {str(home.families) for home in self.homes}

    @property
    def sets(self) -> tuple[Exchangeable, ...]:
        """Every exchangeable set, larger ones first."""
        roots = tuple(home.root for home in self.homes if home.root is not None)
        inner = (members.part for home in self.homes for members in home.inner)
        return roots + tuple(dict.fromkeys(inner))


def _free(tensor: Tensor) -> list[Orbit]:
    """Return the orbits of a tensor that are not fixed."""
    found = orbits(tensor.axes)
    names = ", ".join(sorted({word for orbit in found for word in _words(orbit)}))
    for what, given in (("is fixed on", tensor.fixed), ("starts on", tensor.starts)):
        for asked in given:
            require(
                any(asked in _words(orbit) for orbit in found),
                f"{tensor.name} {what} {asked!r}, which is no orbit: there are {names or 'none'}",
                tensor.where,
            )
    return [orbit for orbit in found if _of_orbit(tensor.fixed, orbit, None) is None]


def _words(orbit: Orbit) -> list[str]:
    """Return the names that an orbit goes by: its own, and without the parts of a union."""
    return [orbit.name, *orbit.name.split(", ", 1)[1:]] if orbit.name else []


def _of_orbit(table: Mapping[str, sp.Expr], orbit: Orbit, otherwise: Any) -> Any:
    """Return what a table says of an orbit."""
    return next((table[word] for word in _words(orbit) if word in table), otherwise)
