"""Each term of each bound of the Fourier method, in a case where it dominates the error."""

import itertools
import math

import numpy as np
import pytest

from dynamics import Problem, State
from dynamics.core.jit import plain_python
from dynamics.positional.population.fourier.assemble import assemble
from dynamics.positional.population.fourier.errors import (
    WeightErrors,
)
from dynamics.positional.population.fourier.goals import Target, prepare
from dynamics.positional.population.fourier.lines import (
    INTEGRATED,
    LEFT_OUT,
    NEGATIVE,
    design,
)
from dynamics.positional.population.fourier.method import FourierExpectation
from dynamics.positional.population.fourier.node_sums import node_sums
from dynamics.positional.population.fourier.set_law import set_law
from dynamics.positional.population.fourier.tables import Model
from dynamics.positional.population.fourier.tilts import (
    TILTS,
)
from dynamics.positional.population.fourier.windows import _aliases
from tests.dynamics.positional.ball_reference import reference

RARE = Problem(D=8, C=2, q=1e-12, nu=0.5)  # F has one value
FEW = Problem(D=8, C=2, q=0.3, nu=0.5)
MANY = Problem(D=9, C=3, q=0.5, nu=0.01)
CASES = [
    (RARE, State(0.05, 0.3, -0.1)), (FEW, State(0.05, 0.3, -0.1)),
    (Problem(D=12, C=4, q=0.3, nu=0.05), State(0.2, 0.3, -0.1)),
    (MANY, State(-0.3, 0.3, -0.1)), (MANY, State(-1.0, 0.3, -0.1)),
]  # fmt: skip


class Integration:
    """Goals and lines at a state, and the integrals along these lines or others."""

    def __init__(self, problem, state, tolerance):
        self.law, self.model = set_law(problem), Model.at(problem, state)
        self.target = Target.of(tolerance)
        self.crude = FourierExpectation(problem, tolerance)._crude(self.model, state)
        self.weight_errors = WeightErrors.of(problem, state, self.model)
        self.choose()

    def choose(self):
        """Choose goals and lines for the model."""
        self.goals = prepare(self.law, self.model, self.crude, self.target)
        self.lines = design(self.law, self.goals, self.target)
        self.integrated = self.lines.treatment == INTEGRATED

    def sums(self, lines):
        law = self.law
        return node_sums(law.n, law.C, law.L, self.goals.tables, lines, lines.nodes, False)

    def result(self, **changes):
        """Return values and bounds with some fields of the lines changed."""
        lines = self.lines._replace(**changes)
        rest = math.exp(self.goals.log_beyond) * self.crude
        return assemble(
            self.law,
            self.model,
            self.weight_errors,
            self.goals,
            lines,
            self.sums(lines),
            rest,
            self.target,
        )[0]


def exact_values(problem, state):
    exact = reference(problem, state)
    derivatives = [-float(slope.mid()) for slope in exact.derivatives]
    return np.array([float(exact.loss.mid()), *derivatives, float(exact.mean_sigmoid.mid())])


def used(result, exact):
    """Return the ratios of the errors to their bounds."""
    return np.abs(result.values - exact) / result.bounds.sum(axis=1)


class TestParts:
    """Lines of lower quality, so that one part of the bound dominates."""

    def test_truncation_in_t_is_within_its_bound(self):
        """With 8, 16 or 24 nodes the integrals are truncated early."""
        most = np.zeros(5)
        for problem, state in CASES:
            exact, integration = exact_values(problem, state), Integration(problem, state, 1e-8)
            for nodes in (8, 16, 24):
                result = integration.result(nodes=np.where(integration.integrated, nodes, 0))
                assert np.all(used(result, exact) <= 1.0)
                most = np.maximum(most, used(result, exact))
        assert np.all(most > 0.3)

    def test_aliases_in_t_are_within_their_bound(self):
        """With a shorter period Omega the aliases grow."""
        most = np.zeros(5)
        for problem, state in CASES:
            exact, integration = exact_values(problem, state), Integration(problem, state, 1e-8)
            for factor in (0.2, 0.35, 0.5, 0.7):
                omega = np.maximum(factor * integration.lines.omega, 0.1)
                nodes = 8 * np.ceil(9.0 * omega / (16.0 * np.pi)).astype(int)  # to t = 9
                nodes = np.where(integration.integrated, nodes, 0)
                result = integration.result(omega=omega, step=2.0 * np.pi / omega, nodes=nodes)
                assert np.all(used(result, exact) <= 1.0)
                most = np.maximum(most, used(result, exact))
        assert np.all(most > 0.3)

    def test_totals_left_out_are_within_their_bound(self):
        """Each total in turn is replaced by its bound."""
        most = np.zeros(5)
        for problem, state in CASES:
            exact, integration = exact_values(problem, state), Integration(problem, state, 1e-8)
            for i in np.flatnonzero(integration.integrated):
                treatment, nodes = (
                    integration.lines.treatment.copy(),
                    integration.lines.nodes.copy(),
                )
                treatment[i], nodes[i] = LEFT_OUT, 0
                result = integration.result(treatment=treatment, nodes=nodes)
                assert np.all(used(result, exact) <= 1.0)
                most = np.maximum(most, used(result, exact))
        assert np.all(most > 0.2)

    def test_totals_treated_as_negative_are_within_their_bound(self):
        """The error of s(-F) = 1 is E[s(F)], which the bounds with negative tilts limit."""
        most = np.zeros(5)
        for problem, state in CASES[3:]:
            exact, integration = exact_values(problem, state), Integration(problem, state, 1e-8)
            for i in np.flatnonzero(integration.integrated):
                treatment, nodes = (
                    integration.lines.treatment.copy(),
                    integration.lines.nodes.copy(),
                )
                treatment[i], nodes[i] = NEGATIVE, 0
                result = integration.result(treatment=treatment, nodes=nodes)
                assert np.all(used(result, exact) <= 1.0)
                most = np.maximum(most, used(result, exact))
        assert np.all(most > 0.05)


class TestTableErrors:
    @pytest.mark.parametrize(("problem", "state"), [*CASES, (MANY, State(-2.0, 0.3, -0.1))])
    def test_effect_of_wrong_weights_is_within_its_bound(self, problem, state):
        """With errors of 1e-7 in the attention weights all other errors are far smaller."""
        exact, most = exact_values(problem, state), np.zeros(5)
        for signs in itertools.product((-1, 1), repeat=5):
            integration = Integration(problem, state, 1e-10)
            moved = [1e-7 * sign * abs(w) for sign, w in zip(signs, integration.model[2:7])]
            weights = [w + change for w, change in zip(integration.model[2:7], moved)]
            integration.model = integration.model._replace(
                **dict(zip(WeightErrors._fields, weights))
            )
            integration.weight_errors = WeightErrors(*map(abs, moved))
            integration.choose()
            most = np.maximum(most, used(integration.result(), exact))
        assert np.all(most <= 1.0)
        assert most.max() > 0.2


class TestAliases:
    def test_alias_sums_are_within_their_bounds(self):
        """E[s(-F - m Omega) |dF|] e^(eta m Omega), summed over m, and the other side."""
        rng, bound, most = np.random.default_rng(0), plain_python(_aliases), np.zeros((2, 5))
        for _ in range(300):
            omega, eta = rng.uniform(2.0, 30.0), rng.integers(-7, 8) / 8
            F = rng.uniform(-2.0, 2.0, 3) * omega * rng.choice([1.0, 0.1, 0.0])
            probability, dF = rng.dirichlet(np.ones(3)), np.ones((5, 3))
            dF[1:4] = rng.exponential(size=(3, 3))
            logs = np.log((np.exp(-np.outer(TILTS, F)) * probability) @ dF.T)
            logs[TILTS == 0.0, 0] = math.log((math.log(2.0) + np.abs(F)) @ probability)
            logs[rng.random(len(TILTS)) < 0.5] = np.inf
            sides = np.empty((2, 5))
            bound(eta, omega, logs, sides)
            m = np.arange(1.0, 2000.0)[:, None]
            for side, sign in ((0, 1.0), (1, -1.0)):
                away = sign * F + m * omega  # the alias has s(-away) and softplus(-away)
                front = sign * eta * m * omega
                terms = np.exp(front - np.logaddexp(0.0, away))[:, None] * dF
                with np.errstate(divide="ignore", over="ignore"):
                    terms[:, 0] = np.exp(front + np.log(np.logaddexp(0.0, -away)))
                part = (terms * probability).sum(axis=(0, 2)) / np.exp(sides[side])
                assert np.all(part <= 1.0 + 1e-12)
                most[side] = np.maximum(most[side], part)
        assert np.all(most > 0.5)

    @pytest.mark.parametrize(("D", "C", "q"), [(64, 2, 0.5), (24, 4, 0.3), (40, 2, 1.0)])
    def test_aliases_in_R_are_within_their_bound(self, D, C, q):
        """Exact coefficients of z^(r + k m), k != 0; each side dominates for some totals."""
        most = 0.0
        for alpha in (0.3, 0.1, -0.1, -0.2):
            integration = Integration(Problem(D=D, C=C, q=q), State(alpha, 0.3, -0.1), 1e-3)
            for i in np.flatnonzero(integration.integrated & (integration.lines.alias > 0.0)):
                part = wrap_around(integration, i) / integration.lines.alias[i]
                assert part <= 1.0 + 1e-9
                most = max(most, part)
        assert most > 0.05

    def test_error_with_few_angles_is_within_its_bound(self):
        """With eight angles the aliases in R dominate the error."""
        most = np.zeros(5)
        for problem, state in CASES[1:4]:
            exact, integration = exact_values(problem, state), Integration(problem, state, 1e-10)
            integration.lines = integration.lines._replace(
                angles=np.where(integration.integrated, 8, 0)
            )
            for i in np.flatnonzero(integration.integrated):
                integration.lines.alias[i] = wrap_around(integration, i)
            most = np.maximum(most, used(integration.result(), exact))
        assert np.all(most <= 1.0)
        assert most.max() > 0.01


def wrap_around(integration, i):
    """Return the aliases in R of total number i over the bound on its line."""
    law, lines, tables = integration.law, integration.lines, integration.goals.tables
    share, inverse = lines.share[i], np.exp(-lines.log_goal)
    level = np.bincount(law.level_index, share, 2 * law.C + 1)
    level[law.C] += lines.empty[i]
    size = np.abs(tables.y[:, :, i]).T @ inverse[1:4]
    weight = np.bincount(law.level_index, (law.L - 1.0) * share * size, 2 * law.C + 1)
    rest = inverse[0] + inverse[4] + np.abs(tables.base[1:4, i]) @ inverse[1:4]
    fewer = np.ones(1)
    for _ in range(law.L - 2):
        fewer = np.convolve(fewer, level)
    whole = np.convolve(fewer, rest * level + weight)  # by R + (L - 1) C
    here = tables.first + i + (law.L - 1) * law.C
    same = whole[here % lines.angles[i] :: lines.angles[i]].sum()
    return (same - whole[here]) / (rest + weight.sum())


class TestGoals:
    @pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-10])
    def test_parts_of_the_error_add_up_to_the_goal(self, tolerance):
        """The goal is divided among four types of error of each total and the totals left out."""
        for problem, state in CASES[1:4]:
            integration = Integration(problem, state, tolerance)
            planned = (
                np.exp(integration.lines.log_goal) * 4 * np.count_nonzero(integration.integrated)
            )
            assert np.all(planned <= integration.goals.goal)
            assert np.all(planned >= 0.25 * integration.goals.goal)
            goal = integration.goals.goal.copy()
            assert np.all(integration.result().bounds[:, 1:4].sum(axis=1) <= goal)
