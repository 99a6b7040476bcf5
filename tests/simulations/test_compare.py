"""Two reports side by side: what counts as a change, and what the command says of it."""

import io
import json

import pytest

from simulations.cli import main
from simulations.display import PlainDisplay
from simulations.reproduction.compare import Change, compare
from simulations.reproduction.folder import ReportFolder, StoredReport
from simulations.reproduction.predicates import Verdict
from simulations.reproduction.run import reproduce
from tests.simulations.fakes import claim

LAYOUT = StoredReport.LAYOUT
STAMP = {"patchdyn": "0.1.0", "commit": "", "code": "abc", "mode": "quick"}


def record(tolerance=None, verdict="holds", unit="", at=None, **values):
    measured = [
        {"name": name, "label": f"the {name}", "at": at or {}, "value": value, "unit": unit}
        for name, value in values.items()
    ]
    return {"one": {"verdict": verdict, "tolerance": tolerance, "measured": measured}}


def changed(old, new, **options):
    return [change.what for change in compare(old, new, **options)]


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
    def test_what_a_number_may_do(self, before, after, tolerance, is_change):
        old, new = record(tolerance, x=before), record(tolerance, x=after)
        assert changed(old, new) == (["x"] if is_change else [])
        assert changed(new, old) == (["x"] if is_change else [])

    def test_share(self):
        assert changed(record(x=1.0), record(x=1.01), share=0.1) == []
        assert changed(record(x=1.0), record(x=1.0 + 1e-9), share=0.0) == ["x"]

    def test_wall_times_may_be_anything(self):
        assert changed(record(unit="s", x=1.0), record(unit="s", x=9.0)) == []
        assert changed(record(unit="steps", x=1.0), record(unit="steps", x=9.0)) == ["x"]

    @pytest.mark.parametrize(
        ("before", "after", "changes"),
        [
            ((1.0, 0.5, 1.5), (1.4, 0.9, 1.9), []),
            ((1.0, 0.5, 1.5), (1.6, 0.9, 2.0), ["x"]),  # outside the old interval
            ((1.0, 0.5, 1.5), (1.4, 1.2, 1.6), ["x"]),  # the old one is outside the new interval
        ],
    )
    def test_a_number_may_move_within_its_interval(self, before, after, changes):
        old, new = (record(x=v, x_low=a, x_high=b) for v, a, b in (before, after))
        assert changed(old, new) == changes
        assert changed(new, old) == changes

    def test_intervals_alone_may_overlap(self):
        old = record(x_low=0.0, x_high=1.0)
        assert changed(old, record(x_low=0.9, x_high=2.0)) == []
        assert changed(old, record(x_low=1.1, x_high=2.0)) == ["x_low"]

    def test_one_end_alone_is_a_number(self):
        assert changed(record(x_low=1.0), record(x_low=2.0)) == ["x_low"]
        assert changed(record(x=1.0, x_low=0.0, x_high=9.0), record(x=2.0)) == [
            "x",
            "x_low",
            "x_high",
        ]

    def test_places_are_told_apart(self):
        old, new = record(at={"D": 8}, x=1.0), record(at={"D": 16}, x=1.0)
        assert [(c.old, c.new, c.at) for c in compare(old, new)] == [
            (1.0, None, {"D": 8}),
            (None, 1.0, {"D": 16}),
        ]


class TestVerdicts:
    def test_another_verdict(self):
        assert compare(record(), record(verdict="fails")) == [
            Change("one", "verdict", "holds", "fails")
        ]

    def test_a_claim_that_could_not_be_run(self):
        lost = {"one": {"error": "it broke"}}
        assert [(c.what, c.new) for c in compare(record(), lost)] == [("verdict", "error")]

    def test_a_claim_in_one_report_only(self):
        assert compare(record(), {}) == [Change("one", "claim", "holds", None)]
        assert compare({}, record()) == [Change("one", "claim", None, "holds")]


def written(path, *claims, mode="quick"):
    folder = ReportFolder(path, STAMP | {"mode": mode}, [one.id for one in claims])
    with folder:
        reproduce(claims, folder, PlainDisplay(io.StringIO()), quick=mode == "quick")
    return str(path)


class TestCommand:
    def test_nothing_changed(self, tmp_path, capsys):
        claims = claim("one"), claim("two", measured={"name": "never"})
        old, new = written(tmp_path / "a", *claims), written(tmp_path / "b", *claims)
        before = sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*"))
        assert main(["report", "compare", old, new]) == 0
        assert "2 claims in both: no change" in capsys.readouterr().out
        assert sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*")) == before

    def test_what_changed(self, tmp_path, capsys):
        old = written(tmp_path / "a", claim("one"), claim("two", measured={"x": 1.0}))
        verdict = claim("one", verdict=Verdict.FINDING)
        numbers = claim("two", measured={"x": 1.5, **{f"x{n}": n for n in range(9)}})
        new = written(tmp_path / "b", verdict, numbers)
        assert main(["report", "compare", old, new]) == 1
        text = capsys.readouterr().out
        assert "one\n  verdict: holds -> finding\n" in text
        assert "two\n  the x at D = 16, qD = 2: 1 -> 1.5\n" in text
        assert "and 2 more (use --json to print all)" in text
        assert "2 claims in both: 1 verdicts and 10 numbers changed" in text
        assert main(["report", "compare", old, new, "--json"]) == 1
        answer = json.loads(capsys.readouterr().out)
        assert [change["what"] for change in answer["changes"]][:2] == ["verdict", "x"]
        assert len(answer["changes"]) == 11
        assert main(["report", "compare", old, new, "--json", "--verdicts"]) == 1
        (change,) = json.loads(capsys.readouterr().out)["changes"]
        assert (change["claim"], change["what"]) == ("one", "verdict")

    def test_bad_folders_are_one_sentence(self, tmp_path, capsys):
        good = written(tmp_path / "good", claim("one"))
        full = written(tmp_path / "full", claim("one"), mode="full")
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "file").write_text("mine")
        (tmp_path / "empty").mkdir()
        old = written(tmp_path / "old", claim("one"))
        manifest = tmp_path / "old" / "patchdyn.json"
        manifest.write_text(manifest.read_text().replace(f'"format": {LAYOUT}', '"format": 2'))
        for other, words in (
            (tmp_path / "none", "there is no such folder"),
            (tmp_path / "other", "is not a report of patchdyn"),
            (tmp_path / "empty", "is not a report of patchdyn"),
            (old, f"is not a report of patchdyn as it was written (layout {LAYOUT})"),
            (full, "compare reports of the same mode"),
        ):
            assert main(["report", "compare", good, str(other)]) == 2
            error = capsys.readouterr().err
            assert words in error
            assert error.count("\n") == 1
        assert main(["report", "compare", good, good, "--share", "2"]) == 2
        assert "--share 2 is not allowed" in capsys.readouterr().err
        assert [path.name for path in (tmp_path / "empty").iterdir()] == []


def test_a_column_without_limit_is_not_compared(tmp_path):
    """An infinite relative change is null in JSON."""
    number = {"name": "x", "label": "x", "at": {}, "unit": "", "rtol": None, "atol": 0.0}
    old, new = ({"one": {"verdict": "holds", "measured": [number | {"value": value}]}}
                for value in (1.0, 7.0))  # fmt: skip
    assert compare(old, new) == []
    number["rtol"] = 1e-6
    old, new = ({"one": {"verdict": "holds", "measured": [number | {"value": value}]}}
                for value in (1.0, 7.0))  # fmt: skip
    assert len(compare(old, new)) == 1


@pytest.mark.parametrize(
    ("limits", "before", "now", "changed"),
    [
        ({"rtol": 1e-2}, 1.0, 1.009, False),
        ({"rtol": 1e-2}, 1.0, 1.011, True),
        ({"rtol": 1e-9}, 1.0, 1.0 + 5e-7, False),  # the share is larger
        ({"atol": 1e-3}, 0.0, 9e-4, False),
        ({"atol": 1e-3}, 0.0, 1.1e-3, True),
    ],
)
def test_a_column_allows_what_it_states(limits, before, now, changed):
    number = {"name": "x", "label": "x", "at": {}, "unit": "", "rtol": 0.0, "atol": 0.0} | limits
    old, new = (
        {"one": {"verdict": "holds", "measured": [number | {"value": value}]}}
        for value in (before, now)
    )
    assert bool(compare(old, new)) is changed
