"""Independent seeds from one root seed."""

import numpy as np


def seed_at(root: int, *key: int) -> int:
    """Return the seed of one random stream of a root seed.

    Streams of different roots are independent. With seeds ``root + number``, in contrast, stream 1
    of root 0 would equal stream 0 of root 1, so that another root would repeat most of the runs.

    Parameters
    ----------
    root
        Root seed, at least 0.
    key
        Number of the stream; several integers for nested streams.

    Returns
    -------
    int
        Integer of 32 bits.
    """
    return int(np.random.SeedSequence(root, spawn_key=key).generate_state(1)[0])


def rng_at(root: int, *key: int) -> np.random.Generator:
    """Return the generator of one random stream of a root seed, see :func:`seed_at`."""
    return np.random.default_rng(np.random.SeedSequence(root, spawn_key=key))


def seeds_of(root: int, count: int) -> list[int]:
    """Return the seeds of streams 0 to ``count`` - 1 of a root seed."""
    return [seed_at(root, number) for number in range(count)]
