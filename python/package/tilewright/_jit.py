"""Kernels that are written in Python: ``@jit``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin, overload

from . import _native, _place
from ._arrays import host_memory
from ._errors import KernelError
from ._native import Layout, Picture, Program, Tensor
from ._reports import Cost


class Array:
    """A tensor that a kernel takes: the type of its elements, and its layout.

    Sizes that become known at launch are names, with facts in braces: ``"(M{div=64},N):(N,1)"``.
    Without a layout, that of the array that is passed is taken, with numbers that are known; a
    kernel is written for each one.
    """

    role = "tensor"

    def __init__(self, element: Any, layout: Any = None) -> None:
        self.element = element
        self.layout = layout

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.element!r}, {str(self.layout)!r})"


class Input(Array):
    """A tensor that the kernel reads and never writes."""

    role = "input"


class Output(Array):
    """A tensor each element of which the kernel writes once."""

    role = "output"


class InOut(Array):
    """A tensor that the kernel reads and writes."""

    role = "tensor"


class Scalar:
    """A number that the launch passes, of a type of 16 bits or more."""

    def __init__(self, element: Any) -> None:
        self.element = element

    def __repr__(self) -> str:
        return f"Scalar({self.element!r})"


Spec = Array | Scalar | None


def _specs(function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Spec]:
    """What each parameter is: said in the annotations, or to the decorator."""
    import inspect

    # What is traced has a text, whose lines messages show.
    written: bool = inspect.isfunction(function) or inspect.ismethod(function)
    if not written:
        raise TypeError(f"a kernel is a function that is written in Python, with `def`, not {type(function).__name__}")
    annotations = getattr(function, "__annotations__", {})
    specs: dict[str, Spec] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise TypeError(f"'{name}' of {function.__name__}: a kernel has plain parameters, each with a name")
        said = given.pop(name, annotations.get(name))
        if isinstance(said, str):
            try:
                said = eval(said, function.__globals__, inspect.getclosurevars(function).nonlocals)
            except NameError as error:
                raise TypeError(
                    f"the annotation of '{name}' is not understood ({error}): say it to the decorator, @tw.jit({name}=tw.Input(..))"
                ) from None
        if get_origin(said) is Annotated:
            said = next((item for item in get_args(said)[1:] if isinstance(item, (Array, Scalar))), None)
        specs[name] = said if isinstance(said, (Array, Scalar)) else None
    if given:
        raise TypeError(f"{function.__name__} has no parameter '{next(iter(given))}'")
    return specs


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """The values of parameters that may be left out."""
    code = function.__code__
    values = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    return dict(zip(names[len(names) - len(values) :], values))


def _is_array(value: Any) -> bool:
    if isinstance(value, Tensor):
        return True
    return hasattr(value, "__array_interface__") or hasattr(value, "__cuda_array_interface__") or hasattr(value, "data_ptr")


def _def_line(function: Callable[..., Any]) -> tuple[str, int, int, None]:
    """The line of ``def``: below those of the decorators."""
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
    """A block by its place along each axis of the grid."""
    axes = block if isinstance(block, tuple) else (block,)
    if not 1 <= len(axes) <= 3 or any(isinstance(axis, bool) or not hasattr(axis, "__index__") for axis in axes):
        raise TypeError(f"a block is one to three numbers, its place in the grid, not {block!r}")
    x, y, z = (*(axis.__index__() for axis in axes), 0, 0)[:3]
    return x, y, z


class _Version:
    """A kernel for some constants and layouts."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.launcher = _native.Launcher(program)


class Kernel:
    """A kernel: a function of Python that is traced once for each set of constants and layouts that
    it is called with.

    ``kernel(a, b, c)`` runs it: on the GPU where the arrays are CUDA tensors, on PyTorch's current
    stream there; on the interpreter, which checks every access, where they are arrays of NumPy or
    tensors of the host. Outputs are written in place. How many blocks there are follows from the
    layouts; ``kernel[grid](a, b, c)`` says it, and is refused if it is another number. Sizes that
    no array tells are keywords: ``kernel(a, b, c, K=64)``.
    """

    def __init__(self, function: Callable[..., Any], threads: int | None, specs: dict[str, Any]) -> None:
        self.function = function
        self.threads = threads
        self.specs = _specs(function, dict(specs))
        self._names = list(self.specs)
        self._defaults = _defaults(function)
        self._all_said = all(isinstance(spec, Array) and spec.layout is not None for spec in self.specs.values())
        self._versions: dict[Any, _Version] = {}
        self._only: _Version | None = None
        self._launch: Callable[..., bool] | None = None
        self._count = len(self.specs)
        self._lock = threading.Lock()
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        launch = self._launch
        if launch is not None and not named and len(arguments) == self._count and not _native.is_tracing():
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
        values, sizes, _ = self._bound(arguments, named, partial=True)
        for name, value in values.items():
            if isinstance(self.specs[name], Array) and not _is_array(value):
                raise TypeError(f"'{name}' of {self.function.__name__} is an array, not {type(value).__name__}")
        return self._version(None, values, sizes).program

    def ptx(self, *arguments: Any, target: str = "sm_90a", **named: Any) -> str:
        """The text for a GPU: for "sm_80", "sm_89" or "sm_90a", which may stand behind the
        arguments as well: ``kernel.ptx("sm_80")``.
        """
        if arguments and isinstance(arguments[-1], str) and arguments[-1].startswith("sm_"):
            *arguments, target = arguments  # type: ignore[assignment]
        return self.program(*arguments, **named).ptx(target)

    def cost(self, *arguments: Any, machine: str = "H200", **named: Any) -> Cost:
        """What a launch costs, before it runs, on a machine: "H200", "H100" or "A100". Sizes are
        those of the arrays, or keywords. The result is a text, and has its numbers as attributes.
        """
        program, sizes, _ = self._asked(arguments, named)
        return Cost(*program.cost(sizes, machine))

    def draw(
        self,
        *arguments: Any,
        block: tuple[int, ...] = (0, 0, 0),
        warp: int = 0,
        line: int | None = None,
        **named: Any,
    ) -> Picture:
        """What the lanes of a warp of a block reach, at the sizes of arrays or keywords: of tensors
        by lines and sectors, of shared memory by banks, statement by statement; or of those at one
        line of the file. SVG in a notebook, text when it is printed.
        """
        program, sizes, _ = self._asked(arguments, named)
        return program.draw(sizes, _grid_place(block), warp, line)

    def check(self, *arguments: Any, **named: Any) -> None:
        """Runs the kernel on the interpreter under every schedule, and raises what it finds:
        accesses outside, races, deadlocks, outputs that are not written once. On arrays, whose
        contents it takes and leaves; or at sizes, ``kernel.check(M=300)``, with contents by chance.
        """
        values, sizes, names = self._bound(arguments, named, partial=True)
        version = self._version(None, values, sizes)
        arrays = [values[name] for name, *_ in version.program.tensors if name in values]
        numbers = {name: values.get(name, 1) for name, _ in version.program.numbers}
        if len(arrays) == len(version.program.tensors):
            self._interpret(version, arrays, numbers, sizes, None, True)
        else:
            version.program.check(sizes, numbers)

    def _asked(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Program, dict[str, int], dict[str, Any]]:
        values, sizes, _ = self._bound(arguments, named, partial=True)
        version = self._version(None, values, sizes)
        arrays = [values[name] for name, *_ in version.program.tensors if name in values]
        if arrays and len(arrays) == len(version.program.tensors):
            sizes = version.program.fit(arrays, sizes)
        return version.program, sizes, values

    def _bound(
        self, arguments: tuple[Any, ...], named: dict[str, Any], partial: bool = False
    ) -> tuple[dict[str, Any], dict[str, int], None]:
        """The values of the parameters, and the sizes, which are the other keywords."""
        name = self.function.__name__
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
        for missing in self._names:
            spec = self.specs[missing]
            told = isinstance(spec, Scalar) or (isinstance(spec, Array) and spec.layout is not None)
            if missing not in values and not (partial and told):
                raise TypeError(f"{name} misses its argument '{missing}'")
        for size, value in sizes.items():
            if isinstance(value, bool) or not hasattr(value, "__index__"):
                raise TypeError(f"the size '{size}' is an integer, not {type(value).__name__}")
        return values, {size: value.__index__() for size, value in sizes.items()}, None

    def _version(self, grid: tuple[int, int, int] | None, values: dict[str, Any], sizes: dict[str, int]) -> _Version:
        """The kernel for these values, traced if it is not known."""
        if self._only is not None:
            return self._only
        key: list[Any] = []
        arrays: dict[str, tuple[Any, Any]] = {}
        for name, spec in self.specs.items():
            if isinstance(spec, Scalar) or (isinstance(spec, Array) and spec.layout is not None):
                continue
            value = values[name]
            if isinstance(spec, Array) or _is_array(value):
                element, layout = _native.array_layout(value)
                arrays[name] = (spec.element if isinstance(spec, Array) else element, layout)
                key.append((name, *arrays[name]))
                continue
            try:
                hash(value)
            except TypeError:
                raise TypeError(
                    f"'{name}' of {self.function.__name__} is {type(value).__name__}: an argument is an array, or a constant that can "
                    "be hashed, such as a number, a tuple or a layout"
                ) from None
            key.append((name, type(value), value))
        known = self._versions.get((*key, None)) or self._versions.get((*key, grid))
        if known is not None:
            return known
        with self._lock:
            known = self._versions.get((*key, None)) or self._versions.get((*key, grid))
            if known is None:
                try:
                    known, of = self._written(values, arrays, None), None
                except KernelError as error:
                    # No tensor says how many blocks there are, or views say different numbers.
                    if grid is None or error.code not in ("E0908", "E0909") or "blocks" not in error.message:
                        raise
                    known, of = self._written(values, arrays, grid), grid
                self._versions[(*key, of)] = known
                if self._all_said and of is None:
                    self._only = known
                    self._launch = known.launcher.launch
        return known

    def _written(self, values: dict[str, Any], arrays: dict[str, tuple[Any, Any]], grid: tuple[int, int, int] | None) -> _Version:
        place = _def_line(self.function)

        def write() -> None:
            with _place.at(place):
                given: list[Any] = []
                for name, spec in self.specs.items():
                    if isinstance(spec, Scalar):
                        given.append(_native.launch_number(spec.element, name))
                    elif name in arrays:
                        role = spec.role if isinstance(spec, Array) else "tensor"
                        given.append(_native.global_tensor(arrays[name][0], name, arrays[name][1], role))
                    elif isinstance(spec, Array):
                        given.append(_native.global_tensor(spec.element, name, spec.layout, spec.role))
                    else:
                        given.append(values[name])
                if self.threads is not None:
                    _native.threads(self.threads)
                if grid is not None:
                    for axis, count in zip("xyz", grid):
                        _native.grid(axis, count)
            self.function(*given)

        return _Version(_native.write_kernel(self.function.__name__, write, place))

    def _run(self, grid: tuple[int, int, int] | None, arguments: tuple[Any, ...], named: dict[str, Any], checked: bool) -> None:
        values, sizes, _ = self._bound(arguments, named)
        if not self._all_said and self._is_over_nothing(values):
            return
        version = self._version(grid, values, sizes)
        arrays = [values[name] for name, *_ in version.program.tensors]
        numbers = {name: values[name] for name, _ in version.program.numbers}
        if not version.launcher.launch(arrays, numbers, sizes, grid):
            self._interpret(version, arrays, numbers, sizes, grid, checked)

    def _is_over_nothing(self, values: dict[str, Any]) -> bool:
        """Whether a call writes nothing, for the arrays that it may write are empty. Without elements
        an array has no layout, of which a kernel could be written.
        """
        own = {name: spec for name, spec in self.specs.items() if not isinstance(spec, Scalar)}
        arrays = [name for name, spec in own.items() if name in values and (isinstance(spec, Array) or _is_array(values[name]))]
        empty = [name for name in arrays if _native.is_empty(values[name])]
        unsaid = [name for name in empty if getattr(own[name], "layout", None) is None]
        if not unsaid:
            return False
        written = [name for name in arrays if getattr(own[name], "role", None) != "input" and name not in empty]
        if written:
            raise ValueError(
                f"'{unsaid[0]}' of {self.function.__name__} is empty, and '{written[0]}', which may be written, is not: "
                "an array without elements has no layout. Say which are read, and their layouts: x: tw.Input(..)"
            )
        return True

    def _interpret(
        self,
        version: _Version,
        arrays: list[Any],
        numbers: dict[str, Any],
        sizes: dict[str, int],
        grid: tuple[int, int, int] | None,
        checked: bool,
    ) -> None:
        interpret(version.program, arrays, numbers, sizes, grid, checked)

    def __repr__(self) -> str:
        return f"<kernel {self.function.__name__}({', '.join(self._names)})>"


def interpret(
    program: Program,
    arrays: list[Any],
    numbers: dict[str, Any],
    sizes: dict[str, int],
    grid: tuple[int, int, int] | None = None,
    checked: bool = False,
) -> None:
    """Runs a kernel on the interpreter, on arrays of the host; a check leaves them as they were."""
    import numpy as np

    written = [role != "input" for _, _, role, _ in program.tensors]
    if not checked and len(arrays) == len(written):
        _native.check_arrays(arrays, written)
    sizes = program.fit(arrays, sizes)
    if grid is not None and program.blocks(sizes) != grid:
        raise KernelError(
            f"`{program.name}` has {program.blocks(sizes)} blocks for these arrays, and {grid} are asked for",
            code="E0908",
            help="leave the grid out: it follows from the layouts",
        )
    # A workspace may be longer than what one kernel takes of it.
    memory = [host_memory(array)[:count] for array, count in zip(arrays, program.tensor_bytes(sizes))]
    for first in range(len(memory)):
        for second in range(first):
            if (written[first] or written[second]) and np.may_share_memory(memory[first], memory[second]):
                names = program.tensors[second][0], program.tensors[first][0]
                raise ValueError(f"`{names[0]}` and `{names[1]}` of {program.name} share memory, and one of them is written")
    left = program.interpret(sizes, memory, numbers, all_schedules=checked)
    if checked:
        return
    for into, contents in zip(memory, left):
        if contents is not None:
            into[...] = contents
    _native.mark_written([array for array, writes in zip(arrays, written) if writes])


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
    either is what it is called with: an array is a tensor with the array's own layout that may be
    read and written, and anything else a constant, for each value of which a kernel is written.

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


__all__ = ["Array", "InOut", "Input", "Kernel", "Layout", "Output", "Scalar", "jit"]
