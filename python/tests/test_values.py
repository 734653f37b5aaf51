"""Values: made, printed, compared, indexed, applied, and refused where they are none."""

from __future__ import annotations

import builtins
import copy
import itertools
import pickle
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from plain import at, coordinates, like, random_shape, size, value

EACH = [
    tw.Layout((4, 8), (8, 1)),
    tw.Layout(4),
    tw.Layout((4,)),
    tw.Layout("(4,8):(1@0,1@1)"),
    tw.Layout("(8,8):(^1,^9)"),
    tw.Layout("S<3,0,3> o 0 o (8,8):(8,1)"),
    tw.Layout("(M{div=8},K):(K,1)"),
    tw.Tiler("[2:1;_]"),
    tw.Swizzle(3, 4, 3),
    tw.BitMatrix(2, (2, 3)),
    tw.LinearLayout("lane=[(1,0),(2,0)] -> row:4 column:2"),
    tw.Morphism((4, 5), (4, 16, 5), (1, 3)),
    tw.Morphism((4, 5), (4, 16), (1, None)),
    tw.Param("M", div=8, min=16),
    tw.E(1, 0),
    2 * tw.E(0) + tw.E(1),
    tw.Xor(9),
]


@pytest.mark.parametrize("made", EACH, ids=str)
def test_round_trips(made: tw.Value) -> None:
    assert eval(repr(made), vars(tw)) == made
    assert type(made)(str(made)) == made  # type: ignore[call-arg]
    assert pickle.loads(pickle.dumps(made)) == made
    assert copy.copy(made) is made and copy.deepcopy(made) is made
    assert hash(pickle.loads(pickle.dumps(made))) == hash(made)
    assert made != "text" and made != None and not made == 1  # noqa: E711
    assert sum(made == other for other in EACH) == 1
    with pytest.raises((AttributeError, TypeError)):
        made.shape = 1  # type: ignore[attr-defined]


def test_layouts_at_every_index() -> None:
    source = random.Random(3)
    for _ in range(300):
        shape = random_shape(source, depth=3)
        stride = like(shape, lambda: source.randint(-4, 9))
        layout = tw.Layout(shape, stride)
        assert layout.shape == shape and layout.stride == stride
        assert layout.size() == size(shape) == tw.size(shape)
        assert len(layout) == (1 if isinstance(shape, int) else len(shape)) == layout.rank()
        for index, coordinate in enumerate(coordinates(shape)):
            wanted = value(shape, stride, index)
            assert layout(index) == layout(coordinate) == at(stride, coordinate) == wanted
            if isinstance(coordinate, tuple) and len(coordinate) > 1:
                assert layout(*coordinate) == wanted
        if not isinstance(shape, int):
            for mode, extent, step in zip(layout, shape, stride):
                assert mode == tw.Layout(extent, step)
            assert layout[-1] == layout[len(shape) - 1] and layout[0:1] == tw.Layout(shape[:1], stride[:1])
            assert layout[::-1] == tw.Layout(shape[::-1], stride[::-1])


def test_default_strides() -> None:
    assert tw.Layout((4, 8)) == tw.make_layout((4, 8)) == tw.Layout((4, 8), (1, 4))
    assert tw.Layout(8) == tw.Layout(8, 1) and tw.Layout((8,)) == tw.Layout((8,), (1,)) and tw.Layout(8) != tw.Layout((8,))


def test_composition_operator() -> None:
    a, b = tw.Layout((6, 2), (8, 2)), tw.Layout((4, 3), (3, 1))
    assert a @ b == tw.composition(a, b) == a.composition(b) == tw.compose(a, b)
    assert tw.Swizzle(3, 0, 3) @ tw.Layout((8, 8), (8, 1)) == tw.Layout("S<3,0,3> o 0 o (8,8):(8,1)")
    assert (4, 8) @ tw.Layout(4, 4) == tw.Layout(4, 4)


def test_maps() -> None:
    swizzle = tw.Swizzle(2, 1, 3)
    assert (swizzle.bits, swizzle.base, swizzle.shift) == (2, 1, 3)
    assert all(swizzle(i) == i ^ (((i >> 4) & 3) << 1) for i in range(256))
    matrix = tw.BitMatrix(3, (4, 1, 2))
    assert (matrix.inputs, matrix.outputs, matrix.columns) == (3, 3, (4, 1, 2))
    assert [matrix(1 << bit) for bit in range(3)] == [4, 1, 2]
    linear = tw.LinearLayout("register=[(0,1)] lane=[(1,0),(2,0)] -> row:4 column:2")
    assert linear.inputs == {"register": 2, "lane": 4} and linear.outputs == {"row": 4, "column": 2}
    assert linear(1, 3) == (3, 1)
    morphism = tw.Morphism("(4,5) -> (4,16,5) : (1,3)")
    assert morphism.domain == (4, 5) and morphism.layout == tw.Layout((4, 5), (1, 64)) and morphism(1, 1) == 65


def test_numbers_known_at_launch() -> None:
    m, k = tw.Param("M", div=128), tw.Param("K")
    tiled = tw.zipped_divide(tw.Layout((m, k), (k, 1)), (128, 64))
    assert str(tiled) == "((128,64),(M{div=128}/128,ceil(K/64))):((K,1),(128*K,64))"
    assert tiled.substitute(M=256, K=128) == tw.zipped_divide(tw.Layout((256, 128), (128, 1)), (128, 64))
    assert {str(number) for number in tiled.parameters} == {"M{div=128}", "K"}
    for known_m, known_k in [(128, 1), (512, 7)]:
        for formula in [m + k, m - k, 2 * m, m * k, m // 3, k % 4, -k, 5 - k, k + 1]:
            made = formula.substitute(**{n: v for n, v in [("M", known_m), ("K", known_k)] if n in str(formula)})
            wanted = eval(str_of(formula, m, k), {"M": known_m, "K": known_k})
            assert made == wanted, formula
    with pytest.raises(ValueError, match="no number named 'N'"):
        tiled.substitute(N=1)
    with pytest.raises(tw.LayoutError):
        tiled.substitute(M=100)


def str_of(formula: tw.Expr, m: tw.Expr, k: tw.Expr) -> str:
    """The formula in Python, by what it equals."""
    by = {
        m + k: "M+K", m - k: "M-K", 2 * m: "2*M", m * k: "M*K", m // 3: "M//3", k % 4: "K%4", -k: "-K", 5 - k: "5-K",
        k + 1: "K+1",
    }  # fmt: skip
    return by[formula]


def test_steps() -> None:
    identity = tw.make_identity_layout((4, (2, 3)))
    assert identity.stride == (tw.E(0), (tw.E(1, 0), tw.E(1, 1)))
    assert tw.Layout((2, 2), (2 * tw.E(0), tw.E(0) * 3 + tw.E(1)))(1, 1) == (5, 1)
    assert tw.Layout((4, 4), (tw.Xor(1), tw.Xor(5)))(3, 3) == 12


def test_text_is_a_program() -> None:
    assert tw.evaluate("A o (4,3):(3,1)", A=tw.Layout((6, 2), (8, 2))) == tw.Layout("((2,2),3):((24,2),8)")
    assert tw.size("A = (4,8); A") == 32
    with pytest.raises(TypeError):
        tw.Layout("1 + 1 == 2") if False else tw.Tiler("(4,8):(8,1)")


@pytest.mark.parametrize("wrong", [True, 1.5, object(), b"4", {4}, float("nan"), 4 + 0j, lambda: 4], ids=repr)
def test_what_is_no_value(wrong: Any) -> None:
    for call in (tw.Layout, tw.size, lambda x: tw.Layout(4, x), tw.Layout(4), lambda x: tw.coalesce(4, x)):
        with pytest.raises(TypeError):
            call(wrong)


def test_nesting_without_end() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(tw.LayoutError) as refused:
        tw.Layout(endless)
    assert refused.value.code == "E0104"
    with pytest.raises(tw.LayoutError) as refused:
        tw.Layout(2**63)
    assert refused.value.code == "E0103"
    with pytest.raises(tw.LayoutError):
        tw.Layout((1 << 40, 1 << 40))


class Seven:
    def __index__(self) -> int:
        return 7


def test_integers_of_others() -> None:
    assert tw.Layout(Seven()) == tw.Layout(7) and tw.Layout((Seven(), 2))((Seven(), 1)) == 14


def test_names_of_others() -> None:
    """Every public name of three packages is a name here, or an error that says what to write, of which the first name is one."""
    for name in (Path(__file__).parent / "names.txt").read_text().split():
        if hasattr(tw, name):
            continue
        with pytest.raises(AttributeError, match="; write ") as error:
            getattr(tw, name)
        told = str(error.value).partition("; write ")[2]
        first = re.match(r"not |\[|", told)
        assert first is not None
        word = re.split(r"\W", told[first.end() :], maxsplit=1)[0]
        here = hasattr(tw, word) or hasattr(builtins, word)
        assert here or word in ("pycute", "functools", "itertools", "nothing", "n", "x", "layout"), (name, told)
    for theirs, told in {"make_swizzle": "Swizzle", "cosize_v": "cosize", "complment": "'complement'"}.items():
        with pytest.raises(AttributeError, match=told):
            getattr(tw, theirs)
    assert tw.make_composed_layout(tw.Swizzle(3, 0, 3), 0, "(8,8):(8,1)") == tw.Layout("S<3,0,3> o 0 o (8,8):(8,1)")


def test_import_takes_nothing_but_the_standard_library() -> None:
    # What is imported costs time at each start. Arrays, frameworks and notebooks come when they are used.
    program = (
        "import sys; before = set(sys.modules); import tilewright as tw; assert tw.Layout((4, 8))(3) == 3;"
        "names = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(*sorted(names - set(sys.stdlib_module_names) - {'tilewright'}))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    # One module of the standard library has the name of the platform in its own.
    assert [name for name in ran.stdout.split() if not name.startswith("_sysconfigdata")] == []


def test_integers_one_by_one_are_those_of_a_coordinate() -> None:
    for text in ["(4,8):(8,1)", "(4,8,2):(-8,1,40)", "((2,2),8):((1,40),2)", "((),(2,3)):((),(1,2))", "(4,8):(1@0,1@1)",
                 "(4,8):(4611686018427387904,1)"]:  # fmt: skip
        layout = tw.Layout(text)
        for indices in itertools.product([-1, 0, 1, 3, 9], repeat=len(layout)):
            try:
                # Written out: the language evaluates it by other code.
                wanted = tw.evaluate(f"({text})({','.join(map(str, indices))})")
            except ValueError as refused:
                with pytest.raises(type(refused)):
                    layout(*indices)
            else:
                assert layout(*indices) == wanted, (text, indices)


@pytest.mark.filterwarnings("ignore::tilewright.OutsideDomain")
def test_nested_coordinates_are_those_of_the_language() -> None:
    source = random.Random(31)

    def coordinate(shape: Any) -> Any:
        if isinstance(shape, tuple) and source.random() < 0.8:
            return tuple(coordinate(mode) for mode in shape)
        return source.randrange(-1, 2 * tw.size(shape))

    texts = ["((4,8),(2,64)):((1,256),(2048,4))", "((2,(3,4)),5):((60,(20,5)),1)", "(7):(3)", "((4)):((2))", "12:5", "((2,1),(1,3)):((1,0),(0,2))"]
    for text in texts * 200:
        layout = tw.Layout(text)
        at = coordinate(layout.shape)
        if source.random() < 0.1:
            at = (at, 0)
        # Text has a blank for Python's comma behind a single mode.
        written = str(at).replace(",)", ")")
        try:
            wanted = tw.evaluate(f"({text})({written})")
        except ValueError as refused:
            with pytest.raises(type(refused)):
                layout(at)
        else:
            assert layout(at) == wanted, (text, at)
            if isinstance(at, tuple) and len(at) > 1:
                assert layout(*at) == wanted


def test_no_path_of_the_machine() -> None:
    from tilewright import _native

    library = Path(_native.__file__).read_bytes()
    for path in (Path(__file__).resolve().parents[2], Path.home()):
        assert len(str(path)) < 2 or str(path).encode() + b"/" not in library, path
