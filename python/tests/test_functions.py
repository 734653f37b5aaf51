"""Functions of the table: as functions, with names, with texts and as methods they give what the language gives."""

from __future__ import annotations

import inspect
import pickle
import random

import pytest

import tilewright as tw
from plain import at, coordinates, leaves, like, random_shape, size, value

FUNCTIONS = {function.__name__: function for function in tw.functions()}


def arguments(example: str) -> list[str]:
    """The texts of the arguments of a call: split at commas outside of brackets."""
    inner = example[example.index("(") + 1 : -1]
    texts, depth = [""], 0
    for at_, character in enumerate(inner):
        # `->` is no bracket.
        if character in "([{<" or (character == ">" and inner[at_ - 1] != "-") or character in ")]}":
            depth += 1 if character in "([{<" else -1
        if character == "," and depth == 0:
            texts.append("")
        else:
            texts[-1] += character
    return [text.strip() for text in texts]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples(name: str) -> None:
    function = FUNCTIONS[name]
    expected = tw.evaluate(function.example)
    texts = arguments(function.example)
    values = [tw.evaluate(text) for text in texts]
    called = tw.make_layout if name == "make_layout" else function
    assert called(*values) == expected
    assert called(*texts) == expected
    names = next((way for way in function.ways if len(way) == len(values)), None)
    if names is not None and function.arity[1] is not None:
        assert function(**dict(zip(names, values))) == expected
        assert function(values[0], **dict(zip(names[1:], values[1:]))) == expected
    for kind in function.classes:
        if type(values[0]).__name__ == kind and name not in {"shape", "stride", "domain", "codomain", "substitute"}:
            assert getattr(values[0], name)(*values[1:]) == expected
    assert function.example in (function.__doc__ or "")


def test_every_function_is_a_name_of_the_module() -> None:
    for name in FUNCTIONS:
        assert callable(getattr(tw, name)), name
    assert len(FUNCTIONS) > 150


def test_signatures() -> None:
    assert str(inspect.signature(tw.complement)) == "(A, target=None)"
    assert str(inspect.signature(tw.Layout((4, 8)).complement)) == "(target=None)"
    assert str(inspect.signature(tw.crd2crd)) == "(c, from_, to)"
    assert tw.crd2crd((1, 2), from_=(2, 3), to=(3, 2)) == (2, 1)


def test_keywords() -> None:
    layout = tw.Layout((4, (2, 3)))
    assert tw.size(layout, mode=[1]) == tw.size(layout, mode=1) == tw.size(layout, 1) == layout.size(1) == 6
    assert tw.size(layout, mode=[1, 0]) == 2
    assert tw.make_ordered_layout((4, 64), order=(1, 0)) == tw.Layout((4, 64), (64, 1))
    assert tw.recast_layout(new_bits=16, old_bits=32, layout="(4,8):(1,4)") == tw.Layout((8, 8), (1, 8))
    assert tw.make_layout((4, 8), stride=(8, 1)) == tw.Layout((4, 8), (8, 1))
    with pytest.raises(tw.LayoutError) as refused:
        tw.size(layout, modus=1)
    assert refused.value.code == "E0207"


def test_none() -> None:
    layout = tw.Layout((4, 8), (8, 1))
    assert tw.complement("4:2", None) == tw.complement("4:2")
    assert tw.slice(layout, (None, 3)) == layout(None, 3) == tw.Layout((4,), (8,))
    assert tw.composition(layout, (2, None)) == tw.evaluate("composition((4,8):(8,1), (2,_))")
    assert tw.composition(layout, None) == tw.evaluate("composition((4,8):(8,1), _)")


def test_pickle() -> None:
    assert pickle.loads(pickle.dumps(tw.coalesce))("(2,2):(1,2)") == tw.Layout(4, 1)


def test_compositions_at_every_index() -> None:
    source = random.Random(1)
    composed = witnesses = 0
    for _ in range(600):
        a_shape, b_shape = random_shape(source), random_shape(source)
        a_stride = like(a_shape, lambda: source.randint(0, 12))
        b_stride = like(b_shape, lambda: source.randint(0, 6))
        a, b = tw.Layout(a_shape, a_stride), tw.Layout(b_shape, b_stride)
        wanted = [value(a_shape, a_stride, at(b_stride, c)) for c in coordinates(b_shape)]
        try:
            made = a @ b
        except tw.LayoutError as refused:
            if refused.code == "E0107":
                # The value that no layout has, where B has it at the witness.
                assert refused.witness is not None
                inner = at(b_stride, refused.witness)
                assert b(refused.witness) == inner
                assert f" = {value(a_shape, a_stride, inner)}, but" in refused.message
                witnesses += 1
            continue
        composed += 1
        assert [made(i) for i in range(size(b_shape))] == wanted, (a, b)
        assert list(made.offsets()) == wanted
    assert composed > 200 and witnesses > 20


def test_divisions_lose_nothing() -> None:
    source = random.Random(2)
    for _ in range(200):
        m, n = source.randint(1, 4), source.randint(1, 4)
        p, q = source.randint(1, 4), source.randint(1, 4)
        layout = tw.Layout((m * p, n * q), (n * q, 1))
        tiles = tw.zipped_divide(layout, (m, n))
        assert tw.size(tiles, mode=[0]) == m * n
        assert sorted(tiles.offsets()) == list(range(m * n * p * q))
        for i in range(m):
            for j in range(n):
                assert tiles((i, j), (0, 0)) == i * n * q + j
