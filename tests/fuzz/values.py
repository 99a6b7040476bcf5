"""Random values for numeric arguments: unusual numbers, and texts that are not numbers."""

import math

STRANGE = (
    *"nan inf -inf 0 -0.0 -1 1e-300 5e-324 1e300 1e308 1e309 -1e308 1/0 0/5 2/64 1//2".split(),
    *"1/2/3 0x10 1_000 1e e5 -- abc None True [1] {} 1;2 ٣ ½ １ 𝟙 1e-99999 99 101 2.5 64".split(),
    *"1e6 1e9 2e9 $(id) __import__('os')".split(),
    "",
    " ",
    "\t7",
    "1" * 310,
    "9" * 4300,
    "8" * 5000,
    "0." + "3" * 400,
    "x" * 300,
)


def text(rng):
    """Return a value as text, as on a command line or in a file."""
    if rng.random() < 0.5:
        return rng.choice(STRANGE)
    return repr(number(rng))


def number(rng):
    """Return a finite or infinite number of any size, or nan."""
    form = rng.randrange(5)
    if form == 0:
        return rng.randint(-5, 70)
    if form == 1:
        return rng.choice((-1, 1)) * 10.0 ** rng.uniform(-320, 308)
    if form == 2:
        return rng.choice((math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1.0, 1 - 2**-53))
    if form == 3:
        return rng.randint(0, 10 ** rng.choice((3, 9, 18, 320)))
    return rng.uniform(-3, 3)
