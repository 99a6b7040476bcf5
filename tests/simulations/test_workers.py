"""Claims in parallel: the same report, shared processes, lost processes and Ctrl-C."""

import io
import json
import os
import signal
import time
from dataclasses import replace

import pytest

from simulations.display import PlainDisplay
from simulations.reproduction.claim import Claim, Context, Measurement
from simulations.reproduction.folder import ReportFolder
from simulations.reproduction.predicates import Column, Table
from simulations.reproduction.run import reproduce
from simulations.reproduction.workers import grouped

STAMP = {"patchdyn": "0.1.0", "mode": "full"}


TABLE = Table(index=(), columns={"process": Column("its process")})


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


def headline(tables):
    return {"process": tables["run"].data.process[0]}


def named(name: str, measure=report_process, group: str = "") -> Claim:
    return Claim(
        id=name, place="place", statement="statement", method="method", tables={"run": TABLE},
        measure=measure, headline=headline, finding="It ran in {process}.", group=group,
    )  # fmt: skip


def reproduce_in(path, claims, workers=2, **options):
    folder = ReportFolder(path, STAMP, [claim.id for claim in claims])
    return reproduce(claims, folder, PlainDisplay(io.StringIO()), workers=workers, **options)


def processes(path):
    return {e["claim"]: e["measured"][0]["value"] for e in json.loads(path.read_text())}


def ids(claims, *, quick=False):
    return [[claim.id for claim in group] for group in grouped(claims, quick=quick)]


def test_groups_share_what_they_compute():
    claims = [named("a", group="x"), named("b"), named("c", group="x")]
    assert ids(claims) == [["a", "c"], ["b"]]
    late = [claims[1], claims[0], claims[2]]  # the most claims still come first
    assert ids(late) == [["a", "c"], ["b"]]


def test_a_quick_claim_may_leave_its_group():
    parts = [named(name, group="x") for name in "acd"]
    parts[1] = replace(parts[1], alone_if_quick=True)
    claims = [named("b"), *parts]
    assert ids(claims, quick=True) == [["a", "d"], ["b"], ["c"]]
    assert ids(claims) == [["a", "c", "d"], ["b"]]


@pytest.mark.slow
def test_claims_of_a_group_share_a_process(tmp_path):
    claims = [named("a", group="x"), named("b"), named("c", group="x"), named("d")]
    result = reproduce_in(tmp_path, claims, quick=True)
    assert result.finished == ["a", "b", "c", "d"]
    found = processes(tmp_path / "report.json")
    assert list(found) == ["a", "b", "c", "d"]
    assert found["a"] == found["c"]
    assert os.getpid() not in found.values()
    first = json.loads((tmp_path / "report.json").read_text())[0]
    assert first["parameters"] == {"quick": True, "scratch": str(tmp_path / "checkpoints" / "a")}


@pytest.mark.slow
def test_a_lost_claim_is_recorded_and_the_others_run(tmp_path):
    claims = [named("bad", die, group="x"), named("a", group="x"), named("b"), named("c")]
    result = reproduce_in(tmp_path, claims)
    assert result.failed == ["bad"]
    assert result.finished == ["a", "b", "c"]
    manifest = json.loads((tmp_path / "patchdyn.json").read_text())
    assert "ended with exit code 3" in manifest["failed"]["bad"]
    mended = [replace(claims[0], measure=report_process), *claims[1:]]
    assert reproduce_in(tmp_path, mended, workers=1).failed == []


@pytest.mark.slow
def test_an_interruption_ends_the_processes_and_keeps_finished_claims(tmp_path):
    claims = [named("a"), named("b", interrupt_parent), named("c"), named("d")]
    began = time.monotonic()
    result = reproduce_in(tmp_path, claims)
    assert time.monotonic() - began < 900.0
    assert result.interrupted
    assert "b" not in result.finished
    rest = [replace(claims[1], measure=report_process), *claims[2:]]
    assert reproduce_in(tmp_path, rest, workers=1).interrupted is False
