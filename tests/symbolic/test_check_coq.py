"""The record of what Coq's kernel has checked, its table in the book, and a fresh check."""

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest

import symbolic
from simulations.reproduction import report
from symbolic import check_coq
from symbolic.catalogue import CATALOGUE
from symbolic.core import coq
from tests.symbolic.test_coq import installed  # noqa: F401 (a fixture)

BOOK = Path(symbolic.__file__).parents[1] / "notebooks" / "book" / "proved.md"
RECORD = check_coq.record()
#: Derivations whose lemmas are written in a second; the others are compared in slow runs.
FAST = ("attention", "masked-area-form", "shallow-concentration")
ACCEPTED = {name for name, entry in RECORD["derivations"].items() if entry["accepted"]}
#: Derivations for which Coq takes minutes: their lemmas are compared with the record only.
LONG = {"kernels", "masked-kernels"}
ENTRY = {
    "decided": 5,
    "accepted": {"a": "1", "b": "2"},
    "left_out": [f"c: {check_coq.SAME}", f"d: {check_coq.SUMS}", f"e: {check_coq.SUMS}"],
}


#: Another version may write the same lemma differently; then the report shows no numbers.
same_sympy = pytest.mark.skipif(
    version("sympy") != RECORD["sympy"], reason=f"the record is that of SymPy {RECORD['sympy']}"
)


class TestRecord:
    @same_sympy
    @pytest.mark.parametrize(
        "name",
        [pytest.param(x, marks=() if x in FAST else pytest.mark.slow) for x in CATALOGUE],
    )
    def test_is_about_the_lemmas_that_are_written_now(self, name):
        _, entry = check_coq.lemmas(name)
        assert entry == RECORD["derivations"][name]

    def test_is_about_the_files_with_proofs_for_all_sizes(self):
        assert {name: text for name, (_, text) in check_coq.files().items()} == RECORD["files"]
        assert list(RECORD["files"]) == ["all_sets.v", "reduction.v"]

    @pytest.mark.slow
    def test_is_of_the_present_source(self):
        assert RECORD["source"] == check_coq.source_digest(), "run `python -m symbolic.check_coq`"

    def test_every_identity_is_accepted_or_on_the_list(self):
        assert list(RECORD["derivations"]) == list(CATALOGUE)
        for row in check_coq.rows(RECORD):
            numeric = row.reasons["compared at chosen sizes"]
            assert row.decided == row.accepted + sum(row.reasons.values()) - numeric, row.name

    def test_nothing_else_is_left_out(self):
        """Every identity decided at random points is exported if its sides differ, but a few."""
        known = {check_coq.SAME, check_coq.SUMS, check_coq.LONG, "compared at chosen sizes"}
        lines = [x for entry in RECORD["derivations"].values() for x in entry["left_out"]]
        long = [x.removesuffix(f": {check_coq.LONG}") for x in lines if x.endswith(check_coq.LONG)]
        second = r"row_hessian, (alpha|gamma|rho) (gamma|rho), of the model, (one|signal|all) .*"
        assert all(re.fullmatch(f"{second}|d_(gamma|rho), as displayed", x) for x in long)
        assert {reason for row in check_coq.rows(RECORD) for reason in row.reasons} <= known


class TestTable:
    def test_summary_counts(self):
        rows = check_coq.rows({"derivations": {"attention": ENTRY, "margins": ENTRY}})
        text = check_coq.summary(rows)
        assert "checked 4 of 10 symbolic decisions" in text
        assert "In 2 others" in text
        assert "for 4 identities over sums" in text

    def test_derivations_without_a_symbolic_decision_are_left_out(self):
        empty = {"decided": 0, "accepted": {}, "left_out": []}
        assert check_coq.rows({"derivations": {"attention": empty}}) == []

    def test_report_has_no_numbers_after_a_change_of_the_source(self, monkeypatch):
        another = {"source": "another", "sympy": version("sympy"), "derivations": {}}
        monkeypatch.setattr(check_coq, "record", lambda: another)
        assert report._checked() == {
            "rows": [],
            "summary": "The derivations or SymPy have changed since Coq checked them.",
        }

    def test_report_has_no_numbers_with_another_sympy(self, monkeypatch):
        monkeypatch.setattr(check_coq, "source_digest", lambda: "x")
        assert check_coq.is_current({"source": "x", "sympy": version("sympy")})
        assert not check_coq.is_current({"source": "x", "sympy": "0.0"})

    def test_report_has_the_rows_of_the_present_source(self, monkeypatch):
        present = RECORD | {"source": check_coq.source_digest(), "sympy": version("sympy")}
        present |= {"derivations": {"attention": ENTRY}}
        monkeypatch.setattr(check_coq, "record", lambda: present)
        checked = report._checked()
        assert checked["rows"][0].accepted == 2
        assert "2 of 5" in checked["summary"]

    def test_book_has_the_table_and_the_summary(self):
        rows = check_coq.rows(RECORD)
        text = " ".join(BOOK.read_text(encoding="utf-8").split())
        assert check_coq.summary(rows).replace("w*", r"w\*") in text
        for row in rows:
            cells = row.name, row.decided, row.accepted, row.reasons[check_coq.SAME]
            assert f"| {' | '.join(map(str, cells))} |" in text


class TestCommand:
    @pytest.fixture
    def calls(self, monkeypatch, tmp_path):
        """Return a catalogue of one derivation with two lemmas, and the calls of Coq."""
        source = coq.Source("", {"x": "Lemma x.", "y": "Lemma y."}, {"x": "a", "y": "b"})
        checked = []

        def check(given):
            checked.append(list(given.lemmas))
            bad = {name: "no proof" for name in given.lemmas if name == "y"}
            return coq.Outcome((), bad, ())

        monkeypatch.setattr(check_coq, "RECORD", tmp_path / "record.json")
        monkeypatch.setattr(check_coq, "CATALOGUE", ["one"])
        monkeypatch.setattr(check_coq, "source_digest", lambda: "now")
        monkeypatch.setattr(check_coq, "files", dict)
        monkeypatch.setattr(
            check_coq, "lemmas", lambda name: (source, json.loads(json.dumps(ENTRY)))
        )
        monkeypatch.setattr(coq, "check", check)
        return checked

    def test_rejected_lemma_is_not_in_the_record(self, calls, capsys):
        assert check_coq.main([]) == 1
        entry = check_coq.record()["derivations"]["one"]
        assert entry["accepted"] == {"a": "1"}
        assert entry["left_out"][-1] == "b: Coq rejects the lemma"
        assert "not accepted: b: no proof" in capsys.readouterr().err

    def test_known_lemma_is_not_checked_again(self, calls):
        check_coq.main([])
        check_coq.main([])
        check_coq.main(["--fresh"])
        assert calls == [["x", "y"], ["y"], ["x", "y"]]


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
class TestFresh:
    @pytest.mark.parametrize("name", [x for x in CATALOGUE if x in ACCEPTED - LONG])
    def test_check_accepts_what_the_record_has(self, name):
        source, entry = check_coq.lemmas(name)
        outcome = coq.check(source)
        assert outcome.rejected == {}
        assert {source.titles[x] for x in outcome.accepted} == set(entry["accepted"])
        assert not re.search(r"\b(Admitted|admit|Axiom|Parameter)\b", str(source))
