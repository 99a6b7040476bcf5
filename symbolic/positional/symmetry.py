"""Symmetries of the full model for arbitrary A, v and X, the basis of Lemma 4.1.

Tested on the differentiated model with all A_ij, v_k, s_j and xi_jk independent: (1) permuting the
patches permutes the gradient of F, so the order of the sets does not matter; (2) F and its gradient
are odd in X for odd p, so (X, y) and (-X, -y) have the same gradient, and y = +1 without loss of
generality; (3) adding a constant to a row of A changes nothing, so Simplification 3.1 can freeze
the diagonal.
"""

import random
from fractions import Fraction
from typing import Any

from symbolic.core.proof import Proof, ProofBuilder
from symbolic.positional.full_model import FullModel, OutputAndGradient, full_model


def random_rational(rng: random.Random, signed: bool = True) -> Fraction:
    """Return a random nonzero rational number with small numerator and denominator."""
    value = Fraction(rng.randint(1, 499), rng.randint(2, 97))
    return -value if signed and rng.random() < 0.5 else value


def random_constants(rng: random.Random) -> dict[str, Fraction]:
    """Return random positive constants kappa, nu and tau."""
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


def _check_permutations(builder: ProofBuilder, model: FullModel, arguments: dict[str, Any]) -> None:
    """Compare F and its gradient under every adjacent transposition (they generate S_D)."""
    identity = "permuting the patches permutes F and its gradient"
    base = model.evaluate(**arguments)
    for k in range(model.D - 1):
        order = list(range(model.D))
        order[k], order[k + 1] = order[k + 1], order[k]
        image = model.evaluate(**_permuted(arguments, order))
        builder.equal(identity, image.F, base.F, f"(F, {k})")
        for i, j in model.pairs:
            builder.equal(identity, image.dA[i, j], base.dA[order[i], order[j]], (k, i, j))
        for permuted, original in zip(image.dv, base.dv):
            builder.equal(identity, permuted, original, (k, "v"))


def _check_oddness(builder: ProofBuilder, model: FullModel, arguments: dict[str, Any]) -> None:
    """Compare F and its gradient at X and -X."""
    identity = "F and its gradient are odd in X, so labels +1 and -1 agree"
    plus, minus = model.evaluate(**arguments), model.evaluate(**_negated(arguments))
    for index, (x, y) in enumerate(zip(_flat(plus), _flat(minus))):
        builder.equal(identity, x, -y, index)


def _check_row_shifts(builder: ProofBuilder, model: FullModel, arguments: dict[str, Any]) -> None:
    """Compare F before and after adding a constant to each row of A."""
    base = model.evaluate(**arguments)
    for i in range(model.D):
        shifted = [
            [x * Fraction(7, 3) if k == i else x for x in row]
            for k, row in enumerate(arguments["scores"])
        ]
        moved = model.evaluate(**(arguments | {"scores": shifted}))
        builder.equal("adding a constant to a row of A changes nothing", moved.F, base.F, i)


def _flat(result: OutputAndGradient) -> list[Fraction]:
    return [result.F, *result.dA.values(), *result.dv]


def check(builder: ProofBuilder, D: int, p: int, rng: random.Random, d: int = 2) -> None:
    """Test the three symmetries at one random rational point."""
    model = full_model(D, p, d)
    arguments = _generic_arguments(model, rng)
    _check_permutations(builder, model, arguments)
    _check_oddness(builder, model, arguments)
    _check_row_shifts(builder, model, arguments)


def prove(D: int, p: int, *, d: int = 2, points: int = 2, seed: int = 0) -> Proof:
    """Test the three symmetries at random rational points.

    Parameters
    ----------
    D, p, d
        Sizes of the model.
    points
        Number of points.
    seed
        Seed of the points.
    """
    builder, rng = ProofBuilder("Symmetries of the full model", D=D, p=p), random.Random(seed)
    for _ in range(points):
        check(builder, D, p, rng, d)
    builder.points = points
    return builder.build()
