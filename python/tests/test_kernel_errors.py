# mypy: ignore-errors
"""What is refused while a kernel is written, and what is found when it runs: exceptions that show the expression."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from page_kernels import tiled_add

import tilewright as tw

#: Python 3.10 knows no columns: the whole line is underlined.
COLUMNS = sys.version_info >= (3, 11)


def shown(error: pytest.ExceptionInfo[tw.KernelError]) -> str:
    """What of the line is underlined."""
    told = str(error.value).splitlines()
    under = next(at for at, line in enumerate(told) if "^" in line)
    begin, end = told[under].index("^"), told[under].rindex("^") + 1
    return told[under - 1][begin:end]


def test_refusals_show_the_expression():
    def refused(write):
        with pytest.raises(tw.KernelError) as error:
            tw.jit(write).program()
        assert error.value.filename == __file__ and error.value.lineno is not None
        return error

    def unguarded(x: tw.Input("f32", "(M,N):(N,1)")):
        part = x.local_tile((8, 4), tw.block("(x,y)")).compose("(32,1):(1,0)")[tw.thread, None]
        made = part.load() ; part.fragment()  # fmt: skip

    error = refused(unguarded)
    assert error.value.code == "E0903" and "predicated" in error.value.help and (not COLUMNS or shown(error) == "part.load()")
    assert "E0903" in str(tw.explain(error.value))

    def types(x: tw.Input("f32", "32:1")):
        tw.threads(32)
        part = x.compose("(32,1):(1,0)")[tw.thread, None].load()
        total = 2.0 * (part + part.to("f16"))  # fmt: skip
        del total

    error = refused(types)
    assert error.value.code == "E0905" and (not COLUMNS or shown(error) == "part + part.to(\"f16\")")

    def left(x: tw.Input("f32", "32:1")):
        tw.threads(32)
        for _ in tw.range(tw.size(x)):
            break

    error = refused(left)
    assert "left before its end" in error.value.message and (not COLUMNS or shown(error) == "tw.range(tw.size(x))")

    def escaped(x: tw.Input("f32", "(32,4):(1,32)")):
        tw.threads(32)
        for k in tw.range(4):
            part = x[None, k].compose("(32,1):(1,0)")[tw.thread, None].load()
        part.numbers()

    error = refused(escaped)
    assert "body that is over" in error.value.message and (not COLUMNS or shown(error) == "part.numbers()")

    def index(x: tw.Input("f32", "(32,4):(1,32)"), y: tw.Output("f32", "(32,4):(1,32)")):
        tw.threads(32)
        for k in tw.range(4):
            pass
        y[None, k].compose("(32,1):(1,0)")[tw.thread, None].store(x[None, 0].compose("(32,1):(1,0)")[tw.thread, None].load())

    refused(index)

    def twice(y: tw.Output("f32", "32:1")):
        tw.threads(64)
        part = y.compose("((32,2),1):((1,0),0)")[tw.thread, None]
        values = part.fragment()
        values.clear()
        part.store(values)

    assert refused(twice).value.code == "E0916"

    def declared(x: tw.Input("f32", "(M,:1")):
        pass

    assert refused(declared).value.lineno == declared.__code__.co_firstlineno

    def orphan(x: tw.Input("f32", "32:1")):
        with tw.otherwise():
            pass

    assert "no condition before" in refused(orphan).value.message

    def truth(x: tw.Input("f32", "32:1")):
        number = x.compose("(32,1):(1,0)")[tw.thread, None].load().numbers()[0]
        if number > 0:
            pass

    with pytest.raises(TypeError, match="tw.when"):
        tw.jit(truth).program()


def test_after_a_refusal_nothing_more_is_written():
    def caught(x: tw.Input("f32", "(M,N):(N,1)")):
        part = x.local_tile((8, 4), tw.block("(x,y)")).compose("(32,1):(1,0)")[tw.thread, None]
        for _ in range(2):
            try:
                part.load()
            except tw.KernelError:
                pass

    with pytest.raises(tw.KernelError) as error:
        tw.jit(caught).program()
    assert error.value.code == "E0903"


def test_what_the_interpreter_finds_is_an_exception():
    @tw.jit(x=tw.Input("f32", "(64,1):(1,64)"), y=tw.Output("f32", "(64,1):(1,64)"), threads=64)
    def raced(x, y):
        shared = tw.shared("f32", "64:1")
        shared.compose("(64,1):(1,0)")[tw.thread, None].store(x[tw.thread, None].load())
        # Without a barrier the neighbour may not have written yet.
        y[tw.thread, None].store(shared.compose("((32,2),1):((2,1),0)")[tw.thread, None].load())

    x = np.zeros((64, 1), np.float32)
    with pytest.raises(tw.KernelError) as error:
        raced.check(x, x.copy())
    assert error.value.code.startswith("E10") and error.value.filename == __file__


def test_an_exception_in_a_traced_function_comes_out():
    class Own(Exception):
        pass

    def broken(x: tw.Input("f32", "32:1")):
        tw.threads(32)
        for _ in tw.range(4):
            with tw.single():
                raise Own("here")

    kernel = tw.jit(broken)
    for _ in range(3):
        with pytest.raises(Own, match="here"):
            kernel.program()

    def algebra(x: tw.Input("f32", "32:1")):
        tw.composition(tw.Layout((6, 2), (1, 7)), tw.Layout((3, 2), (2, 3)))

    with pytest.raises(tw.LayoutError, match="E0107"):
        tw.jit(algebra).program()
    # Nothing is left behind.
    a = np.ones((1, 4), np.float32)
    c = np.empty_like(a)
    tiled_add(a, a, c)
    assert c.sum() == 8
    with pytest.raises(tw.KernelError, match="no kernel is being written"):
        tw.barrier()


def test_things_of_another_kernel_are_refused():
    kept = []

    def first(x: tw.Input("f32", "32:1")):
        tw.threads(32)
        kept.append(x)

    tw.jit(first).program()

    def second(x: tw.Input("f32", "32:1")):
        kept[0].load()

    with pytest.raises(tw.KernelError, match="belongs to the kernel `first`, and `second` is being traced"):
        tw.jit(second).program()
    with pytest.raises(tw.KernelError, match="no kernel is being written"):
        kept[0].load()


def test_copies_are_asked_for_in_the_words_of_their_package():
    y = np.zeros((4, 8), np.float32)
    for x, told in [(np.zeros((8, 4), np.float32).T, "numpy.ascontiguousarray"), (tw.Tensor(y).under("(4,8):(1,4)"), "relayout()")]:
        with pytest.raises(tw.KernelError) as refused:
            tiled_add(x, y, y.copy())
        assert told in refused.value.help and "contiguous()" not in refused.value.help


@pytest.mark.parametrize("fence", [None, "fence_async", "fence_async_global"])
def test_a_bulk_copy_of_what_threads_wrote_needs_a_fence(fence):
    @tw.jit(x=tw.InOut("f32", "(32,1):(1,32)"), y=tw.Output("f32", "(32,1):(1,32)"), threads=32)
    def crossed(x, y):
        tile = tw.shared("f32", "(32,1):(1,32)")
        stage = tw.pipeline(1, 1).cursor().stage()
        x[tw.thread, None].store(x[tw.thread, None].load() * 2.0)
        tw.barrier()
        with tw.single():
            if fence:
                getattr(tw, fence)()
            stage.acquire()
            stage.load(x, tile)
            stage.publish()
        stage.wait()
        y[tw.thread, None].store(tile[tw.thread, None].load())
        stage.release()

    x = np.arange(32, dtype=np.float32).reshape(32, 1)
    y = np.zeros_like(x)
    if fence == "fence_async_global":
        crossed.check(x.copy(), y)
        crossed(x, y)
        assert np.array_equal(y[:, 0], 2 * np.arange(32))
        assert "fence.proxy.async.global;" in crossed.ptx()
        return
    with pytest.raises(tw.KernelError, match="fence_async_global") as error:
        crossed.check(x, y)
    assert error.value.code == "E1019" and error.value.filename == __file__


def test_lanes_beyond_the_warp_are_refused():
    for mask, right in [(1, True), (31, True), (32, False), (64, False)]:

        @tw.jit(x=tw.Input("f32", "(32,1):(1,32)"), y=tw.Output("f32", "(32,1):(1,32)"), threads=32)
        def swapped(x, y):
            part = x[tw.thread, None].load()
            y[tw.thread, None].store(part.map(lambda number: tw.shuffle_xor(number, mask)))

        if right:
            swapped.program()
            continue
        with pytest.raises(tw.KernelError, match="a warp has 32 lanes") as error:
            swapped.program()
        assert error.value.code == "E0910"


def test_sizes_that_do_not_fit_are_refused_by_name():
    @tw.jit(y=tw.Output("i32", "(M,1):(1,M)"))
    def numbered(y):
        own = y.local_tile((32, 1), (tw.block("x"), 0))
        tw.threads(32)
        part = own[tw.thread, None]
        rows = tw.fragment("i32", part.shape)
        rows.set([tw.number(y.shape[0])])
        part.store(rows, predicated=True)

    for large in [2**31, 2**31 + 5, 2**32 - 1]:
        with pytest.raises(tw.KernelError, match="32 bits with a sign") as error:
            numbered.check(M=large)
        assert error.value.code == "E1002"


def test_help_is_written_in_python():
    with pytest.raises(tw.LayoutError) as unknown:
        tw.evaluate("qwertyuiop(3)")
    assert unknown.value.help == "tw.functions() lists them" and unknown.value.help in str(unknown.value)

    def no_threads(x: tw.Input("f32", "32:1")):
        tw.thread()

    def no_grid(x: tw.Input("f32", "32:1"), y: tw.Output("f32", "32:1")):
        tw.threads(32)
        y.compose("(32,1):(1,0)")[tw.thread, None].store(tw.number(tw.block("x")).to("f32"))

    for body in (no_threads, no_grid):
        with pytest.raises(tw.KernelError) as refused:
            tw.jit(body).program()
        assert "`k." not in str(refused.value) and "tw." in refused.value.help, refused.value.help
    for odd in (3, ["x"], b"x"):
        for named in ({"function": odd}, {"pairs": odd}):
            with pytest.raises(TypeError, match="is a text, as in"):
                tw.gpu.gemm(np.ones((8, 8), np.float16), np.ones((8, 8), np.float16), on="interpreter", **named)
