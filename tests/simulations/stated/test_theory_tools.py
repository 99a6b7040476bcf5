"""Theory files in every tool: run, sweep, map, falsify, report; and rejected commands."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from simulations import theories
from simulations.cli import main
from simulations.falsify import falsify
from simulations.stated import conjectures, examples
from simulations.stated.system import UserTheorySystem
from tests.closeness import close

EXAMPLES = Path(examples.__file__).parent
TEACHER = EXAMPLES / "teacher.py"
SWEEP = """\
[grid]
D = [8, 12, 16]
nu = [0.5, 1.0]

[run]
horizon = 50
"""


def run(capsys, *words):
    assert main(["run", "--theory", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_run(tmp_path, capsys):
    """K c_in + (D - K) c_out is conserved, and the printed command reproduces the run."""
    out, plot = tmp_path / "run.nc", tmp_path / "run.png"
    words = [TEACHER, "--D", 12, "--nu", 2, "--c-in0", 0.5, "--horizon", 100]
    result = run(capsys, *words, "--out", out, "--plot", plot)
    assert result["system"] == "stated:teacher"
    assert result["problem"]["values"] == {"D": 12, "K": 4, "nu": 2.0}
    final = result["final"]
    close(4 * final["c_in"] + 8 * final["c_out"], 2.0, rel=1e-7)
    assert final["v"] > 0.1
    assert 0 < result["outcomes"]["loss"] < result["outcomes"]["initial_loss"]
    assert result["violated"] == {}
    assert result["command"] == (
        f"patchdyn run --theory {TEACHER} --D 12 --K 4 --nu 2.0 --c-in0 0.5 --solver flow "
        "--horizon 100.0 --rtol 1e-08"
    )
    again = run(capsys, *result["command"].split()[3:])
    assert again["final"] == final
    assert out.is_file()
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert main(["run", "--theory", str(TEACHER), "--solver", "gd", "--steps", "20"]) == 0
    assert "(certified)" in capsys.readouterr().out


def test_help_lists_the_parameters_of_the_file(capsys):
    assert main(["run", "--theory", str(TEACHER), "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "teacher, as teacher.py states it (Zhang, Zhao, Gu, Cao (arXiv 2603.22801))" in text
    assert "--K X tokens of a group (default: 4); a divisor of D, at least 2" in text
    assert "--c-out0 X initial c_out (default: 0)" in text


@pytest.mark.slow
def test_sweep_and_map(tmp_path, capsys):
    config, folder = tmp_path / "grid.toml", tmp_path / "sweep"
    config.write_text(SWEEP)
    words = ["sweep", str(config), "--out", str(folder), "--workers", "1"]
    assert main([*words, "--theory", str(TEACHER)]) == 0
    assert "6 cells: 6 completed" in capsys.readouterr().out
    assert main(["map", str(folder)]) == 0
    assert (folder / "maps" / "c_in.png").is_file()
    capsys.readouterr()
    assert main(["map", str(folder), "--at", "D=12", "--at", "nu=1", "--json"]) == 0
    cell = json.loads(capsys.readouterr().out)
    alone = run(capsys, TEACHER, "--D", 12, "--nu", 1, "--horizon", 50)
    close(cell["outcomes"]["c_in"], alone["final"]["c_in"], rel=1e-9)
    theories._LOADED.clear()
    assert main(["map", str(folder)]) == 2
    assert "load it with --theory FILE.py" in capsys.readouterr().err
    other = tmp_path / "other.py"
    other.write_text(TEACHER.read_text().replace("0.5 * (", "0.7 * ("))
    assert main(["map", str(folder), "--theory", str(other)]) == 2
    assert "sweep of another version of stated:teacher" in capsys.readouterr().err
    assert (
        main([*words, "--theory", str(other)]) == 2
    )  # the folder contains results of another file
    assert main([*words]) == 2


@pytest.mark.slow
def test_falsify(capsys):
    words = ["--theory", str(TEACHER), "--budget", "30", "--horizon", "100", "--json"]
    assert main(["falsify", "c_in <= 1", *words]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["outcome"] == "falsified"
    assert result["command"].startswith(f"patchdyn run --theory {TEACHER}")
    assert result["counterexample"]["violation"] > 0
    rerun = result["largest violation"]["command"]
    assert rerun.startswith(f"patchdyn run --theory {TEACHER}")
    assert main([*rerun.split()[1:], "--json"]) == 0
    final = json.loads(capsys.readouterr().out)["final"]["c_in"]
    close(final - 1.0, result["largest violation"]["violation"], rel=1e-4)


@pytest.mark.slow
@pytest.mark.traced
def test_falsify_with_the_path_of_a_file():
    report = falsify("c_in <= 0.5", system=str(TEACHER), budget=60, most=9, ranges={"K": (3, 9)})
    assert report.ranges["horizon"][1] == 1e6  # the horizon of the file
    assert report.falsified
    assert report.counterexample.case.problem.values["K"] >= 3
    assert report.command.startswith(f"patchdyn run --theory {TEACHER} --D ")


def test_theory_is_pickled_as_its_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(TEACHER.read_text())
    theory = UserTheorySystem(path)
    again = pickle.loads(pickle.dumps(theory))
    assert again.fingerprint == theory.fingerprint
    case = theory.build({"horizon": 10})
    assert again.measure(case)["c_in"] == theory.measure(case)["c_in"] > 0
    text = pickle.dumps(theory)
    path.write_text(TEACHER.read_text() + "\n")
    with pytest.raises(ValueError, match="was changed since it was read"):
        pickle.loads(text)


def test_random_problems_are_valid_and_differ():
    from hypothesis import find

    theory = UserTheorySystem(TEACHER)
    simplest = find(theory.cases(K=4, horizon=1.0), lambda values: True)
    assert simplest["D"] == 8  # with one group c_out would have no entry
    other = find(theory.cases(), lambda values: values["nu"] > 1.5 and values["D"] > 6)
    assert theory.build(other).problem.values["D"] % other["K"] == 0


@pytest.mark.slow
def test_sizes_are_sampled_near_the_defaults_and_in_ranges():
    from hypothesis import find

    theory = UserTheorySystem(TEACHER)  # D = 16 and K = 4 by default
    default = find(theory.cases(), lambda values: values["D"] >= 16 and values["nu"] == 0.5)
    assert 16 <= default["D"] <= 32
    for ranges, of_range in (
        ({"K": (30, 200)}, lambda values: values["K"] > 100),
        ({"D": (60, 90)}, lambda values: values["D"] > 80),
        ({"D": (60, 90), "nu": (2.0, 2.5)}, lambda values: values["nu"] > 2.2),
        ({"K": (3, 9), "D": (4, 99)}, lambda values: values["K"] > 6),
        ({"c_in0": (-0.5, 0.5), "horizon": (1.0, 1e4)}, lambda values: values["c_in0"] > 0.3),
    ):
        values = find(theory.cases(ranges), of_range)
        assert all(low <= values[name] <= high for name, (low, high) in ranges.items())
        assert values["D"] % values["K"] == 0
        case = theory.build(values)
        assert case.problem.start["c_in"] == values.get("c_in0", 0.0)
    for ranges, sentence in (
        ({"K": (1, 9)}, "K = 1 is not allowed: K must be a whole number, at least 2"),
        ({"nu": (-1.0, 1.0)}, "nu = -1.0 is not allowed: nu must be > 0"),
    ):
        with pytest.raises(ValueError, match=sentence):
            theory.cases(ranges)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "--theory", "{teacher}", "--D", "10", "--K", "4"], "K must divide D = 10"),
        (["run", "--theory", "{teacher}", "--nu", "-1"], "nu = -1 is not allowed: nu must be > 0"),
        (["run", "--theory", "{teacher}", "--system", "masked"], "not allowed with argument"),
        (["run", "--theory", "{clash}"], "horizon, x0 is not allowed as a name: it is reserved or"),
        (["run", "--theory", "{wrong}"], "wrong.py, line 1: NameError: name 'nothing'"),
        (["falsify", "c_in <= 1", "--theory", "{teacher}", "--certify", "--box", "D=4"],
         "--certify is not allowed with --theory {teacher}: this theory has no certificates"),
        (["falsify", "q <= 1", "--theory", "{teacher}"], "q"),
    ],
)  # fmt: skip
def test_rejected_commands(tmp_path, capsys, words, sentence):
    files = {"teacher": TEACHER}
    for name, text in (
        ("wrong", "nothing\n"),
        ("clash", TEACHER.read_text().replace("nu", "horizon").replace('"c_out"', '"x0"')
                  .replace('"c_in"', '"x"').replace("c_in >= c_out", "loss > 0")
                  .replace('"gap": "c_in - c_out"', "")),
    ):  # fmt: skip
        files[name] = tmp_path / f"{name}.py"
        files[name].write_text(text)
    assert main([word.format(**files) for word in words]) == 2
    assert sentence.format(**files) in capsys.readouterr().err


def test_names_of_orbits_become_identifiers():
    import symbolic

    theory = UserTheorySystem(Path(symbolic.__file__).parent / "masked" / "stated.py")
    assert theory.identifiers["Upsilon[global to local]"] == "Upsilon_global_to_local"
    case = theory.build({"G": 4, "C": 2, "N": 2, "M": 3, "z": 1.5, "Upsilon_global_to_local0": 0.5})
    start = case.problem.start
    assert start["Upsilon[global to local]"] == 0.5
    assert np.count_nonzero(list(start.values())) == 1


@pytest.mark.slow
def test_theory_command_runs_other_tools(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["theory", str(TEACHER)]
    assert main([*words, "--run", "D=12", "c_in0=0.5", "horizon=100", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result == result | {"system": "stated:teacher", "status": "completed"}
    assert result["initial"]["c_in"] == 0.5
    assert main([*words, "--falsify", "v <= 0.1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "falsified"
    for wrong, sentence in (
        (["--run", "E=3"], "--run E=3 is not allowed: it must be NAME=VALUE with one of D, K, nu"),
        (["--sweep", "grid.toml"], "--sweep CONFIG.toml and --out DIR are needed together"),
        (
            ["--at", "D=8", "--run"],
            "--at is not allowed with --export, --run, --sweep, --falsify or --report",
        ),
        (["--run", "D=10", "K=4"], "K must divide D = 10"),
        (["--sweep", "grid.toml", "--out", "x"], "cannot read grid.toml"),
    ):
        assert main([*words, *wrong]) == 2
        assert sentence in capsys.readouterr().err


@pytest.mark.slow
def test_report_of_a_file(tmp_path, monkeypatch, capsys):
    """A false conjecture fails, and the report contains the command that reproduces it."""
    monkeypatch.setattr(conjectures, "QUICK_PROBLEMS", 3)
    path = tmp_path / "mine.py"
    path.write_text(TEACHER.read_text().replace('"loss <= at_start(loss)"', '"v <= 0.1"'))
    folder = tmp_path / "report"
    assert main(["theory", str(path), "--report", str(folder), "--quick"]) == 0
    records = {x["claim"]: x for x in json.loads((folder / "report.json").read_text())}
    verdicts = {name: record["verdict"] for name, record in records.items()}
    assert verdicts == {"teacher-reduction": "holds", "teacher-conjecture-1": "holds",
                        "teacher-conjecture-2": "fails"}  # fmt: skip
    assert "patchdyn run --theory" in records["teacher-conjecture-2"]["parameters"]["rerun"]
    assert (folder / "figures" / "teacher-run.png").is_file()
    assert main(["theory", str(path), "--report", str(folder), "--quick"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("[a-z]*.py")))
def test_every_example_is_short_and_runs(name, capsys):
    """The names in the files are not reserved by the tools."""
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) <= 80
    assert main(["run", "--theory", str(EXAMPLES / f"{name}.py"), "--json"]) == 0
    assert "error" not in capsys.readouterr().err
