"""Proofs about theories in a file: tubes, statements, and mutations that break them."""

import ast
import json
import math

import numpy as np
import pytest
from flint import arb, ctx

from dynamics import ParameterError, gradient_descent, gradient_flow
from dynamics.core.balls.series import Series
from dynamics.theory import jets
from simulations import theories
from simulations.cli import main
from simulations.stated import prove, statements
from tests.closeness import close, within
from tests.example_files import EXAMPLES

TEACHER = {"D": 8, "K": 4, "horizon": 300}
LOOK_UP = {"K": 3, "N": 2, "horizon": 40}
MARKOV = """
from symbolic.theory import Chain, Data, Ordered, Tensor, Theory, constants, relation

p, q = constants(p="in (0, 1)", q="in (0, 1)")
position = Ordered("position", 2)
x = Chain("x", position, p, q)
e, w, c = Tensor("e", start=0.1), Tensor("w", start=0.1), Tensor("c", start=0)


def loss(e, w, c, x):
    logit = e**2 * (1 + 2 * w**2) * x["t"] + c
    following = relation(lambda t, n: n == t + 1, t=position, n=position)
    first = relation(lambda t: t == 0, t=position)
    return (first * (logit.softplus() - (following * x["n"]).sum("n") * logit)).sum("t")


THEORY = Theory("memoryless", "arXiv 2402.04161 with a = 0", sizes=(), parameters=(e, w, c),
                data=Data(x), loss=loss, defaults={"p": 0.2, "q": 0.3})
"""


def proof_of(name, values, *claims, **options):
    system = theories.from_file(EXAMPLES / f"{name}.py")
    return prove.prove_theory(system, values, claims=claims, **options)


def assert_encloses(proof, reference, slack):
    """Assert that intervals contain the result of a solver up to its own error."""
    for (low, high), value in zip(proof.enclosure.values(), reference):
        assert low - slack <= value <= high + slack
        assert high - low < 1e-3


@pytest.fixture(scope="module")
def teacher():
    texts = (
        "c_in >= c_out",
        "c_in > c_out",
        "loss <= at_start(loss)",
        "loss <= 0.9",
        "c_in <= c_out",
        "c_in >= c_out + 0.01",
        "always(v >= 0 and not (gap < 1 and loss < 0.9))",
        "max(c_in, c_out) >= 0 and min(c_in, c_out) <= 0 or time >= 200",
        "v^2 <= nu*v",
    )
    return dict(zip(texts, proof_of("teacher", TEACHER, *texts).claims))


def test_teacher_is_enclosed():
    proof = proof_of("teacher", TEACHER)
    assert proof.proved
    assert proof.all_proved  # the claims of the file
    assert [claim.text for claim in proof.claims] == ["c_in >= c_out", "loss <= at_start(loss)"]
    system = theories.from_file(EXAMPLES / "teacher.py")
    case = system.build(TEACHER)
    risk = system.population(case)
    run = gradient_flow(risk, horizon=300.0, rtol=1e-11, atol=1e-13)
    assert_encloses(proof, run.states[-1], slack=1e-8)
    low, high = proof.loss
    assert low <= run.loss[-1] <= high < low + 1e-4


@pytest.mark.parametrize("text", ["c_in >= c_out", "c_in > c_out"])
def test_order_from_equality_at_the_start(teacher, text):
    claim = teacher[text]
    assert claim.true == ((0.0, 300.0),)
    assert claim.sentence == "proved from time 0 on, to time 300"


def test_order_at_the_start_needs_second_derivatives(monkeypatch):
    monkeypatch.setattr(statements, "_START_ORDER", 1)
    (claim,) = proof_of("teacher", {**TEACHER, "horizon": 1}, "c_in >= c_out").claims
    assert 0.0 < claim.since < 0.1


def test_loss_bounds_last_for_ever(teacher):
    assert teacher["loss <= at_start(loss)"].true == ((0.0, 300.0),)
    bound = teacher["loss <= 0.9"]
    assert bound.forever
    assert bound.sentence.endswith("for ever; false from 0 to " + f"{bound.false[0][1]:.6g}")
    system = theories.from_file(EXAMPLES / "teacher.py")
    run = gradient_flow(system.population(system.build(TEACHER)), horizon=300.0, rtol=1e-10)
    crossing = float(np.interp(-0.9, -run.loss, run.time))
    assert bound.false[0][1] < crossing < bound.since
    assert bound.since - bound.false[0][1] < 0.2 * crossing


def test_cross_entropy_in_balls_contains_the_risk():
    system = theories.from_file(EXAMPLES / "bigram.py")
    problem = system.build({}).problem
    tubes = prove.TheorySystem(system.theory, problem, [])
    state = np.sin(np.arange(1.0, len(system.theory.orders) + 1))
    with ctx.workprec(100):
        loss, slopes = tubes.function([arb(x) for x in state])
    risk = system.population(system.build({}))
    close(float(loss), risk.loss(state), rel=1e-12)
    close([float(x) for x in slopes], risk.gradient(state), rel=1e-11)


def test_bounds_contain_the_curve_inside_the_tube(monkeypatch):
    tubes = []
    monkeypatch.setattr(prove, "Along", lambda *args: tubes.append(statements.Along(*args)))
    with pytest.raises(AttributeError):  # nothing decides after the tube is recorded
        proof_of("teacher", TEACHER)
    (along,) = tubes
    steep = ast.parse("exp(time / 10.0) * v", mode="eval").body
    v = along.names.index("v")
    for region in along._regions():
        with ctx.workprec(100):
            low, high = region.bounds(steep, ast.Constant(0.0))
        piece = region.piece
        u = np.linspace(*region.ends, 9)
        time = piece.start + (piece.end - piece.start) * (u + 1.0) / 2.0
        curve = np.exp(time / 10.0) * np.polynomial.polynomial.polyval(u, piece.coefficients[:, v])
        assert low * (1.0 - 1e-9) <= curve.min()
        assert curve.max() <= high * (1.0 + 1e-9)


def test_mutated_statements_are_not_proved(teacher):
    reverse = teacher["c_in <= c_out"]
    assert (reverse.true, reverse.false) == ((), ((0.0, 300.0),))
    shifted = teacher["c_in >= c_out + 0.01"]
    assert shifted.false[0][0] == 0.0
    assert shifted.since > 0.0
    assert not teacher["v^2 <= nu*v"].at_end  # v exceeds nu


def test_combinations_and_functions(teacher):
    assert teacher["always(v >= 0 and not (gap < 1 and loss < 0.9))"].at_end
    assert teacher["max(c_in, c_out) >= 0 and min(c_in, c_out) <= 0 or time >= 200"].since < 1.0


@pytest.mark.slow
def test_mutated_field_is_not_proved(monkeypatch):
    whole = jets.TheoryField.velocity

    def scaled(self, theta):
        return whole(self, theta).times(1.01)

    monkeypatch.setattr(jets.TheoryField, "velocity", scaled)
    proof = proof_of("teacher", {**TEACHER, "horizon": 20}, "c_in >= c_out", tolerance=1e-3)
    assert not proof.proved
    assert not proof.all_proved
    assert "not proved to time 20" in proof.sentence


def test_mutated_jacobian_bounds_change_the_result(monkeypatch):
    values = {**TEACHER, "horizon": 20}
    right = proof_of("teacher", values).enclosure["c_in"]
    whole = jets.TheoryField.jacobian
    monkeypatch.setattr(
        jets.TheoryField, "jacobian", lambda self, theta: whole(self, theta).times(1.2)
    )
    wrong = proof_of("teacher", values).enclosure["c_in"]
    assert abs((wrong[1] - wrong[0]) / (right[1] - right[0]) - 1.0) > 1e-3


@pytest.mark.slow
def test_look_up_and_factual_recall():
    proof = proof_of("look_up", LOOK_UP, "A >= B", "B <= 0", "loss <= at_start(loss)")
    assert proof.all_proved
    assert all(claim.since == 0.0 for claim in proof.claims)
    sizes = {"S": 4, "D": 2, "R": 2, "N": 1, "L": 1, "alpha": 0.125, "horizon": 2}
    recall = proof_of("factual_recall", sizes, "V_own >= V_other", "V_own <= V_other")
    assert [claim.at_end for claim in recall.claims] == [True, False]
    system = theories.from_file(EXAMPLES / "factual_recall.py")
    risk = system.population(system.build(sizes))
    run = gradient_flow(risk, horizon=2.0, rtol=1e-11, atol=1e-13)
    assert_encloses(recall, run.states[-1], slack=1e-8)


@pytest.mark.slow
def test_markov_chain_without_attention(tmp_path):
    path = tmp_path / "memoryless.py"
    path.write_text(MARKOV)
    system = theories.from_file(path)
    proof = prove.prove_theory(system, {"horizon": 0.5}, claims=["e >= w", "c <= 0"])
    assert proof.all_proved
    risk = system.population(system.build({}))
    assert_encloses(proof, gradient_flow(risk, horizon=0.5, rtol=1e-11).states[-1], slack=1e-8)
    tubes = prove.TheorySystem(system.theory, system.build({}).problem, [])
    assert 0.0 < tubes.start_radius[0] < 1e-16  # 1/10 is no float
    assert tubes.start_radius[2] == 0.0
    given = prove.TheorySystem(system.theory, system.build({"e0": 0.1}).problem, ["e"])
    assert given.start_radius[0] == 0.0


def test_descent_encloses_every_step():
    values = {"D": 8, "K": 4, "solver": "gd", "learning_rate": 0.5, "steps": 9}
    proof = proof_of("teacher", values, "c_in >= c_out", "loss <= at_start(loss)")
    system = theories.from_file(EXAMPLES / "teacher.py")
    risk = system.population(system.build(values))
    state = risk.problem.initial_state
    for _ in range(9):
        state = state - 0.5 * np.asarray(risk.gradient(state))
    close(gradient_descent(risk, learning_rate=0.5, steps=9).states[-1], state, rel=1e-12)
    assert_encloses(proof, state, slack=1e-12)
    order, bound = proof.claims
    assert order.at_end
    assert not bound.forever  # the loss of descent may increase


def test_velocity_series_is_that_of_the_risk():
    system = theories.from_file(EXAMPLES / "look_up.py")
    tubes = prove.TheorySystem(system.theory, system.build(LOOK_UP).problem, [])
    field = tubes.field(tubes.start, 1e-3)
    theta = np.array([0.7, -0.2])
    series = Series.exact(np.array([theta, [1.0, 0.0]]))
    velocity, jacobian = field.velocity(series), field.jacobian(series)
    within(velocity.mid[0], field.velocity_at(theta), 1e-14)
    within(velocity.mid[1], field.jacobian_at(theta)[:, 0], 1e-14)
    within(jacobian.mid[0], field.jacobian_at(theta).ravel(), 1e-14)
    assert velocity.rad.max() < 1e-15
    wide = Series(theta[None, :], np.array([[np.inf, 0.0]]))
    assert not field.velocity(wide).is_finite


def test_undefined_velocity_is_not_finite():
    def undefined(theta):
        raise jets.KinkError("a kink")

    field = jets.TheoryField(undefined, None)
    assert not field.velocity(Series.exact(np.zeros((2, 3)))).is_finite


@pytest.mark.parametrize("conjunction", [True, False])
def test_three_valued_logic(conjunction):
    joined = statements._joined
    decisive = not conjunction
    assert joined([conjunction, conjunction], conjunction) is conjunction
    assert joined([None, decisive], conjunction) is decisive
    assert joined([None, conjunction], conjunction) is None


def test_hull_contains_the_coefficients_at_every_point():
    column = [1.0, -2.0, 0.5, 3.0]
    hull = statements._hull([statements.exact(c) for c in column], 2)
    for u in (-1.0, -0.4, 0.0, 0.7, 1.0):
        shifted = np.polynomial.Polynomial(column)(np.polynomial.Polynomial([u, 1.0])).coef
        for ball, value in zip(hull, shifted):
            assert statements.below(ball) <= value <= statements.above(ball)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--claim", "learned < 5"], "only statements about single times"),
        (["--claim", "at_end(loss) < 5"], "only statements about single times"),
        (["--claim", "foo < 5"], "unknown name 'foo'"),
        (["--tolerance", "7"], "tolerance = 7"),
        (["--solver", "gd", "--optimizer", "adam"], "optimizer"),
        (["--D", "7"], "D = 7"),
        (["--out", "x.json"], "--out"),
    ],
)
def test_bad_input(arguments, text, capsys):
    with_file = ["prove", str(EXAMPLES / "teacher.py"), *arguments]
    try:
        code = main(with_file)
    except SystemExit as stopped:
        code = stopped.code
    assert code == 2
    assert text in capsys.readouterr().err


def test_overlaps_and_too_many_data_are_errors(capsys, monkeypatch):
    assert main(["prove", str(EXAMPLES / "saad_solla.py")]) == 2
    assert "theory in overlaps" in capsys.readouterr().err
    monkeypatch.setattr(prove, "MOST_ORBITS", 1)
    with pytest.raises(ParameterError, match="data orbits are too many for a proof"):
        proof_of("look_up", LOOK_UP)


def test_command(capsys):
    command = ["prove", str(EXAMPLES / "teacher.py"), "--D", "8", "--horizon", "2"]
    assert main([*command, "--claim", "c_in >= c_out"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "proved: the flow is enclosed to time 2"
    assert "  c_in >= c_out: proved from time 0 on, to time 2" in lines
    assert main([*command, "--claim", "c_in <= c_out", "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert record["claims"][0]["since"] is None
    assert record["claims"][0]["false"] == [[0.0, 2.0]]
    assert math.isclose(record["time"], 2.0, rel_tol=0.0, abs_tol=0.0)


@pytest.mark.slow
def test_a_strict_statement_about_a_number_at_rest_is_not_proved(tmp_path):
    path = tmp_path / "at_rest.py"
    text = MARKOV.replace("e, w, c = ", 'z, e, w, c = Tensor("z", start=0), ')
    text = text.replace("loss(e,", "loss(z, e,").replace("=(e,", "=(z, e,")
    path.write_text(text.replace('x["t"] + c', 'x["t"] + c + 0 * z'))
    statements_about_z = ["z >= 0", "z > 0", "z < 0"]
    weak, *strict = prove.prove_theory(
        theories.from_file(path), {"horizon": 0.1}, claims=statements_about_z
    ).claims
    assert weak.true[0][0] == 0.0
    assert not any(claim.true for claim in strict)
