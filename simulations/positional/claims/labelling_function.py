"""Definition 2.1: decay of P[y f* <= 0] with D, exactly, for several sizes of a set."""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray

from dynamics import Problem
from dynamics.positional.labelling import label_error
from simulations.figures import report_figure
from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letter, styled
from simulations.reproduction.claim import Claim, Context, Measurement
from simulations.reproduction.predicates import Column, Table, Tables

#: Exponents k of q = C^k / D.
DENSITIES = (1, 2, 3)
#: Decades of D, in halves: 10^2 to 10^9 (quick: to 10^6).
DECADES, QUICK_DECADES = (2.0, 9.0), (2.0, 6.0)
#: Relative accuracy to which the decay at fixed C must be the power D^-(C-1) at the largest D.
POWER = 0.01
#: Powers k of the thresholds D^-k for which the table gives the D from which P stays below.
THRESHOLD_POWERS = (1, 2, 3)
_SHOWN_K = 2  # k of panel (a)
_LEAST_ERROR = 1e-60  # of the axis of panel (a)
_DRAWN_POWERS = (1, 3)
_MOST_POWER = 10.0  # of the axis of panel (b)


class Law(NamedTuple):
    """Size of a set as a function of the number of patches."""

    name: str
    size: Callable[[float], int]
    grows: bool


def _fixed(C: int) -> Law:
    """Return the law of a constant size."""
    return Law(f"C = {C}", lambda D: C, False)


LAWS = (
    _fixed(2),
    _fixed(4),
    _fixed(8),
    Law("C = sqrt(log D)", lambda D: max(2, round(math.sqrt(math.log(D)))), True),
    Law("C = log D", lambda D: round(math.log(D)), True),
)


class Curve(NamedTuple):
    """``P[y f* <= 0]`` against D for one law of C and one k."""

    D: tuple[int, ...]
    C: tuple[int, ...]
    errors: tuple[float, ...]

    @property
    def exponents(self) -> list[float]:
        """Exponents ``-log P / log D`` of P as a power of D."""
        return [-math.log(error) / math.log(D) for D, error in zip(self.D, self.errors)]

    @property
    def least_rise(self) -> float:
        """Least rise of the exponent above its earlier values where C grows; NaN if C is fixed."""
        powers, rises = self.exponents, []
        highest = powers[0]
        for i in range(1, len(self.C)):
            if self.C[i] > self.C[i - 1]:
                rises.append(powers[i] - max(highest, powers[i - 1]))
                highest = powers[i]
        return min(rises, default=math.nan)

    @property
    def slopes(self) -> list[float]:
        """Local exponents ``-d log P / d log D`` between neighbouring D."""
        pairs = itertools.pairwise(zip(self.D, self.errors))
        return [math.log(p / r) / math.log(E / D) for (D, p), (E, r) in pairs]

    def stays_below(self, power: int) -> float:
        """Return the first D of the grid from which P <= D^-power, NaN if there is none."""
        above = [i for i, e in enumerate(self.exponents) if e < power]
        first = above[-1] + 1 if above else 0
        return float(self.D[first]) if first < len(self.D) else math.nan


def problem_of(law: Law, k: int, D: float) -> Problem | None:
    """Return the problem with about D patches, sets by ``law`` and q = C^k / D (None: q > 0.5)."""
    C = law.size(D)
    patches = C * math.floor(D / C * (1.0 + 1e-12))
    q = C**k / patches
    return Problem(D=patches, C=C, q=q) if q <= 0.5 else None


def error_curve(law: Law, k: int, decades: tuple[float, float]) -> Curve:
    """Return the exact errors at half decades of D, from the first D with q <= 0.5."""
    low, high = decades
    grid = [10.0 ** (low + i / 2) for i in range(round(2 * (high - low)) + 1)]
    problems = [problem for D in grid if (problem := problem_of(law, k, D)) is not None]
    errors = tuple(label_error(problem).error for problem in problems)
    return Curve(
        tuple(problem.D for problem in problems), tuple(problem.C for problem in problems), errors
    )


def measure(context: Context) -> Measurement:
    """Compute the exact error against D for every law of C and density."""
    decades = QUICK_DECADES if context.quick else DECADES
    curves = {
        (law, k): error_curve(law, k, decades)
        for law, k in context.track(itertools.product(LAWS, DENSITIES))
    }
    rows: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    powers, thresholds = [], []
    for (law, k), curve in curves.items():
        key = {"law": law.name, "k": k}
        row = key | {
            "D": curve.D[-1],
            "C": curve.C[-1],
            "error": curve.errors[-1],
            "local_exponent": curve.slopes[-1],
        }
        if law.grows:
            row |= {"first_local_exponent": curve.slopes[0], "least_rise": curve.least_rise}
        rows[law.grows].append(row)
        powers += [
            key | {"D": curve.D[index], "power": curve.exponents[index]} for index in (0, -1)
        ]
        thresholds += [
            key | {"power": power, "stays_below_from": curve.stays_below(power)}
            for power in THRESHOLD_POWERS
        ]
    return Measurement(
        {
            "C grows": GROWING.frame(rows[True]),
            "C fixed": FIXED.frame(rows[False]),
            "powers": POWERS.frame(powers),
            "thresholds": THRESHOLDS.frame(thresholds),
        },
        {"D": "half decades", "from and to 10 to the": decades, "q": "C^k / D, at most 0.5"},
        (_figure(curves),),
    )


def _figure(curves: Mapping[tuple[Law, int], Curve]) -> Any:
    return report_figure(
        "labelling-function",
        "Definition 2.1: decay of the error of the labelling function",
        "(a) Exact P[y f* <= 0] against D at q = C^2/D for several laws of C (ties count as "
        "errors; points at half decades, C rounded). Grey: powers of D. (b) The same as a power of "
        "D, -log P / log D; shaded: between q = C/D and C^3/D. d^(-omega(1)) needs it to grow "
        "without bound; dotted: C - 1, its limit at fixed C.",
        _draw,
        _figure_data(curves),
        (7.0, 3.8),
    )


def _figure_data(curves: Mapping[tuple[Law, int], Curve]) -> xarray.Dataset:
    """Return errors, sizes and exponents (law, k, point); the last point is the largest D."""
    names = ("law", "k", "point", "D", "C", "error", "exponent")
    rows = [
        (law.name, k, number - len(curve.D), *values)
        for (law, k), curve in curves.items()
        for number, values in enumerate(zip(*curve, curve.exponents))
    ]
    data = pd.DataFrame(rows, columns=names).set_index(["law", "k", "point"]).to_xarray()
    return data.sel(law=[law.name for law in LAWS]).drop_vars("point")


def _mathematical(law: str) -> str:
    """Return the name of a law of C in mathematical type."""
    typed = law.replace("log", r"\log ").replace("sqrt(", r"\sqrt{").replace(")", "}")
    return f"${typed}$"


@styled
def _draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the errors against D, and as powers of D."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    ks = data["k"].values.tolist()
    for number, law in enumerate(data["law"].values):
        style = PROBLEM_STYLES[number]
        shown = data.sel(law=law, k=_SHOWN_K)
        label = _mathematical(str(law))
        artists[str(law)] = left.plot(shown["D"], shown["error"], marker=".", label=label, **style)[
            0
        ]
        least, most = (data["exponent"].sel(law=law, k=k) for k in (ks[0], ks[-1]))
        right.fill_between(shown["D"], least, most, color=style["color"], alpha=0.15, linewidth=0)
        right.plot(shown["D"], shown["exponent"], **style | {"linewidth": 1.5})
        sizes = data["C"].sel(law=law).values
        finite = sizes[np.isfinite(sizes)]
        if (finite == finite[0]).all():
            right.axhline(finite[0] - 1.0, **REFERENCE | {"linestyle": (0, (1, 2))})
    D = np.array([data["D"].min(), data["D"].max()])
    for power in _DRAWN_POWERS:
        left.plot(D, D ** -float(power), color="#BBBBBB", linewidth=1.0, zorder=0)
        left.annotate(
            f"$D^{{-{power}}}$",
            (D[1], D[1] ** -float(power)),
            xytext=(2, 0),
            textcoords="offset points",
            va="center",
            color="#777777",
            fontsize=9,
        )
    left.set(xscale="log", yscale="log", ylim=(_LEAST_ERROR, 1.0), xlabel="$D$")
    left.set_ylabel(r"$P[y f^*\leq 0]$ at $q=C^2/D$")
    right.set(xscale="log", ylim=(0.0, _MOST_POWER), xlabel="$D$", ylabel=r"$-\log P\,/\,\log D$")
    for letter, ax in zip("ab", (left, right)):
        ax.set_xlim(D[0], D[1])
        panel_letter(ax, letter)
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=5)
    return artists


def headline(tables: Tables) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    powers = tables["powers"].data.power.xs("C = log D", level="law").xs(1, level="k")
    return {
        "first": powers.iloc[0],
        "last": powers.iloc[-1],
        "least": powers.index[0],
        "most": powers.index[-1],
        "fixed": tables["C fixed"].data.local_exponent["C = 2", 1],
    }


_AT_LARGEST = {
    "D": Column("largest D"),
    "C": Column("C at the largest D"),
    "error": Column("P[y f* <= 0]"),
    "local_exponent": Column("local exponent -d log P / d log D"),
}
GROWING = Table(
    index=("law", "k"),
    columns={
        **_AT_LARGEST,
        "first_local_exponent": Column("local exponent at the smallest D"),
        "least_rise": Column("least rise of -log P / log D where C grows"),
    },
    strict={
        "the exponent reaches a new maximum each time C grows": lambda t: t.least_rise > 0.0,
        "the local exponent ends steeper than it began": lambda t: (
            t.local_exponent > t.first_local_exponent
        ),
    },
)
FIXED = Table(
    index=("law", "k"),
    columns=_AT_LARGEST,
    predicates={
        "the decay is not the power D^-(C-1)": lambda t: (
            (t.local_exponent / (t.C - 1) - 1.0).abs() > POWER
        ),
    },
)
POWERS = Table(index=("law", "k", "D"), columns={"power": Column("-log P / log D")})
THRESHOLDS = Table(
    index=("law", "k", "power"),
    columns={"stays_below_from": Column("D from which P <= D^-power", missing="none")},
)

CLAIM = Claim(
    id="labelling-function",
    place="Definition 2.1, Assumptions 1 and 2 (Sections 2 and 3)",
    statement=(
        "The distribution of Assumption 1 admits the labelling function f*, the sum of "
        "Threshold_0.9C over the sets, with P[y f*(X) > 0] = 1 - d^(-omega(1)); C = polylog(d), "
        "q = poly(C)/D."
    ),
    method=(
        "P[y f* <= 0] exactly, for D from 100 to 10^9, sets of fixed and of growing size and q = "
        "C, C^2, C^3 over D, against powers of D."
    ),
    criterion=(
        "d^(-omega(1)) lies below every power of d, and d = D (Simplification 3.1): where C grows "
        "(log D, sqrt(log D)), the exponent -log P / log D must reach a new maximum each time C "
        "grows and the local exponent must end steeper than it began, for q = C^k/D at k = 1, 2 "
        "and 3: else the claim fails. C = polylog(d) also allows C fixed; there one negated set "
        "costs about (D/C)(q/2)^C = O(D^(1-C)). If the local exponent at the largest D is C - 1 "
        "within 1 % for some fixed C, the decay is a power, Definition 2.1 is not met, and the "
        "claim is a finding. Nothing is sampled."
    ),
    tables={"C grows": GROWING, "C fixed": FIXED, "powers": POWERS, "thresholds": THRESHOLDS},
    measure=measure,
    headline=headline,
    finding=(
        "P[y f* <= 0] falls as D^-{first:.2g} to D^-{last:.3g} at C = log D (D = {least:,} to "
        "{most:,}), as D^-{fixed:.3g} at C = 2."
    ),
    tolerance=POWER,
    quick_note="D up to 10^6 instead of 10^9",
    assumptions="the exact law of f* alone",
)
