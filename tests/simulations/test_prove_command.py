"""`patchdyn prove`: what it prints, writes and rejects."""

import json

import pytest

from simulations.cli import main

PROBLEM = ["prove", "--D", "8", "--C", "2", "--qD", "2", "--horizon", "0.5"]


def test_text(capsys):
    assert main(PROBLEM) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("proved: the flow is enclosed to time 0.5; gamma > rho from time 0")
    assert any(line.split()[0] == "alpha" and "+-" in line for line in lines[1:])


def test_json_certificate_and_figure(capsys, tmp_path):
    certificate, figure = tmp_path / "proof.json", tmp_path / "proof.png"
    options = ["--json", "--out", str(certificate), "--plot", str(figure)]
    assert main([*PROBLEM, *options]) == 0
    printed = json.loads(capsys.readouterr().out)
    written = json.loads(certificate.read_text())
    assert printed["proved"] is True
    assert printed["solver"] == "flow"
    assert written["horizon"] == printed["horizon"] == 0.5
    assert figure.read_bytes().startswith(b"\x89PNG")
    low, high = printed["enclosure"]["alpha"]
    assert low < high < low + 1e-5
    assert main([*PROBLEM, "--out", str(certificate)]) == 2
    assert "--force" in capsys.readouterr().err


def test_descent(capsys):
    flags = ["--solver", "gd", "--learning-rate", "0.02", "--steps", "40", "--json"]
    assert main([*PROBLEM[:7], *flags]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["solver"] == "gd"
    assert printed["horizon"] == 0.8


def test_what_is_not_proved_exits_with_1(capsys):
    assert main(["prove", "--D", "256", "--C", "8", "--q", "0.5", "--horizon", "1"]) == 1
    assert "not proved to time 1: at time 0: no field is accurate enough" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--horizon", "-1"], "horizon = -1"),
        (["--tolerance", "7"], "tolerance = 7"),
        (["--learning-rate", "0.1"], "learning_rate"),
        (["--alpha", "-1"], "initial"),
    ],
)
def test_bad_input(flags, words, capsys):
    assert main([*PROBLEM[:7], *flags]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.splitlines()) == 1


def test_one_file_for_certificate_and_figure(tmp_path, capsys):
    both = str(tmp_path / "proof.json")
    assert main([*PROBLEM, "--out", both, "--plot", both]) == 2
    assert "--plot" in capsys.readouterr().err
    assert not (tmp_path / "proof.json").exists()


def test_a_certificate_that_is_not_there(tmp_path, capsys):
    assert main(["prove", "--check", str(tmp_path / "none.json")]) == 2
    assert "this file does not exist" in capsys.readouterr().err


def test_other_optimizers_are_rejected(capsys):
    options = ["--solver", "gd", "--learning-rate", "0.1", "--steps", "5", "--optimizer", "adam"]
    assert main(["prove", "--D", "6", "--C", "2", "--q", "0.3", *options]) == 2
    assert "prove encloses plain descent" in capsys.readouterr().err
