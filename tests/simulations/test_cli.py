"""The command line: start-up, help, bad input, and the commands `claims` and `derive`."""

import json
import os
import subprocess
import sys

import pytest

from simulations.cli import main
from simulations.commands import COMMANDS
from tests.simulations.fakes import claim, fake_registry


def python(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=600, **options
    )


class TestStartUp:
    def test_help_imports_no_heavy_packages(self):
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

    def test_main_module(self):
        done = python("-m", "simulations.cli", "--version")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("patchdyn ")

    @pytest.mark.parametrize("command", COMMANDS)
    def test_help_of_each_command_has_examples_and_exit_codes(self, capsys, command):
        assert main([command, "--help"]) == 0
        text = capsys.readouterr().out
        assert f"  patchdyn {command}" in text
        assert "exit codes: 0 done, 1 failed, 2 bad input, 130 interrupted" in text

    def test_help_of_run_explains_time(self, capsys):
        main(["run", "--help"])
        assert "Time is learning rate x steps" in capsys.readouterr().out

    def test_broken_pipe(self):
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
        ("arguments", "message"),
        [
            ([], "a command is missing"),
            (["sing"], "invalid choice: 'sing'"),
            (["run", "--unknown", "1"], "unrecognized arguments: --unknown"),
            (["run", "--D", "many"], "argument --D: 'many' is not allowed: it must be a number"),
            (["run", "--q", "1/0"], "argument --q: '1/0' is not allowed: it must be a number"),
            (["run", "--D"], "argument --D: expected one argument"),
            (["run", "--D", "2.5"], "D = 2.5 is not allowed: D must be an integer"),
            (["run", "--C", "5"], "C = 5 is not allowed: C must be a divisor of D = 64"),
            (["run", "--q", "nan"], "q = nan is not allowed: q must be finite"),
            (["run", "--qD", "65"], "qD = 65.0 is not allowed: qD must be in (0, 64]"),
            (["run", "--q", "0.1", "--qD", "2"], "q and qD are not allowed together"),
            (["run", "--nu", "-1e-3"], "nu = -0.001 is not allowed"),
            (["run", "--beta", "-2/0"], "argument --beta: '-2/0' is not allowed"),
            (["run", "--rho", "-inf"], "rho0 = -inf is not allowed"),
            (
                ["run", "--D", "16", "--tolerance", "1e-40"],
                "tolerance = 1e-40 is below the rounding error",
            ),
            (
                ["run", "--method", "magic"],
                "method = 'magic' is not allowed: method must be one of",
            ),
            (["run", "--steps", "10"], "steps is not allowed with solver = flow"),
            (["run", "--learning-rate", "1"], "learning_rate is not allowed with solver = flow"),
            (
                ["run", "--solver", "gd", "--horizon", "1e-3"],
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
    def test_bad_input_is_one_sentence_and_exit_code_2(self, registry, capsys, arguments, message):
        assert main(arguments) == 2
        output = capsys.readouterr()
        assert message in output.err
        assert output.err.startswith("patchdyn")
        assert output.err.count("\n") == 1
        assert output.out == ""

    def test_program_prints_no_traceback(self):
        done = python("-m", "simulations.cli", "run", "--C", "5")
        assert done.returncode == 2
        assert done.stderr == "patchdyn: C = 5 is not allowed: C must be a divisor of D = 64\n"


class TestClaims:
    def test_list(self, registry, capsys):
        assert main(["claims"]) == 0
        assert "one  (Place of one)\n    What one measures.\n" in capsys.readouterr().out

    def test_json(self, registry, capsys):
        assert main(["claims", "--json"]) == 0
        first = json.loads(capsys.readouterr().out)[0]
        assert (first["claim"], first["method"]) == ("one", "What one measures.")

    def test_amended_criteria_are_marked(self, capsys, monkeypatch):
        changed = fake_registry(claim("one", amended="Was 2, is 3."), claim("two"))
        monkeypatch.setitem(sys.modules, "simulations.reproduction.registry", changed)
        assert main(["claims"]) == 0
        assert capsys.readouterr().out.count("    changed after a run: Was 2, is 3.\n") == 1
        assert main(["claims", "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)
        assert [entry["amended"] for entry in listed] == ["Was 2, is 3.", ""]

    def test_list_imports_no_heavy_packages(self):
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
    def test_formats(self, capsys, form):
        assert main(["derive", "attention", "--format", form]) == 0
        assert "Lambda" in capsys.readouterr().out


@pytest.mark.parametrize("value", ["8" * 5000, "x" * 5000])
def test_long_arguments_are_truncated_in_messages(value, capsys):
    assert main(["sweep", "c.toml", "--out", "x", f"--workers={value}"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("patchdyn sweep: argument --workers: invalid int value")
    assert len(error.splitlines()) == 1
    assert len(error) < 1000
