"""Phases of trajectories, and their scaling with P (Section 5) in the mean field."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from dynamics import Status, gradient_descent, gradient_flow
from dynamics.core.errors import ParameterError
from dynamics.masked import MaskedPopulation, MaskedProblem, MaskedTrajectory
from dynamics.masked.events import MaskedEvents, find_events, projected_positions
from tests.closeness import close

DECADES = [10**k for k in (6, 8, 10, 12)]


@cache
def run(P: int, kappa_c: float, kappa_s: float, query: str = "local") -> tuple[Any, MaskedEvents]:
    problem = MaskedProblem(P=P, kappa_c=kappa_c, kappa_s=kappa_s, query=query)
    exponent = 1.0 - (kappa_s if query == "local" else kappa_c)
    horizon = 40.0 * P**exponent + 1e5
    population = MaskedPopulation(problem)
    trajectory = gradient_flow(population, horizon=horizon)
    assert trajectory.status is Status.COMPLETED
    return trajectory, find_events(trajectory, population, eps=1e-4)


def exponent(values: list[float]) -> float:
    return float(np.polyfit(np.log(DECADES), values, 1)[0])


@pytest.mark.slow
@pytest.mark.parametrize(("kappa_c", "kappa_s"), [(0.95, 0.3), (0.9, 0.45)])
def test_positive_gap_gives_two_phases(kappa_c: float, kappa_s: float) -> None:
    gap = (1 - kappa_s) - 2 * (1 - kappa_c)
    events = [run(P, kappa_c, kappa_s)[1] for P in DECADES]
    assert [e.phases for e in events] == [2] * 4
    assert exponent([np.log(e.initial_ratio) for e in events]) == pytest.approx(gap, abs=0.02)
    assert exponent([e.rival_at_switch for e in events]) == pytest.approx(-gap / 2, abs=0.01)
    for time in ("switch", "attended"):
        measured = exponent([np.log(getattr(e, time).time) for e in events])
        assert measured == pytest.approx(1 - kappa_s, abs=0.015)
    for e in events:
        assert e.switch.time < e.attended.time < e.learned.time
        assert e.others_at_switch < 0.02 * abs(e.rival_at_switch)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kappa_c", "kappa_s", "query", "time"),
    [(0.6, 0.4, "local", 0.6), (0.95, 0.3, "global", 0.05)],
)
def test_one_phase(kappa_c: float, kappa_s: float, query: str, time: float) -> None:
    events = [run(P, kappa_c, kappa_s, query)[1] for P in DECADES]
    assert [e.phases for e in events] == [1] * 4
    assert all(e.switch.time == 0.0 for e in events)
    assert exponent([np.log(e.attended.time) for e in events]) == pytest.approx(time, abs=0.01)


@pytest.mark.slow
def test_final_stage() -> None:
    """The factor a^2 in dS/dt = -2 mask_ratio z^4 a^2 S^2 at a = 0.99 gives 1 / 0.99^2."""
    for arguments in ((0.95, 0.3), (0.9, 0.45), (0.6, 0.4), (0.95, 0.3, "global")):
        assert run(10**12, *arguments)[1].final_stage == pytest.approx(1.0203, abs=5e-4)


@pytest.mark.slow
def test_invariants_and_dataset_of_a_run() -> None:
    trajectory, events = run(10**6, 0.95, 0.3)
    assert isinstance(trajectory, MaskedTrajectory)
    assert trajectory.violations() == dict.fromkeys(trajectory.violations(), 0.0)
    assert set(trajectory.violations()) >= {"own correlation grows", "positions sum to zero"}
    data = trajectory.to_dataset()
    assert {"Phi_own", "Upsilon_self", "own_attention_1", "excess", "loss"} <= set(data)
    assert float(data.own_attention_1[-1]) > 0.99
    close(trajectory.shortfall[-1, 0], (1 - trajectory.own_attention[-1, 0]) ** 2, rel=1e-12)
    assert trajectory.phi_global[-1, 0] < -4.0 < 16.0 < trajectory.phi_own[-1, 0]
    assert np.abs(trajectory.upsilon).max() < 0.3
    close(trajectory.at(events.switch.time), events.switch.state, rel=1e-12)
    value = MaskedPopulation(trajectory.problem).evaluate(trajectory.states[0])
    close(value.own_attention, trajectory.own_attention[0], rel=1e-12)
    assert events.switch.state[0] == events.rival_at_switch


class TestSmall:
    problem = MaskedProblem.from_sizes([10, 2, 2], [4, 6, 4], query=11, seed=2)

    def test_finite_counts_and_clusters(self) -> None:
        """Both clusters are learned if all masks are enumerated."""
        population = MaskedPopulation(self.problem)
        trajectory = gradient_descent(population, learning_rate=2.0, steps=3000)
        for cluster in (0, 1):
            events = find_events(trajectory, population, cluster=cluster, eps=0.1)
            assert events.learned.happens
            assert events.phases in (1, 2)
            assert np.isfinite(events.final_stage)
        projected = projected_positions(self.problem, trajectory.final)
        layout = self.problem.layout
        total = layout.size[:-1] @ trajectory.final[layout.cell_slot[:-1]]
        sizes = np.array([10, 1, 2])  # without p
        close(projected @ sizes, total, rel=1e-12)

    def test_events_after_the_end_of_the_run(self) -> None:
        population = MaskedPopulation(MaskedProblem.two_phases(10**6))
        events = find_events(gradient_flow(population, horizon=10.0), population)
        assert events.phases == 0
        assert not events.switch.happens
        assert np.isnan([events.rival_at_switch, events.others_at_switch, events.final_stage]).all()

    def test_rejects_bad_arguments(self) -> None:
        population = MaskedPopulation(self.problem)
        trajectory = gradient_flow(population, horizon=1.0)
        with pytest.raises(ParameterError, match="cluster = 2"):
            find_events(trajectory, population, cluster=2)
        with pytest.raises(ParameterError, match=r"eps = 0\.5"):
            find_events(trajectory, population, eps=0.5)
        with pytest.raises(ParameterError, match="MaskedTrajectory"):
            find_events("a run", population)
