r"""Model of the independent checker: the velocity, its derivatives, loss and test error.

The output F of an image is a sum of integers times functions of (alpha, gamma, rho). The loss is
E log(1 + e^-F); gradient and Hessian are computed with dual numbers. The functions are series of
balls. Balls, images and means over these are in an *arithmetic*, a module: `checker_images` with
FLINT and NumPy, or `checker_lists` in pure Python. No code is shared with the prover.
"""

from __future__ import annotations

import math
from functools import reduce
from types import ModuleType
from typing import Any

CONSTANTS = "D C p q nu tau kappa beta"
MOST_PATCHES, MOST_POWER, SHARES = 5000, 99, 2
Interval = tuple[float, float]


class Rejected(Exception):
    """Raised for a malformed certificate or a tube that is not proved; the message states where."""


class TooLarge(Exception):
    """Raised before a check that would take too long or too much memory."""


def require(condition: Any, message: str) -> None:
    """Raise Rejected unless a condition is certainly true."""
    if not bool(condition):
        raise Rejected(message)


def allow(name: str, value: int, most: int) -> None:
    """Raise TooLarge if a size exceeds its limit."""
    if value > most:
        shown = f"{value}" if value < 10**15 else "more than 1e15"
        raise TooLarge(f"{name} = {shown} is not allowed: the checker takes at most {most}")


def fields(record: Any, names: str) -> None:
    """Raise Rejected for missing fields, and for other ones: they would not be checked."""
    require(isinstance(record, dict), "an object is missing")
    wrong = sorted(set(names.split()) ^ set(record))
    require(not wrong, f"fields are missing or not known: {', '.join(wrong)[:200]}")


def number(x: Any, rational: Any) -> Any:
    """Return a float or an integer as an exact rational number of an arithmetic (``fmpq``)."""
    require(type(x) in (int, float) and math.isfinite(x), f"{x!r} is not a finite number")
    return rational(*x.as_integer_ratio())


def bounds(matrix: Any, vector: Any) -> list[Any]:
    """Return bounds of the moduli of a (3, 3) matrix times a vector with any signs."""
    rows = [[matrix[i, j].abs_upper() * abs(vector[j]) for j in range(3)] for i in range(3)]
    return [sum(row[1:], row[0]).abs_upper() for row in rows]


def interval(ball: Any) -> Interval:
    """Return floats (low, high) that enclose a ball."""
    low, high = float(ball.lower()), float(ball.upper())
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


def softplus(x: Any) -> Any:
    """Return log(1 + e^x) for a ball of one number, without large exponentials."""
    return x.max(0 * x) + (-abs(x)).exp().log1p()


class Dual:
    """A dual number: a number or a series in u, with its derivatives in some directions."""

    def __init__(self, value: Any, slopes: list[Any]) -> None:
        self.value, self.slopes = value, slopes

    def __add__(self, other: Any) -> Dual:
        other = other if isinstance(other, Dual) else Dual(other, [0] * len(self.slopes))
        return Dual(self.value + other.value, [x + y for x, y in zip(self.slopes, other.slopes)])

    def __mul__(self, other: Any) -> Dual:
        if not isinstance(other, Dual):
            return self.chain(self.value * other, other)
        slopes = [x * other.value + self.value * y for x, y in zip(self.slopes, other.slopes)]
        return Dual(self.value * other.value, slopes)

    __radd__, __rmul__ = __add__, __mul__

    def __pow__(self, n: int) -> Dual:
        return self if n == 1 else self ** (n // 2) * self ** (n - n // 2)

    def chain(self, value: Any, slope: Any) -> Dual:
        """Return a function of this number, given the value and the derivative of the function."""
        return Dual(value, [slope * x for x in self.slopes])

    def exp(self) -> Dual:
        """Return e^x."""
        return self.chain(value := self.value.exp(), value)

    def __rtruediv__(self, numerator: Any) -> Dual:
        # correct for the numerator 1, the only one in use
        return self.chain(value := numerator / self.value, (-1) * value * value)


class Model:
    """Velocity of the images with at most K features, and bounds for all others.

    Parameters
    ----------
    constants
        Mapping from name to constant of the problem.
    arithmetic
        Module of balls and images.

    Raises
    ------
    Rejected, TooLarge
        If they are not those of a problem, or too large.
    """

    def __init__(self, constants: dict[str, Any], arithmetic: ModuleType) -> None:
        fields(constants, CONSTANTS)
        self.arithmetic, arb, fmpq = arithmetic, arithmetic.arb, arithmetic.fmpq
        D, C, p = sizes = [constants[name] for name in ("D", "C", "p")]
        whole = all(type(x) is int and x >= 2 for x in sizes)
        require(whole and C < D and D % C == 0 and p % 2 == 1, "no problem has these sizes")
        names = ("q", "nu", "tau", "kappa", "beta")
        *positive, self.beta = [arb(number(constants[name], fmpq)) for name in names]
        self.q, self.nu, self.tau, self.kappa = positive
        require(self.q <= 1 and all(x > 0 for x in positive), "no problem has these parameters")
        allow("D - C", D - C, MOST_PATCHES)
        allow("p", p, MOST_POWER)
        allow("(D - C) (C + 1)", (D - C) * (C + 1), 20 * MOST_PATCHES)
        self.D, self.C, self.p = D, C, p
        self.N, self.others, self.weights = D - C, D // C - 1, (1, D * (C - 1), D * (D - C))
        self.shares = [1 / arb(weight) for weight in self.weights]
        self.rest: dict[int, Any] = {}

    def units(self) -> list[list[Any]]:
        """Return the slopes of the coordinates and of a constant, as series of the order in use."""
        series = self.arithmetic.arb_series  # FLINT cuts products at the shorter series
        return [[series([int(i == j)]) for j in range(3)] for i in range(4)]

    def sizes(self, K: int) -> list[int]:
        """Return the numbers of multisets with at most 0 .. K features, without enumeration."""
        table = {(0, 0): 1}  # by features and sets; there are g + 1 types of sets with g features
        for g in range(1, min(self.C, K) + 1):
            for (k, n), ways in tuple(table.items()):
                for m in range(1, min(self.others - n, (K - k) // g) + 1):
                    key = k + m * g, n + m
                    table[key] = table.get(key, 0) + ways * math.comb(g + m, m)
        return [sum(ways for (k, _), ways in table.items() if k <= most) for most in range(K + 1)]

    def enumerate(self, K: int) -> None:
        """Enumerate all images with at most K features; raise Rejected if one is missing."""
        self.images = self.arithmetic.Images(self.D, self.C, self.p, self.q, K)
        require(self.images.complete, f"the images with at most {K} features are not complete")

    def attention(self, gamma: Dual, rho: Dual) -> tuple[Dual, Dual, Dual, Dual]:
        """Return Gamma, Xi, Lambda - Gamma, Gamma - Xi."""
        same, other = (((x + (-self.beta)) * (1 / self.tau)).exp() for x in (gamma, rho))
        Lambda = 1 / ((self.C - 1) * same + (self.D - self.C) * other + 1)
        return tuple(Lambda * x for x in (same, other, (-1) * same + 1, same + (-1) * other))

    def functions(self, alpha: Dual, gamma: Dual, rho: Dual) -> list[Dual]:
        """Return the functions c of F = sum_a m_a c_a; `Images.integers` contains the m."""
        # with x = kappa alpha and s, n, T as in `Images.monomials` F is nu x T + sum over patches
        # of (x (X s + Y n + Xi T))^p
        x, p, functions = self.kappa * alpha, self.p, []
        _, Xi, X, Y = self.attention(gamma, rho)
        powers: list[list[Any]] = [[1, y] for y in (X, Y, Xi)]
        for row in powers:
            for _ in range(p - 1):
                row.append(row[-1] * row[1])
        top = x**p
        for i, j, k in self.images.powers():
            ways = math.comb(p, i) * math.comb(p - i, j)
            functions.append(ways * top * powers[0][i] * powers[1][j] * powers[2][k])
        return [*functions, self.nu * x]

    def velocity(self, theta: list[Any], K: int) -> list[Any]:
        """Return the velocity E[s F_i]/W_i along a curve, s = 1/(1 + e^F)."""
        c, count = self.functions(*map(Dual, theta, self.units())), self.images.upto[K]
        s, _ = self.arithmetic.logistic(self.images.series([y.value for y in c], count))
        F = [self.images.series([y.slopes[i] for y in c], count) for i in range(3)]
        return [y * share for y, share in zip(self.images.means(s, F), self.shares)]

    def jacobian(self, theta: list[Any], radii: list[Any], K: int) -> list[Any]:
        """Return the Jacobian (E[s F_ij] - E[s (1 - s) F_i F_j])/W_i for |e| <= radii, by rows."""
        # F_ij on the box; from these F_i and F by the mean value theorem
        arb, spread, units = self.arithmetic.arb, self.arithmetic.spread, self.units()
        box = [Dual(x + arb(0, r), e) for x, r, e in zip(theta, radii, units)]
        second_order = [Dual(x, [Dual(y, units[3]) for y in x.slopes]) for x in box]
        on_box, on_curve = self.functions(*second_order), self.functions(*map(Dual, theta, units))
        count, entries, second = self.images.upto[K], {}, {}
        for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
            F_ij = self.images.series([y.slopes[i].slopes[j] for y in on_box], count)
            second[i, j] = second[j, i] = F_ij
        first = []
        for i in range(3):
            F_i = self.images.series([y.slopes[i] for y in on_curve], count)
            first.append(spread(F_i, [second[i, j] for j in range(3)], radii))
        F = spread(self.images.series([y.value for y in on_curve], count), first, radii)
        s, w = self.arithmetic.logistic(F)
        for i in range(3):
            curvature = self.images.means(s, [second[i, j] for j in range(i, 3)])
            products = self.images.means(self.arithmetic.convolved(w, first[i]), first[i:])
            for j, x, y in zip(range(i, 3), curvature, products):
                entries[i, j] = entries[j, i] = x - y
        return [entries[i, j] * self.shares[i] for i in range(3) for j in range(3)]

    def rows(self, k: int, least: int) -> Any:
        """Return the data of `neglected` for images with k features.

        Returns
        -------
        t
            Bound of the L_p norm of T.
        probability
            P[k features].
        rows
            (expected number of patches, s^2 of their feature s, features m of their set).
        """
        # given k, the number of sets with m features is hypergeometric in the mean; the L_p norm t
        # replaces |T| (Hoelder); for large k it is bounded by C + k
        C, N, p, arb, fmpq = self.C, self.N, self.p, self.arithmetic.arb, self.arithmetic.fmpq
        if k not in self.rest:
            rows, t = [(fmpq(C), 1, C)], arb(C + k)
            if k <= least + 100:
                moment = sum(math.comb(k, h) * abs(C + 2 * h - k) ** p for h in range(k + 1))
                t = (arb(moment) / arb(2) ** k).root(p)
            for m in range(min(C, k) + 1):
                ways = math.comb(C, m) * math.comb(N - C, k - m) * self.others
                mean = fmpq(ways, math.comb(N, k))
                rows += [(mean * m, 1, m), (mean * (C - m), 0, m)]
            self.rest[k] = t, math.comb(N, k) * self.q**k * (1 - self.q) ** (N - k), rows
        return self.rest[k]

    def neglected(self, curve: Any, radii: list[Any], K: int) -> list[Any]:
        """Bound velocity and loss of all images with more than K features for |theta - P| <= radii.

        The first three numbers bound the velocity, the last one the loss.
        """
        # |c| <= |Lambda - Gamma| s + |Gamma - Xi| m + Xi t for m features in the set
        C, D, p, arb = self.C, self.D, self.p, self.arithmetic.arb
        alpha, *box = (Dual(P(arb(0, 1)) + arb(0, radius), []) for P, radius in zip(curve, radii))
        weights = [weight.value for weight in self.attention(*box)]
        mass = (1 - (D - C) * weights[1]).abs_upper()  # Lambda + (C - 1) Gamma
        Gamma, Xi, X, Y = (weight.abs_upper() for weight in weights)
        x, sums = self.kappa * alpha.value.abs_upper(), [arb(0)] * 4
        for k in range(K + 1, self.N + 1):
            t, probability, rows = self.rows(k, K)
            sums[3] += probability * arb.const_log2()  # log(1 + e^-F) <= log 2 + |F|
            for count, s, m in rows:
                own = X * s + Y * m
                c = own + Xi * t
                slope = count * probability * p * (x * c) ** (p - 1)
                sums[0] += self.kappa * c * (slope + count * probability * self.nu)
                sums[3] += x * c * (slope / p + count * probability * self.nu)
                if m:  # rows of empty sets have no excess slope
                    sums[1] += slope * x * Gamma / self.tau * (m + (C - 1) * c)
                    sums[2] += slope * x * Xi / self.tau * (mass * t + m + (D - C) * own)
        return [total / weight for total, weight in zip(sums, (*self.weights, 1))]

    def along(self, curve: Any, radii: list[Any], order: int, K: int) -> list[Any]:
        """Enclose the velocity at P(u) or, given radii, the Jacobian at P(u) + e, for |u| <= 1."""
        # Taylor polynomials; the constant term includes the remainder, the next coefficient over u
        use, expansions = self.arithmetic, list[Any]()
        arb, arb_poly, arb_series = use.arb, use.arb_poly, use.arb_series
        for u in (arb(0), *(arb(k, 1) / SHARES for k in range(1 - SHARES, SHARES, 2))):
            use.ctx.cap = order + 2 if expansions else order + 1
            theta = [arb_series(P(arb_poly([u, 1])).coeffs()[: use.ctx.cap]) for P in curve]
            expansion = self.jacobian(theta, radii, K) if radii else self.velocity(theta, K)
            expansions.append(expansion)
        centre, *shares = expansions
        remainders = [
            reduce(arb.max, (abs(y[order + 1]).upper() for y in entry)) for entry in zip(*shares)
        ]
        terms = [[y[k] for k in range(order + 1)] for y in centre]
        return [arb_poly(t) + arb(0, 1) * remainder for t, remainder in zip(terms, remainders)]

    def outcomes(self, ends: list[Any], K: int) -> tuple[Interval, Interval]:
        """Enclose loss and test error P[F <= 0] on a box."""
        arb, arb_mat, arb_poly = (
            getattr(self.arithmetic, f"arb{x}") for x in ("", "_mat", "_poly")
        )
        count, loss = self.images.upto[K], arb(0)
        low = high = total = arb(0)
        c = arb_mat([[y.value] for y in self.functions(*(Dual(arb(end), []) for end in ends))])
        rows, weights = self.images.rows(count), self.images.probability
        for row, weight, (F,) in zip(rows, weights, (arb_mat(rows) * c).tolist()):
            log = [softplus(-end) for end in (F.lower(), F.upper())]
            loss, total = loss + weight * log[0].union(log[1]), total + weight
            error = F <= 0 or not any(row)  # a tie at every state
            low, high = low + weight * error, high + weight * (error or not F > 0)
        tail = self.neglected([arb_poly([end]) for end in ends], [0, 0, 0], K)[3]
        losses = max(0.0, interval(loss)[0]), interval(loss + tail)[1]
        errors = max(0.0, interval(low)[0]), min(1.0, interval(high + 1 - total)[1])
        return losses, errors

    def floor(self) -> float:
        """Return a lower bound of the loss on gamma = rho: log 2 P[C + R <= 0]."""
        C, N, arb = self.C, self.N, self.arithmetic.arb
        total = arb(0)
        for k in range(C, min(N, 300) + 1):
            signs = sum(math.comb(k, plus) for plus in range((k - C) // 2 + 1))
            total += math.comb(N, k) * signs * (self.q / 2) ** k * (1 - self.q) ** (N - k)
        return max(0.0, interval(total * arb.const_log2())[0])
