"""What a function under ``@tile`` computes with while it is traced: tiles, tensors, indices.

Every operation writes a line of the language of tile programs, and keeps the place in Python that
the line comes from. Whether an operation takes what it is given, the reader of that language says.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

from . import _bodies, _native, _place
from ._errors import KernelError
from ._traced import Traced, refusal

Place = tuple[str, int, int, "tuple[int, int] | None"]


class _Writing(threading.local):
    program: Text | None = None


writing = _Writing()


def now(what: str) -> Text:
    """The program that is being written."""
    if writing.program is None:
        raise RuntimeError(f"{what} belongs into a function under @tw.tile, while that is traced")
    return writing.program


class Text:
    """The lines of a program, with their locations."""

    def __init__(self, program: str, place: Place) -> None:
        #: The name of the program.
        self.program = program
        self.lines: list[str] = []
        self.places: list[Place] = []
        self.begun = place
        self.names = 0
        self.loops: list[int] = []
        #: Values of the bodies of loops that are over.
        self.gone: set[str] = set()

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def check(self) -> None:
        """Refuses an object of another program, or one without a program."""
        here = writing.program
        if here is self:
            return
        what = f"this belongs to the program `{self.program}`"
        if here is None:
            what += ", which is not being traced"
        elif here.program == self.program:
            what = f"this belongs to an earlier trace of the program `{self.program}`"
        else:
            what += f", and `{here.program}` is being traced"
        help = "use tensors, tiles and indices of the program that is being traced, while it is traced"
        raise KernelError(what, code="E1203", help=help, place=_place.place())

    def line(self, text: str, place: Place | None = None) -> None:
        if place is None:
            # What is done with a tile or a tensor of it.
            self.check()
        self.lines.append(text)
        self.places.append(_place.place() if place is None else place)

    def value(self, expression: str) -> Value:
        name = self.name("v")
        self.line(f"{name} = {expression}")
        return Value(self, name)

    def written(self, argument: Any) -> str:
        """An argument as the language writes it."""
        if isinstance(argument, Condition):
            argument._of.check()
            return f"({argument._text})"
        if isinstance(argument, (Value, Index, Tensor)):
            argument._of.check()
            if argument._text in self.gone:
                what = "a tile that the body of a loop computes is used after the loop"
                raise KernelError(what, code="E1203", help=CARRY, place=_place.place())
            return argument._text
        if isinstance(argument, (tuple, list)):
            return f"({', '.join(map(self.written, argument))})"
        if isinstance(argument, _native.Expr):
            return f"size({_native.own_text(argument)})"
        if isinstance(argument, (str, _native.Layout)):
            return f'"{argument if isinstance(argument, str) else _native.own_text(argument)}"'
        if isinstance(argument, (bool, Traced)) or not hasattr(argument, "__float__") or getattr(argument, "ndim", False):
            raise TypeError(f"{type(argument).__name__} is nothing that a tile program computes with: tiles, numbers, indices, tuples of them")
        if hasattr(argument, "__index__"):
            return str(argument.__index__())
        return repr(float(argument))

    def operand(self, argument: Any) -> str:
        """As `written`, if a tile is needed: an index is a scalar there."""
        if isinstance(argument, Index):
            return f"index({self.written(argument)})"
        return self.written(argument)

    def called(self, function: str, arguments: tuple[Any, ...]) -> Value:
        return self.value(f"{function}({', '.join(map(self.written, arguments))})")

    def computed(self, function: str, operands: tuple[Any, ...]) -> Value:
        """A function of tiles alone."""
        return self.value(f"{function}({', '.join(map(self.operand, operands))})")


#: How a loop hands a tile on.
CARRY = "carry it: `s = tw.tile.carry(s)`, `for i in tw.tile.range(n, s):`, and `s += ..` or `s.set(..)` in the body"

_SHAPE = "the shape that it was loaded, made or reshaped with, which is Python's own"

#: What to write for what arrays of other libraries have.
MEANT = {
    **dict.fromkeys(("shape", "size", "ndim"), _SHAPE),
    **dict.fromkeys(("astype", "cast", "type"), 'a.to("f16")'),
    **dict.fromkeys(("T", "mT", "permute", "trans"), "a.transpose((1, 0))"),
    **dict.fromkeys(("flatten", "ravel", "view"), "a.reshape(shape)"),
    **dict.fromkeys(("sum", "mean"), "a.reduce_sum(mode), and for a mean times 1 / the extent"),
    **dict.fromkeys(("amax", "amin"), "a.reduce_max(mode) or a.reduce_min(mode)"),
    "ln": "a.log()",
    **dict.fromkeys(("pow", "square"), "a * a, or (a.log2() * n).exp2() of a positive number"),
    **dict.fromkeys(("sort", "topk"), "a.top(mode, count), and a.top_places(mode, count)"),
    "cumsum": "a.scan_sum(mode)",
    "dtype": "the type that it was loaded or converted with",
    "matmul": "tw.tile.dot(a, b, c)",
    "relu": "a.max(0.0)",
    "sigmoid": "(1.0 + (-a).exp()).recip()",
}

def _refusals(thing: str, part: str, truth: str) -> dict[str, str]:
    """What messages say of operations of Python on a traced value of a tile program: what the value
    is in them, what it has none of, and what to write in place of `if`.
    """
    value = f"has no value while it is traced, so {{}} do not take {thing}: "
    return {
        **dict.fromkeys(("__bool__", "__contains__"), f"is not known while the program is written, so `if` and its like do not take it: {truth}"),
        **dict.fromkeys(
            ("__int__", "__float__", "__complex__", "__index__", "__round__", "__trunc__", "__floor__", "__ceil__"),
            value.format("`int`, `float`, `range`, slices and functions of Python's `math`")
            + "write a.exp(), a.sqrt() for a tile, and `for k in tw.tile.range(n):`",
        ),
        **dict.fromkeys(("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"), f"is not compared: compare {part}"),
        "__hash__": value.format("dicts, sets and caches") + "keep it in a list",
        **dict.fromkeys(("__iter__", "__reversed__", "__len__"), "is not iterated over: functions of tiles do all elements at once"),
        "__getitem__": "has no parts: load or reshape a smaller one, or x.load where the place is a tile of numbers of rows",
        **dict.fromkeys(("__str__", "__format__", "__bytes__"), "has no text while the program is written: print(repr(x)) shows what it is"),
        **dict.fromkeys(("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__"), "belongs to the program that is written, and is not copied"),
        **dict.fromkeys(("__array__", "__dlpack__"), value.format("functions of NumPy and PyTorch") + "write operators, a.max(b), a.exp()"),
        **dict.fromkeys(("__setitem__", "__delitem__"), "is not written by `x[..] = y`: write x.store(at, y) for a tensor"),
    }


_TILES = {
    **_refusals("a tile", "the tiles, a < b, in tw.tile.where(a < b, x, y)", "say tw.tile.where(a < b, x, y)"),
    "__matmul__": "has no `@`: products are tw.tile.dot(a, b, c), which adds to the tile c",
    "__pow__": f"has no `**`: there is no power of tiles, write {MEANT['pow']}",
}


def _binary(sign: str, turned: bool = False) -> Callable[[Any, Any], Any]:
    def operator(self: Value, other: Any) -> Any:
        a, b = self._of.operand(self), self._of.operand(other)
        return self._of.value(f"{b} {sign} {a}" if turned else f"{a} {sign} {b}")

    return operator


def _bits(function: str, turned: bool = False) -> Callable[[Any, Any], Any]:
    def operator(self: Value, other: Any) -> Any:
        return self._of.computed(function, (other, self) if turned else (self, other))

    return operator


def _compared(sign: str, turned: bool = False) -> Callable[[Any, Any], Any]:
    def comparison(self: Value, other: Any) -> Any:
        a, b = self._of.operand(self), self._of.operand(other)
        return Condition(self._of, f"{b} {sign} {a}" if turned else f"{a} {sign} {b}")

    return comparison


def _unary(function: str, does: str) -> Callable[[Any], Any]:
    def of_each(self: Value) -> Any:
        return self._of.computed(function, (self,))

    of_each.__name__, of_each.__doc__ = function, does
    return of_each


def _along(function: str, does: str) -> Callable[[Any, int], Any]:
    def along(self: Value, mode: int) -> Any:
        return self._of.called(function, (self, mode))

    along.__name__, along.__doc__ = function, does
    return along


def _reduced(name: str, does: str) -> Callable[..., Any]:
    function = f"reduce_{name}"

    def reduced(self: Value, *modes: int) -> Any:
        return self._of.called(function, (self, *modes))

    reduced.__name__ = function
    reduced.__doc__ = f"{does} along these modes, which keep one element each."
    return reduced


class Value(Traced):
    """A tile of a program that is being written: a shape and a type, and no layout.

    ``+ - * /`` and comparisons work element by element, ``// %`` and ``& | ^ << >>`` on integers. Every
    function of the language whose first argument is a tile is a method: ``x.exp()``,
    ``x.reduce_sum(1)``, ``x.transpose((1, 0))``; ``x.to("f32")`` has its elements in another type.
    """

    __slots__ = ("_of", "_text")
    _called = "a tile"
    _instead = _TILES

    def __init__(self, of: Text, name: str) -> None:
        self._of = of
        self._text = name

    def __repr__(self) -> str:
        return f"<tile {self._text} of a program>"

    __add__, __radd__ = _binary("+"), _binary("+", True)
    __sub__, __rsub__ = _binary("-"), _binary("-", True)
    __mul__, __rmul__ = _binary("*"), _binary("*", True)
    __truediv__, __rtruediv__ = _binary("/"), _binary("/", True)
    __floordiv__, __rfloordiv__ = _binary("//"), _binary("//", True)
    __mod__, __rmod__ = _binary("%"), _binary("%", True)
    __and__, __rand__ = _bits("and"), _bits("and", True)
    __or__, __ror__ = _bits("or"), _bits("or", True)
    __xor__, __rxor__ = _bits("xor"), _bits("xor", True)
    __lshift__, __rlshift__ = _bits("shl"), _bits("shl", True)
    __rshift__, __rrshift__ = _bits("shr"), _bits("shr", True)
    __lt__, __gt__ = _compared("<"), _compared("<", True)
    __le__, __ge__ = _compared("<="), _compared("<=", True)
    __eq__, __ne__ = _compared("=="), _compared("!=")

    __neg__ = _unary("neg", "With the other sign.")
    __abs__ = abs = _unary("abs", "The magnitude of each element.")
    neg = _unary("neg", "Each element with the other sign.")
    exp = _unary("exp", "``e`` to the power of each element.")
    exp2 = _unary("exp2", "2 to the power of each element.")
    log2 = _unary("log2", "The logarithm of each element to base 2.")
    sqrt = _unary("sqrt", "The square root of each element.")
    rsqrt = _unary("rsqrt", "``1 / sqrt(x)`` of each element.")
    recip = _unary("recip", "``1 / x`` of each element.")
    tanh = _unary("tanh", "The hyperbolic tangent of each element.")
    log = _unary("log", "The natural logarithm of each element.")
    sin = _unary("sin", "The sine of each element, in radians.")
    cos = _unary("cos", "The cosine of each element, in radians.")
    erf = _unary("erf", "The error function of each element.")
    floor = _unary("floor", "The greatest whole number up to each element, of the same type.")
    ceil = _unary("ceil", "The least whole number from each element on, of the same type.")
    round = _unary("round", "The nearest whole number to each element, ties to even, of the same type.")
    tf32 = _unary("tf32", "The nearest number of tf32 to each element of f32, as ``dot`` takes them.")
    as_i32 = _unary("as_i32", "The bits of each element as those of i32.")
    as_f32 = _unary("as_f32", "The bits of each element as those of f32.")
    as_i64 = _unary("as_i64", "The bits of each element as those of i64.")
    as_f64 = _unary("as_f64", "The bits of each element as those of f64.")

    reduce_sum = _reduced("sum", "The sums")
    reduce_product = _reduced("product", "The products")
    reduce_min = _reduced("min", "The least elements")
    reduce_max = _reduced("max", "The greatest elements")

    scan_sum = _along("scan_sum", "Each element plus all before it along a mode.")
    scan_product = _along("scan_product", "Each element times all before it along a mode.")
    scan_min = _along("scan_min", "The least of each element and all before it along a mode.")
    scan_max = _along("scan_max", "The greatest of each element and all before it along a mode.")
    scan_before_sum = _along("scan_before_sum", "The sum of all before each element along a mode.")
    scan_before_product = _along("scan_before_product", "The product of all before each element.")
    scan_before_min = _along("scan_before_min", "The least of all before each element.")
    scan_before_max = _along("scan_before_max", "The greatest of all before each element.")
    argmax = _along("argmax", "Where the greatest is along a mode, as i32; the first of equals.")
    argmin = _along("argmin", "Where the least is along a mode, as i32; the first of equals.")

    def to(self, element: Any) -> Value:
        """The elements in another type: "f32", "bf16", "e4m3", "f64", "i32", "i64" and so on."""
        return self._of.called(_native.element_name(element), (self,))

    def min(self, other: Any) -> Value:
        """The lesser of each two elements; NaN where one is NaN."""
        return self._of.computed("min", (self, other))

    def max(self, other: Any) -> Value:
        """The greater of each two elements; NaN where one is NaN."""
        return self._of.computed("max", (self, other))

    def fma(self, b: Any, c: Any) -> Value:
        """``x * b + c``, rounded once."""
        return self._of.computed("fma", (self, b, c))

    def lshr(self, by: Any) -> Value:
        """The bits of integers moved down, filled with zeros; ``x >> by`` fills with the sign."""
        return self._of.computed("lshr", (self, by))

    def dot(self, b: Value, c: Value) -> Value:
        """``x b + c`` of matrices: (M,K) by (K,N) of f16 or bf16, or of f32 that ``tf32`` rounded,
        and (M,N) of f32."""
        return self._of.called("dot", (self, b, c))

    def top(self, mode: int, count: int) -> Value:
        """The largest ``k`` elements along a mode, in descending order; if all, they are sorted."""
        return self._of.called("top", (self, mode, count))

    def top_places(self, mode: int, count: int) -> Value:
        """Where the elements of ``top`` are along the mode, as i32; of equals the first first."""
        return self._of.called("top_places", (self, mode, count))

    def histogram(self, bins: int) -> Value:
        """How often each of the numbers 0 to ``bins - 1`` occurs in a tile of i32, as i32."""
        return self._of.called("histogram", (self, bins))

    def random(self, seed: Any, word: int = 0) -> Value:
        """32 random bits for each counter, by Philox4x32-10: one of the four words, 0 to 3, of the
        counter ``(x,0,0,0)`` and the key ``(seed,0)``."""
        return self._of.value(f"random({self._of.operand(self)}, {self._of.operand(seed)}, {self._of.written(word)})")

    def unpack_i4(self, element: Any) -> Value:
        """The eight numbers of four bits in each word of i32, -8 to 7, along the first mode."""
        return self._of.value(f"unpack_i4({self._of.written(self)}, {_native.element_name(element)})")

    def unpack_u4(self, element: Any) -> Value:
        """The eight numbers of four bits in each word of i32, 0 to 15, along the first mode."""
        return self._of.value(f"unpack_u4({self._of.written(self)}, {_native.element_name(element)})")

    def broadcast(self, shape: tuple[int, ...]) -> Value:
        """Extents of 1 become others; one number becomes any tile."""
        return self._of.called("broadcast", (self, shape))

    def reshape(self, shape: tuple[int, ...]) -> Value:
        """As many elements in another shape, in the same order, the first mode fastest."""
        return self._of.called("reshape", (self, shape))

    def transpose(self, order: tuple[int, ...]) -> Value:
        """Mode ``i`` of the result is mode ``order[i]`` of the tile."""
        return self._of.called("transpose", (self, order))

    def held(self, layout: Any) -> Value:
        """Sets the distribution over the threads of the block: ``x.held("(32,4):(4,1)")``."""
        return self._of.called("held", (self, layout))

    def atom(self, name: str) -> Value:
        """Given by the instruction of this name: a product by one of matrices, a load by a copy.

        ``a.load((4, 256), at).atom("UniversalCopy<uint64_t>")`` reads 8 bytes at once.
        """
        return self._of.called("atom", (self, name))

    def __getattr__(self, function: str) -> Callable[..., Value]:
        if function.startswith("_"):
            raise AttributeError(function)
        if function in MEANT:
            raise AttributeError(f"a tile has no `{function}`: write {MEANT[function]}", name=function, obj=self)
        # The language refuses what it does not have, at the line of the call.
        return lambda *arguments: self._of.called(function, (self, *arguments))


class Carried(Value):
    """A loop-carried tile of the loops that it is passed to: ``set``, or ``+=`` and the like, sets
    the value for the next iteration.
    """

    __slots__ = ()

    def set(self, value: Any) -> None:
        """From here on, and in the next iteration, it is this tile."""
        if not isinstance(value, Value):
            raise TypeError(f"a tile goes on as a tile, not as {type(value).__name__}")
        self._text = self._of.written(value)

    def _changed(self, value: Value) -> Carried:
        self.set(value)
        return self

    def __iadd__(self, other: Any) -> Carried:
        return self._changed(self + other)

    def __isub__(self, other: Any) -> Carried:
        return self._changed(self - other)

    def __imul__(self, other: Any) -> Carried:
        return self._changed(self * other)

    def __itruediv__(self, other: Any) -> Carried:
        return self._changed(self / other)

    def __iand__(self, other: Any) -> Carried:
        return self._changed(self & other)

    def __ior__(self, other: Any) -> Carried:
        return self._changed(self | other)

    def __ixor__(self, other: Any) -> Carried:
        return self._changed(self ^ other)

    def __ilshift__(self, other: Any) -> Carried:
        return self._changed(self << other)

    def __irshift__(self, other: Any) -> Carried:
        return self._changed(self >> other)


class Condition(Traced):
    """Two tiles that are compared, for ``tw.tile.where``; ``~`` holds where it does not, ``a & b``
    where both hold, ``a | b`` where one does. In arithmetic it is a tile of i32, 1 where it holds.
    """

    __slots__ = ("_of", "_text")
    _called = "whether this comparison of tiles holds"
    _instead = {
        **_refusals("it", "what it compares, in another comparison", "say tw.tile.where(a < b, x, y), and `&`, `|`, `~`"),
    }

    def __init__(self, of: Text, text: str) -> None:
        self._of = of
        self._text = text

    def __invert__(self) -> Condition:
        return Condition(self._of, f"!({self._text})")

    def _short(self) -> str:
        # What is combined with itself again and again is a tile before it grows.
        return self._text if len(self._text) < 300 else f"{self.number()._text} != 0"

    def _joined(self, other: Any, sign: str) -> Any:
        if not isinstance(other, Condition):
            return NotImplemented
        return Condition(self._of, f"({self._short()}) {sign} ({other._short()})")

    def __and__(self, other: Any) -> Any:
        return self._joined(other, "&")

    def __or__(self, other: Any) -> Any:
        return self._joined(other, "|")

    def __repr__(self) -> str:
        return "<comparison of tiles of a program>"

    def number(self) -> Value:
        """A tile of i32: 1 where it holds, 0 elsewhere."""
        return self._of.value(self._text)

    def selected(self, yes: Any, no: Any) -> Value:
        """The one tile where it holds, the other elsewhere."""
        of = self._of
        return of.value(f"select({self._text}, {of.operand(yes)}, {of.operand(no)})")


def _of_index(sign: str, turned: bool = False) -> Callable[[Any, Any], Any]:
    def comparison(self: Index, other: Any) -> Any:
        if isinstance(other, Value):
            return NotImplemented
        a, b = self._of.operand(self), self._of.operand(other)
        return Condition(self._of, f"{b} {sign} {a}" if turned else f"{a} {sign} {b}")

    return comparison


class Index(Traced):
    """A sum of multiples of blocks and iterations: the index of a tile of a tensor. ``block.x // 4``
    and ``i % 4`` are indices, too. A comparison of it is a tile of one i32:
    ``tw.tile.where(k == 0, x, y)``.
    """

    __slots__ = ("_of", "_text")
    _called = "an index of a block or an iteration"
    _instead = {
        **_refusals("it", "it with numbers and indices", "say tw.tile.where(k == 0, x, y)"),
        "__truediv__": "is a whole number: `//` is its quotient, and `%` what that leaves",
    }

    def __init__(self, of: Text, text: str) -> None:
        self._of = of
        self._text = text

    def _with(self, text: str, other: Any) -> Index:
        if not isinstance(other, Index) and (isinstance(other, (bool, Traced)) or not hasattr(other, "__index__")):
            raise TypeError(f"an index goes with whole numbers and indices, not with {type(other).__name__}")
        return Index(self._of, text.format(self._text, self._of.written(other)))

    def __add__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, Value) else self._with("({} + {})", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, Value) else self._with("({} - {})", other)

    def __rsub__(self, other: Any) -> Index:
        return self._with("({1} - {0})", other)

    def __mul__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, Value) else self._with("{}*{}", other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, Value) else self._with("({} / {})", other)

    def __mod__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, Value) else self._with("({} % {})", other)

    __lt__, __gt__ = _of_index("<"), _of_index("<", True)
    __le__, __ge__ = _of_index("<="), _of_index("<=", True)
    __eq__, __ne__ = _of_index("=="), _of_index("!=")

    def __repr__(self) -> str:
        return f"<index {self._text} of a program>"


class Tensor(Traced):
    """A tensor of a tile program.

    ``at`` says which tile, counted in tiles along each mode. For some modes it may be tiles of i32 or
    i64 that say the coordinate of each element along them, broadcast against each other.
    """

    __slots__ = ("_of", "_text", "_layout", "_is_read", "_is_written")
    _called = "a tensor of a tile program"
    _instead = _refusals("it", "tiles of it, x.load(shape, at)", "say tw.tile.where(a < b, x, y) of tiles that are loaded")

    def __init__(self, of: Text, name: str, layout: Any) -> None:
        self._of = of
        self._text = name
        self._layout = layout
        self._is_read = self._is_written = False

    @property
    def shape(self) -> tuple[Any, ...]:
        """The extents: integers, or numbers of the launch, which loops, the grid and `tw.tile.size`
        take: ``tw.tile.range(tw.ceil_div(x.shape[1], 32))``.
        """
        self._of.check()
        shape = _native.Layout(str(self._layout)).shape
        return shape if isinstance(shape, tuple) else (shape,)

    @property
    def role(self) -> str:
        """What the language calls a tensor with which this was done."""
        return "input" if not self._is_written else "inout" if self._is_read else "output"

    def load(self, shape: tuple[int, ...], at: tuple[Any, ...], other: float | None = None) -> Value:
        """Tile ``at`` of the tensor. Elements past its edges are 0, or this number."""
        self._is_read = True
        return self._of.called("load", (self, shape, at) if other is None else (self, shape, at, other))

    def stage(self, shape: tuple[int, ...], at: tuple[Any, ...], modes: tuple[int, int]) -> Value:
        """Stages a matrix in a tile of the tensor in shared memory, for ``dot``; ``modes`` are
        those of its rows and columns.
        """
        self._is_read = True
        return self._of.called("stage", (self, shape, at, modes))

    def _changed(self, statement: str, at: tuple[Any, ...], value: Any) -> None:
        self._is_written = True
        # Elements that are replaced one by one stay where none comes.
        self._is_read |= statement != "store" or any(isinstance(own, Value) for own in at)
        self._of.line(f"{statement}({self._text}, {self._of.written(at)}, {self._of.operand(value)})")

    def store(self, at: tuple[Any, ...], value: Any) -> None:
        """Writes tile ``at``; elements past the edges are skipped. If a tile gives the coordinates,
        the tensor is a `tw.InOut`, and no two elements go to the same place.
        """
        self._changed("store", at, value)

    def atomic_add(self, at: tuple[Any, ...], value: Any) -> None:
        """Adds to a tile of a `tw.InOut` of f32, f64, f16, i32, i64, or bf16 on Hopper, each element
        indivisibly."""
        self._changed("atomic_add", at, value)

    def atomic_min(self, at: tuple[Any, ...], value: Any) -> None:
        """Atomic minimum of a `tw.InOut` of i32 or i64 and this tile, element by element."""
        self._changed("atomic_min", at, value)

    def atomic_max(self, at: tuple[Any, ...], value: Any) -> None:
        """Atomic maximum of a `tw.InOut` of i32 or i64 and this tile, element by element."""
        self._changed("atomic_max", at, value)


class Block(Traced):
    """The number of the block along each axis of the grid."""

    __slots__ = ()
    _called = "tw.tile.block"
    _instead = _refusals("it", "its number along an axis, tw.tile.block.x", "say tw.tile.where(tw.tile.block.x == 0, x, y)")

    def __getattr__(self, axis: str) -> Index:
        if axis not in ("x", "y", "z"):
            raise AttributeError(f"a grid has the axes x, y and z, not '{axis}'", name=axis, obj=self)
        return Index(now("tw.tile.block"), f"block.{axis}")


class Iterations(Traced):
    """The iterations of a loop, whose body is traced once: `tw.tile.range`."""

    __slots__ = ("_of", "_text", "_carried", "_names", "_begun", "_place")
    _called = "tw.tile.range, which goes right behind `for`,"
    _instead = {
        **_refusals("it", "its index", "write `for k in tw.tile.range(n):`"),
        "__iter__": "is not taken by `list`, `zip`, `enumerate` and their like: the body of a loop is traced once, for all iterations",
    }

    def __init__(self, of: Text, count: str, carried: tuple[Carried, ...]) -> None:
        self._of = of
        self._text = count
        self._carried = carried
        self._begun: tuple[int, _bodies.Begun | None] | None = None

    def __iter__(self) -> Iterations:
        if not _bodies.iterates():
            raise refusal(self, "__iter__")
        return self

    def __next__(self) -> Index:
        of = self._of
        if self._begun is None:
            iteration, number = of.name("i"), len(of.lines)
            self._names = [of.name("c") for _ in self._carried]
            begins = ", ".join(f"{name} = {of.written(own)}" for name, own in zip(self._names, self._carried))
            of.line(f"loop {iteration} < {self._text} {f'with {begins} ' if self._names else ''}{{")
            self._place = of.places[-1]
            of.loops.append(number)
            for own, name in zip(self._carried, self._names):
                own._text = name
            self._begun = number, _bodies.begin()
            return Index(of, iteration)
        # Reached when the body is over, and not when it is left.
        number, begun = self._begun
        self._begun = None
        of.loops.remove(number)
        ends = [of.name("r") for _ in self._carried]
        following = ", ".join(of.written(own) for own in self._carried)
        of.line(f"next {following} }} -> {', '.join(ends)}" if ends else "}", self._place)
        of.gone.update(re.findall(r"^(v\d+) =", "\n".join(of.lines[number + 1 :]), re.MULTILINE))
        for own, name in zip(self._carried, ends):
            own._text = name
        _bodies.end(begun, "tw.tile.range", "carry a tile: `total = tw.tile.carry(x)`, `for k in tw.tile.range(n, total):`, `total.set(y)`")
        raise StopIteration

    def __repr__(self) -> str:
        return f"<iterations of a program, {self._text}>"
