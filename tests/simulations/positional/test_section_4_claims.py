"""Claims of Section 4: measurements against independent computations."""

import itertools
import math

import matplotlib.figure
import numpy as np
import pytest
from scipy import optimize

from dynamics import Population, Problem, State
from dynamics.positional.many_patch_limit import Limit, quasi_steady
from dynamics.positional.samples import History
from simulations.positional import large_D_flows as large
from simulations.positional.claims import (
    equation_T,
    lemma_d_2,
    lemma_d_11,
    linear_at_start,
    theorem_4_1_dimension,
    theorem_4_2_one_rate,
)
from simulations.reproduction import snapshot
from tests.closeness import close, within
from tests.simulations.quick import result


class TestEquationT:
    def test_gradient_of_the_logits_scales_with_the_temperature(self):
        problem = Problem.equation_T(16, 4, 0.25, beta=1.2)
        tau, state = problem.tau, State(0.3, 0.8, -0.4)
        scaled = problem.replace(temperature=1.0, beta=problem.beta / tau)
        slope = Population(problem, tolerance=1e-12).gradient(state)
        other = Population(scaled, tolerance=1e-12).gradient(
            State(state.alpha, state.gamma / tau, state.rho / tau)
        )
        within(slope.alpha, other.alpha, 1e-10)
        within(np.array(slope[1:]) * tau, np.array(other[1:]), 1e-10)

    @pytest.mark.slow
    @pytest.mark.traced
    def test_time_of_risk_interpolates(self):
        path = equation_T.theorem.flow(Problem.parametrization_3_1(256, 4, q=4 / 256), 1e-8)
        time = equation_T.time_of_risk(path, 1e-2)
        within(np.interp(time, path.time, path.loss), 1e-2, 1e-3)
        assert math.isnan(equation_T.time_of_risk(path, 1e-300))
        assert math.isnan(equation_T.time_of_risk(path, 1.0))


class TestLinearAtStart:
    def test_least_risk_against_all_patterns(self):
        D, C, q = 6, 2, 0.4
        patterns = np.array(list(itertools.product((-1, 0, 1), repeat=D - C)))
        probability = np.where(patterns == 0, 1 - q, q / 2).prod(axis=1)
        total = C + patterns.sum(axis=1)

        def risk(a):
            return float(probability @ np.log1p(np.exp(-a * total)))

        least = optimize.minimize_scalar(risk, bounds=(0.0, 20.0), method="bounded").fun
        close(linear_at_start.least_linear_risk(Problem(D=D, C=C, q=q)), least, 1e-6)

    def test_row_of_one_problem(self):
        row = linear_at_start.row(1.0, 4)
        close(row["linear_error"], 0.037874, 1e-4)
        assert abs(row["model_error"] - row["linear_error"]) <= row["allowed"] < 1e-9
        assert row["linear_risk"] < row["model_risk"] < math.log(2.0)
        assert row["within"]


class TestEvents:
    def test_row_of_event_I(self):
        row = lemma_d_2.row(4, 65536)
        limit = quasi_steady_alpha(65536, 4)
        close(row["start"], 65536**-0.5 / limit, 0.01)
        within(row["alpha"] / limit, 0.99, 0.01)
        assert 0.0 < row["T0"] < 65536 ** (-2 / 3) * 100
        assert row["least_step"] > 0.0
        assert row["moved"] < 1e-9

    def test_drift_and_difference_at_T1_agree(self):
        case = large.Case("nu=1/D", 3, 4, 10_000)
        row = lemma_d_11.row(case, large.run_flow(case))
        close(row["drift"], 2.106e-5, 1e-2)
        close(row["difference"], row["drift"], 1e-2)
        assert row["final"] < 1.0 < row["growth"]
        assert row["risk"] > row["risk_at_top"] > 0.01


def quasi_steady_alpha(D, features):
    problem = Problem.parametrization_3_1(D, 4, q=features / D)
    return quasi_steady(Limit.of(problem), D, problem.nu)


def test_conclusions_at_a_power_of_the_dimension():
    first, middle, last = theorem_4_1_dimension.rows(2.0, 256)
    assert (first["d"], first["small"]) == (65536, 1 / 256)
    close(middle["disagreement"], 5.0386e-07, 1e-3)
    assert first["risk"] > middle["risk"] > last["risk"] > 0.0


def test_one_rate_uses_the_first_record_from_each_time():
    case = theorem_4_2_one_rate.Case(16, 4, 3)
    time = np.array([0.0, 4000.0, 4096.0, 65000.0, 65536.0])
    columns = {name: np.arange(5.0) / 10 for name in History.__dataclass_fields__}
    history = History(**columns | {"time": time, "A": None, "v": None})
    rows = list(theorem_4_2_one_rate.rows(case, 0, history))
    assert [row["association"] for row in rows] == [0.2, 0.4]
    assert [row["best"] for row in rows] == [0.2, 0.4]
    assert all(row["within"] and row["N"] == 4096 for row in rows)


@pytest.mark.traced
@pytest.mark.parametrize(
    "claim_id", ["linear-at-start", pytest.param("lemma-D.2", marks=pytest.mark.slow)]
)
def test_quick_run_has_the_verdict_of_the_snapshot_and_draws_its_figures(claim_id):
    outcome = result(claim_id)
    assert outcome.verdict == snapshot.read()[claim_id]["quick"]["verdict"]
    for figure in outcome.measurement.figures:
        canvas = matplotlib.figure.Figure()
        figure.draw(canvas)
        assert canvas.axes
