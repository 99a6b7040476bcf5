"""A proof that was interrupted or killed at any moment goes on, and ends as if it had not been."""

import json
import random
import subprocess
import sys
import time

import pytest

from dynamics import Problem
from dynamics.core.files import FileError
from simulations.cli import main
from simulations.positional.validated.certificate import certificate
from simulations.positional.validated.unfinished import Unfinished
from simulations.validated import prove

#: Eight other patches, of which as few features are kept as the tolerance allows.
PROBLEM, OPTIONS = Problem(D=10, C=2, q=0.05), {"horizon": 1.0, "tolerance": 1e-3}


@pytest.fixture(scope="module")
def whole():
    """The certificate of an uninterrupted proof."""
    proof = prove(PROBLEM, **OPTIONS)
    assert len(proof.tube.pieces) > 8
    assert len({field.K for field in proof.tube.fields}) > 1
    return certificate(proof)


def words(out):
    """The command that proves the same."""
    return [
        "prove",
        "--D",
        "10",
        "--C",
        "2",
        "--q",
        "0.05",
        "--horizon",
        "1.0",
        "--tolerance",
        "1e-3",
        "--out",
        str(out),
    ]


class Stop(Exception):
    """What ends a proof in these tests."""


def interrupted(path, pieces):
    """Prove until so many pieces are finished."""
    left = iter(range(pieces - 1))

    def stop(*_):
        if next(left, None) is None:
            raise Stop

    with pytest.raises(Stop):
        prove(PROBLEM, unfinished=path, progress=stop, **OPTIONS)


def resumed(path):
    """Prove the rest; return the certificate, and how many pieces were proved."""
    seen = []
    proof = prove(PROBLEM, unfinished=path, progress=lambda *told: seen.append(told), **OPTIONS)
    return certificate(proof), len(seen)


@pytest.mark.parametrize("pieces", [1, 3, 7])
def test_interrupted(pieces, whole, tmp_path):
    path = tmp_path / "proof.unfinished"
    interrupted(path, pieces)
    found, proved = resumed(path)
    assert found == whole
    assert proved == len(whole["pieces"]) - pieces
    assert resumed(path) == (whole, 0)


@pytest.mark.parametrize("seed", range(4))
def test_killed_while_it_writes(seed, whole, tmp_path):
    """The file ends anywhere behind its first line."""
    path = tmp_path / "proof.unfinished"
    interrupted(path, 5)
    content = path.read_bytes()
    first = content.index(b"\n") + 1
    path.write_bytes(content[: random.Random(seed).randrange(first, len(content))])
    found, proved = resumed(path)
    assert found == whole
    assert proved > len(whole["pieces"]) - 5


def test_killed_at_a_random_moment(whole, tmp_path):
    path = tmp_path / "proof.json.unfinished"
    command = [sys.executable, "-m", "simulations.cli", *words(tmp_path / "proof.json")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        while not (path.exists() and path.read_bytes().count(b"\n") > 2):
            assert child.poll() is None, child.stderr.read()
            time.sleep(0.005)
        time.sleep(random.uniform(0.0, 0.3))
        child.kill()
    found, proved = resumed(path)
    assert found == whole
    assert proved < len(whole["pieces"]) - 1


def test_a_changed_piece_is_proved_anew(whole, tmp_path):
    """A digit of the third piece: neither it nor what comes after is believed."""
    path = tmp_path / "proof.unfinished"
    interrupted(path, 6)
    lines = path.read_bytes().splitlines(keepends=True)
    at = lines[3].index(b'"bar"') if b'"bar"' in lines[3] else lines[3].index(b'"room": [') + 10
    digit = lines[3][at : at + 1]
    lines[3] = lines[3][:at] + (b"1" if digit != b"1" else b"2") + lines[3][at + 1 :]
    path.write_bytes(b"".join(lines))
    found, proved = resumed(path)
    assert found == whole
    assert proved == len(whole["pieces"]) - 2


def test_another_proof_is_not_touched(whole, tmp_path):
    path = tmp_path / "proof.unfinished"
    interrupted(path, 2)
    before = path.read_bytes()
    with pytest.raises(FileError, match="holds no pieces of this proof"):
        prove(PROBLEM.replace(q=0.06), unfinished=path, **OPTIONS)
    assert path.read_bytes() == before
    path.write_text("a diary")
    with pytest.raises(FileError, match="holds no pieces of this proof"):
        prove(PROBLEM, unfinished=path, **OPTIONS)
    assert path.read_text() == "a diary"


def test_command(whole, tmp_path, monkeypatch, capsys):
    out = tmp_path / "proof.json"
    command = words(out)
    right, done = Unfinished.add, []

    def add(self, tolerance, tube):
        right(self, tolerance, tube)
        done.append(tube.end)
        if len(done) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(Unfinished, "add", add)
    assert main(command) == 130
    assert "interrupted" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["proof.json.unfinished"]
    assert main(command) == 0
    assert len(done) == len(whole["pieces"])
    assert json.loads(out.read_text()) == json.loads(json.dumps(whole))
    assert [file.name for file in tmp_path.iterdir()] == ["proof.json"]
