"""A small linker and loader for ELF objects, without LLVM: one piece of memory that is read-only and executable, then one that is
writable.

Our object code has no external symbols, so linking is laying out its sections and applying the relocations between them. A cached
kernel then loads in well under a millisecond, without importing llvmlite. Where an object has
anything that is not understood here (another processor, another format), `link` returns None and LLVM loads it.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from dataclasses import dataclass

PAGE = 4096
ALLOC, WRITE = 0x2, 0x1
RELOCATIONS, SYMBOLS, EMPTY, UNWIND = 4, 2, 8, 0x70000001
X86_64, RELOCATABLE = 62, 1
DISTANCES = (2, 4)  # R_X86_64_PC32, R_X86_64_PLT32: 32-bit distance from the place


@dataclass(frozen=True)
class Image:
    """Code and constants, followed from `writable` on by memory that is not constant, and where the symbols are."""

    memory: bytes
    writable: int
    symbols: dict[str, int]


def loads_here() -> bool:
    """True if images can be made and loaded on this platform."""
    return sys.platform == "linux" and sys.byteorder == "little" and mmap.PAGESIZE == PAGE


def link(object_code: bytes) -> Image | None:
    """The image of a relocatable ELF file for x86-64; None if there is something in it that we do not know."""
    if object_code[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", object_code, 16) != (RELOCATABLE, X86_64):
        return None
    (table,) = struct.unpack_from("<Q", object_code, 40)
    size, count = struct.unpack_from("<HH", object_code, 58)
    # name, type, flags, address, offset, size, link, info, alignment, entry size
    sections = [struct.unpack_from("<IIQQQQIIQQ", object_code, table + k * size) for k in range(count)]
    kept = [k for k, s in enumerate(sections) if s[2] & ALLOC and s[1] != UNWIND]
    places: dict[int, int] = {}
    memory = bytearray()
    writable = 0
    for wanted in (0, WRITE):
        memory += bytes(-len(memory) % PAGE)
        writable = len(memory)
        for k in kept:
            _, kind, flags, _, offset, length, _, _, alignment, _ = sections[k]
            if flags & WRITE == wanted:
                memory += bytes(-len(memory) % max(alignment, 1))
                places[k] = len(memory)
                memory += bytes(length) if kind == EMPTY else object_code[offset : offset + length]
    memory += bytes(-len(memory) % PAGE)

    def symbol(section: int, number: int) -> tuple[str, int | None]:
        _, _, _, _, offset, _, names, _, _, _ = sections[section]
        name, _, _, index, value, _ = struct.unpack_from("<IBBHQQ", object_code, offset + 24 * number)
        start = sections[names][4] + name
        text = object_code[start : object_code.index(b"\0", start)].decode()
        return text, places[index] + value if index in places else None

    for _, kind, _, _, offset, length, names, target, _, _ in sections:
        if kind != RELOCATIONS or target not in places:
            continue
        for at in range(offset, offset + length, 24):
            where, info, addend = struct.unpack_from("<QQq", object_code, at)
            if info & 0xFFFFFFFF not in DISTANCES:
                return None
            _, value = symbol(names, info >> 32)
            if value is None:
                return None
            place = places[target] + where
            struct.pack_into("<i", memory, place, value + addend - place)
    symbols = {}
    for k, section in enumerate(sections):
        if section[1] == SYMBOLS:
            for number in range(section[7], section[5] // 24):  # global ones
                name, value = symbol(k, number)
                if value is None:
                    return None
                symbols[name] = value
    return Image(bytes(memory), writable, symbols)


class Loaded:
    """An image in memory, unmapped with this object."""

    def __init__(self, image: Image) -> None:
        # Functions of libc that keep Python's lock. An `mmap` object gives it away when it is freed: a sub-interpreter that is
        # torn down at exit never gets it back, and the process hangs.
        libc = ctypes.PyDLL(None, use_errno=True)
        libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_ssize_t)
        libc.mmap.restype = ctypes.c_void_p
        self._unmap = libc.munmap
        self._unmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        self._size = len(image.memory)
        readable, private = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._base = libc.mmap(None, self._size, readable, private, -1, 0)
        if self._base == ctypes.c_void_p(-1).value:
            self._base = None
            raise MemoryError("no memory for machine code")
        ctypes.memmove(self._base, image.memory, self._size)
        if libc.mprotect(self._base, image.writable, mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "memory cannot be made executable")
        self.addresses = {name: self._base + place for name, place in image.symbols.items()}

    def __del__(self) -> None:
        if getattr(self, "_base", None) is not None:
            self._unmap(self._base, self._size)
