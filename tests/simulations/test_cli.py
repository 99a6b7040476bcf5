import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import xarray

import dynamics
from simulations.cli import main
from simulations.commands import COMMANDS
from simulations.theories import load
from tests.closeness import close
from tests.simulations.fakes import claim, fake_registry, figure

SMALL = ["--D", "16", "--C", "4", "--tolerance", "1e-6"]


@pytest.fixture
def registry(monkeypatch):
    """Three fake claims in place of those of the paper."""
    claims = (claim("one", figures=[figure()]), claim("two"), claim("three"))
    monkeypatch.setitem(sys.modules, "simulations.reproduction.registry", fake_registry(*claims))
    return claims


#: Claims made up here cannot be sent to other processes.
INLINE = ("--workers", "1")


def python(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=600, **options
    )


class TestStartUp:
    def test_help_loads_nothing_heavy(self):
        heavy = ["numba", "sympy", "matplotlib", "scipy", "xarray", "numpy", "rich", "dynamics"]
        code = (
            "import sys, simulations.cli\n"
            "assert simulations.cli.main(['--help']) == 0\n"
            f"loaded = [name for name in {heavy} if name in sys.modules]\n"
            "assert not loaded, loaded"
        )
        done = python("-c", code)
        assert done.returncode == 0, done.stderr
        assert "examples:" in done.stdout

    def test_version(self, capsys):
        assert main(["--version"]) == 0
        assert capsys.readouterr().out.startswith("patchdyn ")

    def test_as_a_program(self):
        done = python("-m", "simulations.cli", "--version")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("patchdyn ")

    @pytest.mark.parametrize("command", COMMANDS)
    def test_help_of_each_command_teaches(self, capsys, command):
        assert main([command, "--help"]) == 0
        text = capsys.readouterr().out
        assert f"  patchdyn {command}" in text
        assert "exit codes: 0 done, 1 failed, 2 bad input, 130 interrupted" in text

    def test_units_are_in_the_help_of_run(self, capsys):
        main(["run", "--help"])
        assert "Time is learning rate x steps" in capsys.readouterr().out

    def test_reader_that_goes_away(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [sys.executable, "-u", "-m", "simulations.cli", "derive"],
            stdout=writer, stderr=subprocess.PIPE, text=True, timeout=600, check=False,
        )  # fmt: skip
        os.close(writer)
        assert (done.returncode, done.stderr) == (1, "")


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ([], "a command is missing"),
            (["sing"], "invalid choice: 'sing'"),
            (["run", "--unknown", "1"], "unrecognized arguments: --unknown"),
            (["run", "--D", "many"], "argument --D: 'many' is not allowed: it must be a number"),
            (["run", "--q", "1/0"], "argument --q: '1/0' is not allowed: it must be a number"),
            (["run", "--D"], "argument --D: expected one argument"),
            (["run", "--D", "2.5"], "D = 2.5 is not allowed: D must be an integer"),
            (["run", "--D", "2", "--C", "2"], "D = 2 is not allowed: D must be at least 4"),
            (["run", "--C", "1"], "C = 1 is not allowed"),
            (["run", "--C", "64"], "C = 64 is not allowed"),
            (["run", "--C", "5"], "C = 5 is not allowed: C must be a divisor of D = 64"),
            (["run", "--q", "0"], "q = 0.0 is not allowed: q must be in (0, 1]"),
            (["run", "--q", "1.5"], "q = 1.5 is not allowed: q must be in (0, 1]"),
            (["run", "--q", "nan"], "q = nan is not allowed: q must be finite"),
            (["run", "--qD", "65"], "qD = 65.0 is not allowed: qD must be in (0, 64]"),
            (["run", "--qD", "-1"], "qD = -1.0 is not allowed"),
            (["run", "--q", "0.1", "--qD", "2"], "q and qD are not allowed together"),
            (["run", "--p", "4"], "p = 4 is not allowed: p must be odd"),
            (["run", "--p", "1"], "p = 1 is not allowed"),
            (["run", "--nu", "0"], "nu = 0.0 is not allowed: nu must be greater than 0"),
            (["run", "--nu", "-1e-3"], "nu = -0.001 is not allowed"),
            (["run", "--beta", "inf"], "beta = inf is not allowed: beta must be finite"),
            (["run", "--temperature", "0"], "temperature = 0.0 is not allowed"),
            (["run", "--output-scale", "-1"], "output_scale = -1.0 is not allowed"),
            (["run", "--d", "0"], "d = 0 is not allowed: d must be at least 1"),
            (["run", "--sigma", "-1"], "sigma = -1.0 is not allowed: sigma must be at least 0"),
            (["run", "--alpha", "nan", *SMALL], "alpha0 = nan is not allowed"),
            (["run", "--gamma", "inf", *SMALL], "gamma0 = inf is not allowed"),
            (["run", "--rho", "-inf", *SMALL], "rho0 = -inf is not allowed"),
            (["run", "--horizon", "0", *SMALL], "horizon = 0.0 is not allowed"),
            (["run", "--horizon", "inf", *SMALL], "horizon = inf is not allowed"),
            (["run", "--tolerance", "0"], "tolerance = 0.0 is not allowed"),
            (
                ["run", "--D", "16", "--tolerance", "1e-40"],
                "tolerance = 1e-40 is below the rounding error",
            ),
            (
                ["run", "--method", "magic"],
                "method = 'magic' is not allowed: method must be one of",
            ),
            (
                ["run", "--solver", "euler"],
                "solver = 'euler' is not allowed: solver must be flow or gd",
            ),
            (["run", "--steps", "10"], "steps is not allowed with solver = flow"),
            (["run", "--learning-rate", "1"], "learning_rate is not allowed with solver = flow"),
            (["run", "--solver", "gd", "--steps", "0", *SMALL], "steps = 0 is not allowed"),
            (["run", "--solver", "gd", "--steps", "1.5", *SMALL], "steps = 1.5 is not allowed"),
            (
                ["run", "--solver", "gd", "--learning-rate", "0", *SMALL],
                "learning_rate = 0.0 is not allowed",
            ),
            (
                ["run", "--solver", "gd", "--learning-rate", "-1", "--horizon", "1", *SMALL],
                "learning_rate = -1.0 is not allowed",
            ),
            (
                ["run", "--solver", "gd", "--horizon", "1e-3", *SMALL],
                "horizon = 0.001 is not allowed: horizon must be at least one step of 0.01",
            ),
            (
                ["run", "--solver", "gd", "--steps", "5", "--horizon", "1"],
                "steps and horizon are not allowed together",
            ),
            (["derive", "lemma-9"], "NAME = lemma-9 is not allowed: choose one of full-model"),
            (["derive", "--format", "word"], "--format word is not allowed: choose one of text"),
            (["reproduce", "--only", "lemma-9"], "--only lemma-9 is not allowed: choose among one"),
            (["reproduce", "--out=--"], "--out = -- is not allowed: it must be a value"),
            (["map", "x", "--at=--"], "--at = -- is not allowed"),
            (["reproduce", "--only"], "argument --only: expected at least one argument"),
        ],
    )
    def test_is_one_sentence_and_exit_code_2(self, registry, capsys, arguments, words):
        assert main(arguments) == 2
        output = capsys.readouterr()
        assert words in output.err
        assert output.err.startswith("patchdyn")
        assert output.err.count("\n") == 1
        assert output.out == ""

    def test_no_traceback_from_the_program_itself(self):
        done = python("-m", "simulations.cli", "run", "--C", "5")
        assert done.returncode == 2
        assert done.stderr == "patchdyn: C = 5 is not allowed: C must be a divisor of D = 64\n"


class TestRun:
    def test_summary_of_a_flow(self, capsys):
        assert main(["run", *SMALL, "--q", "2/16", "--horizon", "1e4"]) == 0
        text = capsys.readouterr().out
        for words in (
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
            assert words in text

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

    def test_default_problem_is_the_documented_one(self, capsys):
        assert main(["run", "--tolerance", "1e-3", "--horizon", "1e-3", "--json"]) == 0
        problem = json.loads(capsys.readouterr().out)["problem"]
        assert (problem["D"], problem["C"], problem["q"]) == (64, 4, 2 / 64)

    @pytest.mark.parametrize("clock", [["--steps", "50"], ["--horizon", "0.5"]])
    def test_descent_counts_time_as_rate_times_steps(self, capsys, clock):
        assert (
            main(["run", *SMALL, "--solver", "gd", "--learning-rate", "0.01", *clock, "--json"])
            == 0
        )
        answer = json.loads(capsys.readouterr().out)
        assert answer["stats"]["steps"] == 50
        close(answer["time"], 0.5, rel=1e-15)
        assert answer["events"] is None

    def test_sampling_says_three_standard_errors(self, capsys):
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

    def test_warnings_become_notes(self, capsys, monkeypatch):
        population = dynamics.Population

        def estimated(*arguments):
            warnings.warn("the expectation is estimated", dynamics.AccuracyWarning, stacklevel=1)
            return population(*arguments)

        monkeypatch.setattr("simulations.positional.system.Population", estimated)
        assert main(["run", *SMALL, "--horizon", "1"]) == 0
        assert capsys.readouterr().err == "patchdyn: note: the expectation is estimated\n"

    def test_overflow_prints_what_it_has_and_fails(self, capsys):
        assert main(["run", *SMALL, "--alpha", "1e200", "--json"]) == 1
        answer = json.loads(capsys.readouterr().out)
        assert answer["status"] == "overflow"
        assert answer["final"] is None
        assert main(["run", *SMALL, "--alpha", "1e200"]) == 1
        assert "overflow" in capsys.readouterr().out

    def test_divergence_prints_what_it_has_and_fails(self, capsys):
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

    def test_broken_invariants_are_named(self, capsys):
        assert main(["run", *SMALL, "--gamma", "-0.5", "--horizon", "1"]) == 0
        text = capsys.readouterr().out
        assert re.search(r"gamma >= rho is violated by 0\.5 \(at time .*: at every record\n", text)

    def test_association_says_when_it_begins_and_from_when_it_holds_for_good(self, capsys):
        """A start at gamma < rho: what is told is what the records of the same run say."""
        arguments = ["run", *SMALL, "--gamma", "-1e-3", "--horizon", "1e4"]
        assert main([*arguments, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["violated"]["patch association"]
        case = load("positional").build(
            {"D": 16, "tolerance": 1e-6, "gamma0": -1e-3, "horizon": 1e4}
        )
        run = load("positional").solve(case, records=300)
        fails = np.minimum(case.problem.beta, run.gamma[1:]) <= run.rho[1:]
        assert fails[0]
        assert not fails[-1]
        assert found["begins"] == run.time[1:][~fails][0]
        assert found["for_good"] == run.time[1:][np.flatnonzero(fails)[-1] + 1]
        assert main(arguments) == 0
        begins = f"it holds from time {found['begins']:.6g} to the end\n"
        lines = capsys.readouterr().out.splitlines(keepends=True)
        line = next(line for line in lines if "patch association is" in line)
        assert line.endswith(begins)
        assert "by 1" not in line


def test_seconds_of_a_run_are_those_of_the_run(monkeypatch, capsys):
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

    def test_file_holds_the_trajectory(self, tmp_path, capsys):
        out = tmp_path / "run.nc"
        assert main([*self.FAST, "--out", str(out)]) == 0
        output = capsys.readouterr()
        assert f"wrote {out}" in output.err
        with xarray.open_dataset(out, engine="h5netcdf") as data:
            assert data.gamma[-1] == json.loads(output.out)["final"]["gamma"]
            assert json.loads(data.attrs["problem"])["D"] == 16

    def test_existing_file_is_overwritten_only_with_force(self, tmp_path, capsys):
        out = tmp_path / "run.nc"
        out.write_text("mine")
        assert main([*self.FAST, "--out", str(out)]) == 2
        assert (
            "exists: choose another name, or overwrite it with --force" in capsys.readouterr().err
        )
        assert out.read_text() == "mine"
        assert main([*self.FAST, "--out", str(out), "--force"]) == 0

    def test_plot(self, tmp_path, capsys):
        plot = tmp_path / "run.png"
        assert main([*self.FAST, "--plot", str(plot)]) == 0
        assert plot.read_bytes().startswith(b"\x89PNG")
        assert f"wrote {plot}" in capsys.readouterr().err
        assert main([*self.FAST, "--plot", str(plot)]) == 2
        assert "choose another name" in capsys.readouterr().err

    def test_folder_is_refused(self, tmp_path, capsys):
        assert main([*self.FAST, "--out", str(tmp_path), "--force"]) == 2
        assert "it is a folder" in capsys.readouterr().err

    def test_unwritable_place_still_prints_the_result(self, tmp_path, capsys):
        (tmp_path / "file").write_text("")
        assert main([*self.FAST, "--out", str(tmp_path / "file" / "run.nc")]) == 1
        output = capsys.readouterr()
        assert output.err.startswith("patchdyn: cannot write")
        assert json.loads(output.out)["status"] == "completed"

    def test_ctrl_c_keeps_what_was_computed(self, tmp_path, capsys, monkeypatch):
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

    def test_ctrl_c_before_anything_was_computed(self, capsys, monkeypatch):
        def interrupted(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr("simulations.positional.system.Population", interrupted)
        assert main(["run"]) == 130
        assert capsys.readouterr().err == "patchdyn: interrupted\n"


class TestClaims:
    def test_list(self, registry, capsys):
        assert main(["claims"]) == 0
        assert "one  (Place of one)\n    What one measures.\n" in capsys.readouterr().out

    def test_json(self, registry, capsys):
        assert main(["claims", "--json"]) == 0
        first = json.loads(capsys.readouterr().out)[0]
        assert (first["claim"], first["method"]) == ("one", "What one measures.")

    def test_a_criterion_changed_after_a_run_says_so(self, capsys, monkeypatch):
        changed = fake_registry(claim("one", amended="Was 2, is 3."), claim("two"))
        monkeypatch.setitem(sys.modules, "simulations.reproduction.registry", changed)
        assert main(["claims"]) == 0
        assert capsys.readouterr().out.count("    changed after a run: Was 2, is 3.\n") == 1
        assert main(["claims", "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)
        assert [one["amended"] for one in listed] == ["Was 2, is 3.", ""]

    def test_those_of_the_paper_are_listed_without_loading_the_numbers(self):
        code = (
            "import sys, simulations.cli\n"
            "assert simulations.cli.main(['claims', '--json']) == 0\n"
            "loaded = [n for n in ('numba', 'sympy', 'matplotlib', 'scipy') if n in sys.modules]\n"
            "assert not loaded, loaded"
        )
        done = python("-c", code)
        assert done.returncode == 0, done.stderr
        assert "lemma-4.1" in [entry["claim"] for entry in json.loads(done.stdout)]


class TestDerive:
    def test_list(self, capsys):
        assert main(["derive"]) == 0
        assert "lemma-4.3" in capsys.readouterr().out

    @pytest.mark.parametrize("form", ["text", "latex", "python"])
    def test_each_format(self, capsys, form):
        assert main(["derive", "attention", "--format", form]) == 0
        assert "Lambda" in capsys.readouterr().out


class TestReproduce:
    def test_everything_into_a_folder(self, registry, tmp_path, capsys):
        assert main(["reproduce", *INLINE, "--out", str(tmp_path / "r")]) == 0
        output = capsys.readouterr()
        assert output.out == f"3 holds\nreport: {tmp_path / 'r' / 'report.html'}\n"
        report = json.loads((tmp_path / "r" / "report.json").read_text())
        assert [entry["claim"] for entry in report] == ["one", "two", "three"]
        assert not report[0]["quick"]

    def test_a_single_file_shown_in_a_browser(self, registry, tmp_path, monkeypatch, capsys):
        shown = []
        monkeypatch.setattr("webbrowser.open", lambda address: shown.append(address) or True)
        arguments = ["reproduce", *INLINE, "--out", str(tmp_path / "a b")]
        assert main(arguments) == 0
        page = tmp_path / "a b" / "report.html"
        assert not shown
        assert 'src="figures/line.png"' in page.read_text(encoding="utf-8")
        assert main([*arguments, "--single-file", "--open"]) == 0
        assert shown == [page.as_uri()]
        assert "figures/line.png" not in page.read_text(encoding="utf-8").replace(
            "Files: figures/line.png", ""
        )
        assert [c.measure.calls for c in registry] == [1, 1, 1]
        monkeypatch.setattr("webbrowser.open", lambda address: False)
        assert main([*arguments, "--open"]) == 0
        assert f"cannot open a browser: open {page} yourself" in capsys.readouterr().err

    @pytest.mark.parametrize("workers", ["0", "-1", "1.5"])
    def test_number_of_workers_must_be_positive(self, workers, capsys):
        assert main(["reproduce", "--workers", workers]) == 2
        assert f"--workers {workers} is not allowed" in capsys.readouterr().err

    @pytest.mark.parametrize("seed", ["-1", "1.5", "1000001"])
    def test_seed_must_be_an_integer_in_its_range(self, seed, capsys):
        assert main(["reproduce", f"--seed={seed}"]) == 2
        assert f"--seed {seed} is not allowed: it must be" in capsys.readouterr().err

    def test_seed_reaches_the_claims_and_another_is_rejected(self, registry, tmp_path, capsys):
        arguments = ["reproduce", *INLINE, "--out", str(tmp_path)]
        assert main([*arguments, "--seed", "3"]) == 0
        assert [claim.measure.context.seed for claim in registry] == [3, 3, 3]
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert "seed 3 instead of 0" in page
        assert "patchdyn reproduce --seed 3 --only one" in page
        assert main([*arguments, "--seed", "3"]) == 0  # resumes
        assert [claim.measure.calls for claim in registry] == [1, 1, 1]
        capsys.readouterr()
        assert main(arguments) == 2
        assert "another seed (3, now 0)" in capsys.readouterr().err

    def test_seed_reaches_other_processes(self, tmp_path, monkeypatch):
        registry = fake_registry(claim("one"), claim("two"), claim("three"))
        monkeypatch.setitem(sys.modules, "simulations.reproduction.registry", registry)
        assert main(["reproduce", "--workers", "2", "--seed", "3", "--out", str(tmp_path)]) == 0
        report = json.loads((tmp_path / "report.json").read_text())
        assert [entry["seed"] for entry in report] == [3, 3, 3]
        assert {entry["provenance"]["seed"] for entry in report} == {"3"}

    def test_default_folder_is_report(self, registry, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert main(["reproduce", *INLINE, "--quick"]) == 0
        assert (tmp_path / "report" / "report.html").is_file()

    def test_only_some_in_the_order_of_the_paper(self, registry, tmp_path):
        assert (
            main(["reproduce", *INLINE, "--only", "three", "--only", "one", "--out", str(tmp_path)])
            == 0
        )
        assert [c.measure.calls for c in registry] == [1, 0, 1]
        report = json.loads((tmp_path / "report.json").read_text())
        assert [entry["claim"] for entry in report] == ["one", "three"]

    def test_claim_that_cannot_be_run(self, registry, tmp_path, capsys):
        registry[1].measure.error = ValueError("no root")
        assert main(["reproduce", *INLINE, "--out", str(tmp_path)]) == 1
        assert "patchdyn: could not be run: two" in capsys.readouterr().err
        assert registry[2].measure.calls == 1

    def test_ctrl_c(self, registry, tmp_path, capsys):
        registry[1].measure.error = KeyboardInterrupt()
        assert main(["reproduce", *INLINE, "--out", str(tmp_path)]) == 130
        output = capsys.readouterr()
        assert "not run yet: two, three" in output.out
        assert "interrupted; the same command resumes" in output.err

    def test_other_mode_is_refused(self, registry, tmp_path, capsys):
        main(["reproduce", *INLINE, "--quick", "--out", str(tmp_path)])
        capsys.readouterr()
        assert main(["reproduce", *INLINE, "--out", str(tmp_path)]) == 2
        assert "holds a quick run while this one is full" in capsys.readouterr().err
        assert main(["reproduce", *INLINE, "--out", str(tmp_path), "--force"]) == 0

    def test_thorough_reaches_the_claims_and_is_not_quick(self, registry, tmp_path, capsys):
        assert main(["reproduce", *INLINE, "--thorough", "--out", str(tmp_path)]) == 0
        assert registry[0].measure.context.thorough
        assert json.loads((tmp_path / "report.json").read_text())[0]["thorough"]
        assert main(["reproduce", *INLINE, "--out", str(tmp_path)]) == 2
        assert "holds a thorough run while this one is full" in capsys.readouterr().err
        assert main(["reproduce", "--quick", "--thorough"]) == 2

    def test_unusable_folder(self, registry, tmp_path, capsys):
        (tmp_path / "file").write_text("")
        assert main(["reproduce", *INLINE, "--out", str(tmp_path / "file")]) == 2
        assert "cannot use" in capsys.readouterr().err

    def test_folder_without_permission(self, registry, tmp_path, capsys, monkeypatch):
        def denied(*_, **__):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("pathlib.Path.mkdir", denied)
        assert main(["reproduce", *INLINE, "--out", str(tmp_path / "r")]) == 2
        assert "Permission denied" in capsys.readouterr().err

    def test_full_disk(self, registry, tmp_path, capsys, monkeypatch):
        replace = os.replace

        def full(source, target):
            if "two" in str(target):
                raise OSError(28, "No space left on device")
            replace(source, target)

        monkeypatch.setattr(os, "replace", full)
        assert main(["reproduce", *INLINE, "--out", str(tmp_path)]) == 1
        error = capsys.readouterr().err
        assert "No space left on device; finished claims are stored" in error

    def test_real_ctrl_c_of_a_real_process(self, tmp_path):
        """SIGINT while a claim runs: the finished one is kept, the exit code is 130."""
        script = (
            "import sys, time\n"
            "from tests.simulations.fakes import claim, fake_registry\n"
            "first, slow = claim('first'), claim('slow')\n"
            "object.__setattr__(slow, 'run', lambda context: time.sleep(60))\n"
            "sys.modules['simulations.reproduction.registry'] = fake_registry(first, slow)\n"
            "from simulations.cli import main\n"
            f"sys.exit(main(['reproduce', '--workers', '1', '--out', {str(tmp_path / 'r')!r}]))\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        record = tmp_path / "r" / "claims" / "first.json"
        deadline = time.monotonic() + 300
        while process.stderr.readline().startswith("[2/2] slow") is False:
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=300)
        assert process.returncode == 130
        assert "the same command resumes" in error
        assert record.is_file()
        assert "Not run yet: slow." in (tmp_path / "r" / "report.html").read_text()


@pytest.mark.parametrize("value", ["8" * 5000, "x" * 5000])
def test_a_refusal_of_argparse_is_short_too(value, capsys):
    assert main(["sweep", "c.toml", "--out", "x", f"--workers={value}"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("patchdyn sweep: argument --workers: invalid int value")
    assert len(said.splitlines()) == 1
    assert len(said) < 1000
