"""The claim on Definition 2.1: exact errors along D, and its verdict."""

import math

import pytest
from matplotlib.figure import Figure as Canvas

from dynamics.positional.labelling import label_error
from simulations.positional.claims import labelling_function as claim
from simulations.reproduction.claim import Verdict
from tests.closeness import close
from tests.simulations.quick import assert_complete, outcome

FOUR = next(law for law in claim.LAWS if law.name == "C = 4")
LOG = next(law for law in claim.LAWS if law.name == "C = log D")


def test_quick_claim():
    assert_complete("labelling-function")
    found = outcome("labelling-function")
    assert found.verdict is Verdict.FINDING
    assert claim.CLAIM.criterion.endswith(".")
    close(found.number("local_exponent", law="C = 4", k=2), 3.0, rel=1e-3)
    assert found.number("stays_below_from", law="C = 2", k=2, power=1) == "none"


def test_the_figure_draws_every_law_with_labelled_axes():
    (figure,) = outcome("labelling-function").figures
    canvas = Canvas(figsize=figure.size, layout="constrained")
    figure.draw(canvas)
    canvas.draw_without_rendering()
    assert len(canvas.axes) == 2
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in canvas.axes)
    (legend,) = canvas.legends
    assert len(legend.get_texts()) == len(claim.LAWS)


@pytest.mark.parametrize("k", claim.DENSITIES)
def test_error_is_that_of_one_negated_set(k):
    """A second road: at large D a single random set of -1 alone, (L-1) (q/2)^C."""
    for law in (FOUR, LOG):
        problem = claim.problem_of(law, k, 1e7)
        expected = (problem.L - 1) * (problem.q / 2) ** problem.C
        close(label_error(problem).error, expected, rel=1e-3)


def test_sizes_are_whole_sets_and_dense_problems_are_left_out():
    problem = claim.problem_of(LOG, 1, 1e3)
    assert (problem.C, problem.D) == (7, 994)
    assert claim.problem_of(FOUR, 3, 100.0) is None


def made(power, C, k=1):
    D = (100, 1000, 10_000, 100_000)
    return claim.Course(D, C, tuple(D ** -float(e) for D, e in zip(D, power)))


class TestVerdict:
    def test_a_power_at_fixed_C_is_a_finding(self):
        found = {
            (FOUR, 1): made((3, 3, 3, 3), (4,) * 4),
            (LOG, 1): made((3, 4, 5, 7), (5, 7, 9, 12)),
        }
        verdict, text = claim.judge(found)
        assert verdict is Verdict.FINDING
        assert "Definition 2.1 holds only if C grows" in text

    def test_holds_if_no_fixed_C_is_a_power(self):
        found = {
            (FOUR, 1): made((3, 4, 5, 7), (4,) * 4),
            (LOG, 1): made((3, 4, 5, 7), (5, 7, 9, 12)),
        }
        assert claim.judge(found)[0] is Verdict.HOLDS

    def test_fails_if_the_exponent_does_not_grow_with_C(self):
        found = {(LOG, 2): made((3, 4, 4, 4), (5, 7, 9, 12))}
        verdict, text = claim.judge(found)
        assert verdict is Verdict.FAILS
        assert "q = C^2/D" in text

    @pytest.mark.parametrize(
        ("powers", "C"),
        [
            ((3, 4, 5, 7), (5, 5, 5, 5)),  # C does not grow
            ((3, 3.9, 4.1, 4.15), (5, 7, 9, 12)),  # local exponents 5.7, 4.7, 4.35
            ((3, 3.5, 3, 3.4), (5, 7, 7, 9)),  # rises again, to less than before
        ],
    )
    def test_fails_unless_errors_fall_faster_and_faster(self, powers, C):
        assert claim.judge({(LOG, 1): made(powers, C)})[0] is Verdict.FAILS

    @pytest.mark.parametrize(("power", "verdict"), [(3.02, Verdict.FINDING), (3.04, Verdict.HOLDS)])
    def test_a_power_is_that_of_C_less_1_to_one_per_cent(self, power, verdict):
        growing = {(LOG, 1): made((3, 4, 5, 7), (5, 7, 9, 12))}
        assert claim.judge(growing | {(FOUR, 1): made((power,) * 4, (4,) * 4)})[0] is verdict


def test_course_knows_its_powers():
    one = made((1.5, 2.5, 2.5, 2.5), (4,) * 4)
    assert one.stays_below(1) == 100.0
    assert one.stays_below(2) == 1000.0
    assert math.isinf(one.stays_below(3))
    close(one.slopes[-1], 2.5, rel=1e-12)
