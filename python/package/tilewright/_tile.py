"""Tile programs that are written in Python: ``@tile``.

What a traced function does is written down as a text of the language of tile programs, a line for each statement; the reader of that
language checks it, and refuses with the place in Python where the line comes from.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from . import _native, _place
from ._errors import KernelError
from ._jit import Array, InOut, Kernel, Scalar, _def_line, _Version

_Place = tuple[str, int, int, "tuple[int, int] | None"]


class _Writing(threading.local):
    program: _Text | None = None


_writing = _Writing()


def _now(what: str) -> _Text:
    if _writing.program is None:
        raise RuntimeError(f"{what} belongs into a function under @tw.tile, while that is traced")
    return _writing.program


class _Text:
    """The lines of a program, and where each comes from."""

    def __init__(self, place: _Place) -> None:
        self.lines: list[str] = []
        self.places: list[_Place] = []
        self.begun = place
        self.names = 0
        self.loops: list[int] = []

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def line(self, text: str, place: _Place | None = None) -> None:
        self.lines.append(text)
        self.places.append(_place.place() if place is None else place)

    def value(self, expression: str) -> Value:
        name = self.name("v")
        self.line(f"{name} = {expression}")
        return Value(self, name)

    def written(self, argument: Any) -> str:
        """An argument as the language writes it."""
        if isinstance(argument, (Value, Index, Condition, Tensor)):
            if argument._of is not self:
                raise KernelError("this belongs to another program, or to one that is written already", code="E1203")
            return argument._text
        if isinstance(argument, (tuple, list)):
            return f"({', '.join(map(self.written, argument))})"
        if isinstance(argument, str):
            return f'"{argument}"'
        if isinstance(argument, bool) or not hasattr(argument, "__float__"):
            raise TypeError(f"{type(argument).__name__} is nothing that a tile program computes with: tiles, numbers, indices, tuples of them")
        if hasattr(argument, "__index__"):
            return str(argument.__index__())
        return repr(float(argument))

    def called(self, function: str, arguments: tuple[Any, ...]) -> Value:
        return self.value(f"{function}({', '.join(map(self.written, arguments))})")


def _binary(sign: str, turned: bool = False) -> Callable[[Any, Any], Any]:
    def operator(self: Value, other: Any) -> Any:
        if isinstance(other, Index):
            other = self._of.called("index", (other,))
        a, b = self._of.written(self), self._of.written(other)
        return self._of.value(f"{b} {sign} {a}" if turned else f"{a} {sign} {b}")

    return operator


def _compared(sign: str, turned: bool = False) -> Callable[[Any, Any], Any]:
    def comparison(self: Value, other: Any) -> Any:
        a, b = self._of.written(self), self._of.written(other)
        return Condition(self._of, f"{b} {sign} {a}" if turned else f"{a} {sign} {b}")

    return comparison


class Value:
    """A tile of a program that is being written: a shape and a type, and no layout.

    ``+ - * /`` and comparisons work element by element. Every function of the language whose first argument is a tile is a method:
    ``x.exp()``, ``x.reduce_sum(1)``, ``x.transpose((1, 0))``; ``x.to("f32")`` has its elements in another type.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, of: _Text, name: str) -> None:
        self._of = of
        self._text = name

    __add__, __radd__ = _binary("+"), _binary("+", True)
    __sub__, __rsub__ = _binary("-"), _binary("-", True)
    __mul__, __rmul__ = _binary("*"), _binary("*", True)
    __truediv__, __rtruediv__ = _binary("/"), _binary("/", True)
    __lt__, __gt__ = _compared("<"), _compared("<", True)
    __le__, __ge__ = _compared("<="), _compared("<=", True)
    __eq__ = _compared("==")

    def __neg__(self) -> Value:
        return self._of.called("neg", (self,))

    def __bool__(self) -> bool:
        raise TypeError("the elements of a tile are not known while it is traced: say tw.tile.where(a < b, x, y)")

    def to(self, element: str) -> Value:
        """The elements in another type: "f32", "bf16", "i32" and so on."""
        return self._of.called(_native.element_name(element), (self,))

    def __getattr__(self, function: str) -> Callable[..., Value]:
        if function.startswith("_"):
            raise AttributeError(function)
        return lambda *arguments: self._of.called(function, (self, *arguments))


class Carried(Value):
    """A tile that goes from turn to turn of the loops that it is given to: ``set``, or ``+=`` and so on, says what goes on."""

    def set(self, value: Any) -> None:
        """From here on, and in the next turn, it is this tile."""
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


class Condition:
    """Two tiles that are compared, for ``tw.tile.where``."""

    def __init__(self, of: _Text, text: str) -> None:
        self._of = of
        self._text = text

    def __bool__(self) -> bool:
        raise TypeError("whether this holds is not known while it is traced: say tw.tile.where(a < b, x, y)")


class Index:
    """A sum of numbers times blocks and turns: which tile of a tensor."""

    def __init__(self, of: _Text, text: str) -> None:
        self._of = of
        self._text = text

    def _with(self, text: str, other: Any) -> Index:
        if not isinstance(other, Index) and (isinstance(other, bool) or not hasattr(other, "__index__")):
            raise TypeError(f"an index goes with whole numbers and indices, not with {type(other).__name__}")
        return Index(self._of, text.format(self._text, self._of.written(other)))

    def __add__(self, other: Any) -> Index:
        return self._with("({} + {})", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Index:
        return self._with("({} - {})", other)

    def __rsub__(self, other: Any) -> Index:
        return self._with("({1} - {0})", other)

    def __mul__(self, other: Any) -> Index:
        return self._with("{}*{}", other)

    __rmul__ = __mul__


class Tensor:
    """A tensor of a tile program."""

    def __init__(self, of: _Text, name: str) -> None:
        self._of = of
        self._text = name

    def load(self, shape: tuple[int, ...], at: tuple[Any, ...], other: float | None = None) -> Value:
        """Tile ``at`` of the tensor, counted in tiles; elements past its edges are 0, or this number."""
        return self._of.called("load", (self, shape, at) if other is None else (self, shape, at, other))

    def stage(self, shape: tuple[int, ...], at: tuple[Any, ...], modes: tuple[int, int]) -> Value:
        """A matrix in a tile of the tensor by way of shared memory, for ``dot``; ``modes`` are those of its rows and columns."""
        return self._of.called("stage", (self, shape, at, modes))

    def store(self, at: tuple[Any, ...], value: Any) -> None:
        """Writes tile ``at``; what lies past the edges is left out."""
        self._of.line(f"store({self._text}, {self._of.written(at)}, {self._of.written(value)})")


class _Block:
    """The number of the block along each axis of the grid."""

    def __getattr__(self, axis: str) -> Index:
        if axis not in ("x", "y", "z"):
            raise AttributeError(axis)
        return Index(_now("tw.tile.block"), f"block.{axis}")


class TileKernel(Kernel):
    """A tile program: called, checked and costed as a kernel is; ``explain`` says which layouts were assigned, and why."""

    def __init__(self, function: Callable[..., Any], grid: tuple[Any, ...], warps: int | None, specs: dict[str, Any]) -> None:
        super().__init__(function, None, specs)
        for name, spec in self.specs.items():
            if isinstance(spec, (InOut, Scalar)):
                raise TypeError(f"'{name}' of {self.__name__}: tile programs take tw.Input and tw.Output, and constants")
        self._grid = grid
        self._warps = warps
        self._explained: dict[int, _native.TileProgram] = {}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if _writing.program is not None:
            # Within another program it is a function.
            return self.function(*arguments, **named)
        return super().__call__(*arguments, **named)

    def explain(self, *arguments: Any, **named: Any) -> str:
        """The program with the layout of each value, what the next best would have cost, and the conversions."""
        return self._tiles(arguments, named).explain()

    def text(self, *arguments: Any, **named: Any) -> str:
        """The program as a text of the language of tile programs, which reads back as the same."""
        return self._tiles(arguments, named).text

    def _tiles(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> _native.TileProgram:
        return self._explained[id(self.program(*arguments, **named))]

    def _written(self, values: dict[str, Any], arrays: dict[str, tuple[Any, Any]], grid: tuple[int, int, int] | None) -> _Version:
        place = _def_line(self.function)
        own = _Text(place)
        own.line(f"tile {self.__name__} {{", place)
        given: list[Any] = []
        for name, spec in self.specs.items():
            if name in arrays or isinstance(spec, Array):
                element, layout = arrays[name] if name in arrays else (spec.element, spec.layout)  # type: ignore[union-attr]
                role = getattr(spec, "role", "tensor")
                if role == "tensor":
                    raise TypeError(f"'{name}' of {self.__name__} is an array: say tw.Input or tw.Output")
                own.line(f"{role} {name}: {_native.element_name(element)} {layout}", place)
                given.append(Tensor(own, name))
            else:
                given.append(values[name])
        if self._grid:
            own.line(f"grid {', '.join(map(str, self._grid))}", place)
        if self._warps is not None:
            own.line(f"warps {self._warps}", place)
        before, _writing.program = _writing.program, own
        try:
            self.function(*given)
        finally:
            _writing.program = before
        if own.loops:
            raise KernelError("a loop of a tile program is left before its end: every turn goes to the end of the body", code="E1204")
        own.line("}", place)
        tiles = _native.read_tiles("\n".join(own.lines), own.places)
        version = _Version(tiles.program)
        self._explained[id(version.program)] = tiles
        return version


class Language:
    """``@tw.tile``, and the functions of tile programs under their names in the language: ``tw.tile.dot(a, b, c)``."""

    @property
    def block(self) -> _Block:
        """The number of this block along each axis: ``tw.tile.block.x``."""
        return _Block()

    def __call__(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        grid: Any = (),
        warps: int | None = None,
        **specs: Array,
    ) -> Any:
        """A tile program: what a block of threads computes, without a layout.

        ``grid``: how many blocks there are, expressions of sizes. ``warps``: of a block, where the plan should not choose.

        >>> import tilewright as tw
        >>> @tw.tile(grid="ceil(M/4)")
        ... def softmax(x: tw.Input("bf16", "(M,1024):(1024,1)"), y: tw.Output("bf16", "(M,1024):(1024,1)")):
        ...     at = (tw.tile.block.x, 0)
        ...     a = x.load((4, 1024), at).to("f32")
        ...     e = (a - a.reduce_max(1)).exp()
        ...     y.store(at, (e / e.reduce_sum(1)).to("bf16"))
        >>> softmax.check(M=7)
        """
        counts = grid if isinstance(grid, tuple) else (grid,)
        if function is None:
            return lambda function: TileKernel(function, counts, warps, specs)
        return TileKernel(function, counts, warps, specs)

    def full(self, shape: tuple[int, ...], value: float, element: str = "f32") -> Value:
        """A tile of one number."""
        of = _now("tw.tile.full")
        return of.value(f"broadcast({element}({of.written(value)}), {of.written(shape)})")

    def where(self, condition: Condition, yes: Any, no: Any) -> Value:
        """The one tile where a comparison holds, the other elsewhere."""
        return _now("tw.tile.where").called("select", (condition, yes, no))

    def carry(self, value: Value) -> Carried:
        """A tile that goes from turn to turn of the loops that it is given to."""
        of = _now("tw.tile.carry")
        return Carried(of, of.written(value))

    def range(self, count: Any, *carried: Carried) -> Iterator[Index]:
        """Turns of a body, which is traced once, for all: as many as a number, an expression of sizes, or an index says. What goes from
        turn to turn is carried, and is named here: ``for k in tw.tile.range("ceil(K/64)", total):``."""
        of = _now("tw.tile.range")
        if not all(isinstance(own, Carried) for own in carried):
            raise TypeError("what goes from turn to turn is tw.tile.carry(x)")
        turn, number = of.name("i"), len(of.lines)
        text = f"[{of.written(count)}]" if isinstance(count, Index) else str(count)
        names = [of.name("c") for _ in carried]
        begins = ", ".join(f"{name} = {of.written(own)}" for name, own in zip(names, carried))
        of.line(f"loop {turn} < {text} {f'with {begins} ' if names else ''}{{")
        place = of.places[-1]
        of.loops.append(number)
        for own, name in zip(carried, names):
            own._text = name
        yield Index(of, turn)
        # Reached when the body is over, and not when it is left.
        of.loops.remove(number)
        ends = [of.name("r") for _ in carried]
        following = ", ".join(of.written(own) for own in carried)
        of.line(f"next {following} }} -> {', '.join(ends)}" if names else "}", place)
        for own, name in zip(carried, ends):
            own._text = name

    def __getattr__(self, function: str) -> Callable[..., Value]:
        if function.startswith("_"):
            raise AttributeError(function)
        return lambda *arguments: _now(f"tw.tile.{function}").called(function, arguments)


tile = Language()
