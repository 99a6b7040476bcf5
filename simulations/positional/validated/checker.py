r"""An independent checker of tubes: plain Python with Arb, no code shared with the prover.

It checks the tube and the enclosure at its end (``checked``); what a proof says beside that (loss,
test error, from when gamma > rho) follows from the tube by the prover's own code. A certificate
names polynomials P and, for each part of a piece, coordinates B and a bar. Images are enumerated
anew (with the identity sum I = C(N, k) 2^k), velocities are Arb series, the Jacobian J is their
derivative by dual numbers. Theorem: let z = B^-1 (theta - P), |z| <= v when a part of length h
begins, M = B^-1 J B for |theta - P| <= |B| bar, d a bound of the defect, b_i = d_i + sum_{j != i}
|M_ij| bar_j, after = e^{M_ii h} v + b int_0^h e^{M_ii s} ds. If v, after < bar, then |z| < bar on
the part, and |z| <= after at its end. Descent has g^n and eta (g^n - 1)/(g - 1), g = max |1 + eta
M_ii|, in the place of the exponential and its integral.
"""

from __future__ import annotations

import json
import math
from functools import cache, reduce
from pathlib import Path
from typing import Any

from flint import arb, arb_mat, arb_poly, arb_series, ctx, fmpq

BITS, JACOBIAN_ORDER = 80, 4


class Rejected(Exception):
    """The certificate is wrong, or proves less than it says; the message names where."""


def require(condition: Any, complaint: str) -> None:
    """Reject unless a condition holds for certain."""
    if not bool(condition):
        raise Rejected(complaint)


def number(x: Any) -> Any:
    """Return a float or an integer as the number it is (fmpq)."""
    require(type(x) in (int, float) and math.isfinite(x), f"{x!r} is not a finite number")
    return fmpq(*x.as_integer_ratio())


def bounds(matrix: arb_mat, vector: Any) -> list[arb]:
    """Return bounds in modulus of a matrix times a vector of any signs."""
    rows = [[matrix[i, j].abs_upper() * abs(vector[j]) for j in range(3)] for i in range(3)]
    return [sum(row, arb(0)).abs_upper() for row in rows]


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
        F = self.value
        low, high = (1 / (1 + end.exp()) for end in (F[0].lower(), F[0].upper()))
        s, t = [low.union(high)], 1 - 2 * low.union(high)
        w = [(1 - t * t) / 4]
        for k in range(1, ctx.cap):
            s.append(sum((-j * F[j] * w[k - j] for j in range(1, k + 1)), arb(0)) / k)
            w.append(s[k] * t - sum((s[j] * s[k - j] for j in range(1, k)), arb(0)))
        return self.chain(arb_series(s), -arb_series(w))


class Model:
    """The velocity of the images with at most K features, and a bound of all others."""

    def __init__(self, given: dict[str, Any]) -> None:
        D, C, p = sizes = [given[name] for name in ("D", "C", "p")]
        small = all(isinstance(x, int) and 2 <= x < 10**6 for x in sizes) and C <= 500 and p < 100
        require(small and C < D and D % C == 0 and p % 2 == 1, "no problem has these sizes")
        *positive, self.beta = [arb(number(given[x])) for x in ("q", "nu", "tau", "kappa", "beta")]
        self.q, self.nu, self.tau, self.kappa = positive
        require(self.q <= 1 and all(x > 0 for x in positive), "no problem has these parameters")
        self.D, self.C, self.p = D, C, p
        self.N, self.others, self.weights = D - C, D // C - 1, (1, D * (C - 1), D * (D - C))

    def images(self, K: int) -> list[Any]:
        """Return all multisets with at most K features, as below; reject if one is missing."""
        require(isinstance(K, int) and 0 <= K <= min(self.N, 60), f"K = {K!r} is not possible")
        found = self.multisets(K)
        sums = [sum(image[0] for image in found if image[1] == k) for k in range(K + 1)]
        every = [math.comb(self.N, k) * 2**k for k in range(K + 1)]
        require(sums == every, f"the images with at most {K} features are not complete")
        return found

    def multisets(self, K: int) -> list[Any]:
        """Return (patterns, features, T, empty sets, ((a, b, sets with a +1 and b -1), ...))."""
        found: list[Any] = [(1, 0, self.C, self.others, ())]
        for a, b in ((a, k - a) for k in range(1, self.C + 1) for a in range(k + 1)):
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

    def velocity(self, theta: list[Dual], images: list[Any]) -> list[Dual]:
        """Return the velocity along a curve; all c add up to T, so one slope less in each row."""
        C, D, p, x = self.C, self.D, self.p, self.kappa * theta[0]
        Gamma, Xi, X, Y = self.attention(*theta[1:])
        top, scale = x**p, (p / self.tau) * x**p
        front = (1 / theta[0], scale * Gamma, scale * Xi)

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

        sums: list[Any] = [0, 0, 0]
        for count, k, T, _, kinds in images:
            total: list[Any] = [D * (Xi * T) ** p, 0, 0]
            for a, b, m in ((C, 0, 1), *kinds):
                total = [y + m * z for y, z in zip(total, one_set(T, a, b))]
            bulk, linear = top * total[0], (self.nu * T) * x
            parts, F = (p * bulk + linear, total[1], total[2]), bulk + linear
            sigmoid = count * (self.q / 2) ** k * (1 - self.q) ** (self.N - k) * F.logistic()
            sums = [y + sigmoid * part for y, part in zip(sums, parts)]
        return [f * y * (1 / arb(many)) for f, y, many in zip(front, sums, self.weights)]

    def neglected(self, curve: Any, room: list[fmpq], K: int) -> list[arb]:
        """Bound the velocity of all images with more than K features along P + e."""
        # |c| <= |Lambda - Gamma| s + |Gamma - Xi| m + Xi t for m features in the set: given k in
        # all, sets with m are hypergeometric in the mean; the L_p norm t stands for |T| (Hoelder).
        C, D, p, N = self.C, self.D, self.p, self.N
        alpha, *box = (Dual(P(arb(0, 1)) + arb(0, radius), []) for P, radius in zip(curve, room))
        weights = [weight.value for weight in self.attention(*box)]
        mass = (1 - (D - C) * weights[1]).abs_upper()  # Lambda + (C - 1) Gamma
        Gamma, Xi, X, Y = (weight.abs_upper() for weight in weights)
        x, sums = self.kappa * alpha.value.abs_upper(), [arb(0)] * 3
        for k in range(K + 1, N + 1):
            moment = sum(math.comb(k, h) * abs(C + 2 * h - k) ** p for h in range(k + 1))
            t = (arb(moment) / arb(2) ** k).root(p)
            rows = [(fmpq(C), 1, C)]
            for m in range(min(C, k) + 1):
                ways = math.comb(C, m) * math.comb(N - C, k - m) * self.others
                mean = fmpq(ways, math.comb(N, k))
                rows += [(mean * m, 1, m), (mean * (C - m), 0, m)]
            chance = math.comb(N, k) * self.q**k * (1 - self.q) ** (N - k)
            for many, s, m in rows:
                own = X * s + Y * m
                c = own + Xi * t
                steep = many * chance * p * (x * c) ** (p - 1)
                sums[0] += self.kappa * c * (steep + many * chance * self.nu)
                if m:  # rows of empty sets have no excess slope
                    sums[1] += steep * x * Gamma / self.tau * (m + (C - 1) * c)
                    sums[2] += steep * x * Xi / self.tau * (mass * t + m + (D - C) * own)
        return [total / many for total, many in zip(sums, self.weights)]

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


def compared(M: arb_mat, begin: list[arb], errors: Any, bar: Any, time: Any, eta: Any) -> Any:
    """Return bounds of |z| at the end of a part, by the theorem; None if the bar is too low."""
    for again in range(4):  # what is reached may take the place of a bar that is high enough
        after = []
        for i in range(3):
            b = errors[i] + sum(M[i, j].abs_upper() * bar[j] for j in range(3) if j != i)
            rate, growth = M[i, i].upper(), time * M[i, i].upper()
            if eta is not None:
                g = (1 + eta * M[i, i]).abs_upper()
                rate, growth = (g - 1) / eta, time / eta * g.log()
            integral = time if rate == 0 else growth.expm1() / rate
            after.append((growth.exp() * begin[i] + integral * b).abs_upper())
        if not again and not all(begin[i] < bar[i] and after[i] < bar[i] for i in range(3)):
            return None
        bar = [x.max(y) for x, y in zip(begin, after)]
    return after


class Check:
    """How far a check has come: |z| <= v in the coordinates ``basis`` around the curve's end."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.model, rate = Model(record["problem"]), record["learning_rate"]
        self.eta = None if rate is None else number(rate)
        self.v, self.end = ([number(x) for x in record[key]] for key in ("start_radius", "start"))
        self.basis, self.count = arb_mat(3, 3, 1), 0.0
        positive = self.eta is None or self.eta > 0
        require(positive and all(x >= 0 for x in self.v), "a rate or a radius is negative")
        if self.v[0] != 0:  # the start is said to be that of Parametrization 3.1
            with ctx.workprec(256):
                root = (self.model.nu.log() / (self.model.p - 1)).exp()
                require(abs(root - self.end[0]) <= self.v[0], "the start does not hold nu's root")

    def piece(self, piece: dict[str, Any]) -> None:
        """Check one piece and move to its end."""
        start, parts, room = piece["start"], piece["parts"], [number(x) for x in piece["room"]]
        length = number(piece["end"]) - number(start)
        require(start == self.count and length > 0, f"a piece from {start!r} does not follow")
        whole = self.eta is None or (length / len(parts)).q == 1
        require(parts and whole, f"a piece from {start!r} has no parts, or no whole steps")
        curve = [arb_poly([number(row[i]) for row in piece["coefficients"]]) for i in range(3)]
        jump = bounds(self.basis.inv(), [P(-1) - x for P, x in zip(curve, self.end)])
        self.v = [x + y for x, y in zip(self.v, jump)]
        self.end, self.count = [P(1) for P in curve], piece["end"]
        time = length / len(parts) * (1 if self.eta is None else self.eta)
        rates = [P.derivative() * (2 / length) for P in curve]
        if self.eta is not None:
            rates = [(P(arb_poly([2 / length, 1])) - P) * (1 / self.eta) for P in curve]
        if self.eta is not None and length == 1:  # it sees the velocity at its beginning alone
            curve, rates = ([arb_poly([P(-1)]) for P in some] for some in (curve, rates))
        frames = [(arb_mat(3, 3, [number(x) for row in B for x in row]), [*map(number, bar)])
                  for B, bar in parts]  # fmt: skip
        own = [reduce(arb.max, column) for column in zip(*(bounds(*frame) for frame in frames))]
        fits = all(x <= y for x, y in zip(own, room, strict=True))
        require(fits, f"a bar leaves the room of the Jacobian after {start!r}")
        images, lost = self.model.images(piece["K"]), self.model.neglected(curve, own, piece["K"])
        velocity = self.model.along(curve, [], max(map(len, curve)), images)
        defect = [f - rate + arb(0, g) for f, rate, g in zip(velocity, rates, lost)]
        jacobian = self.model.along(curve, own, JACOBIAN_ORDER, images)
        for k, (B, bar) in enumerate(frames):
            here = arb_poly([arb(2 * k + 1) / len(parts) - 1, arb(1) / len(parts)])
            inverse, M, entries = B.inv(), arb_mat(3, 3), [p(here) for p in jacobian]
            for n in range(JACOBIAN_ORDER + 1):
                term = inverse * arb_mat(3, 3, [p[n] for p in entries]) * B
                M += term * arb(0, 1) if n else term
            errors = bounds(inverse, [d(here)(arb(0, 1)) for d in defect])
            self.v = compared(M, bounds(inverse * self.basis, self.v), errors, bar, time, self.eta)
            require(self.v, f"the tube is too thin after {start!r}")
            self.basis = B


def check(path: Path, progress: Any = None) -> list[tuple[float, float]]:
    """Return (low, high) of alpha, gamma, rho at the end of a certificate, or raise Rejected."""
    cap = ctx.cap
    try:
        with ctx.workprec(BITS):
            record = json.loads(path.read_text(encoding="utf-8"))
            state = Check(record)
            for i, piece in enumerate(record["pieces"]):
                state.piece(piece)
                if progress is not None:
                    progress((i + 1) / len(record["pieces"]))
            time = state.count * (record["learning_rate"] or 1.0)
            require(record["time"] == time, "the time is another")
            claimed = [record["checked"][name] for name in ("alpha", "gamma", "rho")]
            for (low, high), at, r in zip(claimed, state.end, bounds(state.basis, state.v)):
                holds = number(low) <= at - r and at + r <= number(high)
                require(holds, f"an enclosure in [{low!r}, {high!r}] is not proved")
            return [(float(low), float(high)) for low, high in claimed]
    except (KeyError, IndexError, TypeError, ValueError, ArithmeticError) as failure:
        raise Rejected(f"this is no certificate of a tube: {failure!r}") from failure
    finally:
        ctx.cap = cap
