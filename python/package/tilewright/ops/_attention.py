"""Attention, forward, backward, and over caches of keys and values."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .. import _definitions as definitions
from .. import _native, gpu
from .._arrays import compact, empty, fill, zeros_like
from .._definitions import AttentionSettings, is_jax
from .._operators import Options, Result, again, alignment, launch, machine_of, planned
from ._common import autocast, by_definition, check_arrays, check_type, contiguous, records, through_jax, through_torch
from ._invariance import is_invariant
from ._losses import as_i32


class Inputs(NamedTuple):
    """What attention reads; of what is None, there is none."""

    q: Any
    k: Any
    v: Any
    sinks: Any = None
    slopes: Any = None
    bias: Any = None
    #: The first row of each sequence, if sequences lie one after another.
    cu_q: Any = None
    cu_k: Any = None

    @property
    def is_packed(self) -> bool:
        """Whether sequences lie one after another."""
        return self.cu_q is not None

    @property
    def optional(self) -> dict[str, Any]:
        """The inputs that may be missing, by their names."""
        return {name: getattr(self, name) for name in ("sinks", "slopes", "bias", "cu_q", "cu_k")}


def settled(
    q: Any,
    causal: bool,
    window: tuple[int, int] | None,
    scale: float | None,
    softcap: float,
    heads: int,
    expression: str,
    deterministic: bool = True,
) -> AttentionSettings:
    """The options of a call, checked."""
    if heads not in (1, 2):
        raise ValueError(f"the axis of the heads is 1 or 2, not {heads}")
    left, right = _window(window)
    if not 0 <= softcap < math.inf:
        raise ValueError(f"a softcap is a number from 0, where 0 is none, not {softcap}")
    factor = q.shape[-1] ** -0.5 if scale is None else float(scale)
    return AttentionSettings(causal, left, right, factor, float(softcap), heads, expression, deterministic)


def _window(window: Any) -> tuple[int, int]:
    """The keys before and after its position that a query sees; -1 is no limit."""
    if window is None:
        return -1, -1
    is_pair = isinstance(window, (tuple, list)) and len(window) == 2
    if not is_pair or not all(hasattr(each, "__index__") and each >= -1 for each in window):
        raise ValueError(f"a window is a pair of integers from -1, the keys before and after a position, where -1 is no limit, not {window!r}")
    return window[0], window[1]


def _check(q: Any, k: Any, v: Any, own: AttentionSettings, is_packed: bool) -> None:
    axes = 3 if is_packed else 4
    shapes = [tuple(each.shape) for each in (q, k, v)]
    what = "(rows, heads, length)" if is_packed else "(B,H,S,D)" if own.heads == 1 else "(B,S,H,D)"
    if any(len(shape) != axes for shape in shapes):
        raise ValueError(f"q, k and v are {what}, and have the shapes {', '.join(map(str, shapes))}")
    heads = 1 if is_packed else own.heads
    if shapes[1][:-1] != shapes[2][:-1] or shapes[0][-1] != shapes[1][-1] or (not is_packed and shapes[0][0] != shapes[1][0]):
        raise ValueError(f"q, k and v, {what}, do not fit: {', '.join(map(str, shapes))}")
    if shapes[1][heads] == 0 or shapes[0][heads] % shapes[1][heads]:
        raise ValueError(f"q has {shapes[0][heads]} heads, no multiple of the {shapes[1][heads]} of k and v")


def _check_heads(heads: int, sinks: Any, slopes: Any) -> None:
    for name, array in (("sinks", sinks), ("slopes", slopes)):
        if array is not None and tuple(array.shape) != (heads,):
            raise ValueError(f"{name} are ({heads}), one for each head, not {tuple(array.shape)}")


def _check_types(q: Any, k: Any, v: Any) -> None:
    check_type(q, "k", k, "q")
    check_type(q, "v", v, "q")


def _taken(array: Any, is_written_like: bool, on: str | None) -> Any:
    """An array that kernels take, or a contiguous copy: elements of the last axis are contiguous; and
    no element has two places, if a derivative is written with these strides.
    """
    _, shape, strides, _, before = _native.array_axes(array)
    inner = strides[-1] == 1 or shape[-1] == 1
    spans = 1 + sum((extent - 1) * step for extent, step in zip(shape, strides))
    if inner and not before and not (is_written_like and spans != math.prod(shape)):
        return array
    room = empty(array, shape)
    return gpu.relayout(array, room, on=on) if 0 not in shape else room


def _axes_of(own: AttentionSettings, is_packed: bool) -> tuple[str, ...]:
    """What the axes of an array are, but the last one."""
    if is_packed:
        return "row", "head"
    return ("batch", "head", "row") if own.heads == 1 else ("batch", "row", "head")


def _sizes(arrays: dict[str, Any], own: AttentionSettings, is_packed: bool) -> tuple[dict[str, int], int]:
    """The strides of arrays by their names, and the alignment of all. The stride of an axis of one
    element is never used.
    """
    names = _axes_of(own, is_packed)
    steps = {}
    common = 0
    for name, array in arrays.items():
        _, shape, strides, _, _ = _native.array_axes(array)
        for axis, extent, step in zip(names, shape, strides):
            steps[f"{name}_{axis}"] = step if extent > 1 else 0
            common = math.gcd(common, step if extent > 1 else 0)
    facts = alignment(_native.array_axes(next(iter(arrays.values())))[0], common)
    row = next(iter(arrays.values())).shape[-1]
    return {name: step or -(-row // facts) * facts for name, step in steps.items()}, facts


def _options(q: Any, k: Any, v: Any, own: AttentionSettings, facts: int, is_packed: bool, extra: dict[str, Any]) -> Options:
    at = 1 if is_packed else own.heads
    named: dict[str, Any] = {
        "heads": q.shape[at],
        "kv_heads": k.shape[at],
        "head": q.shape[-1],
        "value_head": v.shape[-1],
        "element": _native.array_axes(q)[0],
        "alignment": facts,
        "scale": own.scale,
        "softcap": own.softcap,
        "causal": own.causal,
        "window_left": own.left,
        **extra,
    }
    return tuple(named.items())


def _more(own: AttentionSettings, sinks: Any, slopes: Any, bias: Any, is_packed: bool, same: bool) -> dict[str, Any]:
    more: dict[str, Any] = {"window_right": own.right, "packed": is_packed, "same_length": same}
    more |= {"sinks": sinks is not None, "slopes": slopes is not None, "bias_expression": own.expression}
    if bias is not None:
        more |= {"bias": True, "bias_element": _native.array_axes(bias)[0]}
        more |= {"bias_heads": bias.shape[1] > 1, "bias_batch": bias.shape[0] > 1}
    return more


def _bias_sizes(bias: Any) -> dict[str, int]:
    _, shape, strides, _, _ = _native.array_axes(bias)
    sizes = {"bias_row": strides[2]}
    if shape[1] > 1:
        sizes["bias_head"] = strides[1]
    if shape[0] > 1:
        sizes["bias_batch"] = strides[0]
    return sizes


def _check_bias(q: Any, k: Any, bias: Any, own: AttentionSettings, is_packed: bool) -> None:
    if bias is None:
        return
    if is_packed:
        raise ValueError("sequences of different lengths have no tensor of biases: use `bias_expression`")
    rows = 3 - own.heads
    shape = (q.shape[0], q.shape[own.heads], q.shape[rows], k.shape[rows])
    if len(bias.shape) != 4 or any(one not in (1, all) for one, all in zip(bias.shape[:2], shape[:2])) or tuple(bias.shape[2:]) != shape[2:]:
        raise ValueError(f"a bias is {shape}, with 1 in the place of the first two where they share it, not {tuple(bias.shape)}")


def _in_order(array: Any, own: AttentionSettings) -> Any:
    """The axes of an array as the definition has them, (B,H,S,D)."""
    return array if own.heads == 1 else definitions.namespace(array).swapaxes(array, 1, 2)


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool = False,
    window: tuple[int, int] | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    sinks: Any = None,
    slopes: Any = None,
    bias: Any = None,
    bias_expression: str = "",
    cu_q: Any = None,
    cu_k: Any = None,
    heads: int = 1,
    return_lse: bool = False,
    deterministic: bool = True,
    on: str | None = None,
) -> Any:
    """``softmax(scale q k^T + bias) v`` for each head. ``q`` is (B,H,S,D), ``k`` (B,G,T,D) and ``v``
    (B,G,T,E), where G divides H: heads of ``q`` in groups share keys. With ``heads=2`` the axes are
    (B,S,H,D). Elements are bf16 or f16 on a device; D and E are multiples of 8 from 16 to 256.

    * Query ``i`` has the position ``i + T - S``: the last query is beside the last key. With ``causal``
      it sees no key after its position, and with ``window=(left, right)`` none farther before or after;
      -1 is no limit.
    * ``softcap``: scaled products become ``softcap * tanh(product / softcap)``.
    * ``sinks``, (H) of float32: a logit for each head that counts in the sum alone.
    * ``slopes``, (H) of float32 (ALiBi): a key at the distance ``d`` has ``-slope * d`` added. There is no
      derivative by them: tensors of PyTorch that require one are refused.
    * ``bias``: (B or 1, H or 1, S, T), added to the logits. ``bias_expression`` is added too: an expression
      of tile programs of ``query``, ``key``, ``head`` and ``batch``; it runs on a device alone, and has no
      gradient.
    * ``cu_q`` and ``cu_k``, (N+1) of integers: sequences of different lengths lie one after another in
      ``q``, (rows, H, D), and ``k`` and ``v``; they begin at these rows. Rows of no sequence are 0.
    * ``return_lse``: the result is a pair with the natural logarithm of each row's sum of powers, of
      float32, (B,H,S), or (H, rows) of packed sequences.
    * ``deterministic``: two calls of the backward give the same bits. With ``False`` blocks may add to the
      derivative by ``q`` in any order, where one kernel computes all derivatives. That is faster, and the
      last bits of this derivative may differ between two calls. The forward has the same bits either way.

    A query that sees no key gives 0, and minus infinity.

    >>> import numpy as np
    >>> q, k, v = np.ones((1, 1, 2, 16), "f2"), np.ones((1, 1, 2, 16), "f2"), np.arange(32).reshape(1, 1, 2, 16).astype("f2")
    >>> attention(q, k, v, causal=True)[0, 0, :, 0].tolist()
    [0.0, 8.0]
    """
    check_arrays(q=q, k=k, v=v)
    optional = {"sinks": sinks, "slopes": slopes, "bias": bias, "cu_q": cu_q, "cu_k": cu_k}
    if any(each is not None for each in optional.values()):
        check_arrays(*optional, **optional)
    q, k, v = autocast(q, k, v)
    own = settled(q, causal, window, scale, softcap, heads, bias_expression, deterministic)
    is_packed = cu_q is not None or cu_k is not None
    if is_packed and cu_k is None:
        cu_k = cu_q
    if is_packed and cu_q is None:
        raise ValueError("cu_k is given, and cu_q is not")
    inputs = Inputs(q, k, v, sinks, slopes, bias, cu_q, cu_k)
    _check(q, k, v, own, is_packed)
    _check_bias(q, k, bias, own, is_packed)
    _check_heads(q.shape[1 if is_packed else heads], sinks, slopes)
    if is_packed and (len(cu_q.shape) != 1 or cu_q.shape[0] < 1 or tuple(cu_q.shape) != tuple(cu_k.shape)):
        raise ValueError(f"cu_q and cu_k are (N+1) for N sequences, and have the shapes {tuple(cu_q.shape)} and {tuple(cu_k.shape)}")
    if is_jax(q):
        made = through_jax("attention", *inputs, settings=own, on=on)
    elif records(q, k, v, sinks, slopes, bias, cu_q, cu_k, on=on):
        made = through_torch("attention", *inputs, *own)
    else:
        made = forward(inputs, own, on)
    return made if return_lse else made[0]


def defined(inputs: Inputs, own: AttentionSettings) -> tuple[Any, Any]:
    """What ``forward`` gives, by the definition."""
    q, k, v, sinks, slopes, bias, cu_q, cu_k = inputs
    if inputs.is_packed:
        sight = definitions.packed_sight(cu_q, cu_k, q.shape[0], k.shape[0])
        o, lse = definitions.attention(_one(q), _one(k), _one(v), sinks, slopes, None, own, sight)
        return definitions.namespace(q).swapaxes(o[0], 0, 1), lse[0]
    o, lse = definitions.attention(_in_order(q, own), _in_order(k, own), _in_order(v, own), sinks, slopes, bias, own)
    return _in_order(o, own), lse


def defined_backward(
    inputs: Inputs, o: Any, lse: Any, d_o: Any, d_lse: Any, own: AttentionSettings
) -> tuple[Any, Any, Any, Any, Any]:
    """What ``backward`` gives, by the definition."""
    q, k, v, sinks, slopes, bias, cu_q, cu_k = inputs
    if inputs.is_packed:
        sight = definitions.packed_sight(cu_q, cu_k, q.shape[0], k.shape[0])
        slope = None if d_lse is None else d_lse[None]
        found = definitions.attention_backward(
            *(_one(q), _one(k), _one(v)), sinks, slopes, None, _one(o), lse[None], _one(d_o), slope, own, sight
        )
        d_q, d_k, d_v = (definitions.namespace(q).swapaxes(each[0], 0, 1) for each in found[:3])
        return d_q, d_k, d_v, found[3], None
    ordered = (_in_order(q, own), _in_order(k, own), _in_order(v, own))
    d_q, d_k, d_v, d_sinks, d_bias = definitions.attention_backward(
        *ordered, sinks, slopes, bias, _in_order(o, own), lse, _in_order(d_o, own), d_lse, own
    )
    return _in_order(d_q, own), _in_order(d_k, own), _in_order(d_v, own), d_sinks, d_bias


def forward(inputs: Inputs, own: AttentionSettings, on: str | None) -> tuple[Any, Any]:
    """The output and the logarithms of sums."""
    q, k, v, sinks, slopes, bias, cu_q, cu_k = inputs
    is_packed = inputs.is_packed
    if by_definition(on, q, k, v, sinks, slopes, bias, integers=(cu_q, cu_k)):
        _check_types(q, k, v)
        if own.expression:
            raise TypeError("an expression of biases runs on a device, or on=\"interpreter\"")
        if is_packed and not is_jax(q):
            return _packed_definition(inputs, own)
        return defined(inputs, own)
    if 0 in k.shape and 0 not in q.shape:
        # Results of no keys are launched by nobody.
        return defined(inputs, own)
    call = ("attention", own, *(each is None for each in (sinks, slopes, bias, cu_q)))
    optional = inputs.optional
    called = (q, k, v, *(each for each in optional.values() if each is not None))
    if on is None and (found := again(call, called)) is not None:
        return found  # type: ignore[no-any-return]
    at = 1 if is_packed else own.heads
    element = _native.array_axes(q)[0]
    shape = (*q.shape[:-1], v.shape[-1])
    rows = (q.shape[1], q.shape[0]) if is_packed else (q.shape[0], q.shape[at], q.shape[3 - at])
    if 0 in shape:
        made = [empty(q, *of) for of in ((shape, element), (rows, "f32"))]
        return made[0], made[1]
    arrays = {name: _taken(array, False, on) for name, array in (("q", q), ("k", k), ("v", v))}
    room = compact(shape)
    steps, facts = _sizes(arrays, own, is_packed)
    out, of_out = _sizes_of(shape, room, own, is_packed, element)
    facts = min(facts, of_out)
    # Strides of axes of one element fit any alignment.
    same = not is_packed and q.shape[3 - at] == k.shape[3 - at]
    options = _options(q, k, v, own, facts, is_packed, _more(own, sinks, slopes, bias, is_packed, same))
    sizes = {**steps, **out, **_extents(q, k, cu_q, own, is_packed)}
    taken = {**arrays, **_optional(optional, on)}
    if bias is not None:
        sizes |= _bias_sizes(taken["bias"])
    kernels = planned("attention", options, False, machine_of(q))
    results = {"o": Result(shape, element), "lse": Result(rows, "f32")}
    if is_packed:
        # Rows that belong to no sequence are not written.
        room = zeros_like(q, shape)
        results = {"o": Result(shape, element, room), "lse": Result(rows, "f32", _filled(q, rows, "f32", -math.inf))}
    o, lse = launch(kernels, taken, results, sizes, on, call=None if is_packed else call, called=called)
    return o, lse


def _filled(like: Any, shape: tuple[int, ...], element: str, value: float) -> Any:
    """A new array of equal numbers."""
    made = empty(like, shape, element)
    fill(made, value)
    return made


def _sizes_of(
    shape: tuple[int, ...], strides: tuple[int, ...], own: AttentionSettings, is_packed: bool, element: str
) -> tuple[dict[str, int], int]:
    """The strides of a result that does not exist yet."""
    names = _axes_of(own, is_packed)
    used = [step for extent, step in zip(shape, strides[:-1]) if extent > 1]
    facts = alignment(element, *used)
    pad = -(-shape[-1] // 8) * 8
    return {f"o_{name}": step if extent > 1 else pad for name, extent, step in zip(names, shape, strides)}, facts


def _extents(q: Any, k: Any, cu_q: Any, own: AttentionSettings, is_packed: bool) -> dict[str, int]:
    if is_packed:
        return {"B": cu_q.shape[0] - 1, "Q": q.shape[0], "K": k.shape[0]}
    return {"B": q.shape[0], "S": q.shape[3 - own.heads], "T": k.shape[3 - own.heads]}


def _optional(optional: dict[str, Any], on: str | None) -> dict[str, Any]:
    """The inputs that are there, contiguous where kernels want them so."""
    made = {}
    for name, array in optional.items():
        if array is None:
            continue
        if name in ("cu_q", "cu_k"):
            array = as_i32(array)
        elif name in ("sinks", "slopes") and _native.array_axes(array)[0] != "f32":
            raise ValueError(f"{name} are of float32, not {_native.array_axes(array)[0]}")
        made[name] = _taken(array, False, on) if name == "bias" else contiguous(array, on)
    return made


def backward(
    inputs: Inputs, o: Any, lse: Any, d_o: Any, d_lse: Any, own: AttentionSettings, on: str | None
) -> tuple[Any, Any, Any, Any, Any]:
    """The derivatives by ``q``, ``k``, ``v``, ``sinks`` and ``bias``; of what is None, None."""
    q, k, v, sinks, slopes, bias, cu_q, _ = inputs
    if by_definition(on, q, k, v, d_o, sinks, slopes, bias, integers=(cu_q, inputs.cu_k)):
        if own.expression:
            raise TypeError("an expression of biases runs on a device, or on=\"interpreter\"")
        if inputs.is_packed and not is_jax(q):
            return _packed_definition_backward(inputs, o, lse, d_o, d_lse, own)
        return defined_backward(inputs, o, lse, d_o, d_lse, own)
    if 0 in k.shape or 0 in q.shape:
        return defined_backward(inputs, o, lse, d_o, d_lse, own)
    call = ("attention_backward", own, *(each is None for each in (sinks, slopes, bias, cu_q, d_lse)))
    present = [each for each in inputs.optional.values() if each is not None]
    called = (q, k, v, o, lse, d_o, *(() if d_lse is None else (d_lse,)), *present)
    found = again(call, called) if on is None else None
    if found is None:
        found = _backward_anew(inputs, o, lse, d_o, d_lse, own, on, call, called)
    rest = iter(found)
    d_q, d_k, d_v = next(rest), next(rest), next(rest)
    return d_q, d_k, d_v, None if sinks is None else next(rest), None if bias is None else next(rest)


def _backward_anew(
    inputs: Inputs,
    o: Any,
    lse: Any,
    d_o: Any,
    d_lse: Any,
    own: AttentionSettings,
    on: str | None,
    call: Any,
    called: tuple[Any, ...],
) -> tuple[Any, ...]:
    q, k, v, sinks, slopes, bias, cu_q, _ = inputs
    is_packed = inputs.is_packed
    element = _native.array_axes(q)[0]
    arrays = {name: _taken(array, True, on) for name, array in (("q", q), ("k", k), ("v", v))}
    # The output and its derivative have the same strides for the kernels.
    arrays["o"], given = _taken(o, False, on), _taken(d_o, False, on)
    if _native.array_axes(arrays["o"])[2] != _native.array_axes(given)[2]:
        arrays["o"], given = (contiguous(each, on) for each in (o, d_o))
    steps, facts = _sizes(arrays, own, is_packed)
    at = 1 if is_packed else own.heads
    same = not is_packed and q.shape[3 - at] == k.shape[3 - at]
    more = {**_more(own, sinks, slopes, bias, is_packed, same), "lse_gradient": d_lse is not None, "in_turns": own.deterministic}
    options = _options(q, k, v, own, facts, is_packed, more)
    sizes = {**steps, **_extents(q, k, cu_q, own, is_packed)}
    taken = {**arrays, "lse": contiguous(lse, on), "d_o": given, **_optional(inputs.optional, on)}
    if d_lse is not None:
        taken["d_lse"] = contiguous(d_lse, on)
    results = {
        f"d_{name}": Result(tuple(array.shape), element, strides=_native.array_axes(arrays[name])[2])
        for name, array in (("q", q), ("k", k), ("v", v))
    }
    if sinks is not None:
        results["d_sinks"] = Result(tuple(sinks.shape), "f32")
    if bias is not None:
        taken["bias"] = _taken(bias, True, on)
        sizes |= _bias_sizes(taken["bias"])
        axes = _native.array_axes(taken["bias"])
        results["d_bias"] = Result(tuple(bias.shape), axes[0], strides=axes[2])
    kernels = planned("attention", options, True, machine_of(q))
    if is_packed:
        # Rows that belong to no sequence are not written.
        for name, result in results.items():
            if name != "d_sinks":
                results[name] = result._replace(given=zeros_like(arrays[name[2:]], result.shape))
    return launch(kernels, taken, results, sizes, on, call=None if is_packed else call, called=called)


def _sequences(inputs: Inputs) -> list[tuple[slice, slice]]:
    """The rows of each sequence among those of ``q``, and among those of ``k``."""
    q, k = ([int(number) for number in each] for each in (inputs.cu_q, inputs.cu_k))
    for name, bounds, rows in (("cu_q", q, inputs.q.shape[0]), ("cu_k", k, inputs.k.shape[0])):
        if bounds[0] < 0 or bounds[-1] > rows:
            raise ValueError(f"{name} are rows from 0 to {rows}, and they are from {bounds[0]} to {bounds[-1]}")
        for number, (first, end) in enumerate(zip(bounds, bounds[1:])):
            if first > end:
                raise ValueError(f"{name} do not decrease, and sequence {number} is from row {first} to {end}")
    return [(slice(*q[number : number + 2]), slice(*k[number : number + 2])) for number in range(len(q) - 1)]


def _one(array: Any) -> Any:
    """A packed sequence as (1,H,S,D)."""
    return definitions.namespace(array).swapaxes(array, 0, 1)[None]


def _packed_definition(inputs: Inputs, own: AttentionSettings) -> tuple[Any, Any]:
    q, k, v, sinks, slopes = inputs[:5]
    space = definitions.namespace(q)
    wide = definitions.wide(q[:0])
    o = zeros_like(q, (*q.shape[:-1], v.shape[-1]))
    lse = space.full_like(zeros_like(wide, (q.shape[1], q.shape[0])), -math.inf)
    for rows, keys in _sequences(inputs):
        part, powers = definitions.attention(_one(q[rows]), _one(k[keys]), _one(v[keys]), sinks, slopes, None, own)
        o[rows], lse[:, rows] = space.swapaxes(part[0], 0, 1), powers[0]
    return o, lse


def _packed_definition_backward(
    inputs: Inputs, o: Any, lse: Any, d_o: Any, d_lse: Any, own: AttentionSettings
) -> tuple[Any, Any, Any, Any, Any]:
    q, k, v, sinks, slopes = inputs[:5]
    space = definitions.namespace(q)
    d_q, d_k, d_v = (zeros_like(each, tuple(each.shape)) for each in (q, k, v))
    d_sinks = None if sinks is None else zeros_like(sinks, tuple(sinks.shape))
    for rows, keys in _sequences(inputs):
        found = definitions.attention_backward(
            *(_one(q[rows]), _one(k[keys]), _one(v[keys])),
            sinks,
            slopes,
            None,
            _one(o[rows]),
            lse[:, rows][None],
            _one(d_o[rows]),
            None if d_lse is None else d_lse[:, rows][None],
            own,
        )
        d_q[rows], d_k[keys], d_v[keys] = (space.swapaxes(each[0], 0, 1) for each in found[:3])
        if d_sinks is not None:
            d_sinks = d_sinks + found[3]
    return d_q, d_k, d_v, d_sinks, None


#: The most parts that the keys of a sequence are divided into.
_MOST_SPLITS = 64


def _check_rows(lengths: Any, pages: Any, cache: Any) -> None:
    """Refuses lengths of sequences that the cache has no rows for, and numbers of no pages among those that
    the sequences use.
    """
    space, lengths = definitions.namespace(cache), definitions.as_number(lengths)
    page = cache.shape[2] if pages is None else cache.shape[1]
    most = page if pages is None else page * pages.shape[1]
    if lengths.shape[0] and not 0 <= int(lengths.min()) <= int(lengths.max()) <= most:
        raise ValueError(
            f"lengths are from 0 to {most}, the rows of the cache for a sequence, and they are from {int(lengths.min())} to "
            f"{int(lengths.max())}"
        )
    if pages is not None and 0 not in pages.shape:
        is_used = space.arange(pages.shape[1], **definitions._beside(cache))[None, :] * page < lengths[:, None]
        wrong = is_used & ((pages < 0) | (definitions.as_number(pages) >= cache.shape[0]))
        if bool(wrong.any()):
            raise ValueError(f"pages that sequences use are from 0 to {cache.shape[0] - 1}, and one is {int(pages[wrong][0])}")


def attention_decode(
    q: Any,
    k: Any,
    v: Any,
    lengths: Any,
    *,
    pages: Any = None,
    causal: bool = True,
    window: int | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    sinks: Any = None,
    slopes: Any = None,
    splits: int | None = None,
    return_lse: bool = False,
    invariant: bool | None = None,
    on: str | None = None,
) -> Any:
    """Attention of one query of each sequence, or a few, over a cache of keys and values.

    ``q`` is (B,H,S,D). The cache is contiguous, ``k`` (B,G,T,D), or paged, with ``pages``, (B,L) of
    integers: ``k`` is then (P,R,G,D), and row ``t`` of a sequence is row ``t % R`` of the page
    ``pages[b, t // R]``. ``lengths``, (B), has the keys of each sequence, those of the queries included:
    no more than the cache has rows.

    The keys of a sequence are divided into ``splits`` parts, which are computed beside each other and
    then combined in a fixed order. By default there are as many as fill the device; with a number of
    your own, the result of a sequence has the same bits in every batch. So it has if ``invariant``: there
    are then as many as fill the device for one sequence. The other options are those of ``attention``.

    >>> import numpy as np
    >>> q, k, v = np.ones((1, 1, 1, 16), "f2"), np.ones((1, 1, 4, 16), "f2"), np.arange(64).reshape(1, 1, 4, 16).astype("f2")
    >>> attention_decode(q, k, v, np.array([2]))[0, 0, 0, 0]
    np.float16(8.0)
    """
    optional = {"pages": pages, "sinks": sinks, "slopes": slopes}
    check_arrays(*optional, q=q, k=k, v=v, lengths=lengths, **optional)
    if window is not None and not hasattr(window, "__index__"):
        raise TypeError(f"a window is the number of keys before a position that a query sees, not {window!r}")
    own = settled(q, causal, None if window is None else (window, -1), scale, softcap, 1, "")
    is_paged = pages is not None
    shapes = [tuple(each.shape) for each in (q, k, v)]
    if any(len(shape) != 4 for shape in shapes) or shapes[1][:-1] != shapes[2][:-1] or shapes[0][-1] != shapes[1][-1]:
        raise ValueError(f"q, k and v have four axes, and do not fit: {', '.join(map(str, shapes))}")
    groups = shapes[1][2 if is_paged else 1]
    if groups == 0 or shapes[0][1] % groups:
        raise ValueError(f"q has {shapes[0][1]} heads, no multiple of the {groups} of the cache")
    if tuple(lengths.shape) != shapes[0][:1] or (not is_paged and shapes[0][0] != shapes[1][0]):
        raise ValueError(f"lengths are ({shapes[0][0]}), one for each sequence, not {tuple(lengths.shape)}")
    if splits is not None and splits < 1:
        raise ValueError(f"keys are divided into parts from 1 on, not {splits}")
    _check_heads(shapes[0][1], sinks, slopes)
    if is_paged and (len(pages.shape) != 2 or pages.shape[0] != shapes[0][0]):
        raise ValueError(f"pages are ({shapes[0][0]}, L), a row for each sequence, not {tuple(pages.shape)}")
    if splits is None and is_invariant(invariant):
        splits = _splits(machine_of(q), groups)
    arrays = (q, k, v, lengths, pages, sinks, slopes)
    if is_jax(q):
        made = through_jax("attention_decode", *arrays, settings=own, splits=splits, on=on)
    elif records(*arrays, on=on):
        made = through_torch("attention_decode", *arrays, own.causal, own.left, own.scale, own.softcap, splits)
    else:
        made = decode(*arrays, own, splits, on)
    return made if return_lse else made[0]


def decode(
    q: Any,
    k: Any,
    v: Any,
    lengths: Any,
    pages: Any,
    sinks: Any,
    slopes: Any,
    own: AttentionSettings,
    splits: int | None,
    on: str | None,
) -> tuple[Any, Any]:
    """``attention_decode``, launched: the output and the logarithms of sums."""
    if by_definition(on, q, k, v, sinks, slopes, integers=(lengths, pages)):
        _check_types(q, k, v)
        if not is_jax(q):
            _check_rows(lengths, pages, k)
        return definitions.attention_decode(q, k, v, lengths, pages, sinks, slopes, own)
    call = ("attention_decode", own, splits, pages is None, sinks is None, slopes is None)
    called = (q, k, v, lengths, *(each for each in (pages, sinks, slopes) if each is not None))
    if on is None and (found := again(call, called)) is not None:
        return found  # type: ignore[no-any-return]
    parts = splits or _splits(machine_of(q), q.shape[0] * k.shape[1 if pages is None else 2])
    optional = {"sinks": sinks, "slopes": slopes}
    o, lse = _decode_anew(q, k, v, lengths, pages, optional, own, parts, on, call, called)
    return o, lse


def _splits(machine: str, rows: int) -> int:
    """Into how many parts keys are divided, so that all parts fill a machine."""
    blocks = _native.blocks_of_machine(machine)
    return max(1, min(_MOST_SPLITS, blocks // max(1, rows)))


def _decode_anew(
    q: Any,
    k: Any,
    v: Any,
    lengths: Any,
    pages: Any,
    optional: dict[str, Any],
    own: AttentionSettings,
    parts: int,
    on: str | None,
    call: Any,
    called: tuple[Any, ...],
) -> tuple[Any, ...]:
    element = _native.array_axes(q)[0]
    shape = (*q.shape[:-1], v.shape[-1])
    results = {"o": Result(shape, element), "lse": Result(tuple(q.shape[:-1]), "f32")}
    if 0 in shape:
        return tuple(empty(q, each.shape, each.element) for each in results.values())
    arrays = {name: _taken(array, False, on) for name, array in (("q", q), ("k", k), ("v", v))}
    steps, facts = _sizes({"q": arrays["q"]}, own, False)
    out, of_out = _sizes_of(shape, compact(shape), own, False, element)
    names = ("batch", "head", "row") if pages is None else ("page", "row", "head")
    cache = {}
    common = 0
    for name in ("k", "v"):
        _, extents, strides, _, _ = _native.array_axes(arrays[name])
        for axis, extent, step in zip(names, extents, strides):
            cache[f"{name}_{axis}"] = step if extent > 1 else -(-extents[-1] // 8) * 8
            common = math.gcd(common, step if extent > 1 else 0)
    facts = min(facts, of_out, alignment(element, common))
    heads = k.shape[1 if pages is None else 2]
    named: dict[str, Any] = {
        "heads": q.shape[1],
        "kv_heads": heads,
        "head": q.shape[3],
        "value_head": v.shape[3],
        "queries": q.shape[2],
        "element": element,
        "alignment": facts,
        "scale": own.scale,
        "softcap": own.softcap,
        "causal": own.causal,
        "window_left": own.left,
        "sinks": optional["sinks"] is not None,
        "slopes": optional["slopes"] is not None,
        "splits": parts,
    }
    sizes = {**steps, **out, **cache, "B": q.shape[0]}
    inputs = {**arrays, "lengths": contiguous(as_i32(lengths), on), **_optional(optional, on)}
    if pages is None:
        sizes["T"] = k.shape[2]
    else:
        named |= {"paged": True, "page": k.shape[1]}
        inputs["pages"] = contiguous(as_i32(pages), on)
        sizes |= {"P": k.shape[0], "L": pages.shape[1], "pages_row": pages.shape[1]}
    kernels = planned("attention_decode", tuple(named.items()), False, machine_of(q))
    return launch(kernels, inputs, results, sizes, on, call=call, called=called)
