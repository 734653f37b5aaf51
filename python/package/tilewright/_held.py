"""What names hold where a body of a kernel begins: lists, dicts, sets, arrays, and objects of classes
of the program, with what these hold in turn.

Law: what changes in one of them while the body is traced is found, but for an item or an attribute
that is added and is a constant: that is how functions remember what they computed. Objects of
libraries are not looked into, nor what is beyond the first `MOST` objects.
"""

from __future__ import annotations

import sys
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from . import _constants
from ._native import Traced, Value, is_index
from ._same import same

#: How many objects are looked at.
MOST = 4096


def _is_constant(value: Any) -> bool:
    """Whether a value is the same in all iterations and threads."""
    if isinstance(value, (tuple, list, set, frozenset, deque)):
        return len(value) <= MOST and all(map(_is_constant, value))
    if isinstance(value, dict):
        return len(value) <= MOST and all(map(_is_constant, value.values()))
    return not isinstance(value, Traced) and not (isinstance(value, Value) and is_index(value))


def _is_of_program(kind: type) -> bool:
    """Whether a class is the user's own."""
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    # A notebook and a prompt have no file.
    return kind.__module__ == "__main__" or (file is not None and not file.startswith(_constants._LIBRARIES))


def _slots(value: Any) -> dict[str, Any]:
    """The attributes of an object."""
    found = {}
    for own in type(value).__mro__:
        slots = vars(own).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return {**found, **getattr(value, "__dict__", {})}


def _items_changed(before: dict[Any, Any], now: dict[Any, Any]) -> bool:
    if any(key not in now or not same(old, now[key]) for key, old in before.items()):
        return True
    return any(not _is_constant(new) for key, new in now.items() if key not in before)


def _elements_changed(before: list[Any], now: list[Any]) -> bool:
    return len(before) != len(now) or not all(map(same, before, now))


def _set_changed(before: list[Any], now: list[Any]) -> bool:
    return not {id(old) for old in before} <= {id(new) for new in now} or not all(map(_is_constant, now))


class _Kind(NamedTuple):
    """How a kind of object is watched: a copy of its contents, and whether these have changed."""

    what: str
    copy: Callable[[Any], Any]
    changed: Callable[[Any, Any], bool]


_LIST = _Kind("the elements", list, _elements_changed)
_SET = _Kind("the elements", list, _set_changed)
_DICT = _Kind("the items", dict, _items_changed)
_OBJECT = _Kind("the attributes", _slots, _items_changed)
_BYTES = _Kind("the elements", bytes, lambda before, now: bool(before != now))
_ARRAY = _Kind("the elements", lambda value: value.tobytes(), lambda before, now: bool(before != now))


def _kind(value: Any) -> _Kind | None:
    if isinstance(value, (type, types.ModuleType, types.FunctionType, tuple, Traced, Value)):
        return None
    if isinstance(value, (list, deque)):
        return _LIST
    if isinstance(value, set):
        return _SET
    if isinstance(value, dict):
        return _DICT
    if isinstance(value, bytearray):
        return _BYTES
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _ARRAY if value.nbytes <= _constants.MOST_BYTES and not value.dtype.hasobject else None
    return _OBJECT if _is_of_program(type(value)) else None


def _within(value: Any, copy: Any) -> Iterator[Any]:
    """What an object holds."""
    if isinstance(value, (tuple, frozenset)):
        yield from value
    elif isinstance(value, types.MethodType):
        yield value.__self__
    elif isinstance(value, types.FunctionType):
        if not value.__code__.co_filename.startswith(_constants._LIBRARIES):
            yield from (read for _, read, _ in _constants._read(value))
    elif isinstance(copy, dict):
        yield from copy.values()
    elif isinstance(copy, list):
        yield from copy


class _Entry(NamedTuple):
    value: Any
    kind: _Kind
    copy: Any
    #: The names that hold it.
    names: list[str]


class Held:
    """What names held."""

    def __init__(self, entries: dict[int, _Entry]) -> None:
        self._entries = entries

    def changed(self) -> Iterator[tuple[str, str]]:
        """The names that hold an object that has changed, and the change."""
        for value, kind, copy, names in self._entries.values():
            if kind.changed(copy, kind.copy(value)):
                for name in names:
                    yield name, kind.what


def held(names: dict[str, Any]) -> Held:
    """What names hold now."""
    entries: dict[int, _Entry] = {}
    left = MOST
    for name, value in names.items():
        waiting, seen = [value], set()
        while waiting and left > 0:
            value = waiting.pop()
            # What Python's own constants are holds nothing.
            if value is None or isinstance(value, (int, float, complex, str, bytes)) or id(value) in seen:
                continue
            left -= 1
            seen.add(id(value))
            known = entries.get(id(value))
            if known is not None:
                known.names.append(name)
                waiting.extend(_within(known.value, known.copy))
                continue
            kind = _kind(value)
            copy = None if kind is None else kind.copy(value)
            if kind is not None:
                entries[id(value)] = _Entry(value, kind, copy, [name])
            waiting.extend(_within(value, copy))
    return Held(entries)
