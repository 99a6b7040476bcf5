"""Invariant structure of two attention layers, and the times at which an induction head emerges.

The model is that of `simulations.stated.two_layers`: 19 order parameters, three of which, `HEAD`,
form the induction head. Their flow is studied alone and together with the other 16.
"""

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

#: Values at which an order parameter has emerged, and standard deviation of random starts.
THRESHOLDS, START = (0.25, 0.5, 0.75), 0.05
#: End of flows over N^2, and the loss at which the task is solved; the initial loss is 1/2.
HORIZON, SOLVED = 10.0, 0.05
#: The order parameters of the theory file, in the order in which they should emerge.
ORDER = ("g", "b", "a")
#: Smaller entries are rounding.
ROUNDING = 1e-12
#: Root seed and number of a random start, or ``None`` for the start at 0.
Start = tuple[int, int] | None


class Structure(NamedTuple):
    """Invariant structure of the model with every entry.

    Attributes
    ----------
    N
        Number of pairs.
    difference
        Largest relative difference between the implementations.
    counts
        Number of orbits of the group; numbers of distinct values detected from the gradient, of
        those that move, and of those that move from 0; number of conserved linear forms of moving
        order parameters; dimension of the smallest invariant affine space that contains 0.
    """

    N: int
    difference: float
    counts: tuple[int, ...]


class ThreeFlow(NamedTuple):
    """Flow of the three order parameters of the theory file.

    Attributes
    ----------
    N, start
        Number of pairs, and name of the start.
    when
        Mapping from threshold to the time at which each order parameter reaches it.
    solved
        Time at which the task is solved.
    flow
        The trajectory.
    """

    N: int
    start: str
    when: dict[float, dict[str, float]]
    solved: float
    flow: Trajectory


class FullFlow(NamedTuple):
    """Flow of all 19 order parameters until the task is solved.

    Attributes
    ----------
    N, start, solved, when
        As in `ThreeFlow`.
    head
        Final values of the induction head.
    other
        Name and final value of the largest other order parameter.
    alone
        Final loss with all other order parameters set to 0.
    time, states
        Times (n,) and order parameters (n, 19).
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


def structure(theory: Theory, N: int, seed: int) -> Structure:
    """Compare the model with every entry with the 19 order parameters and with the theory file."""
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


def _initial(start: Start, size: int) -> np.ndarray:
    """Return the initial values (size,): 0, or small random numbers."""
    if start is None:
        return np.zeros(size)
    rng = rng_at(start[0], 11033, start[1])
    return np.asarray(START * rng.normal(size=size))


def three_flow(theory: Theory, N: int, start: Start) -> ThreeFlow:
    """Return the flow of the three order parameters of the theory file."""
    population = risk(theory, N=N)
    flow = gradient_flow(population, horizon=HORIZON * N**2, initial=_initial(start, 3), rtol=1e-9,
                         atol=1e-12, records=500)  # fmt: skip
    index = {name: i for i, name in enumerate(population.order_parameters)}

    def size_of(i: int) -> Callable[[Any], float]:
        return lambda state: abs(float(state[i]))

    return ThreeFlow(
        N=N,
        start=_name(start),
        when={x: {name: first_passage(flow, size_of(index[name]), x) for name in ORDER}
              for x in THRESHOLDS},
        solved=first_passage(flow, lambda state: -population.evaluate(state).loss, -SOLVED),
        flow=flow,
    )  # fmt: skip


def _name(start: Start) -> str:
    """Return the name of a start in the tables."""
    return "0" if start is None else f"draw {start[1]}"


def limit(name: str, threshold: float, N: int) -> float:
    """Return the time at which an order parameter reaches a threshold from 0, for N -> infinity.

    While attention is uniform, dg/dt = (1 - g) / 2 N. Later g = 1, and (da/dt, db/dt) =
    e^a (b, 1) / 4 N^2, so that a = b^2 / 2 and erf(b / sqrt(2)) = t / (4 N^2 sqrt(pi/2)).
    """
    if name == "g":
        return -2.0 * N * math.log1p(-threshold)
    b = threshold if name == "b" else math.sqrt(2.0 * threshold)
    return 4.0 * N**2 * math.sqrt(math.pi / 2.0) * math.erf(b / math.sqrt(2.0))


def full_flow(N: int, start: Start) -> FullFlow:
    """Return the flow of all 19 order parameters, with time in units of d, up to the solution."""
    head = [NAMES.index(name) for name in HEAD]
    events: list[Any] = [lambda _, x, i=i, y=y: abs(x[i]) - y for y in THRESHOLDS for i in head]
    events.append(lambda _, x: float(loss_of(N, x).real) - SOLVED)
    events[-1].terminal = True
    solution = solve_ivp(
        lambda _, x: -slopes_of(N, x), (0.0, HORIZON * N**2), _initial(start, len(NAMES)),
        method="LSODA", rtol=1e-7, atol=1e-9, events=events,
    )  # fmt: skip
    end = solution.y[:, -1]
    truncated = np.where(np.isin(np.arange(len(end)), head), end, 0.0)
    largest = int(np.abs(end - truncated).argmax())
    times = [float(x[0]) if len(x) else float("nan") for x in solution.t_events]
    return FullFlow(
        N=N,
        start=_name(start),
        solved=times[-1],
        head={name: float(end[i]) for name, i in zip(HEAD, head)},
        other=(NAMES[largest], float(end[largest])),
        alone=float(loss_of(N, truncated).real),
        when={x: dict(zip("abg", times[3 * row :])) for row, x in enumerate(THRESHOLDS)},
        time=solution.t,
        states=solution.y.T,
    )


def powers(flows: list[ThreeFlow]) -> list[dict[str, Any]]:
    """Return local exponents of N of the times of successive flows from the same start.

    Returns
    -------
    list of dict
        Rows with the name and threshold of a time (``"loss"`` and `SOLVED` for the solution), the
        smaller N, the start, and the exponent.
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
    """Return N times the largest relative difference of the times of a flow from their limits."""
    distances = [
        flow.N * abs(flow.when[x][name] / limit(name, x, flow.N) - 1.0)
        for x in THRESHOLDS
        for name in ORDER
    ]
    return float(np.max(distances))


def in_order(flow: ThreeFlow | FullFlow) -> bool:
    """Return whether g, b and a emerge in this order, at every threshold."""
    return all(times["g"] < times["b"] < times["a"] for times in flow.when.values())


def pull(N: int) -> float:
    """Return -4 N^2 dL/da3 for uniform attention and stationary g1 to g4.

    There g3 + g4 = 0 as N -> infinity. The tokens before the item of each label contribute in
    inverse proportion to their number, which gives log(N) / 2 + O(1). The same multiple of dL/db2
    is 1. In the flow of three order parameters, dL/da is 0 while b is 0.
    """
    last = np.arange(len(NAMES)) >= NAMES.index("g1")
    rows = np.array([slopes_of(N, row)[last] for row in np.eye(len(NAMES))[last]])
    at_rest = slopes_of(N, np.zeros(len(NAMES)))[last]
    settled = np.zeros(len(NAMES))
    settled[last] = np.linalg.lstsq(rows - at_rest, -at_rest, rcond=1e-10)[0]
    return float(-4.0 * N**2 * slopes_of(N, settled)[NAMES.index("a3")])
