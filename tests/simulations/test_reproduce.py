import errno
import io
import json
import os

import numpy as np
import pytest
import xarray
from rich.console import Console

from simulations.display import LiveDisplay, PlainDisplay, choose_display, progress_bar
from simulations.files.stamp import code_fingerprint, stamp
from simulations.files.store import StoreError
from simulations.reproduction.folder import ReportFolder
from simulations.reproduction.predicates import Verdict
from simulations.reproduction.run import reproduce
from tests.simulations.fakes import claim, figure

STAMP = {"patchdyn": "0.1.0", "commit": "abc", "code": "123", "mode": "full", "seed": "0"}


def run(path, claims, *, stamp=STAMP, stream=None, **options):
    folder = ReportFolder(path, stamp, [c.id for c in claims], force=options.get("force", False))
    display = PlainDisplay(stream or io.StringIO())
    return reproduce(claims, folder, display, **options)


def report(path):
    return json.loads((path / "report.json").read_text())


def manifest(path):
    return json.loads((path / "patchdyn.json").read_text())


class TestFirstRun:
    def test_everything_is_written(self, tmp_path):
        stream = io.StringIO()
        claims = [claim("one", figures=[figure()]), claim("two", verdict=Verdict.FINDING)]
        result = run(tmp_path / "out", claims, stream=stream)
        assert (result.finished, result.failed, result.interrupted) == (["one", "two"], [], False)
        first, second = report(tmp_path / "out")
        assert (first["claim"], first["verdict"], second["verdict"]) == ("one", "holds", "finding")
        assert first["measured"][0] == {
            "name": "worst", "label": "the worst", "at": {"D": 16, "qD": 2.0}, "value": 1e-12,
            "unit": "", "rtol": 1e-6, "atol": 0.0,
        }  # fmt: skip
        assert [one["value"] for one in first["measured"]] == [1e-12, None, 3, True]
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

    def test_context_reaches_the_claim(self, tmp_path):
        one = claim("one")
        run(tmp_path, [one], quick=True, seed=7)
        assert one.measure.context.quick
        assert not one.measure.context.thorough
        assert one.measure.context.seed == 7

    def test_warnings_are_part_of_the_record(self, tmp_path):
        run(tmp_path, [claim("one", warning="estimated by sampling")])
        assert report(tmp_path)[0]["warnings"] == ["estimated by sampling"]

    def test_two_claims_must_not_share_a_figure_name(self, tmp_path):
        with pytest.raises(StoreError, match="line of two would overwrite that of one"):
            run(tmp_path, [claim("one", figures=[figure()]), claim("two", figures=[figure()])])


class TestClaimThatRaises:
    def test_is_recorded_and_the_others_run(self, tmp_path):
        result = run(tmp_path, [claim("bad", error=ValueError("no such root")), claim("good")])
        assert (result.finished, result.failed) == (["good"], ["bad"])
        assert [entry["claim"] for entry in report(tmp_path)] == ["good"]
        assert manifest(tmp_path)["failed"] == {"bad": "ValueError: no such root"}
        assert "ValueError: no such root" in (tmp_path / "report.html").read_text()
        assert (
            "Traceback" in json.loads((tmp_path / "claims" / "bad.json").read_text())["traceback"]
        )

    def test_is_run_again_next_time(self, tmp_path):
        bad = claim("bad", error=ValueError("now"))
        run(tmp_path, [bad])
        bad.measure.error = None
        assert run(tmp_path, [bad]).finished == ["bad"]
        assert manifest(tmp_path)["failed"] == {}

    def test_figure_that_cannot_be_drawn(self, tmp_path):
        broken = figure()
        object.__setattr__(broken, "draw", lambda canvas: 1 / 0)
        result = run(tmp_path, [claim("one", figures=[broken])])
        assert result.failed == ["one"]
        assert not (tmp_path / "figures").exists()


class TestInterruption:
    def test_finished_claims_are_kept_and_missing_ones_named(self, tmp_path):
        claims = [
            claim("one", figures=[figure()]),
            claim("two", error=KeyboardInterrupt()),
            claim("three"),
        ]
        result = run(tmp_path, claims)
        assert result.interrupted
        assert result.finished == ["one"]
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
        result = run(tmp_path, claims, stream=stream)
        assert result.finished == ["one", "two"]
        assert [c.measure.calls for c in claims] == [1, 2]
        assert "[reused]" in stream.getvalue()

    @pytest.mark.parametrize("name", ["figures/line.png", "data/line.nc", "claims/one.json"])
    def test_incomplete_claim_is_run_again(self, tmp_path, name):
        one = claim("one", figures=[figure()])
        run(tmp_path, [one])
        (tmp_path / name).unlink()
        run(tmp_path, [one])
        assert one.measure.calls == 2
        assert (tmp_path / name).is_file()

    @pytest.mark.parametrize("content", ["{half", "[]"])
    def test_damaged_record_is_run_again(self, tmp_path, content):
        one = claim("one")
        run(tmp_path, [one])
        (tmp_path / "claims" / "one.json").write_text(content)
        assert run(tmp_path, [one]).finished == ["one"]
        assert one.measure.calls == 2

    def test_full_disk_keeps_what_was_finished(self, tmp_path, monkeypatch):
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
        ("change", "words"),
        [
            ({"patchdyn": "0.2.0"}, r"another version \(0\.1\.0, now 0\.2\.0\)"),
            ({"commit": "def"}, r"another commit \(abc, now def\)"),
            ({"code": "456"}, r"another source \(123, now 456\)"),
            ({"numpy": "9"}, r"another numpy \(None, now 9\)"),
            ({"mode": "quick"}, "a full run while this one is quick"),
            ({"seed": "1"}, r"another seed \(0, now 1\)"),
        ],
    )
    def test_results_of_another_version_are_refused_and_stay(self, tmp_path, change, words):
        run(tmp_path, [claim("one")])
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        with pytest.raises(StoreError, match=words):
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

    def test_force_runs_finished_claims_again_and_keeps_the_others(self, tmp_path):
        one, two = claim("one", figures=[figure()]), claim("two")
        run(tmp_path, [one, two])
        run(tmp_path, [one], force=True)
        assert (one.measure.calls, two.measure.calls) == (2, 1)
        assert [entry["claim"] for entry in report(tmp_path)] == ["one", "two"]

    @pytest.mark.parametrize("force", [False, True])
    @pytest.mark.parametrize("name", ["thesis.tex", "patchdyn.json"])
    def test_folder_of_somebody_else_is_refused(self, tmp_path, name, force):
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


def test_a_record_of_another_claim_is_not_its_own(tmp_path):
    """Undamaged, but in the place of another: it counts as missing."""
    one, two = claim("one"), claim("two")
    run(tmp_path, [one, two])
    content = (tmp_path / "claims" / "one.json").read_bytes()
    (tmp_path / "claims" / "two.json").write_bytes(content)
    run(tmp_path, [one, two])
    assert (one.measure.calls, two.measure.calls) == (1, 2)
    assert [entry["claim"] for entry in report(tmp_path)] == ["one", "two"]


class TestDisplay:
    def test_plain_lines_where_there_is_no_terminal(self):
        assert isinstance(choose_display(io.StringIO()), PlainDisplay)
        with progress_bar("title") as progress:
            assert progress is None

    def test_live_bars_on_a_terminal(self, tmp_path):
        stream = io.StringIO()
        claims = [claim("one"), claim("bad", error=ValueError("[bold]x"))]
        folder = ReportFolder(tmp_path, STAMP, ["one", "bad"])
        console = Console(file=stream, force_terminal=True, width=120)
        reproduce(claims, folder, LiveDisplay(console))
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
    def test_tells_versions_mode_and_code(self):
        quick, full, other = stamp("quick"), stamp("full"), stamp("full", 7)
        assert (quick.pop("mode"), full.pop("mode"), other.pop("mode")) == ("quick", "full", "full")
        assert (quick["seed"], full["seed"], other.pop("seed")) == ("0", "0", "7")
        assert quick == full == other | {"seed": "0"}
        assert {"patchdyn", "commit", "numpy", "scipy", "numba", "sympy", "python"} <= set(full)
        assert full["code"] == code_fingerprint()
        assert len(code_fingerprint()) == 12
