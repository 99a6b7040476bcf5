"""`patchdyn run`: summary, JSON, output files and interruption."""

import itertools
import json
import re
import time
import warnings

import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure

import dynamics
from simulations.cli import main
from simulations.figures import Image, shared
from simulations.theories import load
from tests.closeness import close

SMALL = ["--D", "16", "--C", "4", "--tolerance", "1e-6"]


class TestRun:
    def test_summary_of_a_flow(self, capsys):
        assert main(["run", *SMALL, "--q", "2/16", "--horizon", "1e4"]) == 0
        text = capsys.readouterr().out
        for part in (
            "D = 16, C = 4, q = 0.125, p = 3",
            "enumeration:",
            "gradient flow to time 10000",
            "completed: the run reached its end",
            "(certified)",
            "floor",
            "end of Event I: alpha within 1 %",
            "end of Event II",
            "start of Event III",
            "invariants",
        ):
            assert part in text

    def test_json_agrees_with_the_library(self, capsys):
        arguments = [*SMALL, "--qD", "1", "--p", "5", "--nu", "0.02", "--beta", "0.5"]
        arguments += ["--temperature", "2", "--output-scale", "3", "--horizon", "100"]
        assert main(["run", *arguments, "--gamma", "-1e-3", "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        problem = dynamics.Problem(
            D=16, C=4, q=1 / 16, p=5, nu=0.02, beta=0.5, temperature=2.0, output_scale=3.0
        )
        population = dynamics.Population(problem, tolerance=1e-6)
        start = problem.initial_state._replace(gamma=-1e-3)
        expected = dynamics.gradient_flow(population, horizon=100.0, initial=start)
        final = [answer["final"][name] for name in ("alpha", "gamma", "rho")]
        np.testing.assert_array_equal(final, expected.final)
        assert answer["final"]["loss"] == expected.loss[-1]
        assert answer["initial"]["gamma"] == -1e-3
        assert answer["constants"]["kappa"] == 3.0
        assert answer["status"] == "completed"
        assert answer["method"] == "enumeration"
        assert answer["events"]["T0"]["time"] is None or answer["events"]["T0"]["time"] >= 0.0
        assert set(answer["violations"]) == set(expected.violations())

    def test_default_problem(self, capsys):
        assert main(["run", "--tolerance", "1e-3", "--horizon", "1e-3", "--json"]) == 0
        problem = json.loads(capsys.readouterr().out)["problem"]
        assert (problem["D"], problem["C"], problem["q"]) == (64, 4, 2 / 64)

    @pytest.mark.parametrize("clock", [["--steps", "50"], ["--horizon", "0.5"]])
    def test_time_of_descent_is_rate_times_steps(self, capsys, clock):
        assert (
            main(["run", *SMALL, "--solver", "gd", "--learning-rate", "0.01", *clock, "--json"])
            == 0
        )
        answer = json.loads(capsys.readouterr().out)
        assert answer["stats"]["steps"] == 50
        close(answer["time"], 0.5, rel=1e-15)
        assert answer["events"] is None

    def test_bound_of_sampling_is_three_standard_errors(self, capsys):
        arguments = [
            "--D",
            "4",
            "--C",
            "2",
            "--method",
            "sampling",
            "--solver",
            "gd",
            "--steps",
            "1",
        ]
        assert main(["run", *arguments]) == 0
        assert "three standard errors" in capsys.readouterr().out

    def test_warnings_are_printed_as_notes(self, capsys, monkeypatch):
        population = dynamics.Population

        def estimated(*arguments):
            warnings.warn("the expectation is estimated", dynamics.AccuracyWarning, stacklevel=1)
            return population(*arguments)

        monkeypatch.setattr("simulations.positional.system.Population", estimated)
        assert main(["run", *SMALL, "--horizon", "1"]) == 0
        assert capsys.readouterr().err == "patchdyn: note: the expectation is estimated\n"

    def test_overflow_prints_a_summary_and_fails(self, capsys):
        assert main(["run", *SMALL, "--alpha", "1e200", "--json"]) == 1
        answer = json.loads(capsys.readouterr().out)
        assert answer["status"] == "overflow"
        assert answer["final"] is None
        assert main(["run", *SMALL, "--alpha", "1e200"]) == 1
        assert "overflow" in capsys.readouterr().out

    def test_divergence_prints_a_summary_and_fails(self, capsys):
        arguments = ["--solver", "gd", "--learning-rate", "1e3", "--steps", "100"]
        assert main(["run", *SMALL, *arguments, "--json"]) == 1
        answer = json.loads(capsys.readouterr().out)
        assert answer["status"] == "diverged"
        assert "largest stable" in answer["message"]

    def test_events_that_cannot_be_located(self, capsys, monkeypatch):
        def lost(*_):
            raise ArithmeticError("no quasi-steady value")

        monkeypatch.setattr("simulations.positional.system.find_events", lost)
        assert main(["run", *SMALL, "--horizon", "1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["events"] is None

    def test_violated_invariants_are_printed(self, capsys):
        assert main(["run", *SMALL, "--gamma", "-0.5", "--horizon", "1"]) == 0
        text = capsys.readouterr().out
        assert re.search(r"gamma >= rho is violated by 0\.5 \(at time .*: at every record\n", text)

    @pytest.mark.slow
    @pytest.mark.traced
    def test_times_of_patch_association(self, capsys):
        """The start has gamma < rho; the times agree with the records of the same run."""
        arguments = ["run", *SMALL, "--gamma", "-1e-3", "--horizon", "1e4"]
        assert main([*arguments, "--json"]) == 0
        violation = json.loads(capsys.readouterr().out)["violated"]["patch association"]
        case = load("positional").build(
            {"D": 16, "tolerance": 1e-6, "gamma0": -1e-3, "horizon": 1e4}
        )
        run = load("positional").solve(case, records=300)
        fails = np.minimum(case.problem.beta, run.gamma[1:]) <= run.rho[1:]
        assert fails[0]
        assert not fails[-1]
        assert violation["begins"] == run.time[1:][~fails][0]
        assert violation["for_good"] == run.time[1:][np.flatnonzero(fails)[-1] + 1]
        assert main(arguments) == 0
        begins = f"it holds from time {violation['begins']:.6g} to the end\n"
        lines = capsys.readouterr().out.splitlines(keepends=True)
        line = next(line for line in lines if "patch association is" in line)
        assert line.endswith(begins)
        assert "by 1" not in line


def test_seconds_are_the_wall_time_of_the_run(monkeypatch, capsys):
    theory = load("positional")
    solve = type(theory).solve

    def slow(*args, **options):
        time.sleep(0.3)
        return solve(*args, **options)

    monkeypatch.setattr(type(theory), "solve", slow)
    assert main(["run", *SMALL, "--horizon", "10", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcomes"]["seconds"] > 0.3


class TestRunOutput:
    FAST = ("run", *SMALL, "--horizon", "10", "--json")

    def test_output_file_contains_the_trajectory(self, tmp_path, capsys):
        out = tmp_path / "run.nc"
        assert main([*self.FAST, "--out", str(out)]) == 0
        output = capsys.readouterr()
        assert f"wrote {out}" in output.err
        with xarray.open_dataset(out, engine="h5netcdf") as data:
            assert data.gamma[-1] == json.loads(output.out)["final"]["gamma"]
            assert json.loads(data.attrs["problem"])["D"] == 16

    def test_existing_file_is_overwritten_with_force_only(self, tmp_path, capsys):
        out = tmp_path / "run.nc"
        out.write_text("mine")
        assert main([*self.FAST, "--out", str(out)]) == 2
        assert (
            "exists: choose another name, or overwrite it with --force" in capsys.readouterr().err
        )
        assert out.read_text() == "mine"
        assert main([*self.FAST, "--out", str(out), "--force"]) == 0

    @pytest.mark.slow
    def test_plot(self, tmp_path, capsys):
        plot = tmp_path / "run.png"
        assert main([*self.FAST, "--plot", str(plot)]) == 0
        assert plot.read_bytes().startswith(b"\x89PNG")
        assert f"wrote {plot}" in capsys.readouterr().err
        assert main([*self.FAST, "--plot", str(plot)]) == 2
        assert "choose another name" in capsys.readouterr().err

    def test_plot_in_the_format_of_its_name(self, tmp_path, capsys):
        plot = tmp_path / "run.svg"
        assert main([*self.FAST, "--plot", str(plot), "--scale", "time=linear"]) == 0
        assert b"<svg" in plot.read_bytes()
        for name, option in (("run.jpg", []), ("run.pdf", ["--format", "svg"])):
            assert main([*self.FAST, "--plot", str(tmp_path / name), *option]) == 2
            assert "must end in" in (error := capsys.readouterr().err) or "ends in .pdf" in error

    @pytest.mark.slow
    @pytest.mark.traced
    def test_plot_of_two_runs(self, tmp_path, capsys, monkeypatch):
        plotted, draw = [], shared.draw_run
        monkeypatch.setattr(
            shared, "draw_run", lambda *args: plotted.append(args[0]) or draw(*args)
        )
        both = [*self.FAST, "--with", "nu=0.05", "--with", "horizon=20"]
        assert main([*both, "--plot", str(tmp_path / "run.png")]) == 0
        (data,) = plotted
        assert json.loads(data.attrs["runs"]) == ["as given", "nu=0.05, horizon=20"]
        ends = [data[name].values[-1] for name in ("time", "time 2")]
        assert ends == [10.0, 20.0]
        close(data["state 2"].values[0, 0], 0.05**0.5, rel=1e-12)
        close(data["state"].values[0, 0], 0.01**0.5, rel=1e-12)
        assert main(both) == 2
        assert "--with is not allowed without --plot" in capsys.readouterr().err

    def test_events_are_shaded(self, tmp_path, capsys):
        events = {"T0": 0.5, "T1": np.nan, "onset": 7.0, "later": 100.0}
        time = np.linspace(0.0, 10.0, 6)
        data = xarray.Dataset(
            {"state": (("parameter", "time"), [time, 0.01 * time]), "loss": ("time", 1.0 + time)},
            {"parameter": ["gamma", "rho"], "time": time},
            {"events": json.dumps(events), "scales": json.dumps({"time": "linear"})},
        )
        figure = Figure()
        artists = shared.draw_run(data, figure)
        edges = [span.get_x() for span in artists["events"]]
        close(edges, [0.0, 0.5, 7.0], rel=1e-12)
        names = [text.get_text() for text in figure.axes[0].texts]
        assert names == ["T0", "onset"]
        titles = [ax.get_title(loc="left") for ax in figure.axes]
        assert titles == [
            "(a) order parameters",
            "(b) small order parameters",
            "(c) population risk",
        ]

    @pytest.mark.parametrize(
        ("image", "sizes"),
        [
            (Image(), [10.0, 10.0, 9.0, 9.0]),
            (Image(style={"font.size": 19.0}), [20.0, 20.0, 18.0, 18.0]),
            (Image(style={"font.size": 19.0, "axes.titlesize": 5.0}), [5.0, 20.0, 18.0, 18.0]),
            (Image(size=(3.3, 3.0)), [7.0 * size / 9.5 for size in (10.0, 10.0, 9.0, 9.0)]),
            (Image(size=(3.3, 3.0), style={"font.size": 9.5}), [10.0, 10.0, 9.0, 9.0]),
        ],
    )
    def test_all_texts_follow_the_size_of_the_font(self, image, sizes):
        time, drawn = np.linspace(0.0, 10.0, 6), []
        data = xarray.Dataset(
            {"state": (("parameter", "time"), [time]), "loss": ("time", 1.0 + time)},
            {"parameter": ["gamma"], "time": time},
        )

        def draw(figure):
            shared.draw_run(data, figure)
            first, last = figure.axes
            legend, tick = first.get_legend().get_texts()[0], last.yaxis.get_ticklabels()[0]
            texts = (first._left_title, last.xaxis.label, legend, tick)
            drawn.extend(text.get_fontsize() for text in texts)

        image.render(draw, (7.0, 6.0))
        close(drawn, sizes, rel=1e-9)

    def test_names_of_close_events_do_not_overlap(self):
        time = np.linspace(0.0, 10.0, 6)
        events = {"switch": 4.6, "attended": 5.0, "learned": 5.1, "apart": 8.0}
        data = xarray.Dataset(
            {"state": (("parameter", "time"), [time]), "loss": ("time", 1.0 + time)},
            {"parameter": ["gamma"], "time": time},
            {"events": json.dumps(events), "scales": json.dumps({"time": "linear"})},
        )
        figure = Figure(figsize=(4.0, 2.8), layout="constrained")
        shared.draw_run(data, figure)
        figure.draw_without_rendering()
        above = figure.axes[0]
        shown = [above.title, above._left_title, *above.texts]
        boxes = [text.get_window_extent() for text in shown if text.get_text()]
        assert len(boxes) == 5
        assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
        assert above.texts[-1].get_position()[1] == above.texts[0].get_position()[1]

    def test_many_order_parameters_few_names(self):
        time = np.linspace(0.0, 10.0, 6)
        names = [f"x{number}" for number in range(20)]
        slopes = np.where(np.arange(20) % 4 == 1, 2.0, 1.0) * (-1.0) ** np.arange(20)
        data = xarray.Dataset(
            {"state": (("parameter", "time"), np.outer(slopes, time)), "loss": ("time", time)},
            {"parameter": names, "time": time},
        )
        figure = Figure(figsize=(7.0, 6.0))
        artists = shared.draw_run(data, figure)
        legend = figure.axes[0].get_legend()
        texts = [text.get_text() for text in legend.get_texts()]
        assert texts == ["x1", "x5", "x9", "x13", "x17", "15 others"]
        assert len({artists[name].get_color() for name in texts[:5]}) == 5
        assert {artists[name].get_color() for name in names if name not in texts} == {"#BBBBBB"}

        second = np.where(np.arange(20) == 18, 5.0, np.nan)  # only the second run has much of x18
        data["state 2"] = (("parameter", "time 2"), np.outer(second, time))
        data["loss 2"] = ("time 2", time)
        data = data.assign_coords({"time 2": time})
        data.attrs["runs"] = json.dumps(["as given", "K=4"])
        figure = Figure(figsize=(7.0, 6.0))
        shared.draw_run(data, figure)
        texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        assert texts == ["x1", "x5", "x9", "x13", "x18", "15 others"]

    def test_output_must_not_be_a_folder(self, tmp_path, capsys):
        assert main([*self.FAST, "--out", str(tmp_path), "--force"]) == 2
        assert "it is a folder" in capsys.readouterr().err

    def test_result_is_printed_if_it_cannot_be_written(self, tmp_path, capsys):
        (tmp_path / "file").write_text("")
        assert main([*self.FAST, "--out", str(tmp_path / "file" / "run.nc")]) == 1
        output = capsys.readouterr()
        assert output.err.startswith("patchdyn: cannot write")
        assert json.loads(output.out)["status"] == "completed"

    def test_ctrl_c_stores_the_partial_run(self, tmp_path, capsys, monkeypatch):
        gradient_flow, out = dynamics.gradient_flow, tmp_path / "run.nc"

        def interrupted(population, **options):
            def progress(fraction):
                if fraction > 0.3:
                    raise KeyboardInterrupt

            return gradient_flow(population, **(options | {"progress": progress}))

        monkeypatch.setattr(dynamics, "gradient_flow", interrupted)
        assert main(["run", *SMALL, "--horizon", "1e4", "--out", str(out), "--json"]) == 130
        answer = json.loads(capsys.readouterr().out)
        assert answer["status"] == "interrupted"
        assert 0.0 < answer["time"] < 1e4
        with xarray.open_dataset(out, engine="h5netcdf") as data:
            assert data.attrs["status"] == "interrupted"

    def test_ctrl_c_before_the_first_record(self, capsys, monkeypatch):
        def interrupted(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr("simulations.positional.system.Population", interrupted)
        assert main(["run"]) == 130
        assert capsys.readouterr().err == "patchdyn: interrupted\n"
