"""Launches the kernels of operators.

Law: a call of an operator plans its tile programs for the options, the layouts of its arrays and
the device. An equal later call repeats the launches and plans nothing.
"""

from __future__ import annotations

import math
import threading
from typing import Any, NamedTuple

from . import _native, gpu
from ._arrays import Maker, empty, is_torch, made, maker
from ._interpret import interpret
from ._record import Launch, local, recorder

#: Options of an operator, by name.
Options = tuple[tuple[str, "bool | int | float | str"], ...]


class _Step(NamedTuple):
    """A kernel: its program, what launches it, and the names of its tensors and sizes."""

    program: _native.Program
    launcher: _native.Launcher
    tensors: list[tuple[str, str, str]]
    sizes: list[str]


class OperatorPlan:
    """The kernels of an operator for given options."""

    def __init__(self, name: str, options: Options, is_backward: bool, machine: str) -> None:
        self.text, programs = _native.operator_programs(name, dict(options), is_backward, machine)
        self.machine = machine
        self.steps = [
            _Step(
                program,
                _native.Launcher(program),
                [(tensor, element, role) for tensor, element, role, _ in program.tensors],
                [size.partition("{")[0] for size in program.sizes],
            )
            for program in programs
        ]

    @property
    def programs(self) -> list[_native.Program]:
        """The kernels, in the order in which they are launched."""
        return [step.program for step in self.steps]

    def __str__(self) -> str:
        return self.text


_kept: dict[Any, OperatorPlan] = {}
#: The launches of earlier calls, by function and options.
known_calls: dict[Any, _native.Calls] = {}
_lock = threading.Lock()
# Plans and calls are small; the objects that a program would keep for ever are not.
_MOST = 1024


def planned(name: str, options: Options, is_backward: bool, machine: str) -> OperatorPlan:
    """The kernels of an operator, compiled once for each set of options and machine."""
    key = (name, options, is_backward, machine)
    known = _kept.get(key)
    if known is None:
        known = OperatorPlan(name, options, is_backward, machine)
        with _lock:
            if len(_kept) >= _MOST:
                _kept.clear()
            known = _kept.setdefault(key, known)
    return known


class Matrix(NamedTuple):
    """Rows of an array, equally far apart, whose elements are contiguous."""

    #: The array, or a contiguous copy of it.
    array: Any
    #: The type of its elements.
    element: str
    rows: int
    length: int
    #: From a row to the next, in elements.
    pitch: int


def matrix(array: Any, on: str | None) -> Matrix:
    """The rows of an array along its last axis. An array whose strides no kernel takes is copied."""
    element, shape, strides, _, before = _native.array_axes(array)
    if not shape:
        return Matrix(array, element, 1, 1, 1)
    length = shape[-1]
    rows = math.prod(shape[:-1])
    pitch = gpu._pitch(shape, strides, range(len(shape) - 1)) if 0 not in shape else length
    if rows == 1:
        pitch = length
    if before or pitch is None or pitch < length or (length > 1 and strides[-1] != 1):
        room = empty(array, shape)
        if 0 not in shape:
            gpu.relayout(array, room, on=on)
        return Matrix(room, element, rows, length, length)
    return Matrix(array, element, rows, length, pitch)


def alignment(element: str, *numbers: int) -> int:
    """The power of two that divides all these numbers of elements, up to 16 bytes."""
    most = 16 // _BYTES[element]
    common = math.gcd(most, *numbers)
    return common & -common or most


_BYTES = {"f32": 4, "bf16": 2, "f16": 2, "e4m3": 1, "e5m2": 1, "i32": 4, "f64": 8, "i64": 8, "u8": 1, "i8": 1}


class Result(NamedTuple):
    """A result of an operator: an array that is given, or what makes one, row-major or with these
    strides.
    """

    shape: tuple[int, ...]
    element: str
    given: Any = None
    strides: tuple[int, ...] | None = None


def again(call: Any, inputs: tuple[Any, ...], outs: tuple[Any, ...] | None = None, numbers: dict[str, Any] | None = None) -> Any:
    """The results of a call, by repeating the launches of an equal earlier call; None if there was
    none.
    """
    known = known_calls.get(call)
    if known is None or local.recorder is not None:
        return None
    return known.call(inputs, outs, numbers)


def launch(
    plan: OperatorPlan,
    inputs: dict[str, Any],
    results: dict[str, Result],
    sizes: dict[str, int],
    on: str | None,
    *,
    numbers: dict[str, Any] | None = None,
    call: Any = None,
    called: tuple[Any, ...] | None = None,
) -> tuple[Any, ...]:
    """Launches the kernels on arrays by their names, and returns the results in the order of
    ``results``. Tensors that are neither inputs nor results are workspaces. ``call`` is the key
    under which the launches are kept for ``again``, if the kernels take the arrays ``called`` as
    they were passed.
    """
    like = next(iter(inputs.values()))
    recording = recorder()
    if recording is not None:
        recording.plans.append(plan)
    arrays = dict(inputs)
    makers: list[Maker] = []
    for name, result in results.items():
        if result.given is not None:
            arrays[name] = result.given
            continue
        makers.append(maker(like, result.shape, result.element, result.strides))
        arrays[name] = made(makers[-1], like)
    outs = tuple(arrays[name] for name in results)
    if recording is not None and recording.launches is None:
        return outs
    rooms: list[Maker] = []
    spaces: list[Any] = []
    names = [*inputs, *results]
    launched = []
    for step in plan.steps:
        own = {name: sizes[name] for name in step.sizes}
        missing = [at for at, (name, _, _) in enumerate(step.tensors) if name not in arrays]
        if missing:
            bytes_of = step.program.tensor_bytes(own)
            for at in missing:
                name, element, role = step.tensors[at]
                if role == "input":
                    # A workspace is written by a kernel before those that read it.
                    raise TypeError(f"{step.program.name} reads '{name}', which is not given and which no kernel before it writes")
                rooms.append(maker(like, (bytes_of[at] // _BYTES[element],), element))
                spaces.append(made(rooms[-1], like))
                arrays[name] = spaces[-1]
                names.append(name)
        tensors = [arrays[name] for name, _, _ in step.tensors]
        given = numbers if numbers is not None else {}
        if recording is not None and recording.launches is not None:
            recording.launches.append(Launch(step.launcher, tensors, [0] * len(tensors), own, given))
            continue
        if on == "interpreter":
            interpret(step.program, tensors, given, own)
            continue
        if not step.launcher.launch(tensors, given, own):
            raise TypeError(
                f"{step.program.name} runs on CUDA tensors, and these are arrays of the host: move them with `.cuda()`, "
                'or say on="interpreter" to run it there, checked and slowly'
            )
        launched.append((step.launcher, [(names.index(name), 0) for name, _, _ in step.tensors], own))
    is_simple = called is not None and len(called) == len(inputs) and all(a is b for a, b in zip(called, inputs.values()))
    if call is not None and launched and is_simple:
        all_made = len(makers) == len(results)
        if all_made or not makers:
            with _lock:
                if len(known_calls) >= _MOST:
                    known_calls.clear()
                calls = known_calls.setdefault(call, _native.Calls())
            kept = makers if all_made else None
            calls.keep(tuple(inputs.values()), outs, kept, (tuple(spaces), rooms), launched, numbers)
    return outs


def is_on_device(*arrays: Any) -> bool:
    """Whether an array is on a CUDA device."""
    for array in arrays:
        if array is None:
            continue
        if is_torch(array):
            return bool(array.is_cuda)
        if hasattr(array, "__cuda_array_interface__"):
            return True
    return False


def machine_of(array: Any) -> str:
    """The machine for which kernels on an array are compiled."""
    return gpu._machine(_native.array_axes(array)[3])
