"""Kernels that are written in Python: ``@jit``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from . import _native, _place
from ._interpret import interpret
from ._native import Layout, Picture, Program
from ._parameters import Array, InOut, Input, Known, Output, Placed, Scalar, Shape, dynamic, is_array, spec, specs_of, static
from ._reports import Cost
from ._versions import Given, Version, Versioned


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """The values of parameters that may be left out."""
    code = function.__code__
    values = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    return dict(zip(names[len(names) - len(values) :], values))


def _def_line(function: Callable[..., Any]) -> tuple[str, int, int, None]:
    """The line of ``def``, after those of the decorators."""
    import linecache

    code = function.__code__
    line = code.co_firstlineno
    for after in range(line, line + 50):
        if linecache.getline(code.co_filename, after).lstrip().startswith("def "):
            return code.co_filename, after, 1, None
    return code.co_filename, line, 1, None


def _grid(grid: Any) -> tuple[int, int, int]:
    axes = grid if isinstance(grid, tuple) else (grid,)
    if not 1 <= len(axes) <= 3 or any(isinstance(axis, bool) or not hasattr(axis, "__index__") for axis in axes):
        raise TypeError(f"a grid is one to three numbers of blocks, not {grid!r}")
    x, y, z = (*(axis.__index__() for axis in axes), 1, 1)[:3]
    return x, y, z


def _grid_place(block: Any) -> tuple[int, int, int]:
    """The index of a block along each axis of the grid."""
    axes = block if isinstance(block, tuple) else (block,)
    if not 1 <= len(axes) <= 3 or any(isinstance(axis, bool) or not hasattr(axis, "__index__") for axis in axes):
        raise TypeError(f"a block is one to three numbers, its place in the grid, not {block!r}")
    x, y, z = (*(axis.__index__() for axis in axes), 0, 0)[:3]
    return x, y, z


def _is_element(text: str) -> bool:
    try:
        return bool(_native.element_name(text))
    except ValueError:
        return False


class Kernel(Versioned):
    """A kernel: a function of Python that is traced once for each set of constants and layouts that
    it is called with.

    ``kernel(a, b, c)`` runs it: on the GPU where the arrays are CUDA tensors, on PyTorch's current
    stream there; on the interpreter, which checks every access, where they are arrays of NumPy or
    tensors of the host. Outputs are written in place. How many blocks there are follows from the
    layouts; ``kernel[grid](a, b, c)`` says it, and is refused if it is another number. Sizes that
    no array tells are keywords: ``kernel(a, b, c, K=64)``. `program`, `ptx`, `cost`, `draw` and
    `check` take `tw.spec(element, shape)` in place of arrays, or ``("f32", (1024, 512))``.

    What it reads from outside, in globals and closures, are constants of it, too: it is traced anew
    where they have changed. The versions that were called last are kept, `most_versions` of them.
    """

    def __init__(self, function: Callable[..., Any], threads: int | None, specs: dict[str, Any]) -> None:
        super().__init__(function, specs_of(function, dict(specs)))
        self.threads = threads
        self._names = list(self.specs)
        self._defaults = _defaults(function)
        self._count = len(self.specs)
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        launch = self._launch
        if launch is not None and not named and len(arguments) == self._count and not _native.is_tracing() and self._reads.unchanged():
            # As most often: nothing to look at but the arrays.
            if not launch(arguments):
                self._run(None, arguments, named, False)
            return None
        if _native.is_tracing():
            # Within another kernel it is a function.
            return self.function(*arguments, **named)
        return self._run(None, arguments, named, False)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        blocks = _grid(grid)

        def launch(*arguments: Any, **named: Any) -> None:
            self._run(blocks, arguments, named, False)

        return launch

    def program(self, *arguments: Any, **named: Any) -> Program:
        """The kernel for these arrays and constants, without running it."""
        return self._asked(arguments, named)[0].program

    def ptx(self, *arguments: Any, target: str = "sm_90a", **named: Any) -> str:
        """The PTX for a GPU: for "sm_80", "sm_86", "sm_87", "sm_89", "sm_90a", "sm_100", "sm_120" or
        "sm_121", which may also be the last argument: ``kernel.ptx("sm_80")``.
        """
        if arguments and isinstance(arguments[-1], str) and arguments[-1].startswith("sm_"):
            *arguments, target = arguments  # type: ignore[assignment]
        return self.program(*arguments, **named).ptx(target)

    def cost(self, *arguments: Any, machine: str = "H200", **named: Any) -> Cost:
        """The estimated cost of a launch on a machine: "H200", "H100" or "A100". Sizes are those of
        the arrays, or keywords. The result is a text, and has its numbers as attributes.
        """
        version, sizes, _ = self._asked(arguments, named)
        return Cost(*version.program.cost(sizes, machine))

    def draw(
        self,
        *arguments: Any,
        block: tuple[int, ...] = (0, 0, 0),
        warp: int = 0,
        line: int | None = None,
        **named: Any,
    ) -> Picture:
        """The memory that the lanes of a warp of a block access, at the sizes of arrays or
        keywords: lines and sectors of tensors, banks of shared memory, statement by statement; or
        for one line of the file. SVG in a notebook, text when it is printed.
        """
        version, sizes, _ = self._asked(arguments, named)
        return version.program.draw(sizes, _grid_place(block), warp, line)

    def check(self, *arguments: Any, **named: Any) -> None:
        """Runs the kernel in the interpreter under every schedule, and raises its findings:
        accesses outside of tensors, races, deadlocks, outputs that are not written exactly once. It
        takes arrays, whose contents are inputs and are left unchanged; or sizes,
        ``kernel.check(M=300)``, or shapes, ``kernel.check(tw.spec("f32", (300, 8)))``, with random
        contents.
        """
        version, sizes, values = self._asked(arguments, named)
        program = version.program
        numbers = {name: values.get(name, 1) for name, _ in program.numbers}
        arrays = [values.get(name) for name, *_ in program.tensors]
        if all(array is not None and not isinstance(array, Placed) for array in arrays):
            interpret(program, arrays, numbers, sizes, None, True)
        else:
            program.check(sizes, numbers)

    def _asked(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Version, dict[str, int], dict[str, Any]]:
        """The version that a question is about, the sizes, and the values of the parameters."""
        values, sizes, said = self._bound(arguments, named, partial=True)
        for name, value in values.items():
            own = self.specs[name]
            if type(value) is tuple and 2 <= len(value) <= 3 and isinstance(value[0], str) and isinstance(value[1], (tuple, list)):
                # Of what is not declared, another tuple is a constant.
                if isinstance(own, Array) or (not isinstance(own, Scalar) and _is_element(value[0])):
                    value = spec(*value)
            if isinstance(value, Shape):
                value = Placed(value)
            values[name] = value
            if isinstance(own, Array) and not is_array(value):
                raise TypeError(f"'{name}' of {self.__name__} is an array, not {type(value).__name__}")
        version = self._version(None, values, said)
        arrays = [values[name] for name, *_ in version.program.tensors if name in values]
        sizes |= {name: values[own] for name, own in version.integers.items()}
        if arrays and len(arrays) == len(version.program.tensors):
            sizes = version.program.fit(arrays, sizes)
        return version, sizes, values

    def _bound(
        self, arguments: tuple[Any, ...], named: dict[str, Any], partial: bool = False
    ) -> tuple[dict[str, Any], dict[str, int], dict[str, Known]]:
        """The values of the parameters, the sizes, which are the other keywords, and what the call
        says of values.
        """
        name = self.__name__
        if len(arguments) > len(self._names):
            raise TypeError(f"{name} takes {len(self._names)} arguments, and {len(arguments)} are given")
        values = dict(zip(self._names, arguments))
        sizes: dict[str, int] = {}
        for keyword, value in named.items():
            if keyword in values:
                raise TypeError(f"'{keyword}' of {name} is given twice")
            if keyword in self.specs:
                values[keyword] = value
            else:
                sizes[keyword] = value
        for parameter, default in self._defaults.items():
            values.setdefault(parameter, default)
        said: dict[str, Known] = {}
        for missing in self._names:
            own = self.specs[missing]
            if missing not in values:
                told = isinstance(own, Scalar) or (isinstance(own, Array) and own.layout is not None)
                if not (partial and told):
                    raise TypeError(f"{name} misses its argument '{missing}'")
            elif type(values[missing]) is Known:
                said[missing] = values[missing]
                values[missing] = said[missing].value
        for size, value in sizes.items():
            if isinstance(value, bool) or not hasattr(value, "__index__"):
                raise TypeError(f"the size '{size}' is an integer, not {type(value).__name__}")
        return values, {size: value.__index__() for size, value in sizes.items()}, said

    def _written(self, given: Given) -> Version:
        place = _def_line(self.function)

        def write() -> None:
            with _place.at(place):
                arguments: list[Any] = []
                for name, spec in self.specs.items():
                    if isinstance(spec, Scalar):
                        arguments.append(_native.launch_number(spec.element, name))
                    elif name in given.layouts:
                        role = spec.role if isinstance(spec, Array) else given.roles[name]
                        element, layout = given.layouts[name]
                        arguments.append(_native.global_tensor(element, name, layout, role))
                    elif isinstance(spec, Array):
                        arguments.append(_native.global_tensor(spec.element, name, spec.layout, spec.role))
                    elif name in given.sizes:
                        arguments.append(_native.launch_size(given.sizes[name]))
                    else:
                        arguments.append(given.constants[name])
                if self.threads is not None:
                    _native.threads(self.threads)
                if given.grid is not None:
                    for axis, count in zip("xyz", given.grid):
                        _native.grid(axis, count)
            self.function(*arguments)

        return Version(_native.write_kernel(self.__name__, write, place))

    def _run(self, grid: tuple[int, int, int] | None, arguments: tuple[Any, ...], named: dict[str, Any], checked: bool) -> None:
        values, sizes, said = self._bound(arguments, named)
        try:
            version = self._version(grid, values, said)
        except ValueError:
            if not self._all_said and self._is_over_nothing(values):
                return
            raise
        arrays = [values[name] for name, *_ in version.program.tensors]
        numbers = {name: values[name] for name, _ in version.program.numbers}
        for name, own in version.integers.items():
            sizes[name] = values[own]
        if not version.launcher.launch(arrays, numbers, sizes, grid):
            interpret(version.program, arrays, numbers, sizes, grid, checked)

    def _is_over_nothing(self, values: dict[str, Any]) -> bool:
        """Whether a call writes nothing because all arrays that it may write are empty. An array
        without elements has no layout for which a kernel could be made.
        """
        own = {name: spec for name, spec in self.specs.items() if not isinstance(spec, Scalar)}
        arrays = [name for name, spec in own.items() if name in values and (isinstance(spec, Array) or is_array(values[name]))]
        empty = [name for name in arrays if _native.is_empty(values[name])]
        unsaid = [name for name in empty if getattr(own[name], "layout", None) is None]
        if not unsaid:
            return False
        written = [name for name in arrays if getattr(own[name], "role", None) != "input" and name not in empty]
        if written:
            raise ValueError(
                f"'{unsaid[0]}' of {self.__name__} is empty, and '{written[0]}', which may be written, is not: "
                "an array without elements has no layout. Say which are read, and their layouts: x: tw.Input(..)"
            )
        return True

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}({', '.join(self._names)})>"


@overload
def jit(function: Callable[..., Any], /) -> Kernel: ...


@overload
def jit(
    function: None = None, /, *, threads: int | None = None, **specs: Array | Scalar
) -> Callable[[Callable[..., Any]], Kernel]: ...


def jit(function: Callable[..., Any] | None = None, /, *, threads: int | None = None, **specs: Any) -> Any:
    """Makes a kernel of a function.

    What each parameter is stands in its annotation, or as a keyword of the decorator: ``Input``,
    ``Output`` and ``InOut`` are tensors, ``Scalar`` a number of the launch. A parameter without
    either is what it is called with: an array is a tensor, which is an input where the kernel only
    reads it; anything else is a constant. Sizes of arrays and integers are numbers of the launch
    where the kernel does not use them as constants: `static` and `dynamic` say otherwise.

    >>> import tilewright as tw
    >>> @tw.jit(x=tw.Input("f32", "N{div=128}:1"), y=tw.Output("f32", "N:1"), threads=128)
    ... def twice(x, y):
    ...     x, y = (t.local_tile(128, tw.block("x"))[tw.thread,] for t in (x, y))
    ...     y.store(2.0 * x.load())
    >>> twice.check(N=512)
    """
    if function is None:
        return lambda function: Kernel(function, threads, specs)
    return Kernel(function, threads, specs)


__all__ = ["Array", "InOut", "Input", "Kernel", "Layout", "Output", "Scalar", "dynamic", "jit", "spec", "static"]
