"""Jobs of worker processes in the tests: imported there, so that little else is."""

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
