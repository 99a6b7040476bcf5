"""A theory that is nothing but its folders: every tool works on it, no other file is touched."""

import json

import pytest

from simulations import theories
from simulations.cli import main

SWEEP = """\
system = "toy"

[grid]
s = { from = 0.5, to = 2.0, number = 3 }
a0 = [0.1, 0.5]

[run]
horizon = 50
"""


@pytest.fixture(autouse=True)
def toy():
    with theories.registered("toy", "tests.toy"):
        yield


def test_it_is_gone_afterwards():
    twice = theories.registered("toy", "tests.toy")
    with pytest.raises(ValueError, match="registered already"), twice:
        pass
    assert theories.names()[-1] == "toy"


def test_run(tmp_path, capsys):
    out, plot = tmp_path / "run.nc", tmp_path / "run.png"
    words = ["run", "--system", "toy", "--s", "1.5", "--horizon", "50"]
    assert main([*words, "--json", "--out", str(out), "--plot", str(plot)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["system"] == "toy"
    assert abs(told["outcomes"]["product"] - 1.5) < 1e-6
    assert told["command"] == (
        "patchdyn run --system toy --s 1.5 --a0 0.1 --b0 0.2 --solver flow --horizon 50.0 "
        "--rtol 1e-08"
    )
    assert out.is_file()
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert main(words) == 0
    assert "final a b" in capsys.readouterr().out
    assert main(["run", "--system", "toy", "--s", "-1"]) == 2


def test_sweep_and_map(tmp_path, capsys, compiled_before):
    config, folder = tmp_path / "toy.toml", tmp_path / "sweep"
    config.write_text(SWEEP)
    assert main(["sweep", str(config), "--out", str(folder), "--workers", "1"]) == 0
    assert main(["map", str(folder)]) == 0
    assert (folder / "maps" / "product.png").is_file() or list(folder.rglob("product*.png"))
    capsys.readouterr()
    assert main(["map", str(folder), "--at", "s=2", "--at", "a0=0.5", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert abs(said["outcomes"]["product"] - 2.0) < 1e-6
    assert said["command"].startswith("patchdyn run --system toy --s 2.0 --a0 0.5")


def test_falsify(capsys):
    words = ["--system", "toy", "--budget", "20", "--json"]
    assert main(["falsify", "a*b <= 0.9", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["outcome"] == "falsified"
    assert found["command"].startswith("patchdyn run --system toy")
    assert main(["falsify", "a <= b", "--certify", "--box", "s=1", "--system", "toy"]) == 2
    assert "--certify is not allowed with --system toy" in capsys.readouterr().err


def test_derive(capsys):
    assert main(["derive"]) == 0
    assert "toy-gradient" in capsys.readouterr().out
    assert main(["derive", "toy-gradient"]) == 0
    assert "d(a^2 - b^2)/dt" in capsys.readouterr().out


def test_claim_and_report(tmp_path, capsys):
    assert main(["claims"]) == 0
    assert "toy-balance" in capsys.readouterr().out
    folder = tmp_path / "report"
    words = ["reproduce", "--only", "toy-balance", "--workers", "1", "--out", str(folder)]
    assert main(words) == 0
    (entry,) = json.loads((folder / "report.json").read_text())
    assert (entry["claim"], entry["verdict"]) == ("toy-balance", "holds")
    (number,) = entry["measured"]
    assert (number["name"], number["at"]) == ("balance_change", {"s": 1.5})
    assert number["value"] < 1e-6
    assert (
        "A toy" in (folder / "report.html").read_text()
        or "Nobody" in (folder / "report.html").read_text()
    )
    assert (folder / "figures" / "toy-plane.png").is_file()
