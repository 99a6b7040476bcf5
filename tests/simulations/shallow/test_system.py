"""The system of the shallow transformer: cases, outcomes, invalid arguments, sweeps, maps."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

from dynamics import ParameterError
from dynamics.shallow import ShallowProblem
from simulations import maps
from simulations.cli import build_parser, main
from simulations.commands.arguments import given_parameters
from simulations.shallow.system import SLIDES, logit_and_gap, passage
from simulations.strategies import shallow_problems
from simulations.sweep.compute import compute, grid
from simulations.theories import command, load
from tests.closeness import close, within

SMALL = {"L": 10, "M": 3, "neurons": 6, "alpha_relevant": 0.4, "alpha_confusion": 0.1}


@pytest.fixture(scope="module")
def shallow():
    return load("shallow")


def test_default_is_the_setting_of_the_slides(shallow):
    case = shallow.build({})
    assert case.problem == ShallowProblem(**SLIDES)
    assert (case.solver, case.settings["steps"]) == ("gd", 100)
    outcomes = shallow.measure(case)
    assert outcomes["status"] == "completed"
    within(outcomes["attention_share"], 1.0, 0.01)  # the plateau, .909
    assert outcomes["test_error"] == 0.0
    assert outcomes["wrong_attractor"] == 0.0
    assert 0.0 < outcomes["time_to_margin"] < outcomes["time"]


def test_bound_is_labelled_as_an_estimate(capsys):
    assert main(["run", "--system", "shallow", "--steps", "1"]) == 0
    text = capsys.readouterr().out
    assert "(rounding, estimated)" in text
    assert "certified" not in text


def test_attention_is_constant_without_attention(shallow):
    outcomes = shallow.measure(shallow.build({**SMALL, "attention": "none"}))
    within(outcomes["attention"], 0.4, 1e-14)
    assert set(outcomes) == {quantity.name for quantity in shallow.outcomes} | {"status", "message"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"alpha_relevant": 0.05}, "alpha_relevant = 0.05 is not allowed"),
        ({"alpha_relevant": 0.97}, "alpha_relevant = 0.97 is not allowed: .* a whole number"),
        ({"queried": 61}, "queried = 61 is not allowed"),
        ({"M": 2}, "M = 2 is not allowed"),
        ({"attention_rate": -1.0}, "attention_rate = -1.0 is not allowed"),
        ({"spread": 0.0}, "spread = 0 is not allowed: .* perturb"),
        ({"train_value": "maybe"}, "train_value = 'maybe' is not allowed: .* yes or no"),
        ({"margin": 1.0}, r"margin = 1.0 is not allowed: margin must be in \(0, 1\)"),
        ({"steps": 5, "horizon": 1.0}, "steps and horizon are not allowed together"),
        ({"solver": "flow", "steps": 5}, "steps is not allowed with solver = flow"),
    ],
)
def test_invalid_parameters(shallow, values, message):
    with pytest.raises(ParameterError, match=message) as error:
        shallow.build(values)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--alpha-relevant 0.9 --alpha-confusion 0.2", "must be at most 1"),
        ("--alpha-relevant 0.1 --alpha-confusion 0.1", "greater than alpha_confusion = 0.1"),
        ("--alpha-relevant 0.1 --alpha-confusion 0.2", "greater than alpha_confusion = 0.2"),
        ("--queried 61", "queried must be an integer from 1 to 60"),
        ("--M 2", "M must be at least 3 and at most 100"),
        ("--attention-rate -1", "attention_rate must be at least 0"),
        ("--learning-rate -0.1", "learning_rate must be greater than 0"),
        ("--xi 0", "kink of its ReLU: perturb it"),
        ("--spread 0", "kink of its ReLU; perturb it, for example spread = 0.01"),
    ],
)
def test_command_reports_invalid_options_in_one_line(capsys, flags, message):
    assert main(["run", "--system", "shallow", *flags.split()]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("patchdyn: ")
    assert output.err.count("\n") == 1
    assert message in output.err


@pytest.mark.parametrize(
    "values", [{}, {**SMALL, "train_value": "no", "margin": 0.3, "queried": 4, "horizon": 6.0}]
)
def test_command_reproduces_the_case(shallow, values):
    case = shallow.build(values)
    arguments = command(case).split()
    args = build_parser().parse_args(arguments[1:])
    given = given_parameters(args)
    again = shallow.build(given)
    assert (again.problem, again.settings) == (case.problem, case.settings)


def test_logit_and_gap_in_closed_form():
    problem = ShallowProblem(**SMALL, overlap=0.5, xi=0.2, spread=0.1)
    state = problem.initial_state
    within(logit_and_gap(problem, state), (-0.5, 0.0), 1e-15)
    slots = dict(zip(problem.order_parameters, range(state.size)))
    state[slots["P_1"]] += 1.0  # one of six neurons, a = 1/sqrt 6
    within(logit_and_gap(problem, state), (-0.5, 1.0 / math.sqrt(6.0)), 1e-14)


def test_passage_is_linear_between_records():
    time = np.array([0.0, 1.0, 2.0])
    assert passage(time, np.array([0.0, 0.25, 0.75]), 0.5) == 1.5
    assert passage(time, np.array([0.6, 0.7, 0.8]), 0.5) == 0.0
    assert math.isnan(passage(time, np.zeros(3), 0.5))


def test_sweep_and_its_maps():
    config = grid(
        "shallow",
        {"alpha_relevant": [0.3, 0.5], "attention_rate": [1.0, 30.0]},
        **{**SMALL, "steps": 60, "learning_rate": 0.2},
    )
    sweep = maps.Sweep(compute(config), config)
    ends = sweep.data["attention"].values
    assert np.all(ends[:, 1] > ends[:, 0])
    for regime_map in maps.maps_of(sweep):
        data = maps.map_data(sweep, regime_map, {})
        assert set(np.unique(data["status"].values)) <= {"value", "none"}
    share = maps.map_data(sweep, maps.maps_of(sweep)[1], {})["value"].values
    close(share, ends / np.array([[0.75], [5 / 6]]), rel=1e-12)


@settings(max_examples=20)
@given(shallow_problems(where="alpha_confusion > 0", M=4))
def test_strategy_satisfies_the_condition(problem):
    assert problem.M == 4
    assert problem.alpha_confusion > 0.0
