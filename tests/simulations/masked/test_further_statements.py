"""Statements of Huang et al.: measurements against independent computations."""

import matplotlib.figure
import pytest

from dynamics.masked import MaskedProblem
from simulations.masked import runs
from simulations.masked.claims import growth_stages, loss_lemma
from simulations.reproduction import snapshot
from tests.closeness import close, within
from tests.simulations.quick import result


class TestLossLemma:
    def test_uniform_attention_by_hand(self):
        # areas {0, 1} and {2, 3}, p = 2, two of four masked: {0, 2}, {1, 2} leave one patch of
        # each area (a_n = a_1 = 1/4), {2, 3} hides p's area (a_1 = 1/2)
        problem = MaskedProblem.from_sizes([2, 2], query=2)
        row = loss_lemma.at_random(problem, 0.0, (0,))
        close(row["raw"], (2 * (9 + 1) / 16 + 1 + 1 / 4) / 12, 1e-14)
        close(row["loss"], row["raw"], 1e-14)
        close(row["floor"], 1 / 12, 1e-14)
        close(row["shortfall"], 2 * (9 / 16) / 6, 1e-14)
        within(row["aligned"], row["floor"], 1e-14)

    def test_the_scale_drops_out(self):
        problem = MaskedProblem.from_sizes([3, 2, 2], query=4)
        rows = [loss_lemma.at_random(problem.replace(z_low=z), 0.0, (1,)) for z in (1.0, 0.5)]
        close(rows[1], rows[0], 1e-13)


class TestGrowthStages:
    @pytest.mark.parametrize("regime", [runs.WIDE_GAP, runs.NARROW_GAP])
    def test_the_speed_peaks_where_a_third_of_the_attention_is(self, regime):
        stages = growth_stages.stages(regime.problem())
        within(stages["attention_peak"], 1 / 3, 0.03)  # the maximum of a (1 - a)^2
        assert 1.0 <= stages["lead_start"] < 1.1  # the switch
        close(stages["boost"], speed(1 / 3) / speed(stages["attention_start"]), 0.02)


def speed(attention: float) -> float:
    return attention * (1.0 - attention) ** 2


@pytest.mark.traced
@pytest.mark.parametrize("claim_id", ["huang-loss-lemma", "huang-growth-stages"])
def test_a_quick_run_has_the_verdict_of_the_snapshot_and_its_figures(claim_id):
    outcome = result(claim_id)
    assert outcome.verdict == snapshot.read()[claim_id]["quick"]["verdict"]
    for figure in outcome.measured.figures:
        canvas = matplotlib.figure.Figure()
        figure.draw(canvas)
        assert canvas.axes
