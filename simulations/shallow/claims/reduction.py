"""The reduction of SGD to attention logits and value products, compared with full matrices."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray

from dynamics.shallow import ShallowProblem, oracle, sample, train_on_counts
from dynamics.shallow.trajectory import CONSERVED, conserved, gram
from simulations.figures import report_figure
from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, styled
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import rng_at
from simulations.shallow.runs import random_start

STEPS, EVERY, RATES = 500, 25, (0.05, 0.1)
#: Rounding of 1e-16, amplified by the instability of the dynamics over 500 steps.
TOLERANCE = 1e-11
#: M, d, m, L, queried tokens, batch size B and number of samples of each draw.
DRAWS = (
    (5, 10, 40, 20, 5, 4, 12),
    (4, 7, 16, 12, 12, 5, 12),
    (3, 3, 8, 8, 4, 3, 8),
    (4, 9, 24, 10, 3, 4, 10),
    (6, 8, 20, 14, 7, 2, 10),
)
#: Learning rates, each half of the previous one, to the same flow time; the last pair decides.
ETAS, TIME, RATIO = tuple(0.1 / 2**k for k in range(8)), 6.0, 2.0
CLOSE = 0.1
#: Smallest change of A and H at which a comparison is meaningful.
MOVED = 0.1


def measure(context: Context) -> Measurement:
    """Compare SGD on tokens with SGD on counts, and halve the rate."""
    draws = context.choose(quick=DRAWS[1:3], full=DRAWS)
    compared = [compare(draw, context.seed) for draw in context.track(draws, stop=0.8)]
    rows = [
        {**dict(zip(("M", "d", "m"), draw)), "difference": curve.max(), "moved": moved}
        for draw, (curve, moved) in zip(draws, compared)
    ]
    drift = np.array([conserved_drift(eta, context.seed) for eta in ETAS])
    quantities = [
        {"quantity": name, "drift": last, "drift_ratio": before / last}
        for name, before, last in zip(CONSERVED, drift[-2], drift[-1])
    ]
    return Measurement(
        {"draws": DIFFERENCES.frame(rows), "conserved quantities": DRIFT.frame(quantities)},
        {
            "steps": STEPS,
            "rates": RATES,
            "draws (M, d, m, L, queried, B, N)": draws,
            "eta": ETAS,
            "flow time": TIME,
        },
        (_figure(draws, [curve for curve, _ in compared], drift),),
    )


def compare(draw: tuple[int, ...], seed: int) -> tuple[np.ndarray, float]:
    """Compare SGD on counts with SGD on tokens from the same random start and batches.

    Parameters
    ----------
    draw
        Sizes, a row of `DRAWS`.
    seed
        Root seed.

    Returns
    -------
    ndarray
        Largest difference of A and H at the start and after every `EVERY` steps.
    float
        Change of A and H during training, the smaller one.
    """
    M, d, m, L, queries, B, N = draw
    rng = rng_at(seed, M, d, m)
    U = np.linalg.qr(rng.normal(size=(d, M)))[0]
    V, K, Q = np.eye(d) + 0.2 * rng.normal(size=(3, d, d)) / np.sqrt(d)
    a = np.where(np.arange(m) % 2, -1.0, 1.0) / np.sqrt(m)
    full = oracle.FullWeights(rng.normal(size=(m, d)) / np.sqrt(m), V, K, Q, a)
    labels = np.where(np.arange(N) % 2, 1.0, -1.0)
    patterns = np.sort(rng.integers(0, M, (N, L)), axis=1)
    patterns[:, :2] = np.where(labels > 0.0, 0, 1)[:, None]
    S = np.array([rng.permutation(L)[:queries] for _ in range(N)])
    tokens = [(U[:, row], float(y), chosen) for row, y, chosen in zip(patterns, labels, S)]
    counts = np.array([np.bincount(row, minlength=M) for row in patterns])
    queried = np.array([np.bincount(row[index], minlength=M) for row, index in zip(patterns, S)])
    batches = rng.integers(0, N, (STEPS, B))
    reduced = {"W_O": full.W_O, "V": full.W_V @ U, "K": full.W_K @ U, "Q": full.W_Q @ U}
    first = _reduced_matrices(full, U)
    differences = [0.0]
    for begin in range(0, STEPS, EVERY):
        for batch in batches[begin : begin + EVERY]:
            full = oracle.step(full, [tokens[n] for n in batch], RATES)
        end = train_on_counts(
            counts,
            labels,
            **reduced,
            a=a,
            steps=EVERY,
            learning_rate=RATES[0],
            learning_rate_KQ=RATES[1],
            batches=batches[begin : begin + EVERY],
            queried=queried,
        )
        reduced = {"W_O": end.W_O, "V": end.V, "K": end.K, "Q": end.Q}
        A, H = _reduced_matrices(full, U)
        differences.append(max(np.abs(end.A - A).max(), np.abs(end.H - H).max()))
    moved = min(float(np.abs(x - y).max()) for x, y in zip((A, H), first))
    return np.array(differences), moved


def _reduced_matrices(full: Any, U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return A = K^T Q and H = W_O V of full matrices on patterns U (d, M)."""
    return U.T @ full.W_K.T @ full.W_Q @ U, full.W_O @ full.W_V @ U


def conserved_drift(eta: float, seed: int) -> np.ndarray:
    """Return the changes of the four conserved quantities up to the flow time, (4,)."""
    problem = ShallowProblem(neurons=20, xi=0.3)
    rng = rng_at(seed, 99)
    start = random_start(problem, rng, sigma=0.3, delta=0.3)
    samples = sample(problem, 20, rng)
    end = train_on_counts(
        samples.counts,
        samples.labels,
        **start,
        steps=round(TIME / eta),
        learning_rate=eta,
        learning_rate_KQ=eta,
    )

    def quantities(W: np.ndarray, V: np.ndarray, K: np.ndarray, Q: np.ndarray) -> np.ndarray:
        return np.array(conserved(gram(K, Q), K.shape[1]) + conserved(gram(W.T, V), len(W)))

    before = quantities(*(start[name] for name in ("W_O", "V", "K", "Q")))
    return np.asarray(np.abs(quantities(end.W_O, end.V, end.K, end.Q) - before))


_MARKERS = "osD^"
_LABELS = (
    r"$\mathrm{tr}\,S_K-\mathrm{tr}\,S_Q$",
    r"$|S_K|^2+|S_Q|^2-2|A|^2$",
    r"$\mathrm{tr}\,S_O-\mathrm{tr}\,S_V$",
    r"$|S_O|^2+|S_V|^2-2|H|^2$",
)


@styled
def draw_figure(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the difference of each draw by step, and the drift by learning rate."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    for number, name in enumerate(data["draw"].values):
        curve = data["difference"].isel(draw=number)
        style = PROBLEM_STYLES[number] | {"linewidth": 1.2, "label": str(name)}
        artists[str(name)] = left.plot(data["step"], curve.where(curve > 0.0), **style)[0]
    left.axhline(data.attrs["tolerance"], **REFERENCE)
    left.axhline(np.finfo(float).eps, **(REFERENCE | {"linestyle": (0, (1, 1.5))}))
    left.set(yscale="log", ylim=(1e-17, 1e-10), xlabel="step", ylabel=r"$|$counts $-$ tokens$|$")
    left.set_xlim(0, float(data["step"][-1]))
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=8)
    eta = data["eta"].values
    for number, (marker, label) in enumerate(zip(_MARKERS, _LABELS)):
        drift = data["drift"].isel(quantity=number)
        colour = PROBLEM_STYLES[number]["color"]
        artists[label] = right.plot(eta, drift, marker, color=colour, label=label)[0]
        right.plot(eta, float(drift[-1]) * eta / eta[-1], **(REFERENCE | {"color": colour}))
    right.set(
        xscale="log",
        yscale="log",
        xlabel=r"learning rate $\eta$",
        ylabel="drift of conserved quantity",
    )
    right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=8, ncols=2)
    panel_letters((left, right))
    return artists


def _figure(draws: Any, curves: Any, drift: np.ndarray) -> Figure:
    names = [f"M={M}, d={d}, m={m}, L={L}, |S|={S}, B={B}" for M, d, m, L, S, B, _ in draws]
    data = xarray.Dataset(
        {
            "difference": (("draw", "step"), np.array(curves)),
            "drift": (("eta", "quantity"), drift),
        },
        coords={
            "draw": names,
            "step": np.arange(0, STEPS + 1, EVERY),
            "eta": list(ETAS),
            "quantity": list(CONSERVED),
        },
        attrs={"tolerance": TOLERANCE},
    )
    return report_figure(
        "li-reduction",
        "SGD on counts against SGD on tokens, and conserved quantities of the flow",
        "(a) Largest difference of A = K^T Q and H = W_O V between SGD on counts and SGD with the "
        "full matrices on tokens, with the same batches, from random starts. Dashed: tolerance; "
        "dotted: unit of rounding. (b) Changes of the conserved quantities of the flow at flow "
        f"time {TIME:g}, against the learning rate. Dashed: proportional to it.",
        draw_figure,
        data,
        (9.0, 4.4),
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    ratios = tables["conserved quantities"].data.drift_ratio
    return {
        "worst": max(TOLERANCE, tables["draws"].data.difference.max()),
        "ratio": RATIO,
        "off": max(CLOSE, (ratios - RATIO).abs().max()),
    }


DIFFERENCES = Table(
    index=("M", "d", "m"),
    columns={
        "difference": Column(f"largest difference over {STEPS} steps", atol=TOLERANCE),
        "moved": Column("change of A and H during training, the smaller one"),
    },
    strict={
        "SGD on counts is SGD on tokens": lambda t: t.difference <= TOLERANCE,
        "A and H move": lambda t: t.moved > MOVED,
    },
)
DRIFT = Table(
    index=("quantity",),
    columns={
        "drift": Column(f"drift at eta = {ETAS[-1]:g}"),
        "drift_ratio": Column("drift over drift at half the rate"),
    },
    strict={
        "the drift is of first order in the rate": lambda t: (t.drift_ratio - RATIO).abs() <= CLOSE
    },
)

CLAIM = Claim(
    id="li-reduction",
    place="Section 2 (model), the equations of one layer of attention and ReLU neurons",
    statement=(
        "Without token noise the network depends on A = K^T Q and H = W_O V alone, and SGD on the "
        "hinge loss closes on the pattern components of its matrices; its flow conserves the "
        "spectra of diag(1, -1) Gamma in both Gram forms."
    ),
    method=(
        "A and H of SGD on counts are compared with A and H of SGD on tokens with the full "
        "matrices, from random starts with the same batches over 500 steps. The drift of four "
        "conserved quantities is measured at eight learning rates, each half of the previous one."
    ),
    criterion=(
        "The statements are exact, so that only rounding is allowed: a difference of at most 1e-11 "
        "over 500 steps in every draw, in which A and H change by more than 0.1. The drift must be "
        "of first order in the rate: 2.0 +- 0.1 times the drift at half the rate, for the smallest "
        "pair of rates."
    ),
    tables={"draws": DIFFERENCES, "conserved quantities": DRIFT},
    measure=measure,
    headline=headline,
    finding=(
        "SGD on counts and on tokens differ by at most {worst!u:.0e}; at half the rate the drift "
        "is {ratio:g} times smaller, to within {off!u:.2g}."
    ),
    tolerance=TOLERANCE,
    quick_note="two draws instead of five",
    assumptions="the oracle on tokens, which shares no code with the kernels",
)
