"""Kernels in Triton, for the same work as those that `device.py` times beside them.

Each is written as Triton's tutorials have such kernels: a program for a row, or for a tile; sizes of tiles are found by trial where
the tutorials do so.
"""

# mypy: ignore-errors
from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _add(a, b, c, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(c + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)


def add(a, b, c):
    count = a.numel()
    _add[(triton.cdiv(count, 1024),)](a, b, c, count, BLOCK=1024)


@triton.jit
def _softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    inside = at < columns
    own = tl.load(x + row + at, mask=inside, other=-float("inf")).to(tl.float32)
    powers = tl.exp(own - tl.max(own, 0))
    tl.store(y + row + at, (powers / tl.sum(powers, 0)).to(y.dtype.element_ty), mask=inside)


def softmax(x, y):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    _softmax[(rows,)](x, y, columns, BLOCK=block, num_warps=16 if block >= 8192 else 8)


@triton.jit
def _layer_norm(x, weight, bias, y, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    inside = at < columns
    own = tl.load(x + row + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(own, 0) / columns
    centred = tl.where(inside, own - mean, 0.0)
    root = tl.rsqrt(tl.sum(centred * centred, 0) / columns + epsilon)
    factor, term = tl.load(weight + at, mask=inside).to(tl.float32), tl.load(bias + at, mask=inside).to(tl.float32)
    tl.store(y + row + at, (centred * root * factor + term).to(y.dtype.element_ty), mask=inside)


def layer_norm(x, weight, bias, y):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    _layer_norm[(rows,)](x, weight, bias, y, columns, 1e-5, BLOCK=block, num_warps=16 if block >= 8192 else 8)


@triton.jit
def _sum_rows(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    own = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
    tl.store(y + row, tl.sum(own, 0).to(y.dtype.element_ty))


def sum_rows(x, y):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    _sum_rows[(rows,)](x, y, columns, BLOCK=block, num_warps=16 if block >= 8192 else 8)


@triton.jit
def _transpose(x, y, rows, columns, R: tl.constexpr, C: tl.constexpr):
    row, column = tl.program_id(1) * R + tl.arange(0, R), tl.program_id(0) * C + tl.arange(0, C)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    tile = tl.load(x + row.to(tl.int64)[:, None] * columns + column[None, :], mask=inside)
    tl.store(y + column.to(tl.int64)[:, None] * rows + row[None, :], tl.trans(tile), mask=tl.trans(inside))


def transpose(x, y):
    rows, columns = x.shape
    _transpose[(triton.cdiv(columns, 64), triton.cdiv(rows, 64))](x, y, rows, columns, R=64, C=64, num_warps=8)


@triton.jit
def _product(
    a, b, c, bias, m, n, k, M_TILE: tl.constexpr, N_TILE: tl.constexpr, K_TILE: tl.constexpr, TOGETHER: tl.constexpr,
    EXACT: tl.constexpr, INTEGERS: tl.constexpr, RELU: tl.constexpr, A_STEP_M, A_STEP_K, B_STEP_N, B_STEP_K,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(m, M_TILE), tl.cdiv(n, N_TILE)
    number = tl.program_id(0)
    first = number // (TOGETHER * tiles_n) * TOGETHER
    height = min(tiles_m - first, TOGETHER)
    inside = number % (TOGETHER * tiles_n)
    row = (first + inside % height) * M_TILE + tl.arange(0, M_TILE)
    column = inside // height * N_TILE + tl.arange(0, N_TILE)
    depth = tl.arange(0, K_TILE)
    from_a = a + (row % m).to(tl.int64)[:, None] * A_STEP_M + depth[None, :].to(tl.int64) * A_STEP_K
    from_b = b + (column % n).to(tl.int64)[None, :] * B_STEP_N + depth[:, None].to(tl.int64) * B_STEP_K
    sums = tl.zeros((M_TILE, N_TILE), dtype=tl.int32 if INTEGERS else tl.float32)
    for done in range(0, k, K_TILE):
        left = tl.load(from_a, mask=depth[None, :] < k - done, other=0.0)
        right = tl.load(from_b, mask=depth[:, None] < k - done, other=0.0)
        if INTEGERS:
            sums = tl.dot(left, right, sums, out_dtype=tl.int32)
        else:
            sums = tl.dot(left, right, sums, input_precision="ieee" if EXACT else "tf32")
        from_a += K_TILE * A_STEP_K
        from_b += K_TILE * B_STEP_K
    if RELU:
        sums = tl.maximum(sums + tl.load(bias + column, mask=column < n).to(tl.float32)[None, :], 0.0)
    to = c + row.to(tl.int64)[:, None] * n + column[None, :]
    tl.store(to, sums.to(c.dtype.element_ty), mask=(row < m)[:, None] & (column < n)[None, :])


def _tiles(m, n, k, stages, warps):
    return triton.Config({"M_TILE": m, "N_TILE": n, "K_TILE": k, "TOGETHER": 8}, num_stages=stages, num_warps=warps)


_OF_SIXTEEN_BITS = [
    _tiles(128, 256, 64, 3, 8), _tiles(128, 256, 64, 4, 8), _tiles(256, 128, 64, 3, 8), _tiles(128, 128, 64, 4, 4),
    _tiles(128, 128, 32, 4, 4), _tiles(64, 128, 64, 4, 4), _tiles(64, 128, 32, 4, 4), _tiles(64, 64, 128, 4, 4),
    _tiles(16, 128, 128, 4, 4), _tiles(16, 64, 128, 5, 4), _tiles(16, 64, 256, 4, 4),
]  # fmt: skip
_OF_F32 = [_tiles(128, 128, 16, 3, 8), _tiles(128, 64, 16, 3, 8), _tiles(64, 64, 32, 3, 4)]
_OF_TF32 = [
    _tiles(128, 256, 32, 3, 8), _tiles(256, 128, 32, 3, 8), _tiles(128, 128, 32, 4, 8), _tiles(128, 128, 32, 3, 4),
    _tiles(64, 128, 32, 4, 4),
]  # fmt: skip
_OF_BYTES = [
    _tiles(128, 256, 128, 3, 8), _tiles(256, 128, 128, 3, 8), _tiles(128, 256, 64, 4, 8), _tiles(128, 128, 128, 4, 8),
    _tiles(128, 128, 128, 3, 4), _tiles(128, 128, 64, 4, 4),
]  # fmt: skip
_products = {
    what: triton.autotune(configs=configs, key=["m", "n", "k"])(_product)
    for what, configs in [("16 bits", _OF_SIXTEEN_BITS), ("f32", _OF_F32), ("tf32", _OF_TF32), ("bytes", _OF_BYTES)]
}


def gemm(a, b, c, bias=None, tf32=False):
    """A (M,K) by B (N,K), both of any strides; f32 is multiplied as f32 or as tf32. With a bias (N)
    the epilogue is ``max(x + bias, 0)``.
    """
    (m, k), n = a.shape, b.shape[0]
    is_f32, integers = a.dtype == torch.float32, a.dtype == torch.int8
    what = "bytes" if integers else "16 bits" if not is_f32 else "tf32" if tf32 else "f32"
    grid = lambda meta: (triton.cdiv(m, meta["M_TILE"]) * triton.cdiv(n, meta["N_TILE"]),)  # noqa: E731
    _products[what][grid](
        a, b, c, c if bias is None else bias, m, n, k, EXACT=what == "f32", INTEGERS=integers, RELU=bias is not None,
        A_STEP_M=a.stride(0), A_STEP_K=a.stride(1), B_STEP_N=b.stride(0), B_STEP_K=b.stride(1),
    )  # fmt: skip
