"""Processes side by side: a death costs its task alone, and nothing is left running."""

import multiprocessing
import os
import signal
import time

import pytest

from simulations.parallel import Team


def work(task, tell):
    tell("begun")
    if task == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "stop":
        os._exit(3)
    if task == "sleep":
        time.sleep(600.0)
    return os.environ["OMP_NUM_THREADS"]


def test_a_death_costs_its_task_alone_and_a_task_may_be_given_again(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    team = Team(2, work)
    found, again = [], []
    for event in team.events(["a", "die", "b", "stop", "c"]):
        if event.kind == "told":
            assert event.content == "begun"
            continue
        found.append(tuple(event))
        if event.kind == "died" and event.task not in again:
            again.append(event.task)
            team.again(event.task)
    assert sorted(found) == sorted([
        *(("done", task, "1") for task in "abc"),
        *[("died", "die", "signal 9")] * 2, *[("died", "stop", "exit code 3")] * 2,
    ])  # fmt: skip
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("number", [1, 2])
def test_whoever_stops_listening_ends_the_processes(number):
    events = Team(number, work).events(["sleep"] * 3)
    assert next(events).content == "begun"
    events.close()
    assert multiprocessing.active_children() == []


def test_nothing_to_do_starts_nothing():
    assert list(Team(2, work).events([])) == []
