"""Tile programs that are written in Python: ``@tile``.

What a traced function does is written down as a text of the language of tile programs, a line for
each statement; the reader of that language checks it, and refuses with the place in Python where
the line comes from.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from . import _native
from ._arrays import host_memory
from ._errors import KernelError
from ._gradient import Gradient
from ._jit import Array, Kernel, Scalar, _def_line
from ._native import Picture
from ._parameters import Placed
from ._reports import Checked, Compared, Measured
from ._tile_values import MEANT, Block, Carried, Condition, Index, Tensor, Text, Iterations, Value, now, writing
from ._versions import Given, Version


class Explanation(str):
    """What was chosen for a tile program, and why: a text; in a notebook with ``pictures``.

    Those are of the layouts by which threads hold tiles, under the names that the text gives to
    the values, and of tiles in shared memory.
    """

    pictures: dict[str, Picture]

    def __new__(cls, text: str, pictures: dict[str, Picture]) -> Explanation:
        explained = super().__new__(cls, text)
        explained.pictures = pictures
        return explained

    def _repr_html_(self) -> str:
        from html import escape

        parts = [f"<pre>{escape(self)}</pre>"]
        for names, picture in self.pictures.items():
            parts.append(f"<div><pre>{escape(names)}</pre>{picture._repr_html_()}</div>")
        return "".join(parts)


#: The types of numbers of a launch, and how `struct` writes them.
_NUMBERS = {"f32": "<f", "i32": "<i", "f64": "<d", "i64": "<q"}


def _size(count: Any) -> str:
    """An expression of sizes as the language writes it."""
    return _native.own_text(count) if isinstance(count, _native.Value) else str(count)


class TileKernel(Kernel):
    """A tile program: called, checked and costed as a kernel is; ``explain`` says which layouts
    were assigned, and why.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        grid: Any,
        warps: int | None,
        machine: str | None,
        specs: dict[str, Any],
    ) -> None:
        super().__init__(function, None, specs)
        for name, spec in self.specs.items():
            if isinstance(spec, Scalar) and _native.element_name(spec.element) not in _NUMBERS:
                raise TypeError(f"'{name}' of {self.__name__}: tile programs take numbers of f32, i32, f64 and i64, and constants")
        self._grid = grid
        self._warps = warps
        self._machine = machine

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if writing.program is not None:
            # Within another program it is a function.
            return self.function(*arguments, **named)
        return super().__call__(*arguments, **named)

    def check(self, *arguments: Any, **named: Any) -> Checked:  # type: ignore[override]
        """Runs the kernel in the interpreter under every schedule, and compares its result with
        that of the program, as ``tilewright kernel explain --check`` does. It takes arrays, whose
        contents are inputs and are left unchanged; or sizes, with contents of its own.

        Errors: findings of the interpreter, or an element that differs (``KernelError``).
        """
        version, sizes, values = self._asked(arguments, named)
        tiles, program = version.explained, version.program
        assert tiles is not None
        names = [name for name, *_ in program.tensors]
        contents = []
        if all(name in values and not isinstance(values[name], Placed) for name in names):
            counts = zip(names, program.tensor_bytes(sizes))
            contents = [(name, host_memory(values[name])[:count]) for name, count in counts]
        import numpy as np

        for name, element in program.numbers:
            if name in values:
                form = _NUMBERS[_native.element_name(element)]
                contents.append((name, np.frombuffer(struct.pack(form, values[name]), np.uint8)))
        schedules, instructions, outputs = tiles.check(sizes, contents)
        return Checked(sizes, schedules, instructions, tuple(Compared(*output) for output in outputs))

    def bench(
        self,
        *arguments: Any,
        device: int = 0,
        repeats: int = 9,
        checked: dict[str, int] | None = None,
        **named: Any,
    ) -> Measured:
        """Compiles the program for a GPU and runs it there, with the inputs of a check: at the
        sizes ``checked``, where the result is compared with that of the program, and at those of
        the arrays or keywords, which are timed beside the driver's copy of equally many bytes.
        Without ``checked`` it is compared at the sizes that are timed.

        Errors: there is no driver or no such device (``GpuError``); an element differs
        (``KernelError``).
        """
        version, sizes, _ = self._asked(arguments, named)
        tiles = version.explained
        assert tiles is not None
        text, numbers = tiles.bench(sizes if checked is None else checked, sizes, device, repeats)
        told = " ".join(f"{name}={size}" for name, size in sizes.items())
        return Measured(f"{self.__name__} {told}\n{text}", numbers)

    def explain(self, *arguments: Any, **named: Any) -> Explanation:
        """The program with the layout of each value, the cost of the next best one, and the
        conversions; in a notebook with pictures.
        """
        text, pictures = self._tiles(arguments, named).explain()
        return Explanation(text, dict(pictures))

    def text(self, *arguments: Any, **named: Any) -> str:
        """The program as a text of the language of tile programs, which reads back as the same."""
        return self._tiles(arguments, named).text

    def gradient(
        self, *arguments: Any, of: str | tuple[str, ...] = (), atomic: bool = False, merge: int = 32, **named: Any
    ) -> Gradient:
        """The gradient by the inputs named in `of`, or by all of floating-point types.

        ``atomic`` allows sums by atomics, in an order that differs between runs: gathers need them.
        ``merge``: how many blocks one block of the gradient executes where blocks share a tile.

        >>> import tilewright as tw
        >>> @tw.tile(grid="ceil(N/4)")
        ... def square(x: tw.Input("f32", "N:1"), y: tw.Output("f32", "N:1")):
        ...     a = x.load((4,), (tw.tile.block.x,))
        ...     y.store((tw.tile.block.x,), a * a)
        >>> import numpy as np
        >>> x, d_y = np.array([1, 2, 3], "f4"), np.array([1, 1, 10], "f4")
        >>> square.gradient()(x=x, d_y=d_y)
        {'d_x': array([ 2.,  4., 60.], dtype=float32)}

        Errors: a statement has no derivative, named with its line (``KernelError``, E1213).
        """
        version = self._asked(arguments, named)[0]
        tiles = version.explained
        assert tiles is not None
        names = [of] if isinstance(of, str) else list(of)
        return Gradient(self.__name__, version.program, tiles.gradient(names, atomic, merge, self._machine))

    #: Numbers of the launch are declared, `tw.Scalar`, so other integers are constants.
    _takes_integers = False

    def _tiles(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> _native.TileProgram:
        tiles = self._asked(arguments, named)[0].explained
        assert tiles is not None
        return tiles

    def _with_roles(self, given: Given) -> Version:
        # What is done with a tensor is seen while the program is traced.
        return self._written(given)

    def _written(self, given: Given) -> Version:
        place = _def_line(self.function)
        own = Text(self.__name__, place)
        own.line(f"tile {self.__name__} {{", place)
        declared: list[tuple[int, Tensor, str, str]] = []
        arguments: list[Any] = []
        for name, spec in self.specs.items():
            if isinstance(spec, Scalar):
                own.line(f"scalar {name}: {_native.element_name(spec.element)}", place)
                arguments.append(Value(own, f"scalar({name})"))
                continue
            if name not in given.layouts and not isinstance(spec, Array):
                arguments.append(given.constants[name])
                continue
            element, layout = given.layouts[name] if name in given.layouts else (spec.element, spec.layout)  # type: ignore[union-attr]
            tensor = Tensor(own, name, layout)
            declared.append((len(own.lines), tensor, getattr(spec, "role", ""), f"{name}: {_native.element_name(element)} {layout}"))
            own.line("", place)
            arguments.append(tensor)
        before, writing.program = writing.program, own
        _native.writes_tiles(self.__name__)
        try:
            grid = self._grid(*arguments) if callable(self._grid) else self._grid
            counts = grid if isinstance(grid, tuple) else (grid,)
            if counts:
                own.line(f"grid {', '.join(map(_size, counts))}", place)
            if self._warps is not None:
                own.line(f"warps {self._warps}", place)
            self.function(*arguments)
        finally:
            writing.program = before
            _native.writes_tiles(None)
        if own.loops:
            raise KernelError("a loop of a tile program is left before its end: every iteration runs to the end of the body", code="E1204")
        own.line("}", place)
        for line, tensor, role, text in declared:
            own.lines[line] = f"{_ROLES.get(role, role) or tensor.role} {text}"
        try:
            tiles = _native.read_tiles("\n".join(own.lines), own.places, self._machine)
        except KernelError as error:
            if error.filename is not None:
                raise
            raise KernelError(error.message, code=error.code, help=error.help, place=place) from None
        return Version(tiles.program, tiles)


#: What the language calls the tensors that are declared otherwise here.
_ROLES = {"tensor": "inout"}


class Language:
    """``@tw.tile``, and the functions of tile programs under their names in the language:
    ``tw.tile.dot(a, b, c)``.
    """

    @property
    def block(self) -> Block:
        """The number of this block along each axis: ``tw.tile.block.x``."""
        return Block()

    def __call__(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        grid: Any = (),
        warps: int | None = None,
        machine: str | None = None,
        target: str | None = None,
        **specs: Array,
    ) -> Any:
        """A tile program: what a block of threads computes, without a layout.

        ``grid``: how many blocks there are along each axis, expressions of sizes; or a function that
        gives them for the arguments, ``grid=lambda x, y: tw.ceil_div(x.shape[0], 4)``. ``warps``: of a block, where the
        plan should not choose. ``machine``: the card that the kernel is for, as "H200", or one that
        runs ``target="sm_90a"``: there warpgroups multiply and TMA loads their operands, where that
        fits. Without either, the kernel runs on all.

        >>> import tilewright as tw
        >>> @tw.tile(grid="ceil(M/4)")
        ... def softmax(x: tw.Input("bf16", "(M,1024):(1024,1)"), y: tw.Output("bf16", "(M,1024):(1024,1)")):
        ...     at = (tw.tile.block.x, 0)
        ...     a = x.load((4, 1024), at).to("f32")
        ...     e = (a - a.reduce_max(1)).exp()
        ...     y.store(at, (e / e.reduce_sum(1)).to("bf16"))
        >>> softmax.check(M=7).compared
        7168
        """
        if machine is not None and target is not None:
            raise TypeError("machine and target both say what the kernel is for: give one")
        machine = target if machine is None else machine
        if function is None:
            return lambda function: TileKernel(function, grid, warps, machine, specs)
        return TileKernel(function, grid, warps, machine, specs)

    def full(self, shape: tuple[int, ...], value: float, element: Any = "f32") -> Value:
        """A tile of one number."""
        of = now("tw.tile.full")
        return of.value(f"broadcast({_native.element_name(element)}({of.written(value)}), {of.written(shape)})")

    def arange(self, shape: tuple[int, ...], mode: int) -> Value:
        """The coordinate of each element along a mode, as i32."""
        return now("tw.tile.arange").called("arange", (shape, mode))

    def index(self, index: Any) -> Value:
        """An index, or a whole number, as a tile of one i32; in an operation an index is that."""
        return now("tw.tile.index").called("index", (index,))

    def elements(self, first: Any, count: int | None = None) -> Index:
        """In the place of an index of a tile: the tile begins at this element along the mode, an
        index or a whole number: ``x.load((64,), (tw.tile.elements(i * 16 - 3),))``. With a count,
        the elements of the tile from there on are outside.
        """
        of = now("tw.tile.elements")
        return Index(of, f"[{of.written(first)}]" if count is None else f"[{of.written(first)} : {of.written(count)}]")

    def size(self, size: str) -> Value:
        """An expression of sizes as a tile of one i32: ``tw.tile.size("ceil(M/4)")``."""
        return now("tw.tile.size").value(f"size({_size(size)})")

    def where(self, condition: Condition | Value, yes: Any, no: Any) -> Value:
        """The one tile where a comparison holds, or a tile of i32 is not 0, the other elsewhere."""
        now("tw.tile.where")
        if isinstance(condition, Value):
            condition = condition != 0
        if not isinstance(condition, Condition):
            raise TypeError(f"tw.tile.where asks a comparison of tiles, such as a < b, not {type(condition).__name__}")
        return condition.selected(yes, no)

    def carry(self, value: Value) -> Carried:
        """A loop-carried tile of the loops that it is passed to."""
        of = now("tw.tile.carry")
        return Carried(of, of.written(value))

    def range(self, count: Any, *carried: Carried) -> Iterations:
        """The iterations of a body, which is traced once for all of them. The count is a number, an
        expression of sizes, an index, or a tile of one i32, which may come from a tensor.
        Loop-carried tiles are named here: ``for k in tw.tile.range("ceil(K/64)", total):``.
        """
        of = now("tw.tile.range")
        if not all(isinstance(own, Carried) for own in carried):
            raise TypeError("a loop-carried tile is tw.tile.carry(x)")
        text = f"[{of.written(count)}]" if isinstance(count, (Index, Value)) else _size(count)
        return Iterations(of, text, carried)

    def __getattr__(self, function: str) -> Callable[..., Value]:
        if function.startswith("_"):
            raise AttributeError(function)
        if function in MEANT:
            raise AttributeError(f"there is no tw.tile.{function}: write {MEANT[function]}", name=function, obj=self)
        method = vars(Value).get(function)

        def written(*arguments: Any) -> Value:
            of = now(f"tw.tile.{function}")
            if method is not None and arguments and isinstance(arguments[0], Value):
                found: Value = method(*arguments)
                return found
            return of.computed(function, arguments)

        return written

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in vars(Value) if not name.startswith("_"))})


tile = Language()
