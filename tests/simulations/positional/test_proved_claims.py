"""Claims about what is proved: their verdicts follow the tubes, and can come out otherwise."""

import numpy as np
import pytest

from dynamics import Population, State, gradient_flow
from simulations.positional import proved_runs, runs
from simulations.positional.claims import gamma_ge_rho_proved as proved
from simulations.positional.claims import gamma_ge_rho_refuted as refuted
from simulations.positional.claims import theorem_4_1_proved as theorem
from simulations.positional.proved_runs import Beside, Plan
from simulations.reproduction.claim import Context, Verdict
from simulations.validated import prove

INSIDE, OUTSIDE = Beside(np.full((2, 3), 0.5), 1e-6), Beside(np.full((2, 3), 1.5), 1e-6)

CACHED = proved_runs.flow, proved_runs.checked_flow, proved_runs.reduced_flow


@pytest.fixture
def short(monkeypatch):
    """Horizons of which a tube takes a second."""

    def to(horizon):
        plans = {problem: Plan(horizon, horizon, 1e-3) for problem in proved_runs.PLANS}
        # a tube of 0.5 is thinner than full matrices are integrated
        plans[proved_runs.SMALL] = proved_runs.PLANS[proved_runs.SMALL]
        monkeypatch.setattr(proved_runs, "PLANS", plans)
        for cached in CACHED:
            cached.cache_clear()

    yield to
    for cached in CACHED:
        cached.cache_clear()


@pytest.fixture(scope="module")
def proof():
    return prove(proved_runs.SMALL, horizon=1.0, tolerance=1e-3)


def checked_from(problem, horizon, start):
    return proved_runs.checked(prove(problem, horizon=horizon, initial=start))


class TestBeside:
    times = np.array([0.1, 0.5, 1.0])

    def states(self):
        population = Population(proved_runs.SMALL, tolerance=1e-12)
        flow = gradient_flow(population, horizon=1.0, rtol=1e-11)
        return np.array([flow.at(time) for time in self.times.tolist()])

    def test_a_run_inside(self, proof):
        found = proved_runs.beside(proof, self.times, self.states())
        assert found.inside
        assert found.share.shape == (3, 3)

    @pytest.mark.parametrize("coordinate", [0, 1, 2])
    def test_twice_the_radius_is_outside(self, proof, coordinate):
        states = self.states()
        low, high = proof.at(0.5)[coordinate]
        states[1, coordinate] += high - low
        assert not proved_runs.beside(proof, self.times, states).inside

    def test_nothing_is_not_inside(self):
        assert not Beside(np.empty((0, 3)), 0.0).inside

    def test_full_matrices(self, proof):
        """They are inside, and outside the tube of a problem that differs a little."""
        assert proved_runs.full_flow(proof, seed=3).inside
        other = prove(proved_runs.SMALL.replace(beta=0.9), horizon=1.0, tolerance=1e-3)
        states = np.array([other.at(time) for time in self.times.tolist()]).mean(axis=2)
        assert not proved_runs.beside(proof, self.times, states).inside


class TestGammaGeRhoProved:
    problem = proved_runs.SQUARE

    def test_for_ever(self):
        """From a state late in training one short piece is enough."""
        checked = checked_from(self.problem, 1e-3, State(0.084, 1.0, -10.0))
        verdict, summary = proved.judge({self.problem: proved.Judged(checked, INSIDE, 1e-3)})
        assert verdict is Verdict.HOLDS
        assert "for all t > 0 at D=16" in summary
        cut = proved.Judged(checked, INSIDE, 2e-3)
        assert proved.judge({self.problem: cut})[0] is Verdict.FINDING
        verdict, summary = proved.judge({self.problem: proved.Judged(checked, OUTSIDE, 1e-3)})
        assert verdict is Verdict.FAILS
        assert "leaves the tube" in summary

    def test_a_short_tube_is_not_for_ever(self, short):
        short(0.5)
        found = proved.run(Context(quick=True))
        assert found.verdict is Verdict.FINDING
        assert "gamma > rho is proved from time 0 on" in found.summary
        assert found.number("forever") is False
        assert found.number("share") <= 1.0
        assert found.figures


class TestGammaGeRhoRefuted:
    def test_intervals(self, short, monkeypatch):
        short(0.5)
        monkeypatch.setattr(refuted, "problems", lambda: (runs.CROWDED, proved_runs.SIMPLEST))
        found = refuted.run(Context(quick=True))
        assert found.verdict is Verdict.FINDING
        assert found.number("negative_until", **runs.place(runs.CROWDED)) > 0.49
        assert 0.15 < found.number("negative_from", **runs.place(runs.CROWDED)) < 0.18
        assert found.number("depth", **runs.place(proved_runs.SIMPLEST)) > 1e-3
        population = Population(proved_runs.SIMPLEST, tolerance=1e-12)
        end = gradient_flow(population, horizon=0.5, rtol=1e-10).final
        assert end.rho - end.gamma >= found.number("depth", **runs.place(proved_runs.SIMPLEST))
        assert found.figures

    def test_before_it_turns_nothing_is_refuted(self):
        problem = runs.CROWDED
        checked = proved_runs.checked(prove(problem, horizon=0.1, tolerance=1e-4))
        verdict, summary = refuted.judge({problem: refuted.Refuted(checked, INSIDE)})
        assert verdict is Verdict.FAILS
        assert "not proved" in summary


class TestTheorem:
    problem = proved_runs.SQUARE

    def test_verdicts(self):
        """From a state late in training one short piece is enough; from the start it is not."""
        late = checked_from(self.problem, 1e-3, State(0.084, 1.0, -10.0))
        learned = theorem.Learned(self.problem, late, 1e-3, 0.095, True, 0.5)
        verdict, summary = theorem.judge({self.problem: learned}, {"flow": INSIDE})
        assert verdict is Verdict.HOLDS
        assert "association for ever" in summary
        assert theorem.judge({self.problem: learned}, {"flow": OUTSIDE})[0] is Verdict.FAILS
        longer = {self.problem: learned._replace(horizon=2e-3)}
        assert theorem.judge(longer, {"flow": INSIDE})[0] is Verdict.FINDING
        strict = learned._replace(label_error=-0.05)
        assert theorem.judge({self.problem: strict}, {"flow": INSIDE})[0] is Verdict.FINDING
        unjudged = {self.problem: learned, runs.BASE: strict._replace(judged=False)}
        verdict, summary = theorem.judge(unjudged, {"flow": INSIDE})
        assert verdict is Verdict.HOLDS
        assert "stops before anything is learned, loss 0.5 at the start" in summary
        assert theorem.judge({}, {})[0] is Verdict.FINDING

    def test_not_before_association(self):
        early = checked_from(self.problem, 1e-3, State(0.084, 1.0, 1.5))
        found = {self.problem: theorem.Learned(self.problem, early, 1e-3, 1.0, True, 0.5)}
        verdict, summary = theorem.judge(found, {"flow": INSIDE})
        assert verdict is Verdict.FINDING
        assert "patch association is not proved" in summary

    def test_trainings_stay_inside(self, short):
        short(0.5)
        found = theorem.run(Context(quick=True))
        shares = found.numbers("share")
        assert len(shares) == 5
        assert all(0.0 < one.value <= 1.0 for one in shares)
        assert sum("full matrices" in str(one.at["training"]) for one in shares) == 2
        assert theorem.CLAIM.finding(found).startswith("Proved at the end of 1 of 1 tubes")
        assert found.figures
