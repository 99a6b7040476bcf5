"""Regime maps of the shallow transformer: final attention and learning time."""

from simulations.maps import Map, Sweep

MAPS = (
    Map(
        "attention",
        "Where attention ends",
        "final attention on relevant tokens",
        lambda _, data: data["attention"],
        scale="linear",
        levels=(0.5, 0.7, 0.9),
    ),
    Map(
        "share",
        "How much of the plateau is reached",
        r"final attention over $\alpha_*/(\alpha_*+\alpha_\#)$",
        lambda _, data: data["attention_share"],
        scale="linear",
        levels=(0.7, 0.9),
    ),
    Map(
        "time",
        "When the margin is reached",
        "time until the mean of $yF$ exceeds the margin",
        lambda _, data: data["time_to_margin"],
        "not learned within the run",
    ),
    Map(
        "wrong",
        "Where attention stays behind although all is learned",
        "1: no sample wrong, attention nearer to its start than to the plateau",
        lambda _, data: data["wrong_attractor"],
        scale="linear",
    ),
)


def maps_of(_: Sweep) -> tuple[Map, ...]:
    """Return the maps of a sweep."""
    return MAPS
