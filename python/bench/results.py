"""What is compared on the GPU before anything is timed: a function for each kind of work, which raises where a result is wrong."""

# mypy: ignore-errors
from __future__ import annotations

import threading

import torch
from page_kernels import staged_gemm, tiled_add, tiled_gemm
from tensors import close, numbers, poisoned, same, whole

import tilewright as tw

functional = torch.nn.functional


def adds():
    for m, n in [(1, 4), (17, 252), (50, 260), (1024, 1024), (4097, 1028)]:
        a, b, c = numbers(m, n), numbers(m, n), poisoned(m, n)
        tiled_add(a, b, c)
        same(c, a + b, f"tiled_add {m}x{n}")


def products_of_the_post():
    for m, n, k in [(1, 4, 1), (150, 140, 37), (128, 128, 8), (1000, 516, 333)]:
        a, b, c = whole(m, k), whole(k, n), poisoned(m, n)
        tiled_gemm(a, b.T, c)
        same(c, a @ b, f"tiled_gemm {m}x{n}x{k}")
        c = poisoned(m, n)
        staged_gemm(a, b.T, c)
        same(c, a @ b, f"staged_gemm {m}x{n}x{k}")


def rows():
    for m, n, dtype in [(5, 300, torch.float32), (1000, 8192, torch.bfloat16), (33, 1024, torch.float16), (7, 131072, torch.bfloat16)]:
        x, weight, bias = numbers(m, n, dtype=dtype), numbers(n, dtype=dtype), numbers(n, dtype=dtype)
        wide = [t.double() for t in (x, weight, bias)]
        what = f"{m}x{n} {dtype}"
        close(tw.gpu.softmax(x, out=poisoned(m, n, dtype=dtype)), wide[0].softmax(1), f"softmax {what}")
        found = tw.gpu.layer_norm(x, weight, bias, out=poisoned(m, n, dtype=dtype))
        close(found, functional.layer_norm(wide[0], (n,), wide[1], wide[2], 1e-5), f"layer_norm {what}")
        found = tw.gpu.rms_norm(x, weight, out=poisoned(m, n, dtype=dtype))
        close(found, functional.rms_norm(wide[0], (n,), wide[1], 1e-5), f"rms_norm {what}")
        for axis in (0, 1):
            left = n if axis == 0 else m
            same(tw.gpu.reduce(x, "max", axis=axis, out=poisoned(left, dtype=dtype)), x.amax(axis), f"max along {axis} {what}")
            # What rounding of f32 adds up to is far below a hundredth.
            close(tw.gpu.reduce(x, "sum", axis=axis, out=poisoned(left, dtype=dtype)), x.double().sum(axis), f"sum along {axis} {what}", 1e-2)
            at = tw.gpu.reduce(x, "argmax", axis=axis).long().unsqueeze(axis)
            same(x.gather(axis, at).squeeze(axis), x.amax(axis), f"argmax along {axis} {what}")


def relayouts():
    for shape, dtype in [((300, 5), torch.float32), ((1023, 513), torch.bfloat16), ((4096, 4096), torch.uint8)]:
        x = whole(*shape, dtype=dtype)
        y = poisoned(*reversed(shape), dtype=dtype)
        same(tw.gpu.relayout(x.T, y), x.T, f"transposition of {shape} {dtype}")
    x = whole(6, 50, 7, 33)
    y = poisoned(33, 6, 7, 50)
    same(tw.gpu.relayout(x.permute(3, 0, 2, 1), y), x.permute(3, 0, 2, 1), "permutation")
    y = poisoned(6, 50, 7, 33, dtype=torch.float16)
    same(tw.gpu.relayout(x, y), x, "conversion")


def products():
    cases = [(128, 128, 64), (1000, 520, 136), (4096, 4096, 4096), (256, 256, 65536), (129, 8192, 4096), (61, 67, 71)]
    for dtype in (torch.bfloat16, torch.float16):
        for m, n, k in cases:
            a, b = whole(m, k, dtype=dtype), whole(n, k, dtype=dtype)
            # Sums are whole numbers below 2^24, exact in f32: rounded once, as the sum in f64 is.
            found = tw.gpu.gemm(a, b, out=poisoned(m, n, dtype=dtype))
            same(found, (a.float() @ b.float().T), f"gemm {m}x{n}x{k} {dtype}")


def products_of_every_kind():
    """Any strides, batches, functions of the sums, and types; by one launch or several."""
    for dtype, result in [(torch.float32, torch.float32), (torch.int8, torch.int32), (torch.bfloat16, torch.float32)]:
        a, b = whole(200, 96, dtype=dtype), whole(136, 96, dtype=dtype)
        found = tw.gpu.gemm(a, b, out=poisoned(200, 136, dtype=result))
        same(found, a.double() @ b.double().T, f"gemm of {dtype} to {result}")
    a, b = whole(300, 264, dtype=torch.bfloat16), whole(520, 264, dtype=torch.bfloat16)
    wanted = a.double() @ b.double().T
    for left in (a, a.T.contiguous().T, whole(300, 300, dtype=torch.bfloat16)[:, 3:267].copy_(a)):
        for right in (b, b.T.contiguous().T):
            same(tw.gpu.gemm(left, right, out=poisoned(300, 520, dtype=torch.bfloat16)), wanted, "gemm of other strides")
    bias, residual = whole(520, dtype=torch.bfloat16), whole(300, 520, dtype=torch.bfloat16)
    found = tw.gpu.gemm(a, b, function="max(x + bias, 0) - residual", bias=bias, residual=residual)
    same(found, (wanted + bias.double()).clamp(min=0) - residual.double(), "gemm with a function")
    many, others = whole(5, 130, 72, dtype=torch.float16), whole(5, 88, 72, dtype=torch.float16)
    same(tw.gpu.gemm(many, others), many.double() @ others.double().transpose(1, 2), "a batch of gemm")


def pairs_and_what_is_kept():
    """Products of pairs of columns, with numbers of rows and columns, and with scales of blocks."""
    for m, n, k in [(300, 264, 136), (4096, 2048, 1024), (64, 48, 2048)]:
        a, b = whole(m, k, dtype=torch.bfloat16), whole(2 * n, k, dtype=torch.bfloat16)
        sums = a.double() @ b.double().T
        for pairs, first, second in [("halves", sums[:, :n], sums[:, n:]), ("neighbours", sums[:, ::2], sums[:, 1::2])]:
            found = tw.gpu.gemm(a, b, pairs=pairs, function="max(x, 0) - y", out=poisoned(m, n))
            same(found, first.clamp(min=0) - second, f"pairs, {pairs}, {m}x{n}x{k}")
        keep = ["row sum", "column max", "row max abs(d)", "column sum d * d"]
        out = (poisoned(m, 2 * n), poisoned(m), poisoned(2 * n), poisoned(m), poisoned(2 * n))
        found = tw.gpu.gemm(a, b, keep=keep, out=out)
        for one, wanted, what in zip(found, [sums, sums.sum(1), sums.amax(0), sums.abs().amax(1), (sums**2).sum(0)], ["d", *keep]):
            close(one, wanted, f"{what} of {m}x{2 * n}x{k}", 1e-5)
    m, n, k = 300, 264, 1000
    a, b = whole(m, k).to(torch.float8_e4m3fn), whole(n, k).to(torch.float8_e4m3fn)
    blocks = lambda rows: 2.0 ** torch.randint(-2, 3, (rows, 8), device="cuda").float()  # noqa: E731
    of_a, of_b = blocks(m), blocks(3)
    wide_a = a.double() * of_a.double().repeat_interleave(128, 1)[:, :k]
    wide_b = b.double() * of_b.double().repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
    same(tw.gpu.gemm(a[:, :992], b[:, :992], scales=(of_a, of_b), out=poisoned(m, n)), wide_a[:, :992] @ wide_b[:, :992].T, "scales of blocks")
    same(tw.gpu.gemm(a, b, scales=(of_a, of_b), out=poisoned(m, n)), wide_a @ wide_b.T, "scales of blocks, lines moved")


def views():
    """Tensors that begin at no multiple of 16 bytes."""

    def view(*shape, dtype, at, make=numbers):
        count = 1
        for extent in shape:
            count *= extent
        return make(count + at, dtype=dtype)[at:].view(*shape)

    for dtype in (torch.float32, torch.bfloat16):
        for at in (1, 2, 3):
            for m, n in [(33, 1024), (50, 300), (7, 40000)]:
                x, y = view(m, n, dtype=dtype, at=at), view(m, n, dtype=dtype, at=4 - at, make=poisoned)
                weight = view(n, dtype=dtype, at=at)
                what = f"at {at}, {m}x{n} {dtype}"
                close(tw.gpu.softmax(x, out=y), x.double().softmax(1), f"softmax {what}")
                close(tw.gpu.rms_norm(x, weight, out=y), functional.rms_norm(x.double(), (n,), weight.double(), 1e-5), f"rms_norm {what}")
                wanted = functional.layer_norm(x.double(), (n,), weight.double(), weight.double(), 1e-5)
                close(tw.gpu.layer_norm(x, weight, weight, out=y), wanted, f"layer_norm {what}")
                for axis in (0, 1):
                    left = view(n if axis == 0 else m, dtype=dtype, at=at, make=poisoned)
                    same(tw.gpu.reduce(x, "max", axis=axis, out=left), x.amax(axis), f"max along {axis} {what}")
                z = view(n, m, dtype=dtype, at=at, make=poisoned)
                same(tw.gpu.relayout(x.T, z), x.T, f"transposition {what}")
                same(tw.gpu.relayout(x, y), x, f"copy {what}")


def tile_programs():
    """Programs without layouts, of every size of rows and edges."""

    # Of each length another program: the layouts are those of the arrays.
    @tw.tile(grid="100")
    def softmax(x: tw.Input("bf16"), y: tw.Output("bf16")):
        at = (tw.tile.block.x, 0)
        a = x.load((1, 4096), at, other=-float("inf")).to("f32")
        e = (a - a.reduce_max(1)).exp()
        y.store(at, (e / e.reduce_sum(1)).to("bf16"))

    @tw.tile(grid=("ceil(M/64)", "ceil(N/64)"))
    def linear(a: tw.Input("bf16", "(M,K{div=8}):(K,1)"), b: tw.Input("bf16", "(N,K{div=8}):(K,1)"), c: tw.Output("f32", "(M,N):(N,1)")):
        i, j = tw.tile.block.x, tw.tile.block.y
        total = tw.tile.carry(tw.tile.full((64, 64), 0.0))
        for k in tw.tile.range("ceil(K/64)", total):
            right = b.load((64, 64), (j, k)).transpose((1, 0))
            total.set(tw.tile.dot(a.load((64, 64), (i, k)), right, total))
        c.store((i, j), tw.tile.where(total < 0, 0.0, total))

    for m, n in [(100, 4096), (100, 4000)]:
        x, y = numbers(m, n, dtype=torch.bfloat16), poisoned(m, n, dtype=torch.bfloat16)
        softmax(x, y)
        close(y, x.double().softmax(1), f"softmax as a tile program, {m}x{n}")
    for m, n, k in [(64, 64, 64), (300, 264, 136), (1000, 520, 1024)]:
        a, b, c = whole(m, k, dtype=torch.bfloat16), whole(n, k, dtype=torch.bfloat16), poisoned(m, n)
        linear(a, b, c)
        same(c, (a.double() @ b.double().T).clamp(min=0), f"a product as a tile program, {m}x{n}x{k}")


def atoms():
    """Products of tile programs by the instructions that they name, single warps' and those of four."""

    def product(target, factors, total):
        @tw.tile(grid=("ceil(M/64)", "ceil(N/64)"), machine=target)
        def named(a: tw.Input("bf16", "(M,K{div=8}):(K,1)"), b: tw.Input("bf16", "(K,N{div=8}):(N,1)"), c: tw.Output("f32", "(M,N):(N,1)")):
            i, j = tw.tile.block.x, tw.tile.block.y
            sums = tw.tile.carry(tw.tile.full((64, 64), 0.0))
            for k in tw.tile.range("ceil(K/64)", sums):
                left, right = a.load((64, 64), (i, k)).atom(factors), b.load((64, 64), (k, j)).atom(factors)
                sums.set(left.dot(right, sums).atom(total))
            c.store((i, j), sums)

        return named

    @tw.tile(grid=("ceil(M/32)", "ceil(N/32)"))
    def small(a: tw.Input("bf16", "(M,K{div=8}):(K,1)"), b: tw.Input("bf16", "(K,N{div=8}):(N,1)"), c: tw.Output("f32", "(M,N):(N,1)")):
        i, j = tw.tile.block.x, tw.tile.block.y
        sums = tw.tile.carry(tw.tile.full((32, 32), 0.0))
        for k in tw.tile.range("ceil(K/16)", sums):
            left, right = a.stage((32, 16), (i, k), (0, 1)), b.stage((16, 32), (k, j), (0, 1))
            sums.set(left.dot(right, sums))
        c.store((i, j), sums)

    warps = product(None, "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", "SM80_16x8x16_F32BF16BF16F32_TN")
    groups = product("sm_90a", "SM90_TMA_LOAD", "SM90_64x64x16_F32BF16BF16_SS")
    for m, n, k in [(64, 64, 64), (300, 264, 136), (1000, 520, 1024)]:
        a, b = whole(m, k, dtype=torch.bfloat16), whole(k, n, dtype=torch.bfloat16)
        for kernel, name in [(warps, "of single warps"), (groups, "of four warps"), (small, "of small stages")]:
            c = poisoned(m, n)
            kernel(a, b, c)
            same(c, a.double() @ b.double(), f"a product {name}, {m}x{n}x{k}")


def rows_and_counts():
    """Tile programs that read and write rows by their numbers, count, search and sort, and change what is there."""
    tile = tw.tile

    @tw.tile(grid="ceil(R/4)")
    def moved(
        x: tw.Input("bf16", "(M,1024):(1024,1)"),
        rows: tw.Input("i32", "(R,1):(1,1)"),
        to: tw.Input("i32", "(R,1):(1,1)"),
        y: tw.InOut("bf16", "(M,1024):(1024,1)"),
    ):
        own, other = (numbers.load((4, 1), (tile.block.x, 0), other=-1) for numbers in (rows, to))
        y.store((other, 0), x.load((4, 1024), (own, 0)))

    @tw.tile(grid="ceil(N/4096)")
    def counted(x: tw.Input("i32", "N:1"), counts: tw.InOut("i32", "256:1"), greatest: tw.InOut("i32", "1:1"), sums: tw.InOut("f32", "256:1")):
        own = x.load((4096,), (tile.block.x,), other=-1)
        counts.atomic_add((0,), own.histogram(256))
        greatest.atomic_max((0,), own.reduce_max(0))
        sums.atomic_add((own,), own.to("f32"))

    @tw.tile(grid="M")
    def sorted_rows(x: tw.Input("f32", "(M,256):(256,1)"), y: tw.Output("f32", "(M,256):(256,1)"), best: tw.Output("f32", "(M,8):(8,1)"), upto: tw.Output("f32", "(M,256):(256,1)")):
        at = (tile.block.x, 0)
        a = x.load((1, 256), at)
        y.store(at, a.top(1, 256))
        best.store(at, a.top(1, 8))
        upto.store(at, a.scan_sum(1))

    m, r = 500, 333
    x, y = whole(m, 1024, dtype=torch.bfloat16), whole(m, 1024, dtype=torch.bfloat16)
    rows = torch.randint(0, m, (r, 1), device="cuda", dtype=torch.int32)
    to = torch.randperm(m, device="cuda")[:r].to(torch.int32).view(r, 1)
    wanted = y.clone()
    wanted[to[:, 0].long()] = x[rows[:, 0].long()]
    moved(x, rows, to, y)
    same(y, wanted, "rows by their numbers")

    x = torch.randint(0, 256, (1_000_003,), device="cuda", dtype=torch.int32)
    counts, sums = (torch.ones(256, device="cuda", dtype=dtype) for dtype in (torch.int32, torch.float32))
    greatest = torch.full((1,), -5, device="cuda", dtype=torch.int32)
    counted(x, counts, greatest, sums)
    found = torch.bincount(x, minlength=256)
    same(counts, found + 1, "indivisible counts")
    same(sums, found * torch.arange(256, device="cuda") + 1, "indivisible sums")
    assert greatest.item() == x.max().item()

    x = whole(300, 256)
    y, best, upto = poisoned(300, 256), poisoned(300, 8), poisoned(300, 256)
    sorted_rows(x, y, best, upto)
    down = x.sort(1, descending=True).values
    same(y, down, "sorted rows")
    same(best, down[:, :8], "the greatest of each row")
    same(upto, x.cumsum(1), "sums up to each element")


def tensors_of_the_package():
    a, c = numbers(65, 260), poisoned(65, 260)
    t = tw.Tensor(a)
    assert t.device == "cuda:0", t
    tiled_add(t, a, tw.Tensor(c))
    same(c, a + a, "tensors of the package")
    same(tw.gpu.softmax(t, out=c), tw.gpu.softmax(a), "softmax of a tensor of the package")


def streams():
    """Kernels stand on PyTorch's current stream: behind what takes long there, and before what follows."""
    for _ in range(3):
        stream = torch.cuda.Stream()
        a, c = poisoned(2048, 2048), poisoned(2048, 2048)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)
            a.fill_(3)
            tiled_add(a, a, c)
            done = c + 1
            a.fill_(9)
        stream.synchronize()
        same(done, torch.full_like(done, 7), "another stream")


def threads():
    failures = []

    def work(number):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                for turn in range(100):
                    m, n = 16 * (1 + turn % 7), 4 * (1 + number)
                    a, c = whole(m, n), poisoned(m, n)
                    tiled_add(a, a, c)
                    same(c, 2 * a, f"thread {number}, turn {turn}")
                    y = tw.gpu.softmax(a)
                    close(y, a.double().softmax(1), f"thread {number}, turn {turn}")
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]


def freed():
    """Tensors may go as soon as the call is over: PyTorch gives their memory to what stands behind on the stream."""
    wanted = 0
    total = torch.zeros((), device="cuda", dtype=torch.float64)
    for turn in range(200):
        a = torch.full((512, 512), float(turn), device="cuda")
        c = torch.empty_like(a)
        tiled_add(a, a, c)
        del a
        total += torch.empty(512, 512, device="cuda").fill_(0).sum() + c.double().sum()
        del c
        wanted += 2 * turn * 512 * 512
    assert total.item() == wanted, (total.item(), wanted)


def refusals():
    a, c = numbers(64, 64), poisoned(64, 64)
    for what, told in [
        (lambda: tiled_add(a, a, a), "E0815"),
        (lambda: tiled_add(a, a.cpu(), c), "on the host"),
        (lambda: tiled_add(a, a, c.T), "lies as"),
        (lambda: tiled_add[7](a, a, c), "asked for"),
    ]:
        try:
            what()
        except Exception as error:
            assert told in str(error), error
        else:
            raise AssertionError(f"{told}: not refused")
    assert bool(c.isnan().all())


ALL = (
    adds,
    products_of_the_post,
    rows,
    relayouts,
    products,
    products_of_every_kind,
    pairs_and_what_is_kept,
    views,
    tile_programs,
    atoms,
    rows_and_counts,
    tensors_of_the_package,
    streams,
    threads,
    freed,
    refusals,
)
