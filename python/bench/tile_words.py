# mypy: ignore-errors
"""Words of tile programs beside PyTorch: numbers of 64 bits, gathers along two modes, products of
tf32, sums of 16 bits in memory, parts of indices.

    python python/bench/tile_words.py [DEVICE]

runs each on a device, "cuda" where nothing is said, or by the interpreter of kernels on "cpu", and
compares every element. It prints a line for each word, fails if one differs, and stops after five
minutes.
"""

from __future__ import annotations

import signal
import sys
import time

import numpy as np
import torch

import tilewright as tw
from tilewright import tile

SECONDS = 300


@tw.tile(grid="ceil(N/256)")
def whole(
    a: tw.Input("i64", "N:1"),
    b: tw.Input("i64", "N:1"),
    sums: tw.Output("i64", "N:1"),
    parts: tw.Output("i64", "N:1"),
    bits: tw.Output("i64", "N:1"),
    chosen: tw.Output("i64", "N:1"),
):
    at = (tile.block.x,)
    x, y = a.load((256,), at), b.load((256,), at)
    sums.store(at, x * y + x - y)
    parts.store(at, x // y + x % y)
    bits.store(at, ((x << 3) ^ (y >> 5)) | x.lshr(60))
    chosen.store(at, tile.where(x < y, x.min(7), -y))


def integers_of_64_bits(device):
    source = torch.Generator().manual_seed(1)
    a, b = (torch.randint(-(2**62), 2**62, (5000,), generator=source) for _ in range(2))
    a[:4], b[:4] = torch.tensor([-(2**63), 2**63 - 1, -7, 7]), torch.tensor([3, -1, 2, -2])
    found = [torch.zeros_like(a, device=device) for _ in range(4)]
    whole(a.to(device), b.to(device), *found)
    down = torch.div(a, b, rounding_mode="floor")
    lowest = (a >> 60) & 15
    wanted = [a * b + a - b, down + (a - down * b), ((a << 3) ^ (b >> 5)) | lowest, torch.where(a < b, a.clamp(max=7), -b)]
    for own, want in zip(found, wanted):
        assert torch.equal(own.cpu(), want)


@tw.tile(grid="ceil(N/256)")
def real(a: tw.Input("f64", "N:1"), b: tw.Input("f64", "N:1"), y: tw.Output("f64", "N:1"), z: tw.Output("f64", "N:1"), narrow: tw.Output("f32", "N:1")):
    at = (tile.block.x,)
    x, w = a.load((256,), at), b.load((256,), at)
    y.store(at, x / w + (x * x + w * w).sqrt())
    z.store(at, tile.where(x <= w, x.floor() + w.recip(), x.max(w) * 1e-3))
    narrow.store(at, (x * w).to("f32"))


def numbers_of_64_bits(device):
    source = torch.Generator().manual_seed(2)
    a, b = (torch.randn(4000, generator=source, dtype=torch.float64) for _ in range(2))
    y, z, narrow = (torch.zeros(4000, dtype=kind, device=device) for kind in (torch.float64, torch.float64, torch.float32))
    real(a.to(device), b.to(device), y, z, narrow)
    # Each operation is rounded once, so the bits are those of NumPy; roots of PyTorch are not rounded.
    p, q = a.numpy(), b.numpy()
    assert np.array_equal(y.cpu().numpy(), p / q + np.sqrt(p * p + q * q))
    assert torch.equal(z.cpu(), torch.where(a <= b, a.floor() + 1 / b, torch.maximum(a, b) * 1e-3))
    assert torch.equal(narrow.cpu(), (a * b).float())


@tw.tile(grid="M")
def rows(
    x: tw.Input("f64", "(M,200):(200,1)"),
    n: tw.Input("i64", "(M,200):(200,1)"),
    sums: tw.Output("f64", "(M,2):(2,1)"),
    ends: tw.Output("i64", "(M,3):(3,1)"),
    scans: tw.Output("i64", "(M,200):(200,1)"),
    top: tw.Output("f64", "(M,4):(4,1)"),
):
    at = (tile.block.x, 0)
    a, b = x.load((1, 200), at), n.load((1, 200), at)
    sums.store((tile.block.x, 0), a.reduce_sum(1))
    sums.store((tile.block.x, 1), a.reduce_min(1))
    ends.store((tile.block.x, 0), b.reduce_max(1))
    ends.store((tile.block.x, 1), b.argmin(1).to("i64"))
    ends.store((tile.block.x, 2), b.reduce_sum(1))
    scans.store(at, b.scan_sum(1))
    top.store(at, a.top(1, 4))


def rows_of_64_bits(device):
    source = torch.Generator().manual_seed(3)
    # Multiples of 2^-30: their sums are exact.
    x = torch.randint(-(2**40), 2**40, (33, 200), generator=source).double() / 2**30
    n = torch.randint(-(2**55), 2**55, (33, 200), generator=source)
    sums, ends = torch.zeros(33, 2, dtype=torch.float64, device=device), torch.zeros(33, 3, dtype=torch.int64, device=device)
    scans, top = torch.zeros_like(n, device=device), torch.zeros(33, 4, dtype=torch.float64, device=device)
    rows(x.to(device), n.to(device), sums, ends, scans, top)
    assert torch.equal(sums.cpu(), torch.stack([x.sum(1), x.amin(1)], 1))
    assert torch.equal(ends.cpu(), torch.stack([n.amax(1), n.argmin(1), n.sum(1)], 1))
    assert torch.equal(scans.cpu(), n.cumsum(1)) and torch.equal(top.cpu(), x.topk(4).values)


@tw.tile(grid="ceil(M/8)")
def added(
    x: tw.Input("f64", "(M,32):(32,1)"),
    which: tw.Input("i64", "(M,1):(1,1)"),
    y: tw.InOut("f64", "(K,32):(32,1)"),
    counts: tw.InOut("i64", "1:1"),
):
    at = (tile.block.x, 0)
    numbers = which.load((8, 1), at, -1)
    y.atomic_add((numbers, 0), x.load((8, 32), at))
    counts.atomic_add((0,), tile.where(numbers >= 0, numbers * 4294967297, 0).reduce_sum(0).reshape((1,)))


def sums_of_64_bits_in_memory(device):
    source = torch.Generator().manual_seed(4)
    x = torch.randint(-(2**40), 2**40, (100, 32), generator=source).double() / 2**30
    which = torch.randint(0, 7, (100, 1), generator=source)
    y, counts = torch.ones(7, 32, dtype=torch.float64, device=device), torch.zeros(1, dtype=torch.int64, device=device)
    added(x.to(device), which.to(device), y, counts)
    assert torch.equal(y.cpu(), torch.ones(7, 32, dtype=torch.float64).index_add(0, which[:, 0], x))
    assert counts.item() == which.sum().item() * 4294967297


@tw.tile(grid=("ceil(R/16)", "ceil(C/32)"))
def crossed(
    x: tw.Input("f32", "(M,N):(N,1)"),
    r: tw.Input("i64", "(R,1):(1,1)"),
    c: tw.Input("i32", "(1,C):(C,1)"),
    y: tw.Output("f32", "(R,C):(C,1)"),
):
    at = (tile.block.x, tile.block.y)
    y.store(at, x.load((16, 32), (r.load((16, 1), (tile.block.x, 0), -1), c.load((1, 32), (0, tile.block.y))), -5.0))


@tw.tile(grid="ceil(R/16)")
def scattered(
    x: tw.Input("f32", "(M,N):(N,1)"),
    r: tw.Input("i32", "(R,24):(24,1)"),
    c: tw.Input("i32", "(R,24):(24,1)"),
    y: tw.Output("f32", "(R,24):(24,1)"),
    along: tw.Output("f32", "(R,24):(24,1)"),
    z: tw.InOut("f32", "(M,N):(N,1)"),
):
    at = (tile.block.x, 0)
    i, j = r.load((16, 24), at, -1), c.load((16, 24), at)
    a = x.load((16, 24), (i, j))
    y.store(at, a)
    along.store(at, x.load((16, 24), (tile.block.x, j), 0.5))
    z.atomic_add((i, j), a * 2.0)


def _at(x, i, j, other):
    inside = (i >= 0) & (i < x.shape[0]) & (j >= 0) & (j < x.shape[1])
    return torch.where(inside, x[i.clamp(0, x.shape[0] - 1), j.clamp(0, x.shape[1] - 1)], torch.tensor(other)), inside


def gathers_along_two_modes(device):
    source = torch.Generator().manual_seed(5)
    x = torch.randint(-50, 50, (45, 70), generator=source).float()
    r, c = torch.randint(-3, 48, (37, 1), generator=source), torch.randint(-3, 75, (1, 50), generator=source)
    y = torch.zeros(37, 50, device=device)
    crossed(x.to(device), r.to(device), c.int().to(device), y)
    assert torch.equal(y.cpu(), _at(x, r, c, -5.0)[0])
    i, j = torch.randint(-3, 48, (37, 24), generator=source), torch.randint(-3, 75, (37, 24), generator=source)
    y, along, z = torch.zeros(37, 24, device=device), torch.zeros(37, 24, device=device), torch.zeros(45, 70, device=device)
    scattered(x.to(device), i.int().to(device), j.int().to(device), y, along, z)
    wanted, inside = _at(x, i, j, 0.0)
    assert torch.equal(y.cpu(), wanted)
    assert torch.equal(along.cpu(), _at(x, torch.arange(37)[:, None].expand(37, 24), j, 0.5)[0])
    total = torch.zeros(45, 70).index_put((i[inside], j[inside]), 2 * wanted[inside], accumulate=True)
    assert torch.equal(z.cpu(), total)


@tw.tile(grid="ceil(R/16)")
def squared(x: tw.Input("f64", "(M,N):(N,1)"), r: tw.Input("i64", "(R,8):(8,1)"), c: tw.Input("i64", "(R,8):(8,1)"), y: tw.Output("f64", "(R,8):(8,1)")):
    at = (tile.block.x, 0)
    a = x.load((16, 8), (r.load((16, 8), at, -1), c.load((16, 8), at)))
    y.store(at, a * a)


def derivatives_of_gathers_of_f64(device):
    source = torch.Generator().manual_seed(6)
    x = (torch.randint(-50, 50, (9, 11), generator=source).double() + 2**-30).requires_grad_()
    i, j = torch.randint(0, 9, (37, 8), generator=source), torch.randint(0, 11, (37, 8), generator=source)
    d_y = torch.randint(-4, 5, (37, 8), generator=source).double()
    x[i, j].square().backward(d_y)
    given = {"x": x.detach(), "r": i, "c": j, "d_y": d_y, "d_x": torch.zeros(9, 11, dtype=torch.float64)}
    found = squared.gradient(of="x", atomic=True)(**{name: own.to(device) for name, own in given.items()})
    assert torch.allclose(torch.as_tensor(found["d_x"]).cpu(), x.grad, rtol=1e-13, atol=0)


@tw.tile(grid=("ceil(M/64)", "ceil(N/32)"))
def product(a: tw.Input("f32", "(M,K):(K,1)"), b: tw.Input("f32", "(K,N):(N,1)"), c: tw.Output("f32", "(M,N):(N,1)")):
    total = tile.carry(tile.full((64, 32), 0.0))
    for k in tile.range("ceil(K/32)", total):
        left, right = a.load((64, 32), (tile.block.x, k)), b.load((32, 32), (k, tile.block.y))
        total.set(tile.dot(left.tf32(), right.tf32(), total))
    c.store((tile.block.x, tile.block.y), total)


def tf32(x):
    """The nearest number whose 13 lowest bits are 0, ties away from 0."""
    return ((x.view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)


def products_of_tf32(device):
    source = torch.Generator().manual_seed(7)
    a, b = torch.randn(150, 333, generator=source), torch.randn(333, 75, generator=source)
    c = torch.zeros(150, 75, device=device)
    product(a.to(device), b.to(device), c)
    wanted = tf32(a).double() @ tf32(b).double()
    # Sums of 333 products: far nearer than the operands without rounding would be.
    assert (c.cpu() - wanted).abs().max() < 2e-5 * wanted.abs().max()
    assert (c.cpu() - a.double() @ b.double()).abs().max() > 1e-4
    # Numbers that tf32 has: sums of small integers are exact.
    a, b = torch.randint(-8, 9, (70, 64), generator=source).float(), torch.randint(-8, 9, (64, 33), generator=source).float()
    c = torch.zeros(70, 33, device=device)
    product(a.to(device), b.to(device), c)
    assert torch.equal(c.cpu(), a @ b)


@tw.tile(grid="ceil(M/8)")
def summed(
    x: tw.Input("bf16", "(M,64):(64,1)"), h: tw.Input("f16", "(M,64):(64,1)"), which: tw.Input("i32", "(M,1):(1,1)"),
    y: tw.InOut("bf16", "(K,64):(64,1)"), z: tw.InOut("f16", "(K,64):(64,1)"),
):
    at = (tile.block.x, 0)
    numbers = which.load((8, 1), at, -1)
    y.atomic_add((numbers, 0), x.load((8, 64), at))
    z.atomic_add((numbers, 0), h.load((8, 64), at))


def sums_of_16_bits_in_memory(device):
    source = torch.Generator().manual_seed(8)
    x = torch.randint(-3, 4, (100, 64), generator=source)
    which = torch.randint(0, 9, (100, 1), generator=source)
    y, z = torch.zeros(9, 64, dtype=torch.bfloat16, device=device), torch.zeros(9, 64, dtype=torch.float16, device=device)
    summed(x.bfloat16().to(device), x.half().to(device), which.int().to(device), y, z)
    wanted = torch.zeros(9, 64).index_add(0, which[:, 0], x.float())
    assert torch.equal(y.cpu().float(), wanted) and torch.equal(z.cpu().float(), wanted)


@tw.tile(grid="4*H")
def grouped(x: tw.Input("f32", "(H,64):(64,1)"), y: tw.Output("f32", "(H,4,64):(256,64,1)")):
    head, part = tile.block.x // 4, tile.block.x % 4
    y.store((head, part, 0), x.load((1, 64), (head, 0)).reshape((1, 1, 64)) + tile.index(part).to("f32"))


def parts_of_indices(device):
    x = torch.arange(5 * 64).float().reshape(5, 64)
    y = torch.zeros(5, 4, 64, device=device)
    grouped(x.to(device), y)
    assert torch.equal(y.cpu(), x[:, None, :] + torch.arange(4).float()[None, :, None])


@tw.tile(grid=("ceil(M/64)", "ceil(N/64)"))
def odd(a: tw.Input("bf16", "(M,K):(K,1)"), b: tw.Input("bf16", "(K,N):(N,1)"), c: tw.Output("f32", "(M,N):(N,1)")):
    total = tile.carry(tile.full((64, 64), 0.0))
    for k in tile.range("ceil(K/64)", total):
        total.set(tile.dot(a.load((64, 64), (tile.block.x, k)), b.load((64, 64), (k, tile.block.y)), total))
    c.store((tile.block.x, tile.block.y), total)


def operands_of_odd_extents(device):
    source = torch.Generator().manual_seed(9)
    for m, n, k in ((45, 37, 51), (129, 65, 131), (1, 1, 1)):
        a, b = torch.randint(-8, 9, (m, k), generator=source), torch.randint(-8, 9, (k, n), generator=source)
        c = torch.zeros(m, n, device=device)
        odd(a.bfloat16().to(device), b.bfloat16().to(device), c)
        assert torch.equal(c.cpu(), (a @ b).float())


WORDS = [
    integers_of_64_bits,
    numbers_of_64_bits,
    rows_of_64_bits,
    sums_of_64_bits_in_memory,
    gathers_along_two_modes,
    derivatives_of_gathers_of_f64,
    products_of_tf32,
    sums_of_16_bits_in_memory,
    parts_of_indices,
    operands_of_odd_extents,
]


def main():
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    signal.alarm(SECONDS)
    failed = 0
    for word in WORDS:
        begun = time.time()
        try:
            word(device)
            told = "ok"
        except Exception as error:
            failed += 1
            told = f"FAILED: {type(error).__name__}: {error}"
        print(f"{word.__name__:<32} {time.time() - begun:6.1f} s  {told}", flush=True)
    print(f"{len(WORDS) - failed} of {len(WORDS)} words are right on {device}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
