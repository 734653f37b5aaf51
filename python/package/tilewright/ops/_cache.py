"""New rows of a cache of keys and values."""

from __future__ import annotations

import math
from typing import Any

from .. import _definitions as definitions
from .. import _native
from .._definitions import is_jax
from .._operators import Result, again, alignment, launch, machine_of, planned
from ._attention import _taken
from ._common import by_definition, check_arrays, check_type, contiguous, records, through_torch
from ._losses import as_i32


def append_to_cache(
    k: Any, v: Any, k_cache: Any, v_cache: Any, lengths: Any, *, pages: Any = None, on: str | None = None
) -> tuple[Any, Any]:
    """Writes the keys and values of new rows into a cache, which ``attention_decode`` reads, and returns
    both caches.

    ``k`` is (B,G,N,D): N new rows of each sequence. The cache is contiguous, ``k_cache`` (B,G,T,D), or
    paged, with ``pages``, (B,L) of integers: ``k_cache`` is then (P,R,G,D), and row ``t`` of a sequence is
    row ``t % R`` of the page ``pages[b, t // R]``. ``lengths``, (B), has the rows of each sequence with the
    new ones, so new row ``i`` becomes row ``lengths[b] - N + i``. A row that the cache has no room for, or
    whose page is negative, is not written.

    The caches are changed. Those of JAX are not: the results are new arrays.

    >>> import numpy as np
    >>> k, cache = np.ones((1, 1, 1, 16), "f2"), np.zeros((1, 1, 3, 16), "f2")
    >>> append_to_cache(k, k, cache, cache.copy(), np.array([2]))[0][0, 0, :, 0].tolist()
    [0.0, 1.0, 0.0]
    """
    check_arrays("pages", k=k, v=v, k_cache=k_cache, v_cache=v_cache, lengths=lengths, pages=pages)
    _check(k, v, k_cache, v_cache, lengths, pages)
    if is_jax(k_cache):
        if on is not None:
            raise TypeError("arrays of JAX run where JAX has them: leave `on` out")
        _check_types(k, v, k_cache, v_cache)
        by_definition("definition", k, v, k_cache, v_cache, integers=(lengths, pages))
        return _functional(k, v, k_cache, v_cache, lengths, pages)
    if records(k, v, k_cache, v_cache, lengths, on=on):
        through_torch("append_to_cache", k, v, k_cache, v_cache, lengths, pages)
    else:
        append(k, v, k_cache, v_cache, lengths, pages, on)
    return k_cache, v_cache


def append(k: Any, v: Any, k_cache: Any, v_cache: Any, lengths: Any, pages: Any, on: str | None) -> tuple[Any, Any]:
    """``append_to_cache``, launched."""
    if by_definition(on, k, v, k_cache, v_cache, integers=(lengths, pages)):
        _check_types(k, v, k_cache, v_cache)
        place = _places(k, k_cache, lengths, pages)
        for new, cache in ((k, k_cache), (v, v_cache)):
            _write(new, cache, place, pages is not None)
        return k_cache, v_cache
    call = ("append_to_cache", pages is None)
    called = (k, v, lengths) if pages is None else (k, v, lengths, pages)
    outs = (k_cache, v_cache)
    if on is None and again(call, called, outs) is not None:
        return k_cache, v_cache
    if 0 in k.shape:
        return k_cache, v_cache
    _launch(k, v, outs, lengths, pages, on, call, called)
    return k_cache, v_cache


def _check_types(k: Any, v: Any, k_cache: Any, v_cache: Any) -> None:
    for name, array in (("v", v), ("k_cache", k_cache), ("v_cache", v_cache)):
        check_type(k, name, array, "k")


def _check(k: Any, v: Any, k_cache: Any, v_cache: Any, lengths: Any, pages: Any) -> None:
    shapes = [tuple(each.shape) for each in (k, v, k_cache, v_cache)]
    if any(len(shape) != 4 for shape in shapes):
        raise ValueError(f"k, v and the caches have four axes, and have the shapes {', '.join(map(str, shapes))}")
    of_k, of_v, k_cached, v_cached = shapes
    heads = 1 if pages is None else 2
    fit = of_k[:-1] == of_v[:-1] and k_cached[:-1] == v_cached[:-1]
    fit = fit and (of_k[1], of_k[-1], of_v[-1]) == (k_cached[heads], k_cached[-1], v_cached[-1])
    if not fit or (pages is None and of_k[0] != k_cached[0]):
        raise ValueError(f"k, v and their caches do not fit: they have the shapes {', '.join(map(str, shapes))}")
    if tuple(lengths.shape) != of_k[:1]:
        raise ValueError(f"lengths are ({of_k[0]}), one for each sequence, not {tuple(lengths.shape)}")
    if pages is not None and (len(pages.shape) != 2 or pages.shape[0] != of_k[0]):
        raise ValueError(f"pages are ({of_k[0]}, L), a row for each sequence, not {tuple(pages.shape)}")


def _launch(k: Any, v: Any, outs: tuple[Any, Any], lengths: Any, pages: Any, on: str | None, call: Any, called: Any) -> None:
    element = _native.array_axes(k)[0]
    kinds = {_native.array_axes(each)[0] for each in (k, v, *outs)}
    if len(kinds) > 1:
        raise ValueError(f"k, v and the caches have one type, not {', '.join(sorted(kinds))}")
    new = {"k": _taken(k, False, on), "v": _taken(v, False, on)}
    caches = {"k_cache": outs[0], "v_cache": outs[1]}
    sizes = {"B": k.shape[0], "R": k.shape[2]}
    common = 0
    of_cache = ("batch", "head", "row") if pages is None else ("page", "row", "head")
    for name, array in {**new, **caches}.items():
        _, extents, strides, _, before = _native.array_axes(array)
        if before or (extents[-1] > 1 and strides[-1] != 1):
            raise ValueError(f"{name} is changed in place, and its rows are not contiguous from a multiple of 16 bytes on")
        for axis, extent, step in zip(of_cache if name in caches else ("batch", "head", "row"), extents, strides):
            sizes[f"{name}_{axis}"] = step if extent > 1 else -(-extents[-1] // 8) * 8
            common = math.gcd(common, step if extent > 1 else 0)
    named: dict[str, Any] = {"kv_heads": k.shape[1], "head": k.shape[3], "value_head": v.shape[3], "element": element}
    named["alignment"] = alignment(element, common)
    inputs = {**new, "lengths": contiguous(as_i32(lengths), on)}
    if pages is None:
        sizes["T"] = outs[0].shape[2]
    else:
        named |= {"paged": True, "page": outs[0].shape[1]}
        inputs["pages"] = contiguous(as_i32(pages), on)
        sizes |= {"P": outs[0].shape[0], "L": pages.shape[1], "pages_row": pages.shape[1]}
    kernels = planned("append_to_cache", tuple(named.items()), False, machine_of(k))
    results = {name: Result(tuple(array.shape), element, array) for name, array in caches.items()}
    launch(kernels, inputs, results, sizes, on, call=call, called=called)


def _places(k: Any, cache: Any, lengths: Any, pages: Any) -> tuple[Any, Any, Any]:
    """Where each new row goes, (B,N): the sequence or the page, the row there, and whether there is room."""
    space = definitions.namespace(cache)
    batch, count = k.shape[0], k.shape[2]
    row = definitions.as_number(space.asarray(lengths)).reshape(-1, 1) - count + space.arange(count, **_like(k)).reshape(1, -1)
    if pages is None:
        first = space.arange(batch, **_like(k)).reshape(-1, 1) + row * 0
        return first, row, (row >= 0) & (row < cache.shape[2])
    page = row // cache.shape[1]
    inside = (row >= 0) & (page < pages.shape[1])
    held = space.where(inside, page, 0)
    own = definitions.as_number(space.asarray(pages))[space.arange(batch, **_like(k)).reshape(-1, 1) + held * 0, held]
    return own, row % cache.shape[1], inside & (own >= 0) & (own < cache.shape[0])


def _like(array: Any) -> dict[str, Any]:
    device = getattr(array, "device", None)
    return {"device": device} if device is not None and definitions.namespace(array).__name__ == "torch" else {}


def _write(new: Any, cache: Any, place: tuple[Any, Any, Any], is_paged: bool) -> None:
    """Writes the rows for which there is room."""
    first, row, inside = place
    by_rows = cache if is_paged else cache.swapaxes(1, 2)
    by_rows[first[inside], row[inside]] = new.swapaxes(1, 2)[inside]


def _functional(k: Any, v: Any, k_cache: Any, v_cache: Any, lengths: Any, pages: Any) -> tuple[Any, Any]:
    """New caches of JAX. Rows without room go past the end, where they are dropped."""
    made = []
    first, row, inside = _places(k, k_cache, lengths, pages)
    first = definitions.namespace(k).where(inside, first, k_cache.shape[0])
    for new, cache in ((k, k_cache), (v, v_cache)):
        rows = new.swapaxes(1, 2)
        by_rows = cache.swapaxes(1, 2) if pages is None else cache
        by_rows = by_rows.at[first, row].set(rows.astype(cache.dtype), mode="drop")
        made.append(by_rows.swapaxes(1, 2) if pages is None else by_rows)
    return made[0], made[1]
