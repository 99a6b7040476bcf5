"""Statistical induction heads by hand, for any number of tokens, and losses of in-context counts.

The theory is in ``examples/statistical_induction.py``. A state is (v of lag 0, ..., T - 1, diagonal
entry of W, other entry of W).
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import betaln

from dynamics.theory.sequences import Tokens

Array = np.ndarray
#: Largest gradient entry at the end of a flow, latest end, and number of recorded times.
STATIONARY, HORIZON, RECORDS = 1e-6, 1e6, 200
#: Function of a length and of the number of symbols that returns patterns: the blocks of equal
#: tokens (n, length), and their probabilities (n,).
Law = Callable[[int, int], tuple[Array, Array]]


def random_matrices(length: int, S: int) -> tuple[Array, Array]:
    """Return patterns of chains whose transition matrix has independent uniform rows."""
    parent = (None, *range(length - 1))
    orbits = list(Tokens("polya", S, Fraction(1), parent).orbits())
    labels = np.array([labels for labels, _, _ in orbits])
    return labels, np.array([float(weight) for _, _, weight in orbits])


def random_repetition(length: int, S: int) -> tuple[Array, Array]:
    """Return patterns of chains that repeat a token with a uniformly distributed probability.

    Otherwise the next token is any other one. Every matrix is doubly stochastic, so that its
    stationary law is uniform, and the frequencies of tokens in a long sequence contain nothing.
    """
    labels, _ = random_matrices(length, S)
    repeats = (labels[:, 1:] == labels[:, :-1]).sum(axis=1)
    others = length - 1 - repeats
    ways = np.array([math.prod(range(S - most, S + 1)) for most in labels.max(axis=1)], float)
    mean = np.exp(betaln(repeats + 1.0, others + 1.0))
    return labels, ways / S / (S - 1.0) ** others * mean


class CountingRisk:
    """Risk of the minimal model: its logits are linear in v and in W.

    Parameters
    ----------
    S, T
        Numbers of symbols, and of tokens seen.
    law
        Law of the sequences.
    """

    def __init__(self, S: int, T: int, law: Law = random_matrices) -> None:
        self.S, self.T = S, T
        self.parts = [law(t + 2, S) for t in range(T)]
        self.weight = np.concatenate([weight for _, weight in self.parts]) / T
        self.target = np.concatenate([labels[:, -1] for labels, _ in self.parts])
        used = np.concatenate([labels.max(axis=1) + 1 for labels, _ in self.parts])
        width = int(used.max())
        self.used = used[:, None] > np.arange(width)
        self.unused = S - used.astype(float)
        counts = [_counts(labels[:, :-1], width, T) for labels, _ in self.parts]
        self.counts = np.concatenate(counts).reshape(-1, 2 * T)
        self.entries = np.array([*[1.0] * T, S, S * (S - 1.0)])

    def start(self, v: float, W: float) -> Array:
        """Return the state (T + 2,) with all entries of v equal, and W on the diagonal alone."""
        return np.array([*[v] * self.T, W, 0.0])

    def value(self, state: Array) -> tuple[float, Array]:
        """Return the risk and its derivative in one entry of each order parameter (T + 2,)."""
        v, W = state[:-2], state[-2:]
        read = (self.counts @ np.concatenate([W[0] * v, W[1] * v])).reshape(self.used.shape)
        logits = np.where(self.used, read, -np.inf)
        highest = np.maximum(logits.max(axis=1), 0.0)
        off = np.exp(logits - highest[:, None])
        total = off.sum(axis=1) + self.unused * np.exp(-highest)
        rows = np.arange(len(logits))
        loss = self.weight @ (highest + np.log(total) - logits[rows, self.target])
        off /= total[:, None]
        off[rows, self.target] -= 1.0
        off *= self.weight[:, None]
        same, other = (off.ravel() @ self.counts).reshape(2, -1)
        slopes = [*(W[0] * same + W[1] * other), v @ same, v @ other]
        return float(loss), np.array(slopes) / self.entries

    @property
    def uniform(self) -> float:
        """Loss of equal probabilities."""
        return math.log(self.S)

    @cached_property
    def unigram(self) -> float:
        """Least loss of a prediction from the number of each token so far."""

        def numbers(seen: tuple[int, ...], token: int) -> tuple[Hashable, Hashable, int]:
            counts = sorted(seen.count(x) for x in set(seen))
            own = seen.count(token)
            return tuple(counts), own, counts.count(own) if own else self.S - len(counts)

        return self._least(numbers)

    @cached_property
    def bigram(self) -> float:
        """Least loss of any prediction from the tokens so far."""

        def order(seen: tuple[int, ...], token: int) -> tuple[Hashable, Hashable, int]:
            return seen, token, 1 if token in seen else self.S - len(set(seen))

        return self._least(order)

    def _least(
        self, known: Callable[[tuple[int, ...], int], tuple[Hashable, Hashable, int]]
    ) -> float:
        """Return the least loss of a prediction from partial knowledge.

        ``known`` maps seen tokens and the next one to what is known, to the outcome in these terms,
        and to the number of tokens with this outcome.
        """
        joint: defaultdict[tuple[Hashable, Hashable, int], float] = defaultdict(float)
        total: defaultdict[Hashable, float] = defaultdict(float)
        for labels, weights in self.parts:
            for row, weight in zip(labels.tolist(), weights.tolist()):
                context, outcome, number = known(tuple(row[:-1]), row[-1])
                joint[(len(row), context), outcome, number] += weight
                total[len(row), context] += weight
        loss = 0.0
        for (seen, _, number), weight in joint.items():
            loss -= weight * math.log(weight / total[seen] / number) / self.T
        return loss

    def flow(self, v: float, W: float, *, centred: bool = False) -> "Stages":
        """Return the flow from `start` until it is stationary.

        With ``centred``, the rows of W sum to 0: scores do not depend on how often a token occurs.
        """
        start, share = self.start(v, W), np.array([1.0, self.S - 1.0]) / self.S

        def velocity(_: float, state: Array) -> Array:
            slope = self.value(state)[1]
            if centred:
                slope[-2:] -= share @ slope[-2:]
            return -slope

        def rest(time: float, state: Array) -> float:
            return float(np.abs(velocity(time, state)).max()) - STATIONARY

        rest.terminal = True  # type: ignore[attr-defined]
        if centred:
            start[-2:] -= share @ start[-2:]
        run = solve_ivp(velocity, (0.0, HORIZON), start, method="LSODA", rtol=1e-7, atol=1e-9,
                        events=rest, dense_output=True)  # fmt: skip
        time = np.geomspace(1e-5 * run.t[-1], run.t[-1], RECORDS)
        states = run.sol(time).T
        values = [self.value(state) for state in states]
        loss = np.array([x for x, _ in values])
        rate = time * np.array([self.entries @ slope**2 for _, slope in values])
        return Stages(run.status == 1, time, states, loss, rate)


class Stages(NamedTuple):
    """Flow of a `CountingRisk`.

    Attributes
    ----------
    stationary
        Whether the gradient vanishes at the end.
    time, states, loss
        Times (n,), states (n, T + 2) and losses (n,).
    rate
        Decrease of the loss per unit of log time (n,).
    """

    stationary: bool
    time: Array
    states: Array
    loss: Array
    rate: Array

    @property
    def share(self) -> Array:
        """Absolute value of v at lag 1 over the sum of all, (n,)."""
        sizes = np.abs(self.states[:, :-2])
        return np.asarray(sizes[:, 1] / sizes.sum(axis=1))

    @property
    def formed(self) -> float:
        """First time from which on v is at least half at lag 1; nan if it is not at the end."""
        late = np.flatnonzero(self.share < 0.5)
        if not late.size:
            return float(self.time[0])
        if late[-1] + 1 == len(self.time):
            return math.nan
        ends = slice(late[-1], late[-1] + 2)
        return float(np.exp(np.interp(0.5, self.share[ends], np.log(self.time[ends]))))

    @property
    def shoulder(self) -> tuple[int, float]:
        """Index of the shoulder, and its rate over the smaller of the peaks on both sides.

        It is the minimum of the rate that is farthest below both peaks; (0, nan) if there is none.
        """
        rate = self.rate
        before, after = np.maximum.accumulate(rate), np.maximum.accumulate(rate[::-1])[::-1]
        peaks = np.minimum(before, after)
        index = int(np.argmax(peaks - rate))
        if peaks[index] <= rate[index]:
            return 0, math.nan
        return index, float(rate[index] / peaks[index])


def _counts(seen: Array, width: int, T: int) -> Array:
    """Return the number of each token whose predecessor by each lag is, or is not, the last token.

    Parameters
    ----------
    seen
        Tokens (n, t).
    width, T
        Numbers of tokens and of lags in the result.

    Returns
    -------
    ndarray, shape (n, width, 2, T)
        First the numbers where it is the last token.
    """
    rows = np.arange(len(seen))
    counts = np.zeros((len(seen), width, 2, T))
    for s in range(seen.shape[1]):
        for lag in range(s + 1):
            other = (seen[:, s - lag] != seen[:, -1]).astype(int)
            counts[rows, seen[:, s], other, lag] += 1.0
    return counts
