"""Runs of kernels on the interpreter, on arrays of the host."""

from __future__ import annotations

from typing import Any

from . import _native
from ._arrays import host_memory
from ._errors import KernelError
from ._native import Program


def interpret(
    program: Program,
    arrays: list[Any],
    numbers: dict[str, Any],
    sizes: dict[str, int],
    grid: tuple[int, int, int] | None = None,
    checked: bool = False,
) -> None:
    """Runs a kernel in the interpreter, on arrays of the host; a check leaves them unchanged."""
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
