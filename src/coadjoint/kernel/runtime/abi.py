"""The interface of machine code to Python: a table of addresses, filled when the code is loaded, and offsets in structs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..emit.llvm import Module

# In any object, a tuple, and a PyArrayObject; and NumPy's flags.
TYPE, TUPLE_SIZE = 8, 16
DATA, ND, DIMS, STRIDES, DESCR, FLAGS = 16, 24, 32, 40, 56, 64
ALIGNED, WRITEABLE = 0x100, 0x400

NUMBERS = "numbers of the robot"
"""The name, which no argument of a function can have, of the first input of kernels for a structure.

Its last entry is how many states are left: `@call` counts down, and at 0 goes the slow way.
"""
COUNTED = 64
"""Calls with more states than this count; those with fewer never end in a compilation."""

FIELDS = (
    "allocate",  # PyMem_RawMalloc
    "release",  # PyMem_RawFree
    "vectorcall",  # PyObject_Vectorcall
    "save_thread",  # PyEval_SaveThread
    "restore_thread",  # PyEval_RestoreThread
    "increment",  # Py_IncRef
    "decrement",  # Py_DecRef
    "no_memory",  # PyErr_NoMemory
    "new_tuple",  # PyTuple_New
    "new_array",  # NumPy's PyArray_New
    "array_type",  # numpy.ndarray
    "tuple_type",  # tuple
    "dtype",  # the one descriptor of the kernel's float type
    "out",  # the interned string "out"
    "threads",  # and "threads"
    "none",  # None
    "one",  # the one object that is a small 1
    "integer",  # PyLong_FromSsize_t
    "pool",  # the function that finds memory for the results of so many states
    "tuple_items",  # where in a tuple its first item stands
    "most",  # the largest batch that is not shared out to threads
    "fresh",  # the largest batch whose results are new memory, not from the pool
    "longest",  # the largest batch that runs without a look at whether it was interrupted
)


def define_context(module: Module) -> None:
    """The table itself."""
    module.define("@context", f"@context = dso_local global [{len(FIELDS)} x i64] zeroinitializer, align 8")


def context(field: str) -> str:
    """Pointer to an entry, as a constant expression."""
    return f"getelementptr (i8, ptr @context, i64 {8 * FIELDS.index(field)})"
