"""Sweeps: outcomes do not depend on the engine, and interruptions lose no finished block."""

import contextlib
import errno
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray

from simulations import display, theories
from simulations.cli import main
from simulations.display import CellProgress, duration
from simulations.files import StoreError, read_record, write_record
from simulations.sweep import cells, engines
from simulations.sweep.cells import sweep_stamp
from simulations.sweep.compute import compute, open_store, sweep
from simulations.sweep.config import parse
from simulations.sweep.storage import labelled
from tests.simulations.fakes import changed
from tests.simulations.jobs import dies_always, dies_once

CONFIG = """\
[fixed]
D = 8
[grid]
C = [2, 3, 4]
nu = { from = 1e-3, to = 1.0, number = 4, scale = "log" }
[run]
horizon = 1e3
rtol = 1e-6
tolerance = 1e-6
"""
COMPLETED, INVALID = 8, 4
#: Long enough for a process to be killed before its end.
LONG = CONFIG.replace("number = 4", "number = 10")


@pytest.fixture(scope="module")
def reference():
    """Return the result as one process computes it, cell by cell, with compiled kernels."""
    cells.compile_kernels(theories.load("positional"))
    return compute(parse(CONFIG))


@pytest.fixture(autouse=True)
def compiled(reference, compiled_before):
    """Skip the compilation of sweeps, because `reference` has compiled the kernels."""
    return compiled_before


@pytest.fixture
def config_file(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(CONFIG)
    return path


def assert_same(actual, expected):
    """Every outcome but the seconds, bit for bit."""
    drop = ["seconds"]
    xarray.testing.assert_identical(
        actual.drop_vars(drop).drop_attrs(), expected.drop_vars(drop).drop_attrs()
    )


def result(folder):
    with xarray.open_dataset(folder / "sweep.nc", engine="h5netcdf") as data:
        return data.load()


def stored(folder):
    """Return file -> time of its last change, of all finished blocks."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / "blocks").glob("*.json")}


class Serial:
    """The cells one after the other, in this process, in any order."""

    def __init__(self, reverse=False, stop_after=None):
        self.reverse, self.stop_after, self.computed = reverse, stop_after, []

    def blocks(self, config, wanted, progress):
        for block in sorted(wanted, reverse=self.reverse):
            if len(self.computed) == self.stop_after:
                raise KeyboardInterrupt
            self.computed.append(block)
            theory = theories.load(config.system)
            rows = [cells.measure_cell(theory, config.values(n)) for n in config.cells_of(block)]
            yield block, rows

    def close(self):
        pass


def finish(folder, text):
    """Compute what is left of a sweep, in this process; return whose cells that were."""
    config, rest = parse(text), Serial()
    with open_store(folder, config) as store:
        sweep(config, store, rest)
    return rest.computed


class Never:
    def blocks(self, config, wanted, progress):
        raise AssertionError("nothing was to be computed")

    def close(self):
        pass


class TestEngines:
    @pytest.mark.slow
    def test_two_processes_give_the_same_bits_as_one(self, reference, config_file, tmp_path):
        out = tmp_path / "out"
        assert main(["sweep", str(config_file), "--out", str(out), "--workers", "2"]) == 0
        assert_same(result(out), reference)

    def test_order_does_not_matter(self, reference, tmp_path):
        config = parse(CONFIG)
        with open_store(tmp_path / "out", config) as store:
            statuses = sweep(config, store, Serial(reverse=True))
        assert statuses == {"completed": COMPLETED, "invalid": INVALID}
        assert_same(result(tmp_path / "out"), reference)

    def test_invalid_cells_have_a_message(self, reference):
        corner = reference.sel(C=3)
        assert set(corner["status"].values.ravel()) == {"invalid"}
        assert "C = 3 is not allowed: C must be a divisor of D = 8" in str(corner["message"][0])
        assert corner["T0"].isnull().all()
        assert (reference.sel(C=[2, 4])["status"] == "completed").all()

    def test_an_error_in_a_cell_is_its_status(self):
        def broken(case):
            raise ZeroDivisionError("oops")

        row = cells.measure_cell(changed(theories.load("positional"), measure=broken), {})
        assert (row["status"], row["message"]) == ("failed", "ZeroDivisionError: oops")
        assert math.isnan(row["gamma"])


class TestCompiledCode:
    def test_it_is_compiled_before_a_process_starts(self, compiled, monkeypatch, tmp_path):
        def results(theory, workers, work):
            assert compiled == [theory]
            yield from ((cell, cells.measure_cell(theory, values)) for cell, values in work)

        monkeypatch.setattr(engines, "measure_in_processes", results)
        config = parse(CONFIG)
        with open_store(tmp_path / "out", config) as store:
            sweep(config, store, engines.Local(theories.load("positional"), 2))
        assert len(compiled) == 1

    @pytest.mark.slow
    def test_a_worker_loads_only_what_it_needs(self):
        """`scipy.stats` alone would be a fifth of what `import dynamics` takes."""
        heavy = ("scipy.stats", "sympy", "matplotlib", "hypothesis", "xarray", "pandas")
        code = (
            "import sys, simulations.sweep.engines, simulations.positional.system\n"
            f"print([name for name in {heavy} if name in sys.modules])"
        )
        process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert process.stdout == "[]\n"

    def test_nothing_is_compiled_after_precompilation(self, reference):
        from numba.core import event

        small = {"D": 8, "C": 2, "q": 0.3, "horizon": 10.0, "rtol": 1e-4, "tolerance": 1e-6}
        descent = {"D": 8, "C": 2, "solver": "gd", "steps": 3, "tolerance": 1e-6}
        with event.install_recorder("numba:compile") as recorder:
            for values in (small, small | {"method": "fourier"}, descent,
                           descent | {"method": "fourier"}):  # fmt: skip
                row = cells.measure_cell(theories.load("positional"), values)
                assert row["status"] == "completed"
        assert [entry for _, entry in recorder.buffer if entry.is_start] == []


class TestWorkers:
    @pytest.mark.slow
    def test_cells_of_killed_workers_are_computed_again(self, tmp_path):
        work = [(n, {"folder": str(tmp_path), "cell": n}) for n in range(3)]
        rows = list(engines.measure_in_processes(theories.load("positional"), 2, work, dies_once))
        assert sorted(number for number, _ in rows) == [0, 1, 2]
        assert all(row["message"] == str(number) for number, row in rows)

    @pytest.mark.slow
    def test_a_cell_that_always_kills_its_worker_fails(self):
        work = [(n, {"cell": n}) for n in range(5)]
        rows = dict(engines.measure_in_processes(theories.load("positional"), 2, work, dies_always))
        assert rows[3]["status"] == "failed"
        assert "died 3 times in this cell (signal 9)" in rows[3]["message"]
        assert [rows[n]["status"] for n in (0, 1, 2, 4)] == ["completed"] * 4


class TestStore:
    @pytest.mark.slow
    @pytest.mark.traced
    def test_second_run_computes_nothing(self, tmp_path, config_file, capsys):
        config = parse(CONFIG)
        with open_store(tmp_path / "out", config) as store:
            sweep(config, store, Serial())
        before = stored(tmp_path / "out")
        with open_store(tmp_path / "out", config) as store:
            sweep(config, store, Never())
        assert stored(tmp_path / "out") == before
        assert main(["sweep", str(config_file), "--out", str(tmp_path / "out"), "--resume"]) == 0
        assert stored(tmp_path / "out") == before
        assert "12 cells: 8 completed, 4 invalid" in capsys.readouterr().out

    @pytest.mark.slow
    @pytest.mark.traced
    def test_interrupted_sweep_is_resumed(self, tmp_path, reference):
        config = parse(CONFIG)
        with open_store(tmp_path, config) as store, pytest.raises(KeyboardInterrupt):
            sweep(config, store, Serial(stop_after=5))
        assert not (tmp_path / "sweep.nc").exists()
        assert finish(tmp_path, CONFIG) == list(range(5, config.blocks))
        assert_same(result(tmp_path), reference)

    @pytest.mark.parametrize(
        "damage",
        [
            pytest.param("garbage", marks=pytest.mark.slow),
            pytest.param("cut", marks=pytest.mark.slow),
            pytest.param("changed", marks=pytest.mark.slow),
            "moved",
        ],
    )
    def test_damaged_block_is_computed_again_after_a_warning(
        self, tmp_path, reference, capsys, damage
    ):
        config = parse(CONFIG)
        with open_store(tmp_path, config) as store:
            sweep(config, store, Serial())
        block = store.block_path(2)
        content = block.read_bytes()
        if damage == "garbage":
            block.write_bytes(b"garbage")
        elif damage == "cut":
            block.write_bytes(content[: len(content) // 2])
        elif damage == "moved":
            block.write_bytes(store.block_path(5).read_bytes())
        else:
            block.write_bytes(content.replace(b'"0.', b'"1.', 1))
        assert finish(tmp_path, CONFIG) == [2]
        assert "00002.json" in (error := capsys.readouterr().err)
        assert "its cells are computed again" in error
        assert_same(result(tmp_path), reference)

    @pytest.mark.slow
    @pytest.mark.traced
    def test_missing_result_is_written_again(self, tmp_path, reference):
        config = parse(CONFIG)
        with open_store(tmp_path, config) as store:
            sweep(config, store, Serial())
        (tmp_path / "sweep.nc").write_bytes(b"")
        with open_store(tmp_path, config) as store:
            sweep(config, store, Never())
        assert_same(result(tmp_path), reference)

    @pytest.mark.slow
    @pytest.mark.traced
    def test_full_disk_is_one_sentence_and_loses_no_block(
        self, tmp_path, config_file, reference, monkeypatch, capsys
    ):
        config, replace = parse(CONFIG), os.replace

        def full(source, target):
            if len(stored(tmp_path / "out")) >= 4:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            replace(source, target)

        monkeypatch.setattr(os, "replace", full)
        command = ["sweep", str(config_file), "--out", str(tmp_path / "out"), "--workers", "1"]
        assert main(command) == 1
        error = capsys.readouterr().err
        assert "No space left on device; finished blocks are stored" in error
        assert "Traceback" not in error
        monkeypatch.undo()
        assert len(finish(tmp_path / "out", CONFIG)) == config.blocks - 4
        assert_same(result(tmp_path / "out"), reference)

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            (CONFIG.replace("D = 8", "D = 12"), "another configuration (D differs)"),
            (CONFIG.replace("number = 4", "number = 5"), "another configuration (nu differs)"),
            (CONFIG.replace("D = 8", "D = 8\nbeta = 2"), "another configuration (beta differs)"),
        ],
    )
    def test_another_configuration_is_rejected(self, tmp_path, config_file, capsys, text, what):
        with open_store(tmp_path / "out", parse(CONFIG)):
            pass
        config_file.write_text(text)
        assert main(["sweep", str(config_file), "--out", str(tmp_path / "out")]) == 2
        assert what in (error := capsys.readouterr().err)
        assert error.count("\n") == 1

    def test_another_version_of_the_code_is_rejected(self, tmp_path, config_file, capsys):
        with open_store(tmp_path / "out", parse(CONFIG)):
            pass
        manifest = read_record(tmp_path / "out" / "sweep.json")
        manifest["stamp"]["code"] = "0123"
        write_record(tmp_path / "out" / "sweep.json", manifest)
        assert main(["sweep", str(config_file), "--out", str(tmp_path / "out")]) == 2
        assert "made by another source (0123, now" in capsys.readouterr().err

    def test_two_sweeps_into_one_folder(self, tmp_path, config_file, capsys):
        with open_store(tmp_path / "out", parse(CONFIG)):
            assert main(["sweep", str(config_file), "--out", str(tmp_path / "out")]) == 2
        assert "is in use by another patchdyn" in capsys.readouterr().err

    def test_bad_input(self, tmp_path, config_file, capsys):
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "notes.txt").write_text("keep")
        for arguments, sentence in (
            (["--out", str(tmp_path / "mine")], "is not a sweep of patchdyn"),
            (["--out", str(tmp_path / "new"), "--resume"], "contains no sweep to resume"),
            (["--out", str(tmp_path / "new"), "--workers", "0"], "must be at least 1"),
            (["--out", str(config_file)], "Not a directory"),
        ):
            assert main(["sweep", str(config_file), *arguments]) == 2
            assert sentence in capsys.readouterr().err

    def test_list_is_labelled_by_cell(self):
        config = parse("[[list]]\nC = 2\nsolver = 'gd'\n[[list]]\n'beta/tau' = 2\n")
        rows = [cells.empty_row(theories.load("positional"), "failed", "x") for _ in config]
        data = labelled(config, rows, sweep_stamp())
        assert data["status"].dims == ("cell",)
        assert data["beta_over_tau"].attrs["parameter"] == "beta/tau"
        assert np.isnan(data["beta_over_tau"].values).tolist() == [True, False]


def start(config_file, out):
    """Start a sweep in a process of its own and wait until some blocks are finished."""
    process = subprocess.Popen(
        [sys.executable, "-m", "simulations.cli", "sweep", str(config_file), "--out", str(out),
         "--workers", "1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 600
    while len(stored(out)) < 2 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    assert process.poll() is None, process.communicate()
    return process


def children(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]
    return []


@pytest.mark.slow
class TestProcesses:
    @pytest.fixture(scope="class")
    @classmethod
    def reference(cls):
        return compute(parse(LONG))

    @pytest.fixture
    def config_file(self, tmp_path):
        path = tmp_path / "sweep.toml"
        path.write_text(LONG)
        return path

    def test_kill_9_and_resume(self, tmp_path, config_file, reference):
        out = tmp_path / "out"
        process = start(config_file, out)
        process.kill()
        process.communicate()
        blocks = stored(out)
        assert 0 < len(blocks) < 30
        assert main(["sweep", str(config_file), "--out", str(out), "--workers", "1"]) == 0
        assert {name: stored(out)[name] for name in blocks} == blocks
        assert_same(result(out), reference)

    def test_ctrl_c_and_a_killed_worker(self, tmp_path, config_file, reference):
        out = tmp_path / "out"
        process = start(config_file, out)
        for child in children(process.pid)[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
        _, error = process.communicate(timeout=300)
        assert process.returncode == 130
        assert error.strip().splitlines()[-1].startswith("patchdyn: interrupted; the same command")
        assert "Traceback" not in error
        finish(out, LONG)
        assert_same(result(out), reference)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Dask's own making
class TestCluster:
    @pytest.fixture(scope="class")
    @classmethod
    def dask_cluster(cls):
        distributed = pytest.importorskip("distributed")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as running:
            yield running

    def test_same_bits_though_a_worker_is_killed(
        self, dask_cluster, tmp_path, config_file, reference, monkeypatch
    ):
        killed = []
        write = engines.Cluster.results

        def results(self, blocks):
            for number, block in enumerate(write(self, blocks)):
                if number == 3:
                    pids = list(self.client.run(os.getpid).values())
                    os.kill(pids[0], signal.SIGKILL)
                    killed.append(pids[0])
                yield block

        monkeypatch.setattr(engines.Cluster, "results", results)
        address = dask_cluster.scheduler_address
        out = tmp_path / "out"
        assert main(["sweep", str(config_file), "--out", str(out), "--scheduler", address]) == 0
        assert len(killed) == 1
        assert_same(result(out), reference)

    def test_other_code_on_a_worker_is_rejected(
        self, dask_cluster, tmp_path, config_file, monkeypatch, capsys
    ):
        monkeypatch.setattr(
            engines, "sweep_stamp", lambda theory: {**sweep_stamp(theory), "code": "0123"}
        )
        address = dask_cluster.scheduler_address
        out = str(tmp_path / "out")
        assert main(["sweep", str(config_file), "--out", out, "--scheduler", address]) == 1
        assert "runs different code (code)" in capsys.readouterr().err

    def test_lost_scheduler_is_one_sentence_and_resumable(
        self, dask_cluster, tmp_path, config_file, reference, capsys, monkeypatch
    ):
        """The last test of the cluster, which it ends."""
        results = engines.Cluster.results

        def closing(self, blocks):
            for number, block in enumerate(results(self, blocks)):
                if number == 3:
                    dask_cluster.close()
                yield block

        monkeypatch.setattr(engines.Cluster, "results", closing)
        address, out = dask_cluster.scheduler_address, tmp_path / "out"
        code = main(["sweep", str(config_file), "--out", str(out), "--scheduler", address])
        assert code == 1
        assert f"the connection to the scheduler at {address} is lost" in capsys.readouterr().err
        assert 3 <= len(stored(out)) < 12
        finish(out, CONFIG)
        assert_same(result(out), reference)


def test_no_scheduler_or_no_dask_is_one_sentence(tmp_path, config_file, monkeypatch, capsys):
    command = ["sweep", str(config_file), "--out", str(tmp_path / "out"), "--scheduler"]
    monkeypatch.setattr(engines, "_CONNECT_SECONDS", 0.5)
    assert main([*command, "tcp://127.0.0.1:9"]) == 1
    assert "no scheduler answers at tcp://127.0.0.1:9" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main([*command, "tcp://127.0.0.1:9"]) == 1
    assert "pip install 'patchdyn[cluster]'" in capsys.readouterr().err


def test_progress_shows_the_remaining_time(capsys, monkeypatch):
    monkeypatch.setattr(display, "_SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(display, "_FIRST_LINE", 0.0)
    shown = CellProgress(4, 1)
    shown.add("completed")
    shown.add("diverged")
    shown.close()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "1 of 4 cells are finished already"
    assert lines[-1].startswith("3/4 cells, ")
    assert lines[-1].endswith("s left (1 diverged)")
    assert [duration(s) for s in (5, 120, 7200)] == ["5 s", "2 min", "2.0 h"]


def test_store_cannot_be_opened_in_an_unwritable_place(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot use"):
        open_store(tmp_path / "file" / "out", parse(CONFIG))
