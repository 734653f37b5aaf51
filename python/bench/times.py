"""Times beside PyTorch and Triton, as tables: launches, first calls, and the work on the GPU."""

# mypy: ignore-errors
from __future__ import annotations

import time

import in_triton
import torch
from page_kernels import staged_gemm, tiled_add, tiled_gemm
from tensors import close, numbers, poisoned, same
from turns import in_turns, median, table

import tilewright as tw

functional = torch.nn.functional


def host(work, count=100, rounds=25):
    """Microseconds of the host for a launch, of many that wait for none: the median and the least of several rounds."""
    work()
    found = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(count):
            work()
        found.append((time.perf_counter() - begun) / count)
    torch.cuda.synchronize()
    return f"{1e6 * median(found):.1f} ({1e6 * min(found):.1f})"


def launches():
    a, b, c = numbers(16, 256), numbers(16, 256), poisoned(16, 256)
    x, y = numbers(16, 1024), poisoned(16, 1024)
    p, q, r = (numbers(128, 128, dtype=torch.bfloat16) for _ in range(3))
    lines = []
    for name, here, theirs, third in [
        ("the page's tiled add, 16 x 256", lambda: tiled_add(a, b, c), lambda: torch.add(a, b, out=c), lambda: in_triton.add(a, b, c)),
        ("`tw.gpu.softmax(x, out=y)`, 16 x 1024", lambda: tw.gpu.softmax(x, out=y), lambda: torch.softmax(x, 1, out=y), lambda: in_triton.softmax(x, y)),
        ("`tw.gpu.gemm(a, b, out=c)`, 128 cubed", lambda: tw.gpu.gemm(p, q, out=r), lambda: torch.mm(p, q.T, out=r), lambda: in_triton.gemm(p, q, r)),
    ]:  # fmt: skip
        lines.append([name] + [host(work) for work in (here, theirs, third)])
    table(["launch, us of the host: median (least)", "here", "PyTorch", "Triton"], lines)


def first_calls():
    """What the first call takes, for kernels of which nothing is cached; and a kernel that was compiled before."""
    a, b, c = numbers(50, 260), numbers(50, 260), poisoned(50, 260)
    # The device is opened, and the driver's compiler loaded, by another kernel.
    tw.gpu.softmax(a)

    def milliseconds(work):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        work()
        torch.cuda.synchronize()
        return 1e3 * (time.perf_counter() - begun)

    def first(function):
        fresh = tw.jit(function)
        traced = milliseconds(fresh.program)
        program = fresh.program()
        written = milliseconds(program.ptx)
        return traced, written, milliseconds(lambda: fresh(*arguments))

    lines = []
    arguments = (a, b, c)
    for name, kernel in [("the page's tiled add", tiled_add), ("the tiling post's product", tiled_gemm)]:
        if kernel is tiled_gemm:
            arguments = (numbers(150, 37), numbers(37, 140).T, poisoned(150, 140))
        cold = first(kernel.function)
        warm = first(kernel.function)
        third = ""
        if kernel is tiled_add:
            third = f"{milliseconds(lambda: in_triton.add(a, b, c)):.0f}"
        lines.append([name, *(f"{ms:.1f}" for ms in cold), f"{sum(warm[::2]):.1f}", third])
    table(["first call, ms", "tracing", "text", "the rest: compiling, launching", "all, compiled before", "Triton, all"], lines)


def work():
    lines = []

    def line(name, moved, here, theirs, third):
        times = in_turns({"here": here, "torch": theirs, "triton": third} if third else {"here": here, "torch": theirs})
        ours = times["here"]
        cells = [name, f"{1e3 * ours:.1f}", f"{moved / ours:.2f}", f"{times['torch'] / ours:.3f}"]
        lines.append(cells + ([f"{times['triton'] / ours:.3f}"] if third else [""]))
        print("#", lines[-1], flush=True)

    tera, giga = 1e12 / 1e3, 1e12 / 1e3
    size = 16384
    a, b, c = numbers(size, size), numbers(size, size), poisoned(size, size)
    line("the page's tiled add, f32, 16384 x 16384", 12 * size * size / giga, lambda: tiled_add(a, b, c), lambda: torch.add(a, b, out=c), lambda: in_triton.add(a, b, c))
    same(c, a + b, "the add that was timed")
    line("`relayout`: transpose, f32, 16384 x 16384", 8 * size * size / giga, lambda: tw.gpu.relayout(a.T, c), lambda: c.copy_(a.T), lambda: in_triton.transpose(a, c))
    c.fill_(float("nan"))
    same(tw.gpu.relayout(a.T, c), a.T, "the transpose that was timed")
    del a, b, c
    for m, n in [(32768, 4096), (8192, 16384)]:
        x, y = numbers(m, n, dtype=torch.bfloat16), poisoned(m, n, dtype=torch.bfloat16)
        weight, bias, total = numbers(n, dtype=torch.bfloat16), numbers(n, dtype=torch.bfloat16), poisoned(m, dtype=torch.bfloat16)
        line(f"`softmax`, bf16, {m} x {n}", 4 * m * n / giga, lambda: tw.gpu.softmax(x, out=y), lambda: torch.softmax(x, 1, out=y), lambda: in_triton.softmax(x, y))
        line(f"`layer_norm`, bf16, {m} x {n}", 4 * m * n / giga, lambda: tw.gpu.layer_norm(x, weight, bias, out=y),
             lambda: functional.layer_norm(x, (n,), weight, bias, 1e-5), lambda: in_triton.layer_norm(x, weight, bias, y))  # fmt: skip
        line(f"`reduce`, sums of rows, bf16, {m} x {n}", 2 * m * n / giga, lambda: tw.gpu.reduce(x, out=total), lambda: torch.sum(x, 1, out=total), lambda: in_triton.sum_rows(x, total))
    for size in (4096, 8192):
        a, b, c = (numbers(size, size, dtype=torch.bfloat16) for _ in range(3))
        line(f"`gemm`, bf16, {size} cubed", 2 * size**3 / tera, lambda: tw.gpu.gemm(a, b, out=c), lambda: torch.mm(a, b.T, out=c), lambda: in_triton.gemm(a, b, c))
    size = 4096
    a, b, c = numbers(size, size), numbers(size, size), poisoned(size, size)
    line("the tiling post's product, f32, 4096 cubed", 2 * size**3 / tera, lambda: tiled_gemm(a, b.T, c), lambda: torch.mm(a, b, out=c), lambda: in_triton.gemm(a, b.T, c))
    c.fill_(float("nan"))
    tiled_gemm(a, b.T, c)
    close(c, a.double() @ b.double(), "the product that was timed", 1e-3)
    line("the same with three stages and vectors, f32, 4096 cubed", 2 * size**3 / tera, lambda: staged_gemm(a, b.T, c), lambda: torch.mm(a, b, out=c), lambda: in_triton.gemm(a, b.T, c))
    c.fill_(float("nan"))
    staged_gemm(a, b.T, c)
    close(c, a.double() @ b.double(), "the staged product that was timed", 1e-3)
    table(["work", "here, us", "TB/s, TFLOP/s", "times as fast as PyTorch", "as Triton"], lines)
