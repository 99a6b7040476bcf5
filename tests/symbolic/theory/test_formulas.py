"""Names and formulas of observables and events, checked when a file is loaded."""

import pytest

from symbolic.theory import TheoryError, load_theory
from tests.symbolic.theory.statements import POSITIONAL

NAMED = POSITIONAL.replace("names={", "{ARGUMENTS}, names={")


def load(tmp_path, arguments):
    path = tmp_path / "mine.py"
    path.write_text(NAMED.replace("{ARGUMENTS}", arguments))
    return load_theory(path)


def test_formulas_may_use_all_names_of_a_run(tmp_path):
    theory = load(
        tmp_path,
        "observables={'gap': 'gamma - rho', 'scaled': 'gap*D/C + nu*q*beta + alpha0 + time'}, "
        "events={'early': 'gap > at_start(gap) + scaled/2 and loss < 1'}, "
        "claims=['gap >= 0', Claim('Lemma 1', 'Early.', 'early < 1 and always(gap > 0)')]",
    )
    assert theory.claims[0].condition == theory.claims[0].statement == "gap >= 0"
    assert theory.claims[1].label == "Lemma 1"
    assert list(theory.formulas.observables) == ["gap", "scaled"]
    assert list(theory.formulas.events) == ["early"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("observables={'gap': 'gama - rho'}",
         "observables: gap = 'gama - rho' is not allowed: unknown name 'gama': did you mean gamma "
         "or gamma0? (character 1)"),
        ("observables={'gap': 'gamma > rho'}", "a number is needed here, this is a statement"),
        ("events={'early': 'gamma - rho'}", "events: early = 'gamma - rho' is not allowed: a st"),
        ("observables={'gap': '__import__(1)'}", "unknown function '__import__'"),
        ("observables={'gap': 'gamma.real'}", "unknown name 'gamma.real'"),
        ("observables={'gap': 3}", "observables: gap = 3 is not allowed: it must be text"),
        ("observables={'gap': 'max(gamma)'}", "max(x) is no number of a single time"),
        ("observables={'gap': 'at_start(gamma)'}", "at_start(x) is no number of a single time"),
        ("events={'early': 'eventually(gamma > 0)'}", "eventually(x) is no number of a single"),
        ("events={'early': 'gamma == rho'}", "the time of an equality depends on rounding; write"),
        ("observables={'gap': 'late', 'late': 'rho'}", "unknown name 'late'"),
        ("observables={'gap': 'rho'}, events={'early': 'early > 1'}", "unknown name 'early'"),
        ("observables={'gamma': 'rho'}", "observables: gamma is not allowed: this name means some"),
        ("observables={'rho0': 'rho'}", "observables: rho0 is not allowed"),
        ("events={'D': 'rho > 1'}", "events: D is not allowed"),
        ("events={'nu': 'rho > 1'}", "events: nu is not allowed"),
        ("observables={'loss': 'rho'}", "observables: loss is not allowed"),
        ("observables={'t': 'rho'}", "observables: t is not allowed"),
        ("observables={'final': 'rho'}", "observables: final is not allowed"),
        ("observables={'gap': 'rho'}, events={'gap': 'rho > 1'}", "events: gap is not allowed"),
        ("observables={'a gap': 'rho'}", "name = 'a gap' is not allowed"),
        ("claims=[Claim('Lemma 1', 'So it is.', 'gamma > early')]",
         "claims: Lemma 1 = 'gamma > early' is not allowed: unknown name 'early'"),
        ("claims=['gamma']", "a statement is needed here such as gamma >= rho, this is a number"),
        ("claims=[Claim('Lemma 1', 3, 'gamma > 1')]", "statement of a claim = 3 is not allowed"),
        ("observables={'gap': 'rho' * 999}", "2997 characters are longer than 2000"),
    ],
)  # fmt: skip
def test_bad_formula_is_reported_when_the_file_is_loaded(tmp_path, arguments, sentence):
    with pytest.raises(TheoryError) as error:
        load(tmp_path, arguments)
    assert sentence in str(error.value)
    assert str(error.value).startswith("mine.py, line ")
