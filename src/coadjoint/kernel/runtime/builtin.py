"""Machine code as a built-in function of this Python, once its assumptions on Python and NumPy are found to hold."""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
from typing import Any

import numpy as np

from .abi import ALIGNED, DATA, DESCR, DIMS, FIELDS, FLAGS, ND, STRIDES, TUPLE_SIZE, TYPE, WRITEABLE

NEW_ARRAY = 93
"""Place of PyArray_New in NumPy's table of C functions."""


def fill_context(address: int, dtype: str, most: int, longest: int, fresh: int, pool: Any) -> list[Any]:
    """Write the table of addresses into loaded code; returns the objects that must stay alive with it."""
    table = (ctypes.c_int64 * len(FIELDS)).from_address(address)
    out, threads, one = sys.intern("out"), sys.intern("threads"), 1
    descr = np.dtype(dtype)
    numbers = dict.fromkeys(FIELDS, 0)
    for field, name in _PYTHON.items():
        numbers[field] = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    if direct():
        numbers |= {
            "new_array": _numpy_function(NEW_ARRAY),
            "array_type": id(np.ndarray),
            "tuple_type": id(tuple),
            "dtype": id(descr),
            "out": id(out),
            "threads": id(threads),
            "none": id(None),
            "one": id(one),
            "tuple_items": _tuple_items(),
            "most": most,
            "longest": longest,
            "fresh": fresh,
            "pool": id(pool),
        }
    for place, field in enumerate(FIELDS):
        table[place] = numbers[field]
    return [out, threads, one, descr, pool]


_PYTHON = {
    "allocate": "PyMem_RawMalloc",
    "release": "PyMem_RawFree",
    "vectorcall": "PyObject_Vectorcall",
    "save_thread": "PyEval_SaveThread",
    "restore_thread": "PyEval_RestoreThread",
    "increment": "Py_IncRef",
    "decrement": "Py_DecRef",
    "no_memory": "PyErr_NoMemory",
    "new_tuple": "PyTuple_New",
    "integer": "PyLong_FromSsize_t",
}


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_definitions: dict[tuple[int, str, str], _MethodDef] = {}
"""Method definitions are never freed: Python reads a function's definition once more after everything that the function refers to
is gone.
"""


def builtin(address: int, owner: Any, name: str, doc: str) -> Any:
    """A built-in function at this address whose `self` is owner, which keeps the code alive."""
    fastcall_keywords = 0x0080 | 0x0002
    definition = _definitions.setdefault((address, name, doc), _MethodDef(name.encode(), address, fastcall_keywords, doc.encode()))
    make = ctypes.pythonapi.PyCFunction_NewEx
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    function = prototype(ctypes.cast(make, ctypes.c_void_p).value or 0)
    return function(ctypes.addressof(definition), owner, None)


@functools.cache
def direct() -> bool:
    """True if `@call` understands this Python and this NumPy."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    try:
        return _arrays_as_expected() and _tuple_items() > 0 and _new_array_works()
    except (AttributeError, ImportError, ValueError):
        return False


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _arrays_as_expected() -> bool:
    for dtype in (np.float64, np.float32):
        whole = np.zeros((5, 4, 3), dtype)
        read_only = whole[1:, ::2]
        read_only.flags.writeable = False
        for x in (whole, read_only, whole[0, 0], whole[0, 0, :1].reshape(())):
            at = id(x)
            fine = (
                _word(at + TYPE) == id(np.ndarray)
                and _word(at + DATA) == x.ctypes.data
                and ctypes.c_int.from_address(at + ND).value == x.ndim
                and [_word(_word(at + DIMS) + 8 * k) for k in range(x.ndim)] == list(x.shape)
                and [_word(_word(at + STRIDES) + 8 * k) for k in range(x.ndim)] == list(x.strides)
                and _word(at + DESCR) == id(x.dtype) == id(np.dtype(dtype))
                and ctypes.c_int.from_address(at + FLAGS).value == x.flags.num
                and x.flags.aligned == bool(x.flags.num & ALIGNED)
                and x.flags.writeable == bool(x.flags.num & WRITEABLE)
            )
            if not fine:
                return False
    return True


@functools.cache
def _tuple_items() -> int:
    """The offset of a tuple's items; 0 if not found."""
    marks = (object(), object(), object())
    size = tuple.__basicsize__
    if _word(id(marks) + TUPLE_SIZE) != 3 or _word(id(marks) + TYPE) != id(tuple):
        return 0
    for offset in range(TUPLE_SIZE, size + 16, 8):
        if _word(id(marks) + offset) == id(marks[0]) and _word(id(marks) + offset + 8) == id(marks[1]):
            return offset
    return 0


def _numpy_function(place: int) -> int:
    """Address of a function in NumPy's table."""
    try:
        from numpy._core.multiarray import _ARRAY_API as capsule
    except ImportError:
        from numpy.core.multiarray import _ARRAY_API as capsule
    get = ctypes.pythonapi.PyCapsule_GetPointer
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    table = prototype(ctypes.cast(get, ctypes.c_void_p).value or 0)(capsule, None)
    return _word(table + 8 * place)


def _new_array_works() -> bool:
    if _numpy_function(2) != id(np.ndarray):  # another table than the one known
        return False
    integer, pointer = ctypes.c_int, ctypes.c_void_p
    new = ctypes.PYFUNCTYPE(ctypes.py_object, pointer, integer, pointer, integer, pointer, pointer, integer, integer, pointer)(
        _numpy_function(NEW_ARRAY)
    )
    shape = (ctypes.c_int64 * 2)(3, 2)
    for number, dtype in ((12, np.float64), (11, np.float32)):
        x = new(id(np.ndarray), 2, ctypes.addressof(shape), number, None, None, 0, 0, None)
        if type(x) is not np.ndarray or x.shape != (3, 2) or x.dtype != dtype or not x.flags.c_contiguous:
            return False
    return True
