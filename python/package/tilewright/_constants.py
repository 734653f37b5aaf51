"""Constants of kernels: which are the same, and which a function reads without being given them.

Law: two calls share a kernel only if no operation of Python tells their constants apart. So the key
of a constant has its type, the bits of a floating-point number, and the contents of what can
change, which are compared at each call: nothing is stale. What has no such key is refused.
"""

from __future__ import annotations

import dis
import enum
import functools
import struct
import sys
import sysconfig
import types
from collections.abc import Callable, Hashable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from . import _place
from ._native import Captured, Distribution, Function, TiledCopy, TiledMma, Traced, Value, is_index

#: What is told apart by its value alone, which never changes.
_PLAIN = (int, str, bytes, bool, type(None), type(Ellipsis), range)
#: What is told apart by what it is: it never changes, or only by who changes the program.
_IDENTICAL: tuple[Any, ...] = (
    type, types.ModuleType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, Function,
    TiledCopy, TiledMma, Distribution, Traced,
)  # fmt: skip
#: Bytes of the arrays that a function may read as constants: they are compared at each call.
MOST_BYTES = 1 << 16
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {_place._PACKAGE})


class Is:
    """A key that is equal to that of the same object alone, which it keeps."""

    __slots__ = ("of",)

    def __init__(self, of: object) -> None:
        self.of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Is) and self.of is other.of

    def __hash__(self) -> int:
        return id(self.of)


class _Keys:
    """Keys of constants that may hold each other."""

    def __init__(self) -> None:
        self.around: list[int] = []
        #: Whether one of them can change while it stays the same object.
        self.changes = False

    def of(self, value: Any, what: str) -> Hashable:
        """The key of a constant. Errors (`TypeError`): it has none."""
        kind = type(value)
        if kind in _PLAIN:
            return kind, value
        if kind is float:
            return kind, struct.pack("<d", value)
        if kind is complex:
            return kind, struct.pack("<dd", value.real, value.imag)
        if isinstance(value, Value):
            # An index of a kernel has no text, and is refused where it is used.
            return Is(value) if is_index(value) else (kind, str(value))
        if isinstance(value, enum.Enum):
            return kind, value._name_, self.of(value._value_, what)
        if isinstance(value, _IDENTICAL):
            return Is(value)
        if id(value) in self.around:
            return Is(value)
        self.around.append(id(value))
        try:
            return self.nested(value, kind, what)
        finally:
            self.around.pop()

    def nested(self, value: Any, kind: type, what: str) -> Hashable:
        if isinstance(value, tuple):
            return kind, *(self.of(item, what) for item in value)
        if kind is frozenset:
            return kind, frozenset(self.of(item, what) for item in value)
        if kind in (list, bytearray):
            self.changes = True
            return kind, *(self.of(item, what) for item in value)
        if kind is set:
            self.changes = True
            return kind, frozenset(self.of(item, what) for item in value)
        if kind is dict:
            self.changes = True
            return kind, *((self.of(key, what), self.of(item, what)) for key, item in value.items())
        if isinstance(value, types.FunctionType):
            return self.of_function(value)
        if kind is functools.partial:
            return kind, self.of(value.func, what), self.of(value.args, what), self.of(value.keywords, what)
        if kind is types.MethodType:
            return kind, Is(value.__func__), self.of(value.__self__, what)
        if hasattr(value, "specs") and isinstance(getattr(value, "function", None), types.FunctionType):
            # A kernel within a kernel is a function.
            return kind, self.of_function(value.function)
        if is_dataclass(value) and getattr(kind, "__dataclass_params__").frozen:
            return kind, *(self.of(getattr(value, field.name), what) for field in fields(value))
        if hasattr(value, "dtype") and hasattr(value, "tobytes"):
            return self.of_array(value, kind, what)
        if kind.__module__.partition(".")[0] in ("numpy", "torch", "ml_dtypes") and _by_value(kind) and not hasattr(value, "__dict__"):
            # Types of elements, devices and the like.
            return kind, value
        if kind.__module__ == "tilewright" and not hasattr(kind, "__dlpack__"):
            # Values of this package do not change; only the memory of tensors does.
            return Is(value)
        # What consists of other things says of which, for it to be made again elsewhere.
        try:
            if hasattr(value, "data_ptr"):
                raise TypeError("memory")
            made = value.__reduce_ex__(4)
        except Exception:
            raise TypeError(
                f"{what} is {kind.__name__}, of which is not known when it changes: a constant of a kernel is a number, a text, a "
                "tuple, a layout, a frozen dataclass, or what consists of these; pass what the kernel needs of it"
            ) from None
        if isinstance(made, str):
            return Is(value)
        self.changes = True
        _, arguments, state, items, pairs = (*made, None, None, None)[:5]
        parts = arguments, state, list(items or ()), [tuple(pair) for pair in pairs or ()]
        return kind, *(self.of(part, what) for part in parts)

    def of_array(self, value: Any, kind: type, what: str) -> Hashable:
        """A scalar or an array of NumPy."""
        dtype = value.dtype
        if dtype.hasobject:
            raise TypeError(f"{what} is an array of objects, of which is not known when they change: pass a tuple")
        if getattr(value, "ndim", 0) == 0 and not isinstance(value, sys.modules["numpy"].ndarray):
            return kind, dtype.str, dtype.name, value.tobytes()
        if value.nbytes > MOST_BYTES:
            raise TypeError(
                f"{what} is an array of {value.nbytes} bytes that the kernel reads as a constant, which is compared at each call and "
                f"may have {MOST_BYTES}: pass it as an argument"
            )
        self.changes = True
        return kind, dtype.str, dtype.name, value.shape, value.tobytes()

    def of_function(self, function: types.FunctionType) -> Hashable:
        """A function with what it reads from outside."""
        if function.__code__.co_filename.startswith(_LIBRARIES):
            return Is(function)
        read = []
        for name, value, where in _read(function):
            # An attribute of a class is looked at anew.
            self.changes |= where is None
            if value is not function:
                read.append((name, self.of(value, f"'{name}', which {function.__name__} reads,")))
        defaults = self.of((function.__defaults__, function.__kwdefaults__), f"a default of {function.__name__}")
        return Is(function.__code__), *read, defaults


def _by_value(kind: type) -> bool:
    """Whether objects of a class are equal by their values."""
    found: object = getattr(kind, "__hash__", None)
    return found is not None and found is not getattr(object, "__hash__")


def key(value: Any, what: str) -> Hashable:
    """The key of a constant.

    Errors (`TypeError`): it cannot be told when it changes.
    """
    return _Keys().of(value, what)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


@functools.lru_cache(256)
def _paths(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """The names that a function reads from outside of it, each with the attributes that it asks for."""
    found: dict[tuple[str, ...], None] = {}
    for own in _codes(code):
        path: list[str] = []
        for instruction in dis.get_instructions(own):
            operation, name = instruction.opname, instruction.argval
            if operation in ("LOAD_ATTR", "LOAD_METHOD") and path:
                path.append(name)
                continue
            if path:
                found[tuple(path)] = None
                path = []
            if operation in ("LOAD_GLOBAL", "LOAD_NAME") or (operation in ("LOAD_DEREF", "LOAD_CLASSDEREF") and name in code.co_freevars):
                path = [name]
        if path:
            found[tuple(path)] = None
    return tuple(found)


def _is_library(module: types.ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return file is None or file.startswith(_LIBRARIES) or module.__name__.partition(".")[0] == "tilewright"


def _read(function: types.FunctionType) -> Iterator[tuple[str, Any, tuple[Any, str] | None]]:
    """What a function reads from outside: as it is called, its value, and where that is: a dict and
    a key, or a cell; none of an attribute of a class.
    """
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    for name, *attributes in _paths(function.__code__):
        where: tuple[Any, str] | None
        if name in cells:
            where = cells[name], name
            try:
                value = cells[name].cell_contents
            except ValueError:
                # A function that is defined later.
                continue
        elif name in function.__globals__:
            where, value = (function.__globals__, name), function.__globals__[name]
        else:
            # Of Python itself, or not defined: that is an error of the call.
            continue
        called = name
        # Of a module, or of a class, what is read of it counts.
        while attributes:
            attribute = attributes.pop(0)
            if isinstance(value, types.ModuleType) and not _is_library(value) and attribute in vars(value):
                inner, place = vars(value)[attribute], (vars(value), attribute)
            elif isinstance(value, type) and not issubclass(value, enum.Enum) and any(attribute in vars(base) for base in value.__mro__[:-1]):
                inner, place = next(vars(base)[attribute] for base in value.__mro__ if attribute in vars(base)), None
                inner = getattr(inner, "__func__", inner)
            else:
                break
            yield called, value, where
            called, value, where = f"{called}.{attribute}", inner, place
        yield called, value, where


def _unbound(function: types.FunctionType) -> Iterator[tuple[dict[str, Any], str]]:
    """The names that a function reads and that its module does not define: Python's built-in
    functions. A global of the same name would hide them.
    """
    bound = function.__globals__
    for name, *_ in _paths(function.__code__):
        if name not in function.__code__.co_freevars and name not in bound:
            yield bound, name


class Reads:
    """What a function reads that is not given to it, and is a constant of its kernels."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function: Any = getattr(function, "__func__", function)
        self._watched: Captured | None = None
        self.key: Hashable = None

    def unchanged(self) -> bool:
        """Whether all is as it was: a matter of nanoseconds for what cannot change in itself."""
        return self._watched is not None and self._watched.unchanged()

    def update(self) -> Hashable:
        """The key of all.

        Errors (`TypeError`): it cannot be told when something of it changes.
        """
        if self.unchanged():
            return self.key
        keys = _Keys()
        self.key = keys.of_function(self._function)
        found: list[tuple[Any, str, Any]] = []
        unbound: list[tuple[dict[str, Any], str]] = []
        seen: list[Any] = []

        def watch(function: types.FunctionType) -> None:
            if function in seen or function.__code__.co_filename.startswith(_LIBRARIES):
                return
            seen.append(function)
            unbound.extend(_unbound(function))
            for _, value, where in _read(function):
                if where is not None:
                    found.append((*where, value))
                inner = getattr(value, "function", value)
                if isinstance(inner, types.FunctionType):
                    watch(inner)

        watch(self._function)
        # What can change in itself is looked at anew.
        self._watched = None if keys.changes else Captured(found, unbound)
        return self.key
