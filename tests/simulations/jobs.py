"""Jobs and cells of worker processes; little is imported, as every worker imports it."""

import os
import signal
import time

from simulations.workers import Channel


def work(task: str, channel: Channel):
    """Do what the task is called."""
    channel.report("started")
    if task == "checks":
        while True:
            time.sleep(0.01)
            channel.check()
    if task == "sleeps":
        time.sleep(600.0)
    if task == "exits":
        os._exit(3)
    if task == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "is too large":
        raise MemoryError
    if task == "is wrong":
        raise KeyError("unforeseen")
    return os.getpid(), os.environ["OMP_NUM_THREADS"]


def dies_once(system, values):
    """Kill the worker in its first attempt at a cell."""
    mark = values["folder"] + f"/{values['cell']}"
    if not os.path.exists(mark):
        with open(mark, "w"):
            os.kill(os.getpid(), signal.SIGKILL)
    return {"status": "completed", "message": str(values["cell"])}


def dies_always(system, values):
    if values["cell"] == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"status": "completed", "message": str(values["cell"])}
