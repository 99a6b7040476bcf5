"""What a claim about a stated theory measures: its reduction, held against the paper and oracle."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
import xarray

from simulations.reproduction.measured import Measured, measured_at
from simulations.stated.findings import Findings, examine
from symbolic.theory import Theory

#: Places that the figure shows.
PANELS = 2
#: Largest entry of one space of forms outside the other.
SAME_FORMS = 1e-6


@dataclass(frozen=True)
class Evidence:
    """A theory with some ``sizes`` at several places, and what its paper says of it.

    ``orders`` is whether names and numbers of entries are the paper's, for all sizes; ``forms`` at
    each place whether the linear forms that are conserved are those expected; ``values`` how many
    values the gradient alone should find there.
    """

    sizes: tuple[str, ...]
    found: tuple[Findings, ...]
    orders: bool
    forms: tuple[bool, ...]
    values: tuple[int, ...]

    @property
    def discovered(self) -> bool:
        """Whether the gradient alone gives as many values as expected, orbits within them."""
        around = [one.manifold for one in self.found]
        return all(x.agrees and x.discovered == number for x, number in zip(around, self.values))

    @property
    def agrees(self) -> bool:
        """Whether the reduced model is the full one, everywhere."""
        return bool(self.found) and all(one.check.agrees for one in self.found)

    @property
    def difference(self) -> float:
        """The largest difference between the reduced and the full model."""
        return max(max(one.check.difference, one.check.spread) for one in self.found)

    @property
    def holds(self) -> bool:
        """Whether all of it is as stated."""
        return self.orders and self.agrees and self.discovered and all(self.forms)


def gather(
    theory: Theory,
    places: Sequence[Mapping[str, float]],
    orders: Callable[..., Mapping[str, Any]],
    conserved: Callable[..., Sequence[Mapping[str, Any]]],
    values: Callable[..., int] | None = None,
) -> Evidence:
    """Return what is found at places, beside what is expected.

    Parameters
    ----------
    theory
        What is stated.
    places
        Sizes and constants.
    orders, conserved
        Functions of the sizes, which may be symbols: number of entries by order parameter; linear
        forms that the flow conserves, coefficients by order parameter.
    values
        How many values should move, a function of the sizes; ``None``: as many as there are orbits.
    """
    derived, sizes = theory.order_parameters, [size.name for size in theory.sizes]
    entries = orders(*map(sp.Symbol, sizes))
    same = set(derived) == set(entries) and all(
        sp.expand(derived[name] - count) == 0 for name, count in entries.items()
    )
    found = tuple(examine(theory, place) for place in places)
    names, forms = list(derived), []
    for one in found:
        expected = [
            [float(form.get(name, 0.0)) for name in names]
            for form in conserved(*(one.check.at[size] for size in sizes))
        ]
        seen = [[form[name] for name in names] for form in one.linear]
        forms.append(_one_space(np.array(expected), np.array(seen), len(names)))
    number = [
        values(*(one.check.at[size] for size in sizes)) if values else one.manifold.orbits
        for one in found
    ]
    return Evidence(tuple(sizes), found, same, tuple(forms), tuple(number))


def _one_space(one: np.ndarray, other: np.ndarray, n: int) -> bool:
    one, other = one.reshape(-1, n), other.reshape(-1, n)
    if len(one) != len(other):
        return False
    basis = np.linalg.qr(one.T)[0]
    rest = other - (other @ basis) @ basis.T
    return bool(np.abs(rest).max(initial=0.0) <= SAME_FORMS * np.abs(other).max(initial=1.0))


def numbers(evidence: Evidence) -> list[Measured]:
    """Return the rows of the report."""
    rows = measured_at(
        {},
        (
            "orders_as_stated",
            "order parameters and entries are the paper's, for all sizes",
            evidence.orders,
        ),
        ("largest_difference", "largest difference from the full model", evidence.difference),
    )
    for one, forms in zip(evidence.found, evidence.forms):
        around, check = one.manifold, one.check
        rows += measured_at(
            _sizes(evidence, one),
            ("entries", "entries of the full model", check.entries),
            ("configurations", "configurations of its data", check.configurations),
            ("data_orbits", "configurations up to symmetry", check.data_orbits),
            ("difference", "loss and gradient, reduced - full, relative", check.difference),
            ("discovered", "values that move, from the gradient alone", around.discovered),
            ("orbits", "orbits that are trained", around.orbits),
            ("conserved", "conserved linear and quadratic forms", len(one.conserved)),
            ("conserved_as_stated", "linear ones are those expected", forms),
            ("dimension", "dimensions of the smallest space that the flow stays in", one.dimension),
            (
                "growth",
                "fastest growth of a deviation at the start",
                around.growth,
                "1 / flow time",
            ),
        )
    return rows


def slopes(evidence: Evidence) -> xarray.Dataset:
    """Return what the figure draws at the first places: slopes of entries, and those derived."""
    shown = evidence.found[:PANELS]
    slope: list[float] = []
    order: list[int] = []
    place: list[int] = []
    derived = []
    words = [", ".join(f"{name}={x}" for name, x in _sizes(evidence, one).items()) for one in shown]
    for number, one in enumerate(shown):
        names = [x.name for x in one.order_parameters]
        derived.append([one.check.derived[name] for name in names])
        for name, values in one.check.slopes.items():
            slope += values
            order += [names.index(name)] * len(values)
            place += [number] * len(values)
    return xarray.Dataset(
        {
            "slope": ("entry", np.array(slope)),
            "order": ("entry", np.array(order)),
            "place": ("entry", np.array(place)),
            "derived": (("place_number", "name"), derived),
        },
        coords={"name": names, "at": ("place_number", words)},
    )


def _sizes(evidence: Evidence, one: Findings) -> dict[str, int]:
    return {name: int(one.check.at[name]) for name in evidence.sizes}
