r"""An independent checker of tubes: plain Python with Arb, no code shared with the prover.

It checks the tube and the enclosure at its end (``checked``); what a proof says beside that (the
loss, the test error, from when gamma > rho) follows from the tube by the prover's own code.

A certificate names polynomials P and, for each part of a piece, coordinates B and a bar. That the
solution stays within the bars is checked from the model alone: images are enumerated anew (with
the identity sum I = C(N, k) 2^k), velocities are Arb series, the Jacobian is their derivative by
dual numbers. Theorem: let z = B^-1 (theta - P), |z| <= v at the beginning of a part of length h,
M the bounds of B^-1 J B for |theta - P| <= room, d those of the defect, b_i = d_i + sum_{j != i}
M_ij bar_j, after = e^{Mh} v + b int_0^h e^{Ms} ds and during = max(v, after). If during < bar and
|B| bar <= room, then |z| <= during on the part, and |z| <= after at its end. Descent has g^n and
eta (g^n - 1)/(g - 1), g = max |1 + eta M_ii|, in the place of the exponential and its integral.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from flint import arb, arb_mat, arb_series, ctx, fmpq

BITS, JACOBIAN_ORDER = 80, 4


class Rejected(Exception):
    """The certificate is wrong, or proves less than it says; the message names where."""


def number(x: Any) -> arb:
    """Return a float, integer or fraction as the number it is."""
    if isinstance(x, bool) or not isinstance(x, int | float | Fraction) or not math.isfinite(x):
        raise Rejected(f"{x!r} is not a finite number")
    x = Fraction(x)
    return arb(fmpq(x.numerator, x.denominator))


def spread(x: arb) -> arb:
    """Return the ball around 0 that reaches as far as x."""
    return arb(0, 1) * abs(x).upper()


def require(condition: Any, complaint: str) -> None:
    """Reject unless a condition holds for certain."""
    if not bool(condition):
        raise Rejected(complaint)


class Dual:
    """A series with its derivatives in three directions."""

    def __init__(self, value: Any, slopes: list[Any]) -> None:
        self.value, self.slopes = value, slopes

    def __add__(self, other: Any) -> Dual:
        if not isinstance(other, Dual):
            return Dual(self.value + other, self.slopes)
        pairs = zip(self.slopes, other.slopes)
        return Dual(self.value + other.value, [x + y for x, y in pairs])

    def __mul__(self, other: Any) -> Dual:
        if not isinstance(other, Dual):
            return Dual(self.value * other, [x * other for x in self.slopes])
        pairs = zip(self.slopes, other.slopes)
        slopes = [x * other.value + self.value * y for x, y in pairs]
        return Dual(self.value * other.value, slopes)

    __radd__, __rmul__ = __add__, __mul__


def lifted(function: Callable[[Any], tuple[Any, Any]], x: Any) -> Any:
    """Apply a function that returns value and derivative to a number, a series or a dual number."""
    if not isinstance(x, Dual):
        return function(x)[0]
    value, slope = function(x.value)
    return Dual(value, [slope * part for part in x.slopes])


def exponential(x: Any) -> tuple[Any, Any]:
    """Return e^x and its derivative."""
    return (value := x.exp()), value


def inverse(x: Any) -> tuple[Any, Any]:
    """Return 1/x and its derivative."""
    return (value := 1 / x), -(value * value)


def logistic(F: arb_series) -> tuple[arb_series, arb_series]:
    """Return s = 1/(1 + e^F) and its derivative -w, by s' = -F' w, w = s (1 - s).

    s falls and w rises to 1/4 at 0 and falls: their ends say where they are on a ball.
    """
    one, two = (1 / (1 + end.exp()) for end in (F[0].lower(), F[0].upper()))
    s, w = [one.union(two)], [(one * (1 - one)).union(two * (1 - two))]
    if F[0].contains(0):
        w[0] = w[0].union(arb("0.25"))
    for k in range(1, ctx.cap):
        s.append(sum((-j * F[j] * w[k - j] for j in range(1, k + 1)), arb(0)) / k)
        w.append(s[k] * (1 - 2 * s[0]) - sum((s[j] * s[k - j] for j in range(1, k)), arb(0)))
    return arb_series(s), -arb_series(w)


def power(x: Any, n: int) -> Any:
    """Return x^n, n >= 1, by multiplication."""
    return x if n == 1 else power(x, n // 2) * power(x, n - n // 2)


class Model:
    """The velocity of the images with at most K features, and a bound of all others."""

    def __init__(self, given: dict[str, Any]) -> None:
        sizes = [given[name] for name in ("D", "C", "p")]
        require(all(isinstance(x, int) and x < 10**6 for x in sizes), "the sizes are too large")
        self.D, self.C, self.p = D, C, p = sizes
        names = ("q", "nu", "beta", "tau", "kappa")
        self.q, self.nu, self.beta, self.tau, self.kappa = (number(given[name]) for name in names)
        possible = 2 <= C < D and D % C == 0 and 3 <= p < 100 and p % 2 == 1 and C <= 500
        require(possible, "no problem has these sizes")
        positive = self.q > 0 and self.q <= 1 and self.nu > 0 and self.tau > 0 and self.kappa > 0
        require(positive, "no problem has these parameters")
        self.N, self.others = D - C, D // C - 1
        self.weights = (1, D * (C - 1), D * (D - C))
        self.types = [(a, k - a) for k in range(1, C + 1) for a in range(k + 1)]
        self.images: dict[int, list[Any]] = {}

    def up_to(self, K: int) -> list[Any]:
        """Return (probability, T, ((type, copies), ...)) of all multisets with <= K features."""
        require(isinstance(K, int) and 0 <= K <= min(self.N, 60), f"K = {K!r} is not possible")
        if K not in self.images:
            found, sums = [], [0] * (K + 1)
            for kinds, k, count in self._walk(0, K, self.others, 1):
                sums[k] += count
                T = self.C + sum((a - b) * m for (a, b), m in kinds)
                chance = count * (self.q / 2) ** k * (1 - self.q) ** (self.N - k)
                found.append((chance, T, kinds))
            every = [math.comb(self.N, k) * 2**k for k in range(K + 1)]
            require(sums == every, f"the images with at most {K} features are not complete")
            self.images[K] = found
        return self.images[K]

    def _walk(self, first: int, left: int, empty: int, count: int) -> Iterator[Any]:
        """Yield (kinds, features, patterns) of all multisets of the types from ``first`` on."""
        yield (), 0, count
        for t in range(first, len(self.types)):
            a, b = self.types[t]
            ways = math.comb(self.C, a + b) * math.comb(a + b, a)
            for m in range(1, min(empty, left // (a + b)) + 1):
                more = count * math.comb(empty, m) * ways**m
                for kinds, k, c in self._walk(t + 1, left - m * (a + b), empty - m, more):
                    yield (((a, b), m), *kinds), k + m * (a + b), c

    def attention(self, gamma: Any, rho: Any) -> tuple[Any, Any, Any, Any]:
        """Return Gamma, Xi, Lambda - Gamma, Gamma - Xi."""
        shifts = ((x + (-self.beta)) * (1 / self.tau) for x in (gamma, rho))
        same, other = (lifted(exponential, shift) for shift in shifts)
        Lambda = lifted(inverse, (self.C - 1) * same + (self.D - self.C) * other + 1)
        differences = ((-1) * same + 1, same + (-1) * other)
        return Lambda * same, Lambda * other, Lambda * differences[0], Lambda * differences[1]

    def velocity(self, theta: list[Any], K: int) -> list[Any]:
        """Return the velocity along a curve, of the images up to K; series or dual numbers.

        All c add up to T: what is the same for all rows drops out of d/d gamma and d/d rho.
        """
        C, D, p, x = self.C, self.D, self.p, self.kappa * theta[0]
        Gamma, Xi, X, Y = self.attention(*theta[1:])
        top, sets = power(x, p), {}

        def one_set(T: int, a: int, b: int) -> list[Any]:
            n, total, empty = a - b, [0, 0, 0], Xi * T
            for s, rows in ((1, a), (-1, b), (0, C - a - b)):
                if rows:
                    own = X * s + Y * n
                    c, step, last = own + empty, arb_series([1]) + 0 * own, empty
                    for _ in range(p - 2):  # c^m - c_0^m = own (c^(m-1) + ... + c_0^(m-1))
                        step, last = c * step + last, last * empty
                    excess = rows * own * step
                    turns = ((1 - C) * c + (n - s), (C - D) * c + (T - n))
                    parts = [rows * own * (c * step + last), *(turn * excess for turn in turns)]
                    total = [y + z for y, z in zip(total, parts)]
            return total

        scale, sums = (p / self.tau) * top, [0, 0, 0]
        front = (lifted(inverse, theta[0]), scale * Gamma, scale * Xi)
        for chance, T, kinds in self.up_to(K):
            empty = self.others - sum(m for _, m in kinds)
            total: list[Any] = [0, 0, 0]
            for kind, m in (((C, 0), 1), ((0, 0), empty), *kinds):
                if (T, kind) not in sets:
                    sets[T, kind] = one_set(T, *kind)
                total = [y + m * z for y, z in zip(total, sets[T, kind])]
            bulk, linear = top * (total[0] + D * power(Xi * T, p)), (self.nu * T) * x
            parts, F = (p * bulk + linear, total[1], total[2]), bulk + linear
            if isinstance(F, Dual):  # its derivatives are what the velocity is made of
                F.slopes = [f.value * part.value for f, part in zip(front, parts)]
            sigmoid = chance * lifted(logistic, F)
            sums = [y + sigmoid * part for y, part in zip(sums, parts)]
        return [f * y * (1 / arb(many)) for f, y, many in zip(front, sums, self.weights)]

    def neglected(self, box: list[arb], K: int) -> list[arb]:
        """Bound the velocity of all images with more than K features on a box.

        Given k features the L_p norm t of T stands for |T| (Hoelder), and the number of sets with m
        features is hypergeometric in the mean: |c| <= |Lambda - Gamma| s + |Gamma - Xi| m + Xi t.
        """
        C, D, p, N = self.C, self.D, self.p, self.N
        weights = self.attention(*box[1:])
        mass = abs(1 - (D - C) * weights[1]).upper()  # Lambda + (C - 1) Gamma
        Gamma, Xi, X, Y = (abs(weight).upper() for weight in weights)
        x = self.kappa * abs(box[0]).upper()
        sums = [arb(0)] * 3
        for k in range(K + 1, N + 1):
            moment = sum(math.comb(k, h) * abs(C + 2 * h - k) ** p for h in range(k + 1))
            t = (arb(moment) / arb(2) ** k).root(p)
            rows = [(arb(C), 1, C), (arb(D - C), 0, 0)]
            for m in range(1, min(C, k) + 1):
                ways = math.comb(C, m) * math.comb(N - C, k - m) * self.others
                sets = arb(ways) / math.comb(N, k)
                rows += [(sets * m, 1, m), (sets * (C - m), 0, m)]
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


def shifted(coefficients: list[Any], centre: arb) -> list[Any]:
    """Return the coefficients in powers of u - centre."""
    found = list(coefficients)
    for j in range(len(found)):
        for k in range(len(found) - 2, j - 1, -1):
            found[k] = found[k] + found[k + 1] * centre
    return found


def reach(coefficients: list[arb], width: arb) -> arb:
    """Return a ball of the values at |u| <= width."""
    rest = sum((abs(c) * width**k for k, c in enumerate(coefficients) if k), arb(0))
    return coefficients[0] + spread(rest)


def derivatives(column: list[arb], order: int) -> list[arb]:
    """Return balls of P^(j)(u)/j! for all u in [-1, 1], j = 0 .. order."""
    even = (1 + arb(0, 1)) / 2  # [0, 1]

    def term(j: int, k: int) -> arb:
        x = math.comb(k, j) * column[k]
        return x if k == j else x * even if (k - j) % 2 == 0 else spread(x)

    return [sum((term(j, k) for k in range(j, len(column))), arb(0)) for j in range(order + 1)]


def along(model: Model, columns: Any, room: list[arb] | None, order: int, K: int) -> Any:
    """Return the coefficients of f (or of J, if there is room) up to an order along P + e.

    f: lists [i][k]; J: [3 i + j][k], for all |e| <= room. Then the next coefficients, at every u.
    """
    found = []
    for n in (order, order + 1):
        ctx.cap, theta = n + 1, []
        for i, column in enumerate(columns):
            terms = [*(column if n == order else derivatives(column, n)), arb(0)][: n + 1]
            terms[0] += spread(room[i]) if room is not None else 0
            series = arb_series(terms, prec=n + 1)
            ones = [arb_series([int(i == j)], prec=n + 1) for j in range(3)]
            theta.append(series if room is None else Dual(series, ones))
        velocity = model.velocity(theta, K)
        lanes = velocity if room is None else [s for v in velocity for s in v.slopes]
        found.append([[s[k] for k in range(n + 1)] for s in lanes])
    known = all(x.is_finite() for lanes in found for s in lanes for x in s)
    require(known, "nothing is known of the velocity")
    return found[0], [s[-1] for s in found[1]]


def factors(entry: arb, length: arb, eta: arb | None) -> tuple[arb, arb]:
    """Return what multiplies v and b in the comparison, given a ball of M_ii."""
    if eta is None:
        M = entry.upper()
        return (M * length).exp(), length if M == 0 else (M * length).expm1() / M
    g = abs(1 + eta * entry).upper()
    whole = (length * g.log()).exp() if g > 0 else arb(0)
    return whole, eta * (length if g == 1 else (whole - 1) / (g - 1))


class Check:
    """How far a check has come: |z| <= v in the coordinates ``basis`` around the curve's end."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.model = Model(record["problem"])
        rate = record["learning_rate"]
        self.eta = None if rate is None else number(rate)
        self.basis = arb_mat(3, 3, [int(i == j) for i in range(3) for j in range(3)])
        self.v = [number(x) for x in record["start_radius"]]
        self.end = [number(x) for x in record["start"]]
        self.count = Fraction(0)
        require(all(x >= 0 for x in self.v), "a radius is negative")
        if self.v[0] != 0:  # the start is said to be that of Parametrization 3.1
            with ctx.workprec(256):
                root = (self.model.nu.log() / (self.model.p - 1)).exp()
                require(abs(root - self.end[0]) <= self.v[0], "the start does not hold nu's root")

    def piece(self, piece: dict[str, Any]) -> None:
        """Check one piece and move to its end."""
        for name in ("start", "end"):
            number(piece[name])
        begin, end = Fraction(piece["start"]), Fraction(piece["end"])
        require(begin == self.count < end, f"a piece from {float(begin)} does not follow")
        length, K, room = number(end - begin), piece["K"], [number(x) for x in piece["room"]]
        columns = [[number(row[i]) for row in piece["coefficients"]] for i in range(3)]
        parts, eta = len(piece["parts"]), self.eta
        if eta is not None:
            require((end - begin) / parts == (end - begin) // parts, "a part is no whole steps")
        here = [sum((c * (-1) ** k for k, c in enumerate(column)), arb(0)) for column in columns]
        jump = [abs(x - y) for x, y in zip(here, self.end)]
        if eta is None:
            rates = [[2 * k * c / length for k, c in enumerate(col)][1:] for col in columns]
        else:
            ahead = [shifted(column, 2 / length) for column in columns]
            rates = [[(x - y) / eta for x, y in zip(*pair)] for pair in zip(ahead, columns)]
        curve = columns
        if eta is not None and length == 1:  # one step sees the velocity at its beginning alone
            curve, rates = [[x] for x in here], [[shifted(rate, arb(-1))[0]] for rate in rates]
        thin, rest = along(self.model, curve, None, len(curve[0]), K)
        defects = [
            [x - (rate[k] if k < len(rate) else 0) for k, x in enumerate(terms)]
            for terms, rate in zip(thin, rates)
        ]
        jacobian, wide = along(self.model, curve, room, JACOBIAN_ORDER, K)
        box = [derivatives(column, 0)[0] + spread(r) for column, r in zip(curve, room)]
        lost = [abs(x) + y for x, y in zip(rest, self.model.neglected(box, K))]
        matrices = [arb_mat(3, 3, [e[k] for e in jacobian]) for k in range(JACOBIAN_ORDER + 1)]
        last = arb_mat(3, 3, [spread(x) for x in wide])
        for k, (basis, bar) in enumerate(piece["parts"]):
            centre, width = (2 * arb(k) + 1) / parts - 1, arb(1) / parts
            B = arb_mat(3, 3, [number(x) for row in basis for x in row])
            turned = [B.inv() * (m * B) for m in shifted(matrices, centre)]
            rest = B.inv() * (last * B)
            M = [[reach([m[i, j] for m in turned], width) + rest[i, j] for j in range(3)]
                 for i in range(3)]  # fmt: skip
            local = [reach(shifted(terms, centre), width) for terms in defects]
            bars = [number(x) for x in bar]
            self.part(B, M, (local, lost), bars, room, length / parts, jump)
            jump = [arb(0)] * 3
        self.end = [sum(column, arb(0)) for column in columns]
        self.count = end

    def part(self, B: arb_mat, M: Any, errors: Any, bar: Any, room: Any, h: arb, jump: Any) -> None:
        """Check the comparison on a part."""
        inverse, three, where = B.inv(), range(3), f"after {float(self.count):g}"
        turn, after = inverse * self.basis, []
        for i in three:
            start = sum((abs(turn[i, j]) * self.v[j] for j in three), arb(0))
            start += sum((abs(inverse[i, j]) * jump[j] for j in three), arb(0))
            b = abs(sum((inverse[i, j] * errors[0][j] for j in three), arb(0)))
            b += sum((abs(inverse[i, j]) * errors[1][j] for j in three), arb(0))
            b += sum((abs(M[i][j]) * bar[j] for j in three if j != i), arb(0))
            whole, integral = factors(M[i][i], h, self.eta)
            after.append((whole * start + integral * b).upper())
            require(start < bar[i] and after[i] < bar[i], f"the tube is too thin {where}")
            most = sum((abs(B[i, j]) * bar[j] for j in three), arb(0))
            require(most <= room[i], f"the bar leaves the room of the Jacobian {where}")
        self.basis, self.v = B, after


def check(path: Path, progress: Callable[[float], None] | None = None) -> list[tuple[float, float]]:
    """Check a certificate; return (low, high) of alpha, gamma, rho at its end, which it must claim.

    Raises
    ------
    Rejected
        If the tube is not proved, or the enclosure that is claimed is not.
    """
    before = ctx.prec, ctx.cap
    ctx.prec = BITS
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        state = Check(record)
        for i, piece in enumerate(record["pieces"]):
            state.piece(piece)
            if progress is not None:
                progress((i + 1) / len(record["pieces"]))
        unit = 1.0 if state.eta is None else record["learning_rate"]
        require(record["time"] == float(state.count) * unit, "the time is another")
        found = []
        for i, name in enumerate(("alpha", "gamma", "rho")):
            radius = sum((abs(state.basis[i, j]) * state.v[j] for j in range(3)), arb(0))
            low, high = (number(x) for x in record["checked"][name])
            at = state.end[i]
            require(low <= at - radius and at + radius <= high, f"{name} is not proved as claimed")
            found.append((float(low), float(high)))
        return found
    except (KeyError, IndexError, TypeError, ValueError, ArithmeticError) as failure:
        raise Rejected(f"this is no certificate of a tube: {failure!r}") from failure
    finally:
        ctx.prec, ctx.cap = before
