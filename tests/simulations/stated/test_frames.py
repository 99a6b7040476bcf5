"""Theories in a random orthonormal frame: the induction head's 19 order parameters, and others."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dynamics import ParameterError, gradient_flow
from dynamics.core.crossing import first_passage
from dynamics.theory.data import orbits
from dynamics.theory.kernel import mean, mean_function
from simulations.reproduction.claim import Context
from simulations.stated import check, emergence, examples, full, report, two_layers
from simulations.stated.findings import examine
from simulations.stated.full import FullModel
from simulations.stated.law import law
from simulations.stated.runs import risk
from simulations.stated.system import UserTheorySystem
from simulations.stated.two_layers import NAMES, loss_of, slopes_of
from symbolic.theory import TheoryError, lowering
from symbolic.theory.source import source
from tests.closeness import close, within

HEAD = (Path(examples.__file__).parent / "induction_head.py").read_text()
#: A matrix that should map the first vector of a frame to the second.
ONE = """
from symbolic.theory import *
position = Ordered("position", 2)
c = {coordinate}
x = Frame("x", position, c, {{c.name: [0, 1]}})
W = Tensor("W", (c, c), start=0.1)

def loss(W, x):
    error = (W["i", "j"] * x.at(0, "j")).sum("j") - x.at(1, "i")
    return {loss}

THEORY = Theory("one", "test", sizes=(), parameters=(W,), data=Data(x), loss=loss)
"""
SQUARED = '0.5 * (error ** 2).sum("i")'
TURNED, SIGNED = 'Turned("c", 3)', 'Signed("c", 6)'


@pytest.fixture
def head_of(theory_of):
    """Return a function that loads the induction head for N pairs."""
    return cache(lambda N: theory_of(HEAD.replace("N = 2  #", f"N = {N}  #")))


def evaluated(theory, state):
    """Return loss and gradient per entry of the emitted program, as plain Python."""
    function = mean_function(source(theory), theory.name)
    return mean(function, orbits(law(theory, {})), state, [])


def in_order(theory, numbers):
    """Return numbers in the order of `NAMES` in the order of the theory."""
    values = dict(zip(NAMES, numbers))
    return np.array([values[f"{order.name[0]}{int(order.name[1:])}"] for order in theory.orders])


def states():
    yield np.sin(np.arange(1, 20))
    yield from 1.5 * np.random.default_rng(0).normal(size=(3, 19))


@pytest.mark.parametrize("N", [2, 3, 5])
def test_induction_head_is_the_model_of_inner_products(head_of, N):
    theory, d = head_of(N), 2 * N + 2
    assert {str(count) for count in theory.order_parameters.values()} == {str(d)}
    for x in states():
        loss, gradient = evaluated(theory, in_order(theory, x))
        close(loss, loss_of(N, x).real, rel=1e-13)
        within(d * gradient, in_order(theory, slopes_of(N, x)), absolute=1e-13)


def test_check_value_of_the_induction_head(head_of):
    """Values of an independent implementation (C), with all the digits that it printed."""
    theory = head_of(2)
    loss, gradient = evaluated(theory, in_order(theory, np.sin(np.arange(1, 20))))
    close(loss, 1.32592227878, rel=1e-11)
    slopes = dict(zip(theory.order_parameters, 6 * gradient))
    within([slopes["a3"], slopes["g3"]], [-0.017128173456, -0.597240467438], absolute=1e-12)


@pytest.mark.slow
def test_induction_head_for_64_pairs(head_of):
    x, theory = np.sin(np.arange(1, 20)), head_of(64)
    assert check.agreement(theory).agrees
    loss, gradient = evaluated(theory, in_order(theory, x))
    close(loss, loss_of(64, x).real, rel=1e-13)
    within(130 * gradient, in_order(theory, slopes_of(64, x)), absolute=1e-13)


@pytest.mark.parametrize("N", [2, 3])
def test_entries_are_those_of_the_full_model(head_of, N):
    """Compare with every entry, and with the gradient averaged over a group of rotations."""
    theory, entries = head_of(N), two_layers.Entries(N)
    x = np.sin(np.arange(1, 20))
    state = in_order(theory, x)
    tensors = FullModel(theory, {}).embed(dict(zip(theory.order_parameters, state)))
    w3 = tensors["W3"].transpose(1, 0, 2, 3)
    matrices = [tensors["W1"], tensors["W2"], w3]
    vector = np.concatenate([matrix.ravel() for matrix in matrices])
    within(vector, entries.lift @ x, absolute=0.0)
    loss, gradient = evaluated(theory, state)
    close(loss, entries.loss(vector).real, rel=1e-13)
    slopes = entries.lift.T @ entries.gradient(vector)
    within((2 * N + 2) * gradient, in_order(theory, slopes), absolute=1e-13)


@pytest.mark.parametrize("N", [2, 3])
def test_induction_head_agrees_with_the_full_model(head_of, N):
    result = check.agreement(head_of(N))
    assert result.difference <= 1e-13
    assert not result.miscounted
    assert len(result.derived) == 19
    assert result.entries == 28 * (2 * N + 2) ** 2


@pytest.mark.slow
def test_findings_without_the_manifold(head_of):
    result = examine(head_of(2))
    assert result.agrees
    assert result.dimension == 12
    assert set(result.conserved[:5]) == {"a2", "b05", "b06", "b09", "b10"}
    with pytest.raises(ParameterError, match="the rotations of its frames are not enumerated"):
        result.analysis  # noqa: B018


def test_findings_of_too_many_entries_are_rejected(head_of):
    with pytest.raises(ParameterError, match="21952 entries are too many to check"):
        examine(head_of(13))


def moved(array, over, images):
    """Return the image of an array over index sets under a generator of the group."""
    targets, signs = zip(*(images[own] for own in over))
    array = array[np.ix_(*targets)]
    for factor in np.ix_(*signs):
        array = array * factor
    return array


def test_loss_is_invariant_under_rotations_of_data_and_entries(head_of):
    """Entries are random, without the symmetry of the order parameters."""
    model = FullModel(head_of(2), {})
    dense, rng = model.dense, np.random.default_rng(0)
    tensors = {name: 0.3 * rng.normal(size=dense.shape(name)) for name in dense.tensors}
    before, data = dense.evaluate(tensors)[0], dense.data
    generators = dense.group.generators()
    assert len(generators) == 5 + 6 + 2 + 3  # exchanges and signs of items, then of sites
    for _, images in generators:
        dense.data = {
            name: np.array([moved(x, dense._over[name], images) for x in rows])
            for name, rows in data.items()
        }
        images_of = {name: moved(x, dense.tensors[name], images) for name, x in tensors.items()}
        close(dense.evaluate(images_of)[0], before, rel=1e-13)
        assert abs(dense.evaluate(tensors)[0] - before) > 1e-6


@pytest.mark.parametrize("wrong", ["one sign", "both signs", "identity"])
def test_a_wrong_quarter_turn_is_rejected(head_of, monkeypatch, wrong):
    matrix = lowering.matrix

    def changed(part, turned):
        rows = matrix(part, turned)
        if wrong == "identity" and not turned:
            return rows[1:]
        if wrong == "identity" or not turned:
            return rows
        number = 1 if wrong == "one sign" else len(rows)
        return [(i, j, -x if n < number else x) for n, (i, j, x) in enumerate(rows)]

    assert check.agreement(head_of(2)).agrees
    monkeypatch.setattr(lowering, "matrix", changed)
    assert not check.agreement(head_of(3)).agrees


@pytest.mark.parametrize(
    ("coordinate", "loss", "values"),
    [
        # (w I + m M) x_0 with x_1 = M x_0, or with x_1 orthogonal to x_0
        (TURNED, SQUARED, lambda w, m=0.0: (0.5 * (w**2 + (m - 1) ** 2), w, m - 1)),
        (SIGNED, SQUARED, lambda w: (0.5 * (w**2 + 1), w)),
        # all coordinates count, also those without a vector
        (TURNED, 'W["i", "i"].sum("i") ** 2', lambda w, m=0.0: (36 * w**2, 72 * w, 0.0)),
        (SIGNED, '(W["i", "j"] * W["j", "i"]).sum("i").sum("j")', lambda w: (6 * w**2, 12 * w)),
        (TURNED, '(W["i", "j"] * W["j", "i"]).sum("i").sum("j")',
         lambda w, m=0.0: (6 * (w**2 - m**2), 12 * w, -12 * m)),
        (TURNED, '(x["t", "i"] * W["i", "j"] * x["s", "j"]).sum("i").sum("j")'
         '.exp().sum("t").sum("s")',
         lambda w, m=0.0: (2 * np.exp(w) + np.exp(m) + np.exp(-m), 2 * np.exp(w),
                           np.exp(m) - np.exp(-m))),
    ],
)  # fmt: skip
def test_losses_by_hand(theory_of, coordinate, loss, values):
    theory = theory_of(ONE.format(coordinate=coordinate, loss=loss))
    state = np.array([0.7, -0.4][: len(theory.orders)])
    result, gradient = evaluated(theory, state)
    expected, *slopes = values(*state)
    close(result, expected, rel=1e-14)
    within(6 * gradient, slopes, absolute=1e-13)
    assert check.agreement(theory).largest <= 1e-13


def test_a_fixed_block_is_not_trained(theory_of):
    text = ONE.format(coordinate=TURNED, loss=SQUARED)
    theory = theory_of(text.replace("start=0.1)", 'start=0.1); W.fix("turned", 0.25)'))
    assert list(theory.order_parameters) == ["W[diagonal]"]
    loss, gradient = evaluated(theory, [0.7])
    close(loss, 0.5 * (0.49 + 0.75**2), rel=1e-14)
    within(6 * gradient, [0.7], absolute=1e-14)
    assert check.agreement(theory).agrees


def test_rotations_commute_with_the_quarter_turn(theory_of):
    theory = theory_of(ONE.format(coordinate=TURNED, loss=SQUARED))
    turn = np.kron(np.eye(3), [[0.0, -1.0], [1.0, 0.0]])
    (part,) = theory.data[0].vectors
    rotation = full._rotation(np.random.default_rng(0), part)
    within(rotation @ rotation.T, np.eye(6), absolute=1e-14)
    within(rotation @ turn, turn @ rotation, absolute=1e-14)
    assert np.abs(rotation - np.eye(6)).max() > 0.1


#: Replacements that make a file wrong, and a part of the message.
WRONG = {
    "three factors": ('(error ** 2).sum("i")', '(error ** 2 * error * error).sum("i")',
                      "in 4 factors of a sum"),
    "a function": ("0.5 * (error ** 2)", "(error.tanh() ** 2)", "within tanh"),
    "a softmax": ('(error ** 2).sum("i")', '((error ** 2).softmax("i") * error ** 2).sum("i")',
                  "within softmax"),
    "a root": ("error ** 2", "(error ** 2) ** 0.5", "to the power 1/2"),
    "a sum": ('(error ** 2).sum("i")', '(error ** 2 + 1).sum("i")', "in only some terms"),
    "a delta": ('(error ** 2).sum("i")', '(error * Same(c)["i", "k"] * error.renamed('
                '{"i": "k"})).sum("i").sum("k")', "within same"),
    "three indices": ('W = Tensor("W", (c, c), start=0.1)', 'W = Tensor("W", (c, c), start=0.1)\n'
                      'V = Tensor("V", (c, c, c))', "at most two indices"),
    "no frame": ("parameters=(W,)", "parameters=(W, U)", "e is not allowed in a theory with fram"),
    "another set": ("parameters=(W,)", "parameters=(W, A)", "e is not allowed in a theory with fr"),
    "a sequence": ("Data(x)", "Data(x, w)", "w is not allowed next to a Frame"),
    "one vector": ("[0, 1]", "[0]", "there must be 2 whole numbers from 0 to 5"),
    "no vector": ("[0, 1]", "[0, 6]", "there must be 2 whole numbers from 0 to 5"),
    "a name": ("{c.name:", '{"d":', "the numbers of the vectors in c"),
    "no list": ("{c.name: [0, 1]}", "[0, 1]", "the numbers of the vectors in c"),
    "no position": ('Frame("x", position', 'Frame("x", c', "must be an ordered set"),
    "a size": (TURNED, 'Signed("c", Size("n"))', "whose size is a whole number"),
    "an exchangeable set": (TURNED, 'Exchangeable("c", 6)', "must be a Signed or Turned set"),
    "no plane": (TURNED, 'Turned("c", 0)', "planes = 0 is not allowed"),
    "too many": (TURNED, 'Signed("c", 1001)', "with 1001 elements is not allowed"),
    "half a plane": (TURNED, 'Turned("c", 0.5)', "planes = 0.5 is not allowed"),
}  # fmt: skip
MORE = """
U = Tensor("U", (Turned("e", 2),) * 2)
A = Tensor("A", Exchangeable("e", 3))
w = Words("w", position, Exchangeable("e", 3), iid())
"""


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_gives_one_sentence(theory_of, name):
    old, new, expected = WRONG[name]
    text = ONE.format(coordinate=TURNED, loss=SQUARED).replace("\ndef", f"{MORE}\ndef")
    assert theory_of(text).orders
    assert text.count(old) == 1
    text = text.replace(old, new)
    if "V = " in text:
        text = text.replace("parameters=(W,)", "parameters=(W, V)")
    with pytest.raises(TheoryError) as error:
        theory_of(text)
    assert expected in str(error.value)
    assert str(error.value).isprintable()


def test_turned_coordinates_need_a_frame(theory_of):
    text = 'from symbolic.theory import *\nc = Turned("c", 2)\nW = Tensor("W", (c, c))\nTHEORY = '
    text += 'Theory("t", "t", sizes=(), parameters=(W,), loss=lambda W: W["i", "i"].sum("i"))'
    with pytest.raises(TheoryError, match="c is not allowed in a theory with frames"):
        theory_of(text)


def test_export(head_of):
    theory = head_of(2)
    module = {}
    exec(theory.export("python"), module)
    state = np.random.default_rng(0).normal(size=19)
    loss, gradient = evaluated(theory, state)
    close(module["loss"](state), loss, rel=1e-13)
    within(module["gradient"](state), gradient, absolute=1e-14)
    text = theory.export("latex")
    assert (
        r"\dot{\mathrm{W1}}_{i, j} &= -\mathbb{E}\left[\bar{\mathrm{W1}}_{i, j}\right] \\" in text
    )
    assert text.count(r"\dot") == 3
    assert r"\sum_{k} {u^{(4)}_{k}}^{2}" in text  # a second superscript needs braces
    assert "x: random orthonormal frame over position (5), coordinate (12)" in theory.export()


@pytest.mark.slow
@pytest.mark.traced
def test_export_to_jax(head_of):
    pytest.importorskip("jax")
    theory = head_of(2)
    module = {}
    exec(theory.export("jax"), module)
    state = np.random.default_rng(0).normal(size=19)
    loss, gradient = evaluated(theory, state)
    close(float(module["loss"](state)), loss, rel=1e-13)
    within(np.asarray(module["gradient"](state)), gradient, absolute=1e-14)


def test_a_constant_array_with_too_many_entries_is_rejected(theory_of):
    """The vectors of three indices over 101 positions."""
    loss = """0.5 * (error ** 2).sum("i") + (
        (m * (n * x["t", "i"])).sum("t") * x["u", "i"]
    ).sum("i").exp().sum("s").sum("u").sum("v")"""
    masks = ["m = relation(lambda t, s: t == s, t=position, s=position)",
             "n = relation(lambda t, v: t == v, t=position, v=position)"]  # fmt: skip
    text = ONE.format(coordinate='Signed("c", 120)', loss=loss)
    text = text.replace('"position", 2', '"position", 101').replace("[0, 1]", "list(range(101))")
    theory = theory_of(text.replace("W = Tensor", "\n".join([*masks, "W = Tensor"])))
    with pytest.raises(TheoryError, match=r"1030301 entries .* too many to derive"):
        source(theory)


@pytest.mark.slow
def test_all_19_emerge_at_the_times_of_the_other_model(head_of):
    """Time of the flow of one entry is d times that of an order parameter."""
    theory, expected = head_of(2), emergence.full_flow(2, None)
    flow = gradient_flow(risk(theory), horizon=300.0, records=3000)
    columns = in_order(theory, np.arange(19)).argsort()  # of the flow, in the order of `NAMES`
    index = {name: i for i, name in enumerate(theory.order_parameters)}
    time = first_passage(flow, lambda state: -loss_of(2, state[columns]).real, -emergence.SOLVED)
    close(time, 6 * expected.solved, rel=1e-3)
    for threshold, times in expected.when.items():
        for name, other in zip(("g3", "b02"), "gb"):
            own = first_passage(flow, lambda state, i=index[name]: abs(state[i]), threshold)
            close(own, 6 * times[other], rel=1e-3)


@pytest.mark.slow
def test_report_without_the_manifold(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(ONE.format(coordinate=TURNED, loss=SQUARED))
    (claim,) = report.claims_of(UserTheorySystem(path))
    row = claim.measure(Context(quick=True)).tables["reduction"].iloc[0]
    assert list(row.index) == ["order_parameters", "difference", "conserved"]
    assert row.order_parameters == 2
    assert row.difference <= 1e-13
