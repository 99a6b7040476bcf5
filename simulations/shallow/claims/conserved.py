"""Quadratic conserved quantities of the gradient flow of the shallow transformer.

They are computed from the gradient alone, and compared with the known ones.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import xarray

from dynamics.shallow import oracle
from dynamics.theory.closure import quadratic
from simulations.figures import report_figure
from simulations.figures.style import REFERENCE, styled
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import rng_at

#: m, p, d and b of each draw: W_O (m, p), W_V (p, d), W_K and W_Q (b, d).
SHAPES = ((3, 2, 3, 2), (2, 1, 2, 2), (4, 2, 2, 1), (2, 3, 2, 1))
TOKENS, QUERIED = 5, 3
#: Largest distance of a form from the space of the others; additional samples.
OUTSIDE, MORE = 1e-6, 60
#: Smallest relative change of a form with the wrong sign, largest one of a conserved form.
CHANGES, ROUNDING = 1e-2, 1e-10


def measure(context: Context) -> Measurement:
    """Find all quadratic forms of the four matrices that are constant along every gradient."""
    shapes = context.choose(quick=SHAPES[:2], full=SHAPES)
    results = [find_forms(shape, context.seed) for shape in context.track(shapes)]
    rows = [
        {
            **dict(zip("mpdb", shape)),
            "forms": result.forms,
            "expected": result.expected,
            "outside": result.outside,
            "rate": max(result.rates),
            "control": min(result.controls),
        }
        for shape, result in zip(shapes, results)
    ]
    return Measurement(
        {"shapes": TABLE.frame(rows)},
        {"shapes": shapes, "tokens": TOKENS, "queried": QUERIED},
        (_figure(shapes, results),),
    )


class Forms(NamedTuple):
    """Conserved quadratic forms of one shape.

    Attributes
    ----------
    forms, expected
        Numbers of computed and of known forms.
    outside
        Largest distance of a unit form of one space from the other space.
    rates, controls
        Largest relative changes of the known forms, and of the same forms with a plus sign.
    """

    forms: int
    expected: int
    outside: float
    rates: list[float]
    controls: list[float]


def find_forms(shape: tuple[int, int, int, int], seed: int) -> Forms:
    """Return the conserved forms of one shape, from gradients at random weights and tokens."""
    rng = rng_at(seed, *shape)
    m, p, d, b = shape
    n = m * p + p * d + 2 * b * d
    samples = [_sample(shape, rng) for _ in range(n * (n + 1) // 2 + MORE)]
    states, gradients = (np.array(rows) for rows in zip(*samples))
    forms, known = quadratic(states, gradients), gram_differences(shape, -1.0)
    return Forms(
        forms=len(forms),
        expected=len(known),
        outside=max(_outside(forms, known), _outside(known, forms)),
        rates=_rates(known, states, gradients),
        controls=_rates(gram_differences(shape, 1.0), states, gradients),
    )


def _sample(
    shape: tuple[int, int, int, int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return random weights as a vector, and the gradient of F at random tokens."""
    m, p, d, b = shape
    W_O, W_V = rng.normal(size=(m, p)), rng.normal(size=(p, d))
    W_K, W_Q = rng.normal(size=(2, b, d))
    weights = oracle.FullWeights(W_O, W_V, W_K, W_Q, rng.normal(size=m))
    X = rng.normal(size=(d, TOKENS))
    gradient = oracle.forward(weights, X, range(QUERIED))[1]
    state, slope = (
        [getattr(matrices, name).ravel() for name in ("W_O", "W_V", "W_K", "W_Q")]
        for matrices in (weights, gradient)
    )
    return np.concatenate(state), np.concatenate(slope)


def gram_differences(shape: tuple[int, int, int, int], sign: float) -> np.ndarray:
    """Return the entries of W_O^T W_O + sign W_V W_V^T and W_K W_K^T + sign W_Q W_Q^T as forms.

    The forms are symmetric matrices over the vector of all weights, (forms, n, n).
    """
    m, p, d, b = shape
    n = m * p + p * d + 2 * b * d
    indices = np.split(np.arange(n), np.cumsum([m * p, p * d, b * d]))
    O, V, K, Q = (x.reshape(s) for x, s in zip(indices, ((m, p), (p, d), (b, d), (b, d))))  # noqa: E741
    forms = []
    for left, right in ((O.T, V), (K, Q)):
        for i in range(len(left)):
            for j in range(i + 1):
                form = np.zeros((n, n))
                for rows, weight in ((left, 1.0), (right, sign)):
                    np.add.at(form, (rows[i], rows[j]), weight / 2.0)
                    np.add.at(form, (rows[j], rows[i]), weight / 2.0)
                forms.append(form)
    return np.array(forms)


def _outside(forms: np.ndarray, others: np.ndarray) -> float:
    """Return the largest distance of normalized forms from the space of the others."""
    if not len(forms) or not len(others):
        return 1.0
    rows, basis = forms.reshape(len(forms), -1), others.reshape(len(others), -1)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    basis = np.linalg.qr(basis.T)[0]
    return float(np.linalg.norm(rows - (rows @ basis) @ basis.T, axis=1).max())


def _rates(forms: np.ndarray, states: np.ndarray, gradients: np.ndarray) -> list[float]:
    """Return the largest change of each form along the gradients, over |x| |gradient|."""
    change = np.abs(np.einsum("si,kij,sj->ks", states, forms, gradients))
    size = np.linalg.norm(states, axis=1) * np.linalg.norm(gradients, axis=1)
    return [float(x) for x in (change / np.where(size > 0.0, size, 1.0)).max(axis=1)]


@styled
def draw_figure(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the largest change of each form, and that of its control."""
    ax = figure.subplots()
    index = range(data.sizes["form"])
    smallest = np.finfo(float).eps ** 2
    rate = np.maximum(data["rate"], smallest)
    artists = {
        "difference": ax.plot(index, rate, "o", label="difference")[0],
        "sum": ax.plot(index, data["control"], "x", label="sum (control)")[0],
    }
    artists["rounding"] = ax.axhline(np.finfo(float).eps, label="rounding unit", **REFERENCE)
    shapes = data["shape"].values
    first = [i for i in index if i == 0 or shapes[i] != shapes[i - 1]]
    for start in first[1:]:
        ax.axvline(start - 0.5, color="#DDDDDD", linewidth=0.8, zorder=0)
    middles = [(start + end - 1) / 2 for start, end in pairwise([*first, len(index)])]
    ax.set_xticks(middles, [str(shapes[start]) for start in first])
    ax.set(yscale="log", xlabel="forms of each shape $(m, p, d, b)$")
    ax.set_ylabel("largest relative change")
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=3)
    return artists


def _figure(shapes: Any, results: list[Forms]) -> Figure:
    data = xarray.Dataset(
        {
            "rate": ("form", np.array([x for result in results for x in result.rates])),
            "control": ("form", np.array([x for result in results for x in result.controls])),
            "shape": ("form", [str(s) for s, forms in zip(shapes, results) for _ in forms.rates]),
        }
    )
    return report_figure(
        "li-conserved",
        "Conserved quantities of the gradient flow of the shallow transformer",
        "Largest change of each quadratic form along the gradient of single samples, relative to "
        "the sizes of weights and gradient: differences of the two Gram matrices of a product "
        "(dots) and, as a control, their sums (crosses). Columns: shapes (m, p, d, b).",
        draw_figure,
        data,
        (7.0, 3.4),
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    shapes = tables["shapes"].data
    return {
        "shapes": len(shapes),
        "least": shapes.forms.min(),
        "most": shapes.forms.max(),
        "outside": max(OUTSIDE, shapes.outside.max()),
        "as_expected": tables["shapes"].count("no more and no fewer forms than expected"),
    }


TABLE = Table(
    index=("m", "p", "d", "b"),
    columns={
        "forms": Column("conserved quadratic forms"),
        "expected": Column("entries of W_K W_K^T - W_Q W_Q^T and W_O^T W_O - W_V W_V^T"),
        "outside": Column("largest part of a form outside the other space", atol=OUTSIDE),
        "rate": Column("fastest relative change of a form", atol=ROUNDING),
        "control": Column("slowest relative change with the other sign"),
    },
    strict={
        "no more and no fewer forms than expected": lambda t: t.forms == t.expected,
        "the two spaces are equal": lambda t: t.outside <= OUTSIDE,
        "each form is conserved": lambda t: t.rate <= ROUNDING,
        "with a plus sign it changes": lambda t: t.control >= CHANGES,
    },
)

CLAIM = Claim(
    id="li-conserved",
    place="Section 2 (model), the equations of one layer of attention and ReLU neurons",
    statement=(
        "Gradient flow on any loss of the network conserves W_K W_K^T - W_Q W_Q^T and W_O^T W_O - "
        "W_V W_V^T, hence the spectra of the reduction."
    ),
    method=(
        "All quadratic forms of the four matrices that are constant along the gradient of F at "
        "random weights and tokens, a null space computed from the gradient alone, are compared "
        "with the entries of the two differences. The changes of these entries are compared with "
        "the changes of the sums, as a control."
    ),
    criterion=(
        "The statement is exact. There must be b (b + 1) / 2 + p (p + 1) / 2 forms, no more and no "
        "fewer, and the two spaces must be equal to 1e-6 (a null space of some hundred columns in "
        "double precision). Each entry may change only by rounding (1e-10 of |weights| "
        "|gradient|), and must change by more than 1e-2 with a plus sign."
    ),
    tables={"shapes": TABLE},
    measure=measure,
    headline=headline,
    finding=(
        "At {shapes} shapes only: {least} to {most} conserved quadratic forms, the known ones to "
        "{outside:.0e}, as many as expected at {as_expected}."
    ),
    quick_note="two shapes instead of four",
    assumptions="gradients of the oracle on tokens",
)
