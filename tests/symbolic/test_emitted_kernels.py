"""Rounding errors of the emitted kernels: comparison with mpmath, SymPy and plain Python.

Range of arguments: beta, gamma, rho in [-40, 40], tau in [0.3, 30], 2 <= C <= 16, D up to 10^6,
alpha in +-[1e-4, 10], p = 3, 5, 7, any s, n, T that the data can produce.
"""

import itertools
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator

import mpmath
import pytest
import sympy as sp

from dynamics.positional import _emitted
from symbolic.positional import attention, lemma_4_3, margins
from symbolic.positional import symbols as sym
from tests.closeness import close

EPS = 2.0**-52
SAMPLES = 300


def samples(seed: int, count: int = SAMPLES) -> Iterator[dict[str, float]]:
    """Yield random arguments, including ties and near-ties of the exponents."""
    rng = random.Random(seed)
    for index in range(count):
        beta, gamma, rho = (rng.uniform(-40, 40) for _ in range(3))
        if index % 3 == 1:
            gamma = beta + rng.choice((0.0, 1e-13, -1e-6))
            rho = gamma + rng.choice((0.0, 1e-15, 1e-9, -1e-3))
        C = rng.randint(2, 16)
        D = C * rng.randint(2, max(2, int(10 ** rng.uniform(1, 6)) // C))
        s = rng.choice((-1, 0, 1))
        n = s + rng.randint(-(C - 1), C - 1)
        yield {
            "beta": beta,
            "gamma": gamma,
            "rho": rho,
            "tau": 10 ** rng.uniform(-0.52, 1.47),
            "C": float(C),
            "D": float(D),
            "s": float(s),
            "n": float(n),
            "T": float(C + rng.randint(-min(50, D - C), min(50, D - C))),
            "alpha": rng.choice((-1, 1)) * 10 ** rng.uniform(-4, 1),
            "kappa": rng.choice((1.0, float(D), rng.uniform(0.1, 100))),
            "p": rng.choice((3, 5, 7)),
            "nu": 10 ** rng.uniform(-4, 0),
        }


def weights(x: dict[str, float]) -> tuple[float, ...]:
    return _emitted.attention_weights(x["beta"], x["gamma"], x["rho"], x["tau"], x["C"], x["D"])


def row_arguments(x: dict[str, float]) -> tuple[float, ...]:
    names = ("C", "D", "kappa", "tau", "p", "nu")
    return (x["s"], x["n"], x["T"], x["alpha"], *weights(x), *(x[name] for name in names))


def exact_weights(x: dict[str, float]) -> list[mpmath.mpf]:
    tau, C, D = (mpmath.mpf(x[name]) for name in ("tau", "C", "D"))
    b, g, r = (mpmath.exp(mpmath.mpf(x[name]) / tau) for name in ("beta", "gamma", "rho"))
    Z = b + (C - 1) * g + (D - C) * r
    return [b / Z, g / Z, r / Z, (b - g) / Z, (g - r) / Z]


def spread(x: dict[str, float]) -> float:
    """Return the largest exponent of the shifted softmax, which amplifies rounding errors."""
    values = (x["beta"], x["gamma"], x["rho"])
    return (max(values) - min(values)) / x["tau"]


class TestAttentionWeights:
    def test_relative_error_against_fifty_digits(self) -> None:
        """Bound (6 + 2 spread) eps: two roundings per exponent, a sum, a quotient, exp and expm1.

        The bound applies to the differences too, even if Lambda, Gamma and Xi are close.
        """
        with mpmath.workdps(50):
            for x in samples(1):
                bound = (6 + 2 * spread(x)) * EPS
                for value, exact in zip(weights(x), exact_weights(x)):
                    assert abs(value - exact) <= bound * abs(exact), x

    def test_no_overflow_far_outside_the_range(self) -> None:
        x = _emitted.attention_weights(1e4, -1e4, -3e5, 1e-3, 4.0, 1e6)
        assert x == (1.0, 0.0, 0.0, 1.0, 0.0)


def exact_row(x: dict[str, float]) -> tuple[list[mpmath.mpf], list[mpmath.mpf]]:
    """Return the plain formulas, and the same formulas with absolute values of all terms.

    The excess act'(O) - act'(O_empty) cancels, hence 200 digits.
    """
    s, n, T, alpha, C, D, kappa, tau, nu = (
        mpmath.mpf(x[k]) for k in ("s", "n", "T", "alpha", "C", "D", "kappa", "tau", "nu")
    )
    p = int(x["p"])
    Lambda, Gamma, Xi, *_ = exact = exact_weights(x)
    c = Lambda * s + Gamma * (n - s) + Xi * (T - n)
    c_gamma = Gamma / tau * ((n - s) - (C - 1) * c)
    c_rho = Xi / tau * ((T - n) - (D - C) * c)
    scale = kappa * alpha
    O, empty = scale * c, scale * Xi * T  # noqa: E741
    slope = p * O ** (p - 1) + nu
    excess = p * (O ** (p - 1) - empty ** (p - 1))
    values = [O**p + nu * O, slope * kappa * c, excess * scale * c_gamma, excess * scale * c_rho]

    own = abs(exact[3] * s) + abs(exact[4] * n)
    size_c = own + abs(Xi * T)
    own += mpmath.mpf(10) ** -80 * size_c  # this reference cancels too, at its 200th digit
    balance = abs((D - C) * (n - s) - (C - 1) * (T - n))  # whole numbers: these cancel exactly
    size_c_gamma = Gamma / tau * (Lambda * abs(n - C * s) + Xi * balance)
    size_c_rho = Xi / tau * (Lambda * abs(T - n - (D - C) * s) + Gamma * balance)
    size_O, scale = abs(scale) * size_c, abs(scale)
    size_excess = p * (p - 1) * scale * own * (2 * size_O) ** (p - 2)
    sizes = [
        size_O**p + nu * size_O,
        (p * size_O ** (p - 1) + nu) * kappa * size_c,
        size_excess * scale * size_c_gamma,
        size_excess * scale * size_c_rho,
    ]
    return values, sizes


class TestRowGradient:
    def test_error_against_two_hundred_digits_from_the_exponents_on(self) -> None:
        """Bound (p + 4)(8 + 2 spread) eps relative to the formula with all terms taken positive.

        (8 + 2 spread) eps is the error of a weight and its two uses; a result multiplies at most
        p + 3 such factors. "All terms positive" is the least that any summation order can promise:
        a row whose weighted sum c happens to vanish has no relative accuracy. Integers are exact
        and count with their value, so a saturated attention loses nothing. 1e-300 absolute: a
        factor below it has underflowed.
        """
        with mpmath.workdps(200):
            for x in samples(2):
                bound = (x["p"] + 4) * (8 + 2 * spread(x)) * EPS
                values, sizes = exact_row(x)
                for value, exact, size in zip(
                    _emitted.row_gradient(*row_arguments(x)), values, sizes
                ):
                    assert abs(value - exact) <= bound * size + 1e-300, x

    @pytest.mark.parametrize("D", [64.0, 1e3, 1e6])
    def test_relative_error_stays_flat_in_D(self, D: float) -> None:
        """The signal row at a typical state: a few roundings, relative, at any D."""
        x = {"beta": 1.0, "gamma": 0.3, "rho": -0.05, "tau": 1.0, "C": 4.0, "D": D, "s": 1.0}
        x |= {"n": 4.0, "T": 6.0, "alpha": 0.1, "kappa": D, "p": 3, "nu": 0.01}
        with mpmath.workdps(50):
            values, _ = exact_row(x)
            for value, exact in zip(_emitted.row_gradient(*row_arguments(x)), values):
                assert abs(value - exact) <= 20 * EPS * abs(exact)

    def test_contribution_of_an_empty_set_is_exactly_zero(self) -> None:
        for x in samples(3, 50):
            empty = x | {"s": 0.0, "n": 0.0}
            assert _emitted.row_gradient(*row_arguments(empty))[2:] == (0.0, 0.0)


def tau_units(x: dict[str, float]) -> dict[sp.Symbol, sp.Expr]:
    """Return exact values of the symbols at a sample."""
    return {getattr(sym, name): sp.Rational(value) for name, value in x.items()}


@pytest.mark.no_cover  # tracing slows SymPy 2.4 times; other tests run the same, traced
class TestAgainstDerivatives:
    """Compare the kernels with SymPy's derivatives of act(O), evaluated to 40 digits."""

    @pytest.mark.slow
    def test_gradient_and_hessian(self) -> None:
        """1e-9 relative to the largest entry: samples with mild exponents, cancellation allowed."""
        row = attention.write_out(margins.activation(margins.MARGIN))
        margin = attention.write_out(margins.MARGIN)
        empty_slope = attention.write_out(margins.activation_slope(margins.EMPTY_MARGIN))
        parameters = (sym.alpha, sym.gamma, sym.rho)
        pairs = list(itertools.combinations_with_replacement(parameters, 2))
        expressions = []
        for names in [(x,) for x in parameters] + pairs:
            derivative = sp.diff(row, *names)
            if set(names) != {sym.alpha}:
                derivative -= empty_slope * sp.diff(margin, *names)
            expressions.append(derivative)
        for x in samples(4, 6):
            mild = x | {name: x[name] / 20 for name in ("beta", "gamma", "rho")}
            exact = [float(e.subs(tau_units(mild)).evalf(40)) for e in expressions]
            arguments = row_arguments(mild)
            gradient = _emitted.row_gradient(*arguments)[1:]
            close(gradient, exact[:3], rel=1e-9)
            close(_emitted.row_hessian(*arguments), exact[3:], rel=1e-9)

    @pytest.mark.slow
    def test_leading_terms(self) -> None:
        """The term for gamma contains 1 - G/D, which loses digits only as G approaches D."""
        for x in samples(5, 30):
            mild = x | {name: x[name] / 20 for name in ("beta", "gamma", "rho")}
            Lambda, Gamma, Xi, *_ = weights(mild)
            constants = [mild[name] for name in ("C", "D", "kappa", "tau", "p", "nu")]
            g = Lambda + (mild["C"] - 1) * Gamma
            values = tau_units(mild)
            for value, plain, allowed in (
                (
                    _emitted.gamma_leading_term(mild["alpha"], Lambda, Gamma, *constants),
                    lemma_4_3.gamma_leading(),
                    1e-13 + 10 * EPS / (1 - g),
                ),
                (
                    _emitted.rho_leading_term(mild["alpha"], Lambda, Gamma, Xi, *constants),
                    lemma_4_3.rho_leading(),
                    1e-13,
                ),
            ):
                exact = float(attention.write_out(plain).subs(values).evalf(40))
                close(value, exact, rel=allowed)


class TestPowers:
    def test_power(self) -> None:
        """Equal at more points than its degree, all exactly representable: the same polynomial."""
        for x, n in itertools.product(range(-7, 8), range(12)):
            assert _emitted.power(float(x), n) == float(x**n)

    def test_power_difference(self) -> None:
        for x, y in itertools.product(range(-5, 6), repeat=2):
            for n in range(11):
                value = _emitted.power_difference(float(x), float(y), float(x - y), n)
                assert value == float(x**n - y**n)

    def test_power_difference_for_small_difference(self) -> None:
        x, h = 1.25, 1e-14
        with mpmath.workdps(50):
            exact = (mpmath.mpf(x) + mpmath.mpf(h)) ** 6 - mpmath.mpf(x) ** 6
            value = _emitted.power_difference(x + h, x, h, 6)
            # x + h is rounded (relative 1e-16); the difference h is given.
            assert abs(value - exact) <= 20 * EPS * abs(exact)


_PLAIN = """
import json, sys
from dynamics.positional import _emitted
calls = json.load(sys.stdin)
results = []
for name, arguments in calls:
    value = getattr(_emitted, name)(*arguments)
    results.append([x.hex() for x in (value if isinstance(value, tuple) else (value,))])
print(json.dumps(results))
"""


@pytest.mark.slow
def test_compiled_and_plain_python_are_bitwise_equal() -> None:
    """Compare with a process that runs the same source with NUMBA_DISABLE_JIT=1."""
    calls: list[tuple[str, tuple[float, ...]]] = []
    for x in samples(6, 200):
        exponents = tuple(x[name] for name in ("beta", "gamma", "rho", "tau", "C", "D"))
        constants = tuple(x[name] for name in ("C", "D", "kappa", "tau", "p", "nu"))
        Lambda, Gamma, Xi, *_ = weights(x)
        calls += [
            ("attention_weights", exponents),
            ("row_gradient", row_arguments(x)),
            ("row_hessian", row_arguments(x)),
            ("gamma_leading_term", (x["alpha"], Lambda, Gamma, *constants)),
            ("rho_leading_term", (x["alpha"], Lambda, Gamma, Xi, *constants)),
            ("power", (x["alpha"], int(x["C"]))),
            ("power_difference", (x["alpha"], x["tau"], x["alpha"] - x["tau"], int(x["p"]) - 1)),
        ]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", _PLAIN]
    done = subprocess.run(
        command,
        input=json.dumps(calls),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    for (name, arguments), plain in zip(calls, json.loads(done.stdout)):
        value = getattr(_emitted, name)(*arguments)
        compiled = [x.hex() for x in (value if isinstance(value, tuple) else (value,))]
        assert compiled == plain, (name, arguments)
