# mypy: ignore-errors
"""Which calls share a kernel: constants as Python tells them apart, and sizes as numbers of the launch."""

from __future__ import annotations

import enum
import math
import types
from dataclasses import dataclass

import numpy as np
import pytest

import tilewright as tw
from tilewright import _constants, tile

OWN = types.ModuleType("own")
OWN.__file__ = __file__
SCALE = 2.0
TABLE = [1.0, 2.0]


def own(tensor):
    return tensor.compose("(32,1):(1,0)")[tw.thread, None]


def filled(read):
    """A kernel that fills with what is read of a constant, and the value for each constant."""

    @tw.jit(y=tw.Output("f32", "32:1"), threads=32)
    def kernel(y, constant):
        own(y).store(float(read(constant)))

    def value(constant):
        y = np.zeros(32, np.float32)
        kernel(y, constant)
        assert (y.view(np.int32) == y.view(np.int32)[0]).all()
        return y[0]

    return kernel, value


class Colour(enum.IntEnum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Frozen:
    at: object


@dataclass
class Changing:
    at: object


class Many(list):
    pass


class Whole(int):
    pass


class Settings:
    BLOCK = 1.0


class Plain:
    def __init__(self, at):
        self.at = at


#: Constants that Python calls equal, or that hold such, and are not the same.
APART = [
    (0.0, -0.0), (1, True), (1, 1.0), (True, 1.0), ((1,), (True,)), ((0.0, 2), (-0.0, 2)), ([1], [True]), ({"a": 1}, {"a": 1.0}),
    (frozenset([1]), frozenset([True])), (complex(0.0, -0.0), complex(0.0, 0.0)), (np.float32(1), np.float64(1)), (np.int32(1), 1),
    (np.float32(0.0), np.float32(-0.0)), (Colour.RED, 1), (Frozen(1), Frozen(True)), (Frozen(0.0), Frozen(-0.0)), (Changing(1), Changing(1.0)),
    (Plain(1), Plain(True)), (tw.Layout((1, 4), (7, 1)), tw.Layout((1, 4), (0, 1))), ("1", 1), (b"1", "1"), (None, 0), ((1, (2,)), (1, 2)),
    (lambda: 1, lambda: 2), (Many([1]), Many([2])), (Many([1]), [1]), (Whole(1), Whole(2)), (Whole(1), 1), (np.dtype("f4"), np.dtype("f8")), (range(3), range(4)),
]  # fmt: skip


@pytest.mark.parametrize("pair", APART, ids=lambda pair: repr(pair))
def test_constants_that_differ_have_different_keys(pair):
    first, second = (_constants.key(value, "it") for value in pair)
    assert first != second
    again = [_constants.key(value, "it") for value in pair]
    assert [first, second] == again and hash(first) == hash(again[0])


def test_constants_of_equal_contents_have_equal_keys():
    for make in (
        lambda: math.nan, lambda: (math.nan, -math.nan), lambda: [1, {"a": (2.0,)}], lambda: np.float32(3), lambda: Frozen((1, 2)), lambda: Plain([1]),
        lambda: tw.Layout("(4,8):(8,1)"), lambda: Colour.BLUE, lambda: np.arange(4), lambda: {1, 2}, lambda: "".join(["a", "b"]), lambda: 10**30,
    ):  # fmt: skip
        assert _constants.key(make(), "it") == _constants.key(make(), "it")
    # The payload of a NaN is a part of it.
    quiet, other = (np.array([bits], np.uint64).view(np.float64)[0].item() for bits in (0x7FF8_0000_0000_0000, 0x7FF8_0000_0000_0001))
    assert _constants.key(quiet, "it") != _constants.key(other, "it")


def test_a_kernel_is_traced_for_each_constant():
    kernel, value = filled(lambda x: math.copysign(1.0, x))
    assert [value(x) for x in (0.0, -0.0, 0.0)] == [1.0, -1.0, 1.0] and kernel.versions.traced == 2
    _, value = filled(lambda x: type(x[0]) is bool)
    assert [value(x) for x in ((1,), (True,), (1,))] == [0.0, 1.0, 0.0]
    kernel, value = filled(lambda x: 1.0)
    for _ in range(3):
        value(math.nan)
    assert kernel.versions.traced == 1


def test_what_changes_is_looked_at_in_each_call():
    for constant, change in [
        ([1.0], lambda x: x.__setitem__(0, 5.0)),
        ({"at": 1.0}, lambda x: x.update(at=5.0)),
        (Changing(1.0), lambda x: setattr(x, "at", 5.0)),
        (Plain([1.0]), lambda x: x.at.__setitem__(0, 5.0)),
        (Frozen([1.0]), lambda x: x.at.__setitem__(0, 5.0)),
    ]:

        def read(x):
            x = getattr(x, "at", x)
            return x["at"] if isinstance(x, dict) else x[0] if isinstance(x, list) else x

        kernel, value = filled(read)
        assert value(constant) == 1.0
        change(constant)
        assert value(constant) == 5.0 and value(constant) == 5.0 and kernel.versions.traced == 2


def test_what_may_change_unseen_is_refused():
    _, value = filled(lambda x: 1.0)
    for odd in (open(__file__), (n for n in range(3)), [memoryview(b"1")], {"a": open(__file__)}, Plain(open(__file__)), memoryview(b"1")):
        with pytest.raises(TypeError, match="'constant' of kernel"):
            value(odd)


def test_globals_and_closures_are_constants():
    global SCALE
    factor, table = 3.0, [1.0]
    OWN.value = 10.0

    def helper():
        return factor * SCALE

    @tw.jit(y=tw.Output("f32", "32:1"), threads=32)
    def kernel(y):
        own(y).store(helper() + table[0] + TABLE[1] + OWN.value)

    def value():
        y = np.zeros(32, np.float32)
        kernel(y)
        return y[0]

    assert value() == 6 + 1 + 2 + 10 and value() == 19 and kernel.versions.traced == 1
    SCALE = 4.0
    assert value() == 12 + 1 + 2 + 10
    factor = 1.0
    assert value() == 4 + 1 + 2 + 10
    table[0] = 5.0
    assert value() == 4 + 5 + 2 + 10
    OWN.value = 0.0
    assert value() == 4 + 5 + 2
    SCALE, factor, table[0], OWN.value = 2.0, 3.0, 1.0, 10.0
    assert value() == 19 and kernel.versions.traced == 5
    assert value() == 19

    @tw.jit(y=tw.Output("f32", "32:1"), threads=32)
    def of_a_class(y):
        own(y).store(Settings.BLOCK)

    y = np.zeros(32, np.float32)
    for block in (1.0, 2.0, 1.0):
        Settings.BLOCK = block
        of_a_class(y)
        assert (y == block).all()
    assert of_a_class.versions.traced == 2

    stream = open(__file__)

    @tw.jit(y=tw.Output("f32", "32:1"), threads=32)
    def reads_a_file(y):
        own(y).store(float(len(stream.read())))

    with pytest.raises(TypeError, match="'stream', which reads_a_file reads,"):
        reads_a_file(np.zeros(32, np.float32))


def test_what_cannot_change_is_looked_at_by_name():
    """The quick way: names that are bound to the same objects."""
    factor = 2.0

    @tw.jit(x=tw.Input("f32", "32:1"), y=tw.Output("f32", "32:1"), threads=32)
    def kernel(x, y):
        own(y).store(own(x).load() * factor)

    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)
    kernel(x, y)
    assert kernel._reads.unchanged() and kernel._launch is not None
    for own_factor in (3.0, 2.0, 3.0):
        factor = own_factor
        assert not kernel._reads.unchanged()
        for _ in range(3):
            kernel(x, y)
            assert (y == factor).all()
    assert kernel.versions.traced == 2


def test_a_global_that_hides_a_function_of_python_is_seen():
    names = {"tw": tw}
    exec(
        "def kernel(x, y):\n"
        "    part = x.compose('(32,1):(1,0)')[tw.thread, None].load()\n"
        "    y.compose('(32,1):(1,0)')[tw.thread, None].store(part * float(max(2, 3)) + helper(1.0))\n"
        "def helper(value):\n"
        "    return abs(value)\n",
        names,
    )
    kernel = tw.jit(x=tw.Input("f32", "32:1"), y=tw.Output("f32", "32:1"), threads=32)(names["kernel"])
    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)

    def found():
        for _ in range(3):
            kernel(x, y)
        assert kernel._launch is not None
        return float(y[0])

    assert found() == 4.0
    names["max"] = min
    assert found() == 3.0
    names["abs"] = lambda value: 7.0
    assert found() == 9.0
    # Without it, it is Python's own again.
    del names["max"]
    assert found() == 10.0
    del names["abs"]
    assert found() == 4.0


def test_versions_are_kept_up_to_a_number():
    kernel, value = filled(lambda x: x)
    kernel.most_versions = 4
    for x in range(-9, 0):
        assert value(float(x)) == x
    assert kernel.versions == (4, 4, 9)
    # The one that was called longest ago goes first.
    value(-4.0), value(-9.0), value(-4.0)
    assert kernel.versions == (4, 4, 10)
    value(-3.0)
    assert kernel.versions.traced == 10 or kernel.versions == (4, 4, 11)
    assert len(kernel._calls) <= 4


@tw.jit
def add(a, b, c):
    tiler, tv = tw.make_layout_tv(tw.make_ordered_layout((4, 64), order=(1, 0)), tw.make_ordered_layout((4, 4), order=(1, 0)))

    def part(tensor):
        block = tw.tensor_zipped_divide(tensor, tiler)[((None, None), tw.block("(y,x)"))]
        return tw.tensor_composition(block, tv, tiler)[(tw.thread, None)]

    a, b, c = part(a), part(b), part(c)
    c.store(a.load(predicated=True) + b.load(predicated=True), predicated=True)


def test_row_counts_share_a_kernel():
    before = add.versions.traced
    for rows in range(1, 40):
        a = np.random.default_rng(rows).standard_normal((rows, 1024), dtype=np.float32)
        c = np.full_like(a, np.nan)
        add(a, a, c)
        assert np.array_equal(c, a + a)
    assert add.versions.traced - before <= 3


def test_accesses_are_as_wide_as_with_constants():
    from itertools import product

    for rows, columns, pad in product((3, 16, 1024), (4, 6, 7, 8, 1020, 1022, 1024), (0, 1, 4)):
        a = np.zeros((rows, columns + pad), np.float32)[:, :columns]
        asked = add.program(a, a, a.copy())
        constant = add.program(*map(tw.static, (a, a, a.copy())))
        assert [own[2] for own in asked.uses()] == [own[2] for own in constant.uses()], (rows, columns, pad)
        assert not constant.sizes


def test_roles_are_what_the_kernel_does():
    program = add.program(*[tw.spec("f32", (8, 64))] * 3)
    assert [role for _, _, role, _ in program.tensors] == ["input", "input", "output"]

    @tw.jit(threads=32)
    def changes(x, y, z):
        own(x).store(own(x).load() + 1.0)
        with tw.when(tw.thread() < 16):
            own(y).store(own(z).load())

    x, y, z = (np.full(32, value, np.float32) for value in (1, 2, 3))
    changes(x, y, z)
    # A part of y is written, so the other part stays.
    assert (x == 2).all() and (y == np.where(np.arange(32) < 16, 3, 2)).all()
    assert [role for _, _, role, _ in changes.program(x, y, z).tensors] == ["tensor", "tensor", "input"]
    with pytest.raises(ValueError, match="share memory"):
        changes(x, x, z)


def test_sizes_are_constants_where_the_kernel_uses_them_so():
    @tw.jit(threads=32)
    def rows(x, y, times):
        x, y = (t.local_tile((1, 32), (tw.block("x"), 0)).compose("(32,1):(1,0)")[tw.thread, None] for t in (x, y))
        own = x.load()
        for _ in range(times):
            own = own + 1.0
        y.store(own)

    for count in range(2, 20):
        x = np.random.default_rng(count).standard_normal((count, 32), dtype=np.float32)
        y = np.empty_like(x)
        rows(x, y, 3)
        assert np.array_equal(y, x + np.float32(1) + np.float32(1) + np.float32(1))
    few = rows.versions.traced
    assert few <= 3
    rows(x, y, 4)
    assert np.allclose(y, x + 4) and rows.versions.traced == few + 1

    @tw.jit(threads=32)
    def branches(x, y):
        # A size that is compared is a constant.
        factor = 2.0 if tw.size(x) == 32 else 3.0
        own(y).store(own(x).load() * factor)

    x = np.ones(32, np.float32)
    y = np.zeros_like(x)
    branches(x, y)
    assert (y == 2).all()
    with pytest.raises(TypeError, match="tw.when"):
        branches(tw.dynamic(x), y)


def test_integers_share_a_kernel():
    @tw.jit(threads=32)
    def shifted(x, y, by):
        own(y).store(own(x).load() + by)

    x, y = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    for by in (*range(-3, 40), 2**31 - 1 - 31):
        shifted(x, y, by)
        assert np.array_equal(y, x + by), by
    # Multiples of 2, 4, 8 and 16 are promised, and negative numbers, 0 and 1 are constants.
    assert shifted.versions.traced <= 10
    traced = shifted.versions.traced
    for by in range(5, 25):
        shifted(x, y, tw.static(by))
        assert np.array_equal(y, x + by)
    assert shifted.versions.traced == traced + 20
    for odd in (0, -3, 2**31, 1.5, True):
        with pytest.raises(TypeError, match="no integer from 1 to"):
            shifted(x, y, tw.dynamic(odd))
    shifted(x, y, tw.dynamic(1))
    assert np.array_equal(y, x + 1)
    shifted(x, y, tw.dynamic(48, div=8))
    assert np.array_equal(y, x + 48)
    with pytest.raises(ValueError, match="no multiple of 8"):
        shifted(x, y, tw.dynamic(12, div=8))

    @tw.jit(threads=32, by=tw.static)
    def said(x, y, by):
        own(y).store(own(x).load() + by)

    said(x, y, 5), said(x, y, 6)
    assert np.array_equal(y, x + 6) and said.versions.traced == 2


def test_questions_take_shapes_and_types():
    shapes = [("f32", (1024, 512))] * 3
    assert "ld.global.v4" in add.ptx(*shapes) and add.ptx(*shapes) == add.ptx(*[tw.spec("float32", [1024, 512])] * 3)
    assert "device memory" in add.cost(*shapes) and str(add.draw(*shapes))
    add.check(*[("f32", (17, 252))] * 3)
    assert [own[2] for own in add.program(*[tw.spec("f32", (1024, 512), (513, 1))] * 3).uses()] == [4, 4, 4]
    for odd in (lambda: tw.spec("f32", (4, True)), lambda: tw.spec("f32", (4, 4), (1,)), lambda: tw.spec("f31", 4), lambda: tw.spec("f32", (-1,))):
        with pytest.raises((TypeError, ValueError)):
            odd()
    # There is nothing to run on.
    with pytest.raises(TypeError):
        add(*[tw.spec("f32", (8, 8))] * 3)


def test_tile_programs_take_arrays_without_a_declaration():
    @tw.tile(grid=lambda x, y: tw.ceil_div(x.shape[0], 4))
    def softmax(x, y):
        at = (tile.block.x, 0)
        a = x.load((4, 64), at)
        e = (a - a.reduce_max(1)).exp()
        y.store(at, e / e.reduce_sum(1))

    for rows in range(2, 20):
        x = np.random.default_rng(rows).standard_normal((rows, 64), dtype=np.float32)
        y = np.empty_like(x)
        softmax(x, y)
        assert np.allclose(y.sum(1), 1)
    assert softmax.versions.traced <= 2
    text = softmax.text(("f32", (100, 64)), ("f32", (100, 64)))
    assert "input  x: f32" in text and "output y: f32" in text and ".entry softmax" in softmax.ptx(("f32", (100, 64)), ("f32", (100, 64)))

    @tw.tile(grid="1")
    def branches(x, y):
        factor = 2.0 if x.shape[0] == 32 else 3.0
        total = tile.carry(tile.full((32,), 0.0))
        for k in tile.range(x.shape[0] // 32, total):
            total += x.load((32,), (k,)) * factor
        y.store((0,), total)

    for count, expected in ((32, 2.0), (64, 6.0)):
        y = np.zeros(32, np.float32)
        branches(np.ones(count, np.float32), y)
        assert (y == expected).all(), count


def test_a_grid_may_be_said_after_it_was_missed():
    @tw.jit(threads=32)
    def filled(x, y):
        own(y).store(own(x).load() + tw.number(tw.block("x")).to("f32") * 0.0)

    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)
    for _ in range(2):
        with pytest.raises(tw.KernelError, match="number of blocks"):
            filled(x, y)
    filled[1](x, y)
    assert (y == 1).all()


def test_what_is_refused_is_refused_again_for_the_same_reason():
    @tw.jit(threads=32)
    def loops(x, y):
        for _ in range(tw.size(x)):
            own(y).store(own(x).load())

    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)
    for _ in range(3):
        with pytest.raises(TypeError, match="no value while the kernel is written"):
            loops(tw.dynamic(x), y)
    loops(x, y)
    assert (y == 1).all()


def test_other_tuples_are_constants():
    @tw.jit(x=tw.Input("f32", "32:1"), y=tw.Output("f32", "32:1"), threads=32)
    def named(x, y, how):
        own(y).store(own(x).load() * float(how[1][0]))

    assert named.program(how=("scaled", (3, 4))).name == "named"
