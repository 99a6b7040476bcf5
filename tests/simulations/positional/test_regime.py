"""The theorem at finite size: hypotheses, conclusions, regime; verdicts of constructed numbers."""

import itertools
import math
from fractions import Fraction

import pytest
from matplotlib.figure import Figure as Canvas

from dynamics import Population, Problem
from dynamics.positional.labelling import label_error
from simulations.positional import theorem_4_1 as theorem
from simulations.positional.claims import theorem_4_1
from simulations.positional.claims.regime_of_theorem_4_1 import (
    BOUNDARY,
    PAPER,
    Cell,
    Edge,
    Scaling,
    _figure,
    boundary,
    exponents,
    grid,
    limit,
    locate,
)
from simulations.reproduction.claim import Context
from simulations.reproduction.predicates import Verdict
from tests.closeness import close
from tests.dynamics.positional.ball_reference import contains, reference

LEARNED = theorem.Conclusions(True, 1e-3, 5e-4, 2e-3, 1 / 256)


class TestHypotheses:
    def test_the_papers_parametrization_meets_them_from_some_size_on(self):
        met = {
            (problem.D, round(problem.q * problem.D))
            for problem in theorem.paper_problems(thorough=True)
            if not theorem.hypotheses(problem).broken
        }
        sparse = {(D, features) for D in (256, 512, 1024, 2048) for features in (4, 8)}
        assert met == sparse | {(1024, 16), (2048, 16)}

    @pytest.mark.parametrize(
        ("change", "text"),
        [
            ({"C": 2}, "P[y f* <= 0]"),
            ({"C": 256, "q": 0.1}, "C = 256"),
            ({"D": 32, "q": 0.2, "d": 8}, "q = 0.2"),
            ({"q": 2 / 1024}, "qD = 2 < C"),
            ({"nu": 0.05}, "nu = 0.05"),
            ({"beta": 0.0}, "sigma_A = 0"),
        ],
    )
    def test_each_can_be_missed(self, change, text):
        problem = Problem(**({"D": 1024, "C": 4, "q": 4 / 1024, "nu": 1e-3} | change))
        assert any(text in why for why in theorem.hypotheses(problem).broken)
        good = Problem(D=1024, C=4, q=4 / 1024, nu=1e-3)
        assert theorem.hypotheses(good).broken == ()

    def test_the_named_problems_miss_some(self):
        from simulations.positional import reference_runs as runs

        for problem in (
            runs.FEW_FEATURES,
            runs.BASE,
            runs.WIDE,
            runs.MANY_FEATURES,
            runs.CROWDED,
            runs.TINY,
        ):
            assert theorem.hypotheses(problem).broken


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, ""),
        ({"associates": False}, "patch association"),
        ({"disagreement": 0.004}, "P[f* F <= 0]"),
        ({"disagreement": math.nan}, "P[f* F <= 0]"),
        ({"risk": 0.004}, "risk"),
        ({"risk": math.nan}, "risk"),
    ],
)
def test_every_conclusion_can_fail(change, why):
    assert LEARNED._replace(**change).failing == why


def exact_label_error(problem):
    """Return P[y f* <= 0] in fractions, set by set, where a threshold of .9 C passes full sets."""
    q, C = Fraction(problem.q), problem.C
    law = {C: Fraction(1)}
    full = (q / 2) ** C
    for _ in range(problem.L - 1):
        after = {}
        for total, share in law.items():
            for n, part in ((C, full), (-C, full), (0, 1 - 2 * full)):
                after[total + n] = after.get(total + n, 0) + share * part
        law = after
    return sum(share for total, share in law.items() if total <= 0)


def test_conclusions_of_a_run():
    """Against exact balls at the state; a run that has only begun fails."""
    problem = Problem(D=16, C=4, q=0.25)
    path = theorem.flow(problem, 1e-8)
    population = Population(problem, tolerance=1e-8)
    result = theorem.conclusions(path, population, 1e3)
    exact, label = reference(problem, path.at(1e3)), exact_label_error(problem)
    bound = population.evaluate(path.at(1e3)).test_error_bound + label_error(problem).bound
    assert 0.0 < bound < 1e-9
    true = float(exact.test_error.mid()) + float(label)
    assert true <= result.disagreement <= true + 2.0 * bound + 1e-15
    assert contains(exact.loss, result.risk, 1e-8)
    sampled = Population(problem, "sampling", samples=2000, seed=1)  # its bound counts
    estimate = sampled.evaluate(path.at(1e3))
    assert estimate.test_error_bound > 0.1 * true
    least = estimate.test_error + estimate.test_error_bound
    assert theorem.conclusions(path, sampled, 1e3).disagreement >= least
    assert theorem.conclusions(path, population, 0.0).failing == "patch association"
    at_end = theorem.conclusions(path, population, float(path.time[-1]))
    assert theorem.conclusions(path, population, 1e99) == at_end


def reached(D, scale=1.0, **late):
    """Return a problem and its conclusions, those at d^4 changed by ``late``."""
    at = {
        k: LEARNED._replace(disagreement=scale * D**-1.5 / k, risk=scale * D**-1.5 / k)
        for k in theorem.HORIZONS
    }
    at[4] = at[4]._replace(**late)
    return Problem.parametrization_3_1(D, 4, q=4 / D), at


class TestTheoremVerdict:
    @staticmethod
    def check(*problems):
        layouts = theorem_4_1.CLAIM.tables
        rows = {
            "conclusions": theorem_4_1.conclusions(dict(problems)),
            "larger D": theorem_4_1.larger_D(dict(problems)),
        }
        return {name: layouts[name].check(layouts[name].frame(each)) for name, each in rows.items()}

    def test_holds_where_everything_falls(self):
        tables = self.check(reached(256), reached(512), reached(1024))
        assert {table.verdict for table in tables.values()} == {Verdict.HOLDS}
        assert len(tables["conclusions"].rows) == 6  # d^3 and d^4
        assert [*tables["larger D"].data.index] == [
            (4.0, D, time) for D in (512, 1024) for time in ("d^3", "d^4")
        ]

    @pytest.mark.parametrize("late", [{"associates": False}, {"disagreement": 1.0}, {"risk": 1.0}])
    def test_a_conclusion_that_fails_late_is_a_finding(self, late):
        assert self.check(reached(256, **late))["conclusions"].verdict is Verdict.FINDING

    @pytest.mark.parametrize("late", [{"disagreement": 8e-5}, {"risk": 8e-5}])
    def test_numbers_are_compared_with_those_at_the_horizon_before(self, late):
        """At d^2 and d^3 they are 12e-5 and 8e-5."""
        table = self.check(reached(256, scale=1.0, **late))["conclusions"]
        assert table.verdict is Verdict.HOLDS
        late = {name: 1.1 * value for name, value in late.items()}
        assert self.check(reached(256, **late))["conclusions"].verdict is Verdict.FINDING

    @pytest.mark.parametrize("name", ["disagreement", "risk"])
    def test_what_does_not_fall_with_D_is_a_finding(self, name):
        tables = self.check(reached(256), reached(1024, **{name: 256**-1.5 / 4}))
        assert tables["larger D"].verdict is Verdict.FINDING


class TestBisection:
    def test_brackets_a_known_boundary(self):
        inside, outside, why = locate(lambda x: "risk" if x > 1.7 else "", 0.5, 16.0, 6)
        assert inside <= 1.7 < outside
        close(outside / inside, 32 ** (1 / 64), rel=1e-12)
        assert why == "risk"

    def test_boundary_at_either_end(self):
        inside, outside, why = locate(lambda x: "", 0.5, 16.0, 6)
        assert (outside, why) == (16.0, "P[y f* <= 0]")
        assert 14.0 < inside < 16.0
        inside, outside, _ = locate(lambda x: "risk", 0.5, 16.0, 6)
        assert math.isnan(inside)
        assert Edge(inside, outside, "risk", 16.0, 0.1).middle == outside == 0.5

    @pytest.mark.parametrize("D", [64, 1024])
    def test_limit_is_where_the_labelling_function_errs_so(self, D):
        at = limit(D, 1 / D)
        close(label_error(PAPER.problem(D, at)).error, 1 / D, rel=1e-6)
        # one negated set costs about (D/C) (q/2)^C
        close(at, (4 / D**2) ** 0.25 * D / 8, rel=0.05)

    @pytest.mark.parametrize("mode", [{"quick": True}, {"quick": False}, {"thorough": True}])
    def test_flows_are_more_accurate_than_the_brackets(self, mode):
        size = grid(Context(**{"quick": False} | mode))
        assert size.rtol <= min(1e-5, 10.0 * size.tolerance)

    def test_limit_where_q_ends_first(self):
        assert limit(16, 1.0) == 1.0


def edges(scaling, *rows):
    return {(scaling, D): Edge(*row) for D, row in zip((64, 256, 1024), rows)}


def checked(edges):
    return BOUNDARY.check(BOUNDARY.frame(boundary(edges)))


class TestRegimeVerdict:
    GROWING = ((1.4, 1.7, "risk", 2.0, 0.5), (2.0, 2.5, "risk", 3.0, 0.7))

    def test_growing_region_that_contains_the_hypotheses_holds(self):
        assert checked(edges(PAPER, *self.GROWING)).verdict is Verdict.HOLDS

    def test_hypotheses_outside_is_a_finding(self):
        table = checked(edges(PAPER, (math.nan, 0.5, "risk", 1.4, 0.5)))
        assert table.verdict is Verdict.FINDING
        assert table.passed.iloc[0].tolist() == [False, True]

    def test_shrinking_region_is_a_finding(self):
        table = checked(edges(PAPER, *reversed(self.GROWING)))
        assert table.verdict is Verdict.FINDING
        assert table.passed.to_numpy().tolist() == [[True, True], [True, False]]

    def test_overlapping_brackets_hold(self):
        rows = ((1.2, 3.5, "risk", 4.0, 0.5), (1.1, 2.5, "risk", 4.0, 0.7))
        assert checked(edges(PAPER, *rows)).verdict is Verdict.HOLDS

    def test_fixed_nu_is_not_judged(self):
        fixed = edges(Scaling(1.0), *reversed(self.GROWING))
        table = checked(edges(PAPER, *self.GROWING) | fixed)
        assert table.verdict is Verdict.HOLDS
        assert len(table.rows) == 2
        assert len(table.data) == 4

    def test_the_figure_draws_every_scaling(self):
        cells = {
            (nu, x): Cell(LEARNED._replace(associates=nu < 1.0, disagreement=x * nu / 64), False)
            for nu in (0.1, 1.0)
            for x in (0.5, 1.0)
        }
        below = edges(Scaling(1.0), (math.nan, 0.5, "risk", 1.4, 0.5))
        figure = _figure(64, cells, edges(PAPER, *self.GROWING) | below)
        canvas = Canvas(figsize=figure.size, layout="constrained")
        figure.draw(canvas)
        canvas.draw_without_rendering()
        (legend,) = canvas.legends
        assert len(legend.get_texts()) == 3  # two scalings and the labelling function
        assert figure.data["boundary"].sel(scaling="nu = 1", D=64) == 0.5
        assert figure.data["inside"].sum() == 2.0

    def test_exponent_of_a_power(self):
        made = {(PAPER, D): Edge(0.1 * D**0.5, 0.1 * D**0.5, "", 9.0, 0.1) for D in (64, 256, 1024)}
        (row,) = exponents(made)
        close(row["exponent"], 0.5, rel=1e-12)
        assert all(a < b for a, b in itertools.pairwise(edge.middle for edge in made.values()))
