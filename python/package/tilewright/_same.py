"""When an object of Python is, for a kernel that is traced, as it was."""

from __future__ import annotations

from typing import Any

from ._native import Value, is_index


def same(a: Any, b: Any) -> bool:
    """Whether a name that was bound to the one may be bound to the other."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (int, float, complex, str, bytes)):
        return repr(a) == repr(b)
    return isinstance(a, Value) and not is_index(a) and not is_index(b) and bool(a == b)
