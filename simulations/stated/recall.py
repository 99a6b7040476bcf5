"""Linear attention that stores facts: both parts of its loss, reduced and with every entry.

The theory is in ``examples/factual_recall.py``.
"""

import math
from collections.abc import Collection
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import quad, solve_ivp

from dynamics import Trajectory, gradient_flow
from dynamics.core.crossing import first_passage
from simulations.stated.runs import risk

#: Numbers of subjects, of answers of a relation, and of relations.
Sizes = tuple[int, int, int]


class Part(NamedTuple):
    """Part of the loss, log(1 + (n - 1) e^-x), where x is a product of two order parameters.

    Attributes
    ----------
    choices
        Number n of answers.
    matrix, vector
        Rates of the difference of two matrix entries, and of the vector entry, relative to the
        probability of a wrong answer and to the other factor.
    """

    choices: int
    matrix: float
    vector: float

    @property
    def rate(self) -> float:
        """Rate of exponential growth from 0."""
        return (1.0 - 1.0 / self.choices) * math.sqrt(self.matrix * self.vector)

    def half_time(self, alpha: float) -> float:
        """Return the half-loss time: that at which the part is (log n) / 2.

        The flow starts with the vector entry alpha and the matrix difference 0.

        With p = 1 / (1 + e^x / (n - 1)) the equation dx/dt = 2 p sqrt(m^2 alpha^4 / 4 + m w x^2)
        follows from the conserved difference of squares (m = ``matrix``, w = ``vector``).
        """
        end = math.log((self.choices - 1.0) / (math.sqrt(self.choices) - 1.0))
        unit = 0.5 * alpha**2 * math.sqrt(self.matrix / self.vector)
        last = math.asinh(end / unit)
        wrong = quad(
            lambda s: math.exp(unit * math.sinh(s)), 0.0, last, epsabs=0.0, epsrel=1e-11, limit=200
        )[0]
        return (last + wrong / (self.choices - 1.0)) / (2.0 * math.sqrt(self.matrix * self.vector))


def parts(S: int, D: int, R: int) -> dict[str, Part]:
    """Return both parts of the loss at these sizes."""
    return {
        "relation": Part(R, 1.0 / ((R - 1) * D), 1.0 / R),
        "subject": Part(D, D / ((D - 1) * R * S), 1.0 / S),
    }


def losses(state: Any, D: int, R: int) -> dict[str, Any]:
    """Return the parts of the loss at states (..., 8)."""
    V_own, V_other, U_same, U_other, _, v, u, _ = np.moveaxis(np.asarray(state), -1, 0)
    return {
        "relation": np.log1p((R - 1) * np.exp(-u * (U_same - U_other))),
        "subject": np.log1p((D - 1) * np.exp(-v * (V_own - V_other))),
    }


class Learned(NamedTuple):
    """Flow with a plateau between the two parts of the loss.

    Attributes
    ----------
    relation, subject
        Half-loss times of the parts.
    rest
        Loss on the plateau.
    time, losses
        Times (n,), and mapping from part to loss (n,).
    """

    relation: float
    subject: float
    rest: float
    time: np.ndarray
    losses: dict[str, np.ndarray]

    @property
    def first(self) -> str:
        """Part that is learned first."""
        return "relation" if self.relation < self.subject else "subject"

    @property
    def loss(self) -> np.ndarray:
        """Total loss at each time."""
        return self.losses["relation"] + self.losses["subject"]


def rest(time: np.ndarray, loss: np.ndarray, between: Collection[float]) -> float:
    """Return the loss where it decreases slowest in log time between two times."""
    grid = np.geomspace(min(between), max(between), 400)
    level = np.interp(np.log(grid), np.log(time), loss)
    return float(level[np.gradient(level, np.log(grid)).argmax()])


def reduced_flow(theory: Any, sizes: Sizes, alpha: float) -> Learned:
    """Return the flow of the derived risk until both parts are learned."""
    S, D, R = sizes
    end = 1.5 * max(part.half_time(alpha) for part in parts(*sizes).values())
    population = risk(theory, S=S, D=D, R=R, N=1, L=1, alpha=alpha)
    flow = gradient_flow(population, horizon=end, rtol=1e-10, atol=1e-10 * alpha, records=400)
    time = np.geomspace(1e-3 * end, end, 1500)
    along = losses([flow.at(t) for t in time], D, R)
    times = {part: _half_time(flow, part, D, R) for part in along}
    level = rest(time, along["relation"] + along["subject"], times.values())
    return Learned(**times, rest=level, time=time, losses=along)


def _half_time(flow: Trajectory, part: str, D: int, R: int) -> float:
    half = 0.5 * math.log({"relation": R, "subject": D}[part])
    return first_passage(flow, lambda state: -float(losses(state, D, R)[part]), -half)


class AllEntries:
    """Loss and gradient with every entry of V, U, v and u, without noise tokens.

    Noise tokens shift all logits by the same amount while the entries of W are equal.
    """

    def __init__(self, S: int, D: int, R: int) -> None:
        self.S, self.D, self.R = S, D, R
        self.shapes = {"V": (D, R, S), "U": (D, R, R), "v": (S,), "u": (R,)}
        ends = np.cumsum([0, *map(math.prod, self.shapes.values())]).tolist()
        self.ranges = [slice(*pair) for pair in pairwise(ends)]
        group, relation = np.arange(S) // (S // D), np.arange(R)
        self.answer = np.zeros((S, R, D, R))
        self.answer[np.arange(S)[:, None], relation, group[:, None], relation] = 1.0
        known = [self.answer.sum(axis=axis) / (S * R) for axis in (1, 0)]
        self.known = [x.reshape(-1, D * R).T for x in known]

    def split(self, state: np.ndarray) -> dict[str, np.ndarray]:
        """Return the arrays of a state (n,)."""
        pieces = zip(self.ranges, self.shapes.items())
        return {name: state[part].reshape(shape) for part, (name, shape) in pieces}

    def factors(self, x: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Return exp(logits) of subjects (D R, S) and relations (D R, R), scaled by columns."""
        logits = [x[name].reshape(self.D * self.R, -1) * x[name.lower()] for name in "VU"]
        return [np.exp(y - y.max(axis=0)) for y in logits]

    def probabilities(self, state: np.ndarray) -> np.ndarray:
        """Return the probability of each answer (subject, relation, group, relation)."""
        subject, relation = self.factors(self.split(state))
        raised = subject.T[:, None] * relation.T
        raised /= raised.sum(axis=2, keepdims=True)
        return np.asarray(raised.reshape(self.answer.shape))

    def slope(self, state: np.ndarray) -> np.ndarray:
        """Return minus the gradient of the mean cross-entropy (n,)."""
        x = self.split(state)
        subject, relation = self.factors(x)
        weight = 1.0 / (self.S * self.R * (subject.T @ relation))
        missed = (
            self.known[0] - subject * (relation @ weight.T),
            self.known[1] - relation * (subject @ weight),
        )
        first = [y * x[name] for y, name in zip(missed, "vu")]
        second = [(y * x[name].reshape(y.shape)).sum(axis=0) for y, name in zip(missed, "VU")]
        return np.concatenate([piece.ravel() for piece in (*first, *second)])

    def losses(self, state: np.ndarray) -> dict[str, float]:
        """Return mean -log P(relation) and mean -log P(answer given its relation)."""
        probabilities = self.probabilities(state)
        whole = -np.log((probabilities * self.answer).sum(axis=(2, 3))).mean()
        own = np.einsum("ijgj->ij", probabilities)
        relation = -np.log(own).mean()
        return {"relation": float(relation), "subject": float(whole - relation)}


def free_flow(sizes: Sizes, alpha: float, seed: int) -> Learned:
    """Return the flow of every entry from a normal start with standard deviation alpha."""
    model, (_, D, R) = AllEntries(*sizes), sizes
    end = 2.0 * max(part.half_time(alpha) for part in parts(*sizes).values())
    size = sum(math.prod(shape) for shape in model.shapes.values())
    start = alpha * np.random.default_rng(seed).normal(size=size)
    time = np.geomspace(1e-3 * end, end, 300)
    flow = solve_ivp(
        lambda _, state: model.slope(state), (0.0, end), start, method="RK45", rtol=1e-6,
        atol=1e-3 * alpha, t_eval=time,
    )  # fmt: skip
    rows = [model.losses(state) for state in flow.y.T]
    along = {part: np.array([row[part] for row in rows]) for part in ("relation", "subject")}
    times = {
        part: float(np.interp(-0.5 * math.log(n), -along[part], time, right=np.nan))
        for part, n in (("relation", R), ("subject", D))
    }
    level = rest(time, along["relation"] + along["subject"], times.values())
    return Learned(**times, rest=level, time=time, losses=along)
