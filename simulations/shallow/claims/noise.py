r"""The number of samples against noise of the tokens and errors of the initial model.

sigma, delta and tau are norms of the same kind: what should be a unit vector is off by a vector of
that norm in a random direction, in dimension 2M. For sigma it is :math:`W_V\mu_j`, for delta
:math:`W_K\mu_j` and :math:`W_Q\mu_j`, for tau each token. At 1 the error is as large as what it
disturbs. Directions are the same at every value of a knob.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray

from dynamics.shallow import ShallowProblem
from dynamics.shallow import cells as cells_of
from dynamics.shallow.tokens import Tokens, draw_tokens
from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.effects import PARTS, parts
from simulations.reproduction.intervals import cells, columns, mean_of
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.shallow.figures import noise
from simulations.shallow.runs import (
    half_of_sets,
    map_in_threads,
    token_start,
    train_tokens_until,
    train_until,
)

#: alpha_*, eta_KQ / eta of the transformer, and the losses at which training stops.
ALPHA, RATIO, FIRST, HINGE = 0.2, 2.0, 0.75, 1e-3
#: Values of each knob: none of it, and up to beyond the one that is judged.
KNOBS = {
    "sigma": (0.0, 0.5, 0.75, 1.0, 2.0),
    "delta": (0.0, 0.5, 1.0),
    "tau": (0.0, 0.5, 1.0, 1.5),
}
JUDGED = 1.0
#: Smallest factor on N that counts as growth: half as many samples again.
GROWTH = 1.5
#: A set suffices if at most so many samples are wrong; without noise a cell has chance 1/6.
WRONG = 0.1
L, NEURONS, TEST = 10, 40, 200
ETA, ETA_TOKENS = 0.2, 0.5
#: Seeds of a full run, and the largest number of samples tried without tau and with it.
SEEDS = {"sigma": 32, "delta": 32, "tau": 10}
MOST, MOST_TOKENS, QUICK_MOST = 4096, {FIRST: 256, HINGE: 64}, 64
QUICK_SEEDS = 10
#: Whether with attention, and the training loss at the end; the first two decide.
RUNS = {
    f"eta_KQ = {RATIO:g} eta": (True, FIRST),
    f"eta_KQ = {RATIO:g} eta, trained on": (True, HINGE),
    "no attention": (False, FIRST),
}
WITH, TRAINED, WITHOUT = RUNS


@dataclass(frozen=True)
class Row:
    """N from which half of the sets suffice along a knob, (value,); over seeds, (value, again)."""

    values: tuple[float, ...]
    N: np.ndarray
    again: np.ndarray
    most: int

    def ends(self) -> np.ndarray:
        """Return the ends of the 95 % intervals of N, (2, value)."""
        return np.quantile(self.again, [0.025, 0.975], axis=1)

    def growth(self) -> tuple[float, float, float]:
        """Return N at the value that is judged over N at the first, with its 95 % interval.

        A seed that is resampled is so at both.
        """
        first, judged = self.values.index(0.0), self.values.index(JUDGED)
        low, high = np.quantile(self.again[judged] / self.again[first], [0.025, 0.975]).tolist()
        return float(self.N[judged] / self.N[first]), low, high


def problem(attend: bool, tokens: int = L) -> ShallowProblem:
    """Return the problem: one irrelevant pattern a sample, no confusion, V frozen."""
    return ShallowProblem(
        L=tokens,
        alpha_relevant=ALPHA,
        alpha_confusion=0.0,
        background="single",
        neurons=NEURONS,
        xi=0.1 / NEURONS**0.5,
        attention_rate=RATIO if attend else 0.0,
        attention="trained" if attend else "none",
        train_value=False,
    )


def measure(context: Context) -> Measurement:
    """Search the number of samples along each knob, with attention and without."""
    errors = {name: token_errors(name, context) for name in (WITH, WITHOUT)}
    jobs = [(knob, name) for knob in KNOBS for name in RUNS]
    jobs.remove(("delta", WITHOUT))  # K and Q do not enter
    rows = {job: search(*job, context, errors) for job in context.track(jobs, stop=0.9)}
    growth = GROWTHS.frame(
        {"knob": knob, "run": name, **cells("growth", row.growth())}
        for (knob, name), row in rows.items()
    )
    decide = growth.drop(WITHOUT, level="run")
    return Measurement(
        {
            "growth": growth,
            "parts": parts(grows(decide), grows_not(decide)),
            "samples": SAMPLES.frame(
                {"knob": knob, "run": name, "value": value, **cells("N", values)}
                for (knob, name), row in rows.items()
                for value, *values in zip(row.values, row.N, *row.ends())
            ),
            "errors": ERRORS.frame(
                {"run": name, "tau": tau, **cells("error", mean_of(line))}
                for name, table in errors.items()
                for tau, line in zip(_values("tau", context), table)
            ),
            "starts": STARTS.frame(
                {"sigma": sigma, "limit": limit_share(sigma, context)}
                for sigma in _values("sigma", context)
            ),
        },
        {
            "alpha_*": ALPHA,
            "eta_KQ/eta": RATIO,
            "M": 5,
            "m": NEURONS,
            "L with tau": L,
            "stopped at": [FIRST, HINGE],
            "seeds": [_seeds(knob, context) for knob in KNOBS],
            "most samples": [_most(knob, FIRST, context) for knob in KNOBS],
            "wrong at most": WRONG,
        },
        (_figure(rows, errors, context),),
    )


def search(knob: str, name: str, context: Context, errors: dict[str, np.ndarray]) -> Row:
    """Return N along a knob; where no size suffices it is the largest that was tried.

    ``errors`` are those of `token_errors`, which are not computed again.
    """
    most = _most(knob, RUNS[name][1], context)
    error = token_error if knob == "tau" else count_error

    def at(number: int, value: float) -> tuple[float, np.ndarray]:
        def suffices(place: tuple[int, int]) -> bool:
            if knob == "tau" and name in errors and place[0] == most:
                return bool(errors[name][number, place[1]] <= WRONG)
            return error({knob: value}, RUNS[name], *place, context.seed) <= WRONG

        return half_of_sets(suffices, _seeds(knob, context), context.seed, most=most)

    values = _values(knob, context)
    found = [at(number, value) for number, value in enumerate(values)]
    return Row(values, np.array([x[0] for x in found]), np.array([x[1] for x in found]), most)


def count_error(
    knob: dict[str, float], kind: tuple[bool, float], N: int | None, seed: int, root: int
) -> float:
    """Return the test error after training on N samples, or on the population (None)."""
    here = problem(kind[0])
    population = cells_of(here)
    start = erring_start(here, np.random.default_rng(_key(root, 6, seed)), **knob)
    weights = population.chance
    if N is not None:
        weights = np.random.default_rng(_key(root, 7, N, seed)).multinomial(N, population.chance)
    return train_until(here, start, ETA, kind[1], weights, population)[0]


def token_error(
    knob: dict[str, float], kind: tuple[bool, float], N: int, seed: int, root: int
) -> float:
    """Return the test error after training on N samples with noise of norm tau on each token."""
    here = problem(kind[0])
    start = token_start(here, np.random.default_rng(_key(root, 6, seed)))
    rng = np.random.default_rng(_key(root, 8, N, seed))
    seen, test = (draw_tokens(here, size, rng, noise=knob["tau"]) for size in (N, TEST))
    if not kind[0]:
        seen, test = pooled(seen), pooled(test)
    return train_tokens_until(here, start, ETA_TOKENS, kind[1], seen, test)


def pooled(tokens: Tokens) -> Tokens:
    """Return each sample as the mean of its tokens: all that a network without attention sees."""
    one = tokens.pattern[:, :1]
    return tokens._replace(
        X=tokens.X.mean(axis=1, keepdims=True),
        pattern=one,
        noise=tokens.noise[:, :1],
        queried=np.ones(one.shape, bool),
    )


def erring_start(
    problem: ShallowProblem, rng: np.random.Generator, sigma: float = 0.0, delta: float = 0.0
) -> dict[str, np.ndarray]:
    """Return a start in dimension 2M with errors of norm sigma and delta; see the module."""
    M, m = problem.M, problem.neurons
    W = problem.xi * rng.normal(size=(m, 2 * M))
    matrices = []
    for size in (sigma, delta, delta):
        off = rng.normal(size=(2 * M, M))
        matrices.append(np.eye(2 * M, M) + size * off / np.linalg.norm(off, axis=0))
    a = problem.output_scale / math.sqrt(m) * np.where(np.arange(m) % 2, -1.0, 1.0)
    return dict(zip(("W_O", "V", "K", "Q", "a"), (W, *matrices, a)))


def limit_share(sigma: float, context: Context) -> float:
    """Return the share of starts with attention for which even the population suffices."""
    errors = map_in_threads(
        lambda seed: count_error({"sigma": sigma}, RUNS[WITH], None, seed, context.seed),
        range(_seeds("sigma", context)),
    )
    return float(np.mean(np.array(errors) <= WRONG))


def token_errors(name: str, context: Context) -> np.ndarray:
    """Return test errors with the largest number of samples along tau, (value, seed)."""
    most, values = _most("tau", FIRST, context), _values("tau", context)
    places = [(tau, seed) for tau in values for seed in range(_seeds("tau", context))]
    found = map_in_threads(
        lambda place: token_error({"tau": place[0]}, RUNS[name], most, place[1], context.seed),
        places,
    )
    return np.array(found).reshape(len(values), -1)


def grows(t: pd.DataFrame) -> pd.Series[bool]:
    """Return where N grows: where the interval of the factor on it lies above 1."""
    return t.growth_low > 1.0


def grows_not(t: pd.DataFrame) -> pd.Series[bool]:
    """Return where N does not grow: where the interval is not above 1, and ends below `GROWTH`."""
    return (t.growth_low <= 1.0) & (t.growth_high < GROWTH)


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    growth = tables["growth"].data.xs(WITH, level="run")
    return {
        knob: f"{growth.growth_low[knob]:.1f} to {growth.growth_high[knob]:.1f}" for knob in KNOBS
    }


def _key(root: int, *place: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(root, spawn_key=place)


def _seeds(knob: str, context: Context) -> int:
    return QUICK_SEEDS if context.quick else SEEDS[knob]


def _values(knob: str, context: Context) -> tuple[float, ...]:
    return (0.0, JUDGED) if context.quick else KNOBS[knob]


def _most(knob: str, level: float, context: Context) -> int:
    if context.quick:
        return QUICK_MOST
    return MOST_TOKENS[level] if knob == "tau" else MOST


def _figure(
    rows: Mapping[tuple[str, str], Row], errors: Mapping[str, np.ndarray], context: Context
) -> Figure:
    data = xarray.Dataset(coords={knob: list(_values(knob, context)) for knob in KNOBS})
    for (knob, name), row in rows.items():
        beyond = np.equal(row.N, row.most).astype(int)
        for part, values in zip(("N", "low", "high", "beyond"), (row.N, *row.ends(), beyond)):
            data[f"{knob} {name} {part}"] = knob, values
    for name, table in errors.items():
        for part, values in zip(("error", "low", "high"), np.transpose([*map(mean_of, table)])):
            data[f"errors {name} {part}"] = "tau", values
    most = _most("tau", FIRST, context)
    return report_figure(
        "li-noise",
        "Samples against noise and errors of the start",
        "Samples from which half of the training sets leave at most "
        f"{WRONG:g} of the test wrong, with 95 % intervals over seeds; alpha_* = {ALPHA:g}, "
        f"training on the whole set until its hinge loss is seen below {FIRST:g}, or on until "
        f"{HINGE:g}, for which without noise all patterns must be seen. Norm of the error of (a) "
        "each W_V mu_j, (b) each W_K mu_j and W_Q mu_j, which do not enter without attention, (c) "
        f"each of {L} tokens; dashed: the norm that is judged. "
        "Open triangles: no size suffices up to there, the largest that was tried. (d) Mean test "
        f"error with {most} samples.",
        noise.draw,
        data,
        (8.6, 6.6),
    )


GROWTHS = Table(
    index=("knob", "run"),
    columns=columns("growth", f"samples needed at {JUDGED:g} over those at 0", centre=""),
    predicates={"the number of samples grows": grows},
    judged=lambda t: t.index.get_level_values("run") != WITHOUT,
)
SAMPLES = Table(
    index=("knob", "run", "value"),
    columns=columns("N", "samples from which half of the training sets suffice", centre=""),
)
ERRORS = Table(index=("run", "tau"), columns=columns("error", "test error with the most samples"))
STARTS = Table(
    index=("sigma",),
    columns={"limit": Column("share of starts for which all cells suffice", rtol=math.inf)},
)

CLAIM = Claim(
    id="li-noise",
    place="Abstract: the sample complexity and what it is positively correlated with",
    statement=(
        "The number of samples for zero generalization error grows with the noise of the tokens "
        "(tau) and with the errors of the initial model (sigma of W_V, delta of W_K and W_Q)."
    ),
    method=(
        "The number of samples from which half of the training sets suffice, at alpha_* = 0.2, "
        "along sigma, delta and tau, with attention and without; the test error at a given number "
        "of samples along tau; for which share of starts the population suffices along sigma. "
        "Training stops before the hinge acts, or goes on until the hinge loss is 1e-3."
    ),
    criterion=(
        "Each knob is the norm of an error of unit vectors. A dependence is measured if N at norm "
        "1 over N at 0, with trained attention, has a 95 % interval (seeds drawn again) above 1, "
        "absent if that ends below 1.5, and undecided otherwise. All three measured, stopped "
        "before the hinge acts and trained on: the claim holds; all absent: it fails; otherwise it "
        "is a finding. A set suffices if at most a tenth of the test is wrong: without noise that "
        "is none, as a sample has chance 1/6; with noise none cannot be asked for. The network "
        "without attention and larger norms are shown beside and do not decide."
    ),
    quick_note="norms 0 and 1 alone, ten seeds instead of 32, at most 64 samples",
    amended=(
        "Training until the loss is small was added after a first run, which had measured a "
        "dependence on sigma and tau, but none on delta, before the hinge acts. Absent and "
        "undecided are separate since quick runs with four other seeds called the claim false "
        "where their intervals were merely too wide."
    ),
    assumptions="training on whole sets; with tau descent on tokens and a test set of 200 samples",
    tables={
        "growth": GROWTHS,
        "parts": PARTS,
        "samples": SAMPLES,
        "errors": ERRORS,
        "starts": STARTS,
    },
    measure=measure,
    headline=headline,
    finding=(
        "Factor on N of an error as large as what it disturbs (95 %): sigma {sigma}, delta "
        "{delta}, tau {tau}."
    ),
)
