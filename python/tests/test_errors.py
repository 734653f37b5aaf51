"""Refusals: the code, the sentence, the help, the witness, and where in which call."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tilewright as tw


def refused(call: object) -> tw.LayoutError:
    with pytest.raises(tw.LayoutError) as raised:
        call()  # type: ignore[operator]
    return raised.value


def test_a_refusal_says_where() -> None:
    error = refused(lambda: tw.Layout((6, 2), (1, 7)) @ tw.Layout((3, 2), (2, 3)))
    assert isinstance(error, ValueError)
    assert (error.code, error.witness) == ("E0107", (2, 1))
    assert error.source == "composition((6,2):(1,7), (3,2):(2,3))"
    assert error.span is not None and error.source[slice(*error.span)] == "2"
    assert error.help is not None and "split B's shape" in error.help
    shown = str(error).splitlines()
    assert shown[0].startswith("error[E0107]: composition: mode 0 of B, 3:2, walks past mode 0 of A")
    column = shown[3].index(error.source) + error.span[0]
    assert shown[4][column] == "^" and "error: " not in error.message


def test_a_refusal_shows_the_names_of_arguments() -> None:
    error = refused(lambda: tw.make_ordered_layout((4, 8), order=(0, 0)))
    assert error.source == "make_ordered_layout((4,8), order=(0,0))" and error.code == "E0120"


def test_spans_count_characters() -> None:
    error = refused(lambda: tw.evaluate("é = 4:1; size(é"))
    assert error.source is not None and error.span is not None
    assert error.span[1] <= len(error.source)


def test_constructors_refuse_at_the_number() -> None:
    error = refused(lambda: tw.Layout((4, 0)))
    assert error.code == "E0102"
    error = refused(lambda: tw.Layout((4, 8), (1,)))
    assert error.code == "E0101" and error.source == "(4,8):(1)"
    error = refused(lambda: tw.Layout((4, 8), (8, 1))(1, 2, 3))
    assert error.code == "E0118" and error.source == "((4,8):(8,1))(1, 2, 3)"
    error = refused(lambda: tw.Layout((4, 8))[5])
    assert error.code == "E0105"


def test_refusals_pickle() -> None:
    error = refused(lambda: tw.complement("(4,6):(1,6)", 72))
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and vars(again) == vars(error) and type(again) is tw.LayoutError


def test_every_code_has_a_page() -> None:
    error = refused(lambda: tw.complement("(4,6):(1,6)", 72))
    assert tw.explain(error).startswith(f"# {error.code}") and tw.explain(error.code.lower()) == tw.explain(error)
    with pytest.raises(LookupError):
        tw.explain("E9999")


def test_a_long_call_is_refused_shortly() -> None:
    layout = tw.Layout(tuple([6, 2] + [1] * 20000), tuple([1, 7] + [0] * 20000))
    error = refused(lambda: tw.composition(layout, tw.Layout((3, 2), (2, 3))))
    assert error.code == "E0107"
    assert len(str(error)) < 4000
