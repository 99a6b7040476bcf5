"""The class `Theory`, and the order parameters and gradient derived from it."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import sympy as sp

from symbolic.theory import frames
from symbolic.theory.cost import require_affordable
from symbolic.theory.errors import calling_line, require, short_repr
from symbolic.theory.expression import Array, Node
from symbolic.theory.formulas import Claim, Formulas, parsed
from symbolic.theory.lifted import Lift
from symbolic.theory.numbers import RANDOM, Constant, Size, check_name, check_text
from symbolic.theory.orbit_data import OuterSet, outer_sets
from symbolic.theory.orbits import Orbit, orbits
from symbolic.theory.patterns import Pattern
from symbolic.theory.reduced import OrderParameter, Reduced
from symbolic.theory.sets import Exchangeable, IndexSet, Ordered, Signed
from symbolic.theory.sources import Data, Gaussian, Source
from symbolic.theory.sources import Sequence as Tokens
from symbolic.theory.tangent import Tangent
from symbolic.theory.tensors import Tensor
from symbolic.theory.values import checked
from symbolic.theory.weights import centred
from symbolic.theory.wick import Mean
from symbolic.theory.words import Joint

#: Answer to an orbit named for a tensor whose orbit has no name.
_UNNAMED = "all entries of {0} are one orbit without a name; give one number, as in start=0.1"


class Theory:
    """A theory: index sets, data, trained parameters and the loss.

    Parameters
    ----------
    name
        Letters, digits, spaces, ``.`` and ``-``.
    paper
        Source of the theory.
    sizes
        Every `Size` that it uses.
    parameters
        Every `Tensor` that is trained.
    data
        Its random inputs; ``None`` for a loss without data.
    loss
        Function with tensors and data as arguments (``lambda A, v, s: ...``) that returns the loss
        of one configuration of the data, an expression without free indices. The risk is its mean
        over the data.
    names
        Mapping from derived names of order parameters to names of the paper, such as
        ``{"A[same set]": "gamma"}``.
    claims
        Claims about runs: each a `Claim`, or only its formula, such as ``"gamma >= rho"``.
    defaults
        Default sizes, constants and ``horizon``, such as ``{"D": 16, "horizon": 1e6}``.
    usual
        Former name of ``defaults``.
    observables
        Further numbers along a run: mapping from name to formula, such as ``{"gap": "a - b"}``.
    events
        Times of a run: mapping from name to a statement, such as ``{"learned": "loss < 0.1"}``. The
        event is the first time at which it holds.

    Attributes
    ----------
    orders
        The order parameters, a tuple of `OrderParameter`.
    constants
        Constants defined in the file, set by `load_theory`.
    digest
        SHA-256 digest of the file, set by `load_theory`; otherwise ``None``.

    Raises
    ------
    TheoryError
        If an argument is not allowed; one sentence that begins with the line.

    Examples
    --------
    A least-squares problem with one order parameter:

    >>> from symbolic.theory import Data, Gaussian, Signed, Size, Tensor, Theory
    >>> n = Size("n")
    >>> coordinate = Signed("coordinate", n)
    >>> x = Gaussian("x", coordinate)
    >>> W = Tensor("W", (coordinate, coordinate))
    >>> def loss(W, x):
    ...     return 0.5 * ((x["i"] - (W["i", "j"] * x["j"]).sum("j")) ** 2).sum("i")
    >>> theory = Theory(
    ...     "identity", "example", sizes=(n,), parameters=(W,), data=Data(x), loss=loss,
    ...     names={"W[diagonal]": "w"},
    ... )
    >>> theory.order_parameters
    {'w': n}
    >>> theory.reduced.gradient["w"].factor()
    w - 1
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
        claims: Sequence[Claim | str] = (),
        defaults: Mapping[str, float] | None = None,
        usual: Mapping[str, float] | None = None,
        observables: Mapping[str, str] | None = None,
        events: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.paper, self.location = name, paper, calling_line()
        self.sizes, self.parameters = tuple(sizes), tuple(parameters)
        self.data = Data() if data is None else data
        check_text("name", name)
        check_text("paper", paper)
        require(
            re.fullmatch(r"[\w.-][\w .-]*", name) is not None,
            f"name = {short_repr(name)} is not allowed: a theory is named by letters and digits",
        )
        require(
            not isinstance(claims, str),
            f"claims = {short_repr(claims)} is not allowed: it must be a sequence of claims",
        )
        self.claims, self.defaults = tuple(map(Claim.of, claims)), dict(defaults or usual or {})
        self.observables, self.events = dict(observables or {}), dict(events or {})
        self.constants: tuple[Constant, ...] = ()
        self.digest: str | None = None
        for argument, cls, values in (
            ("sizes", Size, self.sizes),
            ("parameters", Tensor, self.parameters),
            ("data", Source, self.data),
        ):
            for x in values:
                require(
                    isinstance(x, cls),
                    f"{argument}: {x!r} is not allowed: each must be a {cls.__name__}",
                )
        for size in self.sizes:
            require(
                size.divides is None or size.divides in [x.name for x in self.sizes],
                f"divides = {size.divides} of {size.name} is not allowed: it must be a size",
                size.location,
            )
        duplicates = _duplicates(x.name for x in (*self.sizes, *self.parameters, *self.data))
        require(not duplicates, f"{duplicates} names two things: each name must be used once")
        require(len(self.parameters) > 0, "parameters = () is not allowed: at least one is trained")
        self._require_bare_tokens()
        self.loss = self._traced(loss)
        self._require_plain_if_ordered()
        duplicates = _duplicates(part.name for part in self.sets)
        require(not duplicates, f"{duplicates} names two index sets: each must have its own name")
        self.orders = tuple(self._orders(dict(names or {})))

    def _require_bare_tokens(self) -> None:
        """Raise `TheoryError` if tokens of a sequence index a parameter or other data."""
        for sequence in (x for x in self.data if isinstance(x, Tokens)):
            for array in (*self.parameters, *self.data):
                require(
                    array is sequence or sequence.over not in array.axes,
                    f"{array.name} over {sequence.over} is not allowed: the tokens of "
                    f"{sequence.name} carry no parameter and no other data, because only the "
                    f"number of tokens at each {sequence.vocabulary} enters; let {array.name} "
                    f"depend on {sequence.vocabulary}, or replace the sequence by a Colouring of "
                    f"{sequence.over}, whose elements may carry parameters",
                    array.location,
                )

    def _require_plain_if_ordered(self) -> None:
        """Raise `TheoryError` if ordered positions occur with data or sets not supported there."""
        if self.is_framed:
            frames.require_contracted(self)
            return
        if not self.is_ordered:
            return
        for source in self.data:
            require(
                isinstance(source, Joint),
                f"{source.name} is not allowed in a theory on ordered positions: its data must be "
                "one Words or Chain",
                self.location,
            )
        require(
            len(self.data) <= 1,
            f"data = {', '.join(x.name for x in self.data)} is not allowed in a theory on ordered "
            "positions: there must be at most one sequence",
            self.location,
        )
        for part in self.sets:
            require(
                part.inside is None and not part.signed,
                f"{part} is not allowed in a theory on ordered positions: it must be an "
                "exchangeable set that lies in no other",
                part.location,
            )

    def _traced(self, loss: Callable[..., Node]) -> Node:
        """Return the expression that the function ``loss`` builds."""
        arrays: dict[str, Array] = {x.name: x for x in (*self.parameters, *self.data)}
        arguments = list(inspect.signature(loss).parameters)
        for name in arguments:
            require(
                name in arrays,
                f"loss({', '.join(arguments)}) is not allowed: {name} is neither a "
                f"parameter nor data ({', '.join(arrays)})",
            )
        value = loss(**{name: arrays[name] for name in arguments})
        if isinstance(value, Array) and not value.axes:
            value = value[()]
        require(
            isinstance(value, Node), f"the loss is {short_repr(value)}: it must be an expression"
        )
        free = ", ".join(value.axes)
        require(not free, f"the loss has the free index {free}: sum over it", value.location)
        return value

    def _orders(self, names: dict[str, str]) -> Iterator[OrderParameter]:
        """Yield the order parameters, in the order of the tensors."""
        taken = {x.name for x in self.sizes} | self._reserved
        derived = [
            f"{tensor.name}[{orbit.name}]" if orbit.name else tensor.name
            for tensor in self.parameters
            for orbit in _free(tensor)
        ]
        for key in names:
            require(
                key in derived,
                f"names: {key!r} is no order parameter; there are {', '.join(derived)}",
                self.location,
            )
        for tensor in self.parameters:
            for orbit in _free(tensor):
                derived_name = f"{tensor.name}[{orbit.name}]" if orbit.name else tensor.name
                name = names.get(derived_name, derived_name)
                if derived_name in names:
                    check_name(name)
                require(
                    name not in taken,
                    f"{name} names two things: each name must be used once",
                    self.location,
                )
                taken.add(name)
                start = _lookup(tensor.starts, orbit, tensor.start)
                yield OrderParameter(name, derived_name, tensor, orbit.key, orbit.count, start)

    @property
    def order_parameters(self) -> dict[str, sp.Expr]:
        """Mapping from order parameters to their multiplicities, expressions in the sizes."""
        return {order.name: order.count for order in self.orders}

    @cached_property
    def is_ordered(self) -> bool:
        """Whether an index set is ordered."""
        return any(isinstance(part, Ordered) for part in self.sets)

    @cached_property
    def is_framed(self) -> bool:
        """Whether data are vectors of a random orthonormal frame."""
        return frames.is_framed(self)

    @property
    def is_random(self) -> bool:
        """Whether an order parameter has a random start."""
        return any(order.scale is not None for order in self.orders)

    @property
    def start(self) -> dict[str, sp.Expr]:
        """Mapping from order parameters to initial values, in sizes and constants."""
        return {order.name: order.start for order in self.orders}

    @cached_property
    def outer_sets(self) -> tuple[OuterSet, ...]:
        """The outer sets of the theory with the sets inside them and their data."""
        sets: dict[IndexSet, None] = {}
        for array in (*self.parameters, *self.data):
            sets.update(dict.fromkeys(array.axes))
        for x in self.nodes:
            sets.update(dict.fromkeys(x.axes.values()))
        parts = [part for index_set in sets for part in index_set.parts]
        parts += [part.inside for part in parts if part.inside is not None]
        return outer_sets(
            parts, [x for x in self.data if not isinstance(x, (frames.Frame, Gaussian, Joint))]
        )

    @cached_property
    def formulas(self) -> Formulas:
        """Parsed observables and events; raises `TheoryError` if one is not allowed."""
        return parsed(self)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every node of the loss in topological order, arguments first."""
        return self.loss.all

    @cached_property
    def mean(self) -> Mean:
        """Mean of the loss over Gaussian data."""
        return Mean(self.loss)

    @cached_property
    def reduced(self) -> Reduced:
        """Loss and gradient per entry on the invariant manifold, for all sizes.

        Raises
        ------
        TheoryError
            If the derivation is too expensive, or divides by 0 for all sizes; for a theory on
            ordered positions, whose code is emitted directly (`symbolic.theory.loops`).
        """
        require(
            not self.is_ordered,
            "formulas in the order parameters of a theory on ordered positions are not available: "
            "its loss and gradient are sums over positions; use export",
            self.location,
        )
        require_affordable(self)
        lift = Lift(self.outer_sets, self.entries)
        gradient = {}
        loss = self.mean.loss
        for order in self.orders:
            slope = Tangent(order.tensor, order.key).of(loss)
            total = sp.Integer(0) if slope is None else lift.value(centred(slope), Pattern())
            gradient[order.name] = total / order.count
        reduced = Reduced(lift.value(centred(loss), Pattern()), gradient, lift.steps)
        values = [reduced.loss, *gradient.values(), *(step.value for step in lift.steps.values())]
        singular = any(value.has(sp.nan, sp.zoo, sp.oo, -sp.oo) for value in values)
        require(not singular, "the loss or its gradient divides by 0 for all sizes", self.location)
        return reduced

    @property
    def number_of_steps(self) -> int:
        """Number of named values of the derivation; on ordered positions, of expressions."""
        return len(self.mean.loss.all if self.is_ordered else self.reduced.steps)

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
            f"export = {short_repr(form)} is not allowed: it must be one of {', '.join(FORMATS)}",
        )
        return FORMATS[form](self)

    @cached_property
    def entries(self) -> dict[tuple[Tensor, tuple[Any, ...]], sp.Expr]:
        """Mapping from tensor and orbit key to the symbol or fixed value of the entries."""
        values = {}
        for tensor in self.parameters:
            for orbit in orbits(tensor.axes):
                fixed = _lookup(tensor.fixed, orbit, None)
                if fixed is not None:
                    values[tensor, orbit.key] = fixed
        for order in self.orders:
            values[order.tensor, order.key] = order.symbol
        return values

    @cached_property
    def free_constants(self) -> dict[str, Constant]:
        """Mapping from names to the constants that occur; undeclared ones can be any number."""
        declared = {constant.name: constant for constant in self.constants}
        sizes = {size.name for size in self.sizes}
        symbols = set().union(*(expression.free_symbols for expression in self.scalars()))
        names = sorted(symbol.name for symbol in symbols if symbol.name not in sizes)
        for name in names:
            taken = name in self._reserved or name in self.order_parameters
            require(
                not taken, f"{name} names two things: each name must be used once", self.location
            )
        return {name: declared.get(name) or Constant(name) for name in names}

    def scalars(self) -> Iterator[sp.Expr]:
        """Yield every expression in sizes and constants that occurs in the theory."""
        yield from (x.detail for x in self.nodes if x.op in ("constant", "power"))
        for parts in (x.detail for x in self.nodes if x.op == "part"):
            yield from parts.values.values()
        for order in self.orders:
            yield order.start if order.scale is None else order.scale
        for tensor in self.parameters:
            yield from tensor.fixed.values()
        for source in self.data:
            yield from getattr(source, "law", {}).values()
            yield from getattr(source, "law", ())
            yield getattr(source, "size", sp.Integer(0))
            yield from getattr(source, "variances", ())
            yield from getattr(source, "numbers", ())
            yield from getattr(source, "probabilities", {}).values()
        for outer_set in self.outer_sets:
            yield outer_set.size
            yield from (inner_set.part.size for inner_set in outer_set.inner)

    def checked(self, values: Mapping[str, Any]) -> dict[str, float]:
        """Return validated sizes and constants.

        Parameters
        ----------
        values
            Mapping from the names of all sizes and constants to numbers.

        Returns
        -------
        dict
            Sizes as int, constants as float.

        Raises
        ------
        TheoryError
            If a value is missing, unknown or outside its domain; if the size of a set is not a
            positive integer; if a number of the theory is singular; or if the probabilities or
            sizes of the data are not allowed.
        """
        return checked(self, values)

    @property
    def _reserved(self) -> set[str]:
        """Names of data in derived expressions."""
        arrays = {name for outer_set in self.outer_sets for name in outer_set.arrays}
        return arrays | {str(outer_set.families) for outer_set in self.outer_sets}

    @property
    def sets(self) -> tuple[Exchangeable, ...]:
        """Every exchangeable set, outer sets first."""
        roots = tuple(outer_set.root for outer_set in self.outer_sets if outer_set.root is not None)
        inner = (inner_set.part for outer_set in self.outer_sets for inner_set in outer_set.inner)
        return roots + tuple(dict.fromkeys(inner))


def _duplicates(names: Iterable[str]) -> str:
    """Return the names that occur more than once, separated by commas."""
    return ", ".join(sorted(name for name, count in Counter(names).items() if count > 1))


def _free(tensor: Tensor) -> list[Orbit]:
    """Return the orbits of a tensor that are not fixed."""
    all_orbits = orbits(tensor.axes)
    names = ", ".join(sorted({name for orbit in all_orbits for name in _names(orbit)}))
    signed = [part.name for x in tensor.axes for part in x.parts if isinstance(part, Signed)]
    zero = f"sign changes of {signed[0]} keep all other entries at 0" if signed else ""
    for verb, values in (("is fixed on", tensor.fixed), ("starts on", tensor.starts)):
        for key in values:
            require(
                any(key in _names(orbit) for orbit in all_orbits),
                f"{tensor.name} {verb} {key!r}, which is no orbit: "
                + (f"there are {names}" if names else _UNNAMED.format(tensor.name))
                + (f"; {zero}" if zero else ""),
                tensor.location,
            )
    free = [orbit for orbit in all_orbits if _lookup(tensor.fixed, orbit, None) is None]
    for key, start in (*tensor.starts.items(), ("", tensor.start)):
        fixed = not any(key in ("", *_names(orbit)) for orbit in free)
        require(
            start.func is not RANDOM or not fixed,
            f"start = {start} of {tensor.name}{f' on {key!r}' if key else ''} is not allowed: "
            + (f"sign changes of {signed[0]} keep" if not all_orbits else "the file fixes")
            + " these entries",
            tensor.location,
        )
    return free


def _names(orbit: Orbit) -> list[str]:
    """Return the names of an orbit: the full one, and the one without the parts of a union."""
    return [orbit.name, *orbit.name.split(", ", 1)[1:]] if orbit.name else []


def _lookup(table: Mapping[str, sp.Expr], orbit: Orbit, default: Any) -> Any:
    """Return the value of an orbit in a table with orbit names as keys."""
    return next((table[name] for name in _names(orbit) if name in table), default)
