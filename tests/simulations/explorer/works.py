"""What processes do in the tests: they find it by import, and load nothing else."""

import os
import time

from simulations.explorer.workers import Line


def work(task: str, line: Line):
    """Do as the task says."""
    if task == "echo":
        line.tell("on the way")
        return os.getpid()
    if task == "listens":
        line.tell("begun")
        while True:
            time.sleep(0.01)
            line.check()
    if task == "deaf":
        line.tell("begun")
        time.sleep(600.0)
    if task == "dies":
        os._exit(3)
    if task == "refuses":
        raise MemoryError
    raise KeyError("nobody foresaw this")
