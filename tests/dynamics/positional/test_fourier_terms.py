"""Each term of each bound of the Fourier method, on a case where it dominates the error."""

import itertools
import math
import random
from typing import NamedTuple

import mpmath
import numpy as np
import pytest

from dynamics import Problem, State
from dynamics.core.jit import kernel, plain_twin
from dynamics.positional.population.fourier.assemble import Integrated, Moments, assemble
from dynamics.positional.population.fourier.errors import (
    MARGIN,
    UNIT,
    WeightErrors,
    add_rounding,
    patch_error,
)
from dynamics.positional.population.fourier.goals import Asked, prepare
from dynamics.positional.population.fourier.lines import (
    INTEGRATED,
    LEFT_OUT,
    SURELY_NEGATIVE,
    design,
)
from dynamics.positional.population.fourier.method import FourierExpectation
from dynamics.positional.population.fourier.node_sums import node_sums, node_weights
from dynamics.positional.population.fourier.set_law import set_law
from dynamics.positional.population.fourier.tables import Model
from dynamics.positional.population.fourier.tilts import (
    TILTS,
    R,
    U,
    room_to_tilt,
    slack,
    tilt_totals,
)
from dynamics.positional.population.fourier.windows import _aliases
from tests.dynamics.positional.ball_reference import reference
from tests.dynamics.positional.rounded import Rounded, plain_row_gradient

RARE = Problem(D=8, C=2, q=1e-12, nu=0.5)  # F has one value
FEW = Problem(D=8, C=2, q=0.3, nu=0.5)
MANY = Problem(D=9, C=3, q=0.5, nu=0.01)
CASES = [
    (RARE, State(0.05, 0.3, -0.1)), (FEW, State(0.05, 0.3, -0.1)),
    (Problem(D=12, C=4, q=0.3, nu=0.05), State(0.2, 0.3, -0.1)),
    (MANY, State(-0.3, 0.3, -0.1)), (MANY, State(-1.0, 0.3, -0.1)),
]  # fmt: skip


class TestRows:
    """One row against a running error analysis of the code itself, with the worst roundings."""

    def test_worst_roundings_are_within_the_bounds(self):
        rng, row, bounds = random.Random(0), plain_row_gradient(), plain_twin(patch_error)
        most = [0.0] * 4
        for _ in range(4000):
            s, n, T, C, model, errors = row_of(rng)
            _, alpha, *weights, D, kappa, tau, nu = model
            rounded = [Rounded(*pair) for pair in zip(weights, errors)]
            alpha, kappa, tau, nu = map(Rounded, (alpha, kappa, tau, nu))
            worst = row(s, n, T, alpha, *rounded, float(C), D, kappa, tau, model.p, nu)
            for k, bound in enumerate(bounds(s, n, T, C, model, errors, model.p)):
                error = Rounded.of(worst[k]).error
                assert error <= MARGIN * bound
                most[k] = max(most[k], error / bound if bound > 0.0 else 0.0)
        assert min(most) > 0.7


def row_of(rng):
    """A row, a model and errors of its weights: none, those of rounding, or far more."""
    C, p = rng.choice([2, 3, 4, 8]), rng.choice([3, 3, 5, 7, 9, 21, 99])
    D = float(C * rng.choice([2, 3, 16, 256, 10**5]))
    s = rng.choice([-1, 0, 1])
    n, T = (
        rng.randint(max(-C, s + 1 - C), min(C, s + C - 1)),
        rng.choice([0, C + rng.randint(-30, 30)]),
    )
    balance, lone = (D - C) * (n - s) - (C - 1) * (T - n), n - C * s
    near = [1.0 + rng.uniform(-1, 1) * 10.0 ** rng.uniform(-6, 0) for _ in range(3)]
    weights = rng.choice([
        near,
        [10.0 ** rng.uniform(-8, 0) for _ in range(3)],
        [near[0], near[1], near[0]],  # beta = rho: both differences cancel in c
        [abs(balance) + 1e-9, 1.0, abs(lone) + 1e-9],  # the turn by gamma cancels
    ])  # fmt: skip
    Lambda, Gamma, Xi = (
        w / (weights[0] + (C - 1) * weights[1] + (D - C) * weights[2]) for w in weights
    )
    kappa, tau, nu = rng.choice([1.0, D]), 10.0 ** rng.uniform(-1, 1), 10.0 ** rng.uniform(-6, 0)
    alpha = rng.choice([1, -1]) * 10.0 ** rng.uniform(-2, 1) / kappa
    model = Model(
        p, alpha, Lambda, Gamma, Xi, Lambda - Gamma, Gamma - Xi, D, kappa, tau, nu
    )  # fmt: skip
    share = rng.choice([0.0, 0.0, 1.0, 30.0, 1e5]) * UNIT
    return (
        float(s),
        float(n),
        float(T),
        C,
        model,
        WeightErrors(*(share * abs(w) for w in model[2:7])),
    )


class Plan:
    """Goals and lines at a state, and the integrals along these lines or others."""

    def __init__(self, problem, state, tolerance):
        self.law, self.model = set_law(problem), Model.at(problem, state)
        self.asked = Asked.of(tolerance)
        self.crude = FourierExpectation(problem, tolerance)._crude(self.model, state)
        self.of_weights = WeightErrors.of(problem, state, self.model)
        self.choose()

    def choose(self):
        """Choose goals and lines for the model."""
        self.goals = prepare(self.law, self.model, self.crude, self.asked)
        self.lines = design(self.law, self.goals, self.asked)
        self.integrated = self.lines.kind == INTEGRATED

    def sums(self, lines):
        law = self.law
        return node_sums(law.n, law.C, law.L, self.goals.tables, lines, lines.nodes, False)

    def result(self, **changes):
        """Return values and bounds with some fields of the lines changed."""
        lines = self.lines._replace(**changes)
        rest = math.exp(self.goals.log_beyond) * self.crude
        return assemble(
            self.law, self.model, self.of_weights, self.goals, lines, self.sums(lines), rest,
            self.asked,
        )[0]  # fmt: skip


def exact_values(problem, state):
    exact = reference(problem, state)
    derivatives = [-float(slope.mid()) for slope in exact.derivatives]
    return np.array([float(exact.loss.mid()), *derivatives, float(exact.mean_sigmoid.mid())])


def used(result, exact):
    """Return the errors over their bounds."""
    return np.abs(result.values - exact) / result.bounds.sum(axis=1)


class TestParts:
    """Lines worse than planned, so that one part of the bound is nearly all of it."""

    def test_cut_integrals(self):
        """With 8, 16 or 24 nodes the integrals end early."""
        most = np.zeros(5)
        for problem, state in CASES:
            exact, plan = exact_values(problem, state), Plan(problem, state, 1e-8)
            for nodes in (8, 16, 24):
                result = plan.result(nodes=np.where(plan.integrated, nodes, 0))
                assert np.all(used(result, exact) <= 1.0)
                most = np.maximum(most, used(result, exact))
        assert np.all(most > 0.3)

    def test_short_periods(self):
        """With a shorter period Omega the aliases grow."""
        most = np.zeros(5)
        for problem, state in CASES:
            exact, plan = exact_values(problem, state), Plan(problem, state, 1e-8)
            for factor in (0.2, 0.35, 0.5, 0.7):
                omega = np.maximum(factor * plan.lines.omega, 0.1)
                nodes = 8 * np.ceil(9.0 * omega / (16.0 * np.pi)).astype(int)  # to t = 9
                nodes = np.where(plan.integrated, nodes, 0)
                result = plan.result(omega=omega, step=2.0 * np.pi / omega, nodes=nodes)
                assert np.all(used(result, exact) <= 1.0)
                most = np.maximum(most, used(result, exact))
        assert np.all(most > 0.3)

    def test_totals_left_out(self):
        """Each total in turn, by its bound in the place of its integral."""
        most = np.zeros(5)
        for problem, state in CASES:
            exact, plan = exact_values(problem, state), Plan(problem, state, 1e-8)
            for i in np.flatnonzero(plan.integrated):
                kind, nodes = plan.lines.kind.copy(), plan.lines.nodes.copy()
                kind[i], nodes[i] = LEFT_OUT, 0
                result = plan.result(kind=kind, nodes=nodes)
                assert np.all(used(result, exact) <= 1.0)
                most = np.maximum(most, used(result, exact))
        assert np.all(most > 0.2)

    def test_totals_taken_as_negative(self):
        """s(-F) = 1 is wrong by E[s(F)], which the bounds with negative tilts limit."""
        most = np.zeros(5)
        for problem, state in CASES[3:]:
            exact, plan = exact_values(problem, state), Plan(problem, state, 1e-8)
            for i in np.flatnonzero(plan.integrated):
                kind, nodes = plan.lines.kind.copy(), plan.lines.nodes.copy()
                kind[i], nodes[i] = SURELY_NEGATIVE, 0
                result = plan.result(kind=kind, nodes=nodes)
                assert np.all(used(result, exact) <= 1.0)
                most = np.maximum(most, used(result, exact))
        assert np.all(most > 0.05)


class TestTablesThatAreOff:
    @pytest.mark.parametrize(("problem", "state"), [*CASES, (MANY, State(-2.0, 0.3, -0.1))])
    def test_weights_wrong_by_what_is_stated(self, problem, state):
        """With errors of 1e-7 in the attention weights all other errors are far smaller."""
        exact, most = exact_values(problem, state), np.zeros(5)
        for signs in itertools.product((-1, 1), repeat=5):
            plan = Plan(problem, state, 1e-10)
            moved = [1e-7 * sign * abs(w) for sign, w in zip(signs, plan.model[2:7])]
            weights = [w + change for w, change in zip(plan.model[2:7], moved)]
            plan.model = plan.model._replace(**dict(zip(WeightErrors._fields, weights)))
            plan.of_weights = WeightErrors(*map(abs, moved))
            plan.choose()
            most = np.maximum(most, used(plan.result(), exact))
        assert np.all(most <= 1.0)
        assert most.max() > 0.2


class TestAliases:
    def test_sums_over_periods(self):
        """E[s(-F - m Omega) |dF|] e^(eta m Omega), summed over m, and the other side."""
        rng, bound, most = np.random.default_rng(0), plain_twin(_aliases), np.zeros((2, 5))
        for _ in range(300):
            omega, eta = rng.uniform(2.0, 30.0), rng.integers(-7, 8) / 8
            F = rng.uniform(-2.0, 2.0, 3) * omega * rng.choice([1.0, 0.1, 0.0])
            chance, dF = rng.dirichlet(np.ones(3)), np.ones((5, 3))
            dF[1:4] = rng.exponential(size=(3, 3))
            logs = np.log((np.exp(-np.outer(TILTS, F)) * chance) @ dF.T)
            logs[TILTS == 0.0, 0] = math.log((math.log(2.0) + np.abs(F)) @ chance)
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
                part = (terms * chance).sum(axis=(0, 2)) / np.exp(sides[side])
                assert np.all(part <= 1.0 + 1e-12)
                most[side] = np.maximum(most[side], part)
        assert np.all(most > 0.5)

    @pytest.mark.parametrize(("D", "C", "q"), [(64, 2, 0.5), (24, 4, 0.3), (40, 2, 1.0)])
    def test_wrap_around_in_R(self, D, C, q):
        """The coefficients of z^(r + k m), k != 0, exactly; each side dominates somewhere."""
        most = 0.0
        for alpha in (0.3, 0.1, -0.1, -0.2):
            plan = Plan(Problem(D=D, C=C, q=q), State(alpha, 0.3, -0.1), 1e-3)
            for i in np.flatnonzero(plan.integrated & (plan.lines.alias > 0.0)):
                part = wrap_around(plan, i) / plan.lines.alias[i]
                assert part <= 1.0 + 1e-9
                most = max(most, part)
        assert most > 0.05

    def test_few_angles(self):
        """With eight angles the aliases in R are most of the error."""
        most = np.zeros(5)
        for problem, state in CASES[1:4]:
            exact, plan = exact_values(problem, state), Plan(problem, state, 1e-10)
            plan.lines = plan.lines._replace(angles=np.where(plan.integrated, 8, 0))
            for i in np.flatnonzero(plan.integrated):
                plan.lines.alias[i] = wrap_around(plan, i)
            most = np.maximum(most, used(plan.result(), exact))
        assert np.all(most <= 1.0)
        assert most.max() > 0.01


def wrap_around(plan, i):
    """Return the aliases in R of total number i over the bound on its line."""
    law, lines, tables = plan.law, plan.lines, plan.goals.tables
    share, inverse = lines.share[i], np.exp(-lines.log_goal)
    level = np.bincount(law.place, share, 2 * law.C + 1)
    level[law.C] += lines.empty[i]
    size = np.abs(tables.y[:, :, i]).T @ inverse[1:4]
    weight = np.bincount(law.place, (law.L - 1.0) * share * size, 2 * law.C + 1)
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
    def test_shares_add_up_to_the_goal(self, tolerance):
        """Four kinds of error of each total, and what is left out, are planned to fit."""
        for problem, state in CASES[1:4]:
            plan = Plan(problem, state, tolerance)
            planned = np.exp(plan.lines.log_goal) * 4 * np.count_nonzero(plan.integrated)
            assert np.all(planned <= plan.goals.goal)
            assert np.all(planned >= 0.25 * plan.goals.goal)
            goal = plan.goals.goal.copy()
            assert np.all(plan.result().bounds[:, 1:4].sum(axis=1) <= goal)


class TestNodeWeights:
    @pytest.mark.parametrize("eta", [0.0, 0.03125, 0.5, -0.96875])
    def test_error_of_one_weight(self, eta):
        """1 / sin(pi w) near and far from 0, at the first and at the last lane of a block."""
        largest = 0.0
        for start, step, lanes in ((0.5, 0.01, 1), (0.5, 0.2, 48), (60.5, 0.2, 1), (200.5, 0.2, 1)):
            node = np.empty((3, 2, 48))
            wave = np.stack([np.ones((1, 48)), np.zeros((1, 48))])
            errors = []
            for many in (lanes - 1, lanes):
                sums = Sums(*(np.zeros(1) for _ in Sums._fields))
                plain_twin(node_weights)(0, start, step, eta, wave, many, node, sums)
                errors.append(sums.error[0])
            with mpmath.workdps(40):
                t = mpmath.mpf(step) * (mpmath.mpf(start) + lanes - 1)
                exact = mpmath.mpf(step) / mpmath.sin(mpmath.pi * mpmath.mpc(eta, t))
                apart = abs(mpmath.mpc(*node[0, :, lanes - 1].tolist()) - exact)
                part = float(apart) / ((errors[1] - errors[0]) * UNIT)
            assert part <= 1.0
            largest = max(largest, part)
        assert largest > 0.02


class Sums(NamedTuple):
    """The sums that the weights of nodes are added to."""

    size: np.ndarray
    size_over_w: np.ndarray
    error: np.ndarray
    size_times_t: np.ndarray
    error_over_w: np.ndarray


class TestTilting:
    def test_chernoff_bounds_are_rounded_upwards(self):
        """The same bound at the same tilt and u with 40 digits is lower, with hardly any slack."""
        rng = np.random.default_rng(1)
        for D, C, q in (
            (10**6, 2, 1e-2),
            (4096, 4, 0.3),
            (64, 4, 0.1),
            (40, 2, 1.0),
            (10**5, 3, 1e-4),
        ):
            law = set_law(Problem(D=D - D % C, C=C, q=q))
            for r in (0, 1, -3, 5):
                x = rng.uniform(-2.0, 2.0, (len(law.n), 1)) / D
                u, log_f, room = tilted(law, x, 0.5, float(r))
                with mpmath.workdps(40):
                    exact = exact_bound(law, q, x[:, 0], 0.5, u, r)
                    over = float((law.L - 1.0) * log_f - mpmath.mpf(r) * u + room - exact)
                assert 0.0 <= over <= 2.0 * room
                assert room < 1e-6


@kernel
def tilted(law, x, lam, r):
    """Return u, log f and the slack of one total at one tilt."""
    tilting = room_to_tilt(law)
    tilting.lam[0], tilting.rows[R * 80] = lam, r
    tilt_totals(0, 1, law, x, tilting)
    u, log_f = tilting.rows[U * 80], tilting.log_f[0]
    return u, log_f, slack(law, log_f, r * u)


def exact_bound(law, q, x, lam, u, r):
    """Return log of f^(L-1) e^(-r u) in the current precision of mpmath."""
    q, C = mpmath.mpf(q), law.C
    f = (1 - q) ** C
    for a, b, value in zip(law.plus, law.minus, x):
        ways = math.comb(C, int(a)) * math.comb(C - int(a), int(b))
        chance = ways * (q / 2) ** int(a + b) * (1 - q) ** int(C - a - b)
        f += chance * mpmath.exp(-mpmath.mpf(lam) * mpmath.mpf(value) + mpmath.mpf(u) * int(a - b))
    return (law.L - 1) * mpmath.log(f) - r * mpmath.mpf(u)


class TestPowers:
    @pytest.mark.parametrize(("D", "C", "q"), [(64, 2, 0.3), (24, 4, 1.0), (4096, 2, 2.0**-10)])
    def test_rounding_of_powers_alone(self, D, C, q):
        """F = 0 has no phases, and the errors of weights set aside leave those of powers.

        At totals near 0 the tilts are small, and the shares good to a few units in the last place;
        far from it the rounding of their exponents counts, too.
        """
        plan = Plan(Problem(D=D, C=C, q=q), State(0.0, 0.3, -0.1), 1e-10)
        full = np.where(plan.integrated, (2 * (plan.law.L - 1) * C + 5) // 4 * 4, 0)
        lines = plan.lines._replace(angles=np.minimum(full, 4 * plan.lines.angles))
        count = len(plan.integrated)
        lines = lines._replace(alias=np.zeros(count), eta=np.full(count, 0.25))  # the same at F = 0
        sums, front = plan.sums(lines), np.exp(lines.logs)
        integrated = Integrated(
            front, np.zeros(count), np.zeros((count, 5)), np.zeros((count, 5, 5)),
            np.zeros((count, 5)),
        )  # fmt: skip
        moments = Moments(np.zeros((5, count)), np.zeros((5, count)))
        bare = sums._replace(error=np.zeros(count), error_over_w=np.zeros(count))
        rounding_alone(plan.law, plan.goals.tables, lines, bare, moments, integrated)
        most = 0.0
        center = -plan.goals.tables.first
        for i in np.flatnonzero(plan.integrated):
            weight = node_sum(lines.eta[i], lines.step[i], lines.nodes[i])
            exact = weight * plan.law.p_total[plan.law.center + i - center]
            apart = abs(front[i, 4] * sums.by_type[i].sum() - exact)
            bound = integrated.bounds[i, 4, 4]
            assert apart <= bound + integrated.moved[i, 4]
            if abs(i - center) <= C:
                assert apart <= bound
                most = max(most, apart / bound)
        assert most > 1e-4


def node_sum(eta, step, nodes):
    """Return the sum of step Re[1 / sin(pi w)]."""
    w = eta + 1j * step * (np.arange(nodes) + 0.5)
    return float(np.sum(step * (1.0 / np.sin(np.pi * w)).real))


@kernel
def rounding_alone(law, tables, lines, sums, moments, integrated):
    """Fill the rounding errors of all integrals."""
    add_rounding(
        law, tables, lines, sums, moments, integrated, np.empty(2 * law.C + 1), np.empty(10)
    )
