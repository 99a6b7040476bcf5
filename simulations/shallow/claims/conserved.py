"""What the gradient flow of the shallow transformer conserves, from its gradient alone."""

from typing import Any, NamedTuple

import numpy as np
import xarray

from dynamics.shallow import oracle
from dynamics.theory.closed import quadratic
from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Context, Headline, Outcome, Verdict
from simulations.reproduction.measured import Measured, measured_at
from simulations.seeds import seed_at
from simulations.shallow.figures import conserved

#: m, p, d and b of each draw: W_O (m, p), W_V (p, d), W_K and W_Q (b, d).
SHAPES = ((3, 2, 3, 2), (2, 1, 2, 2), (4, 2, 2, 1), (2, 3, 2, 1))
TOKENS, QUERIED = 5, 3
#: Largest entry of a form outside the space of the other; samples beyond the number of products.
OUTSIDE, MORE = 1e-6, 60
#: A form with the wrong sign must change by this part of its size, a conserved one by rounding.
CHANGES, ROUNDING = 1e-2, 1e-10


def run(context: Context) -> Outcome:
    """Discover the quadratic forms of four matrices that every sample's gradient leaves alone."""
    shapes = SHAPES[:2] if context.quick else SHAPES
    found = []
    for number, shape in enumerate(shapes):
        found.append(discovered(shape, seed_at(context.seed, number)))
        context.progress((number + 1) / len(shapes))
    measured: list[Measured] = []
    for shape, one in zip(shapes, found):
        measured += measured_at(
            dict(zip("mpdb", shape)),
            ("forms", "quadratic forms that are conserved", one.forms),
            ("expected", "of W_K W_K^T - W_Q W_Q^T and W_O^T W_O - W_V W_V^T", one.expected),
            ("outside", "largest part of a form outside the other space", one.outside),
            ("rate", "fastest relative change of a form", max(one.rates)),
            ("control", "slowest relative change with the other sign", min(one.controls)),
        )
    verdict, summary = judge(found)
    return Outcome(
        verdict, measured, OUTSIDE, {"shapes": shapes, "tokens": TOKENS, "queried": QUERIED},
        summary, (_figure(shapes, found),),
    )  # fmt: skip


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


def judge(found: list[Found]) -> tuple[Verdict, str]:
    """Return the verdict and its sentence."""
    good = bool(found) and all(
        one.forms == one.expected
        and one.outside <= OUTSIDE
        and max(one.rates) <= ROUNDING
        and min(one.controls) >= CHANGES
        for one in found
    )
    text = (
        f"In {len(found)} shapes the gradient alone gives "
        f"{', '.join(str(one.forms) for one in found)} conserved quadratic forms, those of W_K "
        f"W_K^T - W_Q W_Q^T and W_O^T W_O - W_V W_V^T to {max(one.outside for one in found):.0e} "
        f"and no other; with a plus sign they change."
    )
    return (Verdict.HOLDS if good else Verdict.FAILS), text


def _figure(shapes: Any, found: list[Found]) -> Any:
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
        conserved.draw, data, (7.0, 3.4),
    )  # fmt: skip


def _finding(outcome: Outcome) -> str:
    forms = outcome.values("forms")
    return (
        f"At {len(forms)} shapes only: {min(forms)} to {max(forms)} conserved quadratic forms, the "
        f"known ones to {max(OUTSIDE, *outcome.values('outside')):.0e}, and no other."
    )


CLAIM = Claim(
    id="li-conserved",
    place="Section 2 (model), the equations of one layer of attention and ReLU neurons",
    statement=(
        "Gradient flow on any loss of the network keeps W_K W_K^T - W_Q W_Q^T and W_O^T W_O - W_V "
        "W_V^T: the spectra that the reduction speaks of."
    ),
    measures=(
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
    run=run,
    headline=Headline("outside", pick=max),
    finding=_finding,
    quick_note="two shapes instead of four",
    depends="the oracle on tokens alone",
)
