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
