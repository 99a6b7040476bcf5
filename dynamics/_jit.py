"""The one way in which this package compiles: ``@kernel``.

``error_model="numpy"`` lets a division by zero give an infinity that the finite checks see, and
``fastmath`` stays off so that these checks survive. Compiled code is cached on disk. Numba
invalidates a cache entry when the file of *that* function changes, which leaves a caller with a
stale copy of a callee from another file; here the name of every entry carries a digest of all
kernel sources.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from functools import cache, partial
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

#: Fused multiply-adds and reordered sums; infinities and nan keep their meaning.
REORDER = frozenset({"contract", "reassoc", "nsz", "arcp"})


@cache
def _sources_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        source = path.read_bytes()
        if b"@kernel" in source:
            digest.update(source)
    return digest.hexdigest()


class _PackageCache(FunctionCache):
    """Numba's file cache, its entries named after the digest of all kernels of the package."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = IndexDataCacheFile(
            cache_path=self._cache_path,
            filename_base=f"{self._impl.filename_base}.{_sources_digest()[:16]}",
            source_stamp=self._impl.locator.get_source_stamp(),
        )


def kernel(
    function: Callable[..., Any] | None = None, *, fastmath: Collection[str] = frozenset()
) -> Any:
    """Compile ``function`` on first call; ``function.py_func`` remains the plain twin.

    ``@kernel(fastmath=REORDER)`` is for loops that vectorise only if sums may be reordered.
    """
    if function is None:
        return partial(kernel, fastmath=fastmath)
    compiled: Any = numba.njit(error_model="numpy", fastmath=set(fastmath))(function)
    if hasattr(compiled, "py_func"):  # not where NUMBA_DISABLE_JIT leaves plain Python
        compiled._cache = _PackageCache(function)
    return compiled
