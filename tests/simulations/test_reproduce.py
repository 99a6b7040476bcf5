"""Runs of claims: records, resumption, existing folders, worker processes and displays."""

import errno
import io
import json
import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
import xarray
from rich.console import Console

from simulations.display import LiveDisplay, PlainDisplay, choose_display, progress_bar
from simulations.files import StoreError, code_fingerprint, stamp
from simulations.reproduction.claim import Claim, Context, Measurement
from simulations.reproduction.folder import ReportFolder
from simulations.reproduction.predicates import Column, Table, Verdict
from simulations.reproduction.run import Outcome, grouped, reproduce
from tests.simulations.fakes import STAMP, claim, figure, run


def report(path):
    return json.loads((path / "report.json").read_text())


def manifest(path):
    return json.loads((path / "patchdyn.json").read_text())


class TestFirstRun:
    def test_everything_is_written(self, tmp_path):
        stream = io.StringIO()
        claims = [claim("one", figures=[figure()]), claim("two", verdict=Verdict.FINDING)]
        outcome = run(tmp_path / "out", claims, stream=stream)
        assert outcome == Outcome(["one", "two"])
        first, second = report(tmp_path / "out")
        assert (first["claim"], first["verdict"], second["verdict"]) == ("one", "holds", "finding")
        assert first["measured"][0] == {
            "name": "worst", "label": "the worst", "at": {"D": 16, "qD": 2.0}, "value": 1e-12,
            "unit": "", "rtol": 1e-6, "atol": 0.0,
        }  # fmt: skip
        assert [number["value"] for number in first["measured"]] == [1e-12, None, 3, True]
        assert first["tolerance"] == 1e-11
        assert first["parameters"] == {"problem": {"D": 16, "q": 0.125}, "state": [0.0, 0.0]}
        assert first["place"] == "Place of one"
        assert first["statement"].startswith("The statement of one")
        assert first["seconds"] > 0.0
        assert first["provenance"] == STAMP
        assert manifest(tmp_path / "out")["missing"] == []
        assert "[1/2] one" in stream.getvalue()

    def test_figures_as_png_with_their_data(self, tmp_path):
        run(tmp_path, [claim("one", figures=[figure()])])
        assert (tmp_path / "figures" / "line.png").read_bytes().startswith(b"\x89PNG")
        with xarray.open_dataset(tmp_path / "data" / "line.nc", engine="h5netcdf") as data:
            np.testing.assert_array_equal(data.y, [0.0, 1.0, np.nan])
            assert data.attrs["claim"] == "one"
            assert json.loads(data.attrs["provenance"]) == STAMP
            assert json.loads(data.attrs["parameters"])["problem"]["D"] == 16

    def test_settings_are_passed_to_the_claim(self, tmp_path):
        first = claim("one")
        run(tmp_path, [first], quick=True, seed=7)
        assert first.measure.context.quick
        assert not first.measure.context.thorough
        assert first.measure.context.seed == 7

    def test_warnings_are_stored(self, tmp_path):
        run(tmp_path, [claim("one", warning="estimated by sampling")])
        assert report(tmp_path)[0]["warnings"] == ["estimated by sampling"]

    def test_two_claims_must_not_share_a_figure_name(self, tmp_path):
        with pytest.raises(StoreError, match="line of two would overwrite that of one"):
            run(tmp_path, [claim("one", figures=[figure()]), claim("two", figures=[figure()])])


class TestClaimThatRaises:
    def test_is_recorded_and_the_others_run(self, tmp_path):
        outcome = run(tmp_path, [claim("bad", error=ValueError("no such root")), claim("good")])
        assert outcome == Outcome(["good"], ["bad"])
        assert [entry["claim"] for entry in report(tmp_path)] == ["good"]
        assert manifest(tmp_path)["failed"] == {"bad": "ValueError: no such root"}
        assert "ValueError: no such root" in (tmp_path / "report.html").read_text()
        record = json.loads((tmp_path / "claims" / "bad.json").read_text())
        assert "Traceback" in record["traceback"]

    def test_is_run_again_next_time(self, tmp_path):
        bad = claim("bad", error=ValueError("now"))
        run(tmp_path, [bad])
        bad.measure.error = None
        assert run(tmp_path, [bad]).finished == ["bad"]
        assert manifest(tmp_path)["failed"] == {}

    def test_figure_that_cannot_be_drawn(self, tmp_path):
        broken = figure()
        object.__setattr__(broken, "draw", lambda canvas: 1 / 0)
        assert run(tmp_path, [claim("one", figures=[broken])]).failed == ["one"]
        assert not (tmp_path / "figures").exists()


class TestInterruption:
    def test_finished_claims_are_stored_and_missing_ones_listed(self, tmp_path):
        claims = [
            claim("one", figures=[figure()]),
            claim("two", error=KeyboardInterrupt()),
            claim("three"),
        ]
        assert run(tmp_path, claims) == Outcome(["one"], interrupted=True)
        assert [entry["claim"] for entry in report(tmp_path)] == ["one"]
        assert manifest(tmp_path)["missing"] == ["two", "three"]
        page = (tmp_path / "report.html").read_text()
        assert "Not run yet: two, three." in page
        assert "The statement of three" in page

    def test_the_same_command_resumes(self, tmp_path):
        claims = [claim("one", figures=[figure()]), claim("two", error=KeyboardInterrupt())]
        run(tmp_path, claims)
        claims[1].measure.error = None
        stream = io.StringIO()
        assert run(tmp_path, claims, stream=stream).finished == ["one", "two"]
        assert [c.measure.calls for c in claims] == [1, 2]
        assert "[reused]" in stream.getvalue()

    @pytest.mark.parametrize("name", ["figures/line.png", "data/line.nc", "claims/one.json"])
    def test_incomplete_claim_is_run_again(self, tmp_path, name):
        first = claim("one", figures=[figure()])
        run(tmp_path, [first])
        (tmp_path / name).unlink()
        run(tmp_path, [first])
        assert first.measure.calls == 2
        assert (tmp_path / name).is_file()

    @pytest.mark.parametrize("content", ["{half", "[]"])
    def test_damaged_record_is_run_again(self, tmp_path, content):
        first = claim("one")
        run(tmp_path, [first])
        (tmp_path / "claims" / "one.json").write_text(content)
        assert run(tmp_path, [first]).finished == ["one"]
        assert first.measure.calls == 2

    def test_full_disk_preserves_finished_claims(self, tmp_path, monkeypatch):
        replace = os.replace

        def full(source, target):
            if "two" in str(target):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            replace(source, target)

        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(StoreError, match=r"two.*: No space left"):
            run(tmp_path, [claim("one"), claim("two"), claim("three")])
        assert [entry["claim"] for entry in report(tmp_path)] == ["one"]
        assert "Not run yet: two, three." in (tmp_path / "report.html").read_text()


class TestExistingFolder:
    def test_claims_are_added(self, tmp_path):
        run(tmp_path, [claim("one")])
        run(tmp_path, [claim("two")])
        assert [entry["claim"] for entry in report(tmp_path)] == ["one", "two"]

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"patchdyn": "0.2.0"}, r"another version \(0\.1\.0, now 0\.2\.0\)"),
            ({"commit": "def"}, r"another commit \(abc, now def\)"),
            ({"code": "456"}, r"another source \(123, now 456\)"),
            ({"numpy": "9"}, r"another numpy \(None, now 9\)"),
            ({"mode": "quick"}, "a full run while this one is quick"),
            ({"seed": "1"}, r"another seed \(0, now 1\)"),
        ],
    )
    def test_results_of_another_version_are_rejected_and_stay(self, tmp_path, change, sentence):
        run(tmp_path, [claim("one")])
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        with pytest.raises(StoreError, match=sentence):
            run(tmp_path, [claim("one")], stamp=STAMP | change)
        assert before == {path: path.read_bytes() for path in before}

    def test_force_replaces_only_what_patchdyn_wrote(self, tmp_path):
        run(tmp_path, [claim("old", figures=[figure("old")]), claim("one")])
        mine = [tmp_path / "notes.txt", tmp_path / "figures" / "mine.png"]
        for path in mine:
            path.write_text("mine")
        run(tmp_path, [claim("one", figures=[figure()])], stamp=STAMP | {"code": "4"}, force=True)
        assert [entry["claim"] for entry in report(tmp_path)] == ["one"]
        assert [path.read_text() for path in mine] == ["mine", "mine"]
        assert {path.name for path in (tmp_path / "figures").iterdir()} == {"mine.png", "line.png"}

    def test_force_runs_finished_claims_again_and_preserves_the_others(self, tmp_path):
        first, second = claim("one", figures=[figure()]), claim("two")
        run(tmp_path, [first, second])
        run(tmp_path, [first], force=True)
        assert (first.measure.calls, second.measure.calls) == (2, 1)
        assert [entry["claim"] for entry in report(tmp_path)] == ["one", "two"]

    @pytest.mark.parametrize("force", [False, True])
    @pytest.mark.parametrize("name", ["thesis.tex", "patchdyn.json"])
    def test_other_folder_is_rejected(self, tmp_path, name, force):
        (tmp_path / name).write_text('{"format": "theirs"}')
        with pytest.raises(StoreError, match="is not empty and is not a report of patchdyn"):
            run(tmp_path, [claim("one")], force=force)
        assert os.listdir(tmp_path) == [name]

    def test_file_instead_of_folder(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match=r"cannot use .*file: Not a directory"):
            run(tmp_path / "file", [claim("one")])

    def test_file_that_cannot_be_removed(self, tmp_path):
        run(tmp_path, [claim("one")])
        (tmp_path / "claims" / "one.json").unlink()
        (tmp_path / "claims" / "one.json").mkdir()
        with pytest.raises(StoreError, match="cannot remove"):
            run(tmp_path, [claim("one")], force=True)


def test_a_record_with_the_name_of_another_claim_counts_as_missing(tmp_path):
    first, second = claim("one"), claim("two")
    run(tmp_path, [first, second])
    content = (tmp_path / "claims" / "one.json").read_bytes()
    (tmp_path / "claims" / "two.json").write_bytes(content)
    run(tmp_path, [first, second])
    assert (first.measure.calls, second.measure.calls) == (1, 2)
    assert [entry["claim"] for entry in report(tmp_path)] == ["one", "two"]


class TestDisplay:
    def test_plain_lines_without_a_terminal(self):
        assert isinstance(choose_display(io.StringIO()), PlainDisplay)
        with progress_bar("title") as progress:
            assert progress is None

    def test_live_bars_on_a_terminal(self, tmp_path):
        stream = io.StringIO()
        claims = [claim("one"), claim("bad", error=ValueError("[bold]x"))]
        console = Console(file=stream, force_terminal=True, width=120)
        with ReportFolder(tmp_path, STAMP, ["one", "bad"]) as folder:
            reproduce(claims, folder, LiveDisplay(console), Context(quick=False))
        assert "holds" in stream.getvalue()
        assert "ValueError: [bold]x" in stream.getvalue()

    def test_bar_of_a_single_run(self, monkeypatch):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        stream = Terminal()
        monkeypatch.setattr("sys.stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR", raising=False)
        with progress_bar("gradient flow") as progress:
            progress(0.5)
            progress(2.0)
        assert "gradient flow" in stream.getvalue()


class TestStamp:
    def test_contains_versions_mode_and_code(self):
        quick, full, other = stamp("quick"), stamp("full"), stamp("full", 7)
        assert (quick.pop("mode"), full.pop("mode"), other.pop("mode")) == ("quick", "full", "full")
        assert (quick["seed"], full["seed"], other.pop("seed")) == ("0", "0", "7")
        assert quick == full == other | {"seed": "0"}
        assert {"patchdyn", "commit", "numpy", "scipy", "numba", "sympy", "python"} <= set(full)
        assert full["code"] == code_fingerprint()
        assert len(code_fingerprint()) == 12


TABLE = Table(index=(), columns={"process": Column("process id")})


def report_process(context: Context) -> Measurement:
    context.progress(0.5)
    settings = {"quick": context.quick, "scratch": context.scratch}
    return Measurement({"run": TABLE.frame([{"process": os.getpid()}])}, settings)


def die(context: Context) -> Measurement:
    os._exit(3)


def interrupt_parent(context: Context) -> Measurement:
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(1800.0)
    raise AssertionError("the process should have been ended")


def process_of(tables):
    return {"process": tables["run"].data.process[0]}


def measured_by(name: str, measure=report_process, group: str = "") -> Claim:
    return Claim(
        id=name, place="place", statement="statement", method="method", tables={"run": TABLE},
        measure=measure, headline=process_of, finding="It ran in {process}.", group=group,
    )  # fmt: skip


def processes(path):
    return {record["claim"]: record["measured"][0]["value"] for record in report(path)}


def ids(claims, *, quick=False):
    return [[claim.id for claim in group] for group in grouped(claims, quick=quick)]


def test_claims_are_grouped():
    claims = [measured_by("a", group="x"), measured_by("b"), measured_by("c", group="x")]
    assert ids(claims) == [["a", "c"], ["b"]]
    assert ids([claims[1], claims[0], claims[2]]) == [["a", "c"], ["b"]]  # the largest group first


def test_a_quick_claim_may_leave_its_group():
    parts = [measured_by(name, group="x") for name in "acd"]
    parts[1] = replace(parts[1], alone_if_quick=True)
    claims = [measured_by("b"), *parts]
    assert ids(claims, quick=True) == [["a", "d"], ["b"], ["c"]]
    assert ids(claims) == [["a", "c", "d"], ["b"]]


@pytest.mark.slow
def test_claims_of_a_group_share_a_process(tmp_path):
    claims = [
        measured_by("a", group="x"),
        measured_by("b"),
        measured_by("c", group="x"),
        measured_by("d"),
    ]
    assert run(tmp_path, claims, quick=True, workers=2).finished == ["a", "b", "c", "d"]
    process_ids = processes(tmp_path)
    assert list(process_ids) == ["a", "b", "c", "d"]
    assert process_ids["a"] == process_ids["c"]
    assert os.getpid() not in process_ids.values()
    assert report(tmp_path)[0]["parameters"] == {
        "quick": True,
        "scratch": str(tmp_path / "checkpoints" / "a"),
    }


@pytest.mark.slow
def test_a_lost_claim_is_recorded_and_the_others_run(tmp_path):
    claims = [
        measured_by("bad", die, group="x"),
        measured_by("a", group="x"),
        measured_by("b"),
        measured_by("c"),
    ]
    assert run(tmp_path, claims, workers=2) == Outcome(["a", "b", "c"], ["bad"])
    assert "ended with exit code 3" in manifest(tmp_path)["failed"]["bad"]
    mended = [replace(claims[0], measure=report_process), *claims[1:]]
    assert run(tmp_path, mended).failed == []


# Ctrl-C after a file is opened and before its `with` leaves the file to the garbage collector
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.slow
def test_an_interruption_ends_the_processes_and_stores_finished_claims(tmp_path):
    claims = [
        measured_by("a"),
        measured_by("b", interrupt_parent),
        measured_by("c"),
        measured_by("d"),
    ]
    start = time.monotonic()
    outcome = run(tmp_path, claims, workers=2)
    assert time.monotonic() - start < 900.0
    assert outcome.interrupted
    assert "b" not in outcome.finished
    rest = [replace(claims[1], measure=report_process), *claims[2:]]
    assert not run(tmp_path, rest).interrupted
