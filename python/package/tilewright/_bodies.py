"""Names of Python that a body of a kernel binds anew, and objects that it changes.

Law: a body of a loop or a condition is traced once. If the body binds a name to another object, later
reads would get the object of that one trace: in every iteration that of the first, and after a
condition that of the threads for which it holds. So a name that is read again, by the next iteration
or after the body, is refused if the body has bound it to something else. The bytecode of the function
tells which names are read again: those that are live, in the sense of compilers, at the end of the
body. The contents of such a name count as well: the elements of a list, the items of a dict, the
attributes of an object, and the closure of a function (`_held`).
"""

from __future__ import annotations

import dis
import functools
import re
import sys
from types import CodeType, FrameType
from typing import Any, NamedTuple

from . import _held, _place
from ._errors import KernelError
from ._same import same

_ACCESS = re.compile(r"(LOAD|STORE|DELETE)_(?:FAST_CHECK|FAST_BORROW|FAST|DEREF|CLASSDEREF|NAME|GLOBAL|CLOSURE)(?!_AND_CLEAR)")
_ENDS = {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"}
_JUMPS = {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE"}

# The names that are read before they are written, from each instruction of a function on.
_Live = dict[int, frozenset[str]]
_known: dict[CodeType, tuple[_Live, frozenset[str]]] = {}
_KEPT = 256


def _accesses(instruction: dis.Instruction) -> list[tuple[str, str]]:
    """What an instruction does with names, in order: some do it with two."""
    kinds = _ACCESS.findall(instruction.opname)
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    return [(kind, name) for kind, name in zip(kinds, names) if isinstance(name, str)]


def _rebound(code: CodeType) -> set[str]:
    """The names of a function that functions within it bind, by ``nonlocal``."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    names = {name for own in inner for name in own.co_freevars if name in code.co_cellvars or name in code.co_freevars}
    stored = {
        name for own in inner for instruction in dis.get_instructions(own) for kind, name in _accesses(instruction) if kind == "STORE"
    }
    return (names & stored) | {name for own in inner for name in _rebound(own) if name in names}


def _liveness(code: CodeType) -> tuple[_Live, frozenset[str]]:
    """Which names are live at each instruction, and which ones the function alone binds."""
    known = _known.get(code)
    if known is not None:
        return known
    instructions = list(dis.get_instructions(code))
    accesses = [_accesses(instruction) for instruction in instructions]
    bound = frozenset(name for access in accesses for kind, name in access if kind == "STORE")
    places = {instruction.offset: number for number, instruction in enumerate(instructions)}
    follow: list[list[int]] = []
    for number, instruction in enumerate(instructions):
        after = [] if instruction.opname in _ENDS or instruction.opname in _JUMPS else [number + 1]
        if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
            after.append(places[instruction.argval])
        follow.append([number for number in after if number < len(instructions)])
    live: list[frozenset[str]] = [frozenset()] * len(instructions)
    changed = True
    while changed:
        changed = False
        for number in range(len(instructions) - 1, -1, -1):
            names = set().union(*(live[after] for after in follow[number]))
            for kind, name in reversed(accesses[number]):
                if kind == "STORE":
                    names.discard(name)
                elif name in bound:
                    names.add(name)
            if names != live[number]:
                live[number], changed = frozenset(names), True
    found = {instruction.offset: names for instruction, names in zip(instructions, live)}, bound - _rebound(code)
    if len(_known) >= _KEPT:
        _known.clear()
    _known[code] = found
    return found


class Begun(NamedTuple):
    """The function in which a body begins, and the values of its names there."""

    code: CodeType
    names: dict[str, Any]
    held: _held.Held


def _frame() -> FrameType | None:
    """The function outside of this package that runs."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_place._PACKAGE):
        frame = frame.f_back
    return frame


def _names(frame: FrameType) -> dict[str, Any]:
    _, bound = _liveness(frame.f_code)
    globals_ = {name: frame.f_globals[name] for name in bound if name in frame.f_globals}
    return {**globals_, **frame.f_locals}


@functools.lru_cache(_KEPT)
def _globals(code: CodeType) -> tuple[str, ...]:
    """The names of the module that a function reads."""
    return tuple({own.argval: None for own in dis.get_instructions(code) if own.opname in ("LOAD_GLOBAL", "LOAD_NAME")})


def begin() -> Begun | None:
    """What is known where a body begins."""
    frame = _frame()
    if frame is None:
        return None
    names = _names(frame)
    read = {name: frame.f_globals[name] for name in _globals(frame.f_code) if name in frame.f_globals}
    return Begun(frame.f_code, names, _held.held({**read, **names}))


def iterates() -> bool:
    """Whether a ``for`` asks for an iterator now, and no function that would make a list of it, or
    count its elements.
    """
    frame = _frame()
    return frame is None or dis.opname[frame.f_code.co_code[frame.f_lasti]] == "GET_ITER"


def end(begun: Begun | None, statement: str, instead: str) -> None:
    """Refuses a body that ends here, if a name was bound to something else in it, or an object was
    changed, and is read again.
    """
    frame = _frame()
    if begun is None or frame is None or frame.f_code is not begun.code:
        return
    live, bound = _liveness(frame.f_code)
    # A loop ends where it asks for the next iteration, a `with` where its last call is over.
    read = live.get(frame.f_lasti, frozenset())
    now = _names(frame)

    def is_read(name: str) -> bool:
        return name in read or name not in bound

    for name, before in begun.names.items():
        if name in now and is_read(name) and not same(before, now[name]):
            raise KernelError(
                f"the body of `{statement}` binds `{name}` to something else, and it is read again: a body is traced once, so it "
                "would be the same in every iteration and every thread",
                help=f"{instead}; another name is free for what the body alone reads",
                place=_place.place(),
            )
    for name, what in begun.held.changed():
        if is_read(name):
            raise KernelError(
                f"the body of `{statement}` changes {what} of `{name}`, which is read again: a body is traced once, so it would be "
                "the same in every iteration and every thread",
                help=f"{instead}; a list or an object that the body alone reads is made in the body",
                place=_place.place(),
            )
