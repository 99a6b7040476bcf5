"""The arithmetic of the checker in pure Python, against FLINT, and checks in both arithmetics."""

import copy
import itertools
import json
import math
import subprocess
import sys

import flint
import numpy as np
import pytest

from dynamics import Population, Problem, gradient_flow
from simulations import validated
from simulations.cli import main
from simulations.positional.validated import checker_balls, checker_images, checker_lists
from simulations.positional.validated.checker_balls import arb, ball, ctx
from simulations.positional.validated.checker_lists import Balls, arb_mat, arb_poly, arb_series
from simulations.validated import Rejected, certificate, check, prove, write_certificate
from tests.simulations.positional.validated.test_checker import WRONG, read

BITS = 80


@pytest.fixture(autouse=True)
def _precision():
    cap = flint.ctx.cap
    with ctx.workprec(BITS), flint.ctx.workprec(300):
        yield
    ctx.cap, flint.ctx.cap = 10, cap


def exact(x):
    """Return a ball of this arithmetic as a ball of FLINT."""
    return flint.arb(x.m) * flint.arb(2) ** x.e + flint.arb(0, x.radius)


def operands(seed, size, positive=False):
    """Return random balls without 0: centres of 80 bits, radii from 0 to 0.9 times the modulus."""
    rng = np.random.default_rng(seed)
    balls = []
    for exponent in rng.integers(-86, -74, size).tolist():
        m = int(rng.integers(2**55, 2**60)) * 2**20 + int(rng.integers(2**20))
        radius = 0.9 * 2.0 ** rng.uniform(-30.0, 0.0) * (rng.random() < 0.7)
        sign = 1 if positive else int(rng.choice([-1, 1]))
        balls.append(ball(sign * m, exponent, math.ldexp(m * radius, exponent)))
    return balls


def points(x):
    """Return the ends and the centre of a ball, in FLINT."""
    middle = flint.arb(x.m) * flint.arb(2) ** x.e
    return [middle + s * flint.arb(x.radius) for s in (-1, 0, 1)]


OPERATIONS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "reverse": lambda x, y: 3 / y,
    "power": lambda x, y: x**5,
    "modulus": lambda x, y: abs(x),
    "maximum": lambda x, y: x.max(y),
    "exp": lambda x, y: x.exp(),
    "expm1": lambda x, y: (x / 4096).expm1(),
    "log": lambda x, y: y.log(),
    "log1p": lambda x, y: y.log1p(),
    "root": lambda x, y: y.root(3),
}


def is_inside(value, result):
    """Return whether a point of FLINT is in a ball, up to 2^-280 of its size."""
    enclosure = exact(result)
    slack = abs(value) * flint.arb(2) ** -280
    return bool(value - slack <= enclosure.upper() and value + slack >= enclosure.lower())


def contains_all(name, seeds=(0, 1)):
    """Return whether results for points of random balls are in the results for the balls."""
    operation = OPERATIONS[name]
    for seed in seeds:
        pairs = zip(operands(seed, 60), operands(seed + 50, 60, positive=True))
        for x, y in pairs:
            values = [operation(a, b) for a, b in itertools.product(points(x), points(y))]
            if not all(is_inside(value, operation(x, y)) for value in values):
                return False
    return True


class TestBalls:
    @pytest.mark.parametrize("name", OPERATIONS)
    def test_contain_the_results_for_their_points(self, name):
        assert contains_all(name)

    @pytest.mark.parametrize("name", OPERATIONS)
    def test_are_as_thin_as_those_of_flint(self, name):
        """For exact operands at most 8 times as wide, and of 76 bits at least."""
        for x, y in zip(operands(7, 60), operands(57, 60, positive=True)):
            x, y = x.mid(), y.mid()
            result = OPERATIONS[name](x, y)
            with flint.ctx.workprec(BITS):
                reference = OPERATIONS[name](exact(x), exact(y))
            size = reference.abs_upper() + (name == "log1p")  # the error of 1 + x is absolute
            allowed = 8 * reference.rad() + size * 2.0**-76
            assert flint.arb(result.radius) <= allowed.upper()

    @pytest.mark.parametrize("name", ["add", "multiply", "divide", "exp", "log"])
    def test_without_the_rounding_error_of_centres_are_noticed(self, name, monkeypatch):
        def rounded_only(m, e, radius):
            extra = max(0, m.bit_length() - ctx.prec)
            x = object.__new__(arb)
            x.m, x.e, x.radius = m >> extra, e + extra, radius
            return x

        monkeypatch.setattr(checker_balls, "ball", rounded_only)
        assert not contains_all(name)

    @pytest.mark.parametrize("name", ["multiply", "divide", "exp"])
    def test_with_radii_rounded_down_are_noticed(self, name, monkeypatch):
        monkeypatch.setattr(checker_balls, "UP", 1.0 - 2.0**-10)
        assert not contains_all(name)

    def test_ends_are_rounded_outwards(self):
        for x in operands(3, 200):
            low, _, high = points(x)
            assert exact(x.lower()) <= low
            assert high <= exact(x.upper())
            assert abs(low) <= exact(x.abs_upper())
            assert abs(high) <= exact(x.abs_upper())
            assert exact(x.upper()) - exact(x.lower()) <= (high - low) + abs(high) * 2.0**-76
            assert x.lower().radius == x.upper().radius == 0.0

    def test_ends_that_are_rounded_inwards_are_noticed(self, monkeypatch):
        original = checker_balls.end
        monkeypatch.setattr(checker_balls, "end", lambda x, sign: original(x, -sign))
        with pytest.raises(AssertionError):
            self.test_ends_are_rounded_outwards()

    def test_comparisons_are_certain(self):
        """Whenever one is true here, it is in FLINT, and mostly the other way round."""
        missed = 0
        for x, y in zip(operands(1, 400), operands(2, 400)):
            a, b = exact(x), exact(y)
            for here, there in ((x < y, a < b), (x > y, a > b), (x <= y, a <= b), (x == y, a == b)):
                assert bool(there) or not here
                missed += bool(there) and not here
        assert missed <= 4
        assert ball(3, 0, 0.0) == 3
        assert not arb(0, 1) >= 0
        assert arb(0) >= 0
        assert not ball(1, 0, math.nan) > 0

    def test_numbers_are_exact(self):
        for x in (0.1, -3, 2.0**-1074, 1e300):
            assert exact(arb(x)) == flint.arb(x)
        third = exact(arb(checker_lists.fmpq(1, 3)))
        assert third.contains(flint.arb(flint.fmpq(1, 3)))
        assert third.rad() < 1e-23

    @pytest.mark.parametrize("divide", [lambda: 1 / arb(0, 1), lambda: 1 / arb(0), arb(0, 1).log])
    def test_undefined_results_raise(self, divide):
        with pytest.raises(ArithmeticError):
            divide()

    def test_large_and_small_exponentials(self):
        for x in (-1e6, -900.0, -30.0, 30.0, 600.0, 0.0):
            assert exact(arb(x).exp()).overlaps(flint.arb(x).exp())
        with pytest.raises(OverflowError):
            arb(1e300).exp()


class TestSeries:
    def test_polynomials_and_matrices(self):
        """Products, compositions, exponentials, reciprocals and inverses overlap with FLINT."""
        ctx.cap = flint.ctx.cap = 5
        values = [operands(seed, 5) for seed in (1, 2)]
        P, Q = (arb_poly(x) for x in values)
        S, T = (arb_series(x) for x in values)
        here = [P * Q, P(Q), P.derivative() - Q, S * T, 1 / S, T.exp(), S - T]
        values = [[exact(x) for x in row] for row in values]
        P, Q = (flint.arb_poly(x) for x in values)
        S, T = (flint.arb_series(x) for x in values)
        there = [P * Q, P(Q), P.derivative() - Q, S * T, 1 / S, T.exp(), S - T]
        for x, y in zip(here, there):
            for k in range(5):
                assert exact(x[k]).overlaps(y[k])
                assert exact(x[k]).rad() <= 8 * y[k].rad() + abs(y[k]).upper() * 2.0**-60
        A = arb_mat(3, 3, [x.mid() for x in operands(4, 9)])
        product = A * A.inv()
        for i, j in np.ndindex(3, 3):
            assert exact(product[i, j]).contains(int(i == j))
            assert product[i, j].radius < 1e-18

    def test_radii_of_polynomials(self):
        x = arb_poly([arb(1, 0.5), arb(2, 0.25)])
        (square,) = [x * x]
        assert exact(square[1]).contains(exact(arb(2 * 1.5 * 2.25)))


class TestImages:
    @pytest.mark.parametrize("p", [3, 19])
    def test_agree_with_those_of_numpy(self, p):
        """Integers are equal; series, logistic functions and means overlap and are as thin."""
        problem = (9, 3, p)
        ours = checker_lists.Images(*problem, arb(0.3), 6)
        theirs = checker_images.Images(*problem, flint.arb(0.3), 6)
        assert ours.rows(50) == theirs.rows(50)
        ctx.cap = flint.ctx.cap = 4
        rng, count = np.random.default_rng(0), ours.upto[5]
        rows = (rng.normal(size=(len(ours.integers[0]), 4)) * 1e-3).tolist()
        F = ours.series([arb_series(row) for row in rows], count)
        G = theirs.series([flint.arb_series(row) for row in rows], count)
        s, w = checker_lists.logistic(F)
        t, v = checker_images.logistic(G)
        pairs = [(F, G), (s, t), (w, v)]
        pairs.append((checker_lists.convolved(s, w), checker_images.convolved(t, v)))
        spreads = module_spread(checker_lists, F, s), module_spread(checker_images, G, t)
        for x, y in (*pairs, spreads):
            x = Balls(*map(np.array, x))
            assert np.all(abs(x.mid - y.mid) <= x.rad + y.rad)
            assert np.all(x.rad <= 4 * y.rad + 1e-280)
        for x, y in zip(ours.means(s, [F, w]), theirs.means(t, [G, v])):
            assert all(exact(x[k]).overlaps(y[k]) for k in range(4))
            assert all(exact(x[k]).rad() <= 4 * y[k].rad() for k in range(4))

    def test_rounding_of_the_logistic_function(self):
        """For exact F near 0, where no other error hides that of the exponential."""
        mid = np.concatenate([np.linspace(-1e-3, 1e-3, 400), np.linspace(-0.03, 0.03, 400)])
        s, w = checker_lists.logistic(lists(mid[None], 0.0 * mid[None]))
        for F, x, r, y, e in zip(mid, s.mid[0], s.rad[0], w.mid[0], w.rad[0]):
            exact_s = 1 / (1 + flint.arb(F).exp())
            assert abs(exact_s - x) < r
            assert abs(exact_s * (1 - exact_s) - y) < e
            assert r < 1e-14

    def test_numbers_below_the_grid(self):
        """Images with T = 0 see the small numbers alone, which the grid of the large ones cuts."""
        images = checker_lists.Images(8, 2, 3, arb(0.3), 4)
        ctx.cap = 1
        large = [k > 0 for _, _, k in images.powers()] + [True]
        small = ball(2**79 + 12345, -79 - 150, 0.0)
        c = [arb_series([arb(1) if big else small]) for big in large]
        mid, rad = images.series(c, images.upto[4])
        seen = 0
        for row, m, r in zip(images.rows(images.upto[4]), mid[0], rad[0]):
            if any(x for x, big in zip(row, large) if big):
                continue
            total = sum(x * exact(small) for x, big in zip(row, large) if not big)
            seen += bool(total != 0)
            assert abs(total - m) <= r
            assert r >= 2.0**-160 * sum(abs(x) for x in row)
        assert seen > 0

    def test_radii_enter(self):
        """Functions of points of balls are in the functions of the balls."""
        rng = np.random.default_rng(1)
        mid, rad = rng.normal(size=(4, 30)), rng.uniform(0.0, 0.1, (4, 30))
        wide = [Balls(*map(np.array, x)) for x in checker_lists.logistic(lists(mid, rad))]
        for _ in range(20):
            point = mid + rad * rng.uniform(-1.0, 1.0, mid.shape)
            for x, y in zip(wide, checker_lists.logistic(lists(point, 0 * rad))):
                assert np.all(abs(x.mid - np.array(y.mid)) <= x.rad)


def lists(mid, rad):
    return Balls(mid.tolist(), rad.tolist())


def module_spread(module, F, s):
    return module.spread(F, [s, F, s], [0.25, 1e-3, 0.0])


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """A short flow of few pieces, because the checker in pure Python is slow."""
    path = tmp_path_factory.mktemp("short") / "proof.json"
    proof = prove(PROBLEM, horizon=0.01, tolerance=1e-2)
    write_certificate(path, proof)
    return path, read(path), check(path), check(path, arithmetic="python")


@pytest.fixture(scope="module")
def longer():
    return certificate(prove(PROBLEM, horizon=0.3))


PROBLEM = Problem(D=6, C=2, q=2 / 6)
QUICK = [change for change in WRONG if change.__name__ in {"_shift", "_problem", "_none", "_word"}]


def both_reject(record, change):
    """Assert that a changed certificate is rejected with each arithmetic."""
    for arithmetic in ("flint", "python"):
        changed = copy.deepcopy(record)
        change(changed)
        with pytest.raises(Rejected):
            check(changed, arithmetic=arithmetic)


class TestCheck:
    def test_statements_agree(self, record):
        """Intervals overlap, are about as wide, and contain the flow of an ODE solver."""
        _, _, ours, theirs = record
        assert ours.pieces == theirs.pieces >= 3
        pairs = [*zip(ours.enclosure, theirs.enclosure), (ours.loss, theirs.loss)]
        pairs += [(x[1:], y[1:]) for x, y in zip(ours.gap, theirs.gap)]
        pairs.append((ours.test_error, theirs.test_error))
        for (low, high), (lowest, highest) in pairs:
            assert max(low, lowest) <= min(high, highest)
            assert highest - lowest <= 1.1 * (high - low) + 1e-12 * abs(high)
        path = gradient_flow(Population(PROBLEM), horizon=0.01, rtol=1e-11, records=2)
        for (low, high), value in zip(theirs.enclosure, np.asarray(path.states)[-1]):
            assert low <= value <= high
        assert theirs.gap_positive_from == ours.gap_positive_from
        assert theirs.association == ours.association

    @pytest.mark.parametrize("change", QUICK, ids=lambda change: change.__name__)
    def test_both_reject_changed_certificates(self, record, change):
        both_reject(record[1], change)

    @pytest.mark.slow
    @pytest.mark.parametrize("change", WRONG, ids=lambda change: change.__name__)
    def test_both_reject_changed_longer_certificates(self, longer, change):
        both_reject(longer, change)

    def test_command(self, record, capsys, monkeypatch):
        path = str(record[0])
        results = {"flint": record[2], "python": record[3]}
        monkeypatch.setattr(validated, "check", lambda *given: results[given[2]])
        assert main(["prove", "--check", path, "--arithmetic", "python", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["test_error"] == list(record[3].test_error)
        assert main(["prove", "--D", "6", "--arithmetic", "python"]) == 2
        assert "without --check" in capsys.readouterr().err

    def test_other_arithmetics(self, record):
        with pytest.raises(ValueError, match="arithmetic = 'exact' is not allowed"):
            check(record[1], arithmetic="exact")

    def test_imports_neither_flint_nor_numpy(self):
        """In a fresh process, so that the page needs the standard library alone."""
        program = (
            "import sys; from simulations.positional.validated import checker, checker_lists\n"
            "sys.exit(any(name in sys.modules for name in ('flint', 'numpy', 'mpmath')))"
        )
        assert subprocess.run([sys.executable, "-c", program]).returncode == 0
