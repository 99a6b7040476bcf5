"""The one way in which this package compiles: ``@kernel``.

``error_model="numpy"`` lets a division by zero give an infinity that the finite checks see, and
``fastmath`` stays off so that these checks survive. Compiled code is cached on disk. Numba
invalidates a cache entry when the file of *that* function changes, which leaves a caller with a
stale copy of a callee from another file; here the name of every entry carries a digest of that
file and of all files of the package that it imports.
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

from dynamics.core.boxing import safe_boxing

safe_boxing()

#: Fused multiply-adds and reordered sums; infinities and nan keep their meaning.
REORDER = frozenset({"contract", "reassoc", "nsz", "arcp"})

#: Options of Numba that leave out the entry points for Python and C.
_NO_ENTRY = ("no_cpython_wrapper", "no_cfunc_wrapper")

#: Whether this Numba can be told, by an option of its own, not to count references to arrays.
_UNCOUNTED = hasattr(CPUTargetOptions, "_nrt")

_PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(rb"\bfrom[\s\\]+dynamics\.(\w[\w.]*)[\s\\]+import\b")


@cache
def _imports(path: Path) -> frozenset[Path]:
    """Files of this package that a file imports by ``from dynamics... import``.

    Found by their lines: to parse the files would be a tenth of what ``import dynamics`` takes.
    """
    modules = [name.decode().split(".") for name in _IMPORT.findall(path.read_bytes())]
    files = (_PACKAGE.joinpath(*parts).with_suffix(".py") for parts in modules)
    return frozenset(file for file in files if file.exists())


@cache
def _digest(path: Path) -> str:
    """Digest of a file and of everything in this package that it imports, directly or not."""
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
    """Numba's file cache, its entries named after the digest of all source they were made from."""

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
    """Compile ``function`` on first call; ``function.py_func`` remains the Python function.

    ``@kernel(fastmath=REORDER)`` is for loops that vectorise only if sums may be reordered.
    ``@kernel(inner=True)`` compiles faster, but only for calls from other kernels: it leaves out
    the entry points for Python and C. Every kernel is compiled again inside each of its callers,
    so the cost of a kernel grows with the depth of the calls above it. Other threads of Python run
    meanwhile: one of them answers Ctrl-C.

    ``@kernel(borrows=True)`` is an inner kernel that only works on arrays it is given: it makes
    none (Numba would refuse), returns none, and calls nothing that does. References are not counted
    in it: each row ``x[k]`` of a table is else counted up and down by atomic operations of the
    processor, which took a sixth of a gradient by the Fourier method. ``lane=True`` is for the body
    of a loop that must vectorise: it is put in place whatever its size, where LLVM would else keep
    a call.

    ``specialised_for=`` names the class of an argument whose own kernels the function calls, from a
    file it does not import (the descent loop and a theory's gradient): the function gets cache
    entries for that class alone, named after the source of both.
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
        entry["_nrt"] = not borrows  # said to all: a kernel inherits what its first caller has
    if lane:
        entry["forceinline"] = True
    compiled: Any = numba.njit(error_model="numpy", fastmath=set(fastmath), nogil=True, **entry)(
        function
    )
    interactive = specialised_for is not None and specialised_for.__module__ == "__main__"
    if hasattr(compiled, "py_func") and not interactive:  # NUMBA_DISABLE_JIT leaves plain Python
        try:
            compiled._cache = _PackageCache(function, specialised_for)
        except (RuntimeError, OSError):  # how Numba tells that no folder can be written
            _say_uncached()
    return compiled


class _Emitted(CompileResultCacheImpl):
    """Where the code of a function without a file is kept: beside that of a kernel that has one."""

    def __init__(self, function: Callable[..., Any], folder: str, stamp: str) -> None:
        self._locator = _Beside(folder, stamp)
        self._filename_base = self.get_filename_base(f"emitted.{function.__name__}", "")


class _Beside(_CacheLocator):
    """A folder that is there, and a digest that tells functions apart."""

    def __init__(self, folder: str, stamp: str) -> None:
        self._folder, self._stamp = folder, stamp

    def get_cache_path(self) -> str:
        return self._folder

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return self._stamp


class _EmittedCache(FunctionCache):
    """Numba's file cache for a function of emitted source, named after the digest of that."""

    def __init__(self, function: Callable[..., Any], folder: str, stamp: str) -> None:
        where: Any = partial(_Emitted, folder=folder, stamp=stamp)
        self._impl_class = where
        super().__init__(function)


def emitted_kernel(
    function: Callable[..., Any],
    source: str,
    *,
    beside: Any,
    fastmath: Collection[str] = REORDER,
) -> Any:
    """Compile a function whose source is not in a file; ``beside`` is a kernel that it calls.

    The compiled code is kept where that of ``beside`` is, under a digest of the source and of the
    file of ``beside``; where that one is not kept, neither is this.
    """
    digest = hashlib.sha256(source.encode())
    digest.update(_digest(Path(plain_python(beside).__code__.co_filename)).encode())
    stamp = digest.hexdigest()[:32]
    # machine code is linked by these names, and loaded by a process that has the module
    function.__module__ = plain_python(beside).__module__
    function.__qualname__ = f"{function.__name__}_{stamp}"
    compiled: Any = numba.njit(error_model="numpy", nogil=True, fastmath=set(fastmath))(function)
    folder = cache_folder(beside)
    if folder is not None:
        compiled._cache = _EmittedCache(function, str(folder), stamp)
    return compiled


def cache_folder(compiled: Any) -> Path | None:
    """Return where the compiled code of a kernel is kept; ``None``: nowhere."""
    folder = getattr(getattr(compiled, "_cache", None), "cache_path", None)
    return None if folder is None else Path(folder)


class CacheWarning(UserWarning):
    """Compiled code cannot be kept on disk: each process compiles anew, for up to a minute."""


@cache
def _say_uncached() -> None:
    warnings.warn(
        "compiled code cannot be kept, since neither the installation nor the user's cache can be "
        "written: this process compiles anew, for up to a minute (NUMBA_CACHE_DIR names another "
        "folder)",
        CacheWarning,
        stacklevel=2,
    )


def plain_python(compiled: Any) -> Any:
    """Return the Python function behind a kernel."""
    return getattr(compiled, "py_func", compiled)
