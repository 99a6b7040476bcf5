"""Exact mean over Gaussian data for all sizes.

References: Gauss-Hermite rules that are exact for the degree of the loss, and moments by hand.
"""

from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from simulations.stated import examples
from simulations.stated.full import FullModel
from symbolic.theory import TheoryError, load_theory
from tests.closeness import close, within

EXAMPLES = Path(examples.__file__).parent
REGRESSION = EXAMPLES / "in_context_regression.py"
SMALL = {"N": 2, "m": 1, "n": 1, "lam": 0.7, "mu": 0.3, "v_start": 0.2, "u_start": 0.1}

#: A theory whose loss is filled in.
MOMENTS = """\
N = Size("N"); d = Size("d"); s, = constants(s="> 0")
row = Exchangeable("row", N); coordinate = Signed("coordinate", d)
x = Gaussian("x", (row, coordinate), variance=s**2); z = Gaussian("z")
U = Tensor("U", start=1)
def loss(U, x, z):
    return LOSS
THEORY = Theory("moments", "none", sizes=(N, d), parameters=(U,), data=Data(x, z), loss=loss)
"""


@pytest.fixture
def loaded_theory(tmp_path):
    def load(text):
        path = tmp_path / "mine.py"
        path.write_text(text)
        return load_theory(path)

    return load


@pytest.mark.parametrize(
    ("loss", "mean"),
    [
        ('U * (x["a", "i"]**2).sum("a").sum("i")', "U*N*d*s**2"),
        ('((x["a", "i"]**2).sum("i")**2).sum("a") * U', "U*N*s**4*(d**2 + 2*d)"),
        ('((U * x["a", "i"]).sum("a")**2).sum("i")', "U**2*N*d*s**2"),
        ('(x["a", "i"]**6).sum("i").sum("a") * U', "15*U*N*d*s**6"),
        ('(z + U * z**2)**2 * (x["a", "i"]**2).sum("a").sum("i")', "(1 + 3*U**2)*N*d*s**2"),
        ("U * z**3", "0"),
    ],
)
def test_moments_for_all_sizes(loaded_theory, loss, mean):
    theory = loaded_theory(MOMENTS.replace("LOSS", loss))
    derived = theory.reduced.expanded(theory.reduced.loss)
    names = dict(zip("UNds", sp.symbols("U N d s")))
    assert sp.expand(derived - eval(mean, {"__builtins__": {}}, names)) == 0


def random_entries(model, seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=model.dense.shape(name)) for name in model.dense.tensors}


def test_mean_equals_gauss_hermite_rule_at_entries_without_symmetry():
    """Compare loss and gradient in all nine entries, including label row and odd entries."""
    theory = load_theory(REGRESSION)
    values = theory.checked(SMALL)
    rule, exact = FullModel(theory, values), FullModel(theory, values, integrated=True)
    assert len(rule.dense.weight) == 3**4 * 3**2 * 2**2
    assert len(exact.dense.weight) == 1
    at = random_entries(rule)
    loss, gradient = rule.dense.evaluate(at)
    value, slopes = exact.dense.evaluate(at)
    close(value, loss, rel=1e-13)
    for name, slope in gradient.items():
        within(slopes[name], slope, absolute=1e-13 * np.abs(slope).max())


def test_gauss_hermite_rule_agrees_with_samples():
    """Compare with 100,000 prompts, within five standard errors."""
    theory = load_theory(REGRESSION)
    model = FullModel(theory, theory.checked(SMALL))
    at = random_entries(model)
    rng = np.random.default_rng(1)
    deviation = np.sqrt([0.7, 0.3])
    X = rng.normal(size=(100_000, 2, 2)) * deviation
    query, w = rng.normal(size=(100_000, 2)) * deviation, rng.normal(size=(100_000, 2))
    y = np.einsum("bni,bi->bn", X, w)
    key = X @ at["U"] + y[..., None] * at["r"]
    prediction = ((X @ at["p"] + at["v"] * y) * np.einsum("bnj,bj->bn", key, query)).sum(1) / 2
    losses = 0.5 * (np.einsum("bi,bi->b", w, query) - prediction) ** 2
    within(losses.mean(), model.dense.evaluate(at)[0], absolute=5 * losses.std() / 100_000**0.5)


def test_loss_of_in_context_regression_on_the_manifold():
    """Compare with the closed form, in which a_i = lambda_i + (lambda_i + trace) / N."""
    theory = load_theory(REGRESSION)
    N, m, n, lam, mu, v, a, b = sp.symbols("N m n lam mu v a b")
    total = m * lam + n * mu

    def share(x, u):
        curvature = x + (x + total) / N
        return x - 2 * x**2 * v * u + curvature * x**2 * v**2 * u**2

    paper = (m * share(lam, a) + n * share(mu, b)) / 2
    names = {
        sp.Symbol("U[first to first, diagonal]"): a,
        sp.Symbol("U[second to second, diagonal]"): b,
    }
    derived = theory.reduced.expanded(theory.reduced.loss).xreplace(names)
    assert sp.expand(derived - paper) == 0
    for name, symbol, count in zip(theory.order_parameters, (v, a, b), (1, m, n)):
        slope = theory.reduced.expanded(theory.reduced.gradient[name]).xreplace(names)
        assert sp.expand(slope * count - sp.diff(paper, symbol)) == 0


REJECTED = {
    "tanh": (
        'U * x["a", "i"] * x["a", "i"].tanh()',
        "no closed expectation: Gaussian data (x) "
        "within tanh is not allowed, only polynomials in them",
    ),
    "root": (
        'U * (x["a", "i"]**2 + z**2)**0.5',
        "no closed expectation: Gaussian data (x, z) to the power 1/2 is not allowed",
    ),
    "quotient": ('U / (1 + x["a", "i"]**2)', "Gaussian data (x) to the power -1 is not allowed"),
    "degree": (
        'U * x["a", "i"]**14',
        "the mean over Gaussian data has 135135 pairings (most: "
        "20000): the loss must be of lower degree in them",
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_loss_without_closed_expectation_is_rejected(loaded_theory, case):
    loss, sentence = REJECTED[case]
    theory = loaded_theory(MOMENTS.replace("LOSS", f'({loss}).sum("i").sum("a")'))
    with pytest.raises(TheoryError) as error:
        _ = theory.reduced
    assert sentence in str(error.value)
    assert str(error.value).startswith("mine.py, line 6: ")


WRONG = {
    "negative": (
        "variance=s**2",
        "variance=-1",
        "variance of x = -1 is not allowed: it must be positive",
    ),
    "by part": (
        "variance=s**2",
        'variance={"first": 1}',
        "variance of x = {'first': 1} is not "
        "allowed: it must be one number, or one for each part of its one union (it has ",
    ),
    "no number": ("variance=s**2", "variance='big'", "variance of x = 'big' is not allowed"),
    "no set": ("(row, coordinate), v", "(row, 3), v", "x has the axis 3, which is not allowed"),
    "mixed": (
        "(row, coordinate), v",
        '(row, Union("u", row, coordinate)), v',
        "Union 'u' is not "
        "allowed: it must have two or more different exchangeable sets, all of them signed",
    ),
    "flip": ("LOSS", '(U * x["a", "i"]).sum("i").sum("a")', "in index 'i' is not allowed summed"),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_gaussian_data_are_rejected(loaded_theory, case):
    old, new, sentence = WRONG[case]
    with pytest.raises(TheoryError) as error:
        loaded_theory(MOMENTS.replace(old, new).replace("LOSS", "U**2"))
    assert sentence in str(error.value)


def test_too_many_configurations_are_rejected():
    theory = load_theory(REGRESSION)
    with pytest.raises(ValueError, match=r"10\^1\d configurations of the data are too many"):
        FullModel(theory, theory.checked(SMALL | {"N": 8, "m": 2, "n": 2}))
