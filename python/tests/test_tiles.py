# mypy: ignore-errors
"""Tile programs in Python, on the interpreter beside NumPy."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import tilewright as tw
from tilewright import tile


@tw.tile(grid="ceil(M/4)")
def softmax(x: tw.Input("f32", "(M,64):(64,1)"), y: tw.Output("f32", "(M,64):(64,1)")):
    at = (tile.block.x, 0)
    a = x.load((4, 64), at)
    e = (a - a.reduce_max(1)).exp()
    y.store(at, e / e.reduce_sum(1))


@tw.tile(grid=("ceil(M/64)", "ceil(N/32)"))
def product(
    a: tw.Input("f16", "(M,K{div=8}):(K,1)"),
    b: tw.Input("f16", "(N{div=8},K):(1,N)"),
    bias: tw.Input("f32", "N:1"),
    c: tw.Output("f32", "(M,N):(N,1)"),
):
    i, j = tile.block.x, tile.block.y
    total = tile.carry(tile.full((64, 32), 0.0))
    for k in tile.range("ceil(K/32)", total):
        left, right = a.load((64, 32), (i, k)), b.load((32, 32), (j, k))
        total.set(tile.dot(left, right.transpose((1, 0)), total))
    added = total + bias.load((32,), (j,)).reshape((1, 32))
    c.store((i, j), tile.where(added < 0, 0.0, added))


@tw.tile(grid="M")
def rows_of_many_lengths(
    x: tw.Input("f32", "(M,128):(128,1)"),
    lengths: tw.Input("i32", "M:1"),
    y: tw.Output("f32", "(M,32):(32,1)"),
):
    # As many parts of 32 as the length says; a negative one has none.
    total = tile.carry(tile.full((1, 32), 0.0))
    for k in tile.range(lengths.load((1,), (tile.block.x,)), total):
        total.set(total + x.load((1, 32), (tile.block.x, k)))
    y.store((tile.block.x, 0), total)


def test_turns_come_from_a_tensor():
    x = np.random.default_rng(4).integers(-9, 9, (5, 128)).astype(np.float32)
    lengths, y = np.array([0, 4, 1, -3, 3], np.int32), np.full((5, 32), np.nan, np.float32)
    rows_of_many_lengths(x, lengths, y)
    parts = x.reshape(5, 4, 32)
    assert np.array_equal(y, [row[: max(own, 0)].sum(0) for row, own in zip(parts, lengths)])


def test_rows():
    x = np.random.default_rng(1).standard_normal((7, 64), dtype=np.float32)
    y = np.full_like(x, np.nan)
    softmax(x, y)
    powers = np.exp(x.astype(np.float64))
    assert np.allclose(y, powers / powers.sum(1, keepdims=True), rtol=1e-5)
    softmax.check(M=5)
    softmax.check(x, y)
    assert "reduce_max" in softmax.text() and "no other assignment" in softmax.explain()
    assert "device memory" in softmax.cost(M=4096) and ".entry softmax" in softmax.ptx("sm_90a")
    assert str(softmax.draw(M=4))


def test_a_product_with_a_loop():
    source = np.random.default_rng(2)
    for m, n, k in [(64, 32, 32), (70, 40, 72), (1, 8, 8)]:
        a, b = (source.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
        bias, c = source.integers(-9, 9, n).astype(np.float32), np.full((m, n), np.nan, np.float32)
        product(a, b.T, bias, c)
        assert np.array_equal(c, np.maximum(a.astype(np.float64) @ b.astype(np.float64) + bias, 0)), (m, n, k)


def test_what_goes_from_turn_to_turn():
    @tw.tile(grid="1")
    def sums(x: tw.Input("f32", "K:1"), y: tw.Output("f32", "(2):(1)"), scale=2.0):
        total, greatest = tile.carry(tile.full((1,), 0.0)), tile.carry(tile.full((1,), -np.inf))
        for k in tile.range("ceil(K/32)", total, greatest):
            part = x.load((32,), (k,), other=0.0)
            total += scale * part.reduce_sum(0)
            greatest.set(tile.max(greatest, part.reduce_max(0)))
        rows = tile.arange((2,), 0)
        y.store((0,), tile.where(rows == 0, total.broadcast((2,)), greatest.broadcast((2,))))

    x, y = np.arange(96, dtype=np.float32) - 50, np.zeros(2, np.float32)
    sums(x, y)
    assert y.tolist() == [2 * x.sum(), 45.0]
    # Another constant is another program; arrays bring their own layout where nothing is declared.
    sums(x, y, 3.0)
    assert y[0] == 3 * x.sum()

    @tw.tile(grid="2")
    def turned(x: tw.Input("f32"), y: tw.Output("f32")):
        block = tile.block.x
        shift = tile.index(block * 3 + 1 - 1).to("f32")
        y.store((0, block), 2 - x.load((4, 4), (block, 0)).transpose((1, 0)) * -1 / 2 + shift)

    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    y = np.zeros((4, 8), np.float32)
    turned(x, y)
    assert np.array_equal(y, 2 + x.T / 2 + np.repeat([0, 3], 4))


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


def test_refusals_name_the_line():
    def shapes(x: tw.Input("f32", "8:1"), y: tw.Output("f32", "8:1")):
        y.store((0,), x.load((8,), (0,)) + x.load((4,), (0,)))  # here

    def empty(x: tw.Input("f32", "8:1"), y: tw.Output("f32", "8:1")):
        y.store((0,), x.load((0,), (0,)))  # here

    def reads(x: tw.Input("f32", "8:1"), y: tw.Output("f32", "8:1")):
        y.store((0,), y.load((8,), (0,)))  # here

    def unknown(x: tw.Input("f32", "8:1"), y: tw.Output("f32", "8:1")):
        y.store((0,), x.load((8,), (0,)).cosine())  # here

    def gone(x: tw.Input("f32", "8:1"), y: tw.Output("f32", "8:1")):
        for k in tile.range(4):
            a = x.load((8,), (k,))
        y.store((0,), a)  # here

    def changes(x: tw.Input("f32", "8:1"), y: tw.Output("f32", "8:1")):
        a = tile.carry(x.load((8,), (0,)))
        for _ in tile.range(4, a):  # here
            a.set(a.reduce_sum(0))

    for function, code in [(shapes, "E1201"), (empty, "E1201"), (reads, "E1205"), (unknown, "E1203"), (gone, "E1203"), (changes, "E1207")]:
        with pytest.raises(tw.KernelError) as refused:
            tw.tile(function).program()
        assert refused.value.code == code, refused.value
        assert (refused.value.filename, refused.value.lineno) == (__file__, line_of(function, "# here")), refused.value
        assert "# here" in str(refused.value) and tw.explain(refused.value)


def test_what_no_tile_program_is():
    x = np.zeros(8, np.float32)

    def of(body):
        def program(x: tw.Input("f32", "8:1"), y: tw.Output("f32", "8:1")):
            body(x, y)

        return tw.tile(program)

    def leaves(x, y):
        for _ in tile.range(4):
            break

    for body, raised, told in [
        (lambda x, y: bool(x.load((8,), (0,)) < 1), TypeError, "tw.tile.where"),
        (lambda x, y: bool(x.load((8,), (0,))), TypeError, "tw.tile.where"),
        (lambda x, y: x.load((8,), (0,)) + "1", tw.KernelError, ""),
        (lambda x, y: x.load((8,), (0,)) + object(), TypeError, "object"),
        (lambda x, y: tile.range(4, x.load((8,), (0,))).__next__(), TypeError, "tw.tile.carry"),
        (lambda x, y: tile.block.x * 1.5, TypeError, "whole numbers"),
        (lambda x, y: x.load((8,), (0,)).to("f7"), ValueError, "f7"),
        (lambda x, y: softmax(x, y), Exception, ""),
        (lambda x, y: 1 / 0, ZeroDivisionError, ""),
        (leaves, tw.KernelError, "left before its end"),
    ]:
        with pytest.raises(raised, match=told or None):
            of(body)(x, x.copy())
    with pytest.raises(RuntimeError, match="tw.tile.full"):
        tile.full((8,), 1.0)
    with pytest.raises(TypeError, match="numbers of f32, i32, f64 and i64"):
        tw.tile(lambda x: None, x=tw.Scalar("bf16"))
    kept = []
    of(lambda x, y: (kept.append(x.load((8,), (0,))), y.store((0,), kept[0])))(x, x.copy())
    with pytest.raises(tw.KernelError, match="earlier trace of the program"):
        of(lambda x, y: y.store((0,), kept[0]))(x, x.copy())
    with pytest.raises(tw.KernelError, match="lies as"):
        softmax(np.zeros((64, 4), np.float32).T, np.zeros((4, 64), np.float32))
    with pytest.raises(AttributeError):
        tile.block.w
    with pytest.raises(AttributeError):
        tile._nothing
