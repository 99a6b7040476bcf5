"""Evidence for the reduction of a theory in a file: compared with the paper and the full model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
import xarray

from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.stated.check import AGREES
from simulations.stated.findings import Findings, examine
from symbolic.theory import Theory

if TYPE_CHECKING:
    import pandas as pd

#: Places that the figure shows.
PANELS = 2
#: Largest entry of one space of forms outside the other.
SAME_FORMS = 1e-6


@dataclass(frozen=True)
class Evidence:
    """A theory with some ``sizes`` at several problems, and what its paper states.

    ``orders`` is whether names and numbers of entries are the paper's, for all sizes; ``forms`` for
    each problem whether the linear forms that are conserved are those expected; ``values`` how many
    values the gradient alone should find there.
    """

    sizes: tuple[str, ...]
    found: tuple[Findings, ...]
    orders: bool
    forms: tuple[bool, ...]
    values: tuple[int, ...]

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the rows of the tables of `layouts`."""
        layout = layouts(self.sizes)
        rows = [
            {
                **_sizes(self, each),
                "entries": each.check.entries,
                "configurations": each.check.configurations,
                "data_orbits": each.check.data_orbits,
                "difference": max(each.check.difference, each.check.spread),
                "agrees": each.check.agrees,
                "discovered": each.manifold.discovered,
                "expected": number,
                "one_value": each.manifold.agrees,
                "orbits": each.manifold.orbits,
                "conserved": len(each.conserved),
                "conserved_as_stated": forms,
                "dimension": each.dimension,
                "growth": each.manifold.growth,
            }
            for each, forms, number in zip(self.found, self.forms, self.values)
        ]
        return {
            "all sizes": layout["all sizes"].frame([{"orders_as_stated": self.orders}]),
            "problems": layout["problems"].frame(rows),
        }


def layouts(sizes: Sequence[str]) -> dict[str, Table]:
    """Return the layout of the tables of a theory with these sizes."""
    return {
        "all sizes": Table(
            index=(),
            columns={
                "orders_as_stated": Column("order parameters and entries are the paper's"),
            },
            strict={"the order parameters are the paper's, for all sizes": _as_stated},
        ),
        "problems": Table(
            index=tuple(sizes),
            columns={
                "entries": Column("entries of the full model"),
                "configurations": Column("configurations of its data"),
                "data_orbits": Column("configurations up to symmetry"),
                "difference": Column("loss and gradient, reduced - full, relative", atol=AGREES),
                "agrees": Column("the reduced model agrees with the full one"),
                "discovered": Column("values that move, from the gradient alone"),
                "expected": Column("values that should move"),
                "one_value": Column("each orbit has one value"),
                "orbits": Column("orbits that are trained"),
                "conserved": Column("conserved linear and quadratic forms"),
                "conserved_as_stated": Column("linear ones are those expected"),
                "dimension": Column("dimensions of the smallest space that the flow stays in"),
                "growth": Column("fastest growth of a deviation at the start", "1 / flow time"),
            },
            strict={
                "the reduction is the full model": lambda t: t.agrees,
                "the gradient alone finds as many values": lambda t: t.discovered == t.expected,
                "each orbit has one value": lambda t: t.one_value,
                "the conserved linear forms are those stated": lambda t: t.conserved_as_stated,
            },
        ),
    }


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    problems = tables["problems"].data
    return {
        "problems": len(problems),
        "least": problems.discovered.min(),
        "most": problems.discovered.max(),
        "kept": problems.conserved.max(),
        "difference": problems.difference.max(),
        "as_stated": "the paper's"
        if tables["all sizes"].data.orders_as_stated.all()
        else "not the paper's",
    }


def _as_stated(t: pd.DataFrame) -> pd.Series[bool]:
    return t.orders_as_stated


def gather(
    theory: Theory,
    places: Sequence[Mapping[str, float]],
    orders: Callable[..., Mapping[str, Any]],
    conserved: Callable[..., Sequence[Mapping[str, Any]]],
    values: Callable[..., int] | None = None,
) -> Evidence:
    """Return what is found at several problems, and what is expected.

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
