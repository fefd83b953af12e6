"""Keeps None, True and False alive under Python 3.11, where Qt's binding uses them up.

The wheel of PySide6 6.12 is built as if these were immortal, which they are from Python 3.12 on:
each call that returns None takes one reference away without adding one, and after some thousand
calls Python 3.11 ends with "deallocating None". A large count given once, before the first call,
cannot be used up. Measured: 1,000 calls of ``QObject.setObjectName`` take 1,000 references.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

LASTING: Final = 1 << 50
"""More references than a process can use up."""


def make_constants_immortal() -> None:
    """Give the constants a count that lasts; from Python 3.12 on nothing is to be done."""
    if sys.version_info >= (3, 12) or sys.getrefcount(None) >= LASTING:
        return
    for constant in (None, True, False, NotImplemented, Ellipsis):
        # CPython's object begins with its reference count.
        ctypes.c_ssize_t.from_address(id(constant)).value += LASTING
