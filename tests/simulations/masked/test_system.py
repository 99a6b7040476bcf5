"""The system of masked image modelling: problems, outcomes, sweeps, maps, falsify, command line."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings

from dynamics import ParameterError, gradient_flow
from dynamics.masked import MaskedPopulation, MaskedProblem
from dynamics.masked import oracle as full
from dynamics.masked.events import find_events
from simulations import maps
from simulations.cli import build_parser, main
from simulations.commands.arguments import given_parameters
from simulations.falsify import assert_holds, falsify
from simulations.falsify.check import check
from simulations.falsify.trial import Result
from simulations.figures import regime_map
from simulations.masked.runs import columns_of
from simulations.masked.system import default_horizon
from simulations.strategies import masked_problems
from simulations.sweep.compute import compute, grid
from simulations.theories import command, load
from tests.closeness import close

SMALL = {"P": 4096, "kappa_c": 0.9, "kappa_s": 0.4}


@pytest.fixture(scope="module")
def masked():
    return load("masked")


@pytest.fixture(scope="module")
def sweep():
    config = grid("masked", {"kappa_c": [0.6, 0.95], "kappa_s": [0.3, 0.5]}, P=10**6, rtol=1e-6)
    return maps.Sweep(compute(config), config)


class TestBuild:
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ({}, MaskedProblem.two_phases()),
            (SMALL, MaskedProblem(4096, kappa_c=0.9, kappa_s=0.4)),
            ({"z": 1.5, "query": "global"}, MaskedProblem.global_area(z_low=1.5)),
            ({"z_low": 1.0, "z_high": 1.5}, MaskedProblem.two_phases(z_low=1.0, z_high=1.5)),
            (
                {"K": 2, "query": "local, global"},
                MaskedProblem.two_phases(K=2, query=("local", "global")),
            ),
        ],
    )
    def test_values_become_the_problem(self, masked, values, expected):
        assert masked.build(values).problem == expected

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"D": 64}, "D is not a parameter of this system: choose among P, mask_ratio"),
            ({"z": 1.0, "z_low": 1.0}, "z_low and z are not allowed together"),
            ({"z": 1.0, "z_high": 2.0}, "z and z_high are not allowed together"),
            ({"z": 0.0}, r"z = 0.0 is not allowed: z must be in \[1e-15, 1e15\]"),
            ({"kappa_s": 1.0}, r"kappa_s = 1.0 is not allowed: kappa_s must be in \(0, 1\)"),
            ({"query": "both"}, "query = 'both' is not allowed"),
            ({"eps": 0.5}, "eps = 0.5 is not allowed"),
            ({"moving": "heads"}, "moving = 'heads' is not allowed"),
            ({"method": "fourier"}, "method = 'fourier' is not allowed"),
            ({"solver": "gd", "rtol": 1e-6}, "rtol is not allowed with solver = gd"),
            ({"tolerance": -1.0}, "tolerance = -1.0 is not allowed"),
            ({"quadrature": 0.0}, "quadrature = 0.0 is not allowed"),
        ],
    )
    def test_invalid_parameters(self, masked, values, message):
        with pytest.raises(ParameterError, match=message) as error:
            masked.build(values)
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize("query", ["local", "global"])
    def test_default_horizon_suffices(self, masked, query):
        for changes in ({}, {"mask_ratio": 0.2, "z": 2.0}, {"mask_ratio": 0.8}, {"K": 2}):
            outcomes = masked.measure(masked.build(SMALL | {"query": query} | changes))
            assert outcomes["shortfall"] <= 1e-2
            assert outcomes["learned"] < outcomes["time"]


class TestMeasure:
    def test_outcomes_equal_those_of_a_flow(self, masked):
        case = masked.build(SMALL)
        outcomes = masked.measure(case)
        population = MaskedPopulation(case.problem)
        run = gradient_flow(population, horizon=case.settings["horizon"])
        events = find_events(run, population)
        assert outcomes["status"] == "completed"
        assert outcomes["phases"] == 2.0
        close(outcomes["switch"], events.switch.time, rel=1e-3)
        close(outcomes["Phi_n"], run.phi_own[-1, 0], rel=1e-6)
        close(outcomes["Phi_1"], run.phi_global[-1, 0], rel=1e-6)
        close(outcomes["loss"], run.loss[-1], rel=1e-5)
        assert set(outcomes) == {quantity.name for quantity in masked.outcomes} | {
            "status",
            "message",
        }

    def test_tolerance_bounds_the_error_of_loss_and_gradient(self, masked):
        """The mean field of 4096 patches has an error that quadrature does not reduce."""
        random_scales = SMALL | {"method": "mean_field", "z_low": 1.0, "z_high": 1.5}
        fine = masked.measure(masked.build(random_scales | {"quadrature": 1e-9}))
        assert fine["status"] == "completed"
        assert fine["bound"] > 1e-6
        strict = masked.measure(masked.build(random_scales | {"tolerance": 1e-6}))
        assert strict["status"] == "inaccurate"
        assert "tolerance = 1e-06" in strict["message"]
        case = masked.build(SMALL | {"quadrature": 1e-5, "tolerance": 0.5})
        assert (case.settings["quadrature"], case.settings["tolerance"]) == (1e-5, 0.5)
        assert "--quadrature 1e-05" in command(case)
        assert masked.build(SMALL | {"tolerance": 1e-4}).settings["quadrature"] == 1e-4

    def test_observables_at_the_records(self, masked):
        case = masked.build(SMALL | {"horizon": 100.0})
        run = masked.solve(case)
        columns, errors = masked.observe(case, run), masked.errors(case, run)
        assert set(columns) == set(errors) == {quantity.name for quantity in masked.observables}
        assert np.array_equal(columns["Phi_rest"], np.abs(run.column("Phi_other")))
        close(columns["Upsilon_n"], run.column("Upsilon_own"), rel=1e-12)
        assert np.all(columns["Upsilon_max"] >= np.abs(columns["Upsilon_n"]))
        assert all(np.all(np.asarray(error) >= 0.0) for error in errors.values())

    def test_run_with_fixed_features_has_no_phases(self, masked):
        outcomes = masked.measure(masked.build(SMALL | {"moving": "positions", "horizon": 50.0}))
        assert outcomes["Phi_n"] == 0.0
        assert math.isnan(outcomes["phases"])
        assert math.isnan(outcomes["upsilon_ratio"])


class TestSweepAndMap:
    def test_phases_follow_the_sign_of_the_gap(self, sweep):
        gap = (1.0 - sweep.data["kappa_s"]) - 2.0 * (1.0 - sweep.data["kappa_c"])
        expected = np.where(gap.transpose("kappa_c", "kappa_s") > 0.0, 2.0, 1.0)
        assert np.array_equal(sweep.data["phases"].values, expected)
        assert {1.0, 2.0} == set(expected.ravel())

    def test_maps_and_their_boundaries(self, sweep):
        names = [plot.name for plot in maps.maps_of(sweep)]
        assert names == ["ratio", "global-falls", "learned", "positions", "excess"]
        for plot in maps.maps_of(sweep):
            data = maps.map_data(sweep, plot, {})
            artists = regime_map.draw(data)
            labels = [handle.get_label() for handle in artists["handles"]]
            assert any("Delta" in text for text in labels) == any(
                overlay.name == "Delta" for overlay in plot.overlays
            )

    def test_boundary_is_the_information_gap(self, sweep):
        data = maps.map_data(sweep, maps.maps_of(sweep)[0], {})
        assert data["overlay Delta"].values == pytest.approx(
            np.array([[-0.1, -0.3], [0.6, 0.4]]), abs=1e-12
        )
        assert data["overlay Delta"].attrs["long_name"].startswith("information gap")


class TestFalsify:
    @pytest.mark.slow
    def test_false_conjecture_is_falsified(self, capsys):
        code = main(
            [
                "falsify",
                "Phi_1 >= 0",
                "--system",
                "masked",
                "--budget",
                "20",
                "--fix",
                "query=local",
                "--horizon",
                "100",
                "--json",
            ]
        )
        report = json.loads(capsys.readouterr().out)
        assert code == 0
        assert report["outcome"] == "falsified"
        assert report["counterexample"]["violation"] > report["counterexample"]["numerical error"]
        assert report["command"].startswith("patchdyn run --system masked --P 16")

    @pytest.mark.slow
    def test_true_conjecture_is_not_falsified(self):
        report = falsify(
            "Phi_n >= 0 and a_n <= 1", system="masked", most=8, budget=60.0, fixed={"horizon": 1e3}
        )
        assert not report.falsified
        assert report.results == {Result.HOLDS: 8}

    def test_check_of_an_existing_run(self):
        problem = MaskedProblem.from_sizes([4, 2, 2], query=5)
        run = gradient_flow(MaskedPopulation(problem), horizon=1e3)
        assert_holds("excess <= at_start(excess) and Phi_n >= Phi_1", run, "masked")
        assert check("Upsilon_n <= 0", run, "masked").result is Result.VIOLATED


class TestCommandLine:
    @pytest.mark.parametrize(
        "values",
        [
            SMALL,
            {"K": 2, "query": "local,global", "eps": 1e-3},
            {"solver": "gd", "steps": 5},
            {"moving": "features", "z_low": 1.0, "z_high": 1.5, "P": 10**4},
        ],
    )
    def test_command_reproduces_the_case(self, masked, values):
        case = masked.build(values)
        arguments = command(case).split()[1:]
        given = given_parameters(build_parser().parse_args(arguments))
        again = masked.build(given)
        assert (again.problem, again.solver) == (case.problem, case.solver)
        assert again.settings == case.settings

    def test_run_prints_and_saves(self, masked, tmp_path, capsys):
        out = tmp_path / "run.nc"
        arguments = ["run", "--system", "masked", "--P", "4096", "--kappa-c", "0.9"]
        assert main([*arguments, "--json", "--out", str(out)]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["system"] == "masked"
        assert report["outcomes"]["phases"] == 2.0
        close(report["constants"]["Delta"], 0.5, rel=1e-12)
        assert out.is_file()
        assert main([*arguments, "--out", str(out)]) == 2
        assert main([*arguments, "--horizon", "10"]) == 0
        text = capsys.readouterr().out
        assert "status       completed" in text
        assert all(quantity.name in text for quantity in masked.outcomes)

    def test_partitions_are_written_out_and_read_back(self, masked):
        text = "0-3/4,5/6-7:0,4/1,5/2-3,6-7"
        case = masked.build({"partitions": text, "query": "4", "mask_ratio": 0.5})
        assert case.problem == MaskedProblem(
            P=8,
            query=4,
            mask_ratio=0.5,
            partitions=(((0, 1, 2, 3), (4, 5), (6, 7)), ((0, 4), (1, 5), (2, 3, 6, 7))),
        )
        arguments = command(case).split()[1:]
        given = given_parameters(build_parser().parse_args(arguments))
        assert masked.build(given).problem == case.problem
        assert main([*arguments, "--json"]) == 0

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"partitions": "0-3/x"}, "an area must be patches such as 0-3"),
            ({"partitions": "0-99999"}, "at most 10000"),
            ({"partitions": "0-3/4-7", "P": 8}, "P and partitions are not allowed together"),
            ({"partitions": "0-3/3-7"}, "partitions"),
            ({"partitions": "0-3/4-7", "query": "local"}, "must be a patch index"),
            ({"partitions": "0-3/4-7", "query": "9"}, "query = 9 is not allowed"),
        ],
    )
    def test_invalid_partitions(self, masked, values, message):
        with pytest.raises(ParameterError, match=message):
            masked.build(values)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--system", "masked", "--kappa-c", "2"], "kappa_c = 2.0 is not allowed"),
            (["--system=masked", "--D", "64"], "unrecognized arguments: --D 64"),
            (["--system", "third"], "argument --system: invalid choice: 'third'"),
            (["--system", "masked", "--P", "many"], "argument --P: 'many' is not allowed"),
        ],
    )
    def test_invalid_options(self, arguments, message, capsys):
        assert main(["run", *arguments]) == 2
        assert message in capsys.readouterr().err


class TestStrategy:
    @settings(max_examples=15)
    @given(masked_problems(partitions=True))
    def test_reduced_gradient_equals_the_full_model(self, problem):
        model, columns = full.FullMaskedModel(problem), columns_of(problem)
        rng = np.random.default_rng(problem.P)
        state, Q = rng.normal(size=columns.max() + 1), rng.normal(size=(model.dimension,) * 2)
        Q[problem.patch] = state[columns]
        gradient = MaskedPopulation(problem, "enumeration").gradient(state)[columns]
        assert gradient == pytest.approx(model.evaluate(Q)[1][problem.patch], abs=1e-13)

    @settings(max_examples=15)
    @given(masked_problems(partitions=False, where="Delta > 0.1 and is_global == 0"))
    def test_strategy_satisfies_the_condition(self, problem):
        assert problem.information_gap > 0.1
        assert problem.roles == ("local",)
        assert 0.0 < default_horizon(problem, 1e-2) < math.inf
