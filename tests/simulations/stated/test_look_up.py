"""Look-up by softmax attention (arXiv 2310.05249): sequences of tokens, and sums over prompts."""

from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad

from dynamics.theory.data import orbits
from simulations.stated.claims import look_up
from simulations.stated.findings import examine
from simulations.stated.full import FullModel
from simulations.stated.law import law
from simulations.stated.runs import risk
from symbolic.theory import TheoryError, load_theory
from tests.closeness import close

#: Values on the words of a vocabulary, two sequences of words, sums of squares and a softmax.
WORDS = """\
K, N, M = Size("K"), Size("N"), Size("M")
word = Exchangeable("word", K); token = Exchangeable("token", N); later = Exchangeable("later", M)
c = Colouring("c", word, {1: 0.3, 2: 0.7}); x = Sequence("x", token, word)
z = Sequence("z", later, word); query = Choice("query", word)
Q = Tensor("Q", (word, word)); u = Tensor("u", word)
def loss(Q, u, c, x, z, query):
    score = (query["m"] * Q["m", "k"] * c["k"] * x["i", "k"]).sum("m").sum("k")
    seen = (score.softmax(over="i") * x["i", "f"]).sum("i")
    other = ((u["k"] * z["j", "k"]).sum("k").tanh() * z["j", "f"]).sum("j")
    return ((seen - query["f"] + other * c["f"]) ** 2).sum("f")
THEORY = Theory("words", "none", sizes=(K, N, M), parameters=(Q, u), data=Data(c, x, z, query),
                loss=loss)
"""
#: Pairs of tokens, which may coincide, have the same word or have different words.
PAIRS = """\
K, N = Size("K"), Size("N"); word = Exchangeable("word", K); token = Exchangeable("token", N)
x = Sequence("x", token, word); query = Choice("query", word)
u = Tensor("u"); Q = Tensor("Q", word)
def loss(u, Q, x, query):
    single = (x["i", "k"] * Q["k"] * (1 + query["k"])).sum("k")
    pair = (x["i", "k"] * x["j", "k"]).sum("k") * u + 2 * Same(token)["i", "j"] + single
    return pair.tanh().sum("i").sum("j").softplus()
THEORY = Theory("pairs", "none", sizes=(K, N), parameters=(u, Q), data=Data(x, query), loss=loss)
"""


@pytest.mark.parametrize("sizes", [(3, 2, 2), (2, 3, 1), (3, 3, 1)])
def test_reduction_of_sequences(theory_of, sizes):
    """Compare prompts up to symmetry with all prompts."""
    result = examine(theory_of(WORDS), dict(zip("KNM", sizes)))
    K, N, M = sizes
    assert result.check.configurations == K * K**N * K**M * 2**K
    assert result.check.data_orbits < result.check.configurations
    assert result.agrees
    assert min(abs(x) for x in result.check.derived.values()) > 1e-4


@pytest.mark.parametrize("sizes", [(2, 4), (3, 3)])
def test_reduction_of_pairs_of_tokens(theory_of, sizes):
    result = examine(theory_of(PAIRS), dict(zip("KN", sizes)))
    assert result.agrees
    assert min(abs(x) for x in result.check.derived.values()) > 1e-3


@pytest.mark.parametrize(("K", "N"), [(3, 4), (2, 7), (6, 3)])
def test_probabilities_of_prompts(K, N):
    """Compare with sums over all prompts of an orbit."""
    theory = load_theory(look_up.FILE)
    data = orbits(law(theory, {"K": K, "N": N}))
    close(data.weight.sum(), 1.0, rel=1e-14)
    expected = {}
    for row in product(range(K), repeat=N):
        counts = np.bincount(row, minlength=K)
        key = counts[0], tuple(sorted(counts[1:]))
        expected[key] = expected.get(key, 0.0) + K**-N
    assert len(data.weight) == len(expected)
    close(np.sort(data.weight), np.sort(list(expected.values())), rel=1e-13)


@pytest.mark.parametrize(("K", "N", "p"), [(3, 2, 0.2), (4, 4, 0.7)])
def test_dominant_feature(K, N, p):
    """For p = 1 / K the risk is that of balanced features."""
    theory = load_theory(look_up.IMBALANCED)
    result = examine(theory, {"K": K, "N": N, "p": p})
    assert result.agrees
    assert (result.manifold.orbits, result.dimension, len(result.linear)) == (5, 3, 2)
    assert result.check.configurations == K ** (N + 1)
    data = orbits(law(theory, theory.checked({"K": K, "N": N, "p": p})))
    close(data.weight.sum(), 1.0, rel=1e-13)
    same = risk(theory, K=K, N=N, p=1.0 / K).evaluate([0.7, -0.4, -0.4, 0.7, -0.4]).loss
    close(same, risk(load_theory(look_up.FILE), K=K, N=N).evaluate([0.7, -0.4]).loss, rel=1e-13)


@pytest.mark.parametrize(("K", "N"), [(2, 3), (4, 9), (12, 11)])
def test_risk_is_the_binomial_sum(K, N):
    assert look_up.difference(load_theory(look_up.FILE), K, N, seed=3) <= look_up.SAME


def test_risk_is_the_mean_over_all_prompts():
    """Compare with the attention to each feature at K = 3, N = 4, for the query 0."""
    total = 0.0
    A, B = 0.7, -0.4
    for row in product(range(3), repeat=4):
        raised = np.exp(np.where(np.array(row) == 0, A, B))
        attention = np.bincount(row, raised, minlength=3) / raised.sum()
        total += 0.5 * ((attention - [1, 0, 0]) ** 2).sum() / 3**4
    close(risk(load_theory(look_up.FILE), K=3, N=4).evaluate([A, B]).loss, total, rel=1e-13)


@pytest.mark.parametrize("K", [5, 40])
def test_limits_are_integrals_of_the_equation(K):
    def time(y):
        return quad(lambda g: (np.exp(g) + K - 1) ** 3 / (K * np.exp(g)), 0.0, np.log(y))[0]

    close(look_up.limit(K), time(K - 1.0), rel=1e-9)
    y = np.sqrt((K - 1) * K / 2e-3) - (K - 1)
    close(0.5 * (K - 1) * K / (y + K - 1) ** 2, 1e-3, rel=1e-12)
    close(look_up.limit(K, 1e-3), time(y), rel=1e-8)


def test_slope_of_the_binomial_sum():
    at = look_up.binomial(10, 1000)
    for g in (0.0, 1.5, 8.0, 30.0):
        close(at(g)[1], (at(g + 1e-5)[0] - at(g - 1e-5)[0]) / 2e-5, rel=1e-7)
    assert 0.0 < at(400.0)[0] < 1e-40  # prompts without the query, of probability .9^1000


REJECTED = {
    "parameter": ('Tensor("u", word)', 'Tensor("u", token)', "line 5: u over token is not allowed: "
                  "the tokens of x carry no parameter and no other data, because only the "
                  "number of tokens at each word enters; let u depend on word, or replace"),
    "data": ('Colouring("c", word', 'Colouring("c", token', "line 3: c over token is not allowed"),
    "same": ('("x", token, word)', '("x", word, word)', "x over word and word is not allowed"),
    "nested": ('("z", later, word)', '("z", Exchangeable("l", 2, inside=word), word)',
               "token of z = l is not allowed: it must be an exchangeable set that lies in no"),
    "none given": ('("x", token, word)', '("x", token, Union("u", word, Exchangeable("v", 2)))',
                  "probabilities of x = None is not allowed: there must be one for each part of "
                  "its vocabulary (word, v)"),
    "probabilities": ('("x", token, word)', '("x", token, word, probabilities={"word": 0.5})',
                "probabilities of x is not allowed: they sum to 1/2, not 1"),
    "signed": ('("x", token, word)', '("x", token, Signed("d", 2))', "vocabulary of x = d is not"),
}  # fmt: skip


@pytest.mark.parametrize("what", REJECTED)
def test_wrong_sequences_are_rejected(theory_of, what):
    old, new, sentence = REJECTED[what]
    assert old in WORDS
    with pytest.raises(TheoryError) as error:
        theory_of(WORDS.replace(old, new))
    assert sentence in str(error.value)


def test_too_many_prompts_are_rejected_before_enumeration():
    theory = load_theory(look_up.FILE)
    with pytest.raises(ValueError, match=r"10\^1\d configurations of the data are too many"):
        FullModel(theory, {"K": 10, "N": 12})
    with pytest.raises(ValueError, match="too many"):
        orbits(law(theory, {"K": 1000, "N": 1000}))


def test_truncated_risk_states_the_omitted_probability():
    theory = load_theory(look_up.FILE)
    some, every = risk(theory, K=6, N=14, remainder=1e-3), risk(theory, K=6, N=14)
    assert "all but a probability of" in some.reason
    assert "all but" not in every.reason
    missed = every.evaluate([1.0, 0.0]).loss - some.evaluate([1.0, 0.0]).loss
    assert 0.0 < missed <= some.remainder <= 1e-3
