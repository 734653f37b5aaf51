# mypy: ignore-errors
"""Random statements, calls of kernels and of the library with random arguments: a program, a value, or a documented exception."""

from __future__ import annotations

import random

import numpy as np

import tilewright as tw

from by_day import CALLS
from page_kernels import tiled_add, tiled_gemm
from test_random_calls import LAYOUTS, NUMBERS, OTHERS, TENSORS, random_argument

REFUSALS = (tw.LayoutError, tw.GpuError, TypeError, ValueError, LookupError, OverflowError, BufferError)

#: What is called while a kernel is written.
STATEMENTS = [
    tw.barrier, tw.block, tw.commit_async, tw.commit_bulk, tw.composition, tw.copy, tw.fence_async, tw.fence_async_global, tw.fragment, tw.gemm, tw.get, tw.grid,
    tw.index_of, tw.local_tile, tw.maximum, tw.minimum, tw.mma, tw.number, tw.otherwise, tw.pipeline, tw.range, tw.resident, tw.role,
    tw.select, tw.shared, tw.shuffle_xor, tw.single, tw.size, tw.store_bulk, tw.threads, tw.tensor_composition, tw.tensor_zipped_divide,
    tw.wait_async, tw.wait_bulk, tw.wait_bulk_written, tw.wait_mma, tw.warp_barrier, tw.when, tw.where, tw.zipped_divide, tw.Distribution, tw.TiledCopy, tw.TiledMma,
]  # fmt: skip
WORDS = ["x", "(x,y)", "f32", "bf16", "i32", "sum", "max", "(32,1):(1,0)", "32:1", "(32,64)", "UniversalFMA<F32,F32,F32,F32>", "M", 0, 1, 32, 0.5]
HELD = [tw.thread, (tw.thread, None), (None, 0), (32, 64), 32, 64, tw.Distribution((4, 128), "((32,4),4):((16,1),4)")]


#: Statements of a part of 128 numbers a thread, and what was loaded of it, mostly right ones.
RIGHT = [
    lambda part, held: held + held,
    lambda part, held: 2.0 * held - 1,
    lambda part, held: held.map(lambda number: number * number),
    lambda part, held: held.exp(),
    lambda part, held: part.load(),
    lambda part, held: part.store(held),
    lambda part, held: held.to("f32").to("bf16"),
    lambda part, held: held.numbers()[0] > 0.5,
    lambda part, held: tw.barrier(),
    lambda part, held: tw.shared("bf16", "(32,128):(128,1)"),
    lambda part, held: tw.when(held.numbers()[1] < 2.0),
    lambda part, held: tw.range(3),
    lambda part, held: tw.single(),
    lambda part, held: tw.fragment("f32", (2, 4)),
    lambda part, held: tw.where(held.numbers()[0] < 1.0, held.numbers()[2], 0.0),
]


class Count:
    answered = refused = programs = 0


def random_statements(source: random.Random, pool: list, own: tuple | None, left: int, count: Count) -> None:
    """Some calls, on what is there and what they give, within the bodies that they open."""
    for _ in range(left):
        if own is not None and source.random() < 0.8:
            try:
                enter(source, source.choice(RIGHT)(*own), pool, own, left, count)
            except REFUSALS as error:
                count.refused += 1
                assert str(error)
                raise
            count.answered += 1
            continue
        owner = source.choice(pool)
        names = [name for name in dir(owner) if not name.startswith("_")] + ["__getitem__", "__add__", "__mul__", "__lt__", "__neg__"]
        function = source.choice(STATEMENTS) if source.random() < 0.4 else getattr(owner, source.choice(names), None)
        arguments = [
            source.choice(pool) if source.random() < 0.4 else source.choice([*WORDS, *HELD]) if source.random() < 0.8 else random_argument(source)
            for _ in range(source.choice([0, 1, 1, 1, 2, 2, 3]))
        ]
        try:
            value = function(*arguments) if callable(function) else function
            enter(source, value, pool, own, left, count)
        except REFUSALS as error:
            count.refused += 1
            assert str(error)
            if source.random() < 0.5:
                raise
        else:
            count.answered += 1
            if value is not None and not isinstance(value, (str, bytes)):
                pool.append(value)


def enter(source: random.Random, value: object, pool: list, own: tuple | None, left: int, count: Count) -> None:
    """Some statements in the body that a value opens, if it opens one."""
    repr(value)
    if hasattr(type(value), "__enter__"):
        with value:
            random_statements(source, list(pool), own, min(left - 1, 3), count)
    elif isinstance(value, tw._native.Range):
        for index in value:
            random_statements(source, [*pool, index], own, min(left - 1, 3), count)


class Drawn:
    """Draws the statements of a body. A method: what a function reads is a constant of the kernel, and
    the arguments that are drawn are none.
    """

    def __init__(self, source: random.Random, count: Count) -> None:
        self.source, self.count = source, count

    def statements(self, parts: list, own: tuple | None, left: int) -> None:
        random_statements(self.source, parts, own, left, self.count)


def test_random_statements() -> None:
    source, count = random.Random(21), Count()
    drawn = Drawn(source, count)
    while count.answered + count.refused < CALLS:

        @tw.jit(
            x=tw.Input("f32", source.choice(["(M{div=32},64):(64,1)", "(32,64):(64,1)", "N{div=4}:1"])),
            y=source.choice([tw.Output, tw.InOut, tw.InOut])("f32", "(M,64):(64,1)"),
            z=tw.InOut("bf16", "(64,64):(1,64)"),
            factor=tw.Scalar("f32"),
        )
        def kernel(x, y, z, factor):
            parts, own = [x, y, z, factor], None
            if source.random() < 0.7:
                tw.threads(32)
                part = z.compose("(32,128):(1,32)")[tw.thread, None]
                own = part, part.load()
                parts += own
            drawn.statements(parts, own, source.randrange(1, 8))

        try:
            program = kernel.program()
            count.programs += 1
            assert program.name == "kernel"
            for use in (program.ptx, lambda: program.cost({"M": 64, "N": 64}), lambda: program.draw({"M": 64, "N": 64}, (0, 0, 0)).text()):
                try:
                    assert use()
                except REFUSALS as error:
                    assert str(error)
        except REFUSALS as error:
            assert str(error)
    assert count.answered > CALLS / 20 and count.refused > CALLS / 20 and count.programs > 10
    # Nothing is left behind.
    c = np.empty((1, 4), np.float32)
    tiled_add(np.ones((1, 4), np.float32), np.ones((1, 4), np.float32), c)
    assert (c == 2).all()


ARRAYS = [
    np.ones((4, 8), np.float32), np.ones((4, 8), np.float32)[:, ::2], np.zeros((8, 8), np.float16), np.ones((3, 8, 8), np.float16), np.ones(8, np.float32),
    np.zeros((0, 4), np.float32), np.ones((4, 8))[::-1], np.ones((), np.float32), np.ones((8, 8), np.int8), np.ones((2, 4), "c8"),
]  # fmt: skip


def test_random_launches() -> None:
    """Kernels and the library, on arrays, tensors and anything else."""
    source, count = random.Random(22), Count()
    gpu = tw.gpu
    calls = [
        tiled_add, tiled_gemm, tiled_add.check, tiled_add.cost, tiled_add.draw, tiled_add.ptx, tiled_add.program, lambda *a, **n: tiled_add[a[0] if a else 1](*a[1:], **n),
        gpu.softmax, gpu.rms_norm, gpu.layer_norm, gpu.reduce, gpu.relayout, gpu.gemm, gpu.plan, gpu.device_name, tw.jit,
    ]  # fmt: skip
    given = [*ARRAYS, *TENSORS, NUMBERS]
    for _ in range(CALLS // 5):
        function = source.choice(calls)
        arguments = [
            source.choice(given) if source.random() < 0.8 else source.choice([*LAYOUTS, *OTHERS, gpu.softmax, gpu.gemm]) if source.random() < 0.5 else random_argument(source)
            for _ in range(source.choice([1, 1, 2, 2, 3, 3, 4]))
        ]
        names = {"on": "interpreter"} if function in (gpu.softmax, gpu.rms_norm, gpu.layer_norm, gpu.reduce, gpu.relayout, gpu.gemm) else {}
        if source.random() < 0.3:
            name = source.choice(["M", "N", "K", "out", "axis", "function", "bias", "epsilon", "block", "warp", "line", "machine", "target", "tf32", "on"])
            # A check of a large tensor takes its time.
            names[name] = source.choice([1, 4, 17, "x + bias", "sum", "sm_80", "A100", None, (0, 1), *given])
        try:
            value = function(*arguments, **names)
        except REFUSALS as error:
            count.refused += 1
            assert str(error)
            continue
        count.answered += 1
        repr(value)
    assert count.answered > CALLS / 200 and count.refused > CALLS / 20
