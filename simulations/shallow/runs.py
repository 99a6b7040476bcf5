"""Starts and runs that the claims share: random weights, descent until a loss, runs in threads."""

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics.shallow import CountTraining, ShallowProblem, train_on_counts, train_on_tokens
from dynamics.shallow.data import Cells, cells
from dynamics.shallow.tokens import Tokens, TokenTraining

#: The kernels hold no lock of the interpreter.
_THREADS = 2
_RESAMPLED = 400
_RECORDS = 40  # a stretch of steps of `descend`


def side_by_side(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Return what a function gives for each item, in their order, computed in threads."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(function, items))


def random_start(
    problem: ShallowProblem,
    rng: np.random.Generator,
    *,
    sigma: float = 0.0,
    delta: float = 0.0,
) -> dict[str, Any]:
    """Return weights with W_O of independent normal entries of deviation ``problem.xi``.

    V, K and Q are those of the symmetric start; ``sigma`` and ``delta`` add normal matrices of
    deviation sigma / sqrt M to V and delta / sqrt M to K and Q (norms of about 2 sigma, 2 delta).
    """
    M, m = problem.M, problem.neurons
    _, V, K, Q = problem.layout.unpack(problem.initial_state)
    W = problem.xi * rng.normal(size=(m, M))
    V, K, Q = (
        x + s * rng.normal(size=x.shape) / math.sqrt(M)
        for x, s in ((V, sigma), (K, delta), (Q, delta))
    )
    a = problem.output_scale / math.sqrt(m) * np.where(np.arange(m) % 2, -1.0, 1.0)
    return {"W_O": W, "V": V, "K": K, "Q": Q, "a": a}


def token_start(problem: ShallowProblem, rng: np.random.Generator) -> dict[str, Any]:
    """Return a start on tokens of dimension 2M, as `draw_tokens` makes them.

    W_O as in `random_start`; W_V, W_K and W_Q are multiples of the identity of all dimensions, so
    that noise outside the span of the patterns passes through them as well.
    """
    m, d = problem.neurons, 2 * problem.M
    V, K = (scale * np.eye(d) for scale in (problem.value_scale, math.sqrt(problem.key_query)))
    a = problem.output_scale / math.sqrt(m) * np.where(np.arange(m) % 2, -1.0, 1.0)
    return {"W_O": problem.xi * rng.normal(size=(m, d)), "W_V": V, "W_K": K, "W_Q": K, "a": a}


@dataclass(frozen=True)
class Descent:
    """Descent until a loss: flow time (nan: not reached), curves by time, weights at the end."""

    reached: float
    time: np.ndarray
    hinge: np.ndarray
    attention: np.ndarray
    test_error: float
    weights: dict[str, np.ndarray]


def descend(
    problem: ShallowProblem,
    start: dict[str, np.ndarray],
    eta: float,
    hinge: float,
    *,
    weights: Any = None,
    most: int = 10**6,
    population: Cells | None = None,
) -> Descent:
    """Run full-batch descent on all cells until the mean hinge loss falls below a level.

    ``weights`` are relative weights of the cells, such as the multinomial counts of a training
    set; ``None``: their chances, the population. At most ``most`` steps, in stretches that double,
    each with some tens of records; the moment is located between two of them.
    """
    every = cells(problem) if population is None else population
    data = every.counts, every.labels
    share = every.chance if weights is None else weights

    def go(now: dict[str, np.ndarray], steps: int) -> tuple[CountTraining, dict[str, np.ndarray]]:
        run = train_on_counts(
            *data,
            **now,
            steps=steps,
            learning_rate=eta,
            queried=every.queried,
            weights=share,
            learning_rate_KQ=eta * problem.attention_rate,
            attention=problem.attention != "none",
            train_value=problem.train_value,
            test=data,
            records=np.linspace(0, steps, _RECORDS + 1).astype(int).tolist(),
        )
        return run, {"W_O": run.W_O, "V": run.V, "K": run.K, "Q": run.Q, "a": now["a"]}

    now, curves = start, list[tuple[float, float, float]]()
    done, length = 0, _RECORDS
    while True:
        length, before = min(length, most - done), now
        run, now = go(before, length)
        past = run.history
        rows = zip(((done + past.step) * eta).tolist(), past.hinge, past.attention)
        curves += list(rows)[1 if curves else 0 :]
        done += length
        if past.hinge[-1] < hinge or done >= most or not np.isfinite(past.hinge[-1]):
            break
        length *= 2
    reached = math.nan
    below = np.flatnonzero(past.hinge < hinge)
    if below.size:  # again, step by step between two records
        first, last = past.step[max(int(below[0]) - 1, 0)], past.step[below[0]]
        fine = go(go(before, int(first))[1], int(last - first))[0].history
        end = max(int(np.flatnonzero(fine.hinge < hinge)[0]), 1)
        pair = slice(end - 1, end + 1)
        step = np.interp(-hinge, -fine.hinge[pair], fine.step[pair])
        reached = float((done - length + first + step) * eta)
    time, losses, attention = np.array(curves).T
    return Descent(reached, time, losses, attention, float(past.test_error[-1]), now)


def symmetric_start(problem: ShallowProblem) -> dict[str, np.ndarray]:
    """Return the symmetric start with all neurons written out."""
    state = problem.initial_state
    W, a = problem.all_neurons(state)
    _, V, K, Q = problem.matrices(state)
    return {"W_O": W, "V": V, "K": K, "Q": Q, "a": a}


def train_until(
    problem: ShallowProblem,
    start: dict[str, np.ndarray],
    eta: float,
    hinge: float,
    weights: Any,
    population: Cells,
    most: int = 20_000,
) -> tuple[float, float]:
    """Return the test error and the hinge loss of training until that loss is below a level.

    As `descend`, but looks at the loss after stretches a quarter longer each, and keeps no curve.
    """
    data = population.counts, population.labels

    def go(now: dict[str, Any], steps: int) -> CountTraining:
        return train_on_counts(
            *data,
            **now,
            steps=steps,
            learning_rate=eta,
            weights=weights,
            learning_rate_KQ=eta * problem.attention_rate,
            attention=problem.attention != "none",
            train_value=problem.train_value,
        )

    run, _ = _stretches(go, start, ("W_O", "V", "K", "Q"), hinge, most)
    wrong = np.asarray(population.labels * run.F <= 0.0)
    return float(population.chance @ wrong), run.hinge


def train_tokens_until(
    problem: ShallowProblem,
    start: dict[str, np.ndarray],
    eta: float,
    hinge: float,
    tokens: Tokens,
    test: Tokens,
    most: int = 2_000,
) -> float:
    """Return the test error of training on noisy tokens as `train_until` does on counts."""

    def go(now: dict[str, Any], steps: int) -> TokenTraining:
        return train_on_tokens(
            tokens,
            **now,
            steps=steps,
            learning_rate=eta,
            learning_rate_KQ=eta * problem.attention_rate,
            attention=problem.attention != "none",
            train_value=problem.train_value,
        )

    _, end = _stretches(go, start, ("W_O", "W_V", "W_K", "W_Q"), hinge, most)
    attend = problem.attention != "none"
    F = train_on_tokens(test, **end, steps=0, attention=attend).F
    return float(np.mean(test.labels * F <= 0.0))


def _stretches(
    go: Callable[[dict[str, Any], int], Any],
    start: dict[str, Any],
    names: tuple[str, ...],
    hinge: float,
    most: int,
) -> tuple[Any, dict[str, Any]]:
    """Return the last stretch of a training until its loss is below a level, and its weights."""
    now, done, length = start, 0, 5
    while True:
        run = go(now, min(length, most - done))
        done += length
        now = {name: getattr(run, name) for name in names} | {"a": start["a"]}
        if run.hinge < hinge or done >= most or not math.isfinite(run.hinge):
            return run, now
        length = max(length + 1, round(1.25 * length))


def half_of_sets(
    suffices: Callable[[tuple[int, int]], bool], seeds: int, root: int, most: int = 2**22
) -> tuple[float, np.ndarray]:
    """Return N from which half of the training sets suffice, and its values over resampled seeds.

    ``suffices`` tells it of a number of samples and a seed. N doubles until all but a fifth
    suffice, at most up to ``most``, and halves until at most a fifth do. A seed that is drawn again
    brings all its sizes.
    """
    table: dict[int, np.ndarray] = {}

    def share(size: int) -> float:
        table[size] = np.array(side_by_side(suffices, [(size, seed) for seed in range(seeds)]))
        return float(table[size].mean())

    first = size = min(32, most)
    while share(size) < 0.8 and size < most:
        size *= 2
    size = first
    while table[size].mean() > 0.2 and size > 2:
        size //= 2
        share(size)
    sizes = sorted(table)
    won = np.array([table[size] for size in sizes], float)
    drawn = np.random.default_rng(root).integers(0, seeds, (_RESAMPLED, seeds))
    again = [half_passed(sizes, won[:, chosen].mean(axis=1)) for chosen in drawn]
    return half_passed(sizes, won.mean(axis=1)), np.array(again)


def half_passed(sizes: list[int], shares: np.ndarray) -> float:
    """Return where a share, made to rise, passes one half; the end of the range if it does not."""
    rising = np.maximum.accumulate(shares)
    above = int(np.argmax(rising >= 0.5)) if rising[-1] >= 0.5 else len(sizes) - 1
    if above == 0 or rising[-1] < 0.5:
        return float(sizes[above])
    low, high = rising[above - 1], rising[above]
    between = (0.5 - low) / (high - low)
    return float(sizes[above - 1] * (sizes[above] / sizes[above - 1]) ** between)
