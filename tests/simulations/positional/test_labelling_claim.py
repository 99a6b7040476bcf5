"""The claim on Definition 2.1: exact errors along D, and their exponents."""

import math

import pytest
from matplotlib.figure import Figure as Canvas

from dynamics.positional.labelling import label_error
from simulations.positional.claims import labelling_function as claim
from simulations.reproduction.predicates import Verdict
from tests.closeness import close, within
from tests.simulations.quick import figures, result

FOUR = next(law for law in claim.LAWS if law.name == "C = 4")
LOG = next(law for law in claim.LAWS if law.name == "C = log D")


def test_quick_claim():
    quick = result("labelling-function")
    assert quick.verdict is Verdict.FINDING
    close(quick.tables["C fixed"].data.local_exponent["C = 4", 2], 3.0, rel=1e-3)
    assert math.isnan(quick.tables["thresholds"].data.stays_below_from["C = 2", 2, 1])


def test_the_figure_draws_every_law_with_labelled_axes():
    (figure,) = figures(("labelling-function",))
    canvas = Canvas(figsize=figure.size, layout="constrained")
    figure.draw(canvas)
    canvas.draw_without_rendering()
    assert len(canvas.axes) == 2
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in canvas.axes)
    (legend,) = canvas.legends
    assert len(legend.get_texts()) == len(claim.LAWS)


@pytest.mark.parametrize("k", claim.DENSITIES)
def test_error_equals_that_of_a_single_negated_set(k):
    """Compare with the probability (L-1) (q/2)^C of a single random set of -1 at large D."""
    for law in (FOUR, LOG):
        problem = claim.problem_of(law, k, 1e7)
        expected = (problem.L - 1) * (problem.q / 2) ** problem.C
        close(label_error(problem).error, expected, rel=1e-3)


def test_D_is_a_multiple_of_C_and_dense_problems_are_omitted():
    problem = claim.problem_of(LOG, 1, 1e3)
    assert (problem.C, problem.D) == (7, 994)
    assert claim.problem_of(FOUR, 3, 100.0) is None


def curve(power, C=(4,) * 4):
    """Return a constructed curve with these powers of D."""
    D = (100, 1000, 10_000, 100_000)
    return claim.Curve(D, C, tuple(D ** -float(e) for D, e in zip(D, power)))


@pytest.mark.parametrize(
    ("power", "least"),
    [
        ((3, 4, 5, 7), 1.0),
        ((3, 4, 4, 4), 0.0),
        ((3, 5, 4, 6), -1.0),
        ((1, 2, 2.5, 3), 0.5),
    ],
)
def test_least_rise_where_sets_grow(power, least):
    within(curve(power, (5, 7, 9, 12)).least_rise, least, 1e-12)


def test_least_rise_compares_with_all_earlier_sizes():
    """Use exponents that fall between two sizes, and rise above both where C grows."""
    within(curve((3, 2, 4, 3), (5, 5, 6, 6)).least_rise, 1.0, 1e-12)
    within(curve((2, 3, 4, 3), (5, 5, 6, 6)).least_rise, 1.0, 1e-12)
    assert math.isnan(curve((3, 4, 5, 7)).least_rise)


def test_thresholds_and_local_exponents_of_a_curve():
    errors = curve((1.5, 2.5, 2.5, 2.5))
    assert errors.stays_below(1) == 100.0
    assert errors.stays_below(2) == 1000.0
    assert math.isnan(errors.stays_below(3))
    close(errors.slopes[-1], 2.5, rel=1e-12)
