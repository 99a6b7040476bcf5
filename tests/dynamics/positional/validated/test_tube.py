"""Tubes of the reduced dynamics. Reference: an integration in Arb that shares no code with them."""

import numpy as np
import pytest
from flint import arb, arb_series, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import Population, Problem, ToleranceError, gradient_flow
from dynamics.core.tube.clocks import Flow
from dynamics.core.tube.tube import enclose
from dynamics.positional.validated.system import ReducedSystem
from tests.dynamics.core.balls.reference import number, precise
from tests.dynamics.positional.validated.reference import velocity

GAP = np.array([0.0, 1.0, -1.0])
ORDER, STEPS = 12, 3


def integrated(problem, system, horizon, steps):
    """Return the solution at the horizon by Taylor series in Arb, and an error estimate."""
    before = ctx.prec, ctx.cap
    ctx.prec = 160
    try:
        theta, step, lost = [number(x) for x in system.start], number(horizon) / steps, arb(0)
        for _ in range(steps):
            series = [[x] for x in theta]
            for k in range(ORDER):
                ctx.cap = k + 1
                slopes = velocity(problem, [arb_series(column) for column in series])
                for column, slope in zip(series, slopes):
                    column.append(arb(slope[k].mid()) / (k + 1))
            theta = [
                sum((c * step**k for k, c in enumerate(column)), arb(0)).mid() for column in series
            ]
            lost += 10 * sum((abs(column[-1]) for column in series), arb(0)) * step**ORDER
        return theta, lost
    finally:
        ctx.prec, ctx.cap = before


@st.composite
def problems(draw):
    D, C = draw(st.sampled_from([(4, 2), (4, 2), (6, 3)]))
    return Problem(
        D=D,
        C=C,
        q=draw(st.floats(0.05, 1.0)),
        nu=draw(st.floats(1e-3, 0.3)),
        beta=draw(st.floats(-1.0, 2.0)),
        temperature=draw(st.sampled_from([1.0, 0.7])),
    )


class TestSmallProblems:
    @pytest.mark.slow
    @settings(max_examples=30)
    @given(problem=problems())
    def test_tube_contains_a_taylor_integration(self, problem):
        system = ReducedSystem(problem)
        curvature = system.field(system.start, 0.1).jacobian_at(system.start)
        # a small curvature at the start may grow later
        horizon = min(0.3 / float(np.max(np.abs(curvature))), 30.0)
        tube = enclose(system, Flow(), horizon, tolerance=1e-7, functional=GAP)
        assert tube.reason == ""
        assert np.all(tube.radius < 1e-5)
        for steps in (STEPS, 4 * STEPS, 16 * STEPS):  # more steps for flows that turn fast
            exact, lost = integrated(problem, system, horizon, steps)
            if lost < 1e-9:
                break
        assert lost < 1e-9
        with precise():
            for x, column, r in zip(exact, tube.pieces[-1].coefficients.T, tube.radius):
                last = sum((number(c) for c in column), arb(0))
                assert abs(x - last) <= number(r) + lost


class TestLongRun:
    problem = Problem(D=16, C=2, q=4 / 16)

    @pytest.fixture(scope="class")
    @classmethod
    def tube(cls):
        return enclose(ReducedSystem(cls.problem), Flow(), 100.0, tolerance=1e-3, functional=GAP)

    def test_tube_contains_the_solution_of_the_solver(self, tube):
        assert tube.end == 100.0
        flow = gradient_flow(Population(self.problem, tolerance=1e-12), horizon=100.0, rtol=1e-11)
        distance = np.abs(np.array(flow.final) - tube.pieces[-1].at(1.0))
        assert np.all(distance <= tube.radius + 1e-8 * np.abs(flow.final))
        assert np.all(tube.radius < 1e-4)

    def test_gamma_exceeds_rho_along_the_tube(self, tube):
        assert all(part.value[0] > 0.0 for parts in tube.parts[1:] for part in parts)
        assert all(part.rate[0] > 0.0 for part in tube.parts[0])


def test_default_start_has_a_radius_for_its_rounding():
    system = ReducedSystem(Problem(D=8, C=2, q=0.3))
    assert 0.0 < system.start_radius[0] < 1e-16
    given = ReducedSystem(Problem(D=8, C=2, q=0.3), initial=system.start)
    assert np.all(given.start_radius == 0.0)


def test_too_many_images_raise_or_end_the_tube():
    system = ReducedSystem(Problem(D=64, C=4, q=16 / 64), most_states=2000)
    with pytest.raises(ToleranceError, match="features"):
        system.field(system.start, 1e-6)
    tube = enclose(system, Flow(), 1.0, tolerance=1e-6, functional=GAP)
    assert "no field is accurate enough" in tube.reason
    assert tube.end == 0.0
