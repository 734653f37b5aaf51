"""Attention in Triton as its tutorial on fused attention has it: blocks of queries, keys and values by descriptors,
the greatest score and the sum of each row corrected from block to block, the diagonal apart. For comparison."""

import torch
import triton
import triton.language as tl

@triton.jit
def _inner(acc, l, m, q, kd, vd, start, lo, hi, scale, offs_m, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, MASK: tl.constexpr, y0, S, NARROW: tl.constexpr, v0):
    offs_n = tl.arange(0, N)
    for j in tl.range(lo, hi, N):
        j = tl.multiple_of(j, N)
        k = kd.load([y0 + j, 0]).T
        s = tl.dot(q, k)
        if MASK:
            s = s * scale + tl.where(offs_m[:, None] >= (j + offs_n[None, :]), 0, -1.0e6)
            mn = tl.maximum(m, tl.max(s, 1))
            s -= mn[:, None]
        else:
            mn = tl.maximum(m, tl.max(s, 1) * scale)
            s = s * scale - mn[:, None]
        p = tl.math.exp2(s)
        a = tl.math.exp2(m - mn)
        l = l * a + tl.sum(p, 1)
        acc = acc * a[:, None]
        if NARROW:
            # Values lie in columns.
            v = vd.load([v0, j]).T
            acc = tl.dot(p.to(tl.float8e4nv), v, acc)
        else:
            v = vd.load([y0 + j, 0])
            acc = tl.dot(p.to(tl.bfloat16), v, acc)
        m = mn
    return acc, l, m
@triton.jit
def _fwd(qp, kp, vp, op, scale, S, H, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, NARROW: tl.constexpr):
    qd = tl.make_tensor_descriptor(qp, [H * S, D], [D, 1], [M, D])
    kd = tl.make_tensor_descriptor(kp, [H * S, D], [D, 1], [N, D])
    if NARROW:
        vd = tl.make_tensor_descriptor(vp, [H * D, S], [S, 1], [D, N])
    else:
        vd = tl.make_tensor_descriptor(vp, [H * S, D], [D, 1], [N, D])
    od = tl.make_tensor_descriptor(op, [H * S, D], [D, 1], [M, D])
    start = tl.program_id(0); y0 = tl.program_id(1) * S; v0 = tl.program_id(1) * D
    offs_m = start * M + tl.arange(0, M)
    m = tl.zeros([M], tl.float32) - float("inf"); l = tl.zeros([M], tl.float32); acc = tl.zeros([M, D], tl.float32)
    q = qd.load([y0 + start * M, 0])
    if CAUSAL:
        acc, l, m = _inner(acc, l, m, q, kd, vd, start, 0, start * M, scale, offs_m, M, N, D, False, y0, S, NARROW, v0)
        acc, l, m = _inner(acc, l, m, q, kd, vd, start, start * M, (start + 1) * M, scale, offs_m, M, N, D, True, y0, S, NARROW, v0)
    else:
        acc, l, m = _inner(acc, l, m, q, kd, vd, start, 0, S, scale, offs_m, M, N, D, False, y0, S, NARROW, v0)
    od.store([y0 + start * M, 0], (acc / l[:, None]).to(tl.bfloat16))
triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
# Rows, keys, warps and stages.
SIZES = [(128, 64, 4, 3), (128, 64, 8, 3), (128, 128, 8, 3), (128, 128, 8, 2), (64, 64, 4, 3), (128, 32, 8, 3)]


def attend(q, k, v, causal, M, N, warps, stages):
    """Attention of (heads, length, head) tensors of bf16; of e4m3, v is (heads, head, length)."""
    H, S, D = q.shape
    o = torch.empty_like(q, dtype=torch.bfloat16)
    narrow = q.dtype == torch.float8_e4m3fn
    _fwd[(S // M, H)](q, k, v, o, 1.4426950408889634 / D ** 0.5, S, H, M, N, D, causal, narrow, num_warps=warps, num_stages=stages)
    return o
