"""Compilation with Numba: the decorator ``@kernel`` and a cache that tracks imported files.

Kernels use ``error_model="numpy"``, so that a division by zero gives an infinity that finite checks
detect, and no ``fastmath``, so that these checks are not optimised away. Compiled code is cached on
disk. Numba invalidates a cache entry only if the file of the function itself changes, and would
use a stale copy of a callee from another file. Here, the name of each entry contains a digest of
the file and of all files of the package that it imports.
"""

import hashlib
import inspect
import re
import warnings
from collections.abc import Callable, Collection
from functools import cache, partial
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    _CacheLocator,
)
from numba.core.cpu import CPUTargetOptions
from numba.core.types.function_type import CompileResultWAP

from dynamics.core.boxing import safe_boxing

safe_boxing()

#: Allow fused multiply-adds and reordered sums; infinities and nan are preserved.
REORDER = frozenset({"contract", "reassoc", "nsz", "arcp"})

#: Options of Numba that omit the entry points for Python and C.
_NO_ENTRY = ("no_cpython_wrapper", "no_cfunc_wrapper")

#: Whether this version of Numba has an option that disables reference counting of arrays.
_UNCOUNTED = hasattr(CPUTargetOptions, "_nrt")

_PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(rb"\bfrom[\s\\]+dynamics\.(\w[\w.]*)[\s\\]+import\b")


@cache
def _imports(path: Path) -> frozenset[Path]:
    """Return the files of this package that a file imports by ``from dynamics... import``.

    A regular expression is used because parsing would add a tenth to the time of
    ``import dynamics``.
    """
    modules = [name.decode().split(".") for name in _IMPORT.findall(path.read_bytes())]
    files = (_PACKAGE.joinpath(*parts).with_suffix(".py") for parts in modules)
    return frozenset(file for file in files if file.exists())


@cache
def _digest(path: Path) -> str:
    """Return the digest of a file and of all files of this package that it imports, recursively."""
    seen: set[Path] = set()
    pending: frozenset[Path] = frozenset({path})
    while pending:
        seen |= pending
        pending = frozenset().union(*map(_imports, pending)) - seen
    digest = hashlib.sha256()
    for file in sorted(seen):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


class _PackageCache(FunctionCache):
    """Numba's file cache with entries named after the digest of all their source files."""

    def __init__(self, function: Callable[..., Any], argument: type | None) -> None:
        super().__init__(function)
        digest = _digest(Path(function.__code__.co_filename))
        if argument is not None:
            digest += f".{argument.__qualname__}.{_digest(Path(inspect.getfile(argument)))}"
        self._cache_file = IndexDataCacheFile(
            cache_path=self._cache_path,
            filename_base=f"{self._impl.filename_base}.{digest}",
            source_stamp=self._impl.locator.get_source_stamp(),
        )


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    fastmath: Collection[str] = frozenset(),
    inner: bool = False,
    borrows: bool = False,
    lane: bool = False,
    specialised_for: type | None = None,
) -> Any:
    """Compile a function when it is first called, without the global interpreter lock.

    Parameters
    ----------
    function
        The function; it remains available as ``py_func`` of the result. ``None`` returns a
        decorator.
    fastmath
        LLVM flags: ``REORDER`` for loops that vectorise only if sums may be reordered.
    inner
        Omit the entry points for Python and C. Compilation is faster, but only other kernels can
        call the function. (A kernel is compiled again inside each of its callers, so that its cost
        grows with the depth of the calls above it.)
    borrows
        Disable reference counting in an inner kernel. It must not create or return arrays, nor call
        functions that do. Otherwise each row ``x[k]`` of a table is counted by atomic operations,
        which took a sixth of the time of a gradient by the Fourier method.
    lane
        Always inline the function, the body of a loop that must vectorise.
    specialised_for
        Class of an argument whose kernels the function calls although its file does not import
        them, such as the gradient plan of the descent loop. The function has cache entries for this
        class, named after the source of both.
    """
    if function is None:
        return partial(
            kernel,
            fastmath=fastmath,
            inner=inner,
            borrows=borrows,
            lane=lane,
            specialised_for=specialised_for,
        )
    entry: dict[str, Any] = dict.fromkeys(_NO_ENTRY, True) if inner or borrows else {}
    if _UNCOUNTED:
        entry["_nrt"] = not borrows  # always set: a kernel inherits the option of its first caller
    if lane:
        entry["forceinline"] = True
    compiled: Any = numba.njit(error_model="numpy", fastmath=set(fastmath), nogil=True, **entry)(
        function
    )
    interactive = specialised_for is not None and specialised_for.__module__ == "__main__"
    if hasattr(compiled, "py_func") and not interactive:  # NUMBA_DISABLE_JIT leaves plain Python
        try:
            compiled._cache = _PackageCache(function, specialised_for)
        except (RuntimeError, OSError):  # raised by Numba if no cache folder is writable
            _warn_uncached()
    return compiled


class _EmittedImpl(CompileResultCacheImpl):
    """Numba's cache implementation for a function without a file, in an existing folder."""

    def __init__(self, function: Callable[..., Any], folder: str, stamp: str) -> None:
        self._locator = _FolderLocator(folder, stamp)
        self._filename_base = self.get_filename_base(f"emitted.{function.__name__}", "")


class _FolderLocator(_CacheLocator):
    """Numba's cache locator for an existing folder; a digest distinguishes the functions."""

    def __init__(self, folder: str, stamp: str) -> None:
        self._folder, self._stamp = folder, stamp

    def get_cache_path(self) -> str:
        return self._folder

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return self._stamp


class _EmittedCache(FunctionCache):
    """Numba's file cache for a function of emitted source, named after the digest of the source."""

    def __init__(self, function: Callable[..., Any], folder: str, stamp: str) -> None:
        implementation: Any = partial(_EmittedImpl, folder=folder, stamp=stamp)
        self._impl_class = implementation
        super().__init__(function)


def emitted_kernel(
    function: Callable[..., Any],
    source: str,
    *,
    callee: Any,
    fastmath: Collection[str] = REORDER,
) -> Any:
    """Compile a function whose source is not in a file.

    Parameters
    ----------
    function, source
        The function and its source.
    callee
        A kernel that the function calls. The compiled code is cached in the folder of the callee,
        under a digest of the source and of the callee's file; if the callee is not cached, neither
        is the function.
    fastmath
        LLVM flags.
    """
    digest = hashlib.sha256(source.encode())
    digest.update(_digest(Path(plain_python(callee).__code__.co_filename)).encode())
    stamp = digest.hexdigest()[:32]
    # these names are the symbols of the machine code; the module must be importable on loading
    function.__module__ = plain_python(callee).__module__
    function.__qualname__ = f"{function.__name__}_{stamp}"
    compiled: Any = numba.njit(error_model="numpy", nogil=True, fastmath=set(fastmath))(function)
    folder = cache_folder(callee)
    if folder is not None:
        compiled._cache = _EmittedCache(function, str(folder), stamp)
    return compiled


def native_function(compiled: Any, *arguments: Any) -> Any:
    """Return a kernel as a value that other kernels can call and hold in a NamedTuple.

    Kernels that are passed as they are have a type each, so that every caller would be compiled
    anew for each of them, and not cached. The type of this value is the signature.

    Parameters
    ----------
    compiled
        A kernel with entry points for C.
    arguments
        Arguments of the types for which the kernel is called.

    Returns
    -------
    object
        The kernel itself where compilation is disabled (``NUMBA_DISABLE_JIT``).
    """
    if not hasattr(compiled, "get_compile_result"):
        return compiled
    signature = tuple(map(numba.typeof, arguments))
    compiled.compile(signature)
    return CompileResultWAP(compiled.overloads[signature])


def cache_folder(compiled: Any) -> Path | None:
    """Return the cache folder of a kernel, or ``None`` if it is not cached."""
    folder = getattr(getattr(compiled, "_cache", None), "cache_path", None)
    return None if folder is None else Path(folder)


class CacheWarning(UserWarning):
    """Compiled code cannot be cached on disk: each process compiles anew, for up to a minute."""


@cache
def _warn_uncached() -> None:
    """Warn once that compiled code is not cached."""
    warnings.warn(
        "compiled code cannot be cached, because neither the installation nor the user's cache is "
        "writable: this process compiles anew, for up to a minute (set NUMBA_CACHE_DIR to a "
        "writable folder)",
        CacheWarning,
        stacklevel=2,
    )


def plain_python(compiled: Any) -> Any:
    """Return the Python function behind a kernel."""
    return getattr(compiled, "py_func", compiled)
