"""`patchdyn prove`: what it prints, writes and rejects."""

import json

import pytest

from simulations.cli import main

PROBLEM = ["prove", "--D", "8", "--C", "2", "--qD", "2", "--horizon", "0.5"]


@pytest.mark.slow
@pytest.mark.traced
def test_text(capsys):
    assert main(PROBLEM) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("proved: the flow is enclosed to time 0.5; gamma > rho from time 0")
    assert any(line.split()[0] == "alpha" and "+-" in line for line in lines[1:])


@pytest.mark.slow
@pytest.mark.traced
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


@pytest.mark.slow
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


BOX = ["prove", "--D", "8", "--C", "2", "--horizon", "0.01"]


def test_interval_as_text_and_json(capsys):
    arguments = [*BOX, "--qD", "2..2.001", "--nu", "0.00999..0.01001"]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "proved for all nu in [0.00999, 0.01001] and q in [0.25, 0.250125]: the flow is enclosed"
    )
    assert main([*arguments, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["proved"] is True
    assert printed["fraction"] == 1.0
    assert printed["box"] == {"nu": [0.00999, 0.01001], "q": [0.25, 2.001 / 8]}
    assert "gap_negative" not in printed
    low, high = printed["enclosure"]["alpha"]
    assert low < high < low + 1e-3


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--nu", "2..1"], "nu = 2..1 is not allowed: the ends must be finite and in increasing"),
        (["--nu", "1..1"], "nu = 1..1 is not allowed"),
        (["--nu", "1..inf"], "nu = 1..inf is not allowed"),
        (["--nu=-1..1"], "nu = -1"),
        (["--nu", "a..1"], "'a' is not allowed"),
        (["--beta", "1..2"], "beta = 1..2 is not allowed: only nu, q, qD, qD/C^2 may be intervals"),
        (
            ["--nu", "1..2", "--out", "box.json"],
            "--out and --plot are not allowed with an interval",
        ),
        (
            ["--nu", "1..2", "--solver", "gd", "--learning-rate", "0.1", "--steps", "3"],
            "solver = gd is not allowed with an interval",
        ),
    ],
)
def test_bad_intervals(flags, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        code = main([*PROBLEM[:7], *flags])
    except SystemExit as stop:  # of the parser
        code = stop.code
    assert code == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "box.json").exists()
