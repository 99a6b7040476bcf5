"""Forward invariance of gamma >= rho on boxes: proved or refuted in ball arithmetic."""

import itertools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import xarray
from matplotlib.collections import PatchCollection
from matplotlib.patches import Patch, Rectangle
from scipy import optimize

from dynamics import Problem
from simulations.figures import report_figure
from simulations.figures.style import COLOURS, REFERENCE, styled
from simulations.positional.invariance.box import Box, Witness, read_box
from simulations.positional.invariance.certified import (
    Answer,
    Certificate,
    bounds,
    certify,
    population_drift,
)
from simulations.positional.symmetric_line import line_drift
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import seed_at

#: Largest alpha at which population gradients check a certificate: F overflows far beyond.
MOST_ALPHA = 1.0
#: Answers on a box of the map, by index.
ANSWERS = ("neither proved", "proved >= 0", "proved < 0")
_ALPHA, _X, _NU, _BETA = 0.4, 0.25, 0.01, 1.0
_SLICES = 4  # of the interval of gamma = rho, bounded one by one
_CURVE = 41  # values of alpha at which the critical qD is computed
_FACES = ("#FFFFFF", "#9EC9E2", "#F5B58A")


def boxes(D: int) -> dict[str, str]:
    """Return a mapping from name to box, in the syntax of the command line."""
    C = 4
    return {
        "few features": f"D={D}, C={C}, qD=0..2, alpha=0..0.3, x=-1..0.95, nu=0..0.01, beta=1",
        "few features, all constants": f"D={D}, C={C}, qD=0..2, alpha=0..0.2, x=-1..0.45, "
        f"nu=0..0.1, beta=0.5..2, tau=0.5..2, kappa={D // 2}..{D}",
        "qD up to C^2, small alpha": f"D={D}, C={C}, qD=0..{C * C}, alpha=0..0.06, x=-1..1, "
        "nu=0..0.01, beta=1",
        "qD up to C^2, alpha(0) included": f"D={D}, C={C}, qD=0..{C * C}, alpha=0..0.12, x=0, "
        "nu=0..0.01, beta=1",
        "two sets": "D=8, C=4, q=0..1, alpha=0..100, x=-3..0, nu=0..1, beta=0..3, tau=0.5..2, "
        "kappa=1..100",
        "gamma above beta": f"D={D}, C={C}, qD=1, alpha=0..0.2, x=0..1.1, beta=1",
        "p = 5": "D=32, C=4, p=5, qD=0..2, alpha=0..0.3, x=-1..0.9, beta=1",
    }


def measure(context: Context) -> Measurement:
    """Certify the boxes, check them with the population gradient, and map (alpha, qD)."""
    D = context.choose(quick=16, full=64)
    points = context.choose(quick=3, full=6, thorough=12)
    texts = boxes(D)
    rows = []
    for number, (name, text) in enumerate(context.track(texts.items(), stop=0.5), start=1):
        certificate = certify(read_box(text))
        rows.append({"box": name} | compared(certificate, points, seed_at(context.seed, number)))
    data = certified_map(
        D,
        4,
        levels=context.choose(quick=4, full=4, thorough=5),
        progress=lambda fraction: context.progress(0.5 + 0.5 * fraction),
    )
    shares = map_shares(data)
    return Measurement(
        {
            "boxes": BOXES.frame(rows),
            "map": MAP.frame({"answer": answer, "share": shares[answer]} for answer in shares),
        },
        {"boxes": texts, "points per box": points, "seed": context.seed},
        (_figure(D, data),),
    )


def _figure(D: int, data: Any) -> Figure:
    return report_figure(
        "gamma-ge-rho-certified",
        "Where gamma >= rho is proved forward invariant",
        f"Boxes of (alpha, qD) at D = {D}, C = 4, p = 3, nu = 0.01, beta = 1, for all gamma = rho "
        "in [-1/4, 1/4]. Blue: d(gamma - rho)/dt >= 0 is proved for every point of the box; "
        "orange: < 0 is proved for every point; white: neither at this size. Lines: where the "
        "drift vanishes, from an independent sum in floating-point numbers, at both ends of the "
        "interval; between them the sign depends on gamma = rho. Dotted: alpha(0) of "
        "Parametrization 3.1.",
        _draw_map,
        data,
        (7.0, 4.0),
    )


def compared(certificate: Certificate, points: int, seed: int) -> dict[str, Any]:
    """Return the row of a box, after a comparison with independent population gradients.

    The gradient is evaluated at random points of a proved box, or at the witness of a refuted one.
    A point contradicts the certificate if its drift has the other sign beyond its error.
    """
    row = {"answer": str(certificate.answer), "cells": certificate.cells}
    if certificate.witness is not None:
        drift, error = population_drift(certificate.witness)
        names = certificate.witness.describe().items()
        return row | {
            "points": 1,
            "contradictions": int(drift > error),
            "witness_drift": drift,
            "witness": ", ".join(f"{name} = {value}" for name, value in names),
        }
    points = points if certificate.answer is Answer.PROVED else 0
    rng = np.random.default_rng(seed)
    drifts = [population_drift(_sample_point(certificate.box, rng)) for _ in range(points)]
    contradictions = sum(drift < -error for drift, error in drifts)
    return row | {"points": points, "contradictions": contradictions}


def _sample_point(box: Box, rng: Any) -> Witness:
    """Return a uniformly sampled point of a box with q, nu > 0 and alpha at most `MOST_ALPHA`."""

    def within(name: str, least: float = 0.0, most: float = 1.0) -> Fraction:
        low, high = box.ends(name)
        fraction = Fraction(max(float(rng.uniform()), least))
        return low + fraction * (min(high, low + Fraction(most) * (high - low)) - low)

    share = 1.0 if box.ends("alpha")[1] <= MOST_ALPHA else MOST_ALPHA / float(box.ends("alpha")[1])
    return Witness(
        box.D,
        box.C,
        box.p,
        within("q", 1e-6),
        within("nu", 1e-9),
        within("beta"),
        within("tau"),
        within("kappa"),
        within("alpha", most=share),
        within("x"),
    )


def certified_map(
    D: int, C: int, levels: int, progress: Callable[[float], None] = lambda fraction: None
) -> xarray.Dataset:
    """Divide alpha in [0, 0.4] x qD in [0, C^2] into boxes, refined where no sign is proved.

    Parameters
    ----------
    D, C
        Sizes of the problem.
    levels
        Number of times a box is halved in each direction.
    progress
        Receives the fraction of the area that is done.

    Returns
    -------
    xarray.Dataset
        ``alpha_low, alpha_high, qD_low, qD_high, answer`` (box), the answer as an index of
        `ANSWERS`; ``critical`` (x, alpha), the qD at which the drift changes its sign at both ends
        of the interval of gamma = rho.
    """
    waiting = [(0, (0.0, _ALPHA), (0.0, float(C * C)))]
    rows = []
    while waiting:
        level, alpha, density = waiting.pop()
        answer = _answer(D, C, alpha, density)
        if answer == 0 and level < levels:
            halves = [_halves(alpha), _halves(density)]
            waiting += [(level + 1, a, d) for a in halves[0] for d in halves[1]]
        else:
            rows.append((*alpha, *density, answer))
            progress(sum(_area(row) for row in rows) / (_ALPHA * C * C))
    names = ("alpha_low", "alpha_high", "qD_low", "qD_high", "answer")
    alphas, ends = np.linspace(0.0, _ALPHA, _CURVE)[1:], (-_X, _X)
    curves = [[_critical(D, C, alpha, x) for alpha in alphas.tolist()] for x in ends]
    return xarray.Dataset(
        {name: ("box", column) for name, column in zip(names, np.array(rows).T)}
        | {"critical": (("x", "alpha"), curves)},
        coords={"x": list(ends), "alpha": alphas},
        attrs={"D": D, "C": C, "start": math.sqrt(_NU)},
    )


def map_shares(data: xarray.Dataset) -> dict[str, float]:
    """Return the share of the plane with each answer."""
    areas = (data["alpha_high"] - data["alpha_low"]) * (data["qD_high"] - data["qD_low"])
    return {
        answer: float(areas.where(data["answer"] == index, 0.0).sum() / areas.sum())
        for index, answer in enumerate(ANSWERS)
    }


def _answer(D: int, C: int, alpha: tuple[float, float], density: tuple[float, float]) -> int:
    """Return the index in `ANSWERS` for a box of (alpha, qD), for all gamma = rho in [-X, X]."""
    q = Fraction(density[0]) / D, Fraction(density[1]) / D
    edges = np.linspace(-_X, _X, _SLICES + 1).tolist()
    signs = set()
    for low, high in itertools.pairwise(edges):
        box = Box(D, C, alpha, q, (low, high), (_NU, _NU), (_BETA, _BETA))
        (cell,) = box.cells()  # gamma = rho stays below beta
        least, greatest, _ = bounds(box, cell, precision=64)
        signs.add(1 if least >= 0.0 else 2 if greatest < 0.0 else 0)
    return signs.pop() if len(signs) == 1 else 0


def _halves(interval: tuple[float, float]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return both halves of an interval."""
    low, high = interval
    middle = 0.5 * (low + high)
    return (low, middle), (middle, high)


def _area(row: tuple[float, ...]) -> float:
    """Return the area of a box (alpha low, high, qD low, high, ...)."""
    return (row[1] - row[0]) * (row[3] - row[2])


def _critical(D: int, C: int, alpha: float, x: float) -> float:
    """Return the qD at which the drift changes its sign, NaN if it does not."""

    def drift(qD: float) -> float:
        return line_drift(Problem(D=D, C=C, q=qD / D, nu=_NU, beta=_BETA), alpha, x).total

    low, high = 1e-3 * C * C, float(C * C)
    if drift(low) * drift(high) > 0.0:
        return math.nan
    return float(optimize.brentq(drift, low, high, rtol=1e-6))


@styled
def _draw_map(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the boxes, coloured by their answer, and the critical qD."""
    ax = figure.subplots()
    columns = [data[name].values for name in ("alpha_low", "alpha_high", "qD_low", "qD_high")]
    answers = data["answer"].values.astype(int)
    patches = [Rectangle((a, d), b - a, e - d) for a, b, d, e in zip(*columns)]
    boxes = PatchCollection(
        patches,
        facecolors=[_FACES[answer] for answer in answers],
        edgecolors="#888888",
        linewidths=0.25,
    )
    artists: dict[str, Any] = {"boxes": ax.add_collection(boxes)}
    for number, x in enumerate(data["x"].values):
        dashes = ("-", "--")[number]
        label = rf"$d(\gamma-\rho)/dt=0$ at $\gamma=\rho={x:g}$"
        artists[f"critical {x:g}"] = ax.plot(
            data["alpha"],
            data["critical"].isel(x=number),
            linestyle=dashes,
            label=label,
            color=COLOURS["gamma - rho"],
        )[0]
    start = ax.axvline(data.attrs["start"], **REFERENCE | {"linestyle": ":"})
    start.set_label(r"$\alpha(0)=\nu^{1/2}$")
    ax.set(xlim=(0.0, columns[1].max()), ylim=(0.0, columns[3].max()))
    ax.set(xlabel=r"$\alpha$", ylabel=r"$qD$")
    labels = (
        "no single sign proved",
        r"proved: $d(\gamma-\rho)/dt\geq 0$",
        r"proved: $d(\gamma-\rho)/dt<0$",
    )
    legend = [
        Patch(facecolor=face, edgecolor="#888888", linewidth=0.5, label=label)
        for face, label in zip(_FACES, labels)
    ]
    lines, names = ax.get_legend_handles_labels()
    figure.legend(
        [*legend[1:], legend[0], *lines],
        [*labels[1:], labels[0], *names],
        loc="outside right upper",
    )
    return artists


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    boxes = tables["boxes"]
    return {
        "proved": boxes.count("d(gamma - rho)/dt >= 0 is proved on the whole box"),
        "refuted": (boxes.data.answer == Answer.REFUTED).sum(),
    }


BOXES = Table(
    index=("box",),
    columns={
        "answer": Column("answer"),
        "cells": Column("boxes examined"),
        "points": Column("population gradients evaluated"),
        "contradictions": Column("population gradients that contradict the answer"),
        "witness_drift": Column("d(gamma - rho)/dt at the witness"),
        "witness": Column("witness: a point of the box with d(gamma - rho)/dt < 0"),
    },
    predicates={
        "d(gamma - rho)/dt >= 0 is proved on the whole box": lambda t: t.answer == Answer.PROVED,
    },
    strict={
        "no point refutes it": lambda t: t.answer.isin([Answer.PROVED, Answer.UNDECIDED]),
        "no population gradient contradicts the answer": lambda t: t.contradictions == 0,
    },
)
MAP = Table(index=("answer",), columns={"share": Column("share of the map of (alpha, qD)")})

CLAIM = Claim(
    id="gamma-ge-rho-certified",
    place="after Lemma 4.3 (Section 4.1)",
    statement=(
        "gamma(t) >= rho(t) for all t >= 0; here: the half plane gamma >= rho is forward invariant "
        "on stated boxes of parameters and states, d(gamma - rho)/dt >= 0 wherever gamma = rho."
    ),
    method=(
        "The sign of d(gamma - rho)/dt on gamma = rho over whole boxes, in ball arithmetic with "
        "the sum over all states, checked with population gradients at random points."
    ),
    criterion=(
        "The statement is about every point of the boxes: it holds if every box is proved, and "
        "fails if a box has a point at which it is refuted, which is reported. An undecided box is "
        "a finding. A proof or refutation is a sign in ball arithmetic and depends on no sample. "
        "The claim also fails if a population gradient contradicts a certificate beyond its own "
        "bound, which would be an error in this package. A box without invariance does not imply "
        "that a flow crosses there."
    ),
    tables={"boxes": BOXES, "map": MAP},
    measure=measure,
    headline=headline,
    finding=(
        "Forward invariance of gamma >= rho is proved on {proved} boxes and refuted on {refuted}."
    ),
    amended=(
        "A refuted box was a finding. A statement without exceptions now fails by a confirmed "
        "counterexample, in every claim. The measurement is unchanged."
    ),
    quick_note="D = 16 instead of 64, 3 random points per box instead of 6",
    thorough_note="12 random points per box instead of 6, finer map",
    assumptions="the drift on gamma = rho, proved in symbolic; Arb through python-flint",
)
