"""Work on sharded CUDA tensors by the processes of torch.distributed, beside PyTorch's own collectives.

    tilewright launch -n 2 python3 python/bench/between.py [--quick]

One process for each GPU, started by `tilewright launch`, torchrun or what sets their variables, with
NCCL_NVLS_ENABLE=0. Every result is compared with what defines it before a time counts. Times are medians
of turns in which both take part one after the other, by events of the current stream; the table is
printed by the first process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any, Callable

import torch
import torch.distributed as dist

import tilewright as tw

TURNS = 7


def seconds(work: Callable[[], Any], turns: int) -> float:
    """How long the current stream needs for one call, of several that follow one another."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    dist.barrier()
    torch.cuda.synchronize()
    begin.record()
    for _ in range(turns):
        work()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) * 1e-3 / turns


def beside(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float]:
    """The medians of both, in turns."""
    for work in (ours, theirs):
        seconds(work, 2)
    # As many calls on all processes.
    count = torch.tensor(max(1, min(50, int(0.03 / seconds(theirs, 2)))), device="cuda")
    dist.broadcast(count, 0)
    turns = int(count)
    pairs = [(seconds(ours, turns), seconds(theirs, turns)) for _ in range(TURNS)]
    return statistics.median(own for own, _ in pairs), statistics.median(other for _, other in pairs)


def same(found: torch.Tensor, wanted: torch.Tensor, what: str, tolerance: float = 0.0) -> None:
    if found.shape != wanted.shape:
        raise SystemExit(f"{what}: shape {tuple(found.shape)} where {tuple(wanted.shape)} belongs")
    worst = float((found.double() - wanted.double()).abs().max())
    if not worst <= tolerance:
        raise SystemExit(f"{what}: an element is off by {worst}")


def some(rows: int, columns: int, seed: int, dtype: torch.dtype) -> torch.Tensor:
    """Small whole numbers, the same on every device, so that sums are exact."""
    source = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randint(-4, 5, (rows, columns), generator=source, device="cuda").to(dtype)


class Table:
    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.line("| work | us | torch, us | torch / it |")
        self.line("|---|---|---|---|")

    def line(self, text: str) -> None:
        if self.rank == 0:
            print(text, flush=True)

    def row(self, what: str, ours: float, theirs: float) -> None:
        self.line(f"| {what} | {ours * 1e6:.1f} | {theirs * 1e6:.1f} | {theirs / ours:.3f} |")


def moves(table: Table, group: tw.mesh.Group, mesh: tw.mesh.Mesh, mib: int) -> None:
    rank, ranks = group.rank, group.size
    # Each process receives so many MiB of f32.
    columns = 4096
    rows = mib * (1 << 20) // 4 // columns * ranks // (ranks - 1)
    whole = some(rows, columns, 1, torch.float32)
    part, width = rows // ranks, columns // ranks
    own = whole[rank * part : (rank + 1) * part].contiguous()
    by_rows, by_columns, everywhere, sums = (
        mesh.of_placements((rows, columns), f"[{kind}]") for kind in ("Shard(0)", "Shard(1)", "Replicate()", "Partial()")
    )
    turned = mesh.layout(f"({rows},{columns}):(1,{rows}) copied {ranks}:1@x")
    gathered = torch.empty_like(whole)
    for name, after in ((f"all-gather, {mib} MiB", everywhere), (f"all-gather to columns, {mib} MiB", turned)):
        same(tw.mesh.reshard(own, by_rows, after, group), whole, name)
        ours = lambda: tw.mesh.reshard(own, by_rows, after, group)
        table.row(name, *beside(ours, lambda: dist.all_gather_into_tensor(gathered, own)))
    del gathered
    # Summands: this number and the rank, so that the sum is known.
    summand, scattered = whole + rank, torch.empty_like(own)
    extra = sum(range(ranks))
    name = f"reduce-scatter, {mib} MiB"
    same(tw.mesh.reshard(summand, sums, by_rows, group), own * ranks + extra, name)
    ours = lambda: tw.mesh.reshard(summand, sums, by_rows, group)
    table.row(name, *beside(ours, lambda: dist.reduce_scatter_tensor(scattered, summand)))
    name = f"all-reduce, {mib} MiB"
    same(tw.mesh.reshard(summand, sums, everywhere, group), whole * ranks + extra, name)
    ours = lambda: tw.mesh.reshard(summand, sums, everywhere, group)
    reduced = torch.zeros_like(summand)
    table.row(name, *beside(ours, lambda: dist.all_reduce(reduced)))
    del summand, scattered, reduced
    exchanged = torch.empty_like(own)
    name = f"rows to columns, {mib // ranks} MiB"
    wanted = whole[:, rank * width : (rank + 1) * width]
    same(tw.mesh.reshard(own, by_rows, by_columns, group), wanted, name)
    ours = lambda: tw.mesh.reshard(own, by_rows, by_columns, group)
    table.row(name + " (torch: all_to_all_single alone)", *beside(ours, lambda: dist.all_to_all_single(exchanged, own)))


def operations(table: Table, group: tw.mesh.Group, mesh: tw.mesh.Mesh, size: int) -> None:
    rank, ranks = group.rank, group.size
    whole = some(size, size, 2, torch.float32)
    part = size // ranks
    own = whole[:, rank * part : (rank + 1) * part].contiguous()
    by_columns, by_rows = (mesh.of_placements((size, size), f"[Shard({mode})]") for mode in (1, 0))
    result = mesh.of_placements((size, 1), "[Replicate()]")
    for by, wanted in (("sum", whole.sum(1, keepdim=True)), ("max", whole.amax(1, keepdim=True))):
        same(tw.mesh.reduce(own, by_columns, 1, result, by, group), wanted, by)
        operation = dist.ReduceOp.SUM if by == "sum" else dist.ReduceOp.MAX

        def theirs() -> torch.Tensor:
            made = own.sum(1) if by == "sum" else own.amax(1)
            dist.all_reduce(made, operation)
            return made

        ours = lambda: tw.mesh.reduce(own, by_columns, 1, result, by, group)
        table.row(f"{by} along a cut mode, {size} x {size} f32", *beside(ours, theirs))
    same(tw.mesh.argmax(own, by_columns, 1, result, group), whole.argmax(1, keepdim=True), "argmax")
    wanted = torch.softmax(whole, 1)[:, rank * part : (rank + 1) * part]
    same(tw.mesh.softmax(own, by_columns, 1, group=group), wanted, "softmax", 1e-6)

    def softened() -> torch.Tensor:
        greatest = own.amax(1)
        dist.all_reduce(greatest, dist.ReduceOp.MAX)
        parts = torch.exp(own - greatest[:, None])
        total = parts.sum(1)
        dist.all_reduce(total)
        return parts / total[:, None]

    ours = lambda: tw.mesh.softmax(own, by_columns, 1, group=group)
    table.row(f"softmax along a cut mode, {size} x {size} f32", *beside(ours, softened))
    rows = whole[rank * part : (rank + 1) * part]
    found = tw.mesh.map(lambda a, b: a * b + 1, [own, rows], [by_columns, by_rows], by_columns, group)
    same(found, own * own + 1, "map")


def products(table: Table, group: tw.mesh.Group, mesh: tw.mesh.Mesh, size: int) -> None:
    rank, ranks = group.rank, group.size
    part = size // ranks
    cut = slice(rank * part, (rank + 1) * part)
    a, b = some(size, size, 3, torch.bfloat16), some(size, size, 4, torch.bfloat16)
    exact = (a.float() @ b.float()).to(torch.bfloat16)
    rows, columns = (mesh.of_placements((size, size), f"[Shard({mode})]") for mode in (0, 1))
    a_rows, b_columns, b_rows, a_columns = (of.contiguous() for of in (a[cut], b[:, cut], b[cut], a[:, cut]))
    gathered, scattered = torch.empty_like(a), torch.empty_like(a_rows)
    # Products are rounded to bf16 once, and sums of two of them again.
    error = float(exact.float().abs().max()) * 2**-7
    name = f"product of {size} cubed in bf16, A gathered"
    same(tw.mesh.multiply(a_rows, rows, b_columns, columns, columns, group), exact[:, cut], name, error)

    def gather() -> torch.Tensor:
        dist.all_gather_into_tensor(gathered, a_rows)
        return gathered @ b_columns

    table.row(name, *beside(lambda: tw.mesh.multiply(a_rows, rows, b_columns, columns, columns, group), gather))
    name = f"product of {size} cubed in bf16, K cut, sums scattered"
    same(tw.mesh.multiply(a_columns, columns, b_rows, rows, rows, group), exact[cut], name, error)
    table.row(
        name,
        *beside(
            lambda: tw.mesh.multiply(a_columns, columns, b_rows, rows, rows, group),
            lambda: dist.reduce_scatter_tensor(scattered, a_columns @ b_rows),
        ),
    )


def costs(table: Table, group: tw.mesh.Group, checked: tw.mesh.Group, mesh: tw.mesh.Mesh) -> None:
    """What a call costs the host, of few elements."""
    ranks = group.size
    rows, whole = (mesh.of_placements((8 * ranks, 64), f"[{kind}]") for kind in ("Shard(0)", "Replicate()"))
    own = torch.ones(8, 64, device="cuda")
    gathered = torch.empty(8 * ranks, 64, device="cuda")
    named = {
        "it, without a check": lambda: tw.mesh.reshard(own, rows, whole, group),
        "it, with a check": lambda: tw.mesh.reshard(own, rows, whole, checked),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(gathered, own),
    }
    for name, work in named.items():
        for _ in range(20):
            work()
        turns = []
        for _ in range(TURNS):
            dist.barrier()
            torch.cuda.synchronize()
            since = time.perf_counter()
            for _ in range(50):
                work()
            torch.cuda.synchronize()
            turns.append((time.perf_counter() - since) / 50)
        table.line(f"an all-gather of 2 KiB a process, {name}: {statistics.median(turns) * 1e6:.1f} us")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="small tensors")
    quick = options.parse_args().quick
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    group, checked = tw.mesh.Group(check=False), tw.mesh.Group()
    mesh = tw.mesh.Mesh(f"x={group.size}")
    table = Table(rank)
    table.line(f"<!-- {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, NCCL {torch.cuda.nccl.version()} -->")
    for mib in (8,) if quick else (32, 128, 512):
        moves(table, group, mesh, mib)
    operations(table, group, mesh, 1024 if quick else 16384)
    products(table, group, mesh, 1024 if quick else 8192)
    costs(table, group, checked, mesh)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
