"""The checker takes what is proved, and nothing else: each wrong tube is rejected."""

import ast
import copy
import inspect
import itertools
import json
import math

import numpy as np
import pytest
from flint import arb, arb_mat, arb_poly

from dynamics import Problem
from dynamics.positional.validated.system import ReducedSystem
from simulations.cli import main
from simulations.positional.validated import checker
from simulations.validated import Rejected, check, prove, write_certificate
from tests.closeness import close


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
def steps(tmp_path_factory):
    """Descent: single steps, and 16 at once."""
    problem = Problem(D=6, C=2, q=2 / 6)
    path = written(tmp_path_factory.mktemp("steps"), problem, learning_rate=0.01, steps=60)
    pieces = json.loads(path.read_text())["pieces"]
    assert {piece["end"] - piece["start"] for piece in pieces} == {1, 16}
    return path


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

    def test_descent(self, steps):
        assert check(steps)

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


def _no_parts(record):
    """Pieces of which nothing is compared."""
    for piece in record["pieces"]:
        piece["parts"] = []


def _two_bars(record):
    record["pieces"][2]["parts"][0][1].pop()


def _two_rooms(record):
    record["pieces"][2]["room"].pop()


def _negative(record):
    record["start_radius"] = [-x for x in record["start_radius"]]


def _past(record):
    """A last piece that runs the one before it backwards."""
    last = copy.deepcopy(record["pieces"][-1])
    last["start"], last["end"] = last["end"], last["start"]
    last["coefficients"] = [
        [(-1) ** k * x for x in row] for k, row in enumerate(last["coefficients"])
    ]
    last["parts"].reverse()
    record["pieces"].append(last)
    record["time"] = last["end"]
    record["checked"] = {name: [-9.0, 9.0] for name in record["checked"]}


def _ulp(record):
    """A start next to nu's root, further than the radius."""
    record["start"][0] += 3.0 * record["start_radius"][0]
    record["start"][0] = math.nextafter(record["start"][0], 1.0)


def _low(record):
    record["checked"]["gamma"][0] = record["checked"]["gamma"][1]


def _high(record):
    record["checked"]["rho"][1] = record["checked"]["rho"][0]


def _gap(record):
    """Curves that meet, but not in time."""
    for piece in record["pieces"][5:]:
        piece["start"], piece["end"] = piece["start"] + 0.5, piece["end"] + 0.5
    record["time"] = record["pieces"][-1]["end"]


def _true(record):
    record["pieces"][2]["room"][0] = True


def _more(record):
    """More features than there can be."""
    record["pieces"][0]["K"] = 5


WRONG = (_shift, _claim, _digit, _half, _room, _skip, _jump, _short, _longer, _problem, _start,
         _nan, _huge, _many, _word, _missing, _no_parts, _two_bars, _two_rooms, _negative, _past,
         _gap, _true, _more, _ulp, _low, _high)  # fmt: skip


def _started(record):
    """A certificate of the start alone."""
    record |= {"pieces": [], "time": 0.0, "start_radius": [0.0, 0.0, 0.0]}
    record["checked"] = {name: [x, x] for name, x in zip(record["checked"], record["start"])}


NO_PROBLEMS = [{"p": 4}, {"p": 2.5}, {"q": 1.5}, {"q": 0.0}, {"nu": -1.0}, {"tau": 0.0},
               {"kappa": -6.0}, {"C": 6}, {"C": 4}, {"C": 1}, {"D": 10**7}]  # fmt: skip


def _rejected(record, folder, match=""):
    changed = folder / "changed.json"
    changed.write_text(json.dumps(record))
    with pytest.raises(Rejected, match=match):
        check(changed)


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

    @pytest.mark.parametrize("rate", [-0.01, 0.0, 0.0101, True])
    def test_other_learning_rates(self, steps, rate, tmp_path):
        record = json.loads(steps.read_text())
        record["time"] *= rate / record["learning_rate"]
        record["learning_rate"] = rate
        changed = tmp_path / "changed.json"
        changed.write_text(json.dumps(record))
        with pytest.raises(Rejected):
            check(changed)

    def test_the_start_alone(self, path, tmp_path):
        """With no piece to check, what is no problem, no rate or no radius is rejected as such."""
        record = json.loads(path.read_text())
        _started(record)
        start = tmp_path / "start.json"
        start.write_text(json.dumps(record))
        assert check(start)
        for wrong in NO_PROBLEMS:
            _rejected(record | {"problem": record["problem"] | wrong}, tmp_path, "problem|number")
        for rate in (-0.01, 0.0):
            _rejected(record | {"learning_rate": rate}, tmp_path, "rate")
        _rejected(record | {"start_radius": [0.0, -1e-30, 0.0]}, tmp_path, "radius")
        _rejected(record | {"start_radius": [0.0, False, 0.0]}, tmp_path, "number")

    @pytest.mark.parametrize("grows", [False, True])
    def test_a_bar_that_holds_at_one_end_only(self, path, grows, tmp_path, monkeypatch):
        right, seen = checker.compared, []

        def watched(M, start, errors, bar, time, eta):
            after = right(M, start, errors, bar, time, eta)
            seen.append([(float(x), float(y)) for x, y in zip(start, after or [])])
            return after

        monkeypatch.setattr(checker, "compared", watched)
        check(path)
        record = json.loads(path.read_text())
        parts = [part for piece in record["pieces"] for part in piece["parts"]]
        k, i = next(
            (k, i) for k, ends in enumerate(seen) for i, (begin, after) in enumerate(ends)
            if (after > 1.01 * begin if grows else begin > 1.01 * after)
        )  # fmt: skip
        parts[k][1][i] = math.sqrt(math.prod(seen[k][i]))
        _rejected(record, tmp_path, "too thin")

    def test_half_steps(self, steps, tmp_path):
        """A part of a piece is no number of steps."""
        record = json.loads(steps.read_text())
        longest = max(record["pieces"], key=lambda piece: len(piece["parts"]))
        del longest["parts"][5:]
        changed = tmp_path / "changed.json"
        changed.write_text(json.dumps(record))
        with pytest.raises(Rejected, match="no whole steps"):
            check(changed)

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
        right = checker.Model.multisets

        monkeypatch.setattr(checker.Model, "multisets", lambda *args: right(*args)[:-1])
        with pytest.raises(Rejected, match="not complete"):
            check(path)

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"problem": 3}', "null"])
    def test_what_is_no_certificate(self, text, tmp_path):
        path = tmp_path / "other.json"
        path.write_text(text)
        with pytest.raises(Rejected):
            check(path)


class TestTheorem:
    def test_the_bounds_of_a_part(self):
        """By hand: e^{Mh} v + b (e^{Mh} - 1)/M, and (1 + eta M)^n v + b ((1 + eta M)^n - 1)/M.

        The first coordinate is driven by what the others reach, not by their bars.
        """
        M = arb_mat(3, 3, [-2, 0.5, 0.25, 0, 1, 0, 0, 0, 0])
        start, errors, bar = [arb(1), arb(2), arb(3)], [arb(4), arb(5), arb(6)], [100, 200, 40]
        for eta, grown in ((None, (math.exp(-6), math.exp(3))), (arb("0.25"), (0.5**12, 1.25**12))):
            after = checker.compared(M, start, errors, bar, arb(3), eta)
            second, third = 2 * grown[1] + 5 * (grown[1] - 1), 3 + 3 * 6.0
            close(float(after[1]), second, rel=1e-14)
            close(float(after[2]), third, rel=1e-14)
            b = 4 + 0.5 * second + 0.25 * third
            close(float(after[0]), grown[0] + b * (1 - grown[0]) / 2, rel=1e-14)

    @pytest.mark.parametrize("bar", [[100, 130, 40], [100, 200, 20], [1, 200, 40], [100, 200, 3]])
    def test_a_bar_that_is_reached_proves_nothing(self, bar):
        """At the end: 135.5 and 21; at the beginning: 1 and 3."""
        M = arb_mat(3, 3, [-2, 0.5, 0.25, 0, 1, 0, 0, 0, 0])
        start, errors = [arb(1), arb(2), arb(3)], [arb(4), arb(5), arb(6)]
        assert checker.compared(M, start, errors, [100, 200, 40], arb(3), None) is not None
        assert checker.compared(M, start, errors, bar, arb(3), None) is None

    def test_the_jacobian_in_its_room(self, path):
        """Around a curve that stands still, at the corners of the room."""
        model = checker.Model(json.loads(path.read_text())["problem"])
        at, room = np.array([0.3, 0.2, -0.1]), np.array([0.01, 0.02, 0.03])
        curve, field = [arb_poly([x]) for x in at], ReducedSystem(Problem(D=6, C=2, q=2 / 6))
        rooms = [checker.number(x) for x in room.tolist()]
        entries = model.along(curve, rooms, 4, model.images(4))
        for signs in itertools.product((-1.0, 1.0), repeat=3):
            J = field.truncated(4).jacobian_at(at + 0.999 * room * signs)
            for entry, value in zip(entries, J.ravel()):
                assert abs(entry(arb(0)) - value).lower() <= 1e-12 * abs(J).max()

    def test_all_over_a_part(self, path, monkeypatch):
        """Jacobian (at two corners of the room) and defect, in floats, at the ends of each part."""
        seen, right = [], checker.compared
        monkeypatch.setattr(
            checker, "compared", lambda M, *rest: seen.append((M, rest[1])) or right(M, *rest)
        )
        check(path)
        record, problem = json.loads(path.read_text()), Problem(D=6, C=2, q=2 / 6)
        bounds, system, larger = iter(seen), ReducedSystem(problem), 0
        for piece in record["pieces"]:
            field, room = system.truncated(piece["K"]), np.array(piece["room"])
            curve = [np.polynomial.Polynomial(x) for x in zip(*piece["coefficients"])]
            for k, (basis, _) in enumerate(piece["parts"]):
                M, errors = next(bounds)
                for u, sign in ((-1.0, 1.0), (1.0, -1.0)):
                    place = (2 * k + 1 + u) / len(piece["parts"]) - 1
                    theta = np.array([P(place) for P in curve])
                    J = field.jacobian_at(theta + 0.99 * sign * room)
                    turned = np.linalg.solve(basis, J @ basis)
                    for i, j in np.ndindex(3, 3):
                        assert abs(M[i, j] - turned[i, j]).lower() <= 1e-12 * abs(turned).max()
                    velocity = field.velocity_at(theta)
                    rate = [2.0 / (piece["end"] - piece["start"]) * P.deriv()(place) for P in curve]
                    defect = np.abs(np.linalg.solve(basis, velocity - rate))
                    rounding = 1e-14 * np.linalg.norm(np.linalg.inv(basis)) * max(np.abs(velocity))
                    for found, bound in zip(defect, errors):
                        assert found <= bound + rounding
                        larger += found > 10.0 * rounding
        assert larger > 100  # defects beyond the rounding of this test


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
            "__future__", "flint", "functools", "json", "math", "pathlib",
            "typing",
        }  # fmt: skip

    def test_it_can_be_read_in_one_sitting(self):
        """At most 300 lines, docstrings and blank lines included."""
        assert len(inspect.getsource(checker).splitlines()) <= 300
