"""Make Numba's conversion of results safe against Ctrl-C.

Numba converts the result of a kernel to Python objects ("boxing") through functions written in
Python: one loads the class of an array or named tuple, another is the constructor of the named
tuple. If a signal arrived while the kernel ran, the first of them raises KeyboardInterrupt. The
compiled code does not check for the resulting null pointer, and the process crashes with a
segmentation fault. With :func:`safe_boxing`, classes are cached in C and named tuples are built
with ``tuple.__new__``, so that no Python code runs during the conversion.
"""

from functools import cache
from typing import Any

from numba.core import boxing, pythonapi, serialize, types


def _named_tuple(typ: Any, value: Any, c: Any) -> Any:
    """Generate code that builds a named tuple without running Python (see numba.core.boxing)."""
    api = c.pyapi
    cls = api.unserialize(api.serialize_object(typ.instance_class))
    new = api.object_getattr_string(api.unserialize(api.serialize_object(tuple)), "__new__")
    items = boxing.box_tuple(typ, value, c)
    result = api.call_function_objargs(new, (cls, items))
    for reference in (cls, new, items):
        api.decref(reference)
    return result


def safe_boxing() -> None:
    """Replace Numba's boxing functions for all kernels that are compiled afterwards."""
    if not hasattr(serialize._numba_unpickle, "cache_info"):
        serialize._numba_unpickle = cache(serialize._numba_unpickle)
    for numba_type in (types.NamedTuple, types.NamedUniTuple):
        pythonapi._boxers.functions[numba_type] = _named_tuple
