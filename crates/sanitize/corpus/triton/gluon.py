"""Kernels of Gluon, whose authors place data and synchronise by themselves: right ones, and wrong ones
with one defect each. `cases()` is what the corpus runs.
"""

# ruff: noqa: ANN001, ANN201
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)


@gluon.jit
def copy(x, y, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(y + i, gl.load(x + i, mask=i < n), mask=i < n)


@gluon.jit
def copy_past_the_end(x, y, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(y + i, gl.load(x + i, mask=i <= n), mask=i < n)


@gluon.jit
def transpose(x, y, SIZE: gl.constexpr):
    rows: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    columns: gl.constexpr = gl.BlockedLayout([4, 1], [8, 4], [1, 4], [0, 1])
    row = gl.arange(0, SIZE, layout=gl.SliceLayout(1, rows))
    column = gl.arange(0, SIZE, layout=gl.SliceLayout(0, rows))
    value = gl.load(x + row[:, None] * SIZE + column[None, :])
    value = gl.convert_layout(value, columns)
    row = gl.arange(0, SIZE, layout=gl.SliceLayout(1, columns))
    column = gl.arange(0, SIZE, layout=gl.SliceLayout(0, columns))
    gl.store(y + column[None, :] * SIZE + row[:, None], value)


@gluon.jit
def softmax(x, y, columns, WIDTH: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.arange(0, WIDTH, layout=layout)
    at = gl.program_id(0) * columns + i
    value = gl.load(x + at, mask=i < columns, other=-float("inf"))
    power = gl.exp(value - gl.max(value, axis=0))
    gl.store(y + at, power / gl.sum(power, axis=0), mask=i < columns)


@gluon.jit
def through_shared_memory(x, y, SIZE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    row = gl.arange(0, SIZE, layout=gl.SliceLayout(1, layout))
    column = gl.arange(0, SIZE, layout=gl.SliceLayout(0, layout))
    at = row[:, None] * SIZE + column[None, :]
    swizzled: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    tile = gl.allocate_shared_memory(gl.float32, [SIZE, SIZE], swizzled)
    tile.store(gl.load(x + at))
    gl.store(y + at, tile.permute([1, 0]).load(layout))


@gluon.jit
def copies(x, y, STEPS: gl.constexpr, WAITS: gl.constexpr, BLOCK: gl.constexpr):
    # Two buffers: the copy of one step is under way while the step before is added.
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    i = gl.arange(0, BLOCK, layout=layout)
    plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    buffers = gl.allocate_shared_memory(gl.float32, [2, BLOCK], plain)
    other: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    async_copy.async_load(buffers.index(0), x + i)
    async_copy.commit_group()
    total = gl.zeros([BLOCK], gl.float32, layout=other)
    for step in gl.static_range(STEPS):
        if step + 1 < STEPS:
            async_copy.async_load(buffers.index((step + 1) % 2), x + (step + 1) * BLOCK + i)
        async_copy.commit_group()
        async_copy.wait_group(WAITS)
        gl.barrier()
        total += buffers.index(step % 2).load(other)
        gl.barrier()
    gl.store(y + gl.arange(0, BLOCK, layout=other), total)


@gluon.jit
def product_by_warps(a, b, c, SIZE: gl.constexpr):
    mma: gl.constexpr = gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[2, 2], instr_shape=[16, 8])
    left: gl.constexpr = gl.DotOperandLayout(0, mma, 2)
    right: gl.constexpr = gl.DotOperandLayout(1, mma, 2)
    blocked: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])
    row = gl.arange(0, SIZE, layout=gl.SliceLayout(1, blocked))
    column = gl.arange(0, SIZE, layout=gl.SliceLayout(0, blocked))
    at = row[:, None] * SIZE + column[None, :]
    sums = gl.zeros([SIZE, SIZE], gl.float32, layout=mma)
    sums = mma_v2(gl.convert_layout(gl.load(a + at), left), gl.convert_layout(gl.load(b + at), right), sums)
    row = gl.arange(0, SIZE, layout=gl.SliceLayout(1, mma))
    column = gl.arange(0, SIZE, layout=gl.SliceLayout(0, mma))
    gl.store(c + row[:, None] * SIZE + column[None, :], sums)


@gluon.jit
def box_copy(x, y, SIZE: gl.constexpr, WAITS: gl.constexpr):
    layout: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    source = tma.make_tensor_descriptor(x, [SIZE, SIZE], [SIZE, 1], [64, 64], layout)
    target = tma.make_tensor_descriptor(y, [SIZE, SIZE], [SIZE, 1], [64, 64], layout)
    tile = gl.allocate_shared_memory(gl.float16, [64, 64], layout)
    full = mbarrier.allocate_mbarrier()
    mbarrier.init(full, count=1)
    row, column = gl.program_id(0) * 64, gl.program_id(1) * 64
    mbarrier.expect(full, source.nbytes_per_cta)
    tma.async_load(source, [row, column], full, tile)
    if WAITS:
        mbarrier.wait(full, 0)
    registers: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    tile.store(tile.load(registers) * 2)
    fence_async_shared()
    tma.async_store(target, [row, column], tile)
    tma.store_wait(0)
    mbarrier.invalidate(full)


@gluon.jit
def product(a, b, c, SIZE: gl.constexpr, FREED: gl.constexpr):
    # A product of a warpgroup whose operands come by TMA into two buffers.
    layout: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    of_a = tma.make_tensor_descriptor(a, [SIZE, SIZE], [SIZE, 1], [64, 64], layout)
    of_b = tma.make_tensor_descriptor(b, [SIZE, SIZE], [SIZE, 1], [64, 64], layout)
    left = gl.allocate_shared_memory(gl.float16, [2, 64, 64], layout)
    right = gl.allocate_shared_memory(gl.float16, [2, 64, 64], layout)
    full = mbarrier.allocate_mbarrier(batch=2)
    for stage in gl.static_range(2):
        mbarrier.init(full.index(stage), count=1)
    mma: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16])
    row, column = gl.program_id(0) * 64, gl.program_id(1) * 64
    sums = warpgroup_mma_init(gl.zeros([64, 64], gl.float32, layout=mma))
    STEPS: gl.constexpr = SIZE // 64
    for step in gl.static_range(2):
        mbarrier.expect(full.index(step), of_a.nbytes_per_cta + of_b.nbytes_per_cta)
        tma.async_load(of_a, [row, step * 64], full.index(step), left.index(step))
        tma.async_load(of_b, [step * 64, column], full.index(step), right.index(step))
    for step in gl.static_range(STEPS):
        mbarrier.wait(full.index(step % 2), step // 2 % 2)
        sums = warpgroup_mma(left.index(step % 2), right.index(step % 2), sums, is_async=True)
        if FREED:
            sums = warpgroup_mma_wait(0, deps=(sums,))
        if step + 2 < STEPS:
            mbarrier.expect(full.index(step % 2), of_a.nbytes_per_cta + of_b.nbytes_per_cta)
            tma.async_load(of_a, [row, (step + 2) * 64], full.index(step % 2), left.index(step % 2))
            tma.async_load(of_b, [(step + 2) * 64, column], full.index(step % 2), right.index(step % 2))
    sums = warpgroup_mma_wait(0, deps=(sums,))
    row = row + gl.arange(0, 64, layout=gl.SliceLayout(1, mma))
    column = column + gl.arange(0, 64, layout=gl.SliceLayout(0, mma))
    gl.store(c + row[:, None] * SIZE + column[None, :], sums)


@gluon.jit
def load_tiles(source, tiles, full, empty, STEPS: gl.constexpr, HOLDS: gl.constexpr):
    for step in gl.static_range(STEPS):
        if HOLDS:
            mbarrier.wait(empty.index(step % 2), (step // 2 + 1) % 2)
        mbarrier.expect(full.index(step % 2), source.nbytes_per_cta)
        tma.async_load(source, [step * 64, 0], full.index(step % 2), tiles.index(step % 2))


@gluon.jit
def add_tiles(y, tiles, full, empty, STEPS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    total = gl.zeros([64, 64], gl.float32, layout=layout)
    for step in gl.static_range(STEPS):
        mbarrier.wait(full.index(step % 2), step // 2 % 2)
        total += tiles.index(step % 2).load(layout).to(gl.float32)
        fence_async_shared()
        mbarrier.arrive(empty.index(step % 2), count=1)
    row = gl.arange(0, 64, layout=gl.SliceLayout(1, layout))
    column = gl.arange(0, 64, layout=gl.SliceLayout(0, layout))
    gl.store(y + row[:, None] * 64 + column[None, :], total)


@gluon.jit
def specialised(x, y, STEPS: gl.constexpr, HOLDS: gl.constexpr):
    # One warp loads tiles, the others add them up.
    layout: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    source = tma.make_tensor_descriptor(x, [STEPS * 64, 64], [64, 1], [64, 64], layout)
    tiles = gl.allocate_shared_memory(gl.float16, [2, 64, 64], layout)
    full = mbarrier.allocate_mbarrier(batch=2)
    empty = mbarrier.allocate_mbarrier(batch=2)
    for stage in gl.static_range(2):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=1)
    gl.warp_specialize(
        [
            (add_tiles, (y, tiles, full, empty, STEPS)),
            (load_tiles, (source, tiles, full, empty, STEPS, HOLDS)),
        ],
        [1],
        [24],
    )


def case(kernel, types, constants, grid, args, name=None, **more):
    return {
        "name": f"gluon_{name or kernel.fn.__name__}",
        "kernel": kernel,
        "types": types,
        "constants": constants,
        "grid": grid,
        "args": args,
        "arch": 90,
        **more,
    }


def cases():
    f32, f16 = ({"x": kind, "y": kind} for kind in ("*fp32", "*fp16"))
    yield case(copy, {**f32, "n": "i32"}, {"BLOCK": 512}, "2", "in:f32[1000]=range out:f32[1000] i32=1000", expect="1: a0")
    yield case(copy_past_the_end, {**f32, "n": "i32"}, {"BLOCK": 256}, "4", "in:f32[1000] out:f32[1000] i32=1000", finds="E1010")
    flat = "in:f32[32,32]=range out:f32[32,32]"
    yield case(transpose, f32, {"SIZE": 32}, "1", flat, expect="1: a0.T")
    yield case(through_shared_memory, f32, {"SIZE": 32}, "1", flat, expect="1: a0.T")
    yield case(softmax, {**f32, "columns": "i32"}, {"WIDTH": 256}, "3", "in:f32[3,200]=ones out:f32[3,200] i32=200", expect="1: a0 / 200")
    steps = "in:f32[4,512]=range out:f32[512]"
    yield case(copies, f32, {"STEPS": 4, "WAITS": 1, "BLOCK": 512}, "1", steps, arch=80, expect="1: a0.sum(0)")
    yield case(copies, f32, {"STEPS": 4, "WAITS": 2, "BLOCK": 512}, "1", steps, "copies_wrong", arch=80, finds="E1018")
    three = {"a": "*fp16", "b": "*fp16", "c": "*fp32"}
    square = "in:f16[{0},{0}]=ones in:f16[{0},{0}]=ones out:f32[{0},{0}]"
    yield case(product_by_warps, three, {"SIZE": 32}, "1", square.format(32), arch=80, expect="2: np.full((32, 32), 32, 'f4')")
    boxes = "in:f16[128,128]=ones out:f16[128,128]"
    yield case(box_copy, f16, {"SIZE": 128, "WAITS": True}, "2,2", boxes, expect="1: a0 * 2")
    yield case(box_copy, f16, {"SIZE": 128, "WAITS": False}, "2,2", boxes, "box_copy_wrong", finds="any")
    yield case(product, three, {"SIZE": 256, "FREED": True}, "4,4", square.format(256), expect="2: np.full((256, 256), 256, 'f4')")
    yield case(product, three, {"SIZE": 256, "FREED": False}, "4,4", square.format(256), "product_wrong", finds="E1018")
    tiles = "in:f16[320,64]=ones out:f32[64,64]"
    apart = {"x": "*fp16", "y": "*fp32"}
    yield case(specialised, apart, {"STEPS": 5, "HOLDS": True}, "1", tiles, expect="1: np.full((64, 64), 5, 'f4')")
    yield case(specialised, apart, {"STEPS": 5, "HOLDS": False}, "1", tiles, "specialised_wrong", finds="any")
