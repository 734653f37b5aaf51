"""Host time of a call of `tw.gpu` and `tw.ops`, with and without `out` and with gradients recorded,
beside PyTorch: how long Python is kept before the next line runs. The device works on small arrays
meanwhile, so that it never holds the host up.

    python python/bench/host_time.py            # a table, in us a call; needs a CUDA device and PyTorch
    python python/bench/host_time.py --first    # the time of the first call of a process, in ms

A call is timed in batches of CALLS, each ended by a synchronisation outside of the timed part; the
median of the batches is shown. The calls of a line take turns, batch by batch, so that what slows the
host for a while slows all of them. `x` are the times without and with `out` over PyTorch's, which makes
its result. The status is 1 if a call of `tw.ops` was not repeated by the native module alone, which
would be timed as another call. The row `torch.autograd.Function` is PyTorch's way to record a function of others, with a
result that is there and nothing saved: a recorded call of `tw.ops` takes it, and the launch.

The first call is made twice, each in a process of its own: without machine code in the driver's
cache, and with that of the process before.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

import tilewright as tw
from tilewright.ops import _common

# So few that no queue of launches fills up, which would make the host wait for the device.
CALLS = 200
BATCHES = 31


def host_times(*works: Callable[[], Any]) -> list[float]:
    """The median times of calls on the host, in microseconds."""
    for work in works:
        for _ in range(20):
            work()
    torch.cuda.synchronize()
    times: list[list[float]] = [[] for _ in works]
    for _ in range(BATCHES):
        for work, own in zip(works, times):
            begin = time.perf_counter()
            for _ in range(CALLS):
                work()
            own.append((time.perf_counter() - begin) / CALLS * 1e6)
            torch.cuda.synchronize()
    return [statistics.median(own) for own in times]


def missed(work: Callable[[], Any]) -> int:
    """Of CALLS calls of `tw.ops`, those that the native module did not repeat."""
    repeat = _common.repeat_call
    found: list[Any] = []

    def noted(*given: Any) -> Any:
        found.append(repeat(*given))
        return found[-1]

    setattr(_common, "repeat_call", noted)
    try:
        for _ in range(CALLS):
            work()
    finally:
        setattr(_common, "repeat_call", repeat)
    return CALLS - sum(own is not None for own in found)


class Alone(torch.autograd.Function):
    """The identity of a result that is there."""

    @staticmethod
    def forward(ctx: Any, made: Any, x: Any) -> Any:
        return made[0]

    @staticmethod
    def backward(ctx: Any, *derivatives: Any) -> Any:
        return None, *derivatives


def main() -> int:
    device = torch.device("cuda")
    torch.manual_seed(0)
    half = torch.float16
    x = torch.randn(16, 1024, device=device)
    wide = torch.randn(16, 2048, device=device)[:, :1024]
    several = torch.randn(2, 8, 1024, device=device)
    weight, bias = (torch.randn(1024, device=device) for _ in range(2))
    y, row, place = torch.empty_like(x), torch.empty(16, device=device), torch.empty(16, dtype=torch.int32, device=device)
    a, b = torch.randn(128, 128, device=device, dtype=half), torch.randn(128, 128, device=device, dtype=half)
    c, column = torch.empty_like(a), torch.randn(128, device=device, dtype=half)
    shape = (1024,)
    cases: list[tuple[str, Callable[[], Any], Callable[[], Any] | None, Callable[[], Any]]] = [
        ("softmax 16 x 1024", lambda: tw.gpu.softmax(x), lambda: tw.gpu.softmax(x, out=y), lambda: torch.softmax(x, 1)),
        ("softmax 2 x 8 x 1024", lambda: tw.gpu.softmax(several), None, lambda: torch.softmax(several, 2)),
        ("softmax of a pitch of 2048", lambda: tw.gpu.softmax(wide), lambda: tw.gpu.softmax(wide, out=y), lambda: torch.softmax(wide, 1)),
        ("rms_norm", lambda: tw.gpu.rms_norm(x, weight), lambda: tw.gpu.rms_norm(x, weight, out=y), lambda: F.rms_norm(x, shape, weight, 1e-5)),
        ("rms_norm without weights", lambda: tw.gpu.rms_norm(x), lambda: tw.gpu.rms_norm(x, out=y), lambda: F.rms_norm(x, shape, None, 1e-5)),
        (
            "layer_norm",
            lambda: tw.gpu.layer_norm(x, weight, bias),
            lambda: tw.gpu.layer_norm(x, weight, bias, out=y),
            lambda: F.layer_norm(x, shape, weight, bias, 1e-5),
        ),
        ("reduce sum", lambda: tw.gpu.reduce(x), lambda: tw.gpu.reduce(x, out=row), lambda: x.sum(1)),
        ("reduce max", lambda: tw.gpu.reduce(x, "max"), lambda: tw.gpu.reduce(x, "max", out=row), lambda: x.amax(1)),
        ("reduce argmax", lambda: tw.gpu.reduce(x, "argmax"), lambda: tw.gpu.reduce(x, "argmax", out=place), lambda: x.argmax(1)),
        ("gemm 128 cubed", lambda: tw.gpu.gemm(a, b), lambda: tw.gpu.gemm(a, b, out=c), lambda: a @ b.T),
        (
            "gemm with a bias",
            lambda: tw.gpu.gemm(a, b, function="x + bias", bias=column),
            lambda: tw.gpu.gemm(a, b, function="x + bias", bias=column, out=c),
            lambda: F.linear(a, b, column),
        ),
        ("relayout", lambda: tw.gpu.relayout(a.T, c), lambda: tw.gpu.relayout(a.T, c), lambda: c.copy_(a.T)),
    ]
    cases += [
        ("ops.softmax", lambda: tw.ops.softmax(x), lambda: tw.ops.softmax(x, out=y), lambda: torch.softmax(x, 1)),
        ("ops.rms_norm", lambda: tw.ops.rms_norm(x, weight), lambda: tw.ops.rms_norm(x, weight, out=y), lambda: F.rms_norm(x, shape, weight, 1e-5)),
        (
            "ops.layer_norm",
            lambda: tw.ops.layer_norm(x, weight, bias),
            lambda: tw.ops.layer_norm(x, weight, bias, out=y),
            lambda: F.layer_norm(x, shape, weight, bias, 1e-5),
        ),
        ("ops.activation, silu", lambda: tw.ops.activation(x), lambda: tw.ops.activation(x, out=y), lambda: F.silu(x)),
        ("ops.linear", lambda: tw.ops.linear(a, b), lambda: tw.ops.linear(a, b, out=c), lambda: F.linear(a, b)),
        ("ops.linear with a bias", lambda: tw.ops.linear(a, b, column), lambda: tw.ops.linear(a, b, column, out=c), lambda: F.linear(a, b, column)),
    ]
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, us a call on the host")
    print(f"{'':28} {'no out':>8} {'out':>8} {'PyTorch':>8} {'x':>6} {'x, out':>6}")
    slow: list[tuple[str, int]] = []
    for name, plain, out, theirs in cases:
        own = (plain,) if out is None else (plain, out)
        # PyTorch's mode in which it records nothing, as here.
        with torch.no_grad():
            beside, mine, *given = host_times(theirs, *own)
            slow += [(name, missed(call)) for call in own if name.startswith("ops.")]
        shown, ratio = (f"{given[0]:8.2f}", f"{given[0] / beside:6.2f}") if given else ("", "")
        print(f"{name:28} {mine:8.2f} {shown:>8} {beside:8.2f} {mine / beside:6.2f} {ratio}")
    for own in (x, weight, bias, a, b, column):
        own.requires_grad_()
    alone, none = super(torch.autograd.Function, Alone).apply, x.detach()
    both, one = host_times(lambda: alone((none.detach(),), x), none.detach)
    print(f"{'torch.autograd.Function':28} {both - one:8.2f}")
    for name, plain, _, theirs in cases:
        if not name.startswith("ops."):
            continue
        mine, beside = host_times(plain, theirs)
        slow.append((name + ", recorded", missed(plain)))
        print(f"{name + ', recorded':32} {mine:8.2f} {'':>4} {beside:8.2f} {mine / beside:6.2f}")
    slow = [own for own in slow if own[1]]
    for name, count in slow:
        print(f"{name}: {count} of {CALLS} calls were not repeated")
    return 1 if slow else 0


#: A process that makes its first call of each operator. PyTorch has its context before.
FIRST = """
import time, torch, tilewright as tw
x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
weight = torch.ones(4096, device="cuda", dtype=torch.bfloat16)
q = torch.randn(2, 16, 1024, 64, device="cuda", dtype=torch.bfloat16)
(x @ x).sum().item()
for name, call in (
    ("softmax", lambda: tw.ops.softmax(x)),
    ("rms_norm", lambda: tw.ops.rms_norm(x, weight)),
    ("linear", lambda: tw.ops.linear(x, x)),
    ("attention", lambda: tw.ops.attention(q, q, q, causal=True)),
):
    begin = time.perf_counter()
    call()
    torch.cuda.synchronize()
    print(f"{name} {(time.perf_counter() - begin) * 1e3:.1f}")
"""


def first() -> None:
    """Prints the time of the first call of each operator in a process, without and with a cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"CUDA_CACHE_PATH": folder}
        runs = []
        for _ in range(2):
            made = subprocess.run([sys.executable, "-c", FIRST], env=environment, check=True, capture_output=True, text=True)
            runs.append(dict(line.split() for line in made.stdout.splitlines()))
    print(f"{'ms of the first call':28} {'no cache':>8} {'cache':>8}")
    for name in runs[0]:
        print(f"{name:28} {runs[0][name]:>8} {runs[1][name]:>8}")


if __name__ == "__main__":
    if "--first" in sys.argv[1:]:
        first()
    else:
        sys.exit(main())
