"""Polynomials, power series and matrices of balls: checker arithmetic in pure Python."""

from __future__ import annotations

from typing import Any

from simulations.positional.validated.checker_balls import TINY, UP, ZERO, arb, as_ball, ball, ctx


class arb_poly:
    """A polynomial; trailing zeros are removed."""

    def __init__(self, values: list[Any]) -> None:
        self.values = [x if x.__class__ is arb else as_ball(x) for x in values]
        while self.values and not (self.values[-1].m or self.values[-1].radius):
            self.values.pop()

    def coeffs(self) -> list[arb]:
        """Return the coefficients."""
        return self.values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, k: int) -> arb:
        return self.values[k] if k < len(self.values) else ZERO

    def __call__(self, x: Any) -> Any:
        """Return the value at a number, or the composition with a polynomial."""
        x = x if isinstance(x, arb_poly) else as_ball(x)
        total: Any = type(x)([]) if isinstance(x, arb_poly) else ZERO
        for value in reversed(self.values):
            total = total * x + value
        return total

    def __add__(self, other: Any) -> Any:
        other = other if isinstance(other, arb_poly) else type(self)([other])
        size = max(len(self), len(other))
        return type(self)([self[k] + other[k] for k in range(size)])

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, arb_poly):
            return type(self)([x * other for x in self.values])
        a, b = ([(x.m, x.e, x.radius, x.size()) for x in y.values] for y in (self, other))
        size = self.terms(len(a) + len(b) - 1 if a and b else 0)
        exact = not any(radius for _, _, radius, _ in (*a, *b))
        result = []
        for k in range(size):
            total, at, error = 0, 0, 0.0  # the centre total 2^at is exact
            for i in range(max(0, k + 1 - len(b)), min(k + 1, len(a))):
                (m, e, r, x), (n, f, s, y) = a[i], b[k - i]
                shift, error = e + f - at, error + x * s + (y + s) * r
                if shift < 0:
                    total, at, shift = total << -shift, e + f, 0
                total += m * n << shift
            result.append(ball(total, at, 0.0 if exact else error * UP + TINY))
        return type(self)(result)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def terms(self, size: int) -> int:
        """Return the number of coefficients of a product."""
        return size

    def derivative(self) -> arb_poly:
        """Return the derivative."""
        return arb_poly([x * k for k, x in enumerate(self.values)][1:])


class arb_series(arb_poly):
    """A power series, cut after ``ctx.cap`` terms."""

    def __init__(self, values: list[Any]) -> None:
        super().__init__(values[: ctx.cap])

    def terms(self, size: int) -> int:
        """Return the number of coefficients of a product."""
        return min(size, ctx.cap)

    def __rtruediv__(self, numerator: Any) -> arb_series:
        first, result = 1 / self[0], [numerator / self[0]]
        for k in range(1, ctx.cap):
            terms = (self[i] * result[k - i] for i in range(1, min(k + 1, len(self))))
            result.append(-sum(terms, ZERO) * first)
        return arb_series(result)

    def exp(self) -> arb_series:
        """Return the exponential of a series."""
        result, slopes = [self[0].exp()], [x * k for k, x in enumerate(self.values)]
        for k in range(1, ctx.cap):
            terms = (slopes[i] * result[k - i] for i in range(1, min(k + 1, len(self))))
            result.append(sum(terms, ZERO) / k)
        return arb_series(result)


class arb_mat:
    """A matrix: of rows, of m x n numbers in one list, or a multiple of the identity."""

    def __init__(self, *given: Any) -> None:
        rows, n, values = given if len(given) == 3 else (*given, 0, 0)[:3]
        if not isinstance(rows, list):
            if not isinstance(values, list):
                values = [values if i == j else 0 for i in range(rows) for j in range(n)]
            rows = [values[i * n : (i + 1) * n] for i in range(rows)]
        self.rows = [[as_ball(x) for x in row] for row in rows]
        if len({len(row) for row in self.rows}) != 1 or not self.rows[0]:
            raise ValueError("the rows of a matrix do not have one length")

    def tolist(self) -> list[list[arb]]:
        """Return the rows."""
        return self.rows

    def __getitem__(self, index: tuple[int, int]) -> arb:
        return self.rows[index[0]][index[1]]

    def __add__(self, other: arb_mat) -> arb_mat:
        return arb_mat([[x + y for x, y in zip(*rows)] for rows in zip(self.rows, other.rows)])

    def __mul__(self, other: Any) -> arb_mat:
        if not isinstance(other, arb_mat):
            return arb_mat([[x * other for x in row] for row in self.rows])
        columns = [*zip(*other.rows)]
        return arb_mat(
            [[sum((x * y for x, y in zip(r, c)), ZERO) for c in columns] for r in self.rows]
        )

    def inv(self) -> arb_mat:
        """Return the inverse of a (3, 3) matrix, by cofactors."""
        a, turn = self.rows, ((1, 2), (2, 0), (0, 1))
        cofactors = [
            [a[i][k] * a[j][n] - a[i][n] * a[j][k] for i, j in turn] for k, n in turn
        ]  # transposed
        determinant = sum((a[0][k] * cofactors[k][0] for k in range(3)), ZERO)
        return arb_mat([[x / determinant for x in row] for row in cofactors])
