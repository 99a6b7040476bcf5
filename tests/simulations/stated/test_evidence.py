"""Evidence for theory files: correct expectations pass, and wrong ones fail."""

from dataclasses import replace
from pathlib import Path

import pytest

import symbolic
from simulations.masked.claims import stated as masked
from simulations.positional.claims import stated as positional
from simulations.stated import check, evidence, findings
from symbolic.theory import load_theory

PACKAGE = Path(symbolic.__file__).parent
AT = {"D": 6, "C": 2, "q": 0.3, "nu": 0.1, "beta": 1, "p": 3, "kappa": 6, "tau": 1}
MASKED_AT = {"G": 3, "C": 2, "N": 2, "M": 3, "z": 1.3}


@pytest.fixture(scope="module")
def positional_theory():
    return load_theory(PACKAGE / "positional" / "stated.py")


@pytest.fixture(scope="module")
def masked_theory():
    return load_theory(PACKAGE / "masked" / "stated.py")


@pytest.mark.slow
def test_only_one_full_model_is_built(masked_theory, monkeypatch):
    models, full = [], check.FullModel
    monkeypatch.setattr(check, "FullModel", lambda *x: models.append(x) or full(*x))
    assert findings.examine(masked_theory).check.agrees
    assert len(models) == 1


ORDERS = "the order parameters are the paper's, for all sizes"
MODEL, VALUES = "the reduction is the full model", "the gradient alone finds as many values"
FORMS = "the conserved linear forms are those stated"


def failing(result):
    """Return the predicates that some problem does not satisfy."""
    layouts, tables = evidence.layouts(result.sizes), result.tables()
    checked = [layouts[name].check(table).passed for name, table in tables.items()]
    return {name for table in checked for name in table if not table[name].all()}


def none(D, C):
    return []


def test_lemma_4_1(positional_theory):
    result = evidence.collect(positional_theory, [AT], positional.orders, none)
    assert failing(result) == set()
    assert result.tables()["problems"].discovered.tolist() == [3]


def test_wrong_numbers_of_entries_fail(positional_theory):
    """They agree at D = 6 and C = 2, but not as polynomials."""

    def wrong(D, C):
        return {"alpha": 1, "gamma": D, "rho": D * (D - C)}

    result = evidence.collect(positional_theory, [AT], wrong, none)
    assert failing(result) == {ORDERS}


@pytest.mark.slow
def test_wrong_conserved_forms_fail(positional_theory, masked_theory):
    too_many = evidence.collect(
        positional_theory, [AT], positional.orders, lambda D, C: [{"gamma": 1}]
    )
    assert failing(too_many) == {FORMS}

    def other(G, C, N, M):
        first, second = masked.conserved(G, C, N, M)
        return [first, {name: x + 0.01 for name, x in second.items()}]

    result = evidence.collect(masked_theory, [MASKED_AT], masked.orders, other, masked.values)
    assert failing(result) == {FORMS}
    right = evidence.collect(
        masked_theory, [MASKED_AT], masked.orders, masked.conserved, masked.values
    )
    assert failing(right) == set()


def test_global_area_as_large_as_a_local_one(masked_theory):
    """The areas are then equivalent: five values move, not twelve."""
    result = evidence.collect(
        masked_theory, [MASKED_AT | {"G": 2}], masked.orders, masked.conserved
    )
    (finding,) = result.findings
    assert (finding.manifold.discovered, finding.manifold.orbits) == (5, 12)
    assert finding.manifold.remark.endswith("12 orbits, but 5 suffice")
    assert VALUES in failing(result)
    assert VALUES not in failing(replace(result, values=(masked.values(2, 2, 2, 3),)))


def test_wrong_slope_fails(positional_theory, monkeypatch):
    mean = findings.mean

    def altered(*arguments):
        loss, gradient = mean(*arguments)
        return loss, gradient * [1.0, 1.0, 1.0 + 1e-6]

    monkeypatch.setattr(findings, "mean", altered)
    result = evidence.collect(positional_theory, [AT], positional.orders, none)
    assert MODEL in failing(result)
