"""Proofs for boxes of constants: the flows of all members are inside, and mutations are noticed."""

import itertools
import math
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pytest

from dynamics import ParameterError, Population, Problem, gradient_flow
from dynamics.positional.validated.system import Box, ReducedSystem, TruncatedField
from simulations.positional.validated import box as module
from simulations.positional.validated.box import BoxProof, Part
from simulations.validated import box_conclusions, prove, prove_box

HORIZON = 0.5
LOW = Problem(D=8, C=2, q=0.25, nu=0.00997)
HIGH = LOW.replace(q=0.2502, nu=0.01003)
SLACK = 1e-9  # error of the numerical flow


def members(low, high):
    """Return the corners of a box and random members of it."""
    rng = np.random.default_rng(0)
    shares = [(0, 0), (0, 1), (1, 0), (1, 1), *rng.uniform(size=(3, 2))]
    for x, y in shares:
        nu, q = (a + s * (b - a) for s, a, b in ((x, low.nu, high.nu), (y, low.q, high.q)))
        yield low.replace(nu=min(nu, high.nu), q=min(q, high.q))


@lru_cache
def flow_to(problem, time):
    return gradient_flow(Population(problem, tolerance=1e-12), horizon=time, rtol=1e-11).final


def excess(problem, proof, time):
    """Return the largest distance of the flow of a member from the tube, 0 inside."""
    pairs = zip(flow_to(problem, time), proof.at(time))
    return max(max(low - x, x - high, 0.0) for x, (low, high) in pairs)


@pytest.fixture(scope="module")
def proof():
    return prove_box(LOW, HIGH, horizon=HORIZON, most_boxes=1)


def single(result):
    (part,) = result.parts
    return part.proof


def test_a_box_has_the_weakest_conclusion_of_its_parts():
    """Whichever part comes first."""
    strong = SimpleNamespace(
        association=True, forever=True, gap_positive_from=0.0, association_until=math.inf,
        loss=(0.1, 0.2), test_error=(0.0, 0.3), proved=True, horizon=1.0,
    )  # fmt: skip
    weak = SimpleNamespace(
        association=False, forever=False, gap_positive_from=3.0, association_until=5.0,
        loss=(0.15, 0.4), test_error=(0.1, 0.2), proved=False, horizon=1.0,
    )  # fmt: skip
    low, high = Problem(8, 2, 0.2, nu=0.01), Problem(8, 2, 0.2, nu=0.02)
    for proofs in ((strong, weak), (weak, strong)):
        whole = BoxProof(low, high, tuple(Part(low, high, proof) for proof in proofs))
        assert not any((whole.association, whole.forever, whole.proved))
        assert whole.gap_positive_from == 3.0
        assert whole.association_until == 5.0
        assert (whole.loss, whole.test_error) == ((0.1, 0.4), (0.0, 0.3))


@pytest.mark.slow
@pytest.mark.traced
class TestMembers:
    def test_is_proved(self, proof):
        assert proof.proved
        assert proof.fraction == 1.0
        assert proof.domain == "nu in [0.00997, 0.01003] and q in [0.25, 0.2502]"
        assert "for all nu in" in proof.sentence

    @pytest.mark.parametrize("time", [0.003, 0.1, HORIZON])
    def test_flows_are_inside(self, proof, time):
        for problem in members(LOW, HIGH):
            assert excess(problem, single(proof), time) <= SLACK

    def test_conclusions_hold(self, proof):
        assert proof.gap_positive_from == 0.0
        assert proof.association
        for problem in members(LOW, HIGH):
            final = flow_to(problem, HORIZON)
            value = Population(problem, tolerance=1e-11).evaluate(final)
            assert final.gamma > final.rho
            for (low, high), x in ((proof.loss, value.loss), (proof.test_error, value.test_error)):
                assert low - SLACK <= x <= high + SLACK

    def test_widths_are_those_of_the_family(self, proof):
        """The corners use up most of the width of alpha: it is not wide by accident."""
        ends = [flow_to(problem, 0.1) for problem in members(LOW, HIGH)]
        low, high = single(proof).at(0.1).alpha
        assert high - low < 1.5 * np.ptp([end.alpha for end in ends])


class TestMutations:
    """The tube of a wrong perturbation does not contain the corners."""

    def worst(self, *times, low=LOW, high=HIGH, tolerance=None):
        options = {"horizon": max(times), "tolerance": tolerance}
        proof = single(prove_box(low, high, most_boxes=1, **options))
        corners = list(members(low, high))[:4]
        return max(excess(problem, proof, time) for problem in corners for time in times)

    def multiply(self, monkeypatch, nu=1.0, q=1.0):
        """Multiply the derivatives of the velocity by nu and by q."""
        bounds, floats, factor = (
            TruncatedField.sensitivity,
            TruncatedField.sensitivity_at,
            np.repeat([nu, q], 3),
        )
        monkeypatch.setattr(
            TruncatedField,
            "sensitivity",
            lambda self, theta: (g := bounds(self, theta)).times(factor[: g.mid.shape[1]]),
        )
        monkeypatch.setattr(
            TruncatedField,
            "sensitivity_at",
            lambda self, theta: (g := floats(self, theta)) * factor[::3][: len(g), None],
        )

    @pytest.mark.slow
    def test_half_the_perturbation(self, monkeypatch):
        self.multiply(monkeypatch, 0.5, 0.5)
        assert self.worst(HORIZON) > 1e-6

    @pytest.mark.slow
    def test_without_q(self, monkeypatch):
        self.multiply(monkeypatch, q=0.0)
        assert self.worst(HORIZON) > 1e-6

    def test_without_nu(self, monkeypatch):
        box = {"low": LOW.replace(nu=0.09999), "high": LOW.replace(nu=0.10001), "tolerance": 1e-5}
        assert self.worst(0.1, **box) <= SLACK
        self.multiply(monkeypatch, nu=0.0)
        assert self.worst(0.1, **box) > 5e-9  # gamma: the start of alpha hides its own

    def test_start_at_the_middle(self, monkeypatch):
        monkeypatch.setattr(ReducedSystem, "_vary_start", lambda self: None)
        assert self.worst(0.003) > 1e-5


class TestNarrowBoxes:
    def test_agrees_with_the_proof_of_a_point(self):
        low = LOW.replace(nu=0.01)
        high = low.replace(nu=math.nextafter(0.01, 1.0))
        narrow = prove_box(low, high, horizon=0.02)
        point = prove(low, horizon=0.02, tolerance=1e-3)
        for ends, other in zip(narrow.enclosure, point.enclosure):
            assert np.all(np.abs(np.subtract(ends, other)) < 1e-12)

    def test_no_radius_is_the_system_of_a_point(self):
        point, box = ReducedSystem(LOW), ReducedSystem(LOW, box=Box())
        assert box.start_slopes == ()
        assert np.array_equal(point.start_radius, box.start_radius)


class TestDivision:
    @pytest.mark.slow
    def test_parts_cover_the_box(self, monkeypatch):
        """Tubes that are stopped for wide boxes: the quarters are proved."""
        original = module.enclose

        def enclose(system, *arguments, **options):
            tube = original(system, *arguments, **options)
            tube.reason = "at time 1: too wide" if system.box.nu > 7e-6 else ""
            return tube

        monkeypatch.setattr(module, "enclose", enclose)
        low, high = LOW.replace(nu=0.00998), LOW.replace(nu=0.01002)
        proof = prove_box(low, high, horizon=1e-4)
        ends = [part.ends("nu") for part in proof.parts]
        assert len(ends) == 4
        assert proof.proved
        assert ends[0][0] == 0.00998
        assert ends[-1][1] == 0.01002
        assert all(before[1] == after[0] for before, after in itertools.pairwise(ends))
        some = prove_box(low, high, horizon=1e-4, most_boxes=6)
        assert not some.proved
        assert 0.4 < some.fraction < 0.6
        assert "not proved to time 0.0001 for all nu" in some.sentence
        assert box_conclusions(some)["enclosure"] is None


@pytest.mark.parametrize(
    ("high", "message"),
    [
        (LOW, "they must differ"),
        (LOW.replace(nu=0.009), "nu = 0.00997..0.009"),
        (HIGH.replace(beta=0.5), "they must differ"),
    ],
)
def test_invalid_boxes(high, message):
    with pytest.raises(ParameterError, match=message):
        prove_box(LOW, high, horizon=1.0)
