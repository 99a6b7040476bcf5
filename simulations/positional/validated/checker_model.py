r"""What the independent checker knows of the model: the velocity, its derivatives, loss and error.

Images are enumerated anew (with the identity sum I = C(N, k) 2^k), velocities are Arb series, and
derivatives are those of dual numbers. No code is shared with the prover.
"""

from __future__ import annotations

import math
from functools import cache
from operator import mul
from typing import Any

from flint import arb, arb_mat, arb_poly, arb_series, ctx, fmpq

CONSTANTS = "D C p q nu tau kappa beta"
ROWS, MOST_PATCHES, MOST_POWER = 512, 5000, 99
Interval = tuple[float, float]


class Rejected(Exception):
    """The certificate is wrong, or proves less than it says; the message names where."""


class TooLarge(Exception):
    """The check would take too long or too much memory; nothing was computed."""


def require(condition: Any, complaint: str) -> None:
    """Reject unless a condition holds for certain."""
    if not bool(condition):
        raise Rejected(complaint)


def allow(name: str, value: int, most: int) -> None:
    """Raise TooLarge above a limit."""
    if value > most:
        shown = f"{value}" if value < 10**15 else "more than 1e15"
        raise TooLarge(f"{name} = {shown} is not allowed: the checker takes at most {most}")


def fields(record: Any, names: str) -> None:
    """Reject a record with other fields: none may carry a statement that is not checked."""
    require(isinstance(record, dict), "an object is missing")
    odd = sorted(set(names.split()) ^ set(record))
    require(not odd, f"fields are missing or not known: {', '.join(odd)[:200]}")


def number(x: Any) -> Any:
    """Return a float or an integer as the number it is (fmpq)."""
    require(type(x) in (int, float) and math.isfinite(x), f"{x!r} is not a finite number")
    return fmpq(*x.as_integer_ratio())


def bounds(matrix: arb_mat, vector: Any) -> list[arb]:
    """Return bounds in modulus of a matrix times a vector of any signs."""
    rows = [[matrix[i, j].abs_upper() * abs(vector[j]) for j in range(3)] for i in range(3)]
    return [sum(row, arb(0)).abs_upper() for row in rows]


def interval(ball: Any) -> Interval:
    """Return floats (low, high) around a ball."""
    low, high = float(arb(ball).lower()), float(arb(ball).upper())
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


class Dual:
    """A number, or a series in u, with its derivatives in some directions."""

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
        """Return a function of this, given what it and its derivative are here."""
        return Dual(value, [slope * x for x in self.slopes])

    def exp(self) -> Dual:
        """Return e^x."""
        return self.chain(value := self.value.exp(), value)

    def __rtruediv__(self, one: Any) -> Dual:
        return self.chain(value := one / self.value, -value / self.value)

    def logistic(self) -> Dual:
        """Return s = 1/(1 + e^F) of a series F: s' = -F' w, w = s (1 - s), t = 1 - 2 s."""
        F, zero = self.value, arb(0)
        low, high = (1 / (1 + end.exp()) for end in (F[0].lower(), F[0].upper()))
        s, t = [low.union(high)], 1 - 2 * low.union(high)
        w, rate = [(1 - t * t) / 4], [-k * F[k] for k in range(ctx.cap)]
        for k in range(1, ctx.cap):
            s.append(sum(map(mul, rate[1 : k + 1], reversed(w)), zero) / k)
            pairs = 2 * sum((s[j] * s[k - j] for j in range(1, (k + 1) // 2)), zero)
            w.append(s[k] * t - (pairs + s[k // 2] * s[k // 2] if k % 2 == 0 else pairs))
        return self.chain(arb_series(s), -arb_series(w))


class Model:
    """The velocity of the images with at most K features, and a bound of all others."""

    def __init__(self, given: dict[str, Any]) -> None:
        fields(given, CONSTANTS)
        D, C, p = sizes = [given[name] for name in ("D", "C", "p")]
        whole = all(type(x) is int and x >= 2 for x in sizes)
        require(whole and C < D and D % C == 0 and p % 2 == 1, "no problem has these sizes")
        *positive, self.beta = [arb(number(given[x])) for x in ("q", "nu", "tau", "kappa", "beta")]
        self.q, self.nu, self.tau, self.kappa = positive
        require(self.q <= 1 and all(x > 0 for x in positive), "no problem has these parameters")
        allow("D - C", D - C, MOST_PATCHES)
        allow("p", p, MOST_POWER)
        allow("(D - C) (C + 1)", (D - C) * (C + 1), 20 * MOST_PATCHES)
        self.D, self.C, self.p = D, C, p
        self.N, self.others, self.weights = D - C, D // C - 1, (1, D * (C - 1), D * (D - C))
        self.rest: dict[int, Any] = {}

    def sizes(self, K: int) -> list[int]:
        """Return the numbers of multisets with at most 0 .. K features, without making any."""
        table = {(0, 0): 1}  # by features and sets; g + 1 types of sets have g features
        for g in range(1, min(self.C, K) + 1):
            for (k, n), ways in tuple(table.items()):
                for m in range(1, min(self.others - n, (K - k) // g) + 1):
                    key = k + m * g, n + m
                    table[key] = table.get(key, 0) + ways * math.comb(g + m, m)
        return [sum(ways for (k, _), ways in table.items() if k <= most) for most in range(K + 1)]

    def images(self, K: int) -> list[Any]:
        """Return all multisets with at most K features, as below; reject if one is missing."""
        found = self.multisets(K)
        sums = [sum(image[0] for image in found if image[1] == k) for k in range(K + 1)]
        every = [math.comb(self.N, k) * 2**k for k in range(K + 1)]
        require(sums == every, f"the images with at most {K} features are not complete")
        return sorted(found, key=lambda image: image[2])

    def multisets(self, K: int) -> list[Any]:
        """Return (patterns, features, T, empty sets, ((a, b, sets with a +1 and b -1), ...))."""
        found: list[Any] = [(1, 0, self.C, self.others, ())]
        for a, b in ((a, k - a) for k in range(1, min(self.C, K) + 1) for a in range(k + 1)):
            ways = math.comb(self.C, a + b) * math.comb(a + b, a)
            for count, k, T, empty, kinds in tuple(found):
                for m in range(1, min(empty, (K - k) // (a + b)) + 1):
                    more, features = count * math.comb(empty, m) * ways**m, k + m * (a + b)
                    found.append((more, features, T + m * (a - b), empty - m, (*kinds, (a, b, m))))
        return found

    def attention(self, gamma: Dual, rho: Dual) -> tuple[Dual, Dual, Dual, Dual]:
        """Return Gamma, Xi, Lambda - Gamma, Gamma - Xi."""
        same, other = (((x + (-self.beta)) * (1 / self.tau)).exp() for x in (gamma, rho))
        Lambda = 1 / ((self.C - 1) * same + (self.D - self.C) * other + 1)
        return tuple(Lambda * x for x in (same, other, (-1) * same + 1, same + (-1) * other))

    def states(self, theta: list[Dual], images: list[Any]) -> Any:
        """Yield each image with probability, F, alpha F_alpha, and F_gamma and F_rho but factors.

        All c add up to T, so that the slope of an empty set is taken off each row.
        """
        C, D, p, x = self.C, self.D, self.p, self.kappa * theta[0]
        _, Xi, X, Y = self.attention(*theta[1:])
        top, terms, each = x**p, ctx.cap, len(theta[0].slopes) + 1

        @cache
        def one_set(T: int, a: int, b: int) -> list[Any]:
            n, total, empty = a - b, [0, 0, 0], Xi * T
            for s, rows in ((1, a), (-1, b), (0, C - a - b)):
                own = X * s + Y * n
                c, step, last = own + empty, own * 0 + 1, empty
                for _ in range(p - 2):  # c^m - c_0^m = own (c^(m-1) + ... + c_0^(m-1))
                    step, last = c * step + last, last * empty
                turns = (1 - C) * c + (n - s), (C - D) * c + (T - n)
                parts = (c * step + last, *(step * turn for turn in turns))
                total = [y + rows * own * z for y, z in zip(total, parts)]
            return total

        for first in range(0, len(images), ROWS):
            some = images[first : first + ROWS]
            for T in sorted({image[2] for image in some}):
                group = [image for image in some if image[2] == T]
                types = sorted({kind[:2] for image in group for kind in image[4]})
                bulk, *slopes = one_set(T, C, 0)
                table = [[bulk + D * (Xi * T) ** p, *slopes]]
                table += [one_set(T, *pair) for pair in types]
                copies = [{kind[:2]: kind[2] for kind in image[4]} for image in group]
                counts = [[1, *(row.get(pair, 0) for pair in types)] for row in copies]
                flat = [[s[k] for y in row for s in (y.value, *y.slopes) for k in range(terms)]
                        for row in table]  # fmt: skip
                linear = (self.nu * T) * x
                for image, row in zip(group, (arb_mat(counts) * arb_mat(flat)).tolist()):
                    cut = [arb_series(row[k : k + terms]) for k in range(0, len(row), terms)]
                    N, A, B = (
                        Dual(y[0], y[1:]) for y in (cut[:each], cut[each:-each], cut[-each:])
                    )
                    chance = (
                        image[0] * (self.q / 2) ** image[1] * (1 - self.q) ** (self.N - image[1])
                    )
                    N = top * N
                    yield image, chance, N + linear, p * N + linear, A, B

    def velocity(self, theta: list[Dual], images: list[Any]) -> list[Dual]:
        """Return the velocity along a curve."""
        Gamma, Xi, _, _ = self.attention(*theta[1:])
        scale = (self.p / self.tau) * (self.kappa * theta[0]) ** self.p
        sums: list[Any] = [0, 0, 0]
        for _, chance, F, *parts in self.states(theta, images):
            sigmoid = chance * F.logistic()
            sums = [y + sigmoid * part for y, part in zip(sums, parts)]
        front = (1 / theta[0], scale * Gamma, scale * Xi)
        return [f * y * (1 / arb(many)) for f, y, many in zip(front, sums, self.weights)]

    def rows(self, k: int, least: int) -> Any:
        """Return t, P[k features], and (expected rows, s, m): s^2, and features of their set."""
        # Given k in all, sets with m are hypergeometric in the mean; the L_p norm t stands for |T|
        # (Hoelder). Far out t is C + k.
        C, N, p = self.C, self.N, self.p
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

    def neglected(self, curve: Any, room: list[Any], K: int) -> list[arb]:
        """Bound the velocity of all images with more than K features along P + e, and the loss."""
        # |c| <= |Lambda - Gamma| s + |Gamma - Xi| m + Xi t for m features in the set
        C, D, p = self.C, self.D, self.p
        alpha, *box = (Dual(P(arb(0, 1)) + arb(0, radius), []) for P, radius in zip(curve, room))
        weights = [weight.value for weight in self.attention(*box)]
        mass = (1 - (D - C) * weights[1]).abs_upper()  # Lambda + (C - 1) Gamma
        Gamma, Xi, X, Y = (weight.abs_upper() for weight in weights)
        x, sums = self.kappa * alpha.value.abs_upper(), [arb(0)] * 4
        for k in range(K + 1, self.N + 1):
            t, chance, rows = self.rows(k, K)
            sums[3] += chance * arb.const_log2()  # log(1 + e^-F) <= log 2 + |F|
            for many, s, m in rows:
                own = X * s + Y * m
                c = own + Xi * t
                steep = many * chance * p * (x * c) ** (p - 1)
                sums[0] += self.kappa * c * (steep + many * chance * self.nu)
                sums[3] += x * c * (steep / p + many * chance * self.nu)
                if m:  # rows of empty sets have no excess slope
                    sums[1] += steep * x * Gamma / self.tau * (m + (C - 1) * c)
                    sums[2] += steep * x * Xi / self.tau * (mass * t + m + (D - C) * own)
        return [total / many for total, many in zip(sums, (*self.weights, 1))]

    def along(self, curve: Any, room: list[fmpq], order: int, images: Any) -> list[arb_poly]:
        """Enclose the velocity at P(u), |u| <= 1, or, given room, the Jacobian at P(u) + e."""
        # Taylor polynomials; the constant terms hold the remainder: the next coefficient at all u.
        found = []
        for n, u in ((order, arb(0)), (order + 1, arb(0, 1))):
            ctx.cap = n + 1
            theta = [Dual(arb_series(P(arb_poly([u, 1])).coeffs()[: n + 1]), []) for P in curve]
            for i, radius in enumerate(room):
                slopes = [arb_series([int(i == j)]) for j in range(3)]
                theta[i] = Dual(theta[i].value + arb(0, radius), slopes)
            velocity = self.velocity(theta, images)
            found.append([s for v in velocity for s in (v.slopes if room else [v.value])])
        terms = [[s[k] for k in range(order + 1)] for s in found[0]]
        return [arb_poly(t) + arb(0, s[order + 1]) for t, s in zip(terms, found[1])]

    def outcomes(self, ends: list[Any], K: int) -> tuple[Interval, Interval]:
        """Enclose loss and test error P[F <= 0] on a box."""
        ctx.cap = 1
        loss = low = high = known = arb(0)
        theta = [Dual(arb_series([end]), []) for end in ends]
        for image, chance, output, *_ in self.states(theta, self.images(K)):
            F = output.value[0]
            log = [(-end).exp().log1p() for end in (F.lower(), F.upper())]
            loss, known = loss + chance * log[0].union(log[1]), known + chance
            error = F <= 0 or self.is_tie(image)
            low, high = low + chance * error, high + chance * (error or not F > 0)
        tail = self.neglected([arb_poly([end]) for end in ends], [0, 0, 0], K)[3]
        (least, _), (_, most) = interval(loss), interval(loss + tail)
        return (max(0.0, least), most), (
            max(0.0, interval(low)[0]), min(1.0, interval(high + 1 - known)[1])
        )  # fmt: skip

    def is_tie(self, image: Any) -> bool:
        """Return whether F = 0 in every state: T = 0, and all sums of s^k n^(p - k) vanish."""
        C, p, kinds = self.C, self.p, ((self.C, 0, 1), *image[4])
        return image[2] == 0 and not any(
            sum(m * (a + (-1) ** k * b + (C - a - b) * (k == 0)) * (a - b) ** (p - k)
                for a, b, m in kinds)
            for k in range(p)
        )  # fmt: skip

    def floor(self) -> float:
        """Return a lower bound of the loss on gamma = rho: log 2 P[C + R <= 0]."""
        C, N, total = self.C, self.N, arb(0)
        for k in range(C, min(N, 300) + 1):
            signs = sum(math.comb(k, plus) for plus in range((k - C) // 2 + 1))
            total += math.comb(N, k) * signs * (self.q / 2) ** k * (1 - self.q) ** (N - k)
        return max(0.0, interval(total * arb.const_log2())[0])
