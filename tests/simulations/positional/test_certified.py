"""Certificates of gamma >= rho on boxes: bounds, answers, boxes, command and claim."""

import json
import re
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import xarray
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dynamics import ParameterError, Population, Problem, State, attention
from simulations.cli import main
from simulations.figures import render
from simulations.files import write_dataset
from simulations.positional.claims.gamma_ge_rho_certified import BOXES, boxes, compared
from simulations.positional.invariance.box import Box, Cell, Witness, read_box
from simulations.positional.invariance.certified import (
    Answer,
    bounds,
    certify,
    drift_is_negative,
    population_drift,
)
from simulations.reproduction.predicates import Verdict
from simulations.strategies import problems, reals
from tests.closeness import close
from tests.simulations.quick import result

TOLERANCE = 1e-11


def cell_of(problem, alpha, x):
    contrast = (problem.beta - x) / problem.tau
    amplitude = problem.kappa * alpha
    ends = ((amplitude,) * 2, (contrast,) * 2, (problem.nu,) * 2, (problem.q,) * 2)
    return Box(problem.D, problem.C, (0, 1), (0, 1), p=problem.p), Cell(*ends)


def scale(problem, alpha, x):
    """Return the positive factor between the sum in ball arithmetic and d(gamma - rho)/dt."""
    Lambda, Gamma, _, _ = attention(problem, State(alpha, x, x))
    N, amplitude = problem.D - problem.C, problem.kappa * alpha
    front = amplitude * problem.C * Gamma / (problem.tau * problem.D * N)
    return front * problem.p * amplitude ** (problem.p - 1) * abs(Lambda - Gamma) * N**2 / (N - 1)


class TestPoints:
    @settings(max_examples=40)
    @given(problems(max_D=12), reals(1e-3, 0.5), reals(-2.0, 2.0))
    @example(Problem(D=16, C=2, q=0.5, nu=1e-3, beta=0.5), 0.3, 0.0)
    @example(Problem(D=16, C=4, q=1.0, p=5), 0.3, -0.5)
    def test_bounds_contain_the_population_gradient(self, problem, alpha, x):
        assume(abs(problem.beta - x) > 1e-6)
        low, high, _ = bounds(*cell_of(problem, alpha, x))
        gradient = Population(problem, tolerance=TOLERANCE).gradient(State(alpha, x, x))
        drift, error = gradient.rho - gradient.gamma, 2.0 * TOLERANCE
        error *= max(1.0, abs(gradient.gamma), abs(gradient.rho))
        factor = scale(problem, alpha, x)
        assert low * factor - error <= drift * (1.0 + 1e-9 * np.sign(drift))
        assert drift * (1.0 - 1e-9 * np.sign(drift)) <= high * factor + error
        assert high - low <= 1e-12 * max(1.0, abs(high))

    @settings(max_examples=25)
    @given(problems(max_D=10), st.data())
    def test_bounds_of_a_cell_contain_its_points(self, problem, data):
        def interval(low, high):
            ends = sorted((data.draw(reals(low, high)), data.draw(reals(low, high))))
            return ends[0], ends[1]

        box = Box(problem.D, problem.C, (0.0, 1.0), (0.0, 1.0), p=problem.p)
        contrast = interval(0.0, 3.0) if data.draw(st.booleans()) else interval(-2.0, -1e-3)
        cell = Cell(interval(0.0, 8.0), contrast, interval(0.0, 0.5), interval(0.0, 1.0))
        parts = [data.draw(reals(0.0, 1.0)) for _ in cell]
        point = Cell(
            *(
                (min(max((1 - t) * low + t * high, low), high),) * 2
                for t, (low, high) in zip(parts, cell)
            )
        )
        low, high, worst = bounds(box, cell)
        inside = bounds(box, point)
        assert low <= inside[1]
        assert inside[0] <= high
        assert cell.q[0] <= worst <= cell.q[1]

    @pytest.mark.parametrize("contrast", [0.5, 3.0, -0.5])
    def test_bounds_contain_points_where_the_linear_part_dominates(self, contrast):
        """T and the terms have both signs, so that each corner of the cell is needed."""
        box = Box(9, 3, (0.0, 1.0), (0.0, 1.0))
        cell = Cell((0.2, 1.5), (contrast, contrast), (0.0, 8.0), (0.7, 1.0))
        low, high, _ = bounds(box, cell)
        for amplitude in np.linspace(0.2, 1.5, 5):
            for nu in np.linspace(0.0, 8.0, 5):
                for q in (0.7, 0.85, 1.0):
                    point = Cell((amplitude,) * 2, cell.contrast, (nu,) * 2, (q, q))
                    inside = bounds(box, point)
                    assert low <= inside[0] <= inside[1] <= high


class TestAnswers:
    def test_two_sets_are_proved_for_large_alpha(self):
        text = "D=8, C=4, q=0..1, alpha=0..100, x=-3..0, nu=0..1, beta=0..3, tau=0.5..2, kappa=1..9"
        certificate = certify(read_box(text))
        assert certificate.answer is Answer.PROVED
        assert certificate.share == 1.0
        assert certificate.sentence.startswith("proved: d(gamma - rho)/dt >= 0 everywhere")

    @pytest.mark.parametrize(
        "text",
        [
            "D=16, C=4, q=1, alpha=0..0.2",
            "D=16, C=4, q=0..1, alpha=0..0.2, x=-1..1, tau=0.5..1, kappa=8..16",  # x up to beta
            "D=16, C=4, qD=1, alpha=0.1, x=0..1.1",  # gamma above beta
            "D=12, C=3, p=5, qD=6..8, alpha=0.3, nu=0.01..0.1, beta=0.5..2",
        ],
    )
    def test_refuted_with_a_witness_inside(self, text):
        box = read_box(text)
        certificate = certify(box)
        assert certificate.answer is Answer.REFUTED
        witness = certificate.witness
        drift, error = population_drift(witness)
        assert drift < -error
        assert drift_is_negative(witness)
        assert box.contains(witness)

    def test_undecided_after_too_few_cells(self):
        box = read_box("D=16, C=4, qD=0..2, alpha=0..0.3, x=-1..0.9, nu=0..0.01")
        early = certify(box, most=1)
        assert (early.answer, early.witness, early.share) == (Answer.UNDECIDED, None, 0.0)
        assert "after 1 boxes" in early.sentence
        assert certify(box).answer is Answer.PROVED

    def test_zero_drift_is_not_refuted(self):
        assert not drift_is_negative(Witness.at(Problem(D=16, C=4, q=1.0), 0.2, 1.0))  # x = beta
        assert certify(read_box("D=16, C=4, q=1, alpha=0.2, x=1")).answer is not Answer.REFUTED
        assert certify(read_box("D=16, C=4, q=1, alpha=0")).answer is not Answer.REFUTED

    def test_no_population_gradient_contradicts_an_answer(self):
        """All random boxes are decided, and the population gradient has the certified sign."""
        rng, answers = np.random.default_rng(0), Counter()
        for _ in range(24):
            C, L = rng.integers(2, 5), rng.integers(2, 4)
            q, nu, alpha = rng.uniform(0.05, 1.0), 10 ** rng.uniform(-4, 0), rng.uniform(0.05, 0.6)
            box = Box(
                int(C * L), int(C), (0.0, alpha), (0.8 * q, q), (-0.5, -0.2), (nu, nu), (0.4, 1.0)
            )
            certificate = certify(box, most=60)
            answers[certificate.answer] += 1
            if certificate.answer is Answer.REFUTED:
                drift, error = population_drift(certificate.witness)
                assert drift < -error
                continue
            for _ in range(5):
                point = box.problem(q=rng.uniform(0.8 * q, q), beta=rng.uniform(0.4, 1.0))
                x = rng.uniform(-0.5, -0.2)
                drift, error = population_drift(Witness.at(point, alpha * rng.uniform(), x))
                assert drift > -error
        assert answers[Answer.UNDECIDED] == 0
        assert min(answers[Answer.PROVED], answers[Answer.REFUTED]) >= 5


class TestBoxes:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("D=16, C=4, alpha=0..1", "given either q or qD"),
            ("D=16, C=4, q=0.1, qD=1, alpha=0..1", "given either q or qD"),
            ("D=16, C=4, q=0.1", "alpha is missing"),
            ("D=16, C=5, q=0.1, alpha=0.1", "C = 5 is not allowed"),
            ("D=16, C=4, q=0.1..2, alpha=0.1", "q = 0.1..2 is not allowed"),
            ("D=16, C=4, q=0.1, alpha=-1..1", "alpha = -1.0 is not allowed"),
            ("D=16, C=4, q=0.1, alpha=1..0", "alpha = 1..0 is not allowed"),
            ("D=16, C=4, q=0.1, alpha=0..x", "box = 'alpha=0..x' is not allowed"),
            ("D=16, C=4, q=0.1, alpha=0..1..2", "NAME=LOW..HIGH"),
            ("D=16, C=4, q=0.1, alpha=0, alpha=1", "each of D, C, p"),
            ("D=16, C=4, q=0.1, alpha=0, magic=1", "each of D, C, p"),
            ("D=16..32, C=4, q=0.1, alpha=0", "D = '16..32' is not allowed"),
            ("D=16, C=4, q=0.1, alpha=0, tau=0..1", "temperature = 0.0 is not allowed"),
            ("D=16, C=4, q=0.1, alpha=0..inf", "box = 'alpha=0..inf' is not allowed"),
            ("D=16, C=4, q=0.1, alpha=1e-999999999", "at least 1e-330"),
            ("D=16.5, C=4, q=0.1, alpha=0", "D = 16.5 is not allowed"),
            ("D=800, C=4, q=0.1, alpha=0", "D = 800 is not allowed: D must be at most C + 300"),
        ],
    )
    def test_invalid_boxes(self, text, message):
        with pytest.raises(ParameterError, match=re.escape(message)):
            read_box(text)

    def test_description_is_read_back(self):
        text = "D=16, C=4, p=5, alpha=0..0.1, q=0.25, x=-1..1, nu=0.02, beta=1, tau=2, kappa=3..4"
        assert read_box(text).describe() == text
        third = "D=16, C=4, p=3, alpha=0.1, q=1/3, x=0, nu=0.01, beta=1, tau=1"
        assert read_box(third).describe() == third
        assert read_box(Box(16, 4, (0.1, 0.1), (0.5, 0.5)).describe()).alpha[0] == Fraction(0.1)
        assert read_box("D=16; C=4; qD=1/2..2; alpha=1/10").q == (1 / 32, 1 / 8)

    def test_boxes_of_the_claim_can_be_read(self):
        assert all(read_box(text).D == 16 for name, text in boxes(16).items() if "D=16" in text)


class TestCommand:
    def test_text(self, capsys):
        arguments = ["falsify", "rho <= gamma", "--certify", "--box"]
        assert main([*arguments, "D=8, C=2, q=1, alpha=0..0.4"]) == 0
        text = capsys.readouterr().out
        assert text.startswith("refuted: d(gamma - rho)/dt < 0 on gamma = rho in the box D=8")
        assert "population gradient there: d(gamma - rho)/dt = -" in text

    def test_json(self, capsys):
        box = "D=8, C=2, qD=0..1, alpha=0..0.1"
        assert main(["falsify", "gamma >= rho", "--certify", "--box", box, "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert (answer["answer"], answer["proved share"]) == ("proved", 1.0)
        assert answer["witness"] is answer["population drift"] is None


class TestVerdict:
    def row(self, text, **options):
        return {"box": text} | compared(certify(read_box(text), **options), 3, 0)

    def verdict(self, *rows):
        return BOXES.check(BOXES.frame(rows)).verdict

    def test_follows_the_answers(self):
        proved = self.row("D=8, C=2, q=0..0.1, alpha=0..0.1")
        assert (proved["answer"], proved["points"], proved["contradictions"]) == ("proved", 3, 0)
        assert self.verdict(proved) is Verdict.HOLDS
        assert self.verdict(proved | {"contradictions": 1}) is Verdict.FAILS
        undecided = self.row("D=16, C=4, qD=0..2, alpha=0..0.3, x=-1..0.9, nu=0..0.01", most=1)
        assert (undecided["answer"], undecided["points"]) == ("undecided", 0)
        assert self.verdict(proved, undecided) is Verdict.FINDING

    def test_a_refuted_box_shows_its_witness(self):
        refuted = self.row("D=16, C=4, q=1, alpha=0..0.2")
        assert refuted["answer"] == "refuted"
        assert refuted["witness"].startswith("alpha = ")
        assert refuted["witness_drift"] < 0.0
        assert self.verdict(refuted) is Verdict.FAILS


class TestClaim:
    @pytest.mark.slow
    @pytest.mark.traced
    def test_proves_and_refutes_boxes(self, tmp_path):

        claim_result = result("gamma-ge-rho-certified")
        assert claim_result.verdict is Verdict.FAILS
        boxes = claim_result.tables["boxes"].data
        assert sorted(boxes.answer) == ["proved"] * 5 + ["refuted"] * 2
        assert boxes.witness.notna().sum() == 2
        shares = claim_result.tables["map"].data.share
        close(shares.sum(), 1.0, rel=1e-12)
        assert shares.min() > 0.1
        (figure,) = claim_result.measurement.figures
        assert render(figure).startswith(b"\x89PNG")
        write_dataset(tmp_path / "data.nc", figure.data)
        with xarray.open_dataset(tmp_path / "data.nc", engine="h5netcdf") as data:
            assert figure.draw.func(data.load())

    @pytest.mark.slow
    def test_critical_curves_avoid_the_proved_boxes(self):
        """The independent floating-point sum does not change its sign in a proved box."""
        data = result("gamma-ge-rho-certified").measurement.figures[0].data
        proved = data.isel(box=np.flatnonzero(data["answer"].values > 0.0))
        for curve in data["critical"].values:
            for alpha, qD in zip(data["alpha"].values, curve):
                inside = (proved["alpha_low"] < alpha) & (alpha < proved["alpha_high"])
                inside &= (proved["qD_low"] < qD) & (qD < proved["qD_high"])
                assert not inside.any()
        assert np.isfinite(data["critical"]).sum() > 40
