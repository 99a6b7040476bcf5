"""What is drawn in ``figures/order_parameters.py``."""

import xarray

from dynamics import Trajectory
from dynamics.core.schedule import thinned
from dynamics.positional.events import Events


def gather(run: Trajectory, events: Events) -> xarray.Dataset:
    """Return the run with the times of its events as attributes (nan where one is missing)."""
    data = run.to_dataset().isel(time=thinned(run.time.size, 800))
    moments = {"T0": events.T0, "T1": events.T1, "onset": events.onset, "end": events.end_of_rise}
    return data.assign_attrs({name: float(moment.time) for name, moment in moments.items()})
