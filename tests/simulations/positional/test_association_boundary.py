"""The boundary of gamma >= rho: independent values of its equations, its curve, its verdict."""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from dynamics import Population, SlowManifold, State
from simulations.positional.association_boundary import (
    Family,
    boundary,
    conditions,
    leaves_upwards,
    limit_boundary,
    limit_drift,
    quasi_steady,
)
from simulations.positional.claims.gamma_ge_rho_boundary import FLOWS, MAPS, Flow, Map, _counts
from simulations.positional.symmetric_line import critical_alpha
from simulations.reproduction.predicates import Verdict
from tests.closeness import close
from tests.simulations.quick import result

FAMILY = Family(16, 2, 3, 1e-3)


class TestConditions:
    @pytest.mark.parametrize("family", [FAMILY, Family(12, 3, 5, 0.05)])
    def test_signs_are_those_of_the_population_gradient(self, family):
        population = Population(family.problem(1.1, 0.7), tolerance=1e-10)
        settled = quasi_steady(family, 1.1, 0.7)
        close(settled, SlowManifold(population).alpha(0.0, 0.0), rel=1e-6)
        for alpha in np.geomspace(0.3, 3.0, 8) * settled:
            result = conditions(family, float(alpha), 1.1, 0.7)
            gradient = population.gradient(State(float(alpha), 0.0, 0.0))
            assert result.slope * -gradient.alpha > 0.0
            assert result.drift * (gradient.rho - gradient.gamma) > 0.0

    def test_drift_vanishes_at_the_critical_alpha(self):
        critical = critical_alpha(FAMILY.problem(1.5, 0.5))
        assert abs(conditions(FAMILY, critical, 1.5, 0.5).drift) < 1e-8
        assert conditions(FAMILY, 0.99 * critical, 1.5, 0.5).drift > 1e-5


class TestCurve:
    def test_critical_alpha_is_alpha_star_along_it(self):
        curve = boundary(FAMILY, (0.1, 1.0), (0.2, 10.0), step=0.2)
        assert curve[-1, 2] >= 1.0
        for alpha, density, beta in curve[[0, len(curve) // 2, -1]].tolist():
            close(critical_alpha(FAMILY.problem(density, beta)), alpha, rel=1e-5)
            close(quasi_steady(FAMILY, density, beta), alpha, rel=1e-5)
            assert leaves_upwards(FAMILY, 0.97 * density, beta)
            assert not leaves_upwards(FAMILY, 1.03 * density, beta)

    def test_nothing_where_no_sign_changes(self):
        assert boundary(FAMILY, (0.1, 1.0), (0.2, 0.5)).shape == (0, 3)


class TestLimit:
    def test_cubic_activation_has_none(self):
        for density in (0.05, 1.0, 20.0):
            for linear in (True, False):
                assert limit_drift(4, 3, density, 1e-3, linear) > 0.0
        assert np.isnan(limit_boundary(4, 3, np.array([0.1, 1.0]))).all()

    def test_finite_sizes_approach_it(self):
        """At fixed nu alpha is on the linear branch from D = 10^6 on."""
        beta = float(limit_boundary(2, 5, np.array([2.0]))[0])
        assert 0.05 < beta < 0.15
        family = Family(10**6, 2, 5, 0.1)
        assert leaves_upwards(family, 2.0, 1.05 * beta)
        assert not leaves_upwards(family, 2.0, 0.95 * beta)


class TestVerdict:
    def verdict(self, flows):
        """Return the verdict of a map of flows."""
        entry = Map(FAMILY, "", {}, flows)
        layouts = {"flows": FLOWS, "maps": MAPS}
        rows = {
            "flows": [entry.levels | flow._asdict() for flow in flows],
            "maps": [entry.levels | _counts(flows)],
        }
        checked = [layouts[name].check(layouts[name].frame(rows[name])) for name in rows]
        return max((table.verdict for table in checked), key=list(Verdict).index)

    def flows(self, wrong):
        """Return flows on both sides, one near the boundary on the wrong side."""
        right = [Flow(1.0, 1.0, True, True, False), Flow(4.0, 1.0, False, False, False)]
        return [*right, Flow(2.0, 1.0, True, False, True), Flow(5.0, 1.0, wrong, False, False)]

    @pytest.mark.parametrize(("wrong", "verdict"), [(False, Verdict.HOLDS), (True, Verdict.FAILS)])
    def test_one_flow_away_from_the_boundary_on_the_wrong_side_fails(self, wrong, verdict):
        assert self.verdict(self.flows(wrong)) is verdict

    def test_a_map_without_both_sides_is_a_finding(self):
        assert self.verdict(self.flows(False)[:1]) is Verdict.FINDING


@pytest.mark.slow
@pytest.mark.traced
def test_quick_run():
    measurement = result("gamma-ge-rho-boundary").measurement
    assert math.isfinite(measurement.tables["limits"].least_drift[3, "fixed nu"])
    (figure,) = measurement.figures
    canvas = Figure(figsize=figure.size, layout="constrained")
    figure.draw(canvas)
    assert len(canvas.axes) == 1
