"""What a function computes with while it is traced, and what Python must not make of it.

Law: an operation of Python on a traced value is written into the program, or it raises. None gives
a constant: a traced function runs once, for all threads, blocks, iterations and sizes, so a
constant would be that of one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _native
from ._native import Body, Coordinates, Cursor, Expr, Flag, Fragment, Number, Pipeline, Predicates, Range, Stage, Thread, Tile, View

_TRUTH = (
    "has no truth value while the kernel is written, so `if`, `while`, `assert`, `and`, `or`, `not` and `in` do not take it: "
    "write `with tw.when(condition):` for `if`, `tw.where(condition, yes, no)` for a choice of two numbers, and `&`, `|`, `~` "
    "for `and`, `or`, `not`"
)
_NUMBER = (
    "has no value while the kernel is written, so `int`, `float`, `round`, `range`, slices and functions of Python's `math` do not "
    "take it: write x.to(\"i32\"), x.sqrt(), x.exp(), `for k in tw.range(n):`, or x.map(lambda x: ..)"
)
_ORDER = (
    "is not compared as a whole: write tw.maximum(x, 0.0), x.map(lambda x: tw.where(x > 0.0, x, 0.0)), or compare the numbers, "
    "x.numbers()[0] > 0.0"
)
_KEY = "has no value while the kernel is written, so it is no key of a dict, no element of a set, and no argument of a cache"
_PARTS = (
    "is not iterated over: x.numbers() is the list of the numbers of a fragment, x.map(f) a fragment of others, x.load() loads a "
    "tensor, and `for k in tw.range(n):` is a loop of the kernel"
)
_TEXT = (
    "has no text while the kernel is written: write layouts and shapes as tuples, `(n, 4)`, not as texts, and "
    "print(repr(x)) to see what it is"
)
_COPY = "belongs to the kernel that is traced, and is not copied: `x.map(lambda x: x)` is a fragment of the same numbers"
_ARRAY = (
    "is no array while the kernel is written, so functions of NumPy and PyTorch do not take it: write operators, tw.maximum(x, y), "
    "x.exp() or x.map(lambda x: ..)"
)
_WRITE = "is not written by `x[..] = y`: write x[..].store(y) for a tensor in memory"
_OPERATOR = {
    "matmul": "products are tw.gemm(tiled_mma, d, a, b, c)",
    "pow": "there is no power: write x * x, or (y * x.log2()).exp2() of a positive number",
    "mod": "there is a remainder of indices alone",
    "floordiv": "there is an integer quotient of indices alone",
    "divmod": "write i // n and i % n of indices",
}

#: The methods by which Python makes something of an object, and why they are refused.
RULES: dict[str, str] = {
    **dict.fromkeys(("__bool__", "__contains__"), _TRUTH),
    **dict.fromkeys(
        ("__int__", "__float__", "__complex__", "__index__", "__round__", "__trunc__", "__floor__", "__ceil__"), _NUMBER
    ),
    **dict.fromkeys(("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"), _ORDER),
    "__hash__": _KEY,
    **dict.fromkeys(("__iter__", "__reversed__", "__len__", "__getitem__"), _PARTS),
    **dict.fromkeys(("__str__", "__format__", "__bytes__"), _TEXT),
    **dict.fromkeys(("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__"), _COPY),
    **dict.fromkeys(("__array__", "__dlpack__"), _ARRAY),
    **dict.fromkeys(("__setitem__", "__delitem__"), _WRITE),
    **{
        f"__{side}{name}__": f"has no such operator: {_OPERATOR.get(name, 'write what it does by the operators that there are')}"
        for name in (
            "add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul", "lshift", "rshift", "and", "or", "xor",
        )
        for side in ("", "r")
    },
    **dict.fromkeys(("__neg__", "__pos__", "__abs__", "__invert__"), "has no such operator"),
}  # fmt: skip

#: How a class is called in a message.
_CALLED: dict[str, str] = {
    "Expr": "a number that is known at launch, or an index of a thread, a block or an iteration,",
    "Number": "a number of a thread",
    "Flag": "a condition of a thread",
    "Fragment": "a fragment",
    "View": "a tensor of a kernel",
    "Coordinates": "an identity tensor",
    "Predicates": "a tensor of predicates",
    "Thread": "tw.thread, which is called, `tw.thread()`,",
    "Body": "`tw.when` and its like, which open a body, `with tw.when(condition):`,",
    "Range": "tw.range, which goes right behind `for`,",
}


#: What messages say in place of `RULES`, by class and operation.
_INSTEAD = {
    ("Range", "__iter__"): "is not taken by `list`, `zip`, `enumerate` and their like: the body of a loop is traced once, for all iterations",
}


def refusal(value: object, operation: str) -> TypeError:
    """Why a method of Python's does not take a value."""
    name = type(value).__name__
    called = getattr(type(value), "_called", None) or _CALLED.get(name, f"a {name.lower()}")
    own: dict[str, str] = getattr(type(value), "_instead", {})
    error = TypeError(f"{called} {own.get(operation) or _INSTEAD.get((name, operation)) or RULES[operation]}")
    # The sizes of which a constant was asked: a kernel may be traced for them.
    setattr(error, "sizes", _native.sizes_in(value))
    return error


def _refused(operation: str) -> Callable[..., Any]:
    def method(self: Any, *_others: Any, **_named: Any) -> Any:
        raise refusal(self, operation)

    method.__name__ = method.__qualname__ = operation
    return method


for _operation in RULES:
    setattr(_native.Traced, _operation, _refused(_operation))
# NumPy hands its operators over to the class, and its functions refuse.
setattr(_native.Traced, "__array_ufunc__", None)

#: All classes of traced values.
TRACED: list[type] = []


def _traced(own: type, is_number: bool) -> None:
    # A class that compares has a hash of its own, which is none.
    if vars(own).get("__hash__", "") is None:
        setattr(own, "__hash__", _refused("__hash__"))
    # What is no number is shown by its text, which no layout is read from.
    if not is_number:
        setattr(own, "__str__", object.__str__)
        setattr(own, "__format__", object.__format__)
    TRACED.append(own)


class Traced(_native.Traced):
    """A traced value of a class that is written in Python. `_called` is what messages call an
    object of the class, and `_instead` what they say of an operation in place of `RULES`.
    """

    __slots__ = ()
    _called = ""
    _instead: dict[str, str] = {}

    def __init_subclass__(cls) -> None:
        _traced(cls, True)


# What is written by index is not deleted by it.
_WRITTEN: tuple[type, ...] = Fragment, Predicates
for _own in _WRITTEN:
    setattr(_own, "__delitem__", _refused("__delitem__"))

_NUMBERS: tuple[type, ...] = Number, Flag
_OTHERS: tuple[type, ...] = Fragment, View, Coordinates, Predicates, Tile, Pipeline, Cursor, Stage, Thread, Body, Range
for _own in _NUMBERS + _OTHERS:
    _traced(_own, _own in _NUMBERS)
del _own

# A number known at launch is a value of the algebra too. Its own methods tell whether a kernel is
# being traced; what it is no operand of is refused in both cases.
for _operation in (
    "__bool__", "__int__", "__float__", "__complex__", "__index__", "__round__", "__trunc__", "__floor__", "__ceil__",
    "__iter__", "__array__", "__contains__", "__truediv__", "__rtruediv__", "__pow__", "__rpow__", "__divmod__", "__rdivmod__",
    "__lshift__", "__rlshift__", "__rshift__", "__rrshift__", "__and__", "__rand__", "__or__", "__ror__", "__xor__", "__rxor__",
    "__pos__", "__abs__", "__invert__",
):  # fmt: skip
    setattr(Expr, _operation, _refused(_operation))
setattr(Expr, "__array_ufunc__", None)
TRACED.append(Expr)
