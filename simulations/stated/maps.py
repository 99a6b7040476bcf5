"""Regime maps of a stated theory: where each order parameter ends, and the risk."""

from simulations.maps import Map, Sweep, outcome_map

#: Outcomes that tell of a run rather than of the theory.
_OF_THE_RUN = {
    "time",
    "bound",
    "largest_bound",
    "largest_gradient_bound",
    "evaluations",
    "seconds",
    "initial_loss",
}


def maps_of(sweep: Sweep) -> tuple[Map, ...]:
    """Return a map of each final order parameter and of the final risk."""
    names = [
        str(name)
        for name, values in sweep.data.data_vars.items()
        if values.dtype.kind == "f" and name not in _OF_THE_RUN
    ]
    return tuple(outcome_map(sweep, name) for name in names)
