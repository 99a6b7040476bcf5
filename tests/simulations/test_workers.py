"""The worker pool: progress, results, cancellation in time, and dead processes replaced."""

import multiprocessing
import queue
import time
from multiprocessing.connection import wait

import pytest

from simulations.workers import GRACE, Event, WorkerPool
from tests.simulations.jobs import work

PATIENCE = 60.0
STARTED = Event("progress", "started")


@pytest.fixture(scope="module")
def pool():
    pool = WorkerPool(1, work)
    yield pool
    pool.close()


class Events(queue.Queue):
    """The events of a job, in order."""

    def next(self):
        return self.get(timeout=PATIENCE)


def submit(pool, task):
    events = Events()
    return pool.submit(task, events.put), events


def process(pool):
    """Return the id of the process that runs the next job."""
    _, events = submit(pool, "returns")
    assert events.next() == STARTED
    done = events.next()
    assert done.type == "done"
    return done.content[0]


def test_a_process_is_used_again(pool):
    assert process(pool) == process(pool)


def test_a_job_that_checks_is_cancelled_and_its_process_goes_on(pool):
    before = process(pool)
    job, events = submit(pool, "checks")
    assert events.next() == STARTED
    job.cancel()
    assert process(pool) == before
    assert events.empty()


def test_a_cancelled_job_that_does_not_check_is_killed_with_its_process(pool):
    before = process(pool)
    job, events = submit(pool, "sleeps")
    events.next()
    began = time.monotonic()
    job.cancel()
    assert process(pool) != before
    assert time.monotonic() - began >= 0.9 * GRACE
    assert events.empty()


def test_the_process_of_a_killed_job_is_replaced_at_once(pool):
    job, events = submit(pool, "sleeps")
    events.next()
    (before,) = pool._workers
    job.cancel()
    before.join()
    assert len(pool._idle) == 1
    assert pool._idle[0] is not before


def test_a_waiting_job_is_cancelled_before_it_starts(pool):
    first, events = submit(pool, "checks")
    events.next()
    second, events = submit(pool, "exits")
    second.cancel()
    first.cancel()
    process(pool)
    assert events.empty()


def test_a_late_cancellation_has_no_effect(pool):
    job, events = submit(pool, "returns")
    events.next(), events.next()
    job.cancel()
    time.sleep(1.5 * GRACE)
    before = process(pool)
    assert process(pool) == before


@pytest.mark.parametrize(
    ("task", "event"),
    [
        ("exits", Event("died", "exit code 3")),
        ("is killed", Event("died", "signal 9")),
        (
            "is too large",
            Event("failed", "this machine has too little memory: choose a smaller problem"),
        ),
        ("is wrong", Event("failed", "a defect of patchdyn: KeyError: 'unforeseen'")),
    ],
)
def test_death_and_errors_are_events_and_the_pool_goes_on(pool, task, event):
    _, events = submit(pool, task)
    assert [events.next(), events.next()] == [STARTED, event]
    process(pool)


def test_close_kills_what_runs():
    pool = WorkerPool(2, work)
    _, events = submit(pool, "sleeps")
    events.next()
    (worker,) = pool._workers
    pool.close()
    assert not worker.process.is_alive()
    assert events.empty()


@pytest.mark.parametrize("noticed", [False, True])
def test_an_idle_process_that_died_gets_no_job(pool, noticed):
    before = process(pool)
    (worker,) = pool._idle
    worker.process.kill()
    assert wait([worker.process.sentinel], timeout=PATIENCE)
    if noticed:
        worker.join()
    assert process(pool) != before
    assert len(pool._workers) == 1


def test_a_death_costs_its_task_alone_and_a_task_can_be_retried(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    pool, ends, retried = WorkerPool(2, work), [], set()
    for task, event in pool.events(["a", "is killed", "b", "exits", "c"]):
        if event.type == "progress":
            assert event == STARTED
            continue
        ends.append((task, event.content if event.type == "died" else event.content[1]))
        if event.type == "died" and task not in retried:
            retried.add(task)
            pool.retry(task)
    deaths = [("is killed", "signal 9"), ("exits", "exit code 3")]
    assert sorted(ends) == sorted([("a", "1"), ("b", "1"), ("c", "1"), *deaths, *deaths])
    assert pool._workers == set()


def test_a_retried_task_goes_first():
    pool = WorkerPool(1, work)
    order = []
    for task, event in pool.events(["exits", "a", "b", "c"]):
        if event.type == "progress":
            continue
        order.append(task)
        if order == ["exits"]:
            pool.retry("exits")
    assert order.index("exits", 1) < order.index("c")


@pytest.mark.parametrize("number", [1, 2])
def test_the_processes_end_with_the_iteration(number):
    pool = WorkerPool(number, work)
    events = pool.events(["sleeps"] * 3)
    assert next(events) == ("sleeps", STARTED)
    workers = list(pool._workers)
    assert len(workers) == number
    events.close()
    assert not any(worker.process.is_alive() for worker in workers)


def test_no_task_starts_no_process():
    children = multiprocessing.active_children()
    assert list(WorkerPool(2, work).events([])) == []
    assert multiprocessing.active_children() == children
