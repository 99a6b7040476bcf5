"""The regime of Theorem 4.1: the densities at which all conclusions hold at finite D."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray
from scipy import optimize

from dynamics import Problem
from dynamics.positional.labelling import label_error
from simulations.figures import report_figure
from simulations.positional import reference_runs as runs
from simulations.positional import theorem_4_1 as theorem
from simulations.positional.figures import theorem_regime
from simulations.positional.theorem_4_1 import Conclusions
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.fits import power
from simulations.reproduction.predicates import CheckedTable, Column, Table

C = 4
#: The bracket of the boundary is from this fraction of the density at which f* itself errs by 1/d
#: to that density.
LOWEST, HALVINGS = 1 / 8, 3
#: Relative tolerance of the flows, at most, and relative to that of the population expectation.
#: The brackets of the boundary differ by a third, so that more accuracy is not needed.
RTOL, RATIO = 1e-5, 10.0


class Scaling(NamedTuple):
    """Dependence of nu on D: fixed with beta = 1, or the paper's nu = 1/D, beta = log log D."""

    nu: float  # NaN: the paper's

    @property
    def paper(self) -> bool:
        """Whether nu = 1/poly(d) along D, as Parametrization 3.1 has it."""
        return math.isnan(self.nu)

    @property
    def name(self) -> str:
        """The scaling as text, such as ``"nu = 1/D"``."""
        return "nu = 1/D" if self.paper else f"nu = {self.nu:g}"

    def problem(self, D: int, density: float) -> Problem:
        """Return the problem with this qD/C^2."""
        q = density * C**2 / D
        if self.paper:
            return Problem.parametrization_3_1(D, C, q=q)
        return Problem(D=D, C=C, q=q, nu=self.nu, beta=1.0)


PAPER = Scaling(math.nan)


class Grid(NamedTuple):
    """Problems of a run: a map over density and nu, and boundaries against D."""

    D: int  # of the map
    densities: tuple[float, ...]
    nus: tuple[float, ...]
    boundaries: tuple[tuple[Scaling, tuple[int, ...]], ...]  # scalings, each with its sizes
    halvings: int  # steps of the bisection
    tolerance: float  # of the population expectation

    @property
    def rtol(self) -> float:
        """Relative tolerance of the flows."""
        return min(RTOL, RATIO * self.tolerance)


class Edge(NamedTuple):
    """The boundary in qD/C^2 at one D and nu."""

    inside: float  # all conclusions hold; NaN if one fails at the lower end of the bracket
    outside: float  # a conclusion fails
    failing: str  # the first conclusion that fails at ``outside``
    label_density: float  # f* itself errs by 1/d; the conclusions cannot hold beyond
    hypotheses_density: float  # largest density within the hypotheses on the data
    early: int = 0  # runs that ended before flow time d^4

    @property
    def middle(self) -> float:
        """The geometric mean of both ends, or ``outside`` if there is no ``inside``."""
        return self.outside if math.isnan(self.inside) else math.sqrt(self.inside * self.outside)


class Cell(NamedTuple):
    """Conclusions of one flow of the map, and whether it ended before flow time d^4."""

    learned: Conclusions
    early: bool


def grid(context: Context) -> Grid:
    """Return the problems of a mode."""
    boundaries: tuple[tuple[Scaling, tuple[int, ...]], ...]
    if context.quick:
        boundaries = ((PAPER, (24, 48)), (Scaling(1e-1), (24, 48)))
        return Grid(24, (0.25, 0.75), (1e-3, 1e-1), boundaries, 1, 1e-5)
    densities = 0.25, 0.5, 1.0, 2.0
    if context.thorough:
        boundaries = (
            (PAPER, (64, 256, 1024, 4096, 16384)),
            (Scaling(1e-3), (64, 256, 1024)),
            (Scaling(1e-1), (64, 256, 1024)),
            (Scaling(1.0), (64,)),
        )
        return Grid(64, densities, (1e-3, 1e-2, 1e-1, 1.0), boundaries, HALVINGS, 1e-7)
    boundaries = ((PAPER, (64, 256, 1024)), (Scaling(1e-1), (64,)))
    return Grid(64, densities, (1e-3, 1e-1), boundaries, HALVINGS, 1e-6)


def limit(D: int, allowed: float) -> float:
    """Return the density qD/C^2 at which P[y f* <= 0] reaches ``allowed``; D/C^2 (q = 1) at most.

    Exact: monotone in q, to a relative accuracy of 1e-9.
    """

    def excess(density: float) -> float:
        return label_error(PAPER.problem(D, density)).error - allowed

    low, high = 1e-3, D / C**2
    if excess(high) <= 0.0:
        return high
    return float(optimize.brentq(excess, low, high, rtol=1e-9))


def locate(
    fails: Callable[[float], str], low: float, high: float, halvings: int
) -> tuple[float, float, str]:
    """Bisect on a logarithmic scale.

    Parameters
    ----------
    fails
        Returns the first conclusion that fails at a density, "" if all hold.
    low, high
        Bracket; a conclusion fails at ``high``, where f* itself errs.
    halvings
        Number of steps.

    Returns
    -------
    tuple
        Last densities inside and outside, and the conclusion that fails outside; (NaN, ``low``,
        conclusion) if one fails at ``low``.
    """
    if failing := fails(low):
        return math.nan, low, failing
    failing = "P[y f* <= 0]"
    for _ in range(halvings):
        middle = math.sqrt(low * high)
        at_middle = fails(middle)
        low, high, failing = (low, middle, at_middle) if at_middle else (middle, high, failing)
    return low, high, failing


def measure(context: Context) -> Measurement:
    """Map the conclusions at one D, and locate the boundary at larger D, for each nu."""
    size = grid(context)
    cells = {
        (nu, density): _cell(Scaling(nu), size.D, density, size)
        for nu, density in context.track(itertools.product(size.nus, size.densities), 0.0, 0.25)
    }
    pairs = [(scaling, D) for scaling, sizes in size.boundaries for D in sizes]
    edges = {
        (scaling, D): _edge(scaling, D, size) for scaling, D in context.track(pairs, 0.25, 1.0)
    }
    return Measurement(
        {
            "boundary": BOUNDARY.frame(boundary(edges)),
            "exponents": EXPONENTS.frame(exponents(edges)),
            "map": MAP.frame(_map(size.D, cells)),
        },
        {
            "C": C,
            "map": {"D": size.D, "qD/C^2": size.densities, "nu": size.nus, "beta": 1.0},
            "horizon": "d^4",
            "rtol": size.rtol,
            "population tolerance": size.tolerance,
            "bracket": f"{LOWEST:g} to 1 times the density where P[y f* <= 0] = 1/d",
            "halvings": size.halvings,
        },
        (_figure(size.D, cells, edges),),
    )


def _cell(scaling: Scaling, D: int, density: float, size: Grid) -> Cell:
    """Return the conclusions at the end of a flow, at its last state if it ended early."""
    problem = scaling.problem(D, density)
    path = theorem.flow(problem, size.tolerance, size.rtol, 2)
    end = theorem.horizon(problem)
    learned = theorem.conclusions(path, runs.population(problem, size.tolerance), end)
    return Cell(learned, bool(path.time[-1] < end * (1.0 - 1e-9)))


def _edge(scaling: Scaling, D: int, size: Grid) -> Edge:
    """Return the boundary at one D and nu."""
    early = 0

    def fails(density: float) -> str:
        nonlocal early
        cell = _cell(scaling, D, density, size)
        early += cell.early
        return cell.learned.failing

    label = limit(D, theorem.small(scaling.problem(D, 1.0)))
    met = min(limit(D, float(D) ** -theorem.LABEL_POWER), theorem.MUCH_LESS * D / C**2)
    inside, outside, failing = locate(fails, LOWEST * label, label, size.halvings)
    return Edge(inside, outside, failing, label, met, early)


def _along(edges: Mapping[tuple[Scaling, int], Edge]) -> dict[str, dict[int, Edge]]:
    """Return the boundaries as a mapping from scaling and D."""
    along: dict[str, dict[int, Edge]] = {}
    for (scaling, D), edge in edges.items():
        along.setdefault(scaling.name, {})[D] = edge
    return along


def boundary(edges: Mapping[tuple[Scaling, int], Edge]) -> Iterator[dict[str, Any]]:
    """Yield the boundary for each nu and D, next to the inner end at the D before."""
    for scaling, along in _along(edges).items():
        before = math.nan
        for D, edge in along.items():
            yield {"scaling": scaling, "D": D, **edge._asdict(), "inside_before": before}
            before = edge.inside


def exponents(edges: Mapping[tuple[Scaling, int], Edge]) -> Iterator[dict[str, Any]]:
    """Yield the least-squares slope of log(boundary) against log D for each nu."""
    for scaling, along in _along(edges).items():
        if len(along) > 1:
            slope = power(list(along), [edge.middle for edge in along.values()])
            yield {"scaling": scaling, "sizes": len(along), "exponent": slope}


def _map(D: int, cells: Mapping[tuple[float, float], Cell]) -> Iterator[dict[str, Any]]:
    """Yield the densities with all conclusions for each nu."""
    for nu in dict.fromkeys(nu for nu, _ in cells):
        row = {density: cell for (other, density), cell in cells.items() if other == nu}
        learned = [density for density, cell in row.items() if not cell.learned.failing]
        yield {
            "D": D,
            "nu": nu,
            "cells": len(row),
            "learned": len(learned),
            "largest_learned": max(learned, default=0.0),
            "early": sum(cell.early for cell in row.values()),
        }


def _figure(
    D: int,
    cells: Mapping[tuple[float, float], Cell],
    edges: Mapping[tuple[Scaling, int], Edge],
) -> Figure:
    return report_figure(
        "regime-of-theorem-4.1",
        "Theorem 4.1: the regime in which all conclusions hold",
        f"(a) Bound on P[f* F <= 0] in units of 1/d at flow time d^4, D = {D}, C = {C}, beta = 1; "
        "white circles: all conclusions hold (patch association, this bound and the population "
        "risk at most 1/d); crosses: no patch association; dashed: qD = C^2. (b) The largest "
        "qD/C^2 with all conclusions against D, by bisection (bars: the last bracket; downward "
        "triangle: below), for nu = 1/D, beta = log log D and for fixed nu, beta = 1. Dashed: qD = "
        "C^2; grey line: where f* itself errs by 1/d; shaded: hypotheses on the data.",
        theorem_regime.draw,
        to_dataset(cells, edges),
        (7.0, 3.6),
    )


def to_dataset(
    cells: Mapping[tuple[float, float], Cell], edges: Mapping[tuple[Scaling, int], Edge]
) -> xarray.Dataset:
    """Return the map (nu, density) and the boundary (scaling, D); NaN where there is none."""
    nus, densities = (sorted({key[axis] for key in cells}) for axis in (0, 1))
    along = _along(edges)
    sizes = sorted({D for _, D in edges})

    def of_map(value: Callable[[Conclusions], float]) -> tuple[tuple[str, str], list[list[float]]]:
        return ("nu", "density"), [
            [value(cells[nu, density].learned) for density in densities] for nu in nus
        ]

    def of_boundary(name: str) -> tuple[tuple[str, str], list[list[float]]]:
        return ("scaling", "D"), [
            [getattr(by_size.get(D), name, np.nan) for D in sizes] for by_size in along.values()
        ]

    def of_data(name: str) -> tuple[str, list[float]]:
        by_size = {D: getattr(edge, name) for (_, D), edge in edges.items()}
        return "D", [by_size[D] for D in sizes]

    return xarray.Dataset(
        {
            "excess": of_map(lambda learned: learned.disagreement / learned.small),
            "association": of_map(lambda learned: float(learned.associates)),
            "inside": of_map(lambda learned: float(not learned.failing)),
            "boundary": of_boundary("middle"),
            "boundary_inside": of_boundary("inside"),
            "boundary_outside": of_boundary("outside"),
            "label_limit": of_data("label_density"),
            "hypotheses_limit": of_data("hypotheses_density"),
        },
        coords={"nu": nus, "density": densities, "scaling": list(along), "D": sizes},
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    rows = tables["boundary"].data.loc[PAPER.name]
    first, last = (
        f"{density:.2g}" if math.isfinite(density) else "none"
        for density in (rows.inside.iloc[0], rows.inside.iloc[-1])
    )
    return {
        "first": first,
        "first_D": rows.index[0],
        "last": last,
        "last_D": rows.index[-1],
        "hypotheses": float(rows.hypotheses_density.max()),
    }


BOUNDARY = Table(
    index=("scaling", "D"),
    columns={
        "inside": Column("largest tested qD/C^2 with all conclusions", missing="none"),
        "outside": Column("smallest tested qD/C^2 without all conclusions"),
        "failing": Column("conclusion that fails at that density"),
        "label_density": Column("qD/C^2 at which P[y f* <= 0] = 1/d"),
        "hypotheses_density": Column("largest qD/C^2 within the hypotheses on the data"),
        "early": Column("runs that ended before d^4"),
        "inside_before": Column("largest qD/C^2 with all conclusions at the D before"),
    },
    predicates={
        "the conclusions do not fail within the hypotheses on the data": lambda t: (
            t.outside > t.hypotheses_density
        ),
        "the region does not shrink with D": lambda t: (
            (t.outside > t.inside_before) | (t.inside_before.isna() & t.outside.notna())
        ),
    },
    judged=lambda t: t.index.get_level_values("scaling") == PAPER.name,
)
EXPONENTS = Table(
    index=("scaling",),
    columns={
        "sizes": Column("sizes D"),
        "exponent": Column("fitted power of D in the boundary"),
    },
)
MAP = Table(
    index=("D", "nu"),
    columns={
        "cells": Column("cells of the map"),
        "learned": Column("cells in which all conclusions hold"),
        "largest_learned": Column("largest qD/C^2 of these cells"),
        "early": Column("runs that ended before d^4"),
    },
)

CLAIM = Claim(
    id="regime-of-theorem-4.1",
    place="Theorem 4.1, Assumption 2 (Section 4.1)",
    statement=(
        "With q = poly(C)/D and nu = 1/poly(d), training ends with patch association, the "
        "labelling function learned, and a population risk o(1)."
    ),
    method=(
        "The largest qD/C^2 at which all three hold at flow time d^4, for nu = 1/D and for fixed "
        "nu, and its dependence on D."
    ),
    criterion=(
        "Conclusions as in theorem-4.1: Top_C exact, the bound on P[f* F <= 0] and the risk at "
        "most 1/d, at flow time d^4 (any T >= poly(d)/eta; at fixed nu d^3 is too short). The "
        "theorem states them where its hypotheses on the data hold, P[y f* <= 0] <= 1/d^2 and q "
        "<= 0.1: with nu = 1/D, the only one of the scalings shown that is 1/poly(d), the boundary "
        "must lie at or beyond that density at every D and must not shrink with D (an "
        "undecided bracket counts for the theorem); else a finding. Fixed nu is reported "
        "only. Nothing is sampled."
    ),
    tables={"boundary": BOUNDARY, "exponents": EXPONENTS, "map": MAP},
    measure=measure,
    headline=headline,
    finding=(
        "At nu = 1/D all conclusions hold up to qD/C^2 = {first} (D = {first_D}), {last} (D = "
        "{last_D}); the hypotheses reach {hypotheses:.2g}."
    ),
    quick_note="D = 24 and 48 instead of 64 to 1024, a map of 4 cells instead of 8",
    thorough_note=(
        "the boundary for nu = 1/D at D = 4096 and 16384, for 0.1 and 0.001 at D up to 1024, for "
        "1 at D = 64; a map of 16 cells instead of 8; population tolerance 1e-7 instead of 1e-6"
    ),
    assumptions="gradient flow under the certified expectation, the exact law of f*",
)
