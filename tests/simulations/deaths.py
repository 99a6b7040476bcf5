"""Cells that kill their worker; little is imported, as every worker imports it."""

import os
import signal


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
