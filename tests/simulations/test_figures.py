"""The style that all figures share."""

import numpy as np
from matplotlib.figure import Figure as Canvas

from simulations.figures import style


class TestStyle:
    def test_names_of_problems_become_mathematics(self):
        assert style.pretty("D=8, qD=2, nu=0.1") == r"$D=8$, $qD=2$, $\nu=0.1$"

    def test_every_quantity_has_its_own_colour_and_label(self):
        assert set(style.COLOURS) == set(style.LABELS)
        names = list(style.COLOURS)
        second = names.index("Phi_n")
        for theory in (names[:second], names[second:]):
            assert len({style.COLOURS[name] for name in theory}) == len(theory)

    def test_missing_events_are_not_shaded(self):
        ax = Canvas().subplots()
        ax.set_xscale("log")
        ax.set_xlim(1.0, 1e4)
        assert len(style.shade_events(ax, (10.0, np.nan))) == 2
        assert len(style.shade_events(ax, (10.0, 100.0))) == 3


class TestSignedAxis:
    def ticks(self, values):
        ax = Canvas().subplots()
        style.signed_log(ax, "y", 1e-6, values)
        return [float(f"{tick:.0e}") for tick in ax.get_yticks()], ax.get_ylim()

    def test_both_signs_have_few_ticks_and_none_near_0(self):
        ticks, (low, high) = self.ticks([-3.0, 1e-7, 0.02])
        assert ticks == [-1.0, -0.01, -0.0001, 0.0, 1e-05, 0.0001, 0.001, 0.01]
        assert (low, high) == (-6.0, 0.04)

    def test_it_ends_where_no_value_is(self):
        ticks, (low, _) = self.ticks([0.0, 1e-8, 5.0])
        assert min(ticks) == 0.0
        assert low == -1e-6
