"""Rules that hold for every claim, checked on the tables of the committed quick run."""

import importlib
import io
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from simulations.reproduction import snapshot
from simulations.reproduction.claim import FINDING, Measurement, Result
from simulations.reproduction.predicates import Table, Verdict
from simulations.reproduction.registry import claim_ids, load
from simulations.vision import claims as vision

#: Mapping from claim to tuples (table, predicate, values that pass, values that do not).
EDGES = {
    claim_id: edges
    for file in sorted(Path(__file__).parent.glob("*/edges*.py"))
    for claim_id, edges in importlib.import_module(
        f"tests.simulations.{file.parent.name}.{file.stem}"
    ).EDGES.items()
}
CLAIMS = claim_ids()
TABLES = [(claim_id, name) for claim_id in CLAIMS for name in load(claim_id).tables]
PREDICATES = [
    (claim_id, name, predicate)
    for claim_id, name in TABLES
    for table in [load(claim_id).tables[name]]
    for predicate in (*table.strict, *table.predicates)
]


@cache
def frames(claim_id: str) -> dict[str, pd.DataFrame]:
    stored = snapshot.read()[claim_id]["quick"]["tables"]
    layouts = load(claim_id).tables
    assert [table["name"] for table in stored] == list(layouts), "the snapshot is out of date"
    return {table["name"]: frame(layouts[table["name"]], table) for table in stored}


def frame(layout: Table, table) -> pd.DataFrame:
    names = [*layout.index, *(column[0] for column in table["columns"])]
    rows = [dict(zip(names, [*at, *values])) for at, values in table["rows"]]
    return layout.frame(rows).fillna(np.nan).infer_objects()  # a column may be missing throughout


def with_values(data: pd.DataFrame, values) -> pd.DataFrame:
    changed = data.copy()
    for column, value in values.items():
        changed[column] = pd.Series([value] * len(data), data.index)
    return changed


def evaluate(claim_id: str, changed) -> Result:
    return load(claim_id).evaluate(Measurement(frames(claim_id) | changed))


@pytest.mark.parametrize("claim_id", claim_ids())
def test_the_snapshot_has_the_texts_of_the_claim(claim_id):
    stored = snapshot.read()[claim_id]["texts"]
    assert stored == snapshot.texts_of(load(claim_id)), "run `make snapshot`"


@pytest.mark.parametrize("claim_id", CLAIMS)
class TestSentence:
    def test_is_the_one_of_the_snapshot(self, claim_id):
        result, stored = evaluate(claim_id, {}), snapshot.read()[claim_id]["quick"]
        assert (result.verdict, result.finding) == (stored["verdict"], stored["finding"])

    def test_is_one_short_sentence_with_a_number(self, claim_id):
        stored = snapshot.read()[claim_id]
        assert "full" in stored or claim_id in vision.CLAIMS
        for sentence in [
            evaluate(claim_id, {}).finding,
            stored.get("full", stored["quick"])["finding"],
        ]:
            assert re.fullmatch(rf".{{19,{FINDING - 1}}}\.", sentence), len(sentence)
            assert re.search(r"\d", sentence)
            assert not re.search(r"\b(nan|inf|None|True|False)\b", sentence)

    def test_rounds_bounds_to_the_safe_side(self, claim_id):
        fields = re.findall(
            r"[Aa]t (most|least) \{\w+(?!\w|!)|\{\w+:[^}]*\}\S* at (most|least)",
            load(claim_id).finding,
        )
        assert not fields, "write {name!u:...} after 'at most', {name!d:...} after 'at least'"

    def test_depends_on_the_numbers(self, claim_id):
        changed = {
            name: data.apply(lambda column: column.map(other_value))
            for name, data in frames(claim_id).items()
        }
        assert evaluate(claim_id, changed).finding != evaluate(claim_id, {}).finding


def other_value(value):
    if isinstance(value, bool | np.bool_):
        return not value
    if value is None:
        return value
    return value + "?" if isinstance(value, str) else 2 * value + 3


@pytest.mark.parametrize(("claim_id", "name"), TABLES)
class TestTable:
    def test_missing_numbers_never_hold(self, claim_id, name):
        data, layout = frames(claim_id)[name], load(claim_id).tables[name]
        if layout.strict or layout.predicates:
            missing = with_values(data, dict.fromkeys(data.columns, np.nan))
            assert layout.check(missing).verdict is not Verdict.HOLDS

    def test_no_rows_never_hold(self, claim_id, name):
        layout = load(claim_id).tables[name]
        if layout.strict or layout.predicates:
            assert layout.check(frames(claim_id)[name].iloc[:0]).verdict is not Verdict.HOLDS

    def test_numbers_survive_csv(self, claim_id, name):
        data, layout = frames(claim_id)[name], load(claim_id).tables[name]
        text = data.to_csv(index=bool(layout.index))
        index = list(range(len(layout.index))) or None
        again = pd.read_csv(
            io.StringIO(text), index_col=index, na_values="",
            keep_default_na=False,
        )  # fmt: skip
        pd.testing.assert_frame_equal(
            layout.check(again).passed.reset_index(drop=True),
            layout.check(data).passed.reset_index(drop=True),
        )


@pytest.mark.parametrize(("claim_id", "name", "predicate"), PREDICATES)
def test_each_predicate_has_two_sides(claim_id, name, predicate):
    edges = [edge for edge in EDGES.get(claim_id, ()) if edge[:2] == (name, predicate)]
    assert edges, f"add an edge of {predicate!r} to tests/simulations/<theory>/edges*.py"
    layout = load(claim_id).tables[name]
    for _, _, passes, fails in edges:
        row = frames(claim_id)[name].iloc[:1]
        assert layout.check(with_values(row, passes)).passed[predicate].all()
        assert not layout.check(with_values(row, fails)).passed[predicate].any()


def test_edges_are_those_of_predicates():
    known = {
        (claim_id, table, predicate)
        for claim_id, edges in EDGES.items()
        for table, predicate, *_ in edges
    }
    assert known <= set(PREDICATES)


def test_pages_are_generated_from_the_snapshot():
    for name in snapshot.PAGES:
        page = (Path(__file__).parents[2] / name).read_text("utf-8")
        assert snapshot.page_with_parts(page, snapshot.read()) == page, "run `make snapshot`"
