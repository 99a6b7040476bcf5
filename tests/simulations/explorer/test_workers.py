"""Runs in processes: told, done, withdrawn in time, and what becomes of those that end."""

import queue
import time
from multiprocessing.connection import wait

import pytest

from simulations.explorer.workers import GRACE, Event, Workers
from tests.simulations.explorer.works import work

PATIENCE = 60.0


@pytest.fixture(scope="module")
def workers():
    made = Workers(1, work)
    yield made
    made.close()


class Heard(queue.Queue):
    """What is heard of a job, in order."""

    def next(self):
        return self.get(timeout=PATIENCE)


def start(workers, task):
    heard = Heard()
    return workers.start(task, heard.put), heard


def process(workers):
    """Return the process that does the next job."""
    _, heard = start(workers, "echo")
    assert heard.next() == Event("told", "on the way")
    done = heard.next()
    assert done.kind == "done"
    return done.content


def test_a_process_is_kept(workers):
    assert process(workers) == process(workers)


def test_a_run_that_listens_is_withdrawn_and_its_process_serves_on(workers):
    serving = process(workers)
    job, heard = start(workers, "listens")
    assert heard.next() == Event("told", "begun")
    job.withdraw()
    assert process(workers) == serving
    assert heard.empty()


def test_a_deaf_run_is_ended_with_its_process(workers):
    serving = process(workers)
    job, heard = start(workers, "deaf")
    heard.next()
    began = time.monotonic()
    job.withdraw()
    assert process(workers) != serving
    assert time.monotonic() - began >= 0.9 * GRACE
    assert heard.empty()


def test_a_job_that_waits_is_withdrawn_before_it_begins(workers):
    first, begun = start(workers, "listens")
    begun.next()
    second, heard = start(workers, "dies")
    second.withdraw()
    first.withdraw()
    process(workers)
    assert heard.empty()


def test_a_withdrawal_that_comes_late_harms_nobody(workers):
    job, heard = start(workers, "echo")
    heard.next(), heard.next()
    job.withdraw()
    time.sleep(1.5 * GRACE)
    serving = process(workers)
    assert process(workers) == serving


def test_death_is_told(workers):
    _, heard = start(workers, "dies")
    assert heard.next() == Event("died", "the process that computed this run ended (exit code 3)")
    process(workers)


def test_refusals_are_sentences(workers):
    _, heard = start(workers, "refuses")
    assert heard.next() == Event("failed", "the memory of this machine does not suffice")


def test_a_defect_is_told_and_survived(workers):
    _, heard = start(workers, "is unknown")
    event = heard.next()
    assert event.kind == "failed"
    assert event.content == "a defect of patchdyn: KeyError: 'nobody foresaw this'"
    process(workers)


def test_closing_ends_what_runs():
    workers = Workers(2, work)
    _, heard = start(workers, "deaf")
    heard.next()
    (member,) = workers._members
    workers.close()
    assert not member.process.is_alive()


@pytest.mark.parametrize("noticed", [False, True])
def test_an_idle_process_that_died_gets_no_job(workers, noticed):
    serving = process(workers)
    (member,) = workers._idle
    member.process.kill()
    assert wait([member.process.sentinel], timeout=PATIENCE)
    if noticed:
        member.wait()
    assert process(workers) != serving
    assert len(workers._members) == 1
