"""Folders of results: damaged files, one writer at a time, files of the user."""

import json
import os
import stat

import pytest

from dynamics.core.files import FileError, replacing
from simulations import maps
from simulations.cli import main
from simulations.files import StoreError, locked, write_bytes
from simulations.reproduction.folder import ReportFolder, StoredReport
from simulations.reproduction.run import without_folders
from simulations.sweep.compute import open_store
from simulations.sweep.config import parse
from tests.simulations.fakes import STAMP, claim, figure, run

RATIOS = "q = 2/64, d ell/d alpha, 1/sqrt(d) and a / b"
RUN = ["run", "--D", "8", "--C", "2", "--horizon", "10"]


def everything(path):
    """Return the content of every file below a folder."""
    return {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "report"
    run(path, [claim("one", figures=[figure()])])
    return path


class TestDamage:
    def test_edited_verdict_is_measured_again(self, report):
        stored = report / "claims" / "one.json"
        stored.write_text(stored.read_text().replace('"holds"', '"fails"'))
        first = claim("one", figures=[figure()])
        run(report, [first])
        assert json.loads((report / "report.json").read_text())[0]["verdict"] == "holds"
        assert first.measure.calls == 1

    @pytest.mark.parametrize("file", ["figures/line.png", "data/line.nc"])
    def test_edited_figure_is_measured_again(self, report, file):
        content = bytearray((report / file).read_bytes())
        content[len(content) // 2] ^= 1
        (report / file).write_bytes(content)
        first = claim("one", figures=[figure()])
        run(report, [first])
        assert first.measure.calls == 1

    def test_changed_manifest_is_rejected_and_stays(self, report):
        path = report / "patchdyn.json"
        path.write_text(path.read_text().replace('"one"', '"ooe"'))
        before = everything(report)
        for force in (False, True):
            with pytest.raises(StoreError, match=r"patchdyn\.json: .* does not match its digest"):
                run(report, [claim("one")], force=force)
        assert everything(report) == before

    @pytest.mark.slow
    @pytest.mark.traced
    def test_edited_result_of_a_sweep_is_not_mapped(self, tmp_path, capsys, compiled_before):
        text = "[fixed]\nD = 8\nC = 2\n[grid]\nnu = [0.1, 0.2]\nbeta = [1, 2]\n[run]\nhorizon = 1\n"
        (tmp_path / "c.toml").write_text(text)
        out = tmp_path / "out"
        assert main(["sweep", str(tmp_path / "c.toml"), "--out", str(out), "--workers", "1"]) == 0
        assert main(["map", str(out), "--at", "nu=0.1", "--at", "beta=1"]) == 0
        for value in ("nan", "x", "inf"):
            capsys.readouterr()
            assert main(["map", str(out), "--at", f"nu={value}"]) == 2
            assert value in capsys.readouterr().err
        result = out / "sweep.nc"
        result.write_bytes(result.read_bytes().replace(b"completed", b"complexed"))
        assert main(["map", str(out)]) == 2
        assert "does not match its digest" in capsys.readouterr().err
        # the sweep writes its result again without computing a cell
        assert main(["sweep", str(tmp_path / "c.toml"), "--out", str(out), "--workers", "1"]) == 0
        assert maps.read(out).data["status"].values.tolist() == [["completed"] * 2] * 2


class TestOutputFiles:
    def test_devices_pipes_and_links_are_not_replaced(self, tmp_path, capsys):
        os.mkfifo(tmp_path / "pipe.nc")
        (tmp_path / "target.nc").write_text("mine")
        (tmp_path / "link.nc").symlink_to(tmp_path / "target.nc")
        (tmp_path / "dangling.nc").symlink_to(tmp_path / "nothing")
        for flag in ("--out", "--plot"):
            for name, what in (("pipe.nc", "a pipe"), ("link.nc", "a symbolic link"),
                               ("dangling.nc", "a symbolic link"), ("", "a folder")):  # fmt: skip
                assert main([*RUN, flag, str(tmp_path / name), "--force"]) == 2
                error = capsys.readouterr().err
                assert f"it is {what}, not a regular file" in error
                assert error.count("\n") == 1
        assert stat.S_ISFIFO((tmp_path / "pipe.nc").lstat().st_mode)
        assert (tmp_path / "target.nc").read_text() == "mine"
        assert main([*RUN, "--out", "/dev/null", "--force"]) == 2
        assert "it is a device" in capsys.readouterr().err

    def test_the_writer_rejects_links(self, tmp_path):
        (tmp_path / "link").symlink_to(tmp_path / "target")
        with pytest.raises(FileError, match="it is a symbolic link"), replacing(tmp_path / "link"):
            raise AssertionError
        assert not (tmp_path / "target").exists()

    def test_one_file_for_two_outputs(self, tmp_path, capsys):
        (tmp_path / "sub").mkdir()
        other = tmp_path / "sub" / ".." / "a.nc"
        assert main([*RUN, "--out", str(tmp_path / "a.nc"), "--plot", str(other)]) == 2
        assert "are not allowed to be the same file" in capsys.readouterr().err

    @pytest.mark.parametrize("name", ["n" * 300, "nul\0byte"])
    def test_names_that_no_system_allows(self, tmp_path, capsys, name):
        assert main([*RUN, "--out", str(tmp_path / name)]) == 2
        error = capsys.readouterr().err
        assert "--out" in error
        assert error.count("\n") == 1


class TestOneWriter:
    def test_two_reproductions_in_one_folder(self, tmp_path):
        with (
            ReportFolder(tmp_path / "r", STAMP, ["one"]),
            pytest.raises(StoreError, match="is in use by another patchdyn"),
        ):
            run(tmp_path / "r", [claim("one")])
        assert run(tmp_path / "r", [claim("one")]).finished == ["one"]

    def test_a_rejected_folder_is_not_changed(self, tmp_path):
        (tmp_path / "notes.txt").write_text("mine")
        with pytest.raises(StoreError):
            ReportFolder(tmp_path, STAMP, ["one"], force=True)
        assert os.listdir(tmp_path) == ["notes.txt"]

    def test_only_partial_files_of_killed_runs_are_removed(self, tmp_path):
        gone, mine = 4_000_000, os.getpid()  # beyond the largest process number; this process
        run(tmp_path, [claim("one", figures=[figure()])])
        partial = tmp_path / "figures" / f".line.png.{gone}.partial"
        others = [tmp_path / "data" / f".line.nc.{mine}.partial", tmp_path / "x.partial",
                tmp_path / "data" / ".line.nc.partial"]  # fmt: skip
        for path in (partial, *others):
            path.write_bytes(b"half")
        run(tmp_path, [claim("one", figures=[figure()])])
        assert not partial.exists()
        assert all(path.read_bytes() == b"half" for path in others)
        partial = tmp_path / f".a.nc.{gone}.partial"
        partial.write_bytes(b"half")
        write_bytes(tmp_path / "a.nc", b"whole")
        assert not partial.exists()

    def test_run_killed_at_its_first_file(self, tmp_path):
        (tmp_path / ".patchdyn.json.4000000.partial").write_bytes(b"{")
        with locked(tmp_path):
            assert StoredReport(tmp_path, {}, ()).read_manifest() is None
        run(tmp_path, [claim("one")])
        assert not list(tmp_path.glob(".*.partial"))

    def test_sweep_killed_after_its_first_file(self, tmp_path):
        config = parse("[fixed]\nD = 8\nC = 2\n[grid]\nnu = [0.1, 0.2]\n")
        with open_store(tmp_path, config):
            pass
        (tmp_path / "config.toml").unlink()
        with open_store(tmp_path, config):
            pass


class TestPathsOfTheUser:
    def test_failed_claims_contain_none(self, tmp_path):
        path = tmp_path / "secret" / "data.csv"
        bad = claim(
            "bad", error=FileNotFoundError(2, "No such file", str(path)), warning=f"w {path}"
        )
        run(tmp_path / "r", [bad])
        for file, content in everything(tmp_path / "r").items():
            assert str(tmp_path).encode() not in content, file
            assert b"secret" not in content, file
            assert os.path.dirname(os.__file__).encode() not in content, file
        record = json.loads((tmp_path / "r" / "claims" / "bad.json").read_text())
        assert "data.csv" in record["error"]
        assert 'File "fakes.py", line' in record["traceback"]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("cannot read /home/a/c.nc: x", "cannot read c.nc: x"),
            ('File "/usr/lib/x.py", line 1', 'File "x.py", line 1'),
            (r"C:\Users\me\x.py", "x.py"),
            (RATIOS, RATIOS),
            ("http://example.org/a/b", "http://example.org/a/b"),
        ],
    )
    def test_only_folders_of_absolute_paths_are_removed(self, text, expected):
        assert without_folders(text) == expected
