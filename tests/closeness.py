"""Comparisons of numbers without default tolerances.

`pytest.approx(x, rel=r)` also allows an absolute difference of 1e-12, and
`numpy.testing.assert_allclose(a, b, atol=a)` also a relative difference of 1e-7. The functions here
allow only the given tolerance. nan equals nothing, infinities equal themselves, and an empty
comparison fails.
"""

from collections.abc import Iterator, Mapping

import numpy as np


def close(value, reference, rel):
    """Assert |value - reference| <= rel |reference| for each entry, without absolute tolerance.

    Numbers, arrays, sequences, NamedTuples and mappings (compared key by key) are taken; a single
    number as ``reference`` is compared with every entry.
    """
    __tracebackhide__ = True
    _compare(value, reference, rel, "relative", lambda number: np.abs(number))


def within(value, reference, absolute):
    """Assert |value - reference| <= absolute for each entry, without relative tolerance.

    ``absolute`` is a number, or one for each entry. Takes what `close` takes.
    """
    __tracebackhide__ = True
    _compare(value, reference, absolute, "absolute", lambda number: np.ones(np.shape(number)))


def _compare(value, reference, tolerance, label, unit):
    __tracebackhide__ = True
    if not np.all(np.asarray(tolerance) >= 0.0):
        raise ValueError(f"a tolerance is 0 or more, not {tolerance!r}")
    for path, actual, expected in _pairs(value, reference):
        _compare_arrays(path, actual, expected, tolerance, label, unit)


def _pairs(value, reference, path="") -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    if isinstance(reference, Mapping):
        assert isinstance(value, Mapping), f"{path or 'value'} is no mapping: {value!r}"
        assert set(value) == set(reference), f"keys {sorted(value)}, not {sorted(reference)}"
        assert reference, "nothing is compared: the mapping is empty"
        for key in reference:
            yield from _pairs(value[key], reference[key], f"{path}[{key!r}]")
        return
    actual, expected = _numbers(value), _numbers(reference)
    assert actual.shape == expected.shape or not expected.ndim, (
        f"shape {actual.shape}, not {expected.shape}{' at ' if path else ''}{path}"
    )
    assert actual.size, f"nothing is compared: no entries{' at ' if path else ''}{path}"
    yield path, actual, np.broadcast_to(expected, actual.shape)


def _numbers(value):
    """Return an array of float64, or of complex128 where a number is complex."""
    array = np.asarray(value)
    return array.astype(complex if array.dtype.kind == "c" else float)


def _compare_arrays(path, actual, expected, tolerance, label, unit):
    __tracebackhide__ = True
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.abs(actual - expected)
        allowed = np.where(np.isfinite(expected), tolerance * unit(expected), 0.0)
        good = (actual == expected) | (error <= allowed)
        if good.all():
            return
        share = np.where(actual == expected, 0.0, error / unit(expected))
    share = np.where(np.isnan(share), np.inf, share)
    worst = np.unravel_index(np.argmax(np.where(good, -1.0, share)), good.shape)
    index = str([int(i) for i in worst]) if worst else ""
    raise AssertionError(
        f"{np.count_nonzero(~good)} of {good.size} differ; largest {label} error "
        f"{share[worst]:.3g} > {np.broadcast_to(tolerance, good.shape)[worst]:.3g}"
        f"{' at ' if path or index else ''}{path}{index}: "
        f"{actual[worst]!s} is not {expected[worst]!s}"
    )
