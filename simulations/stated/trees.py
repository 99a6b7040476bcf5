"""Disentangled transformer of two layers on tree-structured tokens, by hand, trained in stages.

The theory is in ``examples/causal_structure.py``.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

from dynamics.theory.sequences import Tokens

Array = np.ndarray
#: Parent of each position; ``None`` for a root.
Parents = tuple[int | None, ...]
#: Default end of flows, and number of recorded times.
HORIZON, RECORDS = 1e6, 200


class Flow(NamedTuple):
    """Times (n,), scores of the first layer (n, T, T), B (n, 2), and losses (n,)."""

    time: Array
    scores: Array
    B: Array
    loss: Array


class TreeRisk:
    """Risk of the next token; its successor is the child of the last token seen.

    B enters as its diagonal entry minus any other, because the same score for all positions cancels
    in the second softmax.

    Parameters
    ----------
    S
        Number of tokens.
    parent
        Parents of all positions; the last is the token to predict.
    eps
        Constant in the logarithm.
    """

    def __init__(self, S: int, parent: Parents, eps: float) -> None:
        self.S, self.parent, self.eps, self.T = S, parent, eps, len(parent) - 1
        orbits = list(Tokens("polya", S, Fraction(1), parent).orbits())
        labels = np.array([labels for labels, _, _ in orbits])
        seen = labels[:, :-1]
        rows = np.hstack([seen == seen[:, -1:], seen == labels[:, -1:]]).astype(float)
        unique, which = np.unique(rows, axis=0, return_inverse=True)
        self.query, self.target = unique[:, : self.T], unique[:, self.T :]
        self.weight = np.bincount(which.ravel(), [float(weight) for _, _, weight in orbits])
        self.hidden = np.where(np.tri(self.T, dtype=bool), 0.0, -np.inf)
        self.children = [(t, s) for t, s in enumerate(parent[:-1]) if s is not None]

    def attention(self, scores: Array) -> Array:
        """Return the first attention (..., T, T) of scores (..., T, T)."""
        hidden = scores + self.hidden
        raised = np.exp(hidden - hidden.max(axis=-1, keepdims=True))
        return np.asarray(raised / raised.sum(axis=-1, keepdims=True))

    def on_parents(self, scores: Array) -> Array:
        """Return the attention of each position that has a parent to it, (..., children)."""
        attention = self.attention(scores)
        return np.stack([attention[..., t, s] for t, s in self.children], axis=-1)

    def value(self, scores: Array, B: Array) -> tuple[float, Array, Array]:
        """Return the risk, and its derivatives in scores (T, T) and in one entry of B (2,)."""
        first = self.attention(scores)
        strength = B[0] - B[1]
        match = self.query @ first.T
        raised = np.exp(strength * match)
        second = raised / raised.sum(axis=1, keepdims=True)
        prediction = (second * self.target).sum(axis=1) + self.eps
        by_second = -(self.weight / prediction)[:, None] * self.target
        by_score = second * (by_second - (second * by_second).sum(axis=1, keepdims=True))
        by_first = strength * by_score.T @ self.query
        by_scores = first * (by_first - (first * by_first).sum(axis=1, keepdims=True))
        slope = float((by_score * match).sum())
        entries = np.array([self.S, -self.S * (self.S - 1.0)])
        return -float(self.weight @ np.log(prediction)), by_scores, slope / entries

    def flow(
        self, scores: Array, B: Array, *, first: bool, second: bool, horizon: float = HORIZON
    ) -> Flow:
        """Return the flow of the layers that are trained."""
        n, visible = self.T**2, np.tri(self.T, dtype=bool).ravel()
        moves = np.concatenate([first & visible, [second, second]])
        state = np.concatenate([scores.ravel(), B])

        def velocity(_: float, moving: Array) -> Array:
            state[moves] = moving
            _, by_scores, by_B = self.value(state[:n].reshape(self.T, -1), state[n:])
            return -np.concatenate([by_scores.ravel(), by_B])[moves]

        time = np.concatenate([[0.0], np.geomspace(1e-2, horizon, RECORDS - 1)])
        run = solve_ivp(
            velocity, (0.0, horizon), state[moves], method="LSODA", rtol=1e-8, atol=1e-10,
            t_eval=time,
        )  # fmt: skip
        states = np.tile(state, (len(run.t), 1))
        states[:, moves] = run.y.T
        along, B_along = states[:, :n].reshape(-1, self.T, self.T), states[:, n:]
        loss = [self.value(*pair)[0] for pair in zip(along, B_along)]
        return Flow(run.t, along, B_along, np.array(loss))

    def least(self) -> float:
        """Return the least loss with attention to the parents alone, and to itself for a root."""
        scores = np.full((self.T, self.T), -1e3)
        for t in range(self.T):
            own = self.parent[t]
            scores[t, t if own is None else own] = 0.0

        def loss(strength: float) -> float:
            return self.value(scores, np.array([strength, 0.0]))[0]

        return float(minimize_scalar(loss, bounds=(0.0, 60.0), method="bounded").fun)
