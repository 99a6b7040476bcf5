"""Ball arithmetic of the checker contains the exact values, computed by Arb with 200 bits."""

import itertools
import math

import numpy as np
import pytest
from flint import arb, arb_series, ctx

from simulations.positional.validated import checker_images as images_module
from simulations.positional.validated.checker_images import Balls, Images, logistic


@pytest.fixture(autouse=True)
def _restored():
    cap = ctx.cap
    with ctx.workprec(200):
        yield
    ctx.cap = cap


def corners(balls, seed):
    """Return exact numbers in the balls, mostly at their ends."""
    rng = np.random.default_rng(seed)
    share = rng.choice([-1.0, 1.0, 0.5], size=balls.mid.shape)
    return [
        [arb(m) + arb(r) * s for m, r, s in zip(*rows)]
        for rows in zip(balls.mid.tolist(), balls.rad.tolist(), share.tolist())
    ]


def inside(exact, mid, rad):
    return bool(abs(exact - arb(float(mid))) <= arb(float(rad)))


class TestExponential:
    def test_relative_error(self):
        rng = np.random.default_rng(0)
        x = np.concatenate([rng.uniform(-700.0, 700.0, 300), [-700.0, 700.0, 0.0, 1 / 32, -1 / 32]])
        for value, result in zip(x.tolist(), images_module.exponential(x).tolist()):
            assert abs(arb(result) / arb(value).exp() - 1) < arb(2) ** -51


class TestLogistic:
    @pytest.mark.parametrize("radius", [0.0, 1e-12, 1e-3, 0.5])
    def test_series_contain_exact_values(self, radius):
        rng = np.random.default_rng(1)
        F = Balls(rng.normal(size=(5, 40)) * 3.0, np.full((5, 40), radius))
        F.mid[0, :6] = -800.0, 800.0, 40.0, -40.0, 0.0, 700.5
        s, w = logistic(F)
        ctx.cap = 5
        exact = corners(F, 2)
        for lane in range(40):
            series = 1 / (1 + arb_series([row[lane] for row in exact]).exp())
            product = series * (1 - series)
            for k in range(5):
                assert inside(series[k], s.mid[k, lane], s.rad[k, lane])
                assert inside(product[k], w.mid[k, lane], w.rad[k, lane])

    def test_thin_balls_stay_thin(self):
        F = Balls(np.linspace(-5.0, 5.0, 30).reshape(3, 10), np.zeros((3, 10)))
        for y in logistic(F):
            assert np.all(y.rad <= 1e-13)

    def test_nan_and_infinite_balls_give_the_whole_range(self):
        with np.errstate(all="ignore"):
            s, _ = logistic(Balls(np.array([[np.nan, np.inf]]), np.array([[0.0, np.inf]])))
        assert np.all(s.mid - s.rad <= 1e-300)
        assert np.all(s.mid + s.rad >= 1.0)


class TestImages:
    def make(self, D=9, C=3, p=3, K=6):
        return Images(D, C, p, arb("0.3"), K)

    @pytest.mark.parametrize(("D", "C", "p"), [(6, 2, 3), (6, 3, 5), (6, 2, 19)])
    def test_integers_equal_brute_force(self, D, C, p):
        """The reference sums over the patches of every pattern of features."""
        images = Images(D, C, p, arb("0.3"), D - C)
        counts = {}
        for pattern in itertools.product((-1, 0, 1), repeat=D - C):
            s = [1] * C + list(pattern)
            n = [sum(s[C * (k // C) : C * (k // C) + C]) for k in range(D)]
            T = sum(s)
            row = [sum(a**i * b**j * T**k for a, b in zip(s, n)) for i, j, k in images.powers()]
            key = (*row, T, sum(map(abs, pattern)))
            counts[key] = counts.get(key, 0) + 1
        probabilities = {}
        features = [k for k, n in enumerate(np.diff([0, *images.upto])) for _ in range(n)]
        for row, k, weight in zip(images.integers.tolist(), features, images.probability):
            key = (*map(int, row), k)
            probabilities[key] = probabilities.get(key, arb(0)) + weight
        assert probabilities.keys() == counts.keys()
        for key, count in counts.items():
            exact = count * arb("0.15") ** key[-1] * arb("0.7") ** (D - C - key[-1])
            assert abs(probabilities[key] - exact) < arb(10) ** -40
        assert images.complete

    @pytest.mark.parametrize("p", [3, 19])
    def test_series_and_means_contain_exact_values(self, p):
        images = self.make(p=p)
        count, ctx.cap = images.upto[5], 3
        rng = np.random.default_rng(3)
        c = [
            arb_series([arb(float(x)) / 3 for x in rng.normal(size=3)])
            for _ in range(len(images.m))
        ]
        F = images.series(c, count)
        exact = [
            sum((int(m) * y for m, y in zip(row, c)), arb_series([0]))
            for row in images.integers[:count].tolist()
        ]
        for lane, series in enumerate(exact):
            assert all(inside(series[k], F.mid[k, lane], F.rad[k, lane]) for k in range(3))
        x, y = (Balls(rng.normal(size=(3, count)), rng.uniform(0, 1e-3, (3, count))) for _ in "xy")
        (mean,) = images.means(x, [y])
        total = arb_series([0])
        for lane, weight in enumerate(images.probability[:count]):
            a, b = (arb_series([row[lane] for row in corners(z, 4)]) for z in (x, y))
            total += weight * a * b
        for k in range(3):
            assert mean[k].contains(total[k])
            assert float(mean[k].rad()) < 0.1

    def test_means_of_thin_balls_are_thin(self):
        images = self.make()
        count, ctx.cap = images.upto[6], 2
        x = Balls(np.ones((2, count)), np.zeros((2, count)))
        (mean,) = images.means(x, [x])
        exact = sum(images.probability, arb(0))
        assert mean[0].contains(exact)
        assert mean[1].contains(2 * exact)
        assert float(mean[0].rad()) < 1e-14
        assert math.isclose(float(mean[1]), 2 * float(exact), rel_tol=1e-14)
