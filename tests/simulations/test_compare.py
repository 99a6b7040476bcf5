"""Differences between two reports, and the command that prints them."""

import json

import pytest

from simulations.cli import main
from simulations.reproduction import snapshot
from simulations.reproduction.claim import Context
from simulations.reproduction.compare import Change, compare
from simulations.reproduction.folder import StoredReport
from simulations.reproduction.predicates import Verdict
from simulations.reproduction.run import measure
from tests.simulations.fakes import STAMP, claim, run

LAYOUT = StoredReport.LAYOUT


def table(name="numbers", index=None, unit="", limits=None, **values):
    columns = [
        {"name": key, "label": f"the {key}", "unit": unit, **(limits or {})} for key in values
    ]
    row = {"at": index or {}, "values": list(values.values())}
    return {"name": name, "columns": columns, "rows": [row]}


def report(*tables, verdict="holds", tolerance=None):
    return {"one": {"verdict": verdict, "tolerance": tolerance, "tables": list(tables)}}


def record(tolerance=None, **values):
    return report(table(**values), tolerance=tolerance)


def changed_columns(old, new, **options):
    return [change.column for change in compare(old, new, **options)]


class TestNumbers:
    @pytest.mark.parametrize(
        ("before", "after", "tolerance", "is_change"),
        [
            (1.0, 1.0 + 1e-7, None, False),
            (1.0, 1.0 + 3e-6, None, True),
            (1.0, 1.0 + 3e-6, 0.1, True),  # the threshold of a verdict is no tolerance of a number
            (5.5e-16, 2.2e-16, 1e-12, False),  # but that of an identity is
            (5.5e-16, 2.2e-12, 1e-12, True),
            (5.5e-16, 2.2e-16, None, True),
            (3, 4, None, True),
            (True, False, None, True),
            (1, True, None, False),
            ("never", "never", None, False),
            ("never", 3.0, None, True),
            (None, None, None, False),
            (None, 1.0, None, True),
            (-1.0, 1.0, None, True),
        ],
    )
    def test_tolerance_of_a_claim(self, before, after, tolerance, is_change):
        old, new = record(tolerance, x=before), record(tolerance, x=after)
        assert changed_columns(old, new) == (["x"] if is_change else [])
        assert changed_columns(new, old) == (["x"] if is_change else [])

    @pytest.mark.parametrize(
        ("limits", "before", "after", "is_change"),
        [
            ({"rtol": 1e-2}, 1.0, 1.009, False),
            ({"rtol": 1e-2}, 1.0, 1.011, True),
            ({"rtol": 1e-9}, 1.0, 1.0 + 5e-7, False),  # the share is larger
            ({"rtol": None}, 1.0, 7.0, False),  # JSON has null for an infinite number
            ({"atol": 1e-3}, 0.0, 9e-4, False),
            ({"atol": 1e-3}, 0.0, 1.1e-3, True),
        ],
    )
    def test_tolerances_of_a_column(self, limits, before, after, is_change):
        old, new = (record(limits=limits, x=value) for value in (before, after))
        assert bool(compare(old, new)) is is_change

    def test_share(self):
        assert changed_columns(record(x=1.0), record(x=1.01), share=0.1) == []
        assert changed_columns(record(x=1.0), record(x=1.0 + 1e-9), share=0.0) == ["x"]

    @pytest.mark.parametrize(("unit", "columns"), [("s", []), ("steps", ["x"])])
    def test_wall_times_are_not_compared(self, unit, columns):
        assert changed_columns(record(unit=unit, x=1.0), record(unit=unit, x=9.0)) == columns

    @pytest.mark.parametrize(
        ("before", "after", "columns"),
        [
            ((1.0, 0.5, 1.5), (1.4, 0.9, 1.9), []),
            ((1.0, 0.5, 1.5), (1.6, 0.9, 2.0), ["x"]),  # outside the old interval
            ((1.0, 0.5, 1.5), (1.4, 1.2, 1.6), ["x"]),  # the old number is outside the new interval
        ],
    )
    def test_a_number_may_move_within_its_interval(self, before, after, columns):
        old, new = (record(x=x, x_low=low, x_high=high) for x, low, high in (before, after))
        assert changed_columns(old, new) == columns
        assert changed_columns(new, old) == columns

    def test_intervals_without_a_number_may_overlap(self):
        old = record(x_low=0.0, x_high=1.0)
        assert changed_columns(old, record(x_low=0.9, x_high=2.0)) == []
        assert changed_columns(old, record(x_low=1.1, x_high=2.0)) == ["x_low"]

    def test_an_interval_with_one_end_is_compared_as_numbers(self):
        assert changed_columns(record(x_low=1.0), record(x_low=2.0)) == ["x_low"]
        old, new = record(x=1.0, x_low=0.0, x_high=9.0), record(x=2.0)
        assert changed_columns(old, new) == ["x", "x_low", "x_high"]


class TestTables:
    def test_rows_are_compared_by_index(self):
        old, new = record(index={"D": 8}, x=1.0), record(index={"D": 16}, x=1.0)
        assert [(change.old, change.new, change.row) for change in compare(old, new)] == [
            (1.0, None, {"D": 8}),
            (None, 1.0, {"D": 16}),
        ]

    def test_tables_with_equal_columns_are_compared_by_name(self):
        index = {"D": 8}
        first = table("first", index, x=1.0)
        old, new = (report(first, table("second", index, x=x)) for x in (2.0, 3.0))
        expected = Change("one", "number", 2.0, 3.0, "second", index, "x", "the x")
        assert compare(old, new) == [expected]
        absent = report(first)
        assert compare(old, absent) == [
            Change("one", "number", 2.0, None, "second", index, "x", "the x")
        ]

    def test_records_without_tables_have_no_numbers(self):
        old, new = record(x=1.0), record(x=2.0)
        del new["one"]["tables"]
        assert compare(old, new) == []


class TestVerdicts:
    def test_another_verdict(self):
        expected = Change("one", "verdict", "holds", "fails")
        assert compare(report(), report(verdict="fails")) == [expected]

    def test_a_claim_that_could_not_be_run(self):
        lost = {"one": {"error": "it broke"}}
        assert compare(report(), lost) == [Change("one", "verdict", "holds", "error")]

    def test_a_claim_in_one_report_only(self):
        assert compare(report(), {}) == [Change("one", "claim", "holds", None)]
        assert compare({}, report()) == [Change("one", "claim", None, "holds")]


def test_the_snapshot_preserves_the_numbers_of_a_record(monkeypatch):
    new, _ = measure(claim("one"), Context(quick=True), STAMP)
    text = snapshot.as_text(snapshot.merged({}, [new]))
    monkeypatch.setattr(snapshot, "read", lambda: json.loads(text))
    old = snapshot.records("quick")
    assert compare(old, {"one": new}) == []
    new["tables"][0]["rows"][0]["values"][0] = 2e-6
    (change,) = compare(old, {"one": new})
    assert (change.table, change.row, change.column) == ("numbers", {"D": 16, "qD": 2.0}, "worst")


def written(path, *claims, quick=True):
    run(path, claims, stamp=STAMP | {"mode": "quick" if quick else "full"}, quick=quick)
    return str(path)


class TestCommand:
    def test_equal_reports(self, tmp_path, capsys):
        claims = claim("one"), claim("two", extra={"name": "never"})
        old, new = written(tmp_path / "a", *claims), written(tmp_path / "b", *claims)
        before = sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*"))
        assert main(["report", "compare", old, new]) == 0
        assert "2 claims in both: no change" in capsys.readouterr().out
        assert sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*")) == before

    def test_changed_verdicts_and_numbers(self, tmp_path, capsys):
        old = written(tmp_path / "a", claim("one"), claim("two", extra={"x": 1.0}))
        verdict = claim("one", verdict=Verdict.FINDING)
        numbers = claim("two", extra={"x": 1.5, **{f"x{n}": n for n in range(9)}})
        new = written(tmp_path / "b", verdict, numbers)
        assert main(["report", "compare", old, new]) == 1
        text = capsys.readouterr().out
        assert "one\n  verdict: holds -> finding\n" in text
        assert "  numbers [D = 16, qD = 2], the x: 1 -> 1.5\n" in text
        assert "and 2 more (use --json to print all)" in text
        assert "2 claims in both: 1 verdicts and 10 numbers changed" in text
        assert main(["report", "compare", old, new, "--json"]) == 1
        verdict, *numbers = json.loads(capsys.readouterr().out)["changes"]
        assert (verdict["claim"], verdict["what"]) == ("one", "verdict")
        assert {(change["table"], change["what"]) for change in numbers} == {("numbers", "number")}
        assert sorted(change["column"] for change in numbers) == ["x", *(f"x{n}" for n in range(9))]
        assert main(["report", "compare", old, new, "--json", "--verdicts"]) == 1
        assert json.loads(capsys.readouterr().out)["changes"] == [verdict]

    def test_bad_folders_are_reported_in_one_sentence(self, tmp_path, capsys):
        good = written(tmp_path / "good", claim("one"))
        full = written(tmp_path / "full", claim("one"), quick=False)
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "file").write_text("mine")
        (tmp_path / "empty").mkdir()
        old = written(tmp_path / "old", claim("one"))
        manifest = tmp_path / "old" / "patchdyn.json"
        manifest.write_text(manifest.read_text().replace(f'"format": {LAYOUT}', '"format": 2'))
        for other, sentence in (
            (tmp_path / "none", "there is no such folder"),
            (tmp_path / "other", "is not a report of patchdyn"),
            (tmp_path / "empty", "is not a report of patchdyn"),
            (old, f"is not a report of patchdyn as it was written (layout {LAYOUT})"),
            (full, "compare reports of the same mode"),
        ):
            assert main(["report", "compare", good, str(other)]) == 2
            error = capsys.readouterr().err
            assert sentence in error
            assert error.count("\n") == 1
        assert main(["report", "compare", good, good, "--share", "2"]) == 2
        assert "--share 2 is not allowed" in capsys.readouterr().err
        assert [path.name for path in (tmp_path / "empty").iterdir()] == []
