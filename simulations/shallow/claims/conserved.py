"""What the gradient flow of the shallow transformer conserves, from its gradient alone."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray

from dynamics.shallow import oracle
from dynamics.theory.closure import quadratic
from simulations.figures import report_figure
from simulations.figures.style import REFERENCE, styled
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table

#: m, p, d and b of each draw: W_O (m, p), W_V (p, d), W_K and W_Q (b, d).
SHAPES = ((3, 2, 3, 2), (2, 1, 2, 2), (4, 2, 2, 1), (2, 3, 2, 1))
TOKENS, QUERIED = 5, 3
#: Largest entry of a form outside the space of the other; samples beyond the number of products.
OUTSIDE, MORE = 1e-6, 60
#: A form with the wrong sign must change by this part of its size, a conserved one by rounding.
CHANGES, ROUNDING = 1e-2, 1e-10


def measure(context: Context) -> Measurement:
    """Discover the quadratic forms of four matrices that every sample's gradient leaves alone."""
    shapes = context.choose(quick=SHAPES[:2], full=SHAPES)
    results = [discovered(shape, context.seed) for shape in context.track(shapes)]
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


class Found(NamedTuple):
    """Numbers of forms, how far the spaces differ, and how fast forms and controls change."""

    forms: int
    expected: int
    outside: float
    rates: list[float]
    controls: list[float]


def discovered(shape: tuple[int, int, int, int], seed: int) -> Found:
    """Return what is found at random weights, tokens and queries of one shape."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=shape))
    m, p, d, b = shape
    n = m * p + p * d + 2 * b * d
    samples = [_sample(shape, rng) for _ in range(n * (n + 1) // 2 + MORE)]
    states, gradients = (np.array(rows) for rows in zip(*samples))
    forms, right = quadratic(states, gradients), balances(shape, -1.0)
    return Found(
        forms=len(forms),
        expected=len(right),
        outside=max(_outside(forms, right), _outside(right, forms)),
        rates=_rates(right, states, gradients),
        controls=_rates(balances(shape, 1.0), states, gradients),
    )


def _sample(
    shape: tuple[int, int, int, int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return random weights in a row, and the gradient of F there at random tokens."""
    m, p, d, b = shape
    W_O, W_V = rng.normal(size=(m, p)), rng.normal(size=(p, d))
    W_K, W_Q = rng.normal(size=(2, b, d))
    weights = oracle.FullWeights(W_O, W_V, W_K, W_Q, rng.normal(size=m))
    X = rng.normal(size=(d, TOKENS))
    slope = oracle.forward(weights, X, range(QUERIED))[1]
    row = [np.concatenate([x.ravel() for x in (one.W_O, one.W_V, one.W_K, one.W_Q)])
           for one in (weights, slope)]  # fmt: skip
    return row[0], row[1]


def balances(shape: tuple[int, int, int, int], sign: float) -> np.ndarray:
    """Return the entries of W_O^T W_O + sign W_V W_V^T and W_K W_K^T + sign W_Q W_Q^T as forms."""
    m, p, d, b = shape
    n = m * p + p * d + 2 * b * d
    places = np.split(np.arange(n), np.cumsum([m * p, p * d, b * d]))
    O, V, K, Q = (x.reshape(s) for x, s in zip(places, ((m, p), (p, d), (b, d), (b, d))))  # noqa: E741
    found = []
    for left, right in ((O.T, V), (K, Q)):
        for i in range(len(left)):
            for j in range(i + 1):
                form = np.zeros((n, n))
                for rows, weight in ((left, 1.0), (right, sign)):
                    np.add.at(form, (rows[i], rows[j]), weight / 2.0)
                    np.add.at(form, (rows[j], rows[i]), weight / 2.0)
                found.append(form)
    return np.array(found)


def _outside(forms: np.ndarray, others: np.ndarray) -> float:
    """Return the largest part of forms, of length 1, outside the space of the others."""
    if not len(forms) or not len(others):
        return 1.0
    rows, basis = forms.reshape(len(forms), -1), others.reshape(len(others), -1)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    basis = np.linalg.qr(basis.T)[0]
    return float(np.linalg.norm(rows - (rows @ basis) @ basis.T, axis=1).max())


def _rates(forms: np.ndarray, states: np.ndarray, gradients: np.ndarray) -> list[float]:
    """Return the largest change of each form along the gradient, over |x| |gradient|."""
    change = np.abs(np.einsum("si,kij,sj->ks", states, forms, gradients))
    size = np.linalg.norm(states, axis=1) * np.linalg.norm(gradients, axis=1)
    return [float(x) for x in (change / np.where(size > 0.0, size, 1.0)).max(axis=1)]


@styled
def draw_figure(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the largest change of each form, and that of its control."""
    ax = figure.subplots()
    at = np.arange(data.sizes["form"])
    smallest = np.finfo(float).eps ** 2
    artists = {
        "difference": ax.plot(at, np.maximum(data["rate"], smallest), "o", label="difference")[0],
        "sum": ax.plot(at, data["control"], "x", label="sum (control)")[0],
    }
    ax.axhline(np.finfo(float).eps, **REFERENCE)
    shapes = data["shape"].values
    first = [i for i in at if i == 0 or shapes[i] != shapes[i - 1]]
    ax.set_xticks(first, [str(shapes[i]) for i in first], ha="left")
    ax.set(yscale="log", ylabel="largest relative change")
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=2)
    return artists


def _figure(shapes: Any, found: list[Found]) -> Figure:
    data = xarray.Dataset(
        {
            "rate": ("form", np.array([x for one in found for x in one.rates])),
            "control": ("form", np.array([x for one in found for x in one.controls])),
            "shape": ("form", [str(s) for s, one in zip(shapes, found) for _ in one.rates]),
        }
    )
    return report_figure(
        "li-conserved", "What gradient flow conserves in the shallow transformer",
        "Largest change of each quadratic form along the gradient of single samples, relative to "
        "the sizes of weights and gradient: differences of the two Gram matrices that meet in a "
        "product (dots) and, as a control, their sums (crosses). Columns: shapes (m, p, d, b).",
        draw_figure, data, (7.0, 3.4),
    )  # fmt: skip


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
        "Gradient flow on any loss of the network keeps W_K W_K^T - W_Q W_Q^T and W_O^T W_O - W_V "
        "W_V^T: the spectra that the reduction speaks of."
    ),
    method=(
        "All quadratic forms of the four matrices that vanish along the gradient of F at random "
        "weights and tokens, found as a null space from the gradient alone, against the entries of "
        "the two differences; and how fast these change, beside their sums as a control."
    ),
    criterion=(
        "An exact statement: b (b + 1) / 2 + p (p + 1) / 2 forms, no more and no fewer, the two "
        "spaces equal to 1e-6 (a null space of some hundred columns in double precision); each "
        "entry changes by rounding (1e-10 of |weights| |gradient|), with a plus sign by more than "
        "1e-2."
    ),
    tables={"shapes": TABLE},
    measure=measure,
    headline=headline,
    finding=(
        "At {shapes} shapes only: {least} to {most} conserved quadratic forms, the known ones to "
        "{outside:.0e}, as many as expected at {as_expected}."
    ),
    quick_note="two shapes instead of four",
    assumptions="the oracle on tokens alone",
)
