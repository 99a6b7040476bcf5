"""The options of the optimizer in `patchdyn sweep`, `map` and `falsify`."""

import json

import pytest

from simulations.cli import main
from simulations.maps import read

SWEEP = """\
[fixed]
D = 8
C = 2
[grid]
qD = [1, 2]
nu = [0.01, 0.1]
[run]
solver = "{solver}"
"""


def written(folder, solver="gd", more=""):
    path = folder / "sweep.toml"
    path.write_text(SWEEP.format(solver=solver) + more)
    return path


@pytest.mark.slow
def test_a_sweep_and_its_maps(tmp_path, capsys):
    out = tmp_path / "out"
    config = written(tmp_path, more="steps = 20\n")
    options = ["--optimizer", "momentum", "--momentum", "0.5", "--weight-decay", "0.01"]
    assert main(["sweep", str(config), "--out", str(out), "--workers", "1", *options]) == 0
    used = {"optimizer": "momentum", "momentum": 0.5, "weight_decay": 0.01}
    assert used.items() <= read(out).config.fixed.items()
    capsys.readouterr()
    cell = ["map", str(out), "--at", "qD=1", "--at", "nu=0.1"]
    assert main([*cell, "--optimizer", "momentum", "--json"]) == 0
    command = json.loads(capsys.readouterr().out)["command"]
    assert "--optimizer momentum" in command
    assert "--momentum 0.5" in command
    assert main([*cell, "--optimizer", "adam"]) == 2
    assert "the sweep used optimizer = momentum" in capsys.readouterr().err


@pytest.mark.slow
def test_an_axis_of_optimizers(tmp_path, capsys):
    out = tmp_path / "out"
    config = written(tmp_path, more="steps = 20\n")
    config.write_text(config.read_text().replace("nu = [0.01, 0.1]", 'optimizer = ["gd", "adam"]'))
    assert main(["sweep", str(config), "--out", str(out), "--workers", "1"]) == 0
    capsys.readouterr()
    assert main(["map", str(out), "--at", "qD=1", "--optimizer", "adam", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["at"] == {"qD": 1, "optimizer": "adam"}


@pytest.mark.parametrize(
    ("solver", "options", "sentence"),
    [
        (
            "flow",
            ["--optimizer", "adam"],
            "optimizer is not allowed with solver = flow: set solver",
        ),
        ("gd", ["--optimizer", "lion"], "optimizer = lion is not allowed"),
        ("gd", ["--momentum", "0.5"], "momentum is not allowed with optimizer = gd"),
    ],
)
def test_bad_options_of_a_sweep(tmp_path, capsys, solver, options, sentence):
    assert (
        main(["sweep", str(written(tmp_path, solver)), "--out", str(tmp_path / "out"), *options])
        == 2
    )
    assert sentence in capsys.readouterr().err


def test_an_option_that_the_file_gives_too(tmp_path, capsys):
    config = written(tmp_path, more='optimizer = "adam"\n')
    assert main(["sweep", str(config), "--out", str(tmp_path / "out"), "--optimizer", "sign"]) == 2
    assert "gives optimizer too" in capsys.readouterr().err


@pytest.mark.slow
def test_falsify_descends_with_the_optimizer(capsys):
    """Sign descent with a large rate raises the loss; plain descent with it does not."""
    arguments = [
        "falsify", "loss <= at_start(loss)", "--fix", "D=8", "--fix", "C=2", "--fix", "steps=20",
        "--fix", "learning_rate=1.0", "--budget", "20", "--json",
    ]  # fmt: skip
    assert main([*arguments, "--optimizer", "sign"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["outcome"] == "falsified"
    assert report["counterexample"]["values"]["optimizer"] == "sign"
    assert "--optimizer sign" in report["command"]
