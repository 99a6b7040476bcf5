"""Independent seeds from one root seed."""

import numpy as np


def seed_at(root: int, *key: int) -> int:
    """Return the seed of one stream of a root seed, as an integer of 32 bits.

    Streams of neighbouring roots have nothing in common. With ``root + number`` in place of this,
    run 1 of root 0 would be run 0 of root 1, so that another root repeats most of the runs.

    Parameters
    ----------
    root
        Root of all random numbers, at least 0.
    key
        Number of the stream; more than one integer where streams are nested.
    """
    return int(np.random.SeedSequence(root, spawn_key=key).generate_state(1)[0])


def seeds_of(root: int, count: int) -> list[int]:
    """Return the seeds of streams 0 to ``count`` - 1 of a root seed."""
    return [seed_at(root, number) for number in range(count)]
