"""The claims of the third theory: complete, able to come out otherwise, drawn from their data."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from dynamics.shallow import ShallowPopulation, ShallowProblem
from simulations.files.store import write_dataset
from simulations.reproduction.claim import Verdict
from simulations.reproduction.fits import Exponent
from simulations.reproduction.registry import claim_ids, load
from simulations.shallow import runs
from simulations.shallow.claims import PAPER, noise
from simulations.shallow.claims.proposition_2 import FLAT, READ, Found, Table
from simulations.shallow.claims.proposition_2 import judge as judge_attention
from simulations.shallow.claims.reduction import compare
from simulations.shallow.claims.sample_complexity import judge as judge_samples
from simulations.shallow.claims.sample_complexity import seen_by_half
from simulations.shallow.claims.sparsification import NAMES, helps
from simulations.shallow.claims.sparsification import judge as judge_removal
from simulations.shallow.claims.theorem_1_iterations import Law
from simulations.shallow.claims.theorem_1_iterations import judge as judge_iterations
from tests.closeness import close, within
from tests.simulations.quick import assert_complete, figures, verdict

IDS = tuple(claim_id for claim_id in claim_ids() if claim_id.startswith("li-"))
HOLDS, FAILS, FINDING = Verdict.HOLDS, Verdict.FAILS, Verdict.FINDING
EXPECTED = {"li-reduction": HOLDS, "li-conserved": HOLDS, "li-theorem-1-iterations": HOLDS}


def test_they_stand_together_in_the_registry():
    first = claim_ids().index(IDS[0])
    assert len(IDS) >= 3
    assert claim_ids()[first : first + len(IDS)] == IDS


@pytest.mark.slow
@pytest.mark.traced
@pytest.mark.parametrize("claim_id", IDS)
def test_each_is_complete_and_comes_out_as_known(claim_id):
    assert_complete(claim_id)
    assert load(claim_id).paper is PAPER
    assert load(claim_id).criterion.endswith(".")
    assert verdict(claim_id) is EXPECTED.get(claim_id, FINDING)
    assert figures((claim_id,))


@pytest.mark.slow
@pytest.mark.traced
def test_figures_are_drawn_from_their_stored_data(tmp_path):
    from matplotlib.figure import Figure as Canvas

    drawn = figures(IDS)
    assert len({figure.name for figure in drawn}) == len(drawn)
    for figure in drawn:
        write_dataset(tmp_path / f"{figure.name}.nc", figure.data)
        canvas = Canvas(figsize=figure.size, layout="constrained")
        figure.draw(canvas)
        canvas.canvas.draw()
        assert any(ax.lines or ax.collections for ax in canvas.axes)


class TestJudgesBothWays:
    @pytest.mark.parametrize(
        ("low", "high", "verdict"),
        [(0.99, 1.02, HOLDS), (1.01, 1.02, FAILS), (0.8, 1.2, FINDING)],
    )
    def test_iterations(self, low, high, verdict):
        without = Law(None, Exponent((2.0,) * 3, 1.99, 2.01), 2.0)
        trained = Law(10.0, Exponent((1.0,) * 3, low, high), 1.0)
        assert judge_iterations([without, trained])[0] is verdict
        assert judge_iterations([without])[0] is FAILS

    @pytest.mark.parametrize(
        ("without", "trained", "hinge", "verdict"),
        [
            (-4.0, -1.4, -1.2, FINDING),
            (-4.0, -1.4, -3.9, HOLDS),
            (-3.2, -1.4, -1.2, FAILS),
            (-4.0, -2.8, -1.2, FAILS),
        ],
    )
    def test_samples(self, without, trained, hinge, verdict):
        slopes = {("first order", None): without, ("hinge", None): hinge, ("slides", None): -11.0}
        for ratio in (1.0, 3.0):
            slopes |= {(regime, ratio): trained for regime in ("first order", "hinge", "slides")}
        assert judge_samples({key: (x, x, x) for key, x in slopes.items()})[0] is verdict

    @pytest.mark.parametrize("regime", ["first order", "hinge"])
    @pytest.mark.parametrize(
        ("ratio", "low", "high", "part"),
        [
            (None, -4.0, -3.51, HOLDS),
            (None, -4.0, -3.49, FINDING),
            (None, -3.51, -3.0, FINDING),
            (None, -3.49, -3.0, FAILS),
            *(
                (ratio, *ends)
                for ratio in (1.0, 3.0)
                for ends in (
                    (-2.49, -1.0, HOLDS),
                    (-2.51, -1.0, FINDING),
                    (-3.0, -2.49, FINDING),
                    (-3.0, -2.51, FAILS),
                )
            ),
        ],
    )
    def test_samples_by_the_interval_of_each_slope(self, regime, ratio, low, high, part):
        """Trained on the statement is not excluded: it holds in one regime only."""
        slopes = {(name, None): (-4.2, -4.5, -3.9) for name in ("first order", "hinge", "slides")}
        for name in ("first order", "hinge", "slides"):
            slopes |= {(name, one): (-1.3, -1.6, -1.0) for one in (1.0, 3.0)}
        assert judge_samples(slopes)[0] is HOLDS
        slopes[regime, ratio] = ((low + high) / 2.0, low, high)
        expected = FINDING if regime == "hinge" and part is FAILS else part
        assert judge_samples(slopes)[0] is expected

    def test_half_of_the_training_sets_hold_every_sample(self):
        """By drawing them: a coin for each of two kinds, and six kinds by trial."""
        close(seen_by_half(2), 2.0, rel=1e-10)
        drawn = np.random.default_rng(0).integers(0, 6, (4000, 40))
        seen = [np.mean([len(set(row[:N])) == 6 for row in drawn.tolist()]) for N in (12, 13)]
        assert seen[0] < 0.52
        assert seen[1] > 0.48
        assert 12.0 < seen_by_half(6) < 13.0

    def test_half_of_the_training_sets(self):
        close(runs.half_passed([8, 32, 128], np.array([0.0, 0.25, 0.75])), 64.0, rel=1e-12)
        assert runs.half_passed([8, 32], np.array([0.6, 1.0])) == 8.0
        assert runs.half_passed([8, 32], np.array([0.0, 0.4])) == 32.0  # not within the range

    @pytest.mark.parametrize(
        ("changes", "quieter", "verdict"),
        [
            ({}, {}, HOLDS),
            ({"15 irrelevant": 0.1}, {}, FINDING),  # as with all tokens
            ({"15 noisiest": 0.08}, {}, FINDING),  # no better than random ones
            ({"15 irrelevant": 0.2, "15 noisiest": 0.2}, {}, FINDING),  # at one level of noise
            (*({"15 irrelevant": 0.2, "15 noisiest": 0.2},) * 2, FAILS),
            ({"15 relevant": 0.05}, {}, FAILS),
        ],
    )
    def test_sparsification(self, changes, quieter, verdict):
        usual = dict(zip(NAMES, (0.1, 0.05, 0.04, 0.01, 0.07, 0.9)))
        seeds = np.random.default_rng(0).uniform(-0.01, 0.01, (6, 10))
        by = {
            noise: {name: usual[name] + one for name, one in zip(NAMES, seeds)}
            | {name: value + seeds[0] for name, value in change.items()}
            for noise, change in ((2.0, quieter), (4.0, changes))
        }
        assert judge_removal(by)[0] is verdict

    @pytest.mark.parametrize("other", ["nothing", "15 random"])
    @pytest.mark.parametrize(
        ("beyond", "effect"),
        [(1.02, "shown"), (0.98, "undecided"), (-0.98, "undecided"), (-1.02, "absent")],
    )
    def test_removal_helps_by_the_interval_against_each(self, other, beyond, effect):
        """Less by more than the half-width of Student's interval at .9975."""
        signs = np.tile([1.0, -1.0], 8)  # 16 runs, standard error s / sqrt(15)
        half = stats.t.ppf(0.5 + 0.9975 / 2.0, 15) / math.sqrt(15.0)
        removed = np.full(16, 0.5)
        losses = {"nothing": np.full(16, 2.0), "15 random": np.full(16, 2.0)}
        losses |= {"15 irrelevant": removed}
        losses[other] = removed + 0.01 * (beyond * half + signs)
        assert helps(losses, "15 irrelevant", 2) == effect

    @pytest.mark.parametrize(
        ("changes", "verdict"),
        [
            ({}, FINDING),
            ({"C": 0.5}, HOLDS),
            ({"C": FLAT}, HOLDS),
            ({"C": FLAT - 1e-9}, FINDING),
            ({"by_rho": np.array([0.03, 0.03])}, HOLDS),
            ({"by_rho": np.array([0.03, 0.015])}, HOLDS),  # half of it, not less
            ({"by_rho": np.array([0.03, 0.0149])}, FINDING),
            ({"rate": -0.5}, FAILS),
            ({"rate": -0.999}, FAILS),
            ({"rate": -1.0, "C": 0.5}, HOLDS),
            ({"ends": np.array([0.81])}, FAILS),  # above the plateau
            ({"ends": np.array([0.7])}, FAILS),
            ({"ends": np.array([0.7501]), "C": 0.5}, HOLDS),
            ({"ends": np.array([0.7499]), "C": 0.5}, FAILS),
        ],
    )
    def test_attention(self, changes, verdict):
        assert judge_attention(dataclasses.replace(attention(), **changes))[0] is verdict

    @pytest.mark.parametrize("side", [1.0, -1.0])
    @pytest.mark.parametrize(
        ("place", "allowed"),
        [(0, 0.02), (1, 0.1), (2, 0.1), (3, 0.1), (4, 0.1), (5, 0.02)],
    )
    @pytest.mark.parametrize(
        ("ends", "verdict"),
        [((0.0, 0.99), HOLDS), ((0.99, 1.01), FINDING), ((-1.01, 0.0), FINDING),
         ((1.01, 1.5), FAILS), ((-2.0, 2.0), FINDING)],
    )  # fmt: skip
    def test_attention_by_the_interval_of_its_curve(self, ends, verdict, place, allowed, side):
        """Ends as multiples of what is allowed there."""
        curve = attention().curve.copy()
        curve[place] = sorted(READ[place] + side * allowed * end for end in ends)
        found, words = judge_attention(dataclasses.replace(attention(), curve=curve, C=0.5))
        assert found is verdict
        assert ("undecided" in words) == (verdict is FINDING)

    @pytest.mark.parametrize("knob", ["sigma", "delta", "tau"])
    @pytest.mark.parametrize("name", [noise.WITH, noise.TRAINED])
    @pytest.mark.parametrize(
        ("low", "high", "word", "verdicts"),
        [
            (1.01, 3.0, "grows", (HOLDS, FINDING)),
            (1.01, 1.4, "grows", (HOLDS, FINDING)),
            (1.0, 1.5, "undecided", (FINDING, FINDING)),  # ends that do not count
            (1.0, 1.49, "does not grow", (FINDING, FAILS)),
            (0.5, 3.0, "undecided", (FINDING, FINDING)),
        ],
    )
    def test_noise(self, low, high, word, verdicts, name, knob):
        """One part alone, the other five measured and then absent."""
        for others, expected in zip(((2.0, 1.5, 3.0), (1.0, 0.9, 1.1)), verdicts):
            growth = {
                run: dict.fromkeys(noise.KNOBS, others) for run in (noise.WITH, noise.TRAINED)
            }
            growth[name][knob] = (1.2, low, high)
            found, words = noise.judge(growth, (1.5, (0.1, 0.05, 0.15)), {0.0: 1.0, 2.0: 0.25})
            assert found is expected
            assert f", {word}) with {knob}" in words
        assert "at sigma = 2 all samples there are suffice for 25% of starts" in words


def attention() -> Found:
    """Return what `li-proposition-2` looks at where the curve is the slides' and C is 0."""
    table = Table([0.1], [3.0], *(np.zeros((1, 1, 2)) for _ in range(2)), np.zeros((1, 2)))
    curve = np.array(READ)[:, None] + [-0.001, 0.001]
    return Found(
        curve,
        np.array([0.79]),
        np.array([0.8]),
        -1.4,
        0.0,
        np.array([0.01]),
        np.array([0.03, 0.001]),
        table,
    )


def test_the_oracle_tells_another_rate(monkeypatch):
    """The comparison of `li-reduction` can fail."""
    from simulations.shallow.claims import reduction

    monkeypatch.setattr(reduction, "STEPS", 50)
    draw = (3, 3, 4, 6, 2, 2, 6)
    assert compare(draw, 0)[0].max() < 1e-13
    step = reduction.EVERY
    monkeypatch.setattr(reduction, "EVERY", 2 * step)
    close(compare(draw, 0)[0][-1] + 1.0, 1.0, rel=1e-12)
    from dynamics.shallow import oracle

    true = oracle.step
    monkeypatch.setattr(oracle, "step", lambda w, b, r: true(w, b, (r[0], 1.01 * r[1])))
    assert compare(draw, 0)[0].max() > 1e-6


class TestNoise:
    KIND = noise.RUNS[noise.WITHOUT]

    def test_without_attention_a_sample_is_its_mean(self):
        """Training on means is training on tokens, to rounding."""
        from dynamics.shallow import draw_tokens, train_on_tokens

        problem, rng = noise.problem(attend=False), np.random.default_rng(0)
        start = runs.token_start(problem, rng)
        drawn = draw_tokens(problem, 12, rng, noise=1.0)
        ends = [
            train_on_tokens(one, **start, steps=30, learning_rate=0.5, attention=False)
            for one in (drawn, noise.pooled(drawn))
        ]
        assert np.abs(ends[0].F).min() > 1e-3
        within(ends[1].F, ends[0].F, 1e-12)

    def test_errors_have_their_norm_and_keep_their_direction(self):
        problem = noise.problem(attend=True)
        small, large = (
            noise.erring_start(problem, np.random.default_rng(1), sigma=size, delta=2.0 * size)
            for size in (0.5, 1.0)
        )
        for name, size in (("V", 0.5), ("K", 1.0), ("Q", 1.0)):
            off = small[name] - np.eye(10, 5)
            within(np.linalg.norm(off, axis=0), size, 1e-14)
            within(large[name] - np.eye(10, 5), 2.0 * off, 1e-14)
        assert np.array_equal(small["W_O"], large["W_O"])

    def test_more_samples_leave_fewer_errors(self):
        few, many = (
            np.mean([noise.count_error({}, self.KIND, N, seed, 0) for seed in range(6)])
            for N in (8, 2048)
        )
        assert few > 0.2
        assert many == noise.count_error({}, self.KIND, None, 0, 0) == 0.0

    def test_half_of_the_sets_by_a_known_share(self):
        """A seed suffices from a size of its own on: the median of these, to a doubling."""
        own = 3.0 * 1.5 ** np.arange(11)
        N, again = runs.half_of_sets(lambda place: place[0] >= own[place[1]], 11, 0)
        assert own[5] / 2.0 < N < own[5] * 2.0
        low, high = np.quantile(again, [0.025, 0.975])
        assert own[1] < low < N < high < own[9]
        assert runs.half_of_sets(lambda _: False, 3, 0, most=128)[0] == 128.0


class TestRuns:
    PROBLEM = ShallowProblem(L=10, alpha_confusion=0.1, background="single", neurons=10, xi=0.1)

    def test_descent_is_that_of_the_population(self):
        """The recorded losses are those of the house's solver at the same times."""
        from dynamics import gradient_descent

        found = runs.descend(self.PROBLEM, runs.symmetric_start(self.PROBLEM), 0.1, 0.7)
        run = gradient_descent(
            ShallowPopulation(self.PROBLEM),
            learning_rate=0.1,
            steps=40,
            record="linear",
            records=41,
        )
        within(found.hinge[:41], run.loss, 1e-12)
        within(found.attention[:41], run.attention, 1e-12)

    def test_the_moment_is_between_two_steps(self):
        found = runs.descend(self.PROBLEM, runs.symmetric_start(self.PROBLEM), 0.1, 0.7)
        steps = int(found.reached / 0.1)
        start = runs.symmetric_start(self.PROBLEM)
        before, after = (
            runs.descend(self.PROBLEM, start, 0.1, 0.0, most=number).hinge[-1]
            for number in (steps, steps + 1)
        )
        assert after < 0.7 <= before

    def test_threads_do_not_change_results(self):
        assert runs.side_by_side(lambda n: n * n, range(20)) == [n * n for n in range(20)]
