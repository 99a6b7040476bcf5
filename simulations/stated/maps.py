"""Regime maps of a user-defined theory: final order parameters and final risk."""

from simulations.maps import Map, Sweep, outcome_map

#: Outcomes that describe the run rather than the theory.
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
        if values.dtype.kind == "f" and name not in _OF_THE_RUN and not values.isnull().all()
    ]
    return tuple(outcome_map(sweep, name) for name in names)
