"""The claim on the regime of Theorem 4.1: its bisection and its verdict, on made-up numbers."""

import math

import pytest

from simulations.claim import Verdict
from simulations.claims.regime_of_theorem_4_1 import Edge, failing, judge, locate

LEARNED = {"association": 1.0, "test_error": 0.011, "best_test_error": 0.005, "loss": 0.02}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, ""),
        ({"association": 0.0}, "patch association"),
        ({"association": math.nan}, "patch association"),
        ({"test_error": 0.0151}, "test error"),
        ({"test_error": math.nan}, "test error"),
        ({"loss": 0.11}, "risk"),
    ],
)
def test_every_conclusion_can_fail(change, why):
    assert failing(LEARNED | change) == why


class TestBisection:
    def test_brackets_a_known_boundary(self):
        edge = locate(lambda density: "risk" if density > 1.7 else "", 0.5, 16.0, 6)
        assert edge.inside <= 1.7 < edge.outside
        assert edge.outside / edge.inside == pytest.approx(32 ** (1 / 64))
        assert edge.inside < edge.middle < edge.outside
        assert edge.why == "risk"

    def test_boundary_beyond_either_end(self):
        assert locate(lambda density: "", 0.5, 16.0, 6)[0] == 16.0
        edge = locate(lambda density: "risk", 0.5, 16.0, 6)
        assert math.isnan(edge.inside)
        assert edge.middle == 0.5


class TestVerdict:
    def test_growing_region_that_contains_the_scaling_holds(self):
        edges = {(64, 0.1): Edge(1.4, 1.7, "risk"), (256, 0.1): Edge(2.0, 2.5, "risk")}
        verdict, text = judge(edges | {(1024, 0.1): Edge(16.0, math.nan, "")})
        assert verdict is Verdict.HOLDS
        assert "1.5 (D = 64), 2.2 (D = 256), at least 16 (D = 1024) for nu = 0.1" in text

    def test_scaling_outside_is_a_finding(self):
        verdict, text = judge({(64, 0.1): Edge(math.nan, 0.5, "test error")})
        assert verdict is Verdict.FINDING
        assert "fails in 1 of 1 cases, first at D = 64, nu = 0.1, by test error" in text

    def test_shrinking_region_is_a_finding(self):
        edges = {(64, 0.1): Edge(3.0, 3.5, "risk"), (256, 0.1): Edge(2.0, 2.5, "risk")}
        verdict, text = judge(edges)
        assert verdict is Verdict.FINDING
        assert "At nu = 0.1 the region shrinks from D = 64 to 256" in text

    def test_overlapping_brackets_decide_nothing(self):
        edges = {(64, 0.1): Edge(1.2, 3.5, "risk"), (256, 0.1): Edge(1.1, 2.5, "risk")}
        assert judge(edges)[0] is Verdict.HOLDS
