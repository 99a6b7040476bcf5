"""Claims with proofs: comparison with tubes, and verdicts of constructed and short tubes."""

import numpy as np
import pytest

from dynamics import Population, State, gradient_flow
from simulations.positional import proved_runs
from simulations.positional import reference_runs as runs
from simulations.positional.claims import gamma_ge_rho_proved as proved
from simulations.positional.claims import gamma_ge_rho_refuted as refuted
from simulations.positional.claims import theorem_4_1_proved as theorem
from simulations.positional.proved_runs import Enclosure, TubeComparison
from simulations.reproduction.claim import Context
from simulations.reproduction.predicates import Verdict
from simulations.reproduction.registry import load
from simulations.validated import prove
from tests.closeness import close

INSIDE = TubeComparison(np.full((2, 3), 0.5), 1e-6)

CACHED = proved_runs.flow, proved_runs.checked_flow, proved_runs.reduced_flow


@pytest.fixture
def short(monkeypatch):
    """Set horizons with tubes that take a second."""

    def to(horizon):
        enclosures = {
            problem: Enclosure(horizon, horizon, 1e-3) for problem in proved_runs.ENCLOSURES
        }
        # a tube of 0.5 is thinner than full matrices are integrated
        enclosures[proved_runs.SMALL] = proved_runs.ENCLOSURES[proved_runs.SMALL]
        monkeypatch.setattr(proved_runs, "ENCLOSURES", enclosures)
        for cached in CACHED:
            cached.cache_clear()

    yield to
    for cached in CACHED:
        cached.cache_clear()


@pytest.fixture(scope="module")
def proof():
    return prove(proved_runs.SMALL, horizon=1.0, tolerance=1e-3)


def verdict_of(claim, row):
    """Return the verdict of one tube."""
    return claim.TUBES.check(claim.TUBES.frame([row])).verdict


def quick(claim_id):
    """Return the tables of a quick run."""
    outcome = load(claim_id).run(Context(quick=True))
    assert outcome.measurement.figures
    return outcome


def checked_from(problem, horizon, start):
    return proved_runs.checked(prove(problem, horizon=horizon, initial=start))


class TestCompareWithTube:
    times = np.array([0.1, 0.5, 1.0])

    def states(self):
        population = Population(proved_runs.SMALL, tolerance=1e-12)
        flow = gradient_flow(population, horizon=1.0, rtol=1e-11)
        return np.array([flow.at(time) for time in self.times.tolist()])

    def test_a_solution_is_inside(self, proof):
        outcome = proved_runs.compare_with_tube(proof, self.times, self.states())
        assert outcome.row["share"] <= 1.0
        assert outcome.share.shape == (3, 3)

    @pytest.mark.parametrize("coordinate", [0, 1, 2])
    def test_twice_the_radius_is_outside(self, proof, coordinate):
        states = self.states()
        low, high = proof.at(0.5)[coordinate]
        states[1, coordinate] += high - low
        assert proved_runs.compare_with_tube(proof, self.times, states).row["share"] > 1.0

    def test_no_times_are_not_inside(self):
        assert not TubeComparison(np.empty((0, 3)), 0.0).row["share"] <= 1.0

    def test_full_matrices(self, proof):
        """Check that they are inside, and outside the tube of a slightly different problem."""
        assert proved_runs.full_flow(proof, seed=3).row["share"] <= 1.0
        other = prove(proved_runs.SMALL.replace(beta=0.9), horizon=1.0, tolerance=1e-3)
        states = np.array([other.at(time) for time in self.times.tolist()]).mean(axis=2)
        assert proved_runs.compare_with_tube(proof, self.times, states).row["share"] > 1.0


class TestGammaGeRhoProved:
    def test_holds_late_in_training(self):
        """Use a state late in training, for which one short piece is enough."""
        checked = checked_from(proved_runs.SQUARE, 1e-3, State(0.084, 1.0, -10.0))
        row = proved.row(proved_runs.SQUARE, checked, INSIDE, 1e-3)
        assert verdict_of(proved, row) is Verdict.HOLDS
        assert verdict_of(proved, row | {"horizon": 2e-3}) is Verdict.FINDING
        assert verdict_of(proved, row | {"share": 1.5}) is Verdict.FAILS

    @pytest.mark.slow
    @pytest.mark.traced
    def test_a_short_tube_from_the_start_is_a_finding(self, short):
        short(0.5)
        outcome = quick("gamma-ge-rho-proved")
        assert outcome.verdict is Verdict.FINDING
        (row,) = outcome.tables["tubes"].data.to_dict("records")
        assert (row["positive_from"], row["forever"]) == (0.0, False)
        assert row["share"] <= 1.0


class TestGammaGeRhoRefuted:
    @pytest.mark.slow
    def test_intervals(self, short, monkeypatch):
        short(0.5)
        monkeypatch.setattr(refuted, "problems", lambda: (runs.CROWDED, proved_runs.SIMPLEST))
        outcome = quick("gamma-ge-rho-refuted")
        assert outcome.verdict is Verdict.FINDING
        crowded, simplest = outcome.tables["tubes"].data.to_dict("records")
        assert crowded["negative_until"] > 0.49
        assert 0.15 < crowded["negative_from"] < 0.18
        assert simplest["depth"] > 1e-3
        population = Population(proved_runs.SIMPLEST, tolerance=1e-12)
        end = gradient_flow(population, horizon=0.5, rtol=1e-10).final
        assert end.rho - end.gamma >= simplest["depth"]

    @pytest.mark.slow
    def test_fails_before_gamma_falls_below_rho(self):
        problem = runs.CROWDED
        checked = proved_runs.checked(prove(problem, horizon=0.1, tolerance=1e-4))
        assert verdict_of(refuted, refuted.row(problem, checked, INSIDE)) is Verdict.FAILS


class TestTheorem:
    problem = proved_runs.SQUARE

    def test_holds_late_in_training(self):
        """Use a state late in training, for which one short piece is enough."""
        late = checked_from(self.problem, 1e-3, State(0.084, 1.0, -10.0))
        row = theorem.row(self.problem, late, 1e-3, 0.095)
        close(row["most"], 0.095 + 1 / 16, rel=1e-12)
        assert np.isnan(row["associates_until"])
        assert verdict_of(theorem, row) is Verdict.HOLDS
        assert verdict_of(theorem, theorem.row(self.problem, late, 2e-3, 0.095)) is Verdict.FINDING
        assert verdict_of(theorem, theorem.row(self.problem, late, 1e-3, -0.05)) is Verdict.FINDING

    def test_finding_before_association(self):
        early = checked_from(self.problem, 1e-3, State(0.084, 1.0, 1.5))
        row = theorem.row(self.problem, early, 1e-3, 1.0)
        assert not row["associates"]
        assert verdict_of(theorem, row) is Verdict.FINDING

    def test_an_incomplete_training_is_not_judged(self):
        problems = self.problem, proved_runs.SQUARE_OF_FOUR
        checked = checked_from(self.problem, 1e-3, State(0.084, 1.0, -10.0))
        rows = [theorem.row(problem, checked, 1e-3, 0.1) for problem in problems]
        judged = theorem.TUBES.check(theorem.TUBES.frame(rows)).judged
        assert judged.tolist() == [True, False]

    @pytest.mark.slow
    def test_trainings_stay_in_their_tubes(self, short):
        short(0.5)
        outcome = quick("theorem-4.1-proved")
        trainings = outcome.tables["trainings"].data
        assert len(trainings) == 5
        assert trainings.share.between(0.0, 1.0, inclusive="right").all()
        assert trainings.index.str.contains("full matrices").sum() == 2
        assert outcome.finding.startswith("Proved at the end of 1 of 1 judged tubes")
