"""Kernels of any compiler, as PTX, on arrays of the host: every instruction of every thread, checked."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from . import _native

__all__ = ["Finding", "Sanitized", "SanitizedCosts", "SanitizedCounts", "SanitizerError", "StatementCosts", "TensorMap", "sanitize"]

#: How many instructions of threads a schedule may execute, unless a call says otherwise.
LIMIT = 100_000_000_000
#: The first bytes of an array on which a kernel works are 256 bytes apart, as on a device.
_FORMATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a kernel."""

    #: The stable code, such as "E1016"; ``explain(code)`` is the page about it, where there is one.
    code: str
    #: What is wrong, which threads and statements take part, and what would help.
    message: str
    #: How often it was met.
    count: int
    #: The statement in the source, as in "mm.py:23", and its line of the PTX, where they are known.
    source: str | None
    ptx_line: int | None
    #: The other statement of a conflict.
    other: str | None
    #: The block, the warp in it, and the lane.
    block: tuple[int, int, int] | None
    warp: int | None
    lane: int | None

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class SanitizedCounts:
    """What instructions of a kernel took."""

    #: How often a warp executed an instruction, and how many threads did.
    instructions: int = 0
    threads: int = 0
    #: Of global memory: instructions, bytes that lanes ask for, sectors of 32 bytes, the fewest sectors
    #: that hold as many different bytes, and lines of 128 bytes.
    global_requests: int = 0
    global_bytes: int = 0
    sectors: int = 0
    least_sectors: int = 0
    lines: int = 0
    #: Of shared memory: instructions, bytes that lanes ask for, wavefronts, and those that would do
    #: without bank conflicts.
    shared_requests: int = 0
    shared_bytes: int = 0
    wavefronts: int = 0
    least_wavefronts: int = 0

    def __add__(self, other: SanitizedCounts) -> SanitizedCounts:
        return SanitizedCounts(*(a + b for a, b in zip(astuple(self), astuple(other))))


@dataclass(frozen=True)
class StatementCosts:
    """What a statement of the PTX took."""

    #: The function, the line of the PTX, and the instruction, such as "ld.global.v4.f32".
    function: str
    ptx_line: int
    instruction: str
    #: What executes it, such as "float", "tensor" or "shared".
    pipe: str
    #: The file of the source and the line, where they are known.
    file: str | None
    line: int | None
    counts: SanitizedCounts
    #: Operations of tensor cores; a multiplication and an addition are two.
    tensor_operations: int


@dataclass(frozen=True)
class SanitizedCosts:
    """What a kernel took, statement by statement; as text, source beside counts."""

    #: The statements that were executed, in the order of the PTX.
    statements: tuple[StatementCosts, ...]
    #: The sum of all.
    total: SanitizedCounts
    #: Instructions of warps by what executes them.
    pipes: dict[str, int]
    #: Operations of tensor cores by what is multiplied.
    tensor_operations: dict[str, int]
    #: Bytes of arrays in sectors that were read and written, each sector once.
    read_bytes: int
    written_bytes: int
    #: The most bytes of asynchronous copies that a block had under way: issued, and not waited for.
    in_flight_bytes: int
    text: str

    def lines(self) -> dict[tuple[str | None, int], SanitizedCounts]:
        """The counts by file and line of the source; by None and the line of the PTX where no source is known."""
        sums: dict[tuple[str | None, int], SanitizedCounts] = {}
        for own in self.statements:
            key = (own.file, own.line if own.line is not None else own.ptx_line)
            sums[key] = sums.get(key, SanitizedCounts()) + own.counts
        return sums

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Sanitized:
    """What a run gave: what was found, and what was executed. The arrays have the results."""

    #: What is wrong.
    findings: tuple[Finding, ...]
    #: Why it did not run to its end; None if it did.
    unfinished: str | None
    #: What ``printf`` wrote.
    printed: tuple[str, ...]
    #: Instructions of threads that were executed.
    thread_instructions: int
    #: In how many schedules the kernel ran.
    schedules: int
    text: str
    #: What the first schedule took, of a call with ``costs=True``.
    costs: SanitizedCosts | None = None

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found, and all threads ran to their end."""
        return not self.findings and self.unfinished is None

    def __str__(self) -> str:
        return self.text


class SanitizerError(RuntimeError):
    """Something is wrong with a kernel, or it did not run to its end."""

    #: What the run gave.
    report: Sanitized

    def __init__(self, report: Sanitized) -> None:
        super().__init__(str(report))
        self.report = report


@dataclass(frozen=True)
class TensorMap:
    """An argument that is a tensor map (``CUtensorMap``) of an array, row-major, for boxes of these extents."""

    array: Any
    #: The extents of a box, the slowest first, as the shape of the array.
    box: tuple[int, ...]
    #: The bytes within which rows of a box are swizzled: 0, 32, 64 or 128.
    swizzle: int = 0


def sanitize(
    ptx: Any,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    *,
    entry: str | None = None,
    cluster: Sequence[int] | None = None,
    shared: int = 0,
    schedules: int = 1,
    seed: int = 0,
    limit: int = LIMIT,
    check: bool = True,
    costs: bool = False,
    names: Sequence[str] | None = None,
) -> Sanitized:
    """Runs a kernel of any compiler on arrays of the host, which it writes in place, and checks every access.

    ``ptx`` is the text as ``nvcc -ptx``, NVRTC, clang or Triton write it, or what a compiler gave: a compiled
    function of CuTe DSL that has kept its PTX (``CUTE_DSL_KEEP_PTX=1``), or a compiled kernel of Triton. ``args`` are those of the kernel in
    their order: arrays of NumPy or PyTorch in host memory, contiguous; numbers; ``TensorMap``; ``None`` for a
    pointer to nothing. An array that may not be written is an input; every other is read and written.
    ``shared`` is the dynamic shared memory in bytes.

    ``schedules``: in how many orders of the warps the kernel runs; findings of all are reported, and results
    that differ between them. The arrays have the results of the first.

    ``costs``: ``report.costs`` counts what each line of the source takes: instructions of warps, sectors of
    global memory, wavefronts of shared memory with the fewest there could be. ``print(report.costs)`` shows
    source beside counts.

    Found are races in shared and global memory, reads of what nobody wrote, accesses out of bounds and
    misaligned ones, barriers that not all threads reach, waits that never end, missing proxy fences, and
    what else the chapter "Sanitize a kernel" lists. Each says who, where in the source, and what would help.

    >>> import numpy as np
    >>> ptx = '''.version 8.0
    ... .target sm_80
    ... .address_size 64
    ... .visible .entry twice(.param .u64 p) {
    ...   .reg .b32 %r<3>; .reg .b64 %d<4>;
    ...   ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.s64 %d3, %d1, %d2;
    ...   ld.global.u32 %r2, [%d3]; add.u32 %r2, %r2, %r2; st.global.u32 [%d3], %r2; ret;
    ... }'''
    >>> x = np.arange(32, dtype=np.int32)
    >>> sanitize(ptx, 1, 32, [x]).is_clean, x[:4].tolist()
    (True, [0, 2, 4, 6])
    >>> sanitize(ptx, 1, 64, [x], check=False).findings[0].code
    'E1010'

    Errors: ``SanitizerError`` if something is found or the kernel does not run to its end, unless ``check``
    is False; ``ValueError`` if the text cannot be read or the launch does not fit it; ``TypeError`` if an
    argument is of no kind that a kernel takes.
    """
    ptx = _text_of(ptx)
    entries = dict(_native.ptx_entries(ptx))
    if entry is None:
        if len(entries) != 1:
            raise ValueError(f"the text has {len(entries)} entries, so say which: entry= one of {', '.join(entries) or 'none'}")
        (entry,) = entries
    if entry not in entries:
        raise ValueError(f"the text has no entry {entry!r}; it has {', '.join(entries) or 'none'}")
    parameters = entries[entry]
    if len(args) != len(parameters):
        wanted = ", ".join(f"{name} ({kind})" for name, kind, _ in parameters)
        raise ValueError(f"{entry} has {len(parameters)} parameters, and {len(args)} arguments are given; it has {wanted or 'none'}")
    shown = [name for name, _, _ in parameters] if names is None else [*names, *(name for name, _, _ in parameters[len(names) :])]
    given = [_argument(own, name, kind, size) for own, name, (_, kind, size) in zip(args, shown, parameters)]
    _refuse_shared([(name, own) for own, name in zip(args, shown)])
    made, text, _, results, table = _native.sanitize_ptx(
        ptx, entry, _three(grid, "grid"), _three(block, "block"), None if cluster is None else _three(cluster, "cluster"),
        shared, given, (schedules, seed, limit, costs),
    )  # fmt: skip
    report = _report(json.loads(made), text, table)
    for number, contents in results:
        own = args[number]
        memory = _memory(own.array if isinstance(own, TensorMap) else own)
        if memory.flags.writeable:
            import numpy as np

            memory[...] = np.frombuffer(contents, np.uint8)
    if check and not report.is_clean:
        raise SanitizerError(report)
    return report


def _text_of(made: Any) -> str:
    """The PTX of a text, or of what a compiler gave."""
    if isinstance(made, str):
        return made
    # A compiled kernel of Triton has its stages by their names.
    stages = getattr(made, "asm", None)
    if isinstance(stages, Mapping) and isinstance(stages.get("ptx"), str):
        return str(stages["ptx"])
    module = type(made).__module__.partition(".")[0]
    if module == "cutlass":
        text = getattr(made, "__ptx__", None)
        if isinstance(text, bytes):
            text = text.decode()
        if isinstance(text, str) and text:
            return text
        raise ValueError(
            f"{type(made).__name__} of CuTe DSL has kept no PTX: set the environment variable CUTE_DSL_KEEP_PTX=1 before "
            "cutlass is imported, and pass what cute.compile(..) returns"
        )
    raise TypeError(f"sanitize takes PTX as a text, or a compiled function of CuTe DSL or Triton, not {type(made).__name__}")


def _three(numbers: int | Sequence[int], what: str) -> tuple[int, int, int]:
    all = (numbers,) if isinstance(numbers, int) else tuple(numbers)
    if not 1 <= len(all) <= 3 or any(not 1 <= own < 1 << 32 for own in all):
        raise ValueError(f"{what} has one to three numbers from 1, not {numbers!r}")
    x, y, z = (*all, 1, 1)[:3]
    return x, y, z


def _argument(own: Any, name: str, kind: str, size: int) -> Any:
    """An argument as the engine takes it."""
    if isinstance(own, TensorMap):
        element, shape = _described(own.array, name)
        direction = "inout" if _is_writable(own.array) else "in"
        return (name, direction, element, shape, _memory(own.array).tobytes(), list(own.box), own.swizzle)
    if own is None:
        return bytes(size)
    if hasattr(own, "dtype") and hasattr(own, "shape") and tuple(own.shape) != ():
        element, shape = _described(own, name)
        return (name, "inout" if _is_writable(own) else "in", element, shape, _memory(own).tobytes())
    if isinstance(own, (bytes, bytearray)):
        if len(own) != size:
            raise ValueError(f"the parameter `{name}` has {size} bytes, and its argument {len(own)}")
        return bytes(own)
    return _number(own, name, kind, size)


def _number(own: Any, name: str, kind: str, size: int) -> bytes:
    if hasattr(own, "item"):
        own = own.item()
    if not isinstance(own, (int, float)):
        raise TypeError(f"the argument `{name}` is {type(own).__name__}, and a kernel takes arrays, numbers, TensorMap and None")
    if kind in _FORMATS:
        return struct.pack(_FORMATS[kind], own)
    if isinstance(own, float):
        # The types of a compiler's parameters may say nothing but their bytes.
        if size in (4, 8):
            return struct.pack("<f" if size == 4 else "<d", own)
        raise TypeError(f"the parameter `{name}` is {kind}, and its argument {own!r} is no integer")
    bits = 8 * size
    if not -(1 << (bits - 1)) <= own < 1 << bits:
        raise ValueError(f"the argument `{name}` is {own}, which {bits} bits do not hold")
    return (own % (1 << bits)).to_bytes(size, "little")


def _described(array: Any, name: str) -> tuple[str, list[int]]:
    """The type and the extents of an array of the host."""
    element, shape, strides, device, _ = _native.array_axes(array)
    if device is not None:
        raise TypeError(f"the argument `{name}` is on a device: move it to the host with `.cpu()`")
    step = 1
    for extent, own in zip(reversed(shape), reversed(strides)):
        if extent > 1 and own != step:
            raise ValueError(f"the argument `{name}` has gaps or another order, {shape}:{strides}: pass a contiguous copy")
        step *= max(extent, 1)
    return element, list(shape)


def _memory(array: Any) -> Any:
    """The bytes of an array of the host, as an array of NumPy."""
    from ._arrays import host_memory

    return host_memory(array)


def _is_writable(array: Any) -> bool:
    flags = getattr(array, "flags", None)
    return bool(getattr(flags, "writeable", True))


def _refuse_shared(arrays: Sequence[tuple[str, Any]]) -> None:
    """Refuses arrays that share memory: each has memory of its own while the kernel runs."""
    import numpy as np

    known = [(name, own.array if isinstance(own, TensorMap) else own) for name, own in arrays]
    memories = [(name, _memory(own)) for name, own in known if hasattr(own, "dtype") and tuple(getattr(own, "shape", ())) != ()]
    for second, (name, memory) in enumerate(memories):
        for other, before in memories[:second]:
            if np.may_share_memory(memory, before):
                raise ValueError(f"the arguments `{other}` and `{name}` share memory: pass a copy of one of them")


def _counts(own: dict[str, Any]) -> SanitizedCounts:
    memory, shared = own.get("global", {}), own.get("shared", {})
    return SanitizedCounts(
        instructions=own["instructions"],
        threads=own["threads"],
        global_requests=memory.get("requests", 0),
        global_bytes=memory.get("bytes", 0),
        sectors=memory.get("sectors", 0),
        least_sectors=memory.get("least_sectors", 0),
        lines=memory.get("lines", 0),
        shared_requests=shared.get("requests", 0),
        shared_bytes=shared.get("bytes", 0),
        wavefronts=shared.get("wavefronts", 0),
        least_wavefronts=shared.get("least_wavefronts", 0),
    )


def _costs(own: dict[str, Any], text: str) -> SanitizedCosts:
    def statement(entry: dict[str, Any]) -> StatementCosts:
        return StatementCosts(
            function=entry["function"],
            ptx_line=entry["ptx_line"],
            instruction=entry["instruction"],
            pipe=entry["pipe"],
            file=entry.get("file"),
            line=entry.get("line"),
            counts=_counts(entry["counts"]),
            tensor_operations=entry.get("tensor_operations", 0),
        )

    return SanitizedCosts(
        statements=tuple(map(statement, own["statements"])),
        total=_counts(own["total"]),
        pipes=own["pipes"],
        tensor_operations=own["tensor_operations"],
        read_bytes=32 * own["read_sectors"],
        written_bytes=32 * own["written_sectors"],
        in_flight_bytes=own["in_flight_bytes"],
        text=text,
    )


def _report(own: dict[str, Any], text: str, table: str | None) -> Sanitized:
    def finding(entry: dict[str, Any]) -> Finding:
        at, other, thread = entry.get("at") or {}, entry.get("other") or {}, entry.get("thread") or {}
        return Finding(
            code=entry["code"],
            message=entry["message"],
            count=entry["count"],
            source=at.get("source"),
            ptx_line=at.get("ptx_line"),
            other=other.get("source"),
            block=tuple(thread["block"]) if thread else None,
            warp=thread.get("warp"),
            lane=thread.get("lane"),
        )

    return Sanitized(
        findings=tuple(map(finding, own["findings"])),
        unfinished=own["unfinished"],
        printed=tuple(own["printed"]),
        thread_instructions=own["thread_instructions"],
        schedules=own["schedules"],
        text=text,
        costs=None if table is None else _costs(own["costs"], table),
    )
