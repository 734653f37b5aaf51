# mypy: ignore-errors
"""Kernels in Python, on the interpreter, beside NumPy."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw

from page_kernels import staged_gemm, tiled_add, tiled_gemm

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("shape", [(50, 260), (1, 4), (16, 256), (17, 252)])
def test_the_tiled_add_of_the_page(shape):
    a = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    b, c = 0.5 - a, np.full(shape, np.nan, np.float32)
    tiled_add(a, b, c)
    assert np.array_equal(c, a + b)
    tiled_add.check(M=shape[0], N=shape[1])
    # The grid may be said, and is then compared.
    grid = (-(-shape[1] // 256), -(-shape[0] // 16))
    tiled_add[grid](b, b, c)
    assert np.array_equal(c, b + b)
    with pytest.raises(tw.KernelError, match="are asked for"):
        tiled_add[grid[0] + 1, grid[1]](a, b, c)


@pytest.mark.parametrize("shape", [(150, 140, 37), (128, 128, 8), (1, 4, 1), (129, 132, 9)])
def test_the_gemm_of_the_tiling_post(shape):
    m, n, k = shape
    source = np.random.default_rng(2)
    a, b = source.integers(-5, 6, (m, k)).astype(np.float32), source.integers(-5, 6, (k, n)).astype(np.float32)
    c = np.full((m, n), np.nan, np.float32)
    # B is (N,K), contiguous along N: the transposed matrix of K rows.
    for product in (tiled_gemm, staged_gemm):
        c.fill(np.nan)
        product(a, b.T, c)
        assert np.array_equal(c, a @ b)
        product.check(a, b.T, c)


def test_the_program_is_that_of_rust():
    # The same statements in the same order give the same text, whoever says them.
    text = tiled_add.ptx()
    assert ".visible .entry tiled_add" in text and text.count("ld.global") == 8 and text.count("st.global") == 4
    assert "device memory" in tiled_add.cost(M=16384, N=16384)
    program = tiled_gemm.program()
    assert (program.threads, program.shared_bytes) == (256, 2 * 128 * 8 * 4)
    assert program.blocks({"M": 300, "N": 260, "K": 1}) == (3, 3, 1)
    assert [name for name, shown in program.outputs if not shown] == []


def test_loops_conditions_and_numbers():
    @tw.jit(x=tw.Input("f32", "(M{div=32},K):(K,1)"), y=tw.Output("f32", "M:1"), factor=tw.Scalar("f32"))
    def dots(x, y, factor):
        rows = x.local_tile((32, 1), (tw.block("x"), None))
        tw.threads(32)
        sums = y.local_tile(32, tw.block("x")).compose("(32,1):(1,0)")[tw.thread, None].fragment()
        sums.clear()
        for k in tw.range(x.shape[1]):
            own = rows[None, None, k].compose("(32,1):(1,0)")[tw.thread, None].load()
            # What is greater than 1 counts twice, what is negative not at all.
            number = own.numbers()[0]
            once = tw.where(number > 1.0, 2.0 * number, number)
            sums += sums.map(lambda _: tw.where(number < 0.0, 0.0, once))
        total = sums.numbers()[0]
        scaled = tw.fragment("f32", 1)
        scaled.clear()
        with tw.when(total > 10.0):
            scaled.set([total * factor])
        with tw.otherwise():
            scaled.set([total - 1])
        y.local_tile(32, tw.block("x")).compose("(32,1):(1,0)")[tw.thread, None].store(scaled)

    x = np.random.default_rng(3).integers(-3, 4, (96, 11)).astype(np.float32)
    y = np.empty(96, np.float32)
    dots(x, y, 0.25)
    sums = np.where(x > 1, 2 * x, np.where(x < 0, 0, x)).sum(1)
    assert np.array_equal(y, np.where(sums > 10, sums * 0.25, sums - 1))
    dots(x, y, factor=4.0)
    assert np.array_equal(y, np.where(sums > 10, sums * 4, sums - 1))
    dots.check(M=64, K=3, factor=2.0)


def test_tiles_of_a_block():
    held = tw.Distribution((4, 128), "((32,4),4):((16,1),4)")

    @tw.jit(x=tw.Input("f32", "(M,128):(128,1)"), y=tw.Output("f32", "(M,128):(128,1)"))
    def softmax(x, y):
        tile = x.local_tile((4, 128), (tw.block("x"), 0)).load_tile(held, predicated=True)
        powers = (tile - tile.reduce(1, reduction="maximum")).exp()
        y.local_tile((4, 128), (tw.block("x"), 0)).store_tile(powers / powers.reduce(1), predicated=True)

    x = np.random.default_rng(4).standard_normal((10, 128), dtype=np.float32)
    y = np.empty_like(x)
    softmax(x, y)
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    assert np.allclose(y, powers / powers.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


def test_arrays_without_annotation_bring_their_layouts():
    @tw.jit
    def shifted(x, y, by, threads):
        tw.threads(threads)
        own = x.compose(f"({threads},{tw.size(x) // threads}):(1,{threads})")[tw.thread, None]
        to = y.compose(f"({threads},{tw.size(x) // threads}):(1,{threads})")[tw.thread, None]
        to.store(own.load() + by)

    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    shifted(x, y, 3, 32)
    assert np.array_equal(y, x + 3)
    shifted(x, y, 5, threads=16)
    assert np.array_equal(y, x + 5)
    # Another layout, another kernel.
    wide = np.zeros(128, np.int32)[::2]
    shifted(x, wide, 1, 32)
    assert np.array_equal(wide, x + 1)
    assert shifted.versions.kept == 3


def test_a_kernel_within_a_kernel_is_a_function():
    @tw.jit
    def doubled(fragment):
        return fragment + fragment

    @tw.jit(x=tw.Input("f16", "N{div=64}:1"), y=tw.Output("f16", "N:1"), threads=64)
    def twice(x, y):
        x, y = (tensor.local_tile(64, tw.block("x")).compose("(64,1):(1,0)")[tw.thread, None] for tensor in (x, y))
        y.store(doubled(x.load()))

    x = np.arange(192, dtype=np.float16)
    y = np.empty_like(x)
    twice(x, y)
    assert np.array_equal(y, 2 * x)


def test_arrays_that_do_not_fit():
    a, c = np.ones((4, 8), np.float32), np.empty((4, 8), np.float32)
    with pytest.raises(tw.KernelError, match="f64 is given"):
        tiled_add(a, a, c.astype(np.float64))
    with pytest.raises(tw.KernelError, match=r"lies as \(8,4\):\(1,8\)"):
        tiled_add(a, a, c.T)
    with pytest.raises(tw.KernelError, match="lies as"):
        tiled_add(a, a, np.empty((4, 4), np.float32))
    with pytest.raises(tw.KernelError, match="N"):
        tiled_add(*(np.ones((4, 6), np.float32) for _ in range(3)))
    with pytest.raises(tw.KernelError, match="may only be read"):
        c.flags.writeable = False
        tiled_add(a, a, c)
    with pytest.raises(ValueError, match="share memory"):
        tiled_add(a, a, a)
    with pytest.raises(TypeError, match="expected an array"):
        tiled_add(a, a, [1.0])
    for odd, kind in ((tw.Layout(4), "Layout"), (len, "builtin_function_or_method"), (3, "int"), (tw.Layout, "type")):
        for decorator in (tw.jit, tw.tile(grid="1")):
            with pytest.raises(TypeError, match=f"a function that is written in Python.* not {kind}"):
                decorator(odd)
    with pytest.raises(ValueError, match="'>f4' are in the order of another machine"):
        tiled_add(a.astype(">f4"), a, c)
    with pytest.raises(TypeError, match="misses its argument 'mC'"):
        tiled_add(a, a)
    with pytest.raises(TypeError, match="takes 3 arguments"):
        tiled_add(a, a, c, c)
    with pytest.raises(TypeError, match="one to three numbers"):
        tiled_add["x"](a, a, c)
    with pytest.raises(ValueError, match="no type of elements"):
        tw.jit(x=tw.Input("f31", "4:1"))(lambda x: None).program()
    # Sizes are told by extents before strides.
    with pytest.raises(tw.KernelError, match=r"at these sizes \(8,4\):\(4,1\), and the array lies as \(8,4\):\(1,8\)"):
        tiled_add(a.T, a, np.empty((8, 4), np.float32))
    with pytest.raises(tw.KernelError, match=r"another number of axes, lies as \(32\):\(1\)"):
        tiled_add(*(np.ones(32, np.float32) for _ in range(3)))


def test_the_target_may_stand_behind_the_arguments():
    for target in ("sm_80", "sm_89", "sm_90a"):
        assert tiled_add.ptx(target) == tiled_add.ptx(target=target)
        assert f".target {target}\n" in tiled_add.ptx(target)
    with pytest.raises(ValueError, match="no target 'sm_12'"):
        tiled_add.ptx("sm_12")
    with pytest.raises(TypeError, match="'mA' of tiled_add is an array, not int"):
        tiled_add.ptx(90)


def test_two_threads_write_and_run_at_once():
    def work(seed, failures):
        try:
            source = np.random.default_rng(seed)
            for _ in range(4):

                @tw.jit(x=tw.Input("f32", "N{div=32}:1"), y=tw.Output("f32", "N:1"), threads=32)
                def scaled(x, y):
                    x, y = (t.local_tile(32, tw.block("x")).compose("(32,1):(1,0)")[tw.thread, None] for t in (x, y))
                    y.store(x.load() * seed)

                x = source.standard_normal(64, dtype=np.float32)
                y = np.empty_like(x)
                scaled(x, y)
                assert np.array_equal(y, x * np.float32(seed))
                a = source.standard_normal((20, 8), dtype=np.float32)
                c = np.empty_like(a)
                tiled_add(a, a, c)
                assert np.array_equal(c, a + a)
        except Exception as error:
            failures.append(error)

    failures: list[Exception] = []
    threads = [threading.Thread(target=work, args=(seed, failures)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_run_is_ended_by_an_interrupt():
    """An interrupt ends a run that would take minutes, and what comes next runs as before."""
    source = f"""
import signal, sys, threading, time
sys.path.insert(0, {str(HERE)!r})
import numpy as np
from page_kernels import tiled_add, tiled_gemm
program = tiled_gemm.program()
# A shell starts what runs in the background without it.
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
begun = time.monotonic()
try:
    tiled_gemm.check(M=2048, N=2048, K=2048)
except KeyboardInterrupt:
    print("interrupted" if time.monotonic() - begun < 60 else "late")
tiled_add.check(M=4, N=4)
"""
    told = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=300)
    assert told.stdout == "interrupted\n", told.stdout + told.stderr


def test_tensors_of_the_package_are_arrays():
    a = np.arange(17 * 252, dtype=np.float32).reshape(17, 252)
    c = tw.zeros((17, 252))
    tiled_add(tw.Tensor(a), a, c)
    assert np.array_equal(c.numpy(), 2 * a)

    # A swizzled tensor brings its layout; declared, it has to be the one that is said.
    @tw.jit
    def doubled(x, y):
        tw.threads(32)
        x, y = (tensor.compose("(32,8):(1,32)")[tw.thread, None] for tensor in (x, y))
        y.store(2 * x.load())

    layout = "S<2,0,3> o 0 o (16,16):(16,1)"
    x = tw.Tensor(np.arange(256, dtype=np.float32).reshape(16, 16)).relayout(layout)
    y = tw.zeros((16, 16))
    doubled(x, y)
    assert all(y[index] == 2 * x[index] for index in range(256))
    doubled.check(x, y)
    said = tw.jit(x=tw.Input("f32", layout), y=tw.Output("f32", "(16,16):(16,1)"))(doubled.function)
    said(x, y)
    with pytest.raises(tw.KernelError, match="lies as"):
        said(tw.zeros("S<2,0,4> o 0 o (16,16):(16,1)"), y)
    with pytest.raises(TypeError, match="no elements of type complex64"):
        said(tw.zeros((16, 16), "complex64"), y)


def test_pictures_show_what_lanes_reach():
    picture = tiled_add.draw(M=64, N=512)
    text = str(picture)
    for tensor in ("mA", "mB", "mC"):
        assert f"{tensor}, " in text
    assert text.count("16 sectors in 4 lines, the first of 4") == 3 and picture.svg().startswith("<svg")
    # The second row of blocks has its last row at 16: below, nothing is reached.
    edge = str(tiled_add.draw(M=17, N=512, block=(0, 1)))
    assert "the first of" not in edge and edge.count("16 sectors") == 3
    a = np.zeros((128, 8), np.float32)
    b, c = np.zeros((8, 128), np.float32), np.zeros((128, 128), np.float32)
    text = str(tiled_gemm.draw(a, b.T, c))
    # Copies of A go into eight rows of a column, all in four banks.
    assert "async copy of 4 bytes each" in text and "8 wavefronts" in text
    line = next(number for number, line in enumerate(open(HERE / "page_kernels.py"), 1) if "tCgC.store" in line)
    assert str(tiled_gemm.draw(a, b.T, c, line=line)).count("mC, store") == 1
    for refused, told in [
        (lambda: tiled_add.draw(M=4, N=4, line=1), "at line 1"),
        (lambda: tiled_add.draw(M=4, N=4, block=9), "reaches no memory"),
        (lambda: tiled_add.draw(M=4, N=4, warp=8), "reaches no memory"),
        (lambda: tiled_add.draw(M=4), "N"),
    ]:
        with pytest.raises(ValueError, match=told):
            refused()
    with pytest.raises(TypeError, match="one to three numbers"):
        tiled_add.draw(M=4, N=4, block="x")


def written(body):
    """A kernel of one row of elements a block, whose statements are those of a function of its parts."""

    @tw.jit(x=tw.Input("f32", "N{div=128}:1"), y=tw.Output("f32", "N:1"), threads=128)
    def kernel(x, y):
        body(*(tensor.local_tile(128, tw.block("x"))[tw.thread,] for tensor in (x, y)))

    return kernel


def test_a_number_is_stored_to_each_element():
    y = np.empty(256, np.float32)
    written(lambda x, y: y.store(2.5))(np.ones(256, np.float32), y)
    assert (y == 2.5).all()
    written(lambda x, y: y.store(x.load().numbers()[0] + 1, predicated=True))(np.ones(256, np.float32), y)
    assert (y == 2).all()
    # The type of the tensor, as of a fragment.
    with pytest.raises(tw.KernelError, match="E0905") as raised:
        written(lambda x, y: y.store(x.load().to("f16")))(y, y.copy())
    assert raised.value.help == 'convert with `.to("f32")`'
    with pytest.raises(TypeError, match="expected a number.*not str"):
        written(lambda x, y: y.store("1.0")).program()


def test_what_has_no_value_while_a_kernel_is_written_says_what_to_write():
    for body, told in [
        (lambda x: math.sqrt(x), r"x\.sqrt\(\)"),
        (lambda x: float(x), "no value while the kernel is written"),
        (lambda x: int(x.numbers()[0]), "no value while the kernel is written"),
        (lambda x: x > 0.0, r"tw\.maximum\(x, 0\.0\)"),
        (lambda x: 0.0 >= x, r"tw\.maximum\(x, 0\.0\)"),
        (lambda x: list(x), r"x\.numbers\(\)"),
        (lambda x: x and x, "with tw.when"),
    ]:
        with pytest.raises(TypeError, match=told):
            written(lambda x, y: y.store(body(x.load()))).program()
