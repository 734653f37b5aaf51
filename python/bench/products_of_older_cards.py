"""Products as they are planned for an older card, run on the card that is here, beside its peers.

    timeout 540 python python/bench/products_of_older_cards.py

All of them are held to ``mma.sync`` and ``cp.async``: Tilewright's plans for this card with no more
than sm_80 has, Triton's kernel of ``in_triton.py``, the best of several tilings, and ``gemm`` of
quack, if it is installed, which tunes itself. Each result is checked at 64 rows with products in
f64, and the exit status is 1 where one is wrong. Each way is captured in a CUDA graph, so that no host is timed.
"""

# mypy: ignore-errors
from __future__ import annotations

import os
import sys
import time

# Both are read when the modules are imported.
os.environ["TRITON_OVERRIDE_ARCH"] = "sm80"
os.environ["QUACK_ARCH"] = "80"

import in_triton  # noqa: E402
import torch  # noqa: E402
import triton  # noqa: E402
from turns import in_turns, table  # noqa: E402

import tilewright as tw  # noqa: E402

try:
    from quack.gemm_interface import gemm as quack_gemm
except ImportError as error:
    print(f"quack is not here: {error}")
    quack_gemm = None

LAUNCHES = 4
#: The largest difference to the definition, over the largest element.
MOST = 1e-2
#: M, N, K, A and B with their contiguous modes, batches.
PROBLEMS = [
    (2048, 2048, 2048, "K", "K", 1),
    (4096, 4096, 4096, "K", "K", 1),
    (8192, 8192, 8192, "K", "K", 1),
    (4096, 14336, 4096, "K", "K", 1),
    (3000, 5000, 7000, "K", "K", 1),
    (129, 8192, 4096, "K", "K", 1),
    (1, 14336, 4096, "K", "K", 1),
    (16, 14336, 4096, "K", "K", 1),
    (64, 14336, 4096, "K", "K", 1),
    (4096, 4096, 4096, "K", "N", 1),
    (4096, 4096, 4096, "M", "N", 1),
    (4096, 4096, 4096, "M", "K", 1),
    (4095, 4097, 4100, "K", "K", 1),
    (1024, 1024, 1024, "K", "K", 16),
]
wrong = []


def matrix(batches, rows, k, is_k_contiguous, dtype):
    """Numbers of a matrix (batches, rows, K) of this order."""
    shape = (batches, rows, k) if is_k_contiguous else (batches, k, rows)
    made = torch.randn(*shape, device="cuda").to(dtype)
    made = made if is_k_contiguous else made.mT
    return made if batches > 1 else made[0]


def check(what, found, a, b):
    """64 rows of a result, spread over all, beside sums in f64."""
    rows = torch.arange(64, device="cuda") * found.shape[-2] // 64
    wanted = a[..., rows, :].double() @ b.mT.double()
    apart = ((found[..., rows, :].double() - wanted).abs().max() / wanted.abs().max()).item()
    if not apart < MOST:
        wrong.append(f"{what}: {apart:.2e} of the largest element")


def captured(work):
    """The work, some launches in a graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            work()
    return graph.replay


def compare(dtype, limit):
    begin, lines = time.monotonic(), []
    for m, n, k, order_a, order_b, batches in PROBLEMS:
        if time.monotonic() - begin > limit:
            print("out of time before", m, n, k)
            break
        a, b = matrix(batches, m, k, order_a == "K", dtype), matrix(batches, n, k, order_b == "K", dtype)
        shape = a.shape[:-1] + (n,)
        results = {}

        def way(name, run):
            results[name] = torch.zeros(shape, device="cuda", dtype=dtype)
            try:
                run(results[name])
                torch.cuda.synchronize()
                check(f"{name}, {m} x {n} x {k}, {order_a}{order_b}", results[name], a, b)
                works[name] = captured(lambda: run(results[name]))
            except Exception as error:  # A peer may refuse a problem; a refusal is printed.
                print(f"{name} refuses {m} x {n} x {k} {order_a}{order_b} {batches}: {type(error).__name__}: {str(error)[:200]}", flush=True)

        works = {}
        way("own", lambda d: tw.gpu.gemm(a, b, out=d))
        if batches == 1:
            way("triton", lambda d: in_triton.gemm(a, b, d))
        if quack_gemm is not None:
            way("quack", lambda d: quack_gemm(a, b.mT, out=d))
        way("cublas", lambda d: torch.matmul(a, b.mT, out=d))
        taken = {name: 1e3 * ms / LAUNCHES for name, ms in in_turns(works, turn=0.02).items()}
        own = taken["own"]
        work = 2 * batches * m * n * k
        sizes = f"{m} x {n} x {k}, {order_a}{order_b}" + (f", {batches} of them" if batches > 1 else "")
        lines.append([sizes, f"{own:.1f}", f"{work / own / 1e6:.0f}"] + [cell for name in ("triton", "quack", "cublas") for cell in (
            [f"{taken[name]:.1f}", f"{taken[name] / own:.2f}"] if name in taken else ["", ""])])  # fmt: skip
        print(lines[-1], f"{time.monotonic() - begin:.0f} s", flush=True)
    table([f"M x N x K, {dtype}", "us", "TFLOP/s", "Triton", "of ours", "quack", "of ours", "cuBLAS", "of ours"], lines)


def of_kinds():
    """tf32, integers and a fused epilogue, beside Triton's."""
    lines = []

    def line(title, m, n, k, own, peer, wanted):
        results = [run() for run in (own, peer)]
        for name, found in zip(("own", "triton"), results):
            apart = ((found[:64].double() - wanted).abs().max() / wanted.abs().max()).item()
            if not apart < MOST:
                wrong.append(f"{name}, {title}: {apart:.2e} of the largest element")
        taken = {name: 1e3 * ms / LAUNCHES for name, ms in in_turns({"own": captured(own), "triton": captured(peer)}, turn=0.02).items()}
        rate = 2 * m * n * k / taken["own"] / 1e6
        lines.append([title, f"{m} x {n} x {k}", f"{taken['own']:.1f}", f"{rate:.0f}", f"{taken['triton']:.1f}", f"{taken['triton'] / taken['own']:.2f}"])
        print(lines[-1], flush=True)

    def into(run, rows, columns, dtype):
        result = torch.empty(rows, columns, device="cuda", dtype=dtype)
        return lambda: (run(result), result)[1]

    for size in (2048, 4096, 8192):
        a, b = (torch.randn(size, size, device="cuda") for _ in range(2))
        line("tf32", size, size, size, into(lambda d: tw.gpu.gemm(a, b, out=d, tf32=True), size, size, a.dtype),
             into(lambda d: in_triton.gemm(a, b, d, tf32=True), size, size, a.dtype), a[:64].double() @ b.T.double())  # fmt: skip
        a, b = (torch.randint(-128, 128, (size, size), device="cuda", dtype=torch.int8) for _ in range(2))
        line("s8", size, size, size, into(lambda d: tw.gpu.gemm(a, b, out=d), size, size, torch.int32),
             into(lambda d: in_triton.gemm(a, b, d), size, size, torch.int32), a[:64].double() @ b.T.double())  # fmt: skip
        a, b = (torch.randn(size, size, device="cuda").bfloat16() for _ in range(2))
        bias = torch.randn(size, device="cuda").bfloat16()
        line("bf16, `max(x + bias, 0)`", size, size, size,
             into(lambda d: tw.gpu.gemm(a, b, out=d, function="max(x + bias, 0)", bias=bias), size, size, a.dtype),
             into(lambda d: in_triton.gemm(a, b, d, bias), size, size, a.dtype), (a[:64].double() @ b.T.double() + bias.double()).relu())  # fmt: skip
    table(["kind", "M x N x K", "us", "TFLOP/s", "Triton", "of ours"], lines)


if __name__ == "__main__":
    torch.manual_seed(0)
    # This card with what sm_80 has.
    tw.gpu._machine = lambda device: "H200@sm_80"
    print(f"{torch.cuda.get_device_name()}, planned for H200@sm_80; PyTorch {torch.__version__}, Triton {triton.__version__}")
    of_kinds()
    compare(torch.bfloat16, 200)
    compare(torch.float16, 100)
    for line in wrong:
        print("WRONG", line)
    sys.exit(1 if wrong else 0)
