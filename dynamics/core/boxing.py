"""Results of kernels reach Python without running Python: Ctrl-C cannot come in between.

Numba turns what a kernel returns into Python objects by way of functions written in Python: one
that loads the class of an array or a named tuple, and the constructor of the named tuple. A signal
that came while the kernel ran is answered in the first of them; its exception leaves a null pointer
that compiled code does not look at, and the process dies of a segmentation fault. Here what was
loaded once is looked up in C, and a named tuple is made as ``tuple.__new__`` makes it.
"""

from functools import cache
from typing import Any

from numba.core import boxing, pythonapi, serialize, types


def _named_tuple(typ: Any, value: Any, c: Any) -> Any:
    """Return code that makes a named tuple (as numba.core.boxing does) without running Python."""
    api = c.pyapi
    cls = api.unserialize(api.serialize_object(typ.instance_class))
    new = api.object_getattr_string(api.unserialize(api.serialize_object(tuple)), "__new__")
    items = boxing.box_tuple(typ, value, c)
    found = api.call_function_objargs(new, (cls, items))
    for done in (cls, new, items):
        api.decref(done)
    return found


def safe_boxing() -> None:
    """Make Numba box without running Python; for all its kernels compiled from now on."""
    if not hasattr(serialize._numba_unpickle, "cache_info"):
        serialize._numba_unpickle = cache(serialize._numba_unpickle)
    for kind in (types.NamedTuple, types.NamedUniTuple):
        pythonapi._boxers.functions[kind] = _named_tuple
