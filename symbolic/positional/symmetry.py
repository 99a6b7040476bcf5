"""Symmetries of the full model for arbitrary A, v and X, on which Lemma 4.1 rests.

Shown on the differentiated model with all A_ij, v_k, s_j and xi_jk independent: (1) permuting the
patches permutes F's gradient, so the layout of the sets does not matter; (2) F and its gradient are
odd in X for odd p, so the data (X, y) and (-X, -y) give the same gradient and y = +1 is enough;
(3) adding a constant to a row of A changes nothing, which is why Simplification 3.1 may freeze the
diagonal.
"""

import random
from fractions import Fraction
from typing import Any

from symbolic.core.proof import Ledger, Proof
from symbolic.positional.full_model import FullModel, OutputAndGradient, full_model


def random_rational(rng: random.Random, signed: bool = True) -> Fraction:
    """Draw a nonzero rational number of small height."""
    value = Fraction(rng.randint(1, 499), rng.randint(2, 97))
    return -value if signed and rng.random() < 0.5 else value


def random_constants(rng: random.Random) -> dict[str, Fraction]:
    """Draw the positive constants kappa, nu and tau."""
    return {name: random_rational(rng, signed=False) for name in ("kappa", "nu", "tau")}


def _generic_arguments(model: FullModel, rng: random.Random) -> dict[str, Any]:
    D, d = model.D, model.d
    return {
        "scores": [[random_rational(rng, signed=False) for _ in range(D)] for _ in range(D)],
        "v": [random_rational(rng) for _ in range(d)],
        "signs": [random_rational(rng) for _ in range(D)],
        "noise": [[random_rational(rng) for _ in range(d - 1)] for _ in range(D)],
        "constants": random_constants(rng),
    }


def _permuted(arguments: dict[str, Any], order: list[int]) -> dict[str, Any]:
    scores = [[arguments["scores"][i][j] for j in order] for i in order]
    moved = {key: [arguments[key][i] for i in order] for key in ("signs", "noise")}
    return arguments | moved | {"scores": scores}


def _negated(arguments: dict[str, Any]) -> dict[str, Any]:
    negative = [[-xi for xi in row] for row in arguments["noise"]]
    return arguments | {"signs": [-s for s in arguments["signs"]], "noise": negative}


def _check_permutations(ledger: Ledger, model: FullModel, arguments: dict[str, Any]) -> None:
    """Compare F and its gradient under every adjacent transposition (they generate S_D)."""
    what = "permuting the patches permutes F and its gradient"
    base = model.evaluate(**arguments)
    for k in range(model.D - 1):
        order = list(range(model.D))
        order[k], order[k + 1] = order[k + 1], order[k]
        image = model.evaluate(**_permuted(arguments, order))
        ledger.equal(what, image.F, base.F, f"(F, {k})")
        for i, j in model.pairs:
            ledger.equal(what, image.dA[i, j], base.dA[order[i], order[j]], (k, i, j))
        for one, other in zip(image.dv, base.dv):
            ledger.equal(what, one, other, (k, "v"))


def _check_oddness(ledger: Ledger, model: FullModel, arguments: dict[str, Any]) -> None:
    """Compare F and its gradient at X and -X."""
    what = "F and its gradient are odd in X, so labels +1 and -1 agree"
    plus, minus = model.evaluate(**arguments), model.evaluate(**_negated(arguments))
    for index, (one, other) in enumerate(zip(_flat(plus), _flat(minus))):
        ledger.equal(what, one, -other, index)


def _check_row_shifts(ledger: Ledger, model: FullModel, arguments: dict[str, Any]) -> None:
    """Compare F before and after adding a constant to each row of A."""
    base = model.evaluate(**arguments)
    for i in range(model.D):
        shifted = [
            [x * Fraction(7, 3) if k == i else x for x in row]
            for k, row in enumerate(arguments["scores"])
        ]
        moved = model.evaluate(**(arguments | {"scores": shifted}))
        ledger.equal("adding a constant to a row of A changes nothing", moved.F, base.F, i)


def _flat(result: OutputAndGradient) -> list[Fraction]:
    return [result.F, *result.dA.values(), *result.dv]


def check(ledger: Ledger, D: int, p: int, rng: random.Random, d: int = 2) -> None:
    """Record the three symmetries at one random rational point."""
    model = full_model(D, p, d)
    arguments = _generic_arguments(model, rng)
    _check_permutations(ledger, model, arguments)
    _check_oddness(ledger, model, arguments)
    _check_row_shifts(ledger, model, arguments)


def prove(D: int, p: int, *, d: int = 2, points: int = 2, seed: int = 0) -> Proof:
    """Run the three symmetries at random rational points."""
    ledger, rng = Ledger("Symmetries of the full model", D=D, p=p), random.Random(seed)
    for _ in range(points):
        check(ledger, D, p, rng, d)
    ledger.points = points
    return ledger.close()
