"""Work on sharded tensors by all processes of a group: one call each.

Each call makes a plan from the layouts, which all processes compare before anything moves. What a
process computes on its own memory is made of the functions of its library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from . import _native
from ._between import Arrays, Columns, Move, Work, add, part_of, remembered
from ._group import Group, group_of
from ._native import Sharded


class _Planned:
    """The moves of a call, and the text on which all processes agree."""

    def __init__(self, operation: str, moves: Sequence[_native.Resharding]) -> None:
        self.moves = [Move(plan) for plan in moves]
        self.text = f"operation: {operation}\n" + "".join(move.contract for move in self.moves)
        self.mesh = self.moves[0].before.mesh


@remembered
def _resharding(before: Sharded, after: Sharded, bytes_: int, machine: str | None) -> _Planned:
    return _Planned("reshard", [before.reshard(after, bytes_, machine)])


@remembered
def _mapping(layouts: tuple[Sharded, ...], after: Sharded, bytes_: int, machine: str | None) -> _Planned:
    return _Planned("map", layouts[0].map(layouts[1:], after, bytes_, machine).moves)


@remembered
def _reduction(
    before: Sharded, over: tuple[int, ...], after: Sharded, bytes_: int, by: str, machine: str | None
) -> _Planned:
    return _Planned(f"{by} over modes {list(over)}", before.reduce(over, after, bytes_, by, machine).moves)


@remembered
def _softmax(before: Sharded, over: tuple[int, ...], after: Sharded, bytes_: int, machine: str | None) -> _Planned:
    return _Planned(f"softmax over modes {list(over)}", before.softmax(over, after, bytes_, machine).moves)


@remembered
def _product(a: Sharded, b: Sharded, after: Sharded, bytes_: int, rate: float, machine: str | None) -> _Planned:
    plan = a.multiply(b, after, bytes_, rate, machine)
    return _Planned(f"product by {', '.join(plan.roles)}", plan.moves)


def _beside(
    group: Any,
    arrays: Sequence[Any],
    planned: Callable[[int], _Planned],
    work: Callable[[Work, _Planned], Any],
) -> Any:
    """Carries out a call. Whatever ends it on one process ends it on all."""
    processes: Group = group_of(group)
    kinds = Arrays(arrays[0])
    doing = Work(processes, kinds)
    try:
        plan = planned(arrays[0].itemsize)
        if processes.check:
            elements = ", ".join(kinds.element(array) for array in arrays)
            text = f"version: {_native.__version__}\nelement: {elements}\n{plan.text}"
            processes.agree(doing.step, text, plan.mesh.size)
        with kinds.quiet():
            done = work(doing, plan)
        if processes.check and processes.wait:
            processes.agree("after the last step", "")
        return done
    except BaseException as error:
        processes.fail(doing.step, error)


def _modes(over: int | Sequence[int]) -> tuple[int, ...]:
    modes = tuple(over) if isinstance(over, Sequence) and not isinstance(over, str) else (over,)
    if any(isinstance(mode, bool) or not hasattr(mode, "__index__") for mode in modes):
        raise TypeError(f"the modes are a number, or a tuple of numbers from 0 on, not {over!r}")
    return tuple(mode.__index__() for mode in modes)


def reshard(tensor: Any, before: Sharded, after: Sharded, group: Any = None, *, machine: str | None = None) -> Any:
    """The local part of a tensor after it was moved from one sharded layout to another.

    ``tensor`` is the local part with the layout ``before``: a tensor of PyTorch, or an array of
    NumPy if processes are connected by sockets, with an axis for each mode, or its memory as one
    axis. The result is the local part with the layout ``after``. Summands are added in the order of
    their index. All processes of the group must make the same call.

    >>> import numpy as np
    >>> import tilewright as tw
    >>> alone = tw.mesh.Processes(0, 1, "127.0.0.1", 29500)  # this process and no other
    >>> mesh = tw.mesh.Mesh("tp=1")
    >>> rows, columns = mesh.layout("(2,3):(3,1)"), mesh.layout("(2,3):(1,2)")
    >>> moved = tw.mesh.reshard(np.array([[1, 2, 3], [4, 5, 6]]), rows, columns, alone)
    >>> moved.tolist(), moved.strides == (8, 16)
    ([[1, 2, 3], [4, 5, 6]], True)

    Errors are ``LayoutError``, on every process, and name a rank and a step: one that is lost
    (E1111), is about to do something else (E1110), or has too little memory (E1109).
    """

    def work(doing: Work, plan: _Planned) -> Any:
        (move,) = plan.moves
        columns = doing.move(move, [doing.memory(tensor, before)])
        return doing.tensor(columns[0], after)

    return _beside(group, [tensor], lambda bytes_: _resharding(before, after, bytes_, machine), work)


def map(
    function: Callable[..., Any],
    tensors: Sequence[Any],
    layouts: Sequence[Sharded],
    after: Sharded,
    group: Any = None,
    *,
    machine: str | None = None,
) -> Any:
    """An elementwise function of tensors with different shardings, with the layout ``after``.

    ``function`` gets as many arrays of one shape, and returns one of that shape, each of whose
    elements depends only on the elements at the same index: ``torch.add``, or ``lambda a, b: a * b
    + 1``. All processes must pass the same function.

    >>> import numpy as np
    >>> import tilewright as tw
    >>> alone = tw.mesh.Processes(0, 1, "127.0.0.1", 29500)  # this process and no other
    >>> mesh = tw.mesh.Mesh("tp=1")
    >>> rows, columns = mesh.layout("(2,3):(3,1)"), mesh.layout("(2,3):(1,2)")
    >>> x = np.arange(6).reshape(2, 3)
    >>> tw.mesh.map(np.add, [x, x], [rows, columns], rows, alone).tolist()
    [[0, 2, 4], [6, 8, 10]]

    Errors: as :func:`reshard`; a ``ValueError`` where tensors and layouts differ in number.
    """

    def work(doing: Work, plan: _Planned) -> Any:
        *operands, result = plan.moves
        held = []
        for number, (move, tensor, layout) in enumerate(zip(operands, tensors, layouts)):
            columns = doing.move(move, [doing.memory(tensor, layout)], f"operand {number + 1}")
            held.append(doing.tensor(columns[0], move.after))
        doing.step = "in the function of elements"
        made = function(*held)
        if tuple(made.shape) != tuple(held[0].shape):
            raise ValueError(f"the function made shape {tuple(made.shape)} of {tuple(held[0].shape)}")
        columns = doing.move(result, [doing.memory(made, result.before)], "the result")
        return doing.tensor(columns[0], after)

    if not callable(function):
        raise TypeError(f"what is computed is a function of arrays, such as numpy.add, not {function!r}")
    if not all(isinstance(given, Sequence) for given in (tensors, layouts)):
        raise TypeError("tensors and their layouts are two lists: map(f, [x, y], [rows, columns], to)")
    if not tensors or len(tensors) != len(layouts):
        raise ValueError(f"each of {len(tensors)} tensors has a layout, and {len(layouts)} were given")
    return _beside(group, tensors, lambda bytes_: _mapping(tuple(layouts), after, bytes_, machine), work)


class _Local:
    """The local elements, with the reduced modes after the others."""

    def __init__(self, doing: Work, over: Sequence[int], at: Sharded, made: Sharded) -> None:
        self.arrays, rank = doing.arrays, doing.group.rank
        own, others = part_of(at, rank), part_of(made, rank)
        self.is_there = own is not None
        self.reach = made.reach
        if own is None:
            return
        self.start, modes = own
        # Of unequal parts the last ones may have nothing.
        self.is_there = all(run[0] > 0 for _, runs in modes for run in runs)
        if not self.is_there:
            return
        kept: list[Any] = []
        reduced, weight, self.first = [], 1, 0
        sizes = _sizes(at)
        # Indices count along the last mode fastest, as those of arrays do.
        for mode, (first, runs) in reversed(list(enumerate(modes))):
            if mode not in over:
                kept = [(extent, stride) for extent, _, stride in runs] + kept
                continue
            self.first += weight * first
            reduced += [(weight * index, extent, stride) for extent, index, stride in runs]
            weight *= sizes[mode]
        # The last axis has the smallest step in the index, so the first of equal elements has the
        # smallest index.
        reduced.sort(reverse=True)
        self.kept = [extent for extent, _ in kept]
        self.strides = [stride for _, stride in kept]
        self.reduced = [(extent, stride) for _, extent, stride in reduced]
        self.weights = [index for index, _, _ in reduced]
        self.made_start, made_modes = others
        self.made = [run[2] for mode, (_, runs) in enumerate(made_modes) if mode not in over for run in runs]

    def elements(self, memory: Any) -> Any:
        """The elements, with those that are reduced together along the last axis."""
        return self.view(memory).reshape((*self.kept, math.prod(extent for extent, _ in self.reduced)))

    def view(self, memory: Any) -> Any:
        """A view of the elements, one axis for each loop, with as many axes after them."""
        return self.arrays.view(
            memory,
            self.start,
            self.kept + [extent for extent, _ in self.reduced],
            self.strides + [stride for _, stride in self.reduced],
        )

    def placed(self, values: Any) -> Any:
        """What was made, in memory."""
        memory = self.arrays.zeros(self.reach, values.dtype)
        self.arrays.view(memory, self.made_start, self.kept, self.made)[...] = values
        return memory

    def of_row(self, memory: Any) -> Any:
        """What belongs to each element that :meth:`view` has."""
        view = self.arrays.view(memory, self.made_start, self.kept, self.made)
        return view.reshape((*self.kept, *([1] * len(self.reduced))))

    def index(self) -> Any:
        """The index of each element along the last axis."""
        return self.arrays.numbers(self.first, [extent for extent, _ in self.reduced], self.weights)


def _sizes(layout: Sharded) -> list[int]:
    shape = layout.shape
    modes = shape if isinstance(shape, tuple) else (shape,)
    return [_size(mode) for mode in modes]


def _size(mode: Any) -> int:
    return math.prod(_size(part) for part in mode) if isinstance(mode, tuple) else int(mode)


def _reduce(
    tensor: Any,
    before: Sharded,
    over: int | Sequence[int],
    after: Sharded,
    by: str,
    group: Any,
    machine: str | None,
) -> Any:
    modes = _modes(over)

    def work(doing: Work, plan: _Planned) -> Any:
        arrays = doing.arrays
        operand, parts, *rest = plan.moves
        (memory,) = doing.move(operand, [doing.memory(tensor, before)], "the operand")
        doing.step = "in the reduction"
        local = _Local(doing, modes, operand.after, parts.before)
        columns = _made(local, memory, by)
        combine = {"max": _larger(arrays), "argmax": _better(arrays)}.get(by, add)
        columns = doing.move(parts, columns, "the parts", combine)
        if by == "mean":
            sizes = _sizes(before)
            columns = [columns[0] / math.prod(sizes[mode] for mode in modes)]
        columns = columns[-1:] if by == "argmax" else [arrays.to(columns[0], tensor.dtype)]
        for move in rest:
            columns = doing.move(move, columns, "the result")
        return doing.tensor(columns[0], after)

    return _beside(group, [tensor], lambda bytes_: _reduction(before, modes, after, bytes_, by, machine), work)


# The index of no element: every other one is smaller.
LAST = (1 << 63) - 1


def _made(local: _Local, memory: Any, by: str) -> Columns:
    """What a process makes of its part."""
    arrays = local.arrays
    wide = arrays.wide(memory) if by in ("sum", "mean") else memory.dtype
    if not local.is_there:
        # What changes nothing when it is combined.
        made = arrays.zeros(local.reach, wide)
        if by in ("sum", "mean"):
            return [made]
        made[...] = arrays.least(wide)
        return [made, arrays.zeros(local.reach, arrays.of.int64) + LAST] if by == "argmax" else [made]
    elements = local.elements(memory)
    if by in ("sum", "mean"):
        return [local.placed(elements.sum(axis=-1, dtype=wide))]
    greatest = local.placed(arrays.of.amax(elements, axis=-1))
    if by == "max":
        return [greatest]
    return [greatest, local.placed(local.index()[elements.argmax(axis=-1)])]


def _larger(arrays: Arrays) -> Callable[[Columns, Columns], None]:
    def combine(places: Columns, values: Columns) -> None:
        for place, value in zip(places, values):
            place[...] = arrays.of.maximum(place, value)

    return combine


def _better(arrays: Arrays) -> Callable[[Columns, Columns], None]:
    """The greater element with its index; of equal ones that with the smaller index."""
    of = arrays.of

    def combine(places: Columns, values: Columns) -> None:
        (value, index), (other, its_index) = places, values
        nan, its_nan = of.isnan(value), of.isnan(other)
        same = (value == other) | (nan & its_nan)
        better = (its_nan & ~nan) | (other > value) & ~nan | same & (its_index < index)
        value[...] = of.where(better, other, value)
        index[...] = of.where(better, its_index, index)

    return combine


def reduce(
    tensor: Any,
    before: Sharded,
    over: int | Sequence[int],
    after: Sharded,
    by: str = "sum",
    group: Any = None,
    *,
    machine: str | None = None,
) -> Any:
    """The reduction of modes of a tensor, numbered from 0, which may be cut along the mesh.

    ``by`` is "sum", "mean" or "max". In ``after`` the modes have extent 1, or are left out. Each
    process reduces its local part with the functions of its library, and partial results are
    combined in transit. Sums of f16 and bf16 are computed and sent in f32. NaN is greater than
    every number.

    >>> import numpy as np
    >>> import tilewright as tw
    >>> alone = tw.mesh.Processes(0, 1, "127.0.0.1", 29500)  # this process and no other
    >>> mesh = tw.mesh.Mesh("tp=1")
    >>> matrix, column = mesh.layout("(2,3):(3,1)"), mesh.layout("(2,1):(1,0)")
    >>> tw.mesh.reduce(np.array([[1, 2, 3], [4, 5, 6]]), matrix, 1, column, "sum", alone).tolist()
    [[6], [15]]

    Errors: as :func:`reshard`; a ``ValueError`` for another ``by``, or the mean of integers.
    """
    if by not in ("sum", "mean", "max"):
        raise ValueError(f'a reduction is by "sum", "mean" or "max", not {by!r}')
    if by == "mean" and not _is_real(tensor):
        raise ValueError("the mean of integers is none of them in general")
    return _reduce(tensor, before, over, after, by, group, machine)


def argmax(
    tensor: Any,
    before: Sharded,
    over: int | Sequence[int],
    after: Sharded,
    group: Any = None,
    *,
    machine: str | None = None,
) -> Any:
    """The index of the maximum along modes, the last of them fastest, as int64, like NumPy and
    PyTorch. Plans (``Operation.simulate``) are about layouts, and count along the first mode
    fastest.

    Of equal elements it is the first; NaN is greater than every number.

    >>> import numpy as np
    >>> import tilewright as tw
    >>> alone = tw.mesh.Processes(0, 1, "127.0.0.1", 29500)  # this process and no other
    >>> mesh = tw.mesh.Mesh("tp=1")
    >>> matrix, column = mesh.layout("(2,3):(3,1)"), mesh.layout("(2,1):(1,0)")
    >>> tw.mesh.argmax(np.array([[1, 9, 3], [6, 5, 6]]), matrix, 1, column, alone).tolist()
    [[1], [0]]

    Errors: as :func:`reshard`.
    """
    return _reduce(tensor, before, over, after, "argmax", group, machine)


def _is_real(array: Any) -> bool:
    kinds = Arrays(array)
    return bool(array.is_floating_point() if kinds.is_torch else array.dtype.kind == "f")


def softmax(
    tensor: Any,
    before: Sharded,
    over: int | Sequence[int],
    after: Sharded | None = None,
    group: Any = None,
    *,
    machine: str | None = None,
) -> Any:
    """The softmax along modes of a tensor, which may be cut along the mesh.

    Each process finds the maximum of its part and the sum of exponentials relative to it; these are
    combined, and no element moves but to where ``after`` wants it (without ``after`` it stays where
    it was). Of f16 and bf16 it is computed in f32.

    >>> import numpy as np
    >>> import tilewright as tw
    >>> alone = tw.mesh.Processes(0, 1, "127.0.0.1", 29500)  # this process and no other
    >>> rows = tw.mesh.Mesh("tp=1").layout("(2,4):(4,1)")
    >>> tw.mesh.softmax(np.zeros((2, 4)), rows, 1, group=alone).tolist()
    [[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]

    Errors: as :func:`reshard`; a ``ValueError`` for integers.
    """
    modes, layout = _modes(over), before if after is None else after
    if not _is_real(tensor):
        raise ValueError("a softmax is of real numbers")

    def work(doing: Work, plan: _Planned) -> Any:
        arrays, (operand, pairs, result) = doing.arrays, plan.moves
        (memory,) = doing.move(operand, [doing.memory(tensor, before)], "the operand")
        doing.step = "in the softmax"
        local = _Local(doing, modes, operand.after, pairs.before)
        wide = arrays.wide(memory)
        if local.is_there:
            elements = arrays.to(local.elements(memory), wide)
            greatest = arrays.of.amax(elements, axis=-1)
            empty = greatest == -math.inf
            sums = arrays.of.exp(elements - greatest[..., None]).sum(axis=-1)
            made = [local.placed(greatest), local.placed(arrays.of.where(empty, arrays.of.zeros_like(sums), sums))]
        else:
            made = [arrays.zeros(local.reach, wide) - math.inf, arrays.zeros(local.reach, wide)]
        combine = _scaled(arrays)
        greatest, sums = doing.move(pairs, made, "the pairs of maximum and sum", combine)
        done = arrays.zeros(operand.after.reach, tensor.dtype)
        if local.is_there:
            elements = arrays.to(local.view(memory), wide)
            local.view(done)[...] = arrays.of.exp(elements - local.of_row(greatest)) / local.of_row(sums)
        columns = doing.move(result, [done], "the result")
        return doing.tensor(columns[0], layout)

    return _beside(group, [tensor], lambda bytes_: _softmax(before, modes, layout, bytes_, machine), work)


def _scaled(arrays: Arrays) -> Callable[[Columns, Columns], None]:
    """Two pairs of a maximum and a sum of exponentials relative to it, as one."""
    of = arrays.of

    def combine(places: Columns, values: Columns) -> None:
        (greatest, total), (other, its_total) = places, values
        most = of.maximum(greatest, other)
        # Where nothing was summed up the maximum is -inf, and its difference to itself no number.
        scale, its_scale = (of.where(one == most, of.ones_like(most), of.exp(one - most)) for one in (greatest, other))
        total[...] = total * scale + its_total * its_scale
        greatest[...] = most

    return combine


def multiply(
    a: Any,
    a_layout: Sharded,
    b: Any,
    b_layout: Sharded,
    after: Sharded,
    group: Any = None,
    *,
    rate: float = 7e14,
    machine: str | None = None,
) -> Any:
    """The matmul of two sharded matrices, with the layout ``after``.

    The schedule follows from the layouts: ``a_layout.multiply(b_layout, after, bytes=..)`` is the
    plan, and can be printed. Operands are resharded first, each process multiplies with its
    library, and partial sums are sent, and added, in the type of the elements. ``a`` is (M,K) and
    ``b`` is (K,N).

    >>> import numpy as np
    >>> import tilewright as tw
    >>> alone = tw.mesh.Processes(0, 1, "127.0.0.1", 29500)  # this process and no other
    >>> square = tw.mesh.Mesh("tp=1").layout("(2,2):(2,1)")
    >>> a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> tw.mesh.multiply(a, square, b, square, square, alone).tolist()
    [[2.0, 1.0], [4.0, 3.0]]

    Errors: as :func:`reshard`.
    """

    def work(doing: Work, plan: _Planned) -> Any:
        of_a, of_b, of_d = plan.moves
        factors = []
        for name, tensor, layout, move in (("A", a, a_layout, of_a), ("B", b, b_layout, of_b)):
            (memory,) = doing.move(move, [doing.memory(tensor, layout)], name)
            factors.append(doing.tensor(memory, move.after))
        left, right = factors
        doing.step = "in the multiplication"
        # Columns lie one after the other in what a process makes; of a part that is not full, at the
        # pitch of a full one.
        made = right.T @ left.T
        is_full = math.prod(made.shape) == of_d.before.reach
        memory = made.reshape(-1) if is_full else doing.memory(made.T, of_d.before)
        columns = doing.move(of_d, [memory], "D")
        return doing.tensor(columns[0], after)

    return _beside(group, [a, b], lambda bytes_: _product(a_layout, b_layout, after, bytes_, rate, machine), work)
