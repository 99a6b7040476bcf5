"""The checker accepts proved tubes and rejects every wrong certificate."""

import ast
import copy
import inspect
import itertools
import json
import math
import re
import sys

import numpy as np
import pytest
from flint import arb, arb_mat, arb_poly, arb_series, ctx, fmpq

from dynamics import Problem
from dynamics.positional.validated.outcomes import floor
from dynamics.positional.validated.system import ReducedSystem
from simulations import outward, validated
from simulations.cli import main
from simulations.positional.validated import (
    checker,
    checker_balls,
    checker_images,
    checker_lists,
    checker_model,
    checker_multisets,
    checker_series,
    checker_text,
)
from simulations.positional.validated.checker_model import number
from simulations.validated import Rejected, TooLarge, check, prove, write_certificate
from tests.closeness import close


def written(folder, problem, **options):
    """Write the certificate of a proof; return its path and the proof."""
    path = folder / "proof.json"
    proof = prove(problem, **options)
    assert proof.proved
    write_certificate(path, proof)
    return path, proof


@pytest.fixture(scope="module")
def flow(tmp_path_factory):
    """Flow with a complete enumeration: 21 multisets."""
    return written(tmp_path_factory.mktemp("flow"), Problem(D=6, C=2, q=2 / 6), horizon=0.3)


@pytest.fixture(scope="module")
def checked(flow):
    return check(flow[0])


@pytest.fixture
def path(flow):
    return flow[0]


@pytest.fixture(scope="module")
def descent(tmp_path_factory):
    """Descent with pieces of one and of 16 steps."""
    problem = Problem(D=6, C=2, q=2 / 6)
    both = written(tmp_path_factory.mktemp("steps"), problem, learning_rate=0.01, steps=60)
    ends = [0, *(piece["end"] for piece in read(both[0])["pieces"])]
    assert {*np.diff(ends)} == {1, 16}
    return both


@pytest.fixture
def steps(descent):
    return descent[0]


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    """Flow with a truncated number of features, at most 8."""
    problem = Problem(D=10, C=2, q=0.01)
    return written(tmp_path_factory.mktemp("cut"), problem, horizon=0.05, tolerance=1e-2)


@pytest.fixture
def truncated(cut):
    return cut[0]


def read(path):
    return json.loads(path.read_text())


class TestAccepted:
    @pytest.mark.parametrize(
        "name", ["flow", pytest.param("descent", marks=pytest.mark.slow), "cut"]
    )
    def test_derived_statements_agree_with_the_prover(self, name, request):
        """Both intervals overlap and have similar widths."""
        path, proof = request.getfixturevalue(name)
        checked = request.getfixturevalue("checked") if name == "flow" else check(path)
        assert checked.time == proof.time
        pairs = [(checked.loss, proof.loss), (checked.test_error, proof.test_error)]
        pairs += zip(checked.enclosure, proof.enclosure)
        for (low, high), (lowest, highest) in pairs:
            assert max(low, lowest) <= min(high, highest)
            assert high - low <= 3.0 * (highest - lowest) + 1e-12 * highest
        assert checked.association == proof.association
        assert checked.forever == proof.forever
        close(checked.floor, floor(proof.problem), rel=1e-12)
        assert checked.gap_positive_from == proof.gap_positive_from == 0.0

    @pytest.mark.slow
    def test_negative_gap(self, tmp_path):
        path, proof = written(tmp_path, Problem(D=6, C=2, q=1.0, nu=1.0), horizon=0.5)
        checked = check(path)
        assert math.isinf(checked.gap_positive_from)
        ((begin, end),) = checked.gap_negative
        ((first, last),) = proof.gap_negative
        close(begin, first, rel=0.5)
        close(end, last, rel=1e-12)
        assert not checked.association
        assert checked.association_until == 0.0

    def test_truncated_tube(self, truncated):
        assert any(piece["K"] < 8 for piece in read(truncated)["pieces"])

    def test_command_prints_the_statements(self, path, checked, capsys, monkeypatch):
        assert main(["prove", "--check", str(path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("checked: the tube and its consequences are proved")
        fields = {line.split("  ")[1].strip(): line for line in lines[1:]}
        assert "D = 6, C = 2" in fields["problem"]
        assert fields["solver"].endswith("flow")
        assert fields["start"].endswith("Parametrization 3.1")
        assert "0.3 (" in fields["to time"]
        assert "proved from time 0 on" in fields["gamma > rho"]
        monkeypatch.setattr(validated, "check", lambda *_: checked)
        assert main(["prove", "--check", str(path), "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert printed["checked"] is True
        assert printed["test_error"] == list(checked.test_error)
        assert main(["prove", "--check", str(path), "--D", "8"]) == 2

    def test_certificate_contains_the_tube_only(self, path):
        """There are no statements that could be altered without being checked."""
        record = read(path)
        assert set(record) == {"format", "problem", "learning_rate", "start", "horizon", "pieces"}
        assert set(record["pieces"][0]) == {"end", "K", "coefficients", "parts"}


def _shift(record):
    for piece in record["pieces"]:
        piece["coefficients"][0][0] += 1e-3


def _digit(record):
    record["pieces"][3]["coefficients"][1][0] *= 1.0 + 1e-3


def _half(record):
    """A quarter of the bars: they are twice the proved bounds, and larger than necessary."""
    for piece in record["pieces"]:
        for _, bar in piece["parts"]:
            bar[:] = [0.25 * x for x in bar]


def _wide(record):
    """Bars so wide that the Jacobian on them is useless."""
    for piece in record["pieces"]:
        for _, bar in piece["parts"]:
            bar[:] = [1e6 * x for x in bar]


def _skip(record):
    del record["pieces"][4]


def _jump(record):
    for piece in record["pieces"][5:]:
        piece["coefficients"][0][1] += 1e-4


def _none(record):
    record["pieces"] = []


def _none_and_no_time(record):
    record |= {"pieces": [], "horizon": 0.0, "start": [1.0, 1.0, -1.0]}


def _none_of_long(record):
    record |= {"pieces": [], "horizon": 1e5}


def _short(record):
    record["pieces"].pop()


def _last_alone(record):
    del record["pieces"][:-1]


def _last_alone_from_zero(record):
    begin = record["pieces"][-2]["end"]
    del record["pieces"][:-1]
    record["pieces"][0]["end"] -= begin
    record["horizon"] = record["pieces"][0]["end"]


def _longer(record):
    record["horizon"] *= 2.0


def _problem(record):
    record["problem"]["q"] *= 1.01


def _start(record):
    record["start"] = [0.1 + 1e-9, 0.0, 0.0]


def _long_start(record):
    record["start"] = [0.1, 0.0, 0.0, 0.0]


def _nan(record):
    record["pieces"][2]["parts"][0][1][0] = float("nan")


def _huge(record):
    record["pieces"][1]["end"] = "1e999999999"


def _word(record):
    record["pieces"][0]["parts"][0][0][1] = ["a", 0, 0]


def _missing(record):
    del record["pieces"][2]["K"]


def _no_parts(record):
    """Pieces without parts."""
    for piece in record["pieces"]:
        piece["parts"] = []


def _two_bars(record):
    record["pieces"][2]["parts"][0][1].pop()


def _negative(record):
    record["pieces"][2]["parts"][0][1][0] *= -1.0


def _past(record):
    """A last piece that reverses the one before it."""
    last = copy.deepcopy(record["pieces"][-1])
    last["end"] = record["pieces"][-2]["end"]
    last["coefficients"] = [
        [(-1) ** k * x for x in row] for k, row in enumerate(last["coefficients"])
    ]
    last["parts"].reverse()
    record["pieces"].append(last)
    record["horizon"] = last["end"]


def _gap(record):
    """Curves that are continuous, with a gap in time."""
    for piece in record["pieces"][5:]:
        piece["end"] += 0.5
    record["horizon"] += 0.5


def _true(record):
    record["pieces"][2]["parts"][0][1][0] = True


def _more(record):
    """More features than possible."""
    record["pieces"][0]["K"] = 5


def _steps(record):
    """A flow declared as descent."""
    record["learning_rate"] = 0.01


def _format(record):
    record["format"] = "patchdyn tube 1"


def _statement(record):
    record["forever"] = True


def _statement_of_a_piece(record):
    record["pieces"][0]["proved"] = True


def _constant(record):
    record["problem"]["sigma"] = 1.0


WRONG = (
    _shift,
    _digit,
    _half,
    _wide,
    _skip,
    _jump,
    _none,
    _none_and_no_time,
    _none_of_long,
    _short,
    _last_alone,
    _last_alone_from_zero,
    _longer,
    _problem,
    _start,
    _long_start,
    _nan,
    _huge,
    _word,
    _missing,
    _no_parts,
    _two_bars,
    _negative,
    _past,
    _gap,
    _true,
    _more,
    _steps,
    _format,
    _statement,
    _statement_of_a_piece,
    _constant,
)

NO_PROBLEMS = [
    {"p": 4},
    {"p": 2.5},
    {"q": 1.5},
    {"q": 0.0},
    {"nu": -1.0},
    {"tau": 0.0},
    {"kappa": -6.0},
    {"C": 6},
    {"C": 4},
    {"C": 1},
]


class TestRejected:
    @pytest.mark.parametrize("change", WRONG)
    def test_changed_certificates(self, path, change, tmp_path, capsys):
        record = read(path)
        change(record)
        changed = tmp_path / "changed.json"
        changed.write_text(json.dumps(record))
        assert main(["prove", "--check", str(changed)]) == 1
        assert capsys.readouterr().out.startswith("rejected: ")

    @pytest.mark.parametrize("name", ["q", "nu", "tau", "kappa", "beta"])
    @pytest.mark.parametrize("factor", [0.99, 1.01])
    def test_another_problem(self, path, name, factor):
        record = read(path)
        record["problem"][name] *= factor
        with pytest.raises(Rejected):
            check(record)

    @pytest.mark.parametrize("rate", [-0.01, 0.0, 0.0101, True, None])
    def test_other_learning_rates(self, steps, rate):
        with pytest.raises(Rejected):
            check(read(steps) | {"learning_rate": rate})

    @pytest.mark.parametrize("wrong", NO_PROBLEMS, ids=str)
    def test_invalid_problems(self, path, wrong):
        record = read(path)
        with pytest.raises(Rejected, match=r"problem|number"):
            check(record | {"problem": record["problem"] | wrong})

    @pytest.mark.parametrize("grows", [False, True])
    def test_bar_that_is_valid_at_one_end_only(self, path, grows, monkeypatch):
        original, ends = checker.compared, []

        def recorded(M, start, errors, bar, time, eta):
            result = original(M, start, errors, bar, time, eta)
            after = result[1] if result else []
            ends.append([(float(x), float(y)) for x, y in zip(start, after)])
            return result

        monkeypatch.setattr(checker, "compared", recorded)
        check(path)
        record = read(path)
        parts = [part for piece in record["pieces"] for part in piece["parts"]]
        k, i = next(
            (k, i)
            for k, pairs in enumerate(ends)
            for i, (begin, after) in enumerate(pairs)
            if (after > 1.01 * begin if grows else begin > 1.01 * after)
        )
        parts[k][1][i] = math.sqrt(math.prod(ends[k][i]))
        with pytest.raises(Rejected, match="too thin"):
            check(record)

    def test_half_steps(self, steps):
        """A part of a piece is not a whole number of steps."""
        record = read(steps)
        longest = max(record["pieces"], key=lambda piece: len(piece["parts"]))
        del longest["parts"][5:]
        with pytest.raises(Rejected, match="no whole steps"):
            check(record)

    def test_wrong_sign_in_the_field(self, path, monkeypatch):
        """A model with the opposite sign of gamma' rejects the tube of the correct model."""
        original = checker.Model.velocity

        def wrong(self, theta, K):
            alpha, gamma, rho = original(self, theta, K)
            return [alpha, -gamma, rho]

        monkeypatch.setattr(checker.Model, "velocity", wrong)
        with pytest.raises(Rejected):
            check(path)

    def test_stronger_truncation(self, truncated):
        """With two features less the tail is larger, and the same bars are too small."""
        record = read(truncated)
        for piece in record["pieces"]:
            assert piece["K"] >= 2
            piece["K"] -= 2
        with pytest.raises(Rejected, match="too thin"):
            check(record)

    def test_bars_that_only_the_tail_violates(self, truncated, monkeypatch):
        """A fifth of each bar is rejected, but accepted by a checker that neglects the tail."""
        record = read(truncated)
        for piece in record["pieces"]:
            for _, bar in piece["parts"]:
                bar[:] = [0.2 * x for x in bar]
        with pytest.raises(Rejected, match="too thin"):
            check(record)
        monkeypatch.setattr(checker.Model, "neglected", lambda *_: [arb(0)] * 4)
        assert check(record)

    def test_missing_image(self, path, monkeypatch):
        original = checker_images.Images.multisets
        monkeypatch.setattr(checker_images.Images, "multisets", lambda *args: original(*args)[:-1])
        with pytest.raises(Rejected, match="not complete"):
            check(path)

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"problem": 3}', "null"])
    def test_files_that_are_no_certificates(self, text, tmp_path):
        path = tmp_path / "other.json"
        path.write_text(text)
        with pytest.raises(Rejected):
            check(path)


class TestTooLarge:
    @pytest.mark.parametrize(
        ("problem", "K", "name"),
        [
            ({"D": 600, "C": 20}, 60, "multisets"),
            ({"D": 10**7, "C": 10}, 2, "D - C"),
            ({"D": 10**9, "C": 5 * 10**8}, 2, "D - C"),
            ({"p": 101}, 2, "p"),
            ({"D": 400, "C": 4}, 61, "K"),
        ],
    )
    def test_is_raised_at_once(self, path, problem, K, name, monkeypatch, tmp_path, capsys):
        def computed(*_):
            raise AssertionError("computed")

        monkeypatch.setattr(checker_images.Images, "multisets", computed)
        monkeypatch.setattr(checker.Model, "neglected", computed)
        record = read(path)
        record["problem"] |= problem
        for piece in record["pieces"]:
            piece["K"] = K
        with pytest.raises(TooLarge, match=re.escape(f"{name} = ")):
            check(record)
        large = tmp_path / "large.json"
        large.write_text(json.dumps(record))
        assert main(["prove", "--check", str(large)]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1

    def test_limits_of_pieces_and_bytes(self, path, monkeypatch):
        monkeypatch.setattr(checker, "MOST_PIECES", len(read(path)["pieces"]) - 1)
        with pytest.raises(TooLarge, match="pieces"):
            check(path)
        monkeypatch.setattr(checker, "MOST_BYTES", path.stat().st_size - 1)
        with pytest.raises(TooLarge, match="bytes"):
            check(path)

    def test_number_of_multisets_without_enumeration(self, path):
        model = checker.Model(read(path)["problem"] | {"D": 12, "C": 3}, checker_images)
        model.enumerate(9)
        assert model.sizes(9) == model.images.upto


class TestNeglected:
    """The bound of the truncated images against their exact sum."""

    @pytest.mark.parametrize("K", [0, 1, 3, 7])
    @pytest.mark.parametrize("q", [0.01, 0.9])
    @pytest.mark.parametrize("gamma", [0.0, 1.5, 4.0])
    def test_at_the_corners_of_a_box(self, truncated, K, q, gamma, monkeypatch):
        model = checker.Model(read(truncated)["problem"] | {"q": q}, checker_images)
        centre, radii = [0.2, gamma, -0.5], [0.1, 1.5, 1.5]
        model.enumerate(8)
        bound = model.neglected(
            [arb_poly([x]) for x in centre], [number(r, fmpq) for r in radii], K
        )
        monkeypatch.setattr(ctx, "cap", 1)
        for signs in itertools.product((-1.0, 1.0), repeat=3):
            theta = [arb_series([x + s * r]) for x, s, r in zip(centre, signs, radii)]
            exact, truncated_sum = model.velocity(theta, 8), model.velocity(theta, K)
            for x, y, error in zip(exact, truncated_sum, bound):
                assert abs(x[0] - y[0]) < error


class TestTheorem:
    def test_bounds_of_a_part(self):
        """Closed forms: e^{Mh} v + b (e^{Mh} - 1)/M, and (1 + eta M)^n v + b ((1 + eta M)^n - 1)/M.

        The first coordinate depends on the bounds of the others, not on their bars.
        """
        M = arb_mat(3, 3, [-2, 0.5, 0.25, 0, 1, 0, 0, 0, 0])
        start, errors, bar = [arb(1), arb(2), arb(3)], [arb(4), arb(5), arb(6)], [100, 200, 40]
        for eta, grown in ((None, (math.exp(-6), math.exp(3))), (arb("0.25"), (0.5**12, 1.25**12))):
            during, after = checker.compared(M, start, errors, bar, arb(3), eta)
            second, third = 2 * grown[1] + 5 * (grown[1] - 1), 3 + 3 * 6.0
            close(float(after[1]), second, rel=1e-14)
            close(float(after[2]), third, rel=1e-14)
            b = 4 + 0.5 * second + 0.25 * third
            close(float(after[0]), grown[0] + b * (1 - grown[0]) / 2, rel=1e-14)
            assert all(x >= max(y, z) for x, y, z in zip(during, start, after))

    @pytest.mark.parametrize("bar", [[100, 130, 40], [100, 200, 20], [1, 200, 40], [100, 200, 3]])
    def test_bar_that_is_reached_is_rejected(self, bar):
        """The bounds are 135.5 and 21 at the end, 1 and 3 at the start."""
        M = arb_mat(3, 3, [-2, 0.5, 0.25, 0, 1, 0, 0, 0, 0])
        start, errors = [arb(1), arb(2), arb(3)], [arb(4), arb(5), arb(6)]
        assert checker.compared(M, start, errors, [100, 200, 40], arb(3), None) is not None
        assert checker.compared(M, start, errors, bar, arb(3), None) is None

    @pytest.mark.parametrize("degree", [3, 9, 12, checker.MOST_TERMS - 1])
    @pytest.mark.parametrize("cap", [1, 10])
    def test_velocity_along_polynomials_of_any_degree(self, path, cap, degree, monkeypatch):
        """f(x + y u^n) has the coefficients f(x) and J y, whatever FLINT's own order of series."""
        monkeypatch.setattr(ctx, "cap", cap)
        x, y, field = [0.3, 0.2, -0.1], [1e-3, 2e-3, -1e-3], ReducedSystem(Problem(6, 2, q=2 / 6))
        model = checker.Model(read(path)["problem"], checker_images)
        model.enumerate(4)
        curve = [arb_poly([a] + [0] * (degree - 1) + [b]) for a, b in zip(x, y)]
        J = field.truncated(4).jacobian_at(np.array(x))
        for velocity, slope in zip(model.along(curve, [], degree + 1, 4), J @ y):
            close(float(velocity[degree].mid()), slope, rel=1e-10)

    def test_jacobian_on_a_box(self, path):
        """The reference are Jacobians at the corners of a box around a constant curve."""
        model = checker.Model(read(path)["problem"], checker_images)
        centre, radii = np.array([0.3, 0.2, -0.1]), np.array([0.01, 0.02, 0.03])
        curve, field = [arb_poly([x]) for x in centre], ReducedSystem(Problem(D=6, C=2, q=2 / 6))
        model.enumerate(4)
        entries = model.along(curve, [number(x, fmpq) for x in radii.tolist()], 4, 4)
        for signs in itertools.product((-1.0, 1.0), repeat=3):
            J = field.truncated(4).jacobian_at(centre + 0.999 * radii * signs)
            for entry, value in zip(entries, J.ravel()):
                assert abs(entry(arb(0)) - value).lower() <= 1e-12 * abs(J).max()

    def test_jacobian_and_defect_at_the_ends_of_each_part(self, path, monkeypatch):
        """The reference are floating-point values, the Jacobian at two corners of the box."""
        enclosures, original = [], checker.compared

        def recorded(M, start, errors, *rest):
            enclosures.append((M, errors))
            return original(M, start, errors, *rest)

        monkeypatch.setattr(checker, "compared", recorded)
        check(path)
        record, problem = read(path), Problem(D=6, C=2, q=2 / 6)
        bounds, system, larger, start = iter(enclosures), ReducedSystem(problem), 0, 0.0
        for piece in record["pieces"]:
            field = system.truncated(piece["K"])
            frames = [np.abs(basis) @ bar for basis, bar in piece["parts"]]
            radii, length, start = np.max(frames, axis=0), piece["end"] - start, piece["end"]
            curve = [np.polynomial.Polynomial(x) for x in zip(*piece["coefficients"])]
            for k, (basis, _) in enumerate(piece["parts"]):
                M, errors = next(bounds)
                for u, sign in ((-1.0, 1.0), (1.0, -1.0)):
                    t = (2 * k + 1 + u) / len(piece["parts"]) - 1
                    theta = np.array([P(t) for P in curve])
                    J = field.jacobian_at(theta + 0.99 * sign * radii)
                    turned = np.linalg.solve(basis, J @ basis)
                    for i, j in np.ndindex(3, 3):
                        assert abs(M[i, j] - turned[i, j]).lower() <= 1e-12 * abs(turned).max()
                    velocity = field.velocity_at(theta)
                    rate = [2.0 / length * P.deriv()(t) for P in curve]
                    defect = np.abs(np.linalg.solve(basis, velocity - rate))
                    rounding = 1e-14 * np.linalg.norm(np.linalg.inv(basis)) * max(np.abs(velocity))
                    for size, bound in zip(defect, errors):
                        assert size <= bound + rounding
                        larger += size > 10.0 * rounding
        assert larger > 100  # defects beyond the rounding of this test


PARTS = (checker, checker_model, checker_multisets, checker_images)
PYTHON = (checker_balls, checker_series, checker_lists, checker_text, outward)


@pytest.mark.parametrize("module", [*PARTS, *PYTHON], ids=lambda module: module.__name__)
class TestIndependence:
    def test_imports_nothing_of_the_prover(self, module):
        modules = {
            name
            for node in ast.walk(ast.parse(inspect.getsource(module)))
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        own = {each.__name__ for each in (*PARTS, *PYTHON)}
        numerical = {"flint", "numpy"} if module is checker_images else set()
        others = {
            name for name in modules - own if name.split(".")[0] not in sys.stdlib_module_names
        }
        assert others <= numerical

    def test_has_at_most_310_lines(self, module):
        """The checker must stay short enough to be read as a whole."""
        assert len(inspect.getsource(module).splitlines()) <= 310
