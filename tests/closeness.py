"""Comparisons of numbers whose whole tolerance is written where they are used.

`pytest.approx(x, rel=r)` also allows 1e-12 in absolute terms, `numpy.testing.assert_allclose` with
``atol`` alone also 1e-7 relative. Here nothing is allowed that is not named: nan equals nothing, an
infinity only itself, and to compare nothing at all is a failure.
"""

from collections.abc import Iterator, Mapping

import numpy as np


def close(value, reference, rel):
    """Assert |value - reference| <= rel |reference|, entry by entry, and no absolute allowance.

    Numbers, arrays, sequences, NamedTuples and mappings (compared key by key) are taken; a single
    number as ``reference`` is compared with every entry.
    """
    __tracebackhide__ = True
    _compare(value, reference, rel, "relative", lambda number: np.abs(number))


def within(value, reference, absolute):
    """Assert |value - reference| <= absolute, entry by entry, and no relative allowance.

    ``absolute`` is a number, or one for each entry. Takes what `close` takes.
    """
    __tracebackhide__ = True
    _compare(value, reference, absolute, "absolute", lambda number: np.ones(np.shape(number)))


def _compare(value, reference, tolerance, kind, unit):
    __tracebackhide__ = True
    if not np.all(np.asarray(tolerance) >= 0.0):
        raise ValueError(f"a tolerance is 0 or more, not {tolerance!r}")
    for place, found, expected in _pairs(value, reference):
        _compare_arrays(place, found, expected, tolerance, kind, unit)


def _pairs(value, reference, place="") -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    if isinstance(reference, Mapping):
        assert isinstance(value, Mapping), f"{place or 'value'} is no mapping: {value!r}"
        assert set(value) == set(reference), f"keys {sorted(value)}, not {sorted(reference)}"
        assert reference, "nothing is compared: the mapping is empty"
        for key in reference:
            yield from _pairs(value[key], reference[key], f"{place}[{key!r}]")
        return
    found, expected = _numbers(value), _numbers(reference)
    assert found.shape == expected.shape or not expected.ndim, (
        f"shape {found.shape}, not {expected.shape}{' at ' if place else ''}{place}"
    )
    assert found.size, f"nothing is compared: no entries{' at ' if place else ''}{place}"
    yield place, found, np.broadcast_to(expected, found.shape)


def _numbers(value):
    """Return an array of float64, or of complex128 where a number is complex."""
    array = np.asarray(value)
    return array.astype(complex if array.dtype.kind == "c" else float)


def _compare_arrays(place, found, expected, tolerance, kind, unit):
    __tracebackhide__ = True
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.abs(found - expected)
        allowed = np.where(np.isfinite(expected), tolerance * unit(expected), 0.0)
        good = (found == expected) | (error <= allowed)
        if good.all():
            return
        share = np.where(found == expected, 0.0, error / unit(expected))
    share = np.where(np.isnan(share), np.inf, share)
    worst = np.unravel_index(np.argmax(np.where(good, -1.0, share)), good.shape)
    index = str([int(i) for i in worst]) if worst else ""
    raise AssertionError(
        f"{np.count_nonzero(~good)} of {good.size} differ; largest {kind} error "
        f"{share[worst]:.3g} > {np.broadcast_to(tolerance, good.shape)[worst]:.3g}"
        f"{' at ' if place or index else ''}{place}{index}: "
        f"{found[worst]!s} is not {expected[worst]!s}"
    )
