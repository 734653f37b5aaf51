# mypy: ignore-errors
"""Answers about more than was asked: a warning at the line that asked, or, within `strict()`, a refusal."""

from __future__ import annotations

import asyncio
import threading
import warnings

import pytest

import tilewright as tw

MATRIX = tw.Layout((4, 8), (8, 1))

#: Calls that are answered with a note, and what the note says.
NOTED = {
    "a coordinate": (lambda: MATRIX(9, 9), r"\(9,9\) is outside the shape \(4,8\)"),
    "an index": (lambda: MATRIX(32), "outside"),
    "crd2idx": (lambda: tw.crd2idx((4, 0), MATRIX), "outside"),
    "a tile": (lambda: tw.local_tile("(10,64):(64,1)", (16, 32), "(7,_)"), "outside|past|beyond"),
    "tile_to_shape": (lambda: tw.tile_to_shape(tw.Layout((8, 8)), (4, 64), (0, 1)), "8"),
    "a product by mode": (lambda: tw.logical_product(tw.Layout((4, 4)), "[(2,2):(1,2)]"), None),
    "text": (lambda: tw.evaluate("crd2idx((9,9), (4,8):(8,1))"), "outside"),
}

#: Calls that are answered as they are.
PLAIN = [lambda: MATRIX(3, 7), lambda: MATRIX(31), lambda: tw.local_tile("(32,64):(64,1)", (16, 32), "(1,_)"), lambda: tw.size(MATRIX)]


@pytest.mark.parametrize("what", [what for what in NOTED if what != "a product by mode"])
def test_a_note_is_a_warning_or_a_refusal(what):
    ask, told = NOTED[what]
    with pytest.warns(tw.OutsideDomain, match=told) as found:
        answer = ask()
    assert found[0].filename == __file__, "the line that asked"
    with tw.strict():
        with pytest.raises(tw.LayoutError, match=told) as raised:
            ask()
    assert raised.value.code == "E0217" and "strict()" in raised.value.help and raised.value.message
    assert tw.explain(raised.value).startswith("# E0217")
    # Behind it the answer is the same as before.
    with pytest.warns(tw.OutsideDomain):
        assert ask() == answer


def test_what_has_no_note_is_answered():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = [ask() for ask in PLAIN]
        with tw.strict():
            assert [ask() for ask in PLAIN] == before


def is_strict():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            MATRIX(9, 9)
        except tw.LayoutError:
            return True
        return False


def test_it_ends_with_its_block():
    assert not is_strict()
    with tw.strict():
        with tw.strict():
            assert is_strict()
        assert is_strict()
    assert not is_strict()
    with pytest.raises(ZeroDivisionError):
        with tw.strict():
            1 / 0
    assert not is_strict()

    @tw.strict()
    def decorated():
        return is_strict()

    assert decorated() and decorated() and not is_strict()


def test_it_is_of_one_thread_and_of_one_task():
    found = {}
    with tw.strict():
        thread = threading.Thread(target=lambda: found.update(thread=is_strict()))
        thread.start()
        thread.join()
    assert found == {"thread": False}

    async def one(strictly):
        if not strictly:
            await asyncio.sleep(0)
            return is_strict()
        with tw.strict():
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return is_strict()

    async def both():
        return await asyncio.gather(one(True), one(False))

    assert asyncio.run(both()) == [True, False]
