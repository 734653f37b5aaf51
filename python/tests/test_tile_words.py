# mypy: ignore-errors
"""The words of `bench/tile_words.py`, on the interpreter of kernels beside PyTorch."""

from __future__ import annotations

import importlib.util
import pathlib

import pytest

pytest.importorskip("torch")

PATH = pathlib.Path(__file__).resolve().parent.parent / "bench" / "tile_words.py"
_spec = importlib.util.spec_from_file_location("tile_words", PATH)
words = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(words)


@pytest.mark.parametrize("word", words.WORDS, ids=lambda word: word.__name__)
def test_word(word):
    word("cpu")
