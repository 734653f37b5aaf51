# mypy: ignore-errors
"""One of several processes that work together: test_between.py starts them.

    python between.py THROUGH WORK [ARGUMENTS]

THROUGH is "sockets" (arrays of NumPy), "gloo" (tensors of PyTorch in its group), or "nccl". A line
``right COUNT`` or ``error CODE ..`` on the standard output says how it ended.
"""

from __future__ import annotations

import os
import random
import sys
import time

import numpy as np

import tilewright as tw
from tilewright.mesh import Group, Mesh, Processes

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


class Sockets:
    """Arrays of NumPy, between processes that sockets connect."""

    reals, integers = ("float64", "float32", "float16"), ("int64", "int32")

    def group(self, patience):
        return Group(Processes.of_environment(patience))

    def array(self, values, kind):
        return np.asarray(values).astype(kind)

    def values(self, array):
        return array


class Torch:
    """Tensors of PyTorch, in its group."""

    reals, integers = ("float64", "float32", "float16", "bfloat16"), ("int64", "int32", "int8")

    def __init__(self, backend):
        import torch

        self.torch, self.backend = torch, backend

    def group(self, patience):
        from datetime import timedelta

        if self.backend == "nccl":
            self.torch.cuda.set_device(RANK)
        self.torch.distributed.init_process_group(self.backend, timeout=timedelta(seconds=120))
        return Group(patience=patience, wait=True if os.environ.get("WAIT") else None)

    def array(self, values, kind):
        tensor = self.torch.as_tensor(np.ascontiguousarray(values)).to(getattr(self.torch, kind))
        return tensor.cuda() if self.backend == "nccl" else tensor

    def values(self, array):
        array = array.cpu()
        return array.double().numpy() if array.is_floating_point() else array.numpy()


def some_mesh(source):
    if RANKS == 4 and source.random() < 0.5:
        return Mesh("x=2,y=2") if source.random() < 0.5 else Mesh.row_major(x=2, y=2)
    return Mesh(f"x={RANKS}")


def some_layout(source, mesh, shape, sums=True):
    """Rows or columns of memory, cut, copied or summed along each axis of the mesh."""
    kinds = ["Shard(0)", "Shard(1)", "Replicate()"] + ["Partial()"] * sums
    layout = mesh.of_placements(shape, f"[{', '.join(source.choice(kinds) for _ in mesh.axes)}]")
    if source.random() < 0.4 or len(mesh.axes) > 1:
        return layout
    (axis, parts), (rows, columns) = mesh.axes[0], shape
    if rows % parts or columns % parts:
        return layout
    # In memory column by column, with gaps, behind others, or dealt out one by one.
    return mesh.layout(
        source.choice(
            [
                f"({rows},({columns // parts},{parts})):(1,({rows + 3},1@{axis}))",
                f"(({parts},{rows // parts}),{columns}):((1@{axis},{columns}),1)",
                f"(({parts},{rows // parts}),{columns}):((1@{axis},1),{rows // parts})",
                f"({rows},({parts},{columns // parts})):({columns // parts},(1@{axis},1))",
                f"({rows},{columns}):(1,{rows}) copied {parts}:1@{axis}",
            ]
        )
    )


def memory(layout, whole, source):
    """What every process has of a tensor; summands are random, whole numbers."""
    held = [np.zeros(layout.reach) for _ in range(layout.mesh.size)]
    for element, value in enumerate(np.asarray(whole).reshape(-1, order="F")):
        places = layout.places(element)
        parts = [source.randrange(-8, 9) for _ in range(layout.sums - 1)]
        parts.append(float(value) - sum(parts))
        for number, (rank, offset) in enumerate(places):
            held[rank][offset] = parts[number // layout.copies]
    return held


def local(layout, held):
    """The tensor that a process has in its memory, an axis for each mode."""
    part = layout.part(RANK)
    start, modes = part
    offsets = np.full(1, start)
    for _, runs in modes:
        for extent, _, stride in reversed(runs):
            offsets = (offsets[:, None] + np.arange(extent) * stride).reshape(-1)
    return held[offsets].reshape([int(np.prod([run[0] for run in runs], initial=1)) for _, runs in modes])


def same(through, found, layout, held, tolerance=0.0):
    wanted, found = local(layout, held), np.asarray(through.values(found), dtype=np.float64)
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    assert np.allclose(found, wanted, rtol=tolerance, atol=tolerance, equal_nan=True), (str(layout), found, wanted)


def given(source, through, layout, held, kind):
    """The local tensor, or the memory as one axis."""
    array = local(layout, held[RANK]) if source.random() < 0.6 else held[RANK]
    return through.array(array, kind)


def moved(source, through, group):
    mesh, shape = some_mesh(source), (source.choice([8, 12, 24]), source.choice([8, 12, 36]))
    shape = tuple(size * (RANKS if RANKS == 3 else 1) for size in shape)
    if source.random() < 0.4:
        # Parts of unequal sizes, of which some are empty.
        shape = (source.choice([1, 3, 5, 10]), source.choice([2, 5, 7, 13]))
    before, after = some_layout(source, mesh, shape), some_layout(source, mesh, shape)
    kind = source.choice(through.reals + through.integers)
    whole = np.array([source.randrange(-8, 9) for _ in range(shape[0] * shape[1])]).reshape(shape)
    held = memory(before, whole, source)
    done = tw.mesh.reshard(given(source, through, before, held, kind), before, after, group)
    same(through, done, after, np.array(before.reshard(after, bytes=4).simulate([list(own) for own in held])[RANK]))


def reduced(source, through, group):
    mesh, shape = some_mesh(source), source.choice([(12, 24), (12, 24), (11, 7), (1, 5)])
    before = some_layout(source, mesh, shape)
    over = source.choice([0, 1, (0, 1)])
    modes = (over,) if isinstance(over, int) else over
    kept = [size for mode, size in enumerate(shape) if mode not in modes]
    small = tuple(1 if mode in modes else size for mode, size in enumerate(shape))
    kinds = ["Replicate()"] + [f"Shard({mode})" for mode in range(2) if mode not in modes]
    after = mesh.of_placements(small, f"[{', '.join(source.choice(kinds) for _ in mesh.axes)}]")
    by = source.choice(["sum", "mean", "max", "argmax"])
    kind = source.choice(through.reals[:2] if by == "mean" else through.reals + through.integers[:2])
    whole = np.array([source.randrange(-8, 9) for _ in range(shape[0] * shape[1])]).reshape(shape)
    held = memory(before, whole, source)
    array = given(source, through, before, held, kind)
    if by == "argmax":
        done = tw.mesh.argmax(array, before, over, after, group)
        wanted = whole.argmax() if not kept else whole.argmax(axis=modes[0])
    else:
        done = tw.mesh.reduce(array, before, over, after, by, group)
        wanted = {"sum": whole.sum, "mean": whole.mean, "max": whole.max}[by](axis=modes)
    held = memory(after, np.asarray(wanted).reshape(small), source)
    same(through, done, after, held[RANK], 1e-6 if by == "mean" else 0)


def softened(source, through, group):
    mesh, shape = some_mesh(source), source.choice([(12, 24), (12, 24), (11, 7), (1, 5)])
    before, after = some_layout(source, mesh, shape), some_layout(source, mesh, shape, sums=False)
    over = source.choice([0, 1, (0, 1)])
    whole = np.array([source.randrange(-8, 9) for _ in range(shape[0] * shape[1])], dtype=float).reshape(shape)
    if before.sums == 1 and source.random() < 0.4:
        # Rows that begin with infinities, so that some processes have no other.
        whole[:6, :] = -np.inf
        whole[:, :8] = -np.inf
    held = memory(before, whole, source)
    done = tw.mesh.softmax(given(source, through, before, held, "float64"), before, over, after, group)
    with np.errstate(invalid="ignore"):
        parts = np.exp(whole - whole.max(axis=over, keepdims=True))
        wanted = parts / parts.sum(axis=over, keepdims=True)
    same(through, done, after, memory(after, wanted, source)[RANK], 1e-12)


def mapped(source, through, group):
    mesh, shape = some_mesh(source), source.choice([(12, 24), (12, 24), (11, 7), (1, 5)])
    layouts = [some_layout(source, mesh, shape) for _ in range(source.choice([1, 2, 3]))]
    after = some_layout(source, mesh, shape, sums=False)
    wholes = [np.array([source.randrange(-8, 9) for _ in range(shape[0] * shape[1])]).reshape(shape) for _ in layouts]
    helds = [memory(layout, whole, source) for layout, whole in zip(layouts, wholes)]
    kind = source.choice(through.reals[:2] + through.integers[:2])
    arrays = [given(source, through, layout, held, kind) for layout, held in zip(layouts, helds)]
    done = tw.mesh.map(lambda *of: sum(one * one for one in of) + 1, arrays, layouts, after, group)
    same(through, done, after, memory(after, sum(whole * whole for whole in wholes) + 1, source)[RANK])


def multiplied(source, through, group):
    mesh, (m, n, k) = some_mesh(source), source.choice([(12, 24, 36), (12, 24, 36), (5, 7, 11), (1, 3, 10)])
    layouts = [some_layout(source, mesh, shape, sums=False) for shape in ((m, k), (k, n))]
    after = some_layout(source, mesh, (m, n), sums=False)
    wholes = [np.array([source.randrange(-4, 5) for _ in range(r * c)]).reshape(r, c) for r, c in ((m, k), (k, n))]
    kind = source.choice(through.reals[:2])
    a, b = (given(source, through, layout, memory(layout, whole, source), kind) for layout, whole in zip(layouts, wholes))
    done = tw.mesh.multiply(a, layouts[0], b, layouts[1], after, group)
    same(through, done, after, memory(after, wholes[0] @ wholes[1], source)[RANK])


WORK = {"reshard": moved, "reduce": reduced, "softmax": softened, "map": mapped, "multiply": multiplied}


def endless(through, group, patience):
    """Moves a tensor again and again, until a process is lost."""
    mesh = Mesh(f"x={RANKS}")
    rows, columns = (mesh.of_placements((60 * RANKS, 60 * RANKS), f"[Shard({mode})]") for mode in (0, 1))
    array = through.array(np.zeros((60, 60 * RANKS)), "float64")
    print("begun", flush=True)
    until = time.monotonic() + 120
    while time.monotonic() < until:
        array = tw.mesh.reshard(array, rows, columns, group)
        array = tw.mesh.reshard(array, columns, rows, group)


def other(through, group, what):
    """The last process is about to do something else."""
    mesh, is_last = Mesh(f"x={RANKS}"), RANK == RANKS - 1
    rows, columns, whole = (mesh.of_placements((12, 12), f"[{kind}]") for kind in ("Shard(0)", "Shard(1)", "Replicate()"))
    array = np.zeros((12 // RANKS, 12))
    kind = "float32" if is_last and what == "type" else "float64"
    if is_last and what == "mesh":
        mesh = Mesh.row_major(x=1, y=RANKS)
        rows, columns = (mesh.of_placements((12, 12), f"[Replicate(), Shard({mode})]") for mode in (0, 1))
    if is_last and what == "memory":
        array = np.zeros(5)
    if is_last and what == "shape":
        array = np.zeros((2, 2))
    if what == "work":
        if is_last:
            return tw.mesh.softmax(through.array(array, kind), rows, 0, columns, group)
    if what == "function":
        def function(one):
            if is_last:
                raise OSError("no such thing")
            return one
        return tw.mesh.map(function, [through.array(array, kind)], [rows], columns, group)
    if what == "interrupt":
        def function(one):
            if is_last:
                raise KeyboardInterrupt
            return one
        return tw.mesh.map(function, [through.array(array, kind)], [rows], columns, group)
    return tw.mesh.reshard(through.array(array, kind), rows, whole if is_last and what == "layout" else columns, group)


def main(through, work, *rest):
    through = Sockets() if through == "sockets" else Torch(through)
    patience = float(os.environ.get("PATIENCE", "30"))
    group = through.group(patience)
    if work == "endless":
        return endless(through, group, patience)
    if work == "other":
        return other(through, group, rest[0])
    first, last = (int(number) for number in rest)
    for seed in range(first, last):
        source = random.Random(seed)
        name = source.choice(list(WORK)) if work == "all" else work
        try:
            WORK[name](source, through, group)
        except AssertionError as error:
            raise AssertionError(f"{name}, seed {seed}: {error}") from None
    print("right", last - first, flush=True)


if __name__ == "__main__":
    since = time.monotonic()
    try:
        main(*sys.argv[1:])
    except tw.LayoutError as error:
        print("error", error.code, error.message, flush=True)
    except KeyboardInterrupt:
        print("error interrupted", flush=True)
    # Libraries whose threads hang are not waited for.
    sys.stdout.flush()
    os._exit(0)
