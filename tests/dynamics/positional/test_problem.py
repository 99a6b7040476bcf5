import math

import numpy as np
import pytest

from dynamics import ParameterError, Problem, State, attention
from tests.closeness import close

VALID = {"D": 64, "C": 4, "q": 2 / 64}


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"C": 3}, "C"),
        ({"C": 1}, "C"),
        ({"C": 64}, "C"),
        ({"D": 2, "C": 2}, "D"),
        ({"D": 64.5}, "D"),
        ({"D": "64"}, "D"),
        ({"D": True}, "D"),
        ({"D": 2 * 10**9, "C": 2}, "D"),
        ({"q": 0.0}, "q"),
        ({"q": 1.5}, "q"),
        ({"q": math.nan}, "q"),
        ({"q": None}, "q"),
        ({"p": 4}, "p"),
        ({"p": 1}, "p"),
        ({"p": 101}, "p"),
        ({"p": 3.5}, "p"),
        ({"nu": 0.0}, "nu"),
        ({"nu": -1.0}, "nu"),
        ({"beta": math.inf}, "beta"),
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": -1.0}, "temperature"),
        ({"output_scale": 0.0}, "output_scale"),
        ({"output_scale": 1j}, "output_scale"),
        ({"d": 0}, "d"),
        ({"d": 2.5}, "d"),
        ({"sigma": -0.1}, "sigma"),
    ],
)
def test_error_message_contains_the_parameter(changes, name):
    with pytest.raises(ParameterError) as caught:
        Problem(**{**VALID, **changes})
    message = str(caught.value)
    assert message.startswith(f"{name} = ")
    assert "must be" in message
    assert "\n" not in message


def test_defaults_follow_the_paper():
    problem = Problem(**VALID)
    assert problem.kappa == 64.0
    assert problem.tau == 1.0
    assert problem.dimension == 64
    assert problem.noise == 1 / 8
    assert problem.L == 16
    assert problem.initial_state == State(0.1, 0.0, 0.0)
    assert problem.multiplicity == State(1.0, 64 * 3, 64 * 60)
    assert hash(problem) == hash(Problem(**VALID))


def test_numpy_scalars_are_accepted_and_become_plain_numbers():
    problem = Problem(D=np.int64(64), C=np.int32(4), q=np.float64(0.1), p=3.0)
    assert type(problem.D) is int
    assert type(problem.p) is int
    assert type(problem.q) is float


def test_replace_validates_the_result():
    with pytest.raises(ParameterError, match="C = 5"):
        Problem(**VALID).replace(C=5)


class TestPresets:
    def test_parametrization_3_1(self):
        problem = Problem.parametrization_3_1(64, 4)
        assert problem.q == 16 / 64
        assert problem.nu == 1 / 64
        assert problem.beta == math.log(math.log(64))
        assert Problem.parametrization_3_1(64, 4, nu=0.2).nu == 0.2

    def test_equation_T_has_temperature_root_d(self):
        assert Problem.equation_T(16, 4, 0.1, d=25).temperature == 5.0

    def test_section_4_has_temperature_one(self):
        assert Problem.section_4(16, 4, 0.1).tau == 1.0

    def test_figure_4(self):
        problem = Problem.figure_4()
        assert (problem.D, problem.C, problem.dimension, problem.p) == (10, 2, 100, 5)
        assert problem.kappa == 1.0
        assert problem.beta == pytest.approx(1.527, abs=1e-3)


class TestAttention:
    def test_uniform_logits_give_uniform_attention(self):
        problem = Problem(**VALID, beta=0.0)
        weights = attention(problem, State(0.1, 0.0, 0.0))
        assert weights.Lambda == weights.Gamma == weights.Xi == 1 / 64
        close(weights.G, 4.0, rel=1e-15)

    @pytest.mark.parametrize("gamma", [-800.0, -1.0, 0.0, 3.0, 800.0])
    @pytest.mark.parametrize("rho", [-800.0, 0.5, 800.0])
    def test_no_overflow_and_rows_sum_to_one(self, gamma, rho):
        problem = Problem(**VALID, beta=2.0)
        Lambda, Gamma, Xi, G = attention(problem, State(0.1, gamma, rho))
        assert Lambda + 3 * Gamma + 60 * Xi == pytest.approx(1.0, abs=1e-14)
        close(G, 64 * (Lambda + 3 * Gamma), rel=1e-12)
