"""Systems: what may be set, what is refused, and outcomes that agree with the solver's own."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings

from dynamics import ParameterError, Population, Problem, Status, gradient_flow
from dynamics.positional.events import find_events
from simulations.case import Case
from simulations.cli import build_parser
from simulations.commands.arguments import given_parameters
from simulations.theories import command, load, names
from tests.closeness import close

SMALL = {"D": 8, "C": 2, "q": 0.2, "horizon": 1e3, "rtol": 1e-6, "tolerance": 1e-8}


@pytest.fixture(scope="module", params=names())
def system(request):
    return load(request.param)


@pytest.fixture(scope="module")
def positional():
    return load("positional")


def test_unknown_system_is_refused():
    with pytest.raises(ParameterError, match="system = 'nothing' is not allowed"):
        load("nothing")


class TestEverySystem:
    def test_names_are_unique_and_explained(self, system):
        for quantities in (
            system.parameters, system.outcomes, system.observables, system.constants
        ):  # fmt: skip
            names = [quantity.name for quantity in quantities]
            assert len(set(names)) == len(names)
            assert all(quantity.meaning for quantity in quantities)

    def test_cases_can_be_built_and_described(self, system):
        @settings(max_examples=25)
        @given(system.cases())
        def check(values):
            case = system.build(values)
            assert isinstance(case, Case)
            assert case.system == system.name
            assert set(system.describe(case)) == {one.name for one in system.constants}

        check()

    def test_fixed_values_are_kept(self, system):
        @settings(max_examples=10)
        @given(system.cases(horizon=12.0))
        def check(values):
            assert values["horizon"] == 12.0

        check()


class TestBuild:
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ({"D": 64, "C": 4, "qD": 2}, Problem(64, 4, 2 / 64)),
            ({"D": 64, "C": 4, "qD/C^2": 0.5}, Problem(64, 4, 8 / 64)),
            ({"beta/tau": 2.0, "tau": 3.0}, Problem(64, 4, 2 / 64, beta=6.0, temperature=3.0)),
            ({"kappa": 5.0, "p": 5}, Problem(64, 4, 2 / 64, p=5, output_scale=5.0)),
        ],
    )
    def test_aliases(self, positional, values, expected):
        assert positional.build(values).problem == expected

    @pytest.mark.parametrize(
        ("values", "sentence"),
        [
            ({"q": 0.1, "qD": 2}, "q and qD are not allowed together"),
            ({"beta": 1.0, "beta/tau": 1.0}, "beta and beta/tau are not allowed together"),
            ({"tau": 1.0, "temperature": 1.0}, "temperature and tau are not allowed together"),
            ({"solver": "gd", "steps": 5, "horizon": 1.0}, "steps and horizon are not allowed"),
            ({"D": 10, "C": 4}, "C = 4 is not allowed: C must be a divisor of D = 10"),
            ({"qD/C^2": 5.0}, r"qD/C\^2 = 5.0 is not allowed: .* in \(0, 4\]"),
            ({"steps": 10}, "steps is not allowed with solver = flow"),
            ({"solver": "gd", "rtol": 1e-6}, "rtol is not allowed with solver = gd"),
            ({"solver": "newton"}, "solver = 'newton' is not allowed: solver must be flow or gd"),
            ({"qd": 2}, "qd is not a parameter of this system: choose among D, C, q"),
            ({"D": "64"}, "D = '64' is not allowed"),
            ({"nu": float("nan")}, "nu = nan is not allowed"),
            ({"method": "magic"}, "method = 'magic' is not allowed"),
            ({"tolerance": 0.0}, "tolerance = 0.0 is not allowed"),
        ],
    )
    def test_refusals_are_one_sentence(self, positional, values, sentence):
        with pytest.raises(ParameterError, match=sentence) as refusal:
            positional.build(values)
        assert "\n" not in str(refusal.value)


class TestMeasure:
    def test_outcomes_are_those_of_a_run_made_by_hand(self, positional):
        found = positional.measure(positional.build(SMALL))
        population = Population(Problem(8, 2, 0.2), tolerance=1e-8)
        run = gradient_flow(population, horizon=1e3, rtol=1e-6)
        events = find_events(run, population)
        assert found["status"] == "completed"
        close(found["T0"], events.T0.time, rel=1e-4)
        close(found["gamma"], run.final.gamma, rel=1e-4)
        assert found["loss"] == pytest.approx(run.loss[-1], abs=1e-7)
        close(found["worst gamma >= rho"], run.violations()["gamma >= rho"], rel=1e-12)

    def test_every_outcome_is_there_and_repeats_bit_for_bit(self, positional):
        case = positional.build(SMALL)
        first, second = positional.measure(case), positional.measure(case)
        assert set(first) == {one.name for one in positional.outcomes} | {"status", "message"}
        first.pop("seconds")
        second.pop("seconds")
        assert repr(first) == repr(second)

    def test_run_at_hand_gives_the_same(self, positional):
        case = positional.build(SMALL)
        run, population = positional.solve(case), positional.population(case)
        summary, measured = positional.summarize(case, run, population), positional.measure(case)
        for name in ("T0", "T1", "gamma", "loss", "rise"):
            assert repr(summary[name]) == repr(measured[name])
        observed = positional.observe(case, run)
        assert np.array_equal(observed["rho"], run.rho)
        assert set(observed) == {one.name for one in positional.observables}

    def test_divergence_is_a_status(self, positional):
        values = {"D": 8, "C": 2, "q": 0.2, "solver": "gd", "learning_rate": 50.0, "steps": 100}
        found = positional.measure(positional.build(values))
        assert found["status"] in (Status.DIVERGED.name.lower(), Status.UNSTABLE.name.lower())
        assert found["stable_learning_rate"] < 50.0

    def test_run_is_kept_where_a_boundary_of_it_cannot_be_located(self, positional):
        # the root behind the stable learning rate is lost in rounding, the run is not
        values = {"D": 48, "C": 12, "qD": 2, "rtol": 1e-6, "tolerance": 1e-7}
        found = positional.measure(positional.build(values))
        assert found["status"] == "completed"
        close(found["T1"], 1.24e5, rel=0.01)

    def test_overflow_and_unreachable_tolerance_are_statuses(self, positional):
        found = positional.measure(positional.build(SMALL | {"alpha0": 1e200}))
        assert found["status"] == "overflow"
        assert math.isnan(found["T0"])
        found = positional.measure(positional.build(SMALL | {"tolerance": 1e-30}))
        assert found["status"] == "inaccurate"
        assert "tolerance" in found["message"]


@pytest.mark.parametrize(
    "values",
    [SMALL, {"D": 8, "C": 2, "qD": 1, "solver": "gd", "steps": 5, "gamma0": -0.5, "kappa": 3.0}],
)
def test_command_makes_the_same_case(positional, values):
    case = positional.build(values)
    words = command(case).split()
    args = build_parser().parse_args(words[1:])
    assert args.command == "run"
    given = given_parameters(args)
    again = positional.build(given)
    assert (again.problem, again.solver) == (case.problem, case.solver)
    assert again.settings == case.settings


@pytest.mark.parametrize("name", names())
def test_a_system_is_pickled_after_its_parameters_were_read(name):
    """Workers receive systems; conversions of parameters are functions that cannot be pickled."""
    system = load(name)
    assert system.parameters
    assert pickle.loads(pickle.dumps(system)).name == name
