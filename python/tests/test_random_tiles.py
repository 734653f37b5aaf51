# mypy: ignore-errors
"""Random statements of tile programs: a program that runs, or a documented exception."""

from __future__ import annotations

import random

import numpy as np

import tilewright as tw
from tilewright import tile

from by_day import CALLS
from test_random_calls import random_argument
from test_random_kernels import REFUSALS, Count

#: Mostly right ones, of a tensor, an index, and two tiles of (4,32) numbers of f32.
RIGHT = [
    lambda x, i, a, b: a + b,
    lambda x, i, a, b: 2.0 * a - b / 3,
    lambda x, i, a, b: a.fma(b, 1.0),
    lambda x, i, a, b: a.max(b).min(0.5),
    lambda x, i, a, b: a.exp().recip(),
    lambda x, i, a, b: abs(-a).sqrt(),
    lambda x, i, a, b: a - a.reduce_max(1),
    lambda x, i, a, b: a / (a * a).reduce_sum(0, 1),
    lambda x, i, a, b: a.scan_sum(1),
    lambda x, i, a, b: a.scan_before_max(0).max(-1.0),
    lambda x, i, a, b: a.to("bf16").to("f32"),
    lambda x, i, a, b: a.to("e4m3").to("f32"),
    lambda x, i, a, b: a.top(1, 4).reduce_sum(1) + b,
    lambda x, i, a, b: a.top(1, 32),
    lambda x, i, a, b: a.argmax(1).to("f32") * b,
    lambda x, i, a, b: a.transpose((1, 0)).reshape((4, 32)),
    lambda x, i, a, b: a.reshape((4, 8, 4)).reduce_min(2).reshape((4, 8)).reduce_sum(1) + b,
    lambda x, i, a, b: tile.where(a < b, a, b),
    lambda x, i, a, b: tile.where(a != 0, b, 1.0),
    lambda x, i, a, b: (a.to("i32") & 255 | 3).to("f32"),
    lambda x, i, a, b: (a.as_i32() >> 4 << 1 ^ 5).lshr(2).as_f32(),
    lambda x, i, a, b: a.to("i32").random(i).to("f32"),
    lambda x, i, a, b: (a.to("i32") & 15).histogram(16).reduce_sum(0).reshape((1, 1)).to("f32") * b,
    lambda x, i, a, b: tile.arange((4, 32), 1).to("f32") + i.to("f32") if hasattr(i, "to") else a,
    lambda x, i, a, b: x.load((4, 32), (i, 0), other=1.0),
    lambda x, i, a, b: x.load((4, 32), (tile.arange((4, 1), 0) * 3, 0)),
    lambda x, i, a, b: a.held("(32,4):(4,1)"),
]
WORDS = ["f32", "i32", "bf16", "M", "(32,4):(4,1)", (4, 32), (1, 0), (32, 4), 0, 1, 4, 32, 0.5, -float("inf"), float("nan")]


def random_tiles(source: random.Random, x, y, pool: list, left: int, count: Count) -> None:
    """Some statements, on what is there and what they give."""
    for _ in range(left):
        tiles = [own for own in pool if type(own).__name__ in ("Value", "Carried")]
        index = source.choice([tile.block.x, *(own for own in pool if type(own).__name__ == "Index")])
        try:
            if source.random() < 0.75:
                # Tiles that have another shape by now are refused when the program is read.
                value = source.choice(RIGHT)(x, index, tiles[-1], tiles[0])
            else:
                owner = source.choice([*pool, tile])
                name = source.choice([name for name in dir(owner) if not name.startswith("_")] + ["__add__", "__getitem__", "__and__", "__lt__", "nothing"])
                function = getattr(owner, name, None)
                arguments = [
                    source.choice(pool) if source.random() < 0.4 else source.choice(WORDS) if source.random() < 0.8 else random_argument(source)
                    for _ in range(source.choice([0, 1, 1, 2, 2, 3]))
                ]
                value = function(*arguments) if callable(function) else function
        except REFUSALS as error:
            count.refused += 1
            assert str(error)
            continue
        count.answered += 1
        repr(value)
        if hasattr(value, "__next__"):
            for turn in value:
                random_tiles(source, x, y, [*pool, turn], min(left - 1, 2), count)
        elif value is not None and not isinstance(value, (str, list)):
            pool.append(value)


class Drawn:
    """Draws the statements of a program. A method: what a function reads is a constant of the
    program, and the arguments that are drawn are none.
    """

    def __init__(self, source: random.Random, count: Count) -> None:
        self.source, self.count = source, count

    def tiles(self, x, y, pool: list, left: int) -> None:
        random_tiles(self.source, x, y, pool, left, self.count)


def test_random_tile_programs() -> None:
    source, count = random.Random(24), Count()
    drawn = Drawn(source, count)
    while count.answered + count.refused < CALLS:

        def program(x: tw.Input("f32", "(M,32):(32,1)"), y: tw.InOut("f32", "(M,32):(32,1)"), z: tw.InOut("i32", "16:1")):
            at = (tile.block.x, 0)
            first = x.load((4, 32), at)
            pool = [x, y, z, tile.block.x, first]
            drawn.tiles(x, y, pool, source.randrange(1, 6))
            tiles = [own for own in pool if type(own).__name__ == "Value"]
            y.store(at, tiles[-1])
            if source.random() < 0.2:
                z.atomic_max((0,), (tiles[-1].to("i32") & 15).histogram(16))

        kernel = tw.tile(program, grid="ceil(M/4)", warps=source.choice([None, 1, 4]))
        try:
            kernel.program()
            count.programs += 1
            assert "tile program" in kernel.text() and kernel.ptx("sm_90a")
            kernel.check(M=6)
            arrays = np.ones((6, 32), np.float32), np.ones((6, 32), np.float32), np.ones(16, np.int32)
            kernel(*arrays)
        except REFUSALS as error:
            assert str(error)
    assert count.answered > CALLS / 20 and count.refused > CALLS / 100 and count.programs > 5


def test_random_calls_of_tile_programs() -> None:
    """Calls of a program with anything."""
    source = random.Random(25)

    @tw.tile(grid="ceil(M/4)")
    def doubled(x: tw.Input("f32", "(M,32):(32,1)"), y: tw.Output("f32", "(M,32):(32,1)"), factor=2.0):
        y.store((tile.block.x, 0), factor * x.load((4, 32), (tile.block.x, 0)))

    calls = [doubled, doubled.check, doubled.cost, doubled.draw, doubled.explain, doubled.program, doubled.ptx, doubled.text, tw.tile]
    arrays = [np.ones((6, 32), np.float32), np.zeros((6, 32), np.float32), np.zeros((6, 32)), np.zeros((32, 6), np.float32).T]
    for _ in range(CALLS // 20):
        arguments = [source.choice(arrays) if source.random() < 0.7 else random_argument(source) for _ in range(source.randrange(4))]
        names = {source.choice(["M", "factor", "x", "target", "warps"]): random_argument(source)} if source.random() < 0.3 else {}
        try:
            repr(source.choice(calls)(*arguments, **names))
        except REFUSALS as error:
            assert str(error)
