"""Reports of checks, of estimated costs, and of measurements on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class Cost(str):
    """What a launch costs on a machine: a text, whose numbers are attributes.

    >>> import tilewright as tw
    >>> @tw.tile(grid="ceil(M/4)")
    ... def twice(x: tw.Input("f32", "(M,64):(64,1)"), y: tw.Output("f32", "(M,64):(64,1)")):
    ...     y.store((tw.tile.block.x, 0), x.load((4, 64), (tw.tile.block.x, 0)) * 2)
    >>> cost = twice.cost(M=4096)
    >>> cost.grid, cost.tensor_bytes, cost.sectors
    ((1024, 1, 1), 2097152, 65536)
    """

    #: The name of the machine.
    machine: str
    #: Blocks along each axis, and threads of a block.
    grid: tuple[int, int, int]
    threads: int
    #: Registers of a thread, an estimate, and bytes of shared memory of a block.
    registers: int
    shared_bytes: int
    #: Blocks and warps that a multiprocessor holds at once.
    resident_blocks: int
    resident_warps: int
    #: Bytes of all tensors, once.
    tensor_bytes: int
    #: What is counted of the whole launch; None where it depends on contents. ``exact``: every block
    #: was counted, or stands for others like it.
    exact: bool | None
    instructions: int | None
    wavefronts: int | None
    operations: float | None
    sectors: int | None
    #: Bytes of global memory that a multiprocessor has under way at once.
    bytes_in_flight: int | None
    #: The times that bound a launch from below, in seconds, by what bounds it.
    bounds: dict[str, float]

    def __new__(cls, text: str, numbers: dict[str, Any]) -> Cost:
        cost = super().__new__(cls, text)
        cost.__dict__.update(numbers)
        return cost


class Measured(str):
    """What a kernel took on a device, beside the driver's copy of equally many bytes: a text, whose
    numbers are attributes. Its outputs were compared in the same run.
    """

    #: The name of the device, and what the kernel was compiled for.
    device: str
    target: str
    #: What was planned for the device, a line for each decision.
    plan: list[str]
    #: The sizes that were timed, and those at which outputs were compared.
    sizes: dict[str, int]
    checked_sizes: dict[str, int]
    #: How many elements were compared.
    compared: int
    #: The time of a launch, and of a copy of as many bytes, in seconds: medians of ``repeats``.
    seconds: float
    copy_seconds: float
    repeats: int
    #: How many launches were replayed from one graph; 0 where they were launched one by one.
    graph_launches: int
    #: Bytes that must be read and written, and bytes a second, of the kernel and of the copy.
    bytes: int
    bandwidth: float
    copy_bandwidth: float
    #: Additions and multiplications; 0 where memory alone decides.
    operations: int

    def __new__(cls, text: str, numbers: dict[str, Any]) -> Measured:
        measured = super().__new__(cls, text)
        measured.__dict__.update(numbers)
        return measured


@dataclass(frozen=True)
class Compared:
    """A tensor whose elements a check compared."""

    #: Its name.
    tensor: str
    #: How many elements were compared.
    compared: int
    #: How far an element is at most from what it should be, as a part of the greatest one.
    farthest: float
    #: Up to where such a part is taken as rounding.
    rounding: float

    def __str__(self) -> str:
        how = "all equal" if self.farthest == 0 else f"the largest difference is {self.farthest:.1e} of the largest element, and the tolerance is {self.rounding:.1e}"
        return f"{self.tensor}: {self.compared} elements compared with the interpreter; {how}"


@dataclass(frozen=True)
class Checked:
    """A check without findings: the runs, and the comparisons."""

    #: The sizes that were run.
    sizes: dict[str, int]
    #: Under how many orders of the warps the kernel ran.
    schedules: int
    #: How many instructions of warps it executed under each.
    instructions: int
    #: The tensors that were compared.
    outputs: tuple[Compared, ...]

    @property
    def compared(self) -> int:
        """How many elements were compared."""
        return sum(output.compared for output in self.outputs)

    def __str__(self) -> str:
        lines = [
            f"checked: {self.instructions} instructions of warps under each of {self.schedules} schedules:",
            "no access outside a tensor, no race, nothing unwritten read, each output written once",
            *map(str, self.outputs),
            "for these sizes and one set of numbers; other sizes were not run",
        ]
        return "\n".join(lines)
