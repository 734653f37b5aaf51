# mypy: ignore-errors
"""What checks and costs say, the kernels of the library by name, and kernels with halos."""

from __future__ import annotations

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


def test_a_check_of_a_tile_program_says_what_it_compared():
    checked = softmax.check(M=5)
    assert (checked.sizes, checked.schedules, checked.compared) == ({"M": 5}, 4, 5 * 64)
    (output,) = checked.outputs
    assert output.tensor == "y" and 0 <= output.farthest <= output.rounding
    assert str(checked).startswith("checked: ") and "y: 320 elements compared" in str(checked)
    # On arrays, which stay as they are.
    x, y = np.random.default_rng(1).standard_normal((3, 64), dtype=np.float32), np.full((3, 64), 7, np.float32)
    assert softmax.check(x, y).compared == 3 * 64 and (y == 7).all()


def test_a_check_finds_what_the_interpreter_of_kernels_cannot_see():
    @tw.tile(grid="ceil(N/128)")
    def twice(x: tw.Input("f32", "N:1"), y: tw.Output("f32", "N:1")):
        y.store((tile.block.x,), x.load((128,), (tile.block.x,)))
        y.store((0,), x.load((128,), (tile.block.x,)))

    with pytest.raises(tw.KernelError) as refused:
        twice.check(N=300)
    assert refused.value.code == "E1210" and "twice" in refused.value.message


def test_a_cost_has_its_numbers():
    cost = softmax.cost(M=4096)
    assert cost.grid == (1024, 1, 1) and cost.tensor_bytes == 2 * 4096 * 64 * 4
    assert cost.sectors * 32 == cost.tensor_bytes and cost.machine == "H200"
    assert cost.bounds and all(seconds > 0 for seconds in cost.bounds.values())
    assert "device memory" in cost and isinstance(cost, str)


def test_the_library_is_known_by_name():
    names = tw.kernels.names()
    assert {"transpose", "softmax", "softmax.tile", "attention", "gather_rows"} <= set(names)
    assert [kernel.name for kernel in tw.kernels.listed()] == names
    assert tw.kernels.named("gather_rows.tile").is_tile and not tw.kernels.named("softmax").is_tile
    with pytest.raises(ValueError, match="did you mean 'attention'"):
        tw.kernels.named("atention")


@pytest.mark.parametrize(("name", "sizes"), [("gather_rows", {}), ("route", {"T": 3}), ("transpose", {"M": 30, "N": 20})])
def test_what_the_command_does_with_a_kernel_python_does(name, sizes):
    kernel = tw.kernels.named(name)
    assert kernel.summary and kernel.sizes.keys() == kernel.large.keys()
    checked = kernel.check(**sizes)
    assert checked.schedules == 4 and checked.compared > 0 and checked.sizes == (sizes or kernel.sizes)
    assert kernel.summary in kernel.show(**sizes) and "threads" in kernel.show(**sizes)
    assert ".visible .entry" in kernel.ptx("sm_80", **sizes)
    assert kernel.cost("A100", **sizes).machine == "A100" and kernel.cost(**sizes).sectors > 0
    assert str(kernel.draw(**sizes))
    if kernel.is_tile:
        assert "origin of each layout" in kernel.explain()
    else:
        with pytest.raises(TypeError, match="no tile program"):
            kernel.explain()


def padded(x, top, left):
    """The array in the middle of zeros."""
    return np.pad(x, ((top, top), (left, left)))


def test_a_grid_beside_a_slice_decides():
    @tw.jit
    def stencil(
        x: tw.Input("f32", "(H+2,W{div=32}+2):(W+2,1)"),
        y: tw.Output("f32", "(H,W{div=32}):(W,1)"),
    ):
        tw.threads(32)
        tw.grid("x", "W/32")
        tw.grid("y", "H")
        i, j = tw.block("y"), tw.block("x") * 32 + tw.thread()
        first, *others = [x[i + a, j + b].load() for a in (0, 1, 2) for b in (0, 1, 2)]
        y[i, j].store(sum(others, first))

    x = np.random.default_rng(1).integers(-9, 9, (5, 66)).astype(np.float32)
    y = np.empty((3, 64), np.float32)
    stencil(x, y)
    assert np.array_equal(y, sum(x[a : a + 3, b : b + 64] for a in (0, 1, 2) for b in (0, 1, 2)))
    stencil.check(H=4, W=32)


def test_both_edges_are_left_out():
    @tw.jit
    def differences(x: tw.Input("f32", "N:1"), y: tw.Output("f32", "N:1")):
        tw.threads(32)
        tw.grid("x", "ceil(N/32)")
        i = tw.block("x") * 32 + tw.thread()
        before, own, after = (x[i + a].load(predicated=True) for a in (-1, 0, 1))
        y[i].store(before - 2.0 * own + after, predicated=True)

    x = np.random.default_rng(2).integers(-9, 9, 70).astype(np.float32)
    y = np.empty_like(x)
    differences(x, y)
    around = np.pad(x, 1)
    assert np.array_equal(y, around[:-2] - 2 * x + around[2:])


def test_stencils_of_tile_programs_read_halos():
    @tw.tile(grid=("H", "ceil(W/128)"))
    def stencil(x: tw.Input("f32", "(H,W):(W,1)"), y: tw.Output("f32", "(H,W):(W,1)")):
        column = tile.index(tile.block.y * 128) + tile.arange((1, 128), 1)
        total = tile.full((1, 128), 0.0)
        for a in (-1, 0, 1):
            for b in (-1, 0, 1):
                total = total + x.load((1, 128), (tile.block.x + a, column + b))
        y.store((tile.block.x, tile.block.y), total)

    x = np.random.default_rng(3).integers(-9, 9, (4, 150)).astype(np.float32)
    y = np.empty_like(x)
    stencil(x, y)
    around = padded(x, 1, 1)
    assert np.array_equal(y, sum(around[a : a + 4, b : b + 150] for a in (0, 1, 2) for b in (0, 1, 2)))
    assert "by (32,4):(1,32)" in stencil.explain()


def test_mistakes_are_told_in_words_of_python():
    def refused(body, grid="ceil(M/4)"):
        def program(x: tw.Input("f32", "(M,64):(64,1)"), y: tw.Output("f32", "(M,64):(64,1)")):
            body(x, y)

        with pytest.raises(tw.KernelError) as error:
            tw.tile(program, grid=grid).text()
        assert ".rs" not in str(error.value) and "`grid " not in str(error.value)
        return error.value

    def forgotten(x, y):
        for i in tile.range(4):
            a = x.load((4, 64), (i, 0))
        y.store((tile.block.x, 0), a)

    error = refused(forgotten)
    assert "tile.carry" in error.help

    def broadcast(x, y):
        y.store((tile.block.x, 0), x.load((4, 64), (tile.block.x, 0)).broadcast((4, 128)))

    error = refused(broadcast)
    assert error.code == "E1201" and "along mode 1 is 64" in error.message and ".reshape((1, 64))" in error.help

    def whole(x, y):
        y.store((tile.block.x, 0), x.load((4, 64), (tile.block.x, 0)))

    error = refused(whole, grid="ceil(N/4)")
    assert error.code == "E1203" and "the sizes are M" in error.message
    error = refused(whole, grid="ceil(M/4")
    assert "`ceil(M/4` is not a number of blocks" in error.message
    error = refused(whole, grid=())
    assert error.code == "E1206" and "@tw.tile(grid=" in error.help
