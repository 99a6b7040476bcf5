"""Proofs resume after an interruption or a kill, with the result of an uninterrupted proof."""

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
from simulations.positional.validated.checkpoint import ProofCheckpoint
from simulations.validated import prove

#: Eight other patches; the truncation depends on the tolerance.
PROBLEM, OPTIONS = Problem(D=10, C=2, q=0.05), {"horizon": 1.0, "tolerance": 1e-3}


@pytest.fixture(scope="module")
def whole():
    """The certificate of an uninterrupted proof."""
    proof = prove(PROBLEM, **OPTIONS)
    assert len(proof.tube.pieces) > 8
    assert len({field.K for field in proof.tube.fields}) > 1
    return certificate(proof)


def arguments(out):
    """Return the command line of the same proof."""
    options = "prove --D 10 --C 2 --q 0.05 --horizon 1.0 --tolerance 1e-3 --out"
    return [*options.split(), str(out)]


class Stop(Exception):
    """Raised to interrupt a proof."""


def interrupted(path, pieces):
    """Prove until the given number of pieces is finished."""
    left = iter(range(pieces - 1))

    def stop(*_):
        if next(left, None) is None:
            raise Stop

    with pytest.raises(Stop):
        prove(PROBLEM, checkpoint=path, progress=stop, **OPTIONS)


def resumed(path):
    """Prove the rest; return the certificate and the number of pieces proved."""
    calls = []
    proof = prove(PROBLEM, checkpoint=path, progress=lambda *args: calls.append(args), **OPTIONS)
    return certificate(proof), len(calls)


@pytest.mark.parametrize("pieces", [1, *(pytest.param(x, marks=pytest.mark.slow) for x in (3, 7))])
def test_resumes_after_an_interruption(pieces, whole, tmp_path):
    path = tmp_path / "proof.unfinished"
    interrupted(path, pieces)
    result, proved = resumed(path)
    assert result == whole
    assert proved == len(whole["pieces"]) - pieces
    assert resumed(path) == (whole, 0)


@pytest.mark.slow
@pytest.mark.traced
@pytest.mark.parametrize("seed", range(4))
def test_resumes_after_a_kill_during_writing(seed, whole, tmp_path):
    """The file ends at any byte after its first line."""
    path = tmp_path / "proof.unfinished"
    interrupted(path, 5)
    content = path.read_bytes()
    first = content.index(b"\n") + 1
    path.write_bytes(content[: random.Random(seed).randrange(first, len(content))])
    result, proved = resumed(path)
    assert result == whole
    assert proved > len(whole["pieces"]) - 5


@pytest.mark.slow
def test_resumes_after_a_kill_at_a_random_time(whole, tmp_path):
    path = tmp_path / "proof.json.unfinished"
    command = [sys.executable, "-m", "simulations.cli", *arguments(tmp_path / "proof.json")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        while not (path.exists() and path.read_bytes().count(b"\n") > 2):
            assert child.poll() is None, child.stderr.read()
            time.sleep(0.005)
        time.sleep(random.uniform(0.0, 0.3))
        child.kill()
    result, proved = resumed(path)
    assert result == whole
    assert proved < len(whole["pieces"]) - 1


@pytest.mark.slow
def test_an_altered_piece_is_proved_again(whole, tmp_path):
    """After a changed digit in the third piece, it and all later pieces are discarded."""
    path = tmp_path / "proof.unfinished"
    interrupted(path, 6)
    lines = path.read_bytes().splitlines(keepends=True)
    index = lines[3].index(b'"box_radius": [') + 16
    digit = lines[3][index : index + 1]
    lines[3] = lines[3][:index] + (b"1" if digit != b"1" else b"2") + lines[3][index + 1 :]
    path.write_bytes(b"".join(lines))
    result, proved = resumed(path)
    assert result == whole
    assert proved == len(whole["pieces"]) - 2


def test_files_of_another_proof_or_program_are_rejected_unchanged(whole, tmp_path):
    path = tmp_path / "proof.unfinished"
    interrupted(path, 2)
    before = path.read_bytes()
    with pytest.raises(FileError, match="contains no pieces of this proof"):
        prove(PROBLEM.replace(q=0.06), checkpoint=path, **OPTIONS)
    assert path.read_bytes() == before
    path.write_text("a diary")
    with pytest.raises(FileError, match="contains no pieces of this proof"):
        prove(PROBLEM, checkpoint=path, **OPTIONS)
    assert path.read_text() == "a diary"


@pytest.mark.slow
@pytest.mark.traced
def test_command_resumes_after_ctrl_c(whole, tmp_path, monkeypatch, capsys):
    out = tmp_path / "proof.json"
    command = arguments(out)
    original, done = ProofCheckpoint.add, []

    def add(self, tolerance, tube):
        original(self, tolerance, tube)
        done.append(tube.end)
        if len(done) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProofCheckpoint, "add", add)
    assert main(command) == 130
    assert "interrupted" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["proof.json.unfinished"]
    assert main(command) == 0
    assert len(done) == len(whole["pieces"])
    assert json.loads(out.read_text()) == json.loads(json.dumps(whole))
    assert [file.name for file in tmp_path.iterdir()] == ["proof.json"]
