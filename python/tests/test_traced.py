# mypy: ignore-errors
"""What Python does with traced values: it is written into the kernel, or refused; none becomes a constant.

The classes are those of the package, and the operations all methods that Python's data model knows, so a class that is added
without saying what its operations are fails here.
"""

from __future__ import annotations

import copy
import inspect
import math
import operator
import pickle

import numpy as np
import pytest

import tilewright as tw
from tilewright import _native, _tile_values, _traced, tile

#: The methods of Python's data model by which an object becomes another one: what an operation does is said by its class.
OPERATIONS = {
    **{f"__{name}__": getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
    **{
        f"__{name.rstrip('_')}__": getattr(operator, name)
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "matmul", "lshift", "rshift", "and_", "or_", "xor", "pow")
    },
    **{
        f"__r{name.rstrip('_')}__": lambda x, other, name=name: getattr(operator, name)(other, x)
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "matmul", "lshift", "rshift", "and_", "or_", "xor", "pow")
    },
    **{
        f"__i{name}__": getattr(operator, f"i{name}")
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "matmul", "lshift", "rshift", "and", "or", "xor", "pow")
    },
    "__divmod__": divmod,
    "__rdivmod__": lambda x, other: divmod(other, x),
    "__neg__": lambda x, _: -x,
    "__pos__": lambda x, _: +x,
    "__abs__": lambda x, _: abs(x),
    "__invert__": lambda x, _: ~x,
    "__bool__": lambda x, _: bool(x),
    "__int__": lambda x, _: int(x),
    "__float__": lambda x, _: float(x),
    "__complex__": lambda x, _: complex(x),
    "__index__": lambda x, _: [0, 1, 2][x],
    "__round__": lambda x, _: round(x),
    "__trunc__": lambda x, _: math.trunc(x),
    "__floor__": lambda x, _: math.floor(x),
    "__ceil__": lambda x, _: math.ceil(x),
    "__hash__": lambda x, _: {x: 1},
    "__str__": lambda x, _: str(x),
    "__format__": lambda x, _: f"{x}",
    "__bytes__": lambda x, _: bytes(x),
    "__iter__": lambda x, _: list(x),
    "__next__": lambda x, _: next(x),
    "__reversed__": lambda x, _: reversed(x),
    "__len__": lambda x, _: len(x),
    "__contains__": operator.contains,
    "__getitem__": operator.getitem,
    "__setitem__": lambda x, other: operator.setitem(x, 0, other),
    "__delitem__": operator.delitem,
    "__call__": lambda x, _: x(),
    "__enter__": lambda x, _: x.__enter__(),
    "__copy__": lambda x, _: copy.copy(x),
    "__deepcopy__": lambda x, _: copy.deepcopy(x),
    "__reduce_ex__": lambda x, _: pickle.dumps(x),
    "__reduce__": lambda x, _: x.__reduce__(),
    "__array__": lambda x, _: np.array(x),
    "__array_ufunc__": lambda x, _: np.add(np.ones(3), x),
    "__buffer__": lambda x, _: memoryview(x),
    "__fspath__": lambda x, _: open(x),
    "__await__": lambda x, _: x.__await__(),
    "__aiter__": lambda x, _: aiter(x),
}

#: Methods that make nothing of the value: what every object of Python has.
OF_OBJECTS = {
    "__class__", "__delattr__", "__dir__", "__doc__", "__getattribute__", "__getattr__", "__getstate__", "__init__",
    "__init_subclass__", "__new__", "__repr__", "__setattr__", "__sizeof__", "__subclasshook__", "__module__", "__slots__",
    "__array_ufunc__", "__static_attributes__", "__firstlineno__", "__weakref__", "__dict__", "__annotations__", "__exit__",
    "__dlpack__",
}  # fmt: skip

ARITHMETIC = {f"__{side}{name}__" for side in ("", "r", "i") for name in ("add", "sub", "mul", "truediv")} | {"__neg__", "__abs__"}
ORDER = {"__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"}
BITS = {f"__{side}{name}__" for side in ("", "r", "i") for name in ("and", "or", "xor", "lshift", "rshift")}
WHOLE = {f"__{side}{name}__" for side in ("", "r", "i") for name in ("floordiv", "mod")}
#: The text of what is no number says what it is.
SHOWN = {"__str__", "__format__"}
INDEX = {f"__{side}{name}__" for side in ("", "r", "i") for name in ("add", "sub", "mul")}

#: What each class means by an operation: other traced values, or what is known while the kernel is written.
MEANT = {
    "Number": ARITHMETIC | ORDER,
    "Fragment": ARITHMETIC | SHOWN | {"__len__", "__getitem__", "__setitem__"},
    "Coordinates": SHOWN | {"__getitem__"},
    "Predicates": SHOWN | {"__len__", "__getitem__", "__setitem__"},
    "Tile": ARITHMETIC | SHOWN,
    "Flag": {"__invert__", "__eq__", "__ne__"} | {f"__{side}{name}__" for side in ("", "r", "i") for name in ("and", "or", "xor")},
    "View": SHOWN | {"__len__", "__getitem__"},
    "Pipeline": SHOWN,
    "Cursor": SHOWN,
    "Stage": SHOWN,
    "Thread": SHOWN | {"__call__"},
    "Body": SHOWN | {"__enter__"},
    "Range": SHOWN | {"__next__"},
    # An object of it never changes, so a copy is the object.
    # `2 // i` is refused where i may be 0.
    "Expr": INDEX | ORDER | {"__neg__", "__copy__", "__deepcopy__"} | {f"__{side}{name}__" for side in ("", "i") for name in ("floordiv", "mod")},
    "Value": ARITHMETIC | ORDER | BITS | WHOLE,
    "Carried": ARITHMETIC | ORDER | BITS | WHOLE,
    "Condition": {"__invert__"} | {f"__{side}{name}__" for side in ("", "r", "i") for name in ("and", "or")},
    "Index": INDEX | ORDER | {f"__{side}{name}__" for side in ("", "i") for name in ("floordiv", "mod")},
    "Tensor": set(),
    "Block": set(),
    "Iterations": {"__next__"},
}


def objects_of_kernels():
    """An object of each class while a kernel is written, by the name of the class."""
    made = {}

    def body(x: tw.Input("f32", "(M,32):(32,1)"), y: tw.Output("f32", "32:1")):
        tw.threads(32)
        block = x.local_tile((4, 32), (tw.block("x"), 0))
        fragment = block.compose("(32,4):(4,1)")[tw.thread, None].load(predicated=True)
        number = fragment.numbers()[0]
        held = tw.Distribution((4, 32), "(32,4):(4,1)")
        pipeline = tw.pipeline(2, 1)
        cursor = pipeline.cursor()
        made.update(
            Fragment=fragment, Number=number, Flag=number < 1.0, View=x, Pipeline=pipeline, Cursor=cursor, Stage=cursor.stage(),
            Tile=block.load_tile(held, predicated=True), Thread=tw.thread, Body=tw.when(number < 1.0),
            Range=tw.range(4), Expr=tw.thread(), Coordinates=tw.make_identity_tensor((4, 32)),
            Predicates=tw.make_rmem_tensor((2, 2), tw.Boolean),
        )  # fmt: skip
        made["Predicates"].fill(True)

    return body, made


def operands(name, own):
    """What stands on the other side: the like of it where the class has no numbers beside it."""
    return True if name == "Predicates" else own if name in ("Flag", "Condition") else 2


def outcome(made, name, operation):
    """What an operation gives, and what it raises."""
    if operation == "__reversed__":
        pass
    # A predicate is written by a condition, and read by an index.
    other = 0 if (name, operation) == ("Predicates", "__getitem__") else operands(name, made[name])
    try:
        return OPERATIONS[operation](made[name], other), None
    except Exception as error:
        return None, error


TRACED_RESULTS = tuple(_traced.TRACED)
#: What is known while a kernel is written, and no number of it.
KNOWN = {
    ("Fragment", "__len__"): int, ("View", "__len__"): int, ("Body", "__enter__"): type(None),
    ("Fragment", "__setitem__"): type(None), ("Predicates", "__setitem__"): type(None),
    ("Predicates", "__len__"): int, ("Coordinates", "__getitem__"): tuple,
}  # fmt: skip


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
@pytest.mark.parametrize("name", sorted(set(MEANT) - {"Value", "Carried", "Condition", "Index", "Tensor", "Block", "Iterations"}))
def test_every_operation_of_a_kernel_is_written_or_refused(name, operation):
    body, made = objects_of_kernels()
    found = []

    def asked(x: tw.Input("f32", "(M,32):(32,1)"), y: tw.Output("f32", "32:1")):
        body(x, y)
        found.append(outcome(made, name, operation))
        raise StopIteration

    with pytest.raises((StopIteration, RuntimeError)):
        tw.jit(asked).program()
    judge(name, operation, *found[0])


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
@pytest.mark.parametrize("name", ["Value", "Carried", "Condition", "Index", "Tensor", "Block", "Iterations"])
def test_every_operation_of_a_tile_program_is_written_or_refused(name, operation):
    found = []

    def asked(x: tw.Input("i32", "64:1"), y: tw.Output("i32", "64:1")):
        value = x.load((32,), (tile.block.x,))
        made = {
            "Value": value, "Carried": tile.carry(value), "Condition": value < 3, "Index": tile.block.x, "Tensor": x, "Block": tile.block,
            "Iterations": tile.range(4),
        }  # fmt: skip
        found.append(outcome(made, name, operation))
        raise StopIteration

    with pytest.raises((StopIteration, RuntimeError)):
        tw.tile(asked, grid="2").program()
    judge(name, operation, *found[0])


def judge(name, operation, result, error):
    if operation in MEANT[name]:
        assert error is None, (name, operation, error)
        known = KNOWN.get((name, operation), str if operation in SHOWN else TRACED_RESULTS)
        assert isinstance(result, known), (name, operation, result)
        return
    assert isinstance(error, (TypeError, AttributeError, tw.LayoutError)), (name, operation, result, error)
    # What says nothing else says what to write.
    if operation in _traced.RULES and operation not in ("__array__",):
        assert str(error), (name, operation)


def test_every_class_of_traced_values_is_known_here():
    named = {own.__name__ for own in _traced.TRACED}
    assert named == set(MEANT)
    # What a statement gives is of such a class: all classes with a place in a kernel, and all of tile programs.
    for module in (_native, _tile_values):
        for own in vars(module).values():
            if inspect.isclass(own) and own.__module__.startswith("tilewright") and hasattr(own, "_of"):
                assert own in _traced.TRACED, own


def test_every_method_of_a_traced_class_is_an_operation_that_is_tested():
    for own in _traced.TRACED:
        methods = {name for name in dir(own) if name.startswith("__") and name.endswith("__")}
        assert methods - set(OPERATIONS) - OF_OBJECTS == set(), own


@pytest.mark.parametrize("own", _traced.TRACED)
def test_no_class_keeps_what_every_object_has(own):
    for operation in ("__eq__", "__ne__", "__bool__", "__hash__", "__reduce_ex__"):
        if own is tw.Expr and operation == "__reduce_ex__":
            continue
        assert getattr(own, operation) is not getattr(object, operation, None), (own, operation)
    assert own.__array_ufunc__ is None


def lines(count=1):
    return tw.jit(x=tw.Input("i32", "(32,1):(1,32)"), y=tw.Output("i32", "(32,1):(1,32)"), threads=32)


def test_conditions_of_indices_are_those_of_each_thread():
    """Each relation, beside Python's own on the numbers of threads."""
    relations = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
    for relation in relations:
        for turned in (False, True):

            @lines()
            def chosen(x, y):
                other = x[tw.thread, None].load().numbers()[0] if turned == "number" else 7
                holds = relation(other, tw.thread()) if turned else relation(tw.thread(), other)
                y[tw.thread, None].store(tw.where(holds, 1, tw.number(0, "i32")))

            y = np.zeros((32, 1), np.int32)
            chosen(np.zeros((32, 1), np.int32), y)
            threads = np.arange(32)
            expected = relation(7, threads) if turned else relation(threads, 7)
            assert np.array_equal(y[:, 0], expected), (relation, turned)


def test_conditions_are_joined_as_truth_values_are():
    for join in (operator.and_, operator.or_, operator.xor, operator.eq, operator.ne):
        for other in (True, False, None):

            @lines()
            def joined(x, y):
                a, b = tw.thread() % 2 == 0, tw.thread() % 3 == 0 if other is None else other
                both = join(a, b) if tw.size(x) else None
                y[tw.thread, None].store(tw.where(~both, 0, tw.number(1, "i32")))

            y = np.zeros((32, 1), np.int32)
            joined(np.zeros((32, 1), np.int32), y)
            a = np.arange(32) % 2 == 0
            b = np.arange(32) % 3 == 0 if other is None else np.full(32, other)
            assert np.array_equal(y[:, 0], join(a, b)), (join, other)


def test_what_holds_for_all_sizes_is_known():
    def body(x: tw.Input("f32", "(M{div=8},N):(N,1)"), y: tw.Output("f32", "M:1")):
        tw.threads(64)
        i, (m, n) = tw.thread(), x.shape
        assert x.shape == x.shape and i < 64 and i >= 0 and not i == 64 and m % 8 == 0 and bool((i < 64) & (n >= 1)) and not ~(i < 64)
        for open_one in (lambda: i == 0, lambda: m == n, lambda: (i < 64) & (i == 0), lambda: x.shape == (8, 8), lambda: m in (8, 16)):
            with pytest.raises(TypeError, match=r"with tw\.when\(condition\):"):
                bool(open_one())
        raise StopIteration

    with pytest.raises((StopIteration, RuntimeError)):
        tw.jit(body).program()


def refused_in(body, error=TypeError, match=None):
    """That a body of a kernel is refused."""

    def kernel(x: tw.Input("i32", "(32,K):(1,32)"), y: tw.Output("i32", "(32,1):(1,32)"), n: tw.Scalar("i32")):
        tw.threads(32)
        body(x, y, n)

    with pytest.raises(error, match=match) as raised:
        tw.jit(kernel).program()
    return raised.value


def test_statements_of_python_that_take_a_constant():
    def branches(x, y, n):
        if tw.thread() == 0:
            pass

    def chooses(x, y, n):
        return 1 if tw.block("x") != 0 else 2

    def turns(x, y, n):
        for k in tw.range(x.shape[1]):
            if k == 0:
                pass

    def asks(x, y, n):
        assert n > 0

    def waits(x, y, n):
        while n < 3:
            pass

    def matches(x, y, n):
        match tw.thread():
            case 0:
                pass

    def opens(x, y, n):
        if tw.when(tw.thread() == 0):
            pass

    def forgets(x, y, n):
        if tw.thread == 0:
            pass

    for body in (branches, chooses, turns, asks, waits, matches, opens):
        refused_in(body, match="tw.when")
    refused_in(forgets, match=r"tw\.thread\(\)")
    i = lambda: tw.thread()  # noqa: E731
    for body in (
        lambda x, y, n: min(i(), 3), lambda x, y, n: max(n, 3), lambda x, y, n: sorted([i(), 2]), lambda x, y, n: any([n == 1]),
        lambda x, y, n: not i(), lambda x, y, n: i() and n, lambda x, y, n: i() in (1, 2), lambda x, y, n: [1, 2].index(n),
        lambda x, y, n: [1, 2][i()], lambda x, y, n: [1, 2][: n], lambda x, y, n: range(x.shape[1]), lambda x, y, n: "a" * n,
        lambda x, y, n: x.compose(f"({i()},4):(1,2)"), lambda x, y, n: "%s" % i(), lambda x, y, n: format(n, "d"),
        lambda x, y, n: "{}".format(i()), lambda x, y, n: math.floor(n), lambda x, y, n: math.sqrt(n), lambda x, y, n: math.gcd(i(), 4),
        lambda x, y, n: np.add(np.ones(3), n), lambda x, y, n: np.sqrt(i()), lambda x, y, n: np.array([n, n], dtype=float),
        lambda x, y, n: np.asarray(x), lambda x, y, n: np.where(n > 0, 1, 2), lambda x, y, n: np.zeros(4)[i()],
        lambda x, y, n: {n: 1}, lambda x, y, n: {i()}, lambda x, y, n: a_cache(i()), lambda x, y, n: a_cache(x), lambda x, y, n: np.ones(3) * n,
        lambda x, y, n: copy.deepcopy([n]), lambda x, y, n: pickle.dumps(i()), lambda x, y, n: n == "1", lambda x, y, n: n == None,  # noqa: E711
        lambda x, y, n: n + "1", lambda x, y, n: [*x], lambda x, y, n: dict([x]), lambda x, y, n: n % 2, lambda x, y, n: n[0],
    ):  # fmt: skip
        refused_in(body, error=(TypeError, IndexError))


import functools  # noqa: E402

a_cache = functools.lru_cache(lambda x: 1)


def test_indices_are_no_part_of_layouts():
    error = refused_in(lambda x, y, n: x.compose(tw.Layout((32, 1), (tw.thread(), 1))), error=tw.LayoutError)
    assert "sizes alone" in str(error)


def test_constants_are_numbers_of_the_type_or_refused():
    for body in (
        lambda x, y, n: n + 0.5, lambda x, y, n: n == 0.5, lambda x, y, n: n * 2**31, lambda x, y, n: n - 2**80,
        lambda x, y, n: tw.thread() < 1.5, lambda x, y, n: y[tw.thread, None].fragment().fill(-(2**31) - 1),
    ):  # fmt: skip
        error = refused_in(body, error=tw.KernelError)
        assert "no number of type i32" in error.message and ".to(" in error.help and error.filename == __file__

    @tw.jit(x=tw.Input("i64", "(32,1):(1,32)"), y=tw.Output("i64", "(32,1):(1,32)"), threads=32)
    def added(x, y):
        y[tw.thread, None].store(x[tw.thread, None].load() + (2**53 + 1) + np.int64(-(2**62) - 3))

    x, y = np.arange(32, dtype=np.int64).reshape(32, 1), np.zeros((32, 1), np.int64)
    added(x, y)
    assert np.array_equal(y, x + (2**53 + 1) - (2**62) - 3)


def test_a_value_is_used_in_its_kernel_alone():
    kept = []

    def first(x: tw.Input("f32", "(M,32):(32,1)")):
        tw.threads(32)
        kept.extend([x.shape[0], tw.thread(), tw.thread() + x.shape[0], tw.thread() == 0, x])

    tw.jit(first).program()
    for own in kept:
        for use in (lambda: own == 1, lambda: own + 1, lambda: tw.Layout((own, 3)), lambda: tw.size((own, 3)), lambda: hash(own)):
            with pytest.raises((TypeError, ValueError)):
                use()

    def second(x: tw.Input("f32", "(M,32):(32,1)")):
        tw.threads(32)
        use(own)

    for own in kept[:3]:
        for use in (lambda own: own + 1, lambda own: tw.thread() + own, lambda own: tw.range(own), lambda own: tw.number(own), lambda own: own == tw.thread()):
            with pytest.raises(tw.KernelError, match="belongs to the kernel `first`, and `second` is being traced"):
                tw.jit(second).program()


#: What is computed of a layout.
OF_LAYOUTS = {
    "shape": lambda own: own.shape,
    "stride": lambda own: own.stride,
    "a mode": lambda own: own[0],
    "modes": list,
    "a value": lambda own: own(0, 1),
    "a function": tw.size,
    "a method": lambda own: own.coalesce(),
    "composed": lambda own: own @ tw.Layout((2, 2)),
    "composed with": lambda own: tw.Layout((4, 8)) @ own,
    "numbers for names": lambda own: own.substitute(M=4),
    "names": lambda own: own.parameters,
    "in a tuple": lambda own: tw.Layout((own.shape, 2)),
    "shared": lambda own: tw.shared("f32", own),
}


@pytest.mark.parametrize("use", OF_LAYOUTS)
def test_a_layout_that_has_sizes_is_used_in_its_kernel_alone(use):
    kept = {}

    def first(x: tw.Input("f32", "(M,32):(32,1)")):
        tw.threads(32)
        kept["layout"], kept["tiler"] = x.layout, tw.make_layout((x.shape[0], 4))
        # Here it is what it is.
        assert str(tw.size(x.layout)) == "M*32" or tw.size(x.layout) is not None

    def second(x: tw.Input("f32", "(M,32):(32,1)")):
        tw.threads(32)
        OF_LAYOUTS[use](kept[which])

    # Another kernel has a size of the same name, which is another number.
    for which in ("layout", "tiler"):
        tw.jit(first).program()
        with pytest.raises(tw.KernelError, match="belongs to the kernel `first`, and `second` is being traced"):
            tw.jit(second).program()

        def program(x: tw.Input("f32", "M:1"), y: tw.Output("f32", "M:1")):
            OF_LAYOUTS[use](kept[which])

        with pytest.raises(tw.KernelError, match="belongs to the kernel `first`, and `program` is being traced"):
            tw.tile(grid="1")(program).program()
    with pytest.raises(tw.KernelError, match="kernel `first`, which is not being traced"):
        tw.size(kept["layout"])
    assert "M" in repr(kept["layout"])

    # One that is made outside of all is one for all, and so is one without sizes.
    everywhere, kept = tw.Layout("(M,32):(32,1)"), {}

    def third(x: tw.Input("f32", "(M,32):(32,1)")):
        tw.threads(32)
        assert tw.size(everywhere) is not None
        kept["numbers"] = tw.Layout((4, 8))

    tw.jit(third).program()
    assert tw.size(kept["numbers"]) == 32 and tw.size(everywhere) is not None


def test_what_belongs_to_a_tile_program_is_used_in_it_alone():
    kept = {}

    def first(x: tw.Input("f32", "M:1"), y: tw.Output("f32", "M:1")):
        a = x.load((32,), (tile.block.x,))
        kept.update(tile=a, index=tile.block.x, tensor=x, out=y, size=x.shape[0], condition=a < 1.0)
        y.store((tile.block.x,), a)

    uses = {
        "tile": [lambda own: own + 1.0, lambda own: own.exp(), lambda own: own.reduce_sum(0), lambda own: 2.0 * own],
        "index": [lambda own: tile.full((4,), 1.0) + own, lambda own: own < 3],
        "tensor": [lambda own: own.load((32,), (0,)), lambda own: own.shape],
        "out": [lambda own: own.store((0,), 1.0)],
        "size": [lambda own: own + 1, lambda own: tile.range(own), lambda own: tile.size(own)],
        "condition": [lambda own: tile.where(own, 1.0, 2.0)],
    }

    def second(x: tw.Input("f32", "M:1"), y: tw.Output("f32", "M:1")):
        use(kept[what])
        y.store((tile.block.x,), x.load((32,), (tile.block.x,)))

    tw.tile(grid="ceil(M/32)")(first).program()
    for what, own in uses.items():
        for use in own:
            with pytest.raises(tw.KernelError, match="belongs to the (program|kernel) `first`, and `second` is being traced"):
                tw.tile(grid="ceil(M/32)")(second).program()


def test_what_a_kernel_keeps_from_its_last_trace_is_not_used_again():
    kept = []

    @tw.jit(threads=32)
    def kernel(x, y, factor):
        kept.append(x.layout)
        y[tw.thread, None].store(x[tw.thread, None].load() * factor)
        assert tw.size(kept[0]) is not None

    x, y = np.ones((32, 1), np.float32), np.zeros((32, 1), np.float32)
    with pytest.raises((tw.KernelError, TypeError)):
        kernel(x, y, 2.0)
        kernel(np.ones((32, 2), np.float32), np.zeros((32, 2), np.float32), 3.0)


def test_conditions_may_be_constants():
    @lines()
    def written(x, y):
        out = tw.fragment("i32", 1)
        out.clear()
        with tw.when(tw.size(y) == 32):
            out.fill(3)
        with tw.when(tw.size(y) == 33):
            out.fill(4)
        y[tw.thread, None].store(out)

    y = np.zeros((32, 1), np.int32)
    written(y.copy(), y)
    assert (y == 3).all()
    refused_in(lambda x, y, n: tw.when(1), match="expected a condition")
    refused_in(lambda x, y, n: tw.where(2, n, n), match="expected a condition")


def test_comparisons_of_tile_programs_choose():
    @tw.tile(grid="2")
    def chosen(x: tw.Input("f32", "64:1"), y: tw.Output("f32", "64:1")):
        block, a = tile.block.x, x.load((32,), (tile.block.x,))
        row = tile.arange((32,), 0)
        y.store((block,), tile.where((block == 0) & ~(row < 3) | (a > 50.0), a, tile.where(block != 1, -a, tile.where(3 >= row, 0.0, 1.0))))

    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    chosen(x, y)
    block, row = np.divmod(np.arange(64), 32)
    expected = np.where((block == 0) & ~(row < 3) | (x > 50), x, np.where(block != 1, -x, np.where(row <= 3, 0, 1)))
    assert np.array_equal(y, expected)


def part(tensor, k=0):
    return tensor[None, k].compose("(32,1):(1,0)")[tw.thread, None]


def last_is_read(x, y):
    count = 0
    for _ in tw.range(x.shape[1]):
        count = count + 1


def number_is_added_to(x, y):
    n = tw.number(0.0, "f32")
    for _ in tw.range(4):
        n += 1.0


def fragment_goes_on(x, y):
    sums = part(y).fragment()
    sums.clear()
    current = part(x).load()
    for k in tw.range(3):
        following = part(x, k + 1).load(predicated=True)
        sums += current
        current = following


def flag_of_the_first(x, y):
    first, sums = True, part(y).fragment()
    for _ in tw.range(3):
        if first:
            sums.clear()
        first = False


def captured(x, y):
    count = 0

    def up():
        nonlocal count
        count += 1

    for _ in tw.range(3):
        up()


def chosen_by_when(x, y):
    value = 0.0
    with tw.when(tw.thread() == 0):
        value = 1.0
    part(y).store(value)


def chosen_by_otherwise(x, y):
    value = 0.0
    with tw.when(tw.thread() == 0):
        value = 1.0
    with tw.otherwise():
        value = 2.0
    part(y).store(value)


def index_of_some(x, y):
    at = 3
    with tw.single():
        at = tw.thread()
    part(y).store(tw.number(at).to("f32"))


NAMES = {
    last_is_read: "count", number_is_added_to: "n", fragment_goes_on: "current", flag_of_the_first: "first", captured: "count",
    chosen_by_when: "value", chosen_by_otherwise: "value", index_of_some: "at",
}  # fmt: skip


@pytest.mark.parametrize("body", NAMES, ids=lambda body: body.__name__)
def test_a_name_that_a_body_binds_anew_is_not_read_again(body):
    def kernel(x: tw.Input("f32", "(32,K):(1,32)"), y: tw.Output("f32", "(32,1):(1,32)")):
        tw.threads(32)
        body(x, y)

    with pytest.raises(tw.KernelError, match=f"binds `{NAMES[body]}` to something else") as raised:
        tw.jit(kernel).program()
    assert raised.value.filename == __file__ and raised.value.help


class State:
    def __init__(self, value):
        self.value = value


class Slots:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Nested:
    def __init__(self, value):
        self.within = [{"state": State(value)}]


LOG = []


def a_list_grows(x, y):
    terms = []
    for k in tw.range(3):
        terms.append(1.0)
    part(y).store(float(len(terms)))


def an_element_is_another(x, y):
    last = [part(x).load()]
    for k in tw.range(3):
        part(y).store(last[0])
        last[0] = part(x, k).load(predicated=True)


def a_dict_has_another_item(x, y):
    last = {"x": part(x).load()}
    for k in tw.range(3):
        part(y).store(last["x"])
        last["x"] = part(x, k).load(predicated=True)


def a_dict_remembers_a_traced_value(x, y):
    known = {}
    for k in tw.range(3):
        if "x" not in known:
            known["x"] = part(x, k).load(predicated=True)
        part(y).store(known["x"])


def an_attribute_is_another(x, y):
    state = State(0.0)
    for _ in tw.range(3):
        state.value += 1.0
    part(y).store(state.value)


def an_attribute_by_slots_is_another(x, y):
    state = Slots(0.0)
    for _ in tw.range(3):
        state.value += 1.0
    part(y).store(state.value)


def something_within_is_another(x, y):
    nested = Nested(0.0)
    for _ in tw.range(3):
        nested.within[0]["state"].value += 1.0
    part(y).store(nested.within[0]["state"].value)


def a_list_of_a_closure_grows(x, y):
    terms = []

    def add(term):
        terms.append(term)
        return len(terms)

    for _ in tw.range(3):
        add(1.0)
    part(y).store(float(add(1.0)))


def a_global_list_grows(x, y):
    for k in tw.range(3):
        LOG.append(k)


def an_array_is_changed(x, y):
    counts = np.zeros(2, np.float32)
    for _ in tw.range(3):
        counts[0] += 1.0
    part(y).store(float(counts[0]))


def a_set_loses_an_element(x, y):
    left = {1, 2}
    with tw.when(tw.thread() < 4):
        left.discard(1)
    part(y).store(float(len(left)))


def a_list_is_changed_by_some_threads(x, y):
    own = [0.0]
    with tw.when(tw.thread() < 4):
        own[0] = 1.0
    part(y).store(own[0])


def a_list_is_changed_by_a_role(x, y):
    own = [0.0]
    with tw.single():
        own[0] = 1.0
    part(y).store(own[0])


HELD = {
    a_list_grows: "the elements of `terms`", an_element_is_another: "the elements of `last`",
    a_dict_has_another_item: "the items of `last`", a_dict_remembers_a_traced_value: "the items of `known`",
    an_attribute_is_another: "the attributes of `state`", an_attribute_by_slots_is_another: "the attributes of `state`",
    something_within_is_another: "the attributes of `nested`", a_list_of_a_closure_grows: "the elements of `(add|terms)`",
    a_global_list_grows: "the elements of `LOG`", an_array_is_changed: "the elements of `counts`",
    a_set_loses_an_element: "the elements of `left`", a_list_is_changed_by_some_threads: "the elements of `own`",
    a_list_is_changed_by_a_role: "the elements of `own`",
}  # fmt: skip


@pytest.mark.parametrize("body", HELD, ids=lambda body: body.__name__)
def test_an_object_that_a_body_changes_is_not_read_again(body):
    def kernel(x: tw.Input("f32", "(32,K):(1,32)"), y: tw.InOut("f32", "(32,1):(1,32)")):
        tw.threads(32)
        body(x, y)

    with pytest.raises(tw.KernelError, match=f"changes {HELD[body]}, which is read again") as raised:
        tw.jit(kernel).program()
    assert raised.value.filename == __file__ and raised.value.help


def test_what_a_body_made_is_not_used_behind_it():
    """By whichever way it got out."""
    ways = {
        "a list that is new": lambda kept, own: kept.__setitem__("new", [own]),
        "an item": lambda kept, own: kept.__setitem__("own", own),
        "an attribute of a function": lambda kept, own: setattr(test_what_a_body_made_is_not_used_behind_it, "own", own),
    }
    things = {
        "a fragment": (lambda x, k: part(x, k).load(predicated=True), lambda own, y: part(y).store(own)),
        "a number": (lambda x, k: part(x, k).load(predicated=True).numbers()[0], lambda own, y: own + 1.0),
        "a condition": (lambda x, k: part(x, k).load(predicated=True).numbers()[0] > 0.0, lambda own, y: tw.when(own).__enter__()),
        "a view": (lambda x, k: x[None, k], lambda own, y: own[tw.thread(),].load(predicated=True)),
        "an index": (lambda x, k: k, lambda own, y: part(y).store(tw.number(own).to("f32"))),
        "predicates": (lambda x, k: tw.make_rmem_tensor((4,), tw.Boolean), lambda own, y: own.fill(True)),
    }
    found = {"new": lambda kept: kept["new"][0], "own": lambda kept: kept["own"]}
    for make, use in things.values():
        for way in ways.values():
            kept = {}

            def kernel(x: tw.Input("f32", "(32,K):(1,32)"), y: tw.Output("f32", "(32,1):(1,32)")):
                tw.threads(32)
                for k in tw.range(3):
                    way(kept, make(x, k))
                name = next(iter(kept), None)
                use(found[name](kept) if name else test_what_a_body_made_is_not_used_behind_it.own, y)

            with pytest.raises((tw.KernelError, TypeError)) as raised:
                tw.jit(kernel).program()
            assert "body" in str(raised.value), raised.value


def test_what_bodies_change_and_read_themselves():
    names = {}

    def named(k):
        # It remembers constants.
        return names.setdefault(k, tw.Layout((32, 1), (1, 0)))

    @tw.jit(x=tw.Input("f32", "(32,4):(1,32)"), y=tw.Output("f32", "(32,1):(1,32)"), threads=32)
    def kernel(x, y):
        sums = [part(y).fragment()]
        sums[0].clear()
        state = State(2.0)
        for k in tw.range(4):
            terms = []
            for i in range(2):
                terms.append(x[None, k].compose(named(i))[tw.thread, None].load() * float(i))
            own = State(terms[1])
            own.value = own.value * state.value
            sums[0] += own.value
        done = []
        for k in tw.range(4):
            done = [part(x, k).load(predicated=True)]
            sums[0] += done[0]
        part(y).store(sums[0])

    x, y = np.arange(128, dtype=np.float32).reshape(4, 32).T, np.zeros((1, 32), np.float32).T
    kernel(x, y)
    assert np.array_equal(y[:, 0], 3 * x.sum(1))


def test_an_object_that_a_loop_of_a_tile_program_changes():
    def program(x: tw.Input("f32", "64:1"), y: tw.Output("f32", "32:1")):
        last = [tile.full((32,), 0.0)]
        for k in tile.range(2):
            last[0] = last[0] + x.load((32,), (k,))
        y.store((0,), last[0])

    with pytest.raises(tw.KernelError, match="changes the elements of `last`") as raised:
        tw.tile(grid="1")(program).program()
    assert "tw.tile.carry" in raised.value.help


def test_names_that_bodies_bind_and_read_themselves():
    @tw.jit(x=tw.Input("f32", "(32,4):(1,32)"), y=tw.Output("f32", "(32,1):(1,32)"), threads=32)
    def kernel(x, y):
        sums = part(y).fragment()
        sums.clear()
        own, scale = 3, 1.0
        for _ in range(2):
            for k in tw.range(4):
                own = part(x, k).load()
                for i in range(2):
                    term = own * float(i) + [0.5 for i in range(3)][i]
                    sums += term
                scale = 1.0
        for k in tw.range(4):
            own = part(x, k).load().map(lambda v: v * 2.0 + tw.number(k).to("f32"))
            with tw.when(tw.thread() < 16):
                term = own * scale
                sums += term
            with tw.otherwise():
                term = own * 2.0
                sums += term
        part(y).store(sums)

    x, y = np.arange(128, dtype=np.float32).reshape(4, 32).T, np.zeros((1, 32), np.float32).T
    kernel(x, y)
    twice = 2 * (x + 1.0).sum(1)
    scaled = (2 * x + np.arange(4)).sum(1) * np.where(np.arange(32) < 16, 1, 2)
    assert np.array_equal(y[:, 0], twice + scaled)


def test_a_loop_is_right_behind_for():
    def over(make):
        def kernel(x: tw.Input("f32", "(32,K):(1,32)"), y: tw.Output("f32", "(32,1):(1,32)")):
            tw.threads(32)
            make()

        return tw.jit(kernel).program

    def program(make):
        def program(x: tw.Input("f32", "8:1"), y: tw.Output("f32", "8:1")):
            make()

        return tw.tile(program).program

    for write, turns in ((over, tw.range), (program, tile.range)):
        for make in (lambda: list(turns(3)), lambda: [*zip(turns(3), [1])], lambda: [*enumerate(turns(3))], lambda: sum(map(id, turns(3)))):
            with pytest.raises(TypeError, match="right behind `for`"):
                write(make)()


def test_a_name_of_a_tile_program_that_a_loop_binds_anew():
    @tw.tile(grid="1")
    def program(x: tw.Input("f32", "64:1"), y: tw.Output("f32", "32:1")):
        total = tile.full((32,), 0.0)
        for k in tile.range(2):
            total = total + x.load((32,), (k,))
        y.store((0,), total)

    with pytest.raises(tw.KernelError, match="binds `total` to something else") as raised:
        program.program()
    assert "tw.tile.carry" in raised.value.help
