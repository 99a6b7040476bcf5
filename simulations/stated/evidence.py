"""Evidence for the reduction of a theory: comparison with its paper and with the full model."""

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

#: Number of problems shown in the figure.
PANELS = 2
#: Largest entry of one space of forms outside the other.
SAME_FORMS = 1e-6


@dataclass(frozen=True)
class Evidence:
    """Findings on a theory at several problems, with the expectations from its paper.

    Attributes
    ----------
    sizes
        Names of the sizes.
    findings
        Findings for each problem.
    orders
        Whether names and numbers of entries of the order parameters are those of the paper for all
        sizes.
    forms
        For each problem, whether the conserved linear forms are those expected.
    values
        For each problem, the expected number of values that move.
    """

    sizes: tuple[str, ...]
    findings: tuple[Findings, ...]
    orders: bool
    forms: tuple[bool, ...]
    values: tuple[int, ...]

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of `layouts`."""
        layout = layouts(self.sizes)
        rows = [
            {
                **_sizes(self, result),
                "entries": result.check.entries,
                "configurations": result.check.configurations,
                "data_orbits": result.check.data_orbits,
                "difference": result.check.largest,
                "agrees": result.check.agrees,
                "discovered": result.analysis.discovered,
                "expected": number,
                "one_value": result.analysis.agrees,
                "orbits": result.analysis.orbits,
                "conserved": len(result.conserved),
                "conserved_as_stated": forms,
                "dimension": result.dimension,
                "growth": result.analysis.growth,
            }
            for result, forms, number in zip(self.findings, self.forms, self.values)
        ]
        return {
            "all sizes": layout["all sizes"].frame([{"orders_as_stated": self.orders}]),
            "problems": layout["problems"].frame(rows),
        }


def layouts(sizes: Sequence[str]) -> dict[str, Table]:
    """Return the layouts of the tables of a theory with these sizes."""
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
                "discovered": Column("values that move, detected from the gradient"),
                "expected": Column("values that should move"),
                "one_value": Column("each orbit has one value"),
                "orbits": Column("orbits that are trained"),
                "conserved": Column("conserved linear and quadratic forms"),
                "conserved_as_stated": Column("the linear ones are as expected"),
                "dimension": Column("dimension of the smallest invariant affine space"),
                "growth": Column(
                    "largest growth rate of a deviation at the start", "1 / flow time"
                ),
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
    """Return the numbers in the sentence of a claim."""
    problems = tables["problems"].data
    return {
        "problems": len(problems),
        "least": problems.discovered.min(),
        "most": problems.discovered.max(),
        "conserved": problems.conserved.max(),
        "difference": problems.difference.max(),
        "as_stated": "the paper's"
        if tables["all sizes"].data.orders_as_stated.all()
        else "not the paper's",
    }


def _as_stated(t: pd.DataFrame) -> pd.Series[bool]:
    return t.orders_as_stated


def collect(
    theory: Theory,
    problems: Sequence[Mapping[str, float]],
    orders: Callable[..., Mapping[str, Any]],
    conserved: Callable[..., Sequence[Mapping[str, Any]]],
    values: Callable[..., int] | None = None,
) -> Evidence:
    """Examine a theory at several problems and compare with expectations.

    Parameters
    ----------
    theory
        The theory.
    problems
        Sizes and constants of each problem.
    orders, conserved
        Functions of the sizes (numbers or symbols). They return a mapping from order parameter to
        its number of entries, and the expected conserved linear forms as mappings from order
        parameter to coefficient.
    values
        Function of the sizes that returns the expected number of values that move; by default the
        number of orbits.
    """
    derived, sizes = theory.order_parameters, [size.name for size in theory.sizes]
    entries = orders(*map(sp.Symbol, sizes))
    same = set(derived) == set(entries) and all(
        sp.expand(derived[name] - count) == 0 for name, count in entries.items()
    )
    results = tuple(examine(theory, problem) for problem in problems)
    names, forms = list(derived), []
    for result in results:
        expected = [
            [float(form.get(name, 0.0)) for name in names]
            for form in conserved(*(result.check.at[size] for size in sizes))
        ]
        discovered = [[form[name] for name in names] for form in result.linear]
        forms.append(_same_span(np.array(expected), np.array(discovered), len(names)))
    number = [
        values(*(result.check.at[size] for size in sizes)) if values else result.analysis.orbits
        for result in results
    ]
    return Evidence(tuple(sizes), results, same, tuple(forms), tuple(number))


def _same_span(first: np.ndarray, second: np.ndarray, n: int) -> bool:
    """Return whether the rows of two arrays (k, n) span the same space."""
    first, second = first.reshape(-1, n), second.reshape(-1, n)
    if len(first) != len(second):
        return False
    basis = np.linalg.qr(first.T)[0]
    rest = second - (second @ basis) @ basis.T
    return bool(np.abs(rest).max(initial=0.0) <= SAME_FORMS * np.abs(second).max(initial=1.0))


def slopes(evidence: Evidence) -> xarray.Dataset:
    """Return the data of the figure: slopes of entries and derived slopes at the first problems."""
    shown = evidence.findings[:PANELS]
    slope: list[float] = []
    order: list[int] = []
    problem: list[int] = []
    derived = []
    labels = [
        ", ".join(f"{name}={x}" for name, x in _sizes(evidence, result).items()) for result in shown
    ]
    for number, result in enumerate(shown):
        names = [x.name for x in result.order_parameters]
        derived.append([result.check.derived[name] for name in names])
        for name, values in result.check.slopes.items():
            slope += values
            order += [names.index(name)] * len(values)
            problem += [number] * len(values)
    return xarray.Dataset(
        {
            "slope": ("entry", np.array(slope)),
            "order": ("entry", np.array(order)),
            "number": ("entry", np.array(problem)),
            "derived": (("problem", "name"), derived),
        },
        coords={"name": names, "problem": labels},
    )


def _sizes(evidence: Evidence, findings: Findings) -> dict[str, int]:
    """Return the sizes of a problem."""
    return {name: int(findings.check.at[name]) for name in evidence.sizes}
