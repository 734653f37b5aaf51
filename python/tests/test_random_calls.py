"""Random calls of the whole package with random arguments: what comes back is a value, or a documented exception."""

from __future__ import annotations

import operator
import random
from typing import Any

import numpy as np
import pytest
from by_day import CALLS

import tilewright as tw

TEXTS = ["(4,8):(8,1)", "", "_", "(", "M{div=8}", "S<3,0,3>", "1@0", "^9", "[2:1;_]", "é", "A = 4; A", "4:1:1", "SM80_16x8x16_F32F16F16F32_TN", "rows:8"]


def random_argument(source: random.Random, depth: int = 3) -> Any:
    pick = source.randrange(20)
    if pick < 5:
        return source.choice([1, 2, 3, 4, 8])
    if pick == 5:
        return source.choice([0, 1, 2, 3, 4, 6, 8, 16, 64, -1, -8, 2**31, 2**62, 2**63, -(2**63), 2**70])
    if pick < 10 and depth:
        return tuple(random_argument(source, depth - 1) for _ in range(source.randrange(4)))
    if pick == 10 and depth:
        return [random_argument(source, depth - 1) for _ in range(source.randrange(4))]
    if pick < 15:
        return source.choice(LAYOUTS)
    if pick == 15:
        return source.choice(OTHERS)
    if pick == 16:
        return source.choice(TEXTS)
    if pick == 17:
        return source.choice([*TENSORS, NUMBERS, NUMBERS.T[1:], "float16", "bf16"])
    return source.choice([None, True, 1.5, b"4", {}, object()])


LAYOUTS = [
    tw.Layout(text)
    for text in ["(4,8):(8,1)", "4:2", "((2,2),3):((24,2),8)", "(4,8):(1@0,1@1)", "(8,8):(^1,^9)", "S<2,0,2> o 0 o (4,8):(8,1)", "(M{div=8},K):(K,1)", "(3,5):(-1,0)", "8:0", "(2,3,1):(6,2,9)"]
]
MESH = tw.mesh.Mesh("dp=2,tp=2")
ROWS, COLUMNS = (MESH.of_placements((8, 4), placements) for placements in ("[Shard(0), Replicate()]", "[Replicate(), Shard(1)]"))
WIDE, SQUARE = MESH.of_placements((4, 8), "[Shard(1), Shard(0)]"), MESH.of_placements((4, 4), "[Replicate(), Replicate()]")
OTHERS = [
    MESH, ROWS, COLUMNS, ROWS.reshard(COLUMNS, 4), WIDE.multiply(ROWS, SQUARE, 2),
    tw.Tiler("[2:1;_]"), tw.Swizzle(2, 1, 3), tw.BitMatrix(2, (2, 3)), tw.Morphism("(4,5) -> (4,16,5) : (1,3)"), tw.Param("M", div=8),
    tw.E(0), tw.Xor(9), tw.LinearLayout("register=[(0,1)] lane=[(1,0),(2,0)] -> row:4 column:2"),
]  # fmt: skip


NUMBERS = np.arange(32, dtype="float32").reshape(4, 8)
READ = np.arange(32, dtype="int16")
READ.setflags(write=False)
TENSORS = [
    tw.Tensor(NUMBERS), tw.Tensor(NUMBERS.T[::2]), tw.Tensor(READ, "(4,8):(8,1)"), tw.zeros("S<2,0,2> o 0 o (4,8):(8,1)", "bfloat16"),
    tw.zeros((8, 4), "int8"), tw.zeros((), "complex64"), tw.Tensor(READ, "(3,5):(2,2)"), tw.zeros((4, 8), "float8_e4m3fn"),
]  # fmt: skip


OPERATORS: list[Any] = [
    lambda a, b: a @ b,
    lambda a, b: b @ a,
    lambda a, b: b + a,
    lambda a, b: b * a,
    lambda a, b: b // a,
    lambda a, b: b[a],
    lambda a, b: a == b,
    lambda a, b: operator.setitem(b, a, 1),
    lambda a, b: operator.setitem(b, None, a),
]


def test_random_calls() -> None:
    source = random.Random(11)
    plain = [tw.Layout, tw.Tiler, tw.Swizzle, tw.BitMatrix, tw.LinearLayout, tw.Morphism, tw.Expr, tw.Step, tw.Xor, tw.evaluate, tw.explain, tw.check,
             tw.banks, tw.access, tw.suggest, tw.footprint, tw.make_composed_layout, tw.Param, tw.E, tw.make_layout,
             tw.Tensor, tw.zeros, tw.copy, tw.gemm, tw.tensor_composition, tw.transform,
             tw.derive, tw.mesh.Mesh, tw.mesh.Mesh.row_major]  # fmt: skip
    functions: list[Any] = [*tw.functions(), *plain]
    answered = refused = 0
    for _ in range(CALLS):
        function = source.choice(functions)
        arguments = [random_argument(source) for _ in range(source.choice([0, 1, 1, 2, 2, 2, 3, 4]))]
        names: dict[str, Any] = {}
        if isinstance(function, tw.Function) and source.random() < 0.2:
            names = {source.choice([*source.choice(function.ways), "modus"]): random_argument(source)}
        attribute = None
        if source.random() < 0.2 and arguments:
            function = source.choice([*LAYOUTS, *OTHERS, *TENSORS])
            if source.random() < 0.7:
                attribute = source.choice([name for name in dir(function) if not name.startswith("_")])
        if source.random() < 0.05:
            arguments, names, attribute = [random_argument(source), source.choice([*LAYOUTS, *OTHERS, *TENSORS])], {}, None
            function = source.choice(OPERATORS)
        try:
            found = getattr(function, attribute) if attribute else function
            value = found(*arguments, **names) if callable(found) else found
        except (tw.LayoutError, TypeError, ValueError, LookupError, OverflowError, BufferError) as error:
            refused += 1
            assert str(error)
            continue
        answered += 1
        repr(value)
        if isinstance(value, tw.Tensor) and value.device == "cpu":
            assert value.size() > 1 << 20 or value[value.size() - 1] is not None
        assert value is NotImplemented or str(value) is not None
    assert answered > CALLS / 20 and refused > CALLS / 20


def test_random_pictures() -> None:
    source = random.Random(12)
    for _ in range(300):
        what = [random_argument(source) for _ in range(source.randrange(3))]
        options: dict[str, Any] = {name: source.choice(["auto", "copy", "mma", "memory", "thread-value", "offsets", 3, None, "heat"]) for name in source.sample(["kind", "tile", "title", "theme", "shade", "width"], 2)}
        try:
            tw.draw(*what, **options).text()
        except (tw.LayoutError, TypeError, ValueError, OverflowError):
            pass


LONG = range(2**50)
#: Not checked by types, as the calls are wrong.
FREE: Any = tw
GRID: Any = MESH
BY_ROWS: Any = ROWS
HERE = {"on": "interpreter"}
#: Wrong calls, what they raise, and words of it: what was given, or what would do.
WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: FREE.E("0"), TypeError, r"numbers of modes, E\(0\)"),
    (lambda: FREE.E(1.5), TypeError, "not 1.5"),
    (lambda: FREE.gpu.reduce(NUMBERS, axis="rows", **HERE), TypeError, "axis is a number"),
    (lambda: FREE.gpu.reduce(NUMBERS, axis=2, **HERE), ValueError, "the axes 0 to 1, not 2"),
    (lambda: FREE.gpu.reduce(np.array(1.0), **HERE), ValueError, "x has no axes"),
    (lambda: FREE.gpu.gemm(NUMBERS, NUMBERS, keep=3, **HERE), TypeError, "keep is a text"),
    (lambda: FREE.gpu.plan("softmax"), TypeError, r"plan\(softmax, x\)"),
    (lambda: FREE.mesh.reduce(NUMBERS, ROWS, "0", ROWS), TypeError, "the modes are a number, or a tuple"),
    (lambda: FREE.mesh.map(np.add, NUMBERS, ROWS, ROWS), TypeError, "two lists"),
    (lambda: FREE.mesh.map("add", [NUMBERS], [ROWS], ROWS), TypeError, "a function of arrays"),
    # As many elements as no memory holds are refused, and do not end the process.
    (lambda: GRID.rank(LONG), MemoryError, "1125899906842624 elements"),
    (lambda: GRID.of_placements(LONG, "[Shard(0)]"), MemoryError, "elements of a sequence"),
    (lambda: BY_ROWS.reduce(LONG, COLUMNS, 4), MemoryError, "elements of a sequence"),
    (lambda: BY_ROWS.reshard(COLUMNS, 4).simulate([LONG] * 4), MemoryError, "elements of a sequence"),
    (lambda: FREE.BitMatrix(2, LONG), MemoryError, "elements of a sequence"),
]


@pytest.mark.parametrize("call, error, words", WRONG)
def test_wrong_calls_say_what_is_wrong(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_lists_are_sequences_of_any_kind() -> None:
    memory = [[1.0, 2.0, 3.0, 4.0] * 4] * 4
    plan = BY_ROWS.reshard(ROWS, 8)
    assert plan.simulate(memory) == plan.simulate(np.array(memory)) == plan.simulate(tuple(map(tuple, memory)))
    assert GRID.rank((1, 1)) == GRID.rank(np.array([1, 1])) == 3
