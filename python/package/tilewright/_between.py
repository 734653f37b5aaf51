"""Plans carried out by processes, on arrays of PyTorch or NumPy.

What a process sends, receives and puts in place is computed by the plan (``Resharding.steps``). Here
it becomes views of arrays, copies, sums, and messages of a group.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, TypeVar, cast

from ._group import Group
from ._native import Resharding, Sharded, check_arrays

# Elements in memory: an array of one axis for each of its parts. A tensor has one; what is combined
# may have two, such as a maximum and a sum.
Columns = list[Any]
# Puts what came into the place of what is there.
Combine = Callable[[Columns, Columns], None]
_Modes = Sequence[tuple[int, int, int]]

_Function = TypeVar("_Function", bound=Callable[..., Any])

# From so many runs on, a message is read and written by the numbers of its elements.
RUNS = 16


class Arrays:
    """What arrays of a library are made and looked at with."""

    def __init__(self, array: Any) -> None:
        kind = type(array).__module__.split(".")[0]
        if kind not in ("torch", "numpy"):
            raise TypeError(f"expected a tensor of PyTorch or an array of NumPy, not {type(array).__name__}")
        self.is_torch = kind == "torch"
        # Functions that both have under one name.
        self.of: Any = importlib.import_module(kind)
        self.device = array.device if self.is_torch else None

    def element(self, array: Any) -> str:
        return str(array.dtype).removeprefix("torch.")

    def empty(self, count: int, dtype: Any) -> Any:
        return self.of.empty(count, dtype=dtype, device=self.device) if self.is_torch else self.of.empty(count, dtype)

    def zeros(self, count: int, dtype: Any) -> Any:
        return self.of.zeros(count, dtype=dtype, device=self.device) if self.is_torch else self.of.zeros(count, dtype)

    def to(self, array: Any, dtype: Any) -> Any:
        return array.to(dtype) if self.is_torch else array.astype(dtype, copy=False)

    def wide(self, array: Any) -> Any:
        """The type in which elements are added up and exponentials are taken."""
        half = self.is_torch and array.dtype in (self.of.float16, self.of.bfloat16) or array.dtype == "float16"
        return self.of.float32 if half else array.dtype

    def least(self, dtype: Any) -> Any:
        """The least number of a type."""
        is_real = dtype.is_floating_point if self.is_torch else dtype.kind == "f"
        return -math.inf if is_real else self.of.iinfo(dtype).min

    def view(self, flat: Any, start: int, extents: Sequence[int], strides: Sequence[int]) -> Any:
        """Elements of an array of one axis, without a copy."""
        if self.is_torch:
            return flat.as_strided(tuple(extents), tuple(strides), flat.storage_offset() + start)
        bytes_ = tuple(stride * flat.itemsize for stride in strides)
        return self.of.lib.stride_tricks.as_strided(flat[start:], tuple(extents), bytes_)

    def line(self, view: Any) -> Any:
        """The elements of a view as one contiguous axis; without a copy, if they are contiguous."""
        return view.reshape(-1).contiguous() if self.is_torch else self.of.ascontiguousarray(view.reshape(-1))

    def numbers(self, start: int, extents: Sequence[int], strides: Sequence[int]) -> Any:
        """The numbers of elements, the last axis fastest."""
        make = (lambda count: self.of.arange(count, device=self.device)) if self.is_torch else self.of.arange
        numbers = make(1) + start
        for extent, stride in zip(extents, strides):
            numbers = (numbers[:, None] + make(extent) * stride).reshape(-1)
        return numbers

    def quiet(self) -> Any:
        """In which differences of infinities, which are no numbers, raise no warning."""
        return nullcontext() if self.is_torch else self.of.errstate(invalid="ignore")

    def is_flat(self, array: Any) -> bool:
        return bool(array.is_contiguous() if self.is_torch else array.flags.c_contiguous)


def _side(start: tuple[int, int], modes: _Modes, side: int) -> tuple[int, list[int], list[int]]:
    return start[side], [mode[0] for mode in modes], [mode[1 + side] for mode in modes]


class Message:
    """Elements with one layout at the sender and another one at the receiver."""

    def __init__(self, starts: Sequence[tuple[int, int]], modes: _Modes) -> None:
        self.starts, self.modes = starts, modes
        self.run = math.prod(mode[0] for mode in modes)
        self.size = self.run * len(starts)
        self._numbers: dict[tuple[int, Any], Any] = {}

    def lies_whole(self, side: int) -> bool:
        """Whether its elements are contiguous, in the order in which they are sent."""
        next_ = 1
        for mode in reversed(self.modes):
            if mode[1 + side] != next_:
                return False
            next_ *= mode[0]
        return len(self.starts) == 1

    def views(self, arrays: Arrays, flat: Any, side: int) -> list[Any]:
        return [arrays.view(flat, *_side(start, self.modes, side)) for start in self.starts]

    def numbers(self, arrays: Arrays, side: int) -> Any:
        """The numbers of its elements, where they are read or written."""
        key = (side, arrays.device)
        if key not in self._numbers:
            all_ = [arrays.numbers(*_side(start, self.modes, side)) for start in self.starts]
            self._numbers[key] = arrays.of.concatenate(all_)
        return self._numbers[key]

    def read(self, arrays: Arrays, flat: Any) -> Any:
        """Its elements, in the order in which they are sent, as an array of one axis."""
        if len(self.starts) > RUNS:
            return flat[self.numbers(arrays, 0)]
        runs = [arrays.line(view) for view in self.views(arrays, flat, 0)]
        return runs[0] if len(runs) == 1 else arrays.of.concatenate(runs)

    def write(self, arrays: Arrays, values: Columns, places: Columns, combine: Combine | None) -> None:
        """Writes received elements to their places; with ``combine``, combines them with the old
        values.
        """
        if len(self.starts) > RUNS:
            numbers = self.numbers(arrays, 1)
            held = [place[numbers] for place in places]
            if combine is not None:
                combine(held, values)
            for place, one in zip(places, values if combine is None else held):
                place[numbers] = one
            return
        extents = [mode[0] for mode in self.modes]
        for at, start in enumerate(self.starts):
            part = slice(at * self.run, (at + 1) * self.run)
            own = [value[part].reshape(tuple(extents)) for value in values]
            views = [arrays.view(place, *_side(start, self.modes, 1)) for place in places]
            if combine is not None:
                combine(views, own)
                continue
            for view, one in zip(views, own):
                view[...] = one


class Step:
    """What a process does in a step of a plan."""

    def __init__(self, kind: str, reach: int, is_full: bool, sends: Any, arrivals: Any, rank: int) -> None:
        self.kind, self.reach, self.is_full, self.rank = kind, reach, is_full, rank
        # All processes say so of a step, or none.
        self.is_local = kind in ("nothing", "local relayout", "slice")
        self.sends: dict[int, list[Message]] = {}
        for to, views in sends:
            self.sends.setdefault(to, []).append(Message(*views))
        self.arrivals = [(source, add, Message(*views)) for source, add, views in arrivals]
        self.sources: dict[int, list[Message]] = {}
        for source, _, message in self.arrivals:
            if source != rank:
                self.sources.setdefault(source, []).append(message)
        adds = {source for source, add, _ in self.arrivals if add}
        # Bytes that are received where they belong.
        self.direct = {
            source: messages[0].starts[0][1]
            for source, messages in self.sources.items()
            if len(messages) == 1 and source not in adds and messages[0].lies_whole(1)
        }

    def carry(self, name: str, group: Group, arrays: Arrays, columns: Columns, combine: Combine) -> Columns:
        make = arrays.empty if self.is_full else arrays.zeros
        results = [make(self.reach, column.dtype) for column in columns]
        come: list[dict[int, Any]] = []
        for column, result in zip(columns, results):
            sends = []
            for to, messages in self.sends.items():
                parts = [message.read(arrays, column) for message in messages]
                sends.append((to, parts[0] if len(parts) == 1 else arrays.of.concatenate(parts)))
            buffers = {}
            for source, messages in self.sources.items():
                size = sum(message.size for message in messages)
                start = self.direct.get(source)
                place = arrays.empty(size, column.dtype) if start is None else result[start : start + size]
                buffers[source] = place
            if not self.is_local:
                group.exchange(name, sends, list(buffers.items()))
            come.append(buffers)
        taken = dict.fromkeys(self.sources, 0)
        for source, add, message in self.arrivals:
            if source == self.rank:
                values = [message.read(arrays, column) for column in columns]
            elif source in self.direct:
                continue
            else:
                at = taken[source]
                taken[source] = at + message.size
                values = [buffers[source][at : at + message.size] for buffers in come]
            message.write(arrays, values, results, combine if add else None)
        return results


class Move:
    """A plan between two layouts, with the work of each process."""

    def __init__(self, plan: Resharding) -> None:
        self.before, self.after, self.contract = plan.before, plan.after, plan.contract
        self._plan = plan
        self._steps: dict[int, list[Step]] = {}

    def steps(self, rank: int) -> list[Step]:
        if rank not in self._steps:
            self._steps[rank] = [Step(*step, rank) for step in self._plan.steps(rank)]
        return self._steps[rank]


def remembered(function: _Function) -> _Function:
    """Keeps the results of the last calls, and the signature."""
    return cast(_Function, lru_cache(maxsize=1024)(function))


@remembered
def part_of(layout: Sharded, rank: int) -> Any:
    """What a process has of a tensor."""
    return layout.part(rank)


def add(places: Columns, values: Columns) -> None:
    """The sum of the old and the received elements."""
    for place, value in zip(places, values):
        place += value


class Work:
    """What a process does in one call: moves between work on its own memory."""

    def __init__(self, group: Group, arrays: Arrays) -> None:
        self.group, self.arrays = group, arrays
        # What is going on, for errors.
        self.step = "before step 1"

    def move(self, move: Move, columns: Columns, of: str = "", combine: Combine = add) -> Columns:
        """The memory of this process after a plan."""
        for number, step in enumerate(move.steps(self.group.rank)):
            self.step = f"step {number + 1}{' of ' if of else ''}{of}, {step.kind}"
            columns = step.carry(self.step, self.group, self.arrays, columns, combine)
        return columns

    def memory(self, array: Any, layout: Sharded) -> Any:
        """The memory that a tensor of this process is, under a layout: an array of one axis.

        It is the local tensor, with an axis for each mode, or the memory itself.
        """
        arrays, reach = self.arrays, layout.reach
        # What moves is elements; no gradient goes through it.
        check_arrays([array], [False])
        if arrays.is_torch:
            array = array.detach()
        part = part_of(layout, self.group.rank)
        if part is None:
            return arrays.zeros(reach, array.dtype)
        start, modes = part
        shape = _local_shape(modes)
        if tuple(array.shape) != shape:
            if len(array.shape) == 1 and arrays.is_flat(array):
                needed = layout.reach_on(self.group.rank)
                if array.shape[0] < needed:
                    self.group.too_small(array.shape[0], needed)
                return array
            raise ValueError(
                f"rank {self.group.rank} has a tensor of shape {tuple(array.shape)}, and {layout} gives it "
                f"{shape}; memory as one axis has {layout.reach_on(self.group.rank)} elements or more"
            )
        extents, strides = _axes(modes)
        if start == 0 and arrays.is_flat(array) and _is_row_major(extents, strides):
            return array.reshape(-1)
        memory = arrays.zeros(reach, array.dtype)
        arrays.view(memory, start, extents, strides)[...] = array.reshape(tuple(extents))
        return memory

    def tensor(self, memory: Any, layout: Sharded) -> Any:
        """The local tensor, with an axis for each mode, in memory under a layout: a view if it can be."""
        part = part_of(layout, self.group.rank)
        if part is None:
            return memory[:0].reshape((0,) * max(len(_shape(layout)), 1))
        start, modes = part
        return self.arrays.view(memory, start, *_axes(modes)).reshape(_local_shape(modes))


def _shape(layout: Sharded) -> tuple[Any, ...]:
    shape = layout.shape
    return shape if isinstance(shape, tuple) else (shape,)


def _local_shape(modes: Any) -> tuple[int, ...]:
    return tuple(math.prod(run[0] for run in runs) for _, runs in modes)


def _axes(modes: Any) -> tuple[list[int], list[int]]:
    """Extents and strides of all loops, the innermost of each mode last."""
    runs = [run for _, runs in modes for run in reversed(runs)]
    return [run[0] for run in runs], [run[2] for run in runs]


def _is_row_major(extents: Sequence[int], strides: Sequence[int]) -> bool:
    next_ = 1
    if 0 in extents:
        return True
    for extent, stride in zip(reversed(extents), reversed(strides)):
        if stride != next_:
            return False
        next_ *= extent
    return True
