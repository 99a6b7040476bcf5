"""Effects judged from an interval, and judges that have nothing to judge."""

import math

import numpy as np
import pandas as pd
import pytest

from simulations.reproduction.effects import PARTS, Effect, effect, parts, verdict_of
from simulations.reproduction.intervals import in_text, mean_of, of_mean
from simulations.reproduction.predicates import Verdict
from simulations.vision.claims import augmentation, figure_6_7
from tests.closeness import close

SHOWN, ABSENT, UNDECIDED = Effect


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.01, 9.0, SHOWN),
        (1.01, 1.4, SHOWN),  # small, but surely there
        (1.0, 1.6, UNDECIDED),
        (1.0, 1.5, UNDECIDED),
        (1.0, 1.49, ABSENT),
        (0.2, 0.3, ABSENT),
        (-9.0, 9.0, UNDECIDED),
        (math.nan, math.nan, UNDECIDED),
        (0.5, math.inf, UNDECIDED),
    ],
)
def test_an_effect_by_its_interval(low, high, expected):
    assert effect(low, high, none=1.0, least=1.5) is expected


@pytest.mark.parametrize(
    ("effects", "verdict"),
    [
        ([SHOWN, SHOWN], Verdict.HOLDS),
        ([ABSENT, ABSENT], Verdict.FAILS),
        ([SHOWN, ABSENT], Verdict.FINDING),
        ([SHOWN, UNDECIDED], Verdict.FINDING),
        ([ABSENT, UNDECIDED], Verdict.FINDING),
        ([UNDECIDED], Verdict.FINDING),
        ([], Verdict.FINDING),
    ],
)
def test_the_verdict_of_effects(effects, verdict):
    assert verdict_of(effects) is verdict


@pytest.mark.parametrize(
    ("shown", "absent", "verdict"),
    [
        ([True, True], [False, False], Verdict.HOLDS),
        ([False, False], [True, True], Verdict.FAILS),
        ([False, True], [True, False], Verdict.HOLDS),
        ([False, False], [True, False], Verdict.HOLDS),
    ],
)
def test_parts_fail_where_every_one_is_absent(shown, absent, verdict):
    """Whether each is shown is a predicate of the parts themselves."""
    table = parts(pd.Series(shown), pd.Series(absent))
    assert table.iloc[0].tolist() == [sum(shown), sum(absent), 2]
    assert PARTS.check(table).verdict is verdict


@pytest.mark.parametrize(
    "judged",
    [
        lambda: figure_6_7.judge({}, {}),
        lambda: augmentation.judge({}),
    ],
)
def test_nothing_measured_is_a_finding(judged):
    verdict, sentence = judged()
    assert verdict is Verdict.FINDING
    assert sentence.endswith(".")


class TestAugmentation:
    @staticmethod
    def found(low, high):
        """Return runs whose 95 % interval of the mean z is this."""
        middle, half = (low + high) / 2, (high - low) / 2
        z = np.array([-1.0, 0.0, 0.0, 0.0, 1.0])
        z = middle + z * half / (of_mean(z)[1] - z.mean())
        every = dict.fromkeys(augmentation.Found._fields, np.zeros(5))
        return augmentation.Found(**every)._replace(z=z)

    @pytest.mark.parametrize(
        ("shifted", "plain", "verdict"),
        [
            ((0.1, 4.0), (0.1, 4.0), Verdict.HOLDS),
            ((0.1, 4.0), (-0.1, 4.0), Verdict.FINDING),
            ((-0.1, 4.0), (0.1, 4.0), Verdict.FINDING),  # too wide to be decided
            ((-0.1, 2.1), (-4.0, -2.0), Verdict.FINDING),
            ((-0.1, 1.9), (0.1, 4.0), Verdict.FAILS),
            ((-0.1, 1.9), (-4.0, -2.0), Verdict.FAILS),
        ],
    )
    def test_each_alone(self, shifted, plain, verdict):
        found = {
            (kind, name): self.found(*(shifted if name == augmentation.SHIFTS else plain))
            for kind in (augmentation.VANILLA, augmentation.POSITIONAL)
            for name in (augmentation.SHIFTS, augmentation.NONE)
        }
        assert augmentation.judge(found)[0] is verdict

    @pytest.mark.parametrize(("high", "competes"), [(0.0299, True), (0.0301, False)])
    def test_competing_is_by_the_end_of_the_interval(self, high, competes):
        difference = self.found(-0.01, high).z
        compared = figure_6_7.Compared(0.1 + difference, np.full(5, 0.1), 1.5)
        assert compared.competes is competes


def test_a_mean_in_text_has_its_interval():
    values = [0.2, 0.4, 0.6]
    mean, low, high = mean_of(values)
    close(mean, 0.4, rel=1e-12)
    close((low + high) / 2, 0.4, rel=1e-12)
    close((high - low) / 2, 4.302652729911275 * 0.2 / math.sqrt(3.0), rel=1e-9)
    assert in_text(values) == f"0.40 ({low:.2f} to {high:.2f})"
    assert in_text([0.4], ".1f") == "0.4"
    assert of_mean(values, 0.5)[1] < high
