"""Attention with rank-one weights on a binary Markov chain: risk of any length, energy, basins.

The theory is in ``examples/markov_chain.py``. A state is (e, w, a, c) with w > 0; the sign of the
paper's w is a constant.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import entr, expit

Array = np.ndarray
#: Energy below which the flow does not pass from one side of w = -1 / sqrt(2) to the other.
CRITICAL = -0.5 * (1.0 + math.log(2.0))
#: Value of e^2 below which a flow has reached e = 0, and distance of a final loss from a named one,
#: over the difference of unigram and bigram loss.
SMALL, NEAR = 1e-5, 1e-3
#: Largest gradient entry at the end of a flow, and latest end.
STATIONARY, HORIZON = 1e-8, 1e6


def energy(e: Any, w: Any, sign: Any) -> Any:
    """Return the conserved energy e^2 - w^2 - sign log w."""
    return e**2 - w**2 - sign * np.log(w)


def learns(p: Any, q: Any, e: Any, w: Any, sign: Any) -> Any:
    """Return whether a flow reaches the bigram loss, according to its energy.

    The slope e^2 (1 + 2 sign w^2) of the logits must get the sign of 1 - p - q. It can change sign
    only where w passes 1 / sqrt(2) with sign = -1, and only if e^2 > 0 there.
    """
    right = (1.0 + 2.0 * sign * w**2) * (1.0 - p - q) > 0.0
    return right | ((sign < 0) & (energy(e, w, sign) > CRITICAL))


def boundary(w: Any) -> Any:
    """Return the e at which the energy is critical, for sign = -1."""
    return np.sqrt(np.maximum(CRITICAL + w**2 - np.log(w), 0.0))


class End(NamedTuple):
    """End of a flow: final state, loss, and ``"bigram"``, ``"unigram"`` or ``"other"``."""

    state: Array
    loss: float
    name: str


class ChainRisk:
    """Risk on sequences of T states, as a sum over the last state and the number of ones.

    Parameters
    ----------
    p, q
        Probabilities of the steps from 0 to 1 and from 1 to 0.
    T
        Number of states; with ``a = 0`` the risk does not depend on it.
    """

    def __init__(self, p: float, q: float, T: int = 2) -> None:
        self.up = np.array([p, 1.0 - q])  # probability of a 1 after each state
        table = np.array([[q, 0.0], [0.0, p]]) / (p + q)  # (last state, number of ones)
        rows = []
        for n in range(1, T):
            weights = table.ravel() / (T - 1)
            rows.append(
                [*np.indices(table.shape).reshape(2, -1), weights, np.full(weights.size, n)]
            )
            grown = np.zeros((2, n + 2))
            grown[0, :-1] = (1.0 - self.up) @ table
            grown[1, 1:] = self.up @ table
            table = grown
        all_rows = np.concatenate(rows, axis=1)
        x, ones, self.weight, n = all_rows[:, all_rows[2] > 0.0]
        self.x, self.mean, self.target = x, ones / n, self.up[x.astype(int)]
        self.sums = np.array([self.x, self.mean, np.ones_like(x)])
        share = p / (p + q)
        self.unigram = float(entr([share, 1.0 - share]).sum())
        rates = entr([self.up, 1.0 - self.up]).sum(axis=0)
        self.bigram = float(rates @ [1.0 - share, share])

    def logits(self, state: Array, sign: float) -> tuple[float, Array]:
        """Return the slope and the logits of all rows."""
        e, w, a, c = np.asarray(state).tolist()  # scalars of NumPy are slow
        slope = e**2 * (1.0 + 2.0 * sign * w**2)
        return slope, slope * (self.x + a * self.mean) + c

    def loss(self, state: Array, sign: float) -> float:
        """Return the risk at a state (4,)."""
        _, logit = self.logits(state, sign)
        return float(self.weight @ (np.logaddexp(0.0, logit) - self.target * logit))

    def gradient(self, state: Array, sign: float) -> Array:
        """Return the gradient (4,)."""
        e, w, a, _ = np.asarray(state).tolist()
        slope, logit = self.logits(state, sign)
        by_x, by_mean, by_c = (self.sums @ (self.weight * (expit(logit) - self.target))).tolist()
        by_slope = by_x + a * by_mean
        return np.array([
            by_slope * 2.0 * e * (1.0 + 2.0 * sign * w**2), by_slope * 4.0 * sign * e**2 * w,
            slope * by_mean, by_c,
        ])  # fmt: skip

    def end(self, start: Any, sign: float, *, attention: bool = False) -> End:
        """Return the end of the flow from a start; without ``attention``, a does not move."""
        moves = np.array([1.0, 1.0, float(attention), 1.0])

        def velocity(_: float, state: Array) -> Array:
            return -moves * self.gradient(state, sign)

        def rest(time: float, state: Array) -> float:
            return float(np.abs(velocity(time, state)).max()) - STATIONARY

        rest.terminal = True  # type: ignore[attr-defined]
        flow = solve_ivp(velocity, (0.0, HORIZON), start, method="LSODA", rtol=1e-8, atol=1e-11,
                         events=rest)  # fmt: skip
        state = flow.y[:, -1]
        loss, near = self.loss(state, sign), NEAR * (self.unigram - self.bigram)
        if abs(loss - self.bigram) <= near:
            return End(state, loss, "bigram")
        stays = state[0] ** 2 <= SMALL and abs(loss - self.unigram) <= near
        return End(state, loss, "unigram" if stays else "other")

    def leaves(self, start: Any, sign: float) -> bool:
        """Return whether the slope gets its right sign before e^2 falls below `SMALL`."""

        def side(_: float, state: Array) -> float:
            return 1.0 + 2.0 * sign * float(state[1]) ** 2

        def far(_: float, state: Array) -> float:
            return float(state[0]) ** 2 - SMALL

        side.terminal = far.terminal = True  # type: ignore[attr-defined]
        moves = np.array([1.0, 1.0, 0.0, 1.0])
        flow = solve_ivp(
            lambda _, state: -moves * self.gradient(state, sign), (0.0, 1e9), start,
            method="LSODA", rtol=1e-9, atol=1e-12, events=(side, far),
        )  # fmt: skip
        return len(flow.t_events[0]) > 0

    def bisected(self, w: float, c: float = 0.0) -> float:
        """Return the smallest e from which a flow leaves the wrong side, for sign = -1."""
        low, high = 2.0 * math.sqrt(SMALL), 2.0
        while high - low > 1e-7:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.leaves([middle, w, 0.0, c], -1.0) else (middle, high)
        return high


def ends(p: Array, q: Array, e: Array, w: Array, sign: Array, horizon: float) -> Array:
    """Return the final loss of flows from a = c = 0 at once, from bigram (0) to unigram loss (1).

    Parameters
    ----------
    p, q, e, w, sign
        Step probabilities and starts (n,).
    horizon
        Final time.
    """
    share = p / (p + q)

    def parts(state: Array) -> tuple[Array, ...]:
        e, w, c = state.reshape(3, -1)
        side = 1.0 + 2.0 * sign * w**2
        return e, w, c, side, e**2 * side

    def velocity(_: float, state: Array) -> Array:
        e, w, c, side, slope = parts(state)
        off = share * (expit(slope + c) - 1.0 + q)
        rest = (1.0 - share) * (expit(c) - p)
        return -np.concatenate([off * 2.0 * e * side, off * 4.0 * sign * e**2 * w, off + rest])

    start = np.concatenate([e, w, 0.0 * e])
    flow = solve_ivp(velocity, (0.0, horizon), start, method="RK45", rtol=1e-6, atol=1e-8)
    _, _, c, _, slope = parts(flow.y[:, -1])
    loss = share * (np.logaddexp(0.0, slope + c) - (1.0 - q) * (slope + c))
    loss += (1.0 - share) * (np.logaddexp(0.0, c) - p * c)
    unigram = entr(share) + entr(1.0 - share)
    bigram = share * (entr(q) + entr(1.0 - q)) + (1.0 - share) * (entr(p) + entr(1.0 - p))
    gain = unigram - bigram  # 0 where p + q = 1
    return np.asarray((loss - bigram) / np.where(gain > 1e-12, gain, math.nan))
