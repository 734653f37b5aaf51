"""What a call of the library launches, recorded instead of launched.

Law: a recorded call makes the same decisions as a call that launches: the same plans, copies and
workspaces, for arrays of the same layouts on the same device.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from . import _native


class Launch(NamedTuple):
    """A launch: what launches the kernel, its arrays, the elements before each, sizes and numbers."""

    launcher: _native.Launcher
    arrays: list[Any]
    befores: list[int]
    sizes: dict[str, int]
    numbers: dict[str, Any]


class Recorder:
    """The plans of a call, and its launches, if they are asked for."""

    def __init__(self, launches: bool = False) -> None:
        self.plans: list[Any] = []
        self.launches: list[Launch] | None = [] if launches else None


class _Local(threading.local):
    # It is a default of the class, because a missing attribute of a thread takes a microsecond: it is
    # an exception that is caught.
    recorder: Recorder | None = None


#: What this thread records.
local = _Local()


def recorder() -> Recorder | None:
    """Where the calls of this thread are recorded; None where they are launched."""
    return local.recorder


def record(function: Any, arguments: Any, named: Any, launches: bool = False) -> tuple[Any, Recorder]:
    """Calls a function, whose result is returned, with what was recorded."""
    own = Recorder(launches)
    before, local.recorder = local.recorder, own
    _native.note_recorder(True)
    try:
        return function(*arguments, **named), own
    finally:
        _native.note_recorder(False)
        local.recorder = before
