"""Kernels of Triton, in many configurations: nothing may be found in the right ones."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)


@triton.jit
def add_unmasked(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + tl.load(y + at), at < n)


@triton.jit
def activation(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    value = tl.load(x + at, mask).to(tl.float32)
    tl.store(out + at, (value * tl.sigmoid(value)).to(out.dtype.element_ty), mask)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, at < columns, -float("inf")).to(tl.float32)
    value = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * columns + at, (value / tl.sum(value, 0)).to(out.dtype.element_ty), at < columns)


@triton.jit
def layer_norm(x, scale, shift, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask, 0).to(tl.float32)
    mean = tl.sum(value, 0) / columns
    away = tl.where(mask, value - mean, 0)
    factor = tl.rsqrt(tl.sum(away * away, 0) / columns + 1e-5)
    value = away * factor * tl.load(scale + at, mask).to(tl.float32) + tl.load(shift + at, mask).to(tl.float32)
    tl.store(out + row * columns + at, value.to(out.dtype.element_ty), mask)


@triton.jit
def rms_norm_loop(x, scale, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    squares = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, at < columns, 0).to(tl.float32)
        squares += value * value
    factor = tl.rsqrt(tl.sum(squares, 0) / columns + 1e-5)
    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, at < columns, 0).to(tl.float32)
        value = value * factor * tl.load(scale + at, at < columns).to(tl.float32)
        tl.store(out + row * columns + at, value.to(out.dtype.element_ty), at < columns)


@triton.jit
def transpose(x, out, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + row[:, None] * columns + column[None, :], (row[:, None] < rows) & (column[None, :] < columns))
    tl.store(out + column[:, None] * rows + row[None, :], value.T, (column[:, None] < columns) & (row[None, :] < rows))


@triton.jit
def sum_columns(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), tl.float32)
    for begin in range(0, rows, ROWS):
        row = begin + tl.arange(0, ROWS)
        mask = (row[:, None] < rows) & (column[None, :] < columns)
        total += tl.sum(tl.load(x + row[:, None] * columns + column[None, :], mask, 0).to(tl.float32), 0)
    tl.store(out + column, total, column < columns)


@triton.jit
def arg_max(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, at < columns, -float("inf"))
    tl.store(out + row, tl.argmax(value, 0))


@triton.jit
def cumulative_sum(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, at < columns, 0)
    tl.store(out + row * columns + at, tl.cumsum(value, 0), at < columns)


@triton.jit
def sort_rows(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + at) & (BINS - 1), BINS)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def gather(x, index, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * BLOCK + at)
    tl.store(out + tl.program_id(0) * BLOCK + at, tl.gather(value, tl.load(index + at) & (BLOCK - 1), 0))


@triton.jit
def embedding(table, index, out, columns, BLOCK: tl.constexpr):
    row = tl.load(index + tl.program_id(0)) & 15
    at = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) * columns + at, tl.load(table + row * columns + at, at < columns), at < columns)


@triton.jit
def dropout(x, out, n, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > 0.5
    tl.store(out + at, tl.where(keep, tl.load(x + at, at < n) * 2, 0.0), at < n)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for begin in range(0, K, BK):
        k = begin + tl.arange(0, BK)
        left = tl.load(a + row[:, None] * K + k[None, :], (row[:, None] < M) & (k[None, :] < K), 0)
        right = tl.load(b + k[:, None] * N + column[None, :], (k[:, None] < K) & (column[None, :] < N), 0)
        total = tl.dot(left, right, total)
    mask = (row[:, None] < M) & (column[None, :] < N)
    tl.store(c + row[:, None] * N + column[None, :], total.to(c.dtype.element_ty), mask)


@triton.jit
def matmul_transposed(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for begin in range(0, K, BK):
        k = begin + tl.arange(0, BK)
        left = tl.load(a + row[:, None] * K + k[None, :])
        right = tl.load(b + column[None, :] * K + k[:, None])
        total = tl.dot(left, right, total)
    tl.store(c + row[:, None] * N + column[None, :], total.to(c.dtype.element_ty))


@triton.jit
def matmul_split(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for begin in range(tl.program_id(2) * BK, K, BK * SPLIT):
        k = begin + tl.arange(0, BK)
        left = tl.load(a + row[:, None] * K + k[None, :])
        right = tl.load(b + k[:, None] * N + column[None, :])
        total = tl.dot(left, right, total)
    tl.atomic_add(c + row[:, None] * N + column[None, :], total)


@triton.jit
def matmul_persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        row = tile // tl.cdiv(N, BN) * BM + tl.arange(0, BM)
        column = tile % tl.cdiv(N, BN) * BN + tl.arange(0, BN)
        total = tl.zeros((BM, BN), tl.float32)
        for begin in range(0, K, BK):
            k = begin + tl.arange(0, BK)
            left = tl.load(a + row[:, None] * K + k[None, :])
            right = tl.load(b + k[:, None] * N + column[None, :])
            total = tl.dot(left, right, total)
        tl.store(c + row[:, None] * N + column[None, :], total.to(c.dtype.element_ty))


@triton.jit
def matmul_dynamic(a, b, c, counter, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    tile = tl.atomic_add(counter, 1)
    while tile < tiles:
        row = tile // tl.cdiv(N, BN) * BM + tl.arange(0, BM)
        column = tile % tl.cdiv(N, BN) * BN + tl.arange(0, BN)
        total = tl.zeros((BM, BN), tl.float32)
        for begin in range(0, K, BK):
            k = begin + tl.arange(0, BK)
            left = tl.load(a + row[:, None] * K + k[None, :])
            right = tl.load(b + k[:, None] * N + column[None, :])
            total = tl.dot(left, right, total)
        tl.store(c + row[:, None] * N + column[None, :], total.to(c.dtype.element_ty))
        tile = tl.atomic_add(counter, 1)


@triton.jit
def attention(q, k, v, out, length, scale, BM: tl.constexpr, BN: tl.constexpr, HEAD: tl.constexpr, CAUSAL: tl.constexpr):
    head = tl.program_id(1) * length * HEAD
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, HEAD)
    query = tl.load(q + head + row[:, None] * HEAD + d[None, :])
    most = tl.full((BM,), -1e30, tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, HEAD), tl.float32)
    end = (tl.program_id(0) + 1) * BM if CAUSAL else length
    for begin in range(0, end, BN):
        column = begin + tl.arange(0, BN)
        keys = tl.load(k + head + column[None, :] * HEAD + d[:, None])
        scores = tl.dot(query, keys) * scale
        if CAUSAL:
            scores = tl.where(row[:, None] >= column[None, :], scores, -1e30)
        next_most = tl.maximum(most, tl.max(scores, 1))
        factor = tl.exp(most - next_most)
        scores = tl.exp(scores - next_most[:, None])
        weight = weight * factor + tl.sum(scores, 1)
        values = tl.load(v + head + column[:, None] * HEAD + d[None, :])
        total = total * factor[:, None] + tl.dot(scores.to(values.dtype), values)
        most = next_most
    tl.store(out + head + row[:, None] * HEAD + d[None, :], (total / weight[:, None]).to(out.dtype.element_ty))


@triton.jit
def semaphore_sum(x, out, lock, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * BLOCK + at)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out + at, tl.load(out + at) + value)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def last_block(x, parts, counter, out, n, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(parts + tl.program_id(0), tl.sum(tl.load(x + at), 0))
    tl.debug_barrier()
    if tl.atomic_add(counter, 1) == PROGRAMS - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, PROGRAMS)), 0))


@triton.jit
def past_the_end(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at), at < n)


@triton.jit
def overlapping(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + tl.program_id(0))


@triton.jit
def sum_without_atomic(x, out, BLOCK: tl.constexpr):
    total = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), 0)
    tl.store(out, tl.load(out) + total)


@triton.jit
def flag_relaxed(x, data, flag, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if tl.program_id(0) == 0:
        tl.store(data + at, tl.load(x + at) * 2)
        tl.debug_barrier()
        tl.atomic_xchg(flag, 1, sem="relaxed")
    else:
        while tl.atomic_add(flag, 0, sem="acquire") == 0:
            pass
        tl.store(out + at, tl.load(data + at))


@triton.jit
def flag_released(x, data, flag, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if tl.program_id(0) == 0:
        tl.store(data + at, tl.load(x + at) * 2)
        tl.debug_barrier()
        tl.atomic_xchg(flag, 1, sem="release")
    else:
        while tl.atomic_add(flag, 0, sem="acquire") == 0:
            pass
        tl.store(out + at, tl.load(data + at))


@triton.jit
def unlock_early(x, out, lock, BLOCK: tl.constexpr):
    # Reported to Triton: one warp gives a lock back while others are still at work behind it. Today's
    # compiler puts a barrier of the block before the atomic operation.
    at = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * BLOCK + at)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out + at, tl.load(out + at) + value)
    tl.atomic_xchg(lock, 0)


@triton.jit
def store_then_load(x, between, out, N: tl.constexpr, BARRIER: tl.constexpr):
    # Reported to Triton: what one loop has stored is loaded by other threads of the program.
    row = tl.arange(0, N)
    tl.store(between + row[:, None] * N + row[None, :], tl.load(x + row[:, None] * N + row[None, :]) * 2)
    if BARRIER:
        tl.debug_barrier()
    tl.store(out + row[:, None] * N + row[None, :], tl.load(between + (row[:, None] * N + row[None, :] + 4 * N) % (N * N)))


SHORT = {"fp32": "f32", "fp16": "f16", "bf16": "bf16", "i32": "i32"}


@triton.jit
def matmul_described(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr,
                     SPECIAL: tl.constexpr):
    """A persistent product whose operands come through tensor maps that the kernel makes; b has rows of N."""
    of_a = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    of_b = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    of_c = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    columns = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * columns, PROGRAMS, warp_specialize=SPECIAL):
        row, column = tile // columns * BM, tile % columns * BN
        sums = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            sums = tl.dot(of_a.load([row, k * BK]), of_b.load([column, k * BK]).T, sums)
        of_c.store([row, column], sums.to(tl.float16))


@triton.jit
def described_overlapping(x, out, N: tl.constexpr, B: tl.constexpr):
    """Programs store boxes that share rows: each takes a step that is half of its box."""
    of_x = tl.make_tensor_descriptor(x, [N, 32], [32, 1], [B, 32])
    of_out = tl.make_tensor_descriptor(out, [N, 32], [32, 1], [B, 32])
    row = tl.program_id(0) * (B // 2)
    of_out.store([row, 0], of_x.load([row, 0]) + tl.program_id(0))


@triton.jit
def softmax_in_place(x, columns, BLOCK: tl.constexpr):
    """Where a row is short, each warp holds a copy of it, and one of them stores."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    value = tl.exp(value - tl.max(value, 0))
    tl.store(x + row * columns + at, value / tl.sum(value, 0), mask=at < columns)


@triton.jit
def step_in_place(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n) + 2
    tl.store(x + at, value, mask=at < n)
    tl.store(y + at, value * value, mask=at < n)


def cases():
    """All cases: a name, a kernel, the types of its arguments, constants, a grid and arguments."""

    def case(name, kernel, types, constants, grid, args, **more):
        return {"name": name, "kernel": kernel, "types": types, "constants": constants, "grid": grid, "args": args, **more}

    for kind in ["fp32", "fp16", "bf16"]:
        t = SHORT[kind]
        for warps in [1, 4]:
            end = f"{t}_{warps}"
            yield case(f"triton_add_{end}", add, {"x": f"*{kind}", "y": f"*{kind}", "out": f"*{kind}", "n": "i32"},
                       {"BLOCK": 512}, "2", f"in:{t}[1000] in:{t}[1000] out:{t}[1000] i32=1000", warps=warps)
            yield case(f"triton_activation_{end}", activation, {"x": f"*{kind}", "out": f"*{kind}", "n": "i32"},
                       {"BLOCK": 512}, "2", f"in:{t}[1000] out:{t}[1000] i32=1000", warps=warps)
            yield case(f"triton_softmax_{end}", softmax, {"x": f"*{kind}", "out": f"*{kind}", "columns": "i32"},
                       {"BLOCK": 1024}, "3", f"in:{t}[3,1000] out:{t}[3,1000] i32=1000", warps=warps)
            yield case(f"triton_layer_norm_{end}", layer_norm,
                       {"x": f"*{kind}", "scale": f"*{kind}", "shift": f"*{kind}", "out": f"*{kind}", "columns": "i32"},
                       {"BLOCK": 1024}, "3", f"in:{t}[3,1000] in:{t}[1000] in:{t}[1000] out:{t}[3,1000] i32=1000", warps=warps)
            yield case(f"triton_rms_norm_{end}", rms_norm_loop,
                       {"x": f"*{kind}", "scale": f"*{kind}", "out": f"*{kind}", "columns": "i32"},
                       {"BLOCK": 256}, "3", f"in:{t}[3,1000] in:{t}[1000] out:{t}[3,1000] i32=1000", warps=warps)
            yield case(f"triton_transpose_{end}", transpose, {"x": f"*{kind}", "out": f"*{kind}", "rows": "i32", "columns": "i32"},
                       {"BLOCK": 32}, "3,2", f"in:{t}[80,60] out:{t}[60,80] i32=80 i32=60", warps=warps)
            yield case(f"triton_sum_columns_{end}", sum_columns, {"x": f"*{kind}", "out": "*fp32", "rows": "i32", "columns": "i32"},
                       {"ROWS": 32, "COLUMNS": 32}, "2", f"in:{t}[100,60] out:f32[60] i32=100 i32=60", warps=warps)
    for block in [16, 32, 128]:
        yield case(f"triton_softmax_in_place_{block}", softmax_in_place, {"x": "*fp32", "columns": "i32"},
                   {"BLOCK": block}, "3", f"inout:f32[3,{block - 3}] i32={block - 3}")
        yield case(f"triton_step_in_place_{block}", step_in_place, {"x": "*fp32", "y": "*fp32", "n": "i32"},
                   {"BLOCK": block}, "3", f"inout:f32[{3 * block - 5}] out:f32[{3 * block - 5}] i32={3 * block - 5}")
    for warps in [1, 2, 4, 8]:
        yield case(f"triton_arg_max_{warps}", arg_max, {"x": "*fp32", "out": "*i32", "columns": "i32"},
                   {"BLOCK": 512}, "3", "in:f32[3,500] out:i32[3] i32=500", warps=warps)
        yield case(f"triton_cumulative_sum_{warps}", cumulative_sum, {"x": "*fp32", "out": "*fp32", "columns": "i32"},
                   {"BLOCK": 512}, "3", "in:f32[3,500] out:f32[3,500] i32=500", warps=warps)
        yield case(f"triton_sort_{warps}", sort_rows, {"x": "*fp32", "out": "*fp32"},
                   {"BLOCK": 128}, "2", "in:f32[256] out:f32[256]", warps=warps)
        yield case(f"triton_histogram_{warps}", histogram, {"x": "*i32", "out": "*i32", "n": "i32"},
                   {"BLOCK": 256, "BINS": 64}, "2", "in:i32[512]=range inout:i32[64]=zeros i32=512", warps=warps)
        yield case(f"triton_gather_{warps}", gather, {"x": "*fp32", "index": "*i32", "out": "*fp32"},
                   {"BLOCK": 256}, "2", "in:f32[512] in:i32[256]=range out:f32[512]", warps=warps)
        yield case(f"triton_dropout_{warps}", dropout, {"x": "*fp32", "out": "*fp32", "n": "i32", "seed": "i32"},
                   {"BLOCK": 256}, "2", "in:f32[500] out:f32[500] i32=500 i32=7", warps=warps)
        yield case(f"triton_embedding_{warps}", embedding, {"table": "*fp16", "index": "*i32", "out": "*fp16", "columns": "i32"},
                   {"BLOCK": 256}, "4", "in:f16[16,200] in:i32[4]=range out:f16[4,200] i32=200", warps=warps)
    sizes = {"BM": 32, "BN": 32, "BK": 32}
    for arch in [80, 90]:
        for kind in ["fp16", "bf16", "fp32"]:
            t = SHORT[kind]
            pointers = {"a": f"*{kind}", "b": f"*{kind}", "c": f"*{kind}", "M": "i32", "N": "i32", "K": "i32"}
            for stages in [1, 2, 3, 4]:
                for warps in [2, 4] if stages > 1 else [4]:
                    end = f"{arch}_{t}_{stages}_{warps}"
                    yield case(f"triton_matmul_{end}", matmul, pointers, sizes, "2,2",
                               f"in:{t}[64,128] in:{t}[128,64] out:{t}[64,64] i32=64 i32=64 i32=128",
                               warps=warps, stages=stages, arch=arch, divisible=["M", "N", "K"])
            yield case(f"triton_matmul_edges_{arch}_{t}", matmul, pointers, sizes, "2,2",
                       f"in:{t}[50,70] in:{t}[70,40] out:{t}[50,40] i32=50 i32=40 i32=70", arch=arch)
            yield case(f"triton_matmul_transposed_{arch}_{t}", matmul_transposed, pointers, sizes, "2,2",
                       f"in:{t}[64,128] in:{t}[64,128] out:{t}[64,64] i32=64 i32=64 i32=128", arch=arch, divisible=["M", "N", "K"])
            yield case(f"triton_matmul_split_{arch}_{t}", matmul_split, {**pointers, "c": "*fp32"}, {**sizes, "SPLIT": 2}, "2,2,2",
                       f"in:{t}[64,128] in:{t}[128,64] inout:f32[64,64]=zeros i32=64 i32=64 i32=128", arch=arch, divisible=["M", "N", "K"])
            yield case(f"triton_matmul_persistent_{arch}_{t}", matmul_persistent, pointers, sizes, "2",
                       f"in:{t}[64,128] in:{t}[128,64] out:{t}[64,64] i32=64 i32=64 i32=128", arch=arch, divisible=["M", "N", "K"])
            yield case(f"triton_matmul_dynamic_{arch}_{t}", matmul_dynamic, {**pointers, "counter": "*i32"}, sizes, "2",
                       f"in:{t}[64,128] in:{t}[128,64] out:{t}[64,64] inout:i32[1]=zeros i32=64 i32=64 i32=128",
                       arch=arch, divisible=["M", "N", "K"])
        # Warpgroups: 64 rows for each four warps, so wgmma on sm_90.
        wide = {"a": "*fp16", "b": "*fp16", "c": "*fp16", "M": "i32", "N": "i32", "K": "i32"}
        for stages in [2, 3, 4]:
            for warps in [4, 8]:
                yield case(f"triton_matmul_wide_{arch}_{stages}_{warps}", matmul, wide, {"BM": 128, "BN": 64, "BK": 64}, "1,1",
                           "in:f16[128,256] in:f16[256,64] out:f16[128,64] i32=128 i32=64 i32=256",
                           warps=warps, stages=stages, arch=arch, divisible=["M", "N", "K"])
        for causal in [False, True]:
            for head in [32, 64]:
                for stages in [1, 2, 3]:
                    name = f"triton_attention_{arch}_{head}_{stages}{'_causal' if causal else ''}"
                    types = {"q": "*fp16", "k": "*fp16", "v": "*fp16", "out": "*fp16", "length": "i32", "scale": "fp32"}
                    shape = f"f16[2,128,{head}]"
                    yield case(name, attention, types, {"BM": 64, "BN": 32, "HEAD": head, "CAUSAL": causal}, "2,2",
                               f"in:{shape} in:{shape} in:{shape} out:{shape} i32=128 f32=0.125",
                               stages=stages, arch=arch, divisible=["length"])
    yield case("triton_semaphore_right", semaphore_sum, {"x": "*fp32", "out": "*fp32", "lock": "*i32"},
               {"BLOCK": 128}, "4", "in:f32[512] inout:f32[128]=zeros inout:i32[1]=zeros")
    yield case("triton_last_block_right", last_block, {"x": "*fp32", "parts": "*fp32", "counter": "*i32", "out": "*fp32", "n": "i32"},
               {"BLOCK": 128, "PROGRAMS": 4}, "4", "in:f32[512] inout:f32[4] inout:i32[1]=zeros out:f32[1] i32=512")
    # Defects.
    yield case("triton_past_the_end_wrong", past_the_end, {"x": "*fp32", "out": "*fp32", "n": "i32"},
               {"BLOCK": 256}, "2", "in:f32[500] out:f32[500] i32=500", finds="E1010")
    yield case("triton_add_unmasked_wrong", add_unmasked, {"x": "*fp16", "y": "*fp16", "out": "*fp16", "n": "i32"},
               {"BLOCK": 256}, "2", "in:f16[500] in:f16[500] out:f16[500] i32=500", finds="E1010")
    yield case("triton_overlapping_wrong", overlapping, {"x": "*fp32", "out": "*fp32"},
               {"BLOCK": 256}, "3", "in:f32[512] out:f32[512]", finds="E1017")
    yield case("triton_sum_without_atomic_wrong", sum_without_atomic, {"x": "*fp32", "out": "*fp32"},
               {"BLOCK": 256}, "3", "in:f32[768] inout:f32[1]=zeros", finds="E1017")
    flags = {"x": "*fp32", "data": "*fp32", "flag": "*i32", "out": "*fp32"}
    lone = "in:f32[128] inout:f32[128] inout:i32[1]=zeros out:f32[128]"
    yield case("triton_flag_relaxed_wrong", flag_relaxed, flags, {"BLOCK": 128}, "2", lone, finds="E1017")
    yield case("triton_flag_released_right", flag_released, flags, {"BLOCK": 128}, "2", lone)
    tiles = {"x": "*fp32", "between": "*fp32", "out": "*fp32"}
    square = "in:f32[32,32] inout:f32[32,32] out:f32[32,32]"
    yield case("report_store_then_load_wrong", store_then_load, tiles, {"N": 32, "BARRIER": False}, "1", square, finds="E1016")
    yield case("report_store_then_load_right", store_then_load, tiles, {"N": 32, "BARRIER": True}, "1", square)
    yield case("report_unlock_early_right", unlock_early, {"x": "*fp32", "out": "*fp32", "lock": "*i32"},
               {"BLOCK": 128}, "4", "in:f32[512] inout:f32[128]=zeros inout:i32[1]=zeros")
    for special in [False, True]:
        yield case(f"triton_described{'_special' if special else ''}_right", matmul_described,
                   {"a": "*fp16", "b": "*fp16", "c": "*fp16", "M": "i32", "N": "i32", "K": "i32"},
                   {"BM": 128, "BN": 64, "BK": 64, "PROGRAMS": 3, "SPECIAL": special}, "3",
                   "in:f16[256,128] in:f16[192,128] out:f16[256,192] i32=256 i32=192 i32=128", arch=90,
                   divisible=["M", "N", "K"])
    yield case("triton_described_overlapping_wrong", described_overlapping, {"x": "*fp32", "out": "*fp32"},
               {"N": 64, "B": 16}, "4", "in:f32[64,32] out:f32[64,32]", arch=90, finds="E1017,E1018")
