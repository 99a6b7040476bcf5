"""The claims about stated theories: they hold as stated, and what is wrong fails."""

from dataclasses import replace
from pathlib import Path

import pytest

import symbolic
from simulations.masked.claims import stated as masked
from simulations.positional.claims import stated as positional
from simulations.stated import check, evidence, findings
from symbolic.theory import load_theory

ROOM = Path(symbolic.__file__).parent
AT = {"D": 6, "C": 2, "q": 0.3, "nu": 0.1, "beta": 1, "p": 3, "kappa": 6, "tau": 1}
MASKED_AT = {"G": 3, "C": 2, "N": 2, "M": 3, "z": 1.3}


@pytest.fixture(scope="module")
def three():
    return load_theory(ROOM / "positional" / "stated.py")


@pytest.fixture(scope="module")
def twelve():
    return load_theory(ROOM / "masked" / "stated.py")


def test_sizes_are_weighed_before_a_full_model_is_made(twelve, monkeypatch):
    made, full = [], check.FullModel
    monkeypatch.setattr(check, "FullModel", lambda *given: made.append(given) or full(*given))
    assert findings.examine(twelve).check.agrees
    assert len(made) == 1


ORDERS = "the order parameters are the paper's, for all sizes"
MODEL, VALUES = "the reduction is the full model", "the gradient alone finds as many values"
FORMS = "the conserved linear forms are those stated"


def failing(result):
    """Return the predicates that not every problem satisfies."""
    layouts, tables = evidence.layouts(result.sizes), result.tables()
    checked = [layouts[name].check(table).passed for name, table in tables.items()]
    return {name for table in checked for name in table if not table[name].all()}


def none(D, C):
    return []


def test_lemma_4_1_as_it_is_stated(three):
    result = evidence.collect(three, [AT], positional.orders, none)
    assert failing(result) == set()
    assert result.tables()["problems"].discovered.tolist() == [3]


def test_other_numbers_of_entries_fail_for_all_sizes(three):
    """They agree at D = 6 and C = 2, and not as polynomials."""

    def wrong(D, C):
        return {"alpha": 1, "gamma": D, "rho": D * (D - C)}

    result = evidence.collect(three, [AT], wrong, none)
    assert failing(result) == {ORDERS}


def test_a_conserved_form_too_many_or_another_fails(three, twelve):
    too_many = evidence.collect(three, [AT], positional.orders, lambda D, C: [{"gamma": 1}])
    assert failing(too_many) == {FORMS}

    def other(G, C, N, M):
        one, two = masked.conserved(G, C, N, M)
        return [one, {name: x + 0.01 for name, x in two.items()}]

    result = evidence.collect(twelve, [MASKED_AT], masked.orders, other, masked.values)
    assert failing(result) == {FORMS}
    right = evidence.collect(twelve, [MASKED_AT], masked.orders, masked.conserved, masked.values)
    assert failing(right) == set()


def test_a_global_area_as_large_as_a_local_one_is_one_of_them(twelve):
    """Five values move there, not twelve: the claim must not expect more."""
    result = evidence.collect(twelve, [MASKED_AT | {"G": 2}], masked.orders, masked.conserved)
    (one,) = result.findings
    assert (one.manifold.discovered, one.manifold.orbits) == (5, 12)
    assert one.manifold.remark.endswith("12 orbits, but 5 suffice")
    assert VALUES in failing(result)
    assert VALUES not in failing(replace(result, values=(masked.values(2, 2, 2, 3),)))


def test_a_slope_that_is_off_fails(three, monkeypatch):
    honest = findings.mean

    def altered(*arguments):
        loss, gradient = honest(*arguments)
        return loss, gradient * [1.0, 1.0, 1.0 + 1e-6]

    monkeypatch.setattr(findings, "mean", altered)
    result = evidence.collect(three, [AT], positional.orders, none)
    assert MODEL in failing(result)
