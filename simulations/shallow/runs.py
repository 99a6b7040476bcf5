"""Initial weights and runs of the claims: descent until a loss is reached, runs in threads."""

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics.shallow import CountTraining, ShallowProblem, train_on_counts, train_on_tokens
from dynamics.shallow.data import Cells, cells
from dynamics.shallow.tokens import Tokens
from dynamics.shallow.training import History

#: Threads of `map_in_threads`; the kernels release the interpreter lock.
_THREADS = 2
_RESAMPLED = 400
_RECORDS = 40  # of the first segment of `descend`
#: Pairs alpha_*, alpha_# of the runs that are compared with alpha_*/(alpha_* + alpha_#).
PLATEAUS = ((0.5, 0.05), (0.4, 0.1), (0.3, 0.1), (0.3, 0.2))
#: At alpha_*, alpha_# = .3, .2 descent with eta_KQ = 2 already has another limit than the flow.
PLATEAU_RATIO, PLATEAU_ETA, BELOW = 100.0, 0.005, 0.05
#: Allowed excess of attention over the plateau.
ROUNDING = 1e-9


def problem_of(
    ratio: float, relevant: float, confusion: float, L: int, xi: float, neurons: int
) -> ShallowProblem:
    """Return the problem with V frozen and one irrelevant pattern per sample."""
    return ShallowProblem(
        L=L,
        alpha_relevant=relevant,
        alpha_confusion=confusion,
        background="single",
        neurons=neurons,
        overlap=0.0,
        xi=xi,
        attention_rate=ratio,
        train_value=False,
    )


def attention_of(logits: np.ndarray, relevant: float, confusion: float) -> float:
    """Return the attention to relevant keys, given the logits of all patterns (M,)."""
    keys = np.array([relevant, confusion, 1.0 - relevant - confusion]) * np.exp(logits[:3])
    return float(keys[0] / keys.sum())


def map_in_threads(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Return the value of a function for each item, in order, computed in parallel threads."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(function, items))


def random_start(
    problem: ShallowProblem,
    rng: np.random.Generator,
    *,
    sigma: float = 0.0,
    delta: float = 0.0,
) -> dict[str, Any]:
    """Return initial weights with a random W_O.

    Parameters
    ----------
    problem
        Constants; ``xi`` is the standard deviation of the independent normal entries of W_O.
    rng
        Random generator.
    sigma, delta
        Normal matrices of standard deviation sigma / sqrt M and delta / sqrt M are added to the
        symmetric V and to the symmetric K and Q. Their norms are about 2 sigma and 2 delta.

    Returns
    -------
    dict
        W_O (m, M), V, K, Q (M, M) and a (m,), the arguments of `train_on_counts`.
    """
    M, m = problem.M, problem.neurons
    _, V, K, Q = problem.layout.unpack(problem.initial_state)
    W = problem.xi * rng.normal(size=(m, M))
    V, K, Q = (
        x + s * rng.normal(size=x.shape) / math.sqrt(M)
        for x, s in ((V, sigma), (K, delta), (Q, delta))
    )
    return {"W_O": W, "V": V, "K": K, "Q": Q, "a": output_weights(problem)}


def token_start(problem: ShallowProblem, rng: np.random.Generator) -> dict[str, Any]:
    """Return initial weights for tokens of dimension 2M (`draw_tokens`).

    W_O is random as in `random_start`. W_V, W_K and W_Q are multiples of the identity in all
    dimensions, so that they transmit noise outside the span of the patterns too.
    """
    m, d = problem.neurons, 2 * problem.M
    V, K = (scale * np.eye(d) for scale in (problem.value_scale, math.sqrt(problem.key_query)))
    W = problem.xi * rng.normal(size=(m, d))
    return {"W_O": W, "W_V": V, "W_K": K, "W_Q": K, "a": output_weights(problem)}


def output_weights(problem: ShallowProblem) -> np.ndarray:
    """Return the fixed output weights +-a / sqrt m with alternating signs, (m,)."""
    m = problem.neurons
    return problem.output_scale / math.sqrt(m) * np.where(np.arange(m) % 2, -1.0, 1.0)


def _options(problem: ShallowProblem, eta: float) -> dict[str, Any]:
    """Return the options of a problem for `train_on_counts` and `train_on_tokens`."""
    return {
        "learning_rate": eta,
        "learning_rate_KQ": eta * problem.attention_rate,
        "attention": problem.attention != "none",
        "train_value": problem.train_value,
    }


@dataclass(frozen=True)
class Descent:
    """Descent until a loss is reached.

    Attributes
    ----------
    reached
        Flow time at which the loss is reached; NaN if it is not.
    time, hinge, attention
        Records: flow time, hinge loss, attention on relevant tokens, (n,).
    test_error
        Test error at the end.
    weights
        Weights at the end.
    """

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

    The steps are made in segments of doubling length, each with some tens of records, and the time
    at which the level is reached is located between two records.

    Parameters
    ----------
    problem
        Constants.
    start
        Initial weights.
    eta
        Learning rate.
    hinge
        Level of the loss.
    weights
        Relative weights of the cells, such as the multinomial counts of a training set. The
        default are their probabilities, for descent on the population.
    most
        Largest number of steps.
    population
        All cells; the default computes them.
    """
    samples = cells(problem) if population is None else population
    train = _trainer(problem, samples, samples.probability if weights is None else weights, eta)
    current, curves = start, list[tuple[float, float, float]]()
    done, length = 0, _RECORDS
    while True:
        length, before = min(length, most - done), current
        run, current = train(before, length)
        past = run.history
        rows = zip(((done + past.step) * eta).tolist(), past.hinge, past.attention)
        curves += list(rows)[1 if curves else 0 :]
        done += length
        if past.hinge[-1] < hinge or done >= most or not np.isfinite(past.hinge[-1]):
            break
        length *= 2
    reached = _crossing(train, before, done - length, past, hinge) * eta
    time, losses, attention = np.array(curves).T
    return Descent(reached, time, losses, attention, float(past.test_error[-1]), current)


#: Function of weights and a number of steps that returns the run and the weights at its end.
_Trainer = Callable[[dict[str, Any], int], tuple[CountTraining, dict[str, Any]]]


def _trainer(problem: ShallowProblem, samples: Cells, weights: Any, eta: float) -> _Trainer:
    """Return full-batch training on weighted cells, with evenly spaced records."""

    def train(current: dict[str, Any], steps: int) -> tuple[CountTraining, dict[str, Any]]:
        run = train_on_counts(
            samples.counts,
            samples.labels,
            **current,
            steps=steps,
            queried=samples.queried,
            weights=weights,
            **_options(problem, eta),
            test=(samples.counts, samples.labels),
            records=np.linspace(0, steps, _RECORDS + 1).astype(int).tolist(),
        )
        return run, {"W_O": run.W_O, "V": run.V, "K": run.K, "Q": run.Q, "a": current["a"]}

    return train


def _crossing(
    train: _Trainer, start: dict[str, np.ndarray], begin: int, history: History, hinge: float
) -> float:
    """Return the step at which the loss falls below a level, interpolated; NaN if it does not.

    The interval between the two records is repeated with a record at each step.

    Parameters
    ----------
    train
        Training of the segment.
    start, begin
        Weights and step at which the segment begins.
    history
        Records of the segment.
    hinge
        Level.
    """
    below = np.flatnonzero(history.hinge < hinge)
    if not below.size:
        return math.nan
    first, last = history.step[max(int(below[0]) - 1, 0)], history.step[below[0]]
    fine = train(train(start, int(first))[1], int(last - first))[0].history
    end = max(int(np.flatnonzero(fine.hinge < hinge)[0]), 1)
    pair = slice(end - 1, end + 1)
    return float(begin + first + np.interp(-hinge, -fine.hinge[pair], fine.step[pair]))


def symmetric_start(problem: ShallowProblem) -> dict[str, np.ndarray]:
    """Return the symmetric initial weights of all neurons."""
    state = problem.initial_state
    W, a = problem.all_neurons(state)
    _, V, K, Q = problem.matrices(state)
    return {"W_O": W, "V": V, "K": K, "Q": Q, "a": a}


def train_until(
    problem: ShallowProblem,
    start: dict[str, Any],
    eta: float,
    hinge: float,
    weights: Any,
    population: Cells,
    most: int = 20_000,
) -> tuple[float, float]:
    """Train until the hinge loss is below a level; return the test error and the hinge loss.

    Unlike `descend` this tests the loss only at the steps of `_tested` and records no curves. The
    parameters are the same.
    """
    run = train_on_counts(
        population.counts,
        population.labels,
        **start,
        steps=most,
        weights=weights,
        **_options(problem, eta),
        records=_tested(most),
        until=hinge,
    )
    wrong = np.asarray(population.labels * run.F <= 0.0)
    return float(population.probability @ wrong), run.hinge


def train_tokens_until(
    problem: ShallowProblem,
    start: dict[str, Any],
    eta: float,
    hinge: float,
    tokens: Tokens,
    test: Tokens,
    most: int = 2_000,
) -> float:
    """Train on noisy tokens as `train_until` on counts; return the error on other tokens."""
    run = train_on_tokens(
        tokens,
        **start,
        steps=most,
        **_options(problem, eta),
        records=_tested(most),
        until=hinge,
    )
    end = {name: getattr(run, name) for name in ("W_O", "W_V", "W_K", "W_Q")}
    attend = problem.attention != "none"
    F = train_on_tokens(test, **end, a=start["a"], steps=0, attention=attend).F
    return float(np.mean(test.labels * F <= 0.0))


def _tested(most: int) -> list[int]:
    """Return the steps at which the loss is tested; each interval is a quarter longer."""
    steps, length = [5], 5
    while steps[-1] < most:
        length = max(length + 1, round(1.25 * length))
        steps.append(min(steps[-1] + length, most))
    return steps


def half_of_sets(
    suffices: Callable[[tuple[int, int]], bool], seeds: int, root: int, most: int = 2**22
) -> tuple[float, np.ndarray]:
    """Return the number of samples N from which half of the training sets suffice.

    N doubles until at least four fifths of the sets suffice, and halves until at most one fifth
    does.

    Parameters
    ----------
    suffices
        Returns whether the training set of a given size and seed suffices.
    seeds
        Number of seeds.
    root
        Seed of the bootstrap, which resamples seeds with all of their sizes.
    most
        Largest N.

    Returns
    -------
    float
        N, interpolated.
    ndarray
        N of resampled seeds, (400,).
    """
    table: dict[int, np.ndarray] = {}

    def share(size: int) -> float:
        table[size] = np.array(map_in_threads(suffices, [(size, seed) for seed in range(seeds)]))
        return float(table[size].mean())

    first = size = min(32, most)
    while share(size) < 0.8 and size < most:
        size *= 2
    size = first
    while table[size].mean() > 0.2 and size > 2:
        size //= 2
        share(size)
    sizes = sorted(table)
    passed = np.array([table[size] for size in sizes], float)
    resamples = np.random.default_rng(root).integers(0, seeds, (_RESAMPLED, seeds))
    resampled = [half_passed(sizes, passed[:, chosen].mean(axis=1)) for chosen in resamples]
    return half_passed(sizes, passed.mean(axis=1)), np.array(resampled)


def half_passed(sizes: list[int], shares: np.ndarray) -> float:
    """Return the size at which the running maximum of shares passes one half.

    It is interpolated on a logarithmic scale; it is an end of the range if there is no passage.
    """
    rising = np.maximum.accumulate(shares)
    above = int(np.argmax(rising >= 0.5)) if rising[-1] >= 0.5 else len(sizes) - 1
    if above == 0 or rising[-1] < 0.5:
        return float(sizes[above])
    low, high = rising[above - 1], rising[above]
    between = (0.5 - low) / (high - low)
    return float(sizes[above - 1] * (sizes[above] / sizes[above - 1]) ** between)
