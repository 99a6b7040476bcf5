"""An induction head: what its two layers keep, and when three numbers, or all 19, emerge."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from dynamics import Trajectory, gradient_flow
from dynamics.core.crossing import first_passage
from dynamics.theory import closure
from simulations.seeds import rng_at
from simulations.stated.runs import risk
from simulations.stated.two_layers import HEAD, NAMES, Entries, loss_of, slopes_of
from symbolic.theory import Theory

#: Sizes at which a number has emerged, and how large random starts are.
THRESHOLDS, START = (0.25, 0.5, 0.75), 0.05
#: End of flows in N^2; the loss at which the task is solved, from 1/2 at first.
HORIZON, SOLVED = 10.0, 0.05
#: The three numbers as they are stated, in the order in which they should emerge.
ORDER = ("g", "b", "a")
#: Entries below this are 0 but for rounding.
ROUNDING = 1e-12


#: A start: 0, or the root seed and the number of a random one.
Draw = tuple[int, int] | None


class Structure(NamedTuple):
    """What two layers with every entry keep, and the largest difference of their readings.

    ``counts``: orbits of the group; from the gradient alone values that stay apart, those of them
    that move, and those that move from 0; conserved linear sums of what moves; dimensions of the
    smallest space around 0.
    """

    N: int
    difference: float
    counts: tuple[int, ...]


class ThreeFlow(NamedTuple):
    """A flow of three numbers: when each emerges, by threshold, and when the task is solved."""

    N: int
    start: str
    when: dict[float, dict[str, float]]
    solved: float
    flow: Trajectory


class Free(NamedTuple):
    """A flow of all 19 until the task is solved.

    ``head`` holds the three numbers then, ``other`` the largest of the others and its name,
    ``alone`` the loss with the others put to 0; ``when`` as of `ThreeFlow`.
    """

    N: int
    start: str
    solved: float
    head: dict[str, float]
    other: tuple[str, float]
    alone: float
    when: dict[float, dict[str, float]]
    time: np.ndarray
    states: np.ndarray

    @property
    def largest(self) -> bool:
        """Whether each of the three has emerged and is larger than all others."""
        return min(map(abs, self.head.values())) > max(0.5, abs(self.other[1]))

    @property
    def by_the_head(self) -> bool:
        """Whether the three account for it: largest, in order, half of the fall by themselves."""
        return self.largest and self.alone <= 0.25 and in_order(self)


def structure(theory: Theory, N: int, seed: int) -> Structure:
    """Compare the gradient in every entry with the 19 numbers and with the three of the theory."""
    rng = rng_at(seed, 19, N)
    entries, population, n = Entries(N), risk(theory, N=N), len(NAMES)
    states = rng.normal(size=(2 * n + 4, n))
    slopes = np.array([slopes_of(N, state) for state in states])
    at, gradient = entries.lift @ states[0], entries.gradient(entries.lift @ states[0])
    head = [NAMES.index(name) for name in HEAD]
    three = np.zeros(n)
    three[head] = states[0][head]
    differences = [
        entries.loss(at).real / loss_of(N, states[0]).real - 1.0,
        np.abs(gradient - entries.lift @ slopes[0] / entries.d).max() / np.abs(gradient).max(),
        population.evaluate(three[head]).loss / entries.loss(entries.lift @ three).real - 1.0,
    ]
    start = entries.fixed(rng.normal(size=entries.size))
    start[np.abs(start) < ROUNDING] = 0.0
    partition = closure.discover(entries.gradient, start)
    idle = int((np.abs(slopes).max(axis=0) == 0.0).sum())
    counts = (
        entries.orbits,
        len(partition.moves),
        int(partition.moves.sum()),
        int(closure.discover(entries.gradient, np.zeros(entries.size)).moves.sum()),
        len(closure.linear(slopes)) - idle,
        len(closure.closure(lambda x: slopes_of(N, x), np.zeros(n))),
    )
    return Structure(N, float(np.abs(differences).max()), counts)


def _drawn(draw: Draw, size: int) -> np.ndarray:
    """Return a start: 0, or small random numbers."""
    if draw is None:
        return np.zeros(size)
    rng = rng_at(draw[0], 11033, draw[1])
    return np.asarray(START * rng.normal(size=size))


def three_flow(theory: Theory, N: int, draw: Draw) -> ThreeFlow:
    """Return the flow of the three stated numbers from 0, or from a random start."""
    population = risk(theory, N=N)
    flow = gradient_flow(population, horizon=HORIZON * N**2, initial=_drawn(draw, 3), rtol=1e-9,
                         atol=1e-12, records=2000)  # fmt: skip
    index = {name: i for i, name in enumerate(population.order_parameters)}

    def size_of(i: int) -> Callable[[Any], float]:
        return lambda state: abs(float(state[i]))

    return ThreeFlow(
        N=N,
        start=_name(draw),
        when={x: {name: first_passage(flow, size_of(index[name]), x) for name in ORDER}
              for x in THRESHOLDS},
        solved=first_passage(flow, lambda state: -population.evaluate(state).loss, -SOLVED),
        flow=flow,
    )  # fmt: skip


def _name(draw: Draw) -> str:
    return "0" if draw is None else f"draw {draw[1]}"


def limit(name: str, threshold: float, N: int) -> float:
    """Return when a number reaches a threshold from 0, for N -> infinity.

    Attention is uniform until long after: dg/dt = (1 - g) / 2 N; then, with g = 1, a and b move by
    e^a (b, 1) / 4 N^2, so that a = b^2 / 2 and erf(b / sqrt(2)) = t / (4 N^2 sqrt(pi/2)).
    """
    if name == "g":
        return -2.0 * N * math.log1p(-threshold)
    b = threshold if name == "b" else math.sqrt(2.0 * threshold)
    return 4.0 * N**2 * math.sqrt(math.pi / 2.0) * math.erf(b / math.sqrt(2.0))


def free_flow(N: int, draw: Draw) -> Free:
    """Return the flow of all 19 numbers, in units of d, until the task is solved."""
    head = [NAMES.index(name) for name in HEAD]
    events: list[Any] = [lambda _, x, i=i, y=y: abs(x[i]) - y for y in THRESHOLDS for i in head]
    events.append(lambda _, x: float(loss_of(N, x).real) - SOLVED)
    events[-1].terminal = True
    solution = solve_ivp(
        lambda _, x: -slopes_of(N, x), (0.0, HORIZON * N**2), _drawn(draw, len(NAMES)),
        method="LSODA", rtol=1e-7, atol=1e-9, events=events,
    )  # fmt: skip
    end = solution.y[:, -1]
    truncated = np.where(np.isin(np.arange(len(end)), head), end, 0.0)
    largest = int(np.abs(end - truncated).argmax())
    times = [float(x[0]) if len(x) else float("nan") for x in solution.t_events]
    return Free(
        N=N,
        start=_name(draw),
        solved=times[-1],
        head={name: float(end[i]) for name, i in zip(HEAD, head)},
        other=(NAMES[largest], float(end[largest])),
        alone=float(loss_of(N, truncated).real),
        when={x: dict(zip("abg", times[3 * row :])) for row, x in enumerate(THRESHOLDS)},
        time=solution.t,
        states=solution.y.T,
    )


def powers(flows: list[ThreeFlow]) -> list[dict[str, Any]]:
    """Return local powers of N of times between successive flows from one start.

    Each row has the number and threshold of a time (``"loss"`` and `SOLVED` where the task is
    solved), N of the shorter flow, its start, and the power.
    """
    rows = []
    for shorter, longer in pairwise(flows):
        if shorter.start != longer.start:
            continue
        times = {
            (name, x): (shorter.when[x][name], longer.when[x][name])
            for x in THRESHOLDS
            for name in ORDER
        }
        times["loss", SOLVED] = shorter.solved, longer.solved
        for (name, threshold), (before, after) in times.items():
            power = math.log(after / before) / math.log(longer.N / shorter.N)
            rows.append({
                "number": name, "threshold": threshold, "N": shorter.N, "start": shorter.start,
                "power": power,
            })  # fmt: skip
    return rows


def far_from_limits(flow: ThreeFlow) -> float:
    """Return the largest relative distance of a time of a flow from 0 from its limit, times N."""
    distances = [
        flow.N * abs(flow.when[x][name] / limit(name, x, flow.N) - 1.0)
        for x in THRESHOLDS
        for name in ORDER
    ]
    return float(np.max(distances))


def in_order(flow: ThreeFlow | Free) -> bool:
    """Return whether W3, W2 and W1 emerge in this order, whatever the threshold."""
    return all(times["g"] < times["b"] < times["a"] for times in flow.when.values())


def pull(N: int) -> float:
    """Return -4 N^2 dL/da3 where attention is uniform and g1 to g4 have settled.

    g3 + g4 = 0 then, as N -> infinity, and what labels see before their item, weighed by 1 over how
    much they see, adds up: log(N) / 2 + O(1), while b2 is pulled by 1. Of three numbers a has no
    pull before b.
    """
    last = np.arange(len(NAMES)) >= NAMES.index("g1")
    rows = np.array([slopes_of(N, row)[last] for row in np.eye(len(NAMES))[last]])
    at_rest = slopes_of(N, np.zeros(len(NAMES)))[last]
    settled = np.zeros(len(NAMES))
    settled[last] = np.linalg.lstsq(rows - at_rest, -at_rest, rcond=1e-10)[0]
    return float(-4.0 * N**2 * slopes_of(N, settled)[NAMES.index("a3")])
