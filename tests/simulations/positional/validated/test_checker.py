"""The checker takes what is proved, and nothing else: each wrong tube is rejected."""

import ast
import copy
import inspect
import json

import pytest
from flint import arb

from dynamics import Problem
from simulations.cli import main
from simulations.positional.validated import checker
from simulations.validated import Rejected, check, prove, write_certificate


def written(folder, problem, **options):
    path = folder / "proof.json"
    proof = prove(problem, **options)
    assert proof.proved
    write_certificate(path, proof)
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A complete enumeration: 21 multisets."""
    return written(tmp_path_factory.mktemp("flow"), Problem(D=6, C=2, q=2 / 6), horizon=0.3)


@pytest.fixture(scope="module")
def truncated(tmp_path_factory):
    """At most some of 8 features, as few as the tolerance allows."""
    problem = Problem(D=10, C=2, q=0.01)
    return written(tmp_path_factory.mktemp("cut"), problem, horizon=0.05, tolerance=1e-2)


class TestAccepted:
    def test_flow(self, path):
        record = json.loads(path.read_text())
        for (low, high), name in zip(check(path), ("alpha", "gamma", "rho")):
            inner = record["enclosure"][name]
            assert low <= inner[0] < inner[1] <= high

    def test_truncation(self, truncated):
        record = json.loads(truncated.read_text())
        assert any(piece["K"] < 8 for piece in record["pieces"])
        assert check(truncated)

    def test_descent(self, tmp_path):
        problem = Problem(D=6, C=2, q=2 / 6)
        path = written(tmp_path, problem, learning_rate=0.01, steps=60)
        assert check(path)

    def test_command(self, path, capsys):
        assert main(["prove", "--check", str(path)]) == 0
        assert capsys.readouterr().out.startswith("checked: the tube is proved")
        assert main(["prove", "--check", str(path), "--D", "8"]) == 2


def _shift(record):
    for piece in record["pieces"]:
        piece["coefficients"][0][0] += 1e-3


def _claim(record):
    """A fifth of the enclosure; the checker's own may be half as wide as the prover's."""
    for ends in record["checked"].values():
        middle, radius = 0.5 * (ends[0] + ends[1]), 0.1 * (ends[1] - ends[0])
        ends[:] = [middle - radius, middle + radius]


def _digit(record):
    record["pieces"][3]["coefficients"][1][0] *= 1.0 + 1e-3


def _half(record):
    """Half the radius: the bars are twice what was proved, and more than was needed."""
    for piece in record["pieces"]:
        for _, bar in piece["parts"]:
            bar[:] = [0.25 * x for x in bar]


def _room(record):
    for piece in record["pieces"]:
        piece["room"] = [0.5 * x for x in piece["room"]]


def _skip(record):
    del record["pieces"][4]


def _jump(record):
    for piece in record["pieces"][5:]:
        piece["coefficients"][0][1] += 1e-6


def _short(record):
    record["pieces"].pop()


def _longer(record):
    record["time"] *= 2.0


def _problem(record):
    record["problem"]["q"] *= 1.01


def _start(record):
    record["start"][0] += 1e-9


def _nan(record):
    record["pieces"][2]["parts"][0][1][0] = float("nan")


def _huge(record):
    record["pieces"][1]["end"] = "1e999999999"


def _many(record):
    record["problem"] |= {"D": 10**9, "C": 5 * 10**8}


def _word(record):
    record["pieces"][0]["parts"][0][0][1] = ["a", 0, 0]


def _missing(record):
    del record["pieces"][2]["room"]


WRONG = (_shift, _claim, _digit, _half, _room, _skip, _jump, _short, _longer, _problem, _start,
         _nan, _huge, _many, _word, _missing)  # fmt: skip


class TestRejected:
    @pytest.mark.parametrize("change", WRONG)
    def test_changed_certificates(self, path, change, tmp_path, capsys):
        record = json.loads(path.read_text())
        change(record)
        changed = tmp_path / "changed.json"
        changed.write_text(json.dumps(record))
        with pytest.raises(Rejected):
            check(changed)
        assert main(["prove", "--check", str(changed)]) == 1
        assert capsys.readouterr().out.startswith("rejected: ")

    def test_a_wrong_sign_in_the_field(self, path, monkeypatch):
        """A model whose gamma' is reversed does not take the tube of the right one."""
        right = checker.Model.velocity

        def wrong(self, theta, K):
            alpha, gamma, rho = right(self, theta, K)
            return [alpha, (-1) * gamma, rho]

        monkeypatch.setattr(checker.Model, "velocity", wrong)
        with pytest.raises(Rejected):
            check(path)

    def test_less_kept_than_was_proved(self, truncated, tmp_path):
        """The tail counts: with one feature less the same bars do not hold."""
        record = json.loads(truncated.read_text())
        for piece in record["pieces"]:
            piece["K"] = max(0, piece["K"] - 1)
        changed = tmp_path / "changed.json"
        changed.write_text(json.dumps(record))
        with pytest.raises(Rejected):
            check(changed)

    def test_without_the_tail_it_would_pass(self, truncated, tmp_path, monkeypatch):
        """So it is the tail that rejects: a checker that leaves it out is fooled."""
        record = copy.deepcopy(json.loads(truncated.read_text()))
        changed = tmp_path / "same.json"
        changed.write_text(json.dumps(record))
        monkeypatch.setattr(checker.Model, "neglected", lambda *_: [arb(0)] * 3)
        assert check(changed)

    def test_a_missing_image(self, path, monkeypatch):
        right = checker.Model._walk

        def without(self, first, left, empty, count):
            found = list(right(self, first, left, empty, count))
            return found[:-1] if first == 0 and left > 1 else found

        monkeypatch.setattr(checker.Model, "_walk", without)
        with pytest.raises(Rejected, match="not complete"):
            check(path)

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"problem": 3}', "null"])
    def test_what_is_no_certificate(self, text, tmp_path):
        path = tmp_path / "other.json"
        path.write_text(text)
        with pytest.raises(Rejected):
            check(path)


class TestIndependence:
    tree = ast.parse(inspect.getsource(checker))

    def test_it_imports_nothing_of_the_house(self):
        modules = {
            name
            for node in ast.walk(self.tree)
            for name in (
                [alias.name for alias in node.names] if isinstance(node, ast.Import)
                else [node.module] if isinstance(node, ast.ImportFrom) else []
            )
        }  # fmt: skip
        assert modules <= {
            "__future__", "collections.abc", "flint", "fractions", "json", "math", "pathlib",
            "typing",
        }  # fmt: skip

    def test_it_can_be_read_in_one_sitting(self):
        """At most 300 lines beside docstrings and blank lines."""
        lines = inspect.getsource(checker).splitlines()
        documented = sum(
            node.body[0].end_lineno - node.body[0].lineno + 1
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
            and ast.get_docstring(node)
        )
        assert sum(bool(line.strip()) for line in lines) - documented <= 300
