"""The location of a statement of a kernel in the user's source."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

# Where the expression of each instruction of a traced function begins and ends; columns in bytes.
_Positions = list[tuple[int | None, int | None, int | None, int | None]]
_known: dict[CodeType, _Positions] = {}
_KEPT = 256


def _positions(code: CodeType) -> _Positions:
    found = _known.get(code)
    if found is None:
        if len(_known) >= _KEPT:
            _known.clear()
        # Python 3.10 knows lines alone.
        found = list(code.co_positions()) if hasattr(code, "co_positions") else []
        _known[code] = found
    return found


def _character(file: str, line: int, byte: int) -> int:
    import linecache

    text = linecache.getline(file, line)
    return byte if text.isascii() else len(text.encode()[:byte].decode(errors="replace"))


class _Said(threading.local):
    place: tuple[str, int, int, tuple[int, int] | None] | None = None


_said = _Said()


@contextmanager
def at(place: tuple[str, int, int, tuple[int, int] | None]) -> Iterator[None]:
    """Gives statements of this package a location in the user's source."""
    before, _said.place = _said.place, place
    try:
        yield
    finally:
        _said.place = before


def place() -> tuple[str, int, int, tuple[int, int] | None]:
    """The file, line and column of the innermost expression outside of this package, and where it
    ends, if that is known.
    """
    if _said.place is not None:
        return _said.place
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
    assert frame is not None
    file = frame.f_code.co_filename
    positions = _positions(frame.f_code)
    at = frame.f_lasti // 2
    if at < len(positions):
        line, end_line, column, end_column = positions[at]
        if line is not None and end_line is not None and column is not None and end_column is not None:
            end = (end_line, _character(file, end_line, end_column) + 1)
            return file, line, _character(file, line, column) + 1, end
    return file, frame.f_lineno or 1, 1, None
