"""What operators compute, as formulas on whole arrays.

Law: an operator's kernels give what its definition gives, but for rounding. Definitions compute in
float32, or in float64 for arrays of float64, and round once to the type of the result. They run on
arrays of NumPy, PyTorch and JAX. Tests compare kernels with them, and operators run by them on the
host, where there is no GPU.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, NamedTuple

from ._arrays import is_torch


def is_jax(array: Any) -> bool:
    """Whether an array is one of JAX, or a traced one."""
    return type(array).__module__.partition(".")[0] in ("jax", "jaxlib")


def namespace(array: Any) -> Any:
    """The module of functions of arrays like this one."""
    return import_module("torch" if is_torch(array) else "jax.numpy" if is_jax(array) else "numpy")


def wide(array: Any) -> Any:
    """An array in float32; in float64 as it is."""
    if is_torch(array):
        torch: Any = import_module("torch")
        return array if array.dtype == torch.float64 else array.float()
    return array if array.dtype.name == "float64" else array.astype("float32")


def narrow(array: Any, like: Any) -> Any:
    """An array in the type of another one."""
    return array.to(like.dtype) if is_torch(array) else array.astype(like.dtype)


def total(array: Any, axis: Any = -1) -> Any:
    """The sum along an axis, which keeps an extent of 1."""
    return array.sum(axis, keepdim=True) if is_torch(array) else array.sum(axis=axis, keepdims=True)


def greatest(array: Any) -> Any:
    """The greatest element along the last axis, which keeps an extent of 1. Of none it is minus infinity."""
    if array.shape and array.shape[-1] == 0:
        return namespace(array).full((*array.shape[:-1], 1), -math.inf, dtype=array.dtype, **_beside(array))
    return array.amax(-1, keepdim=True) if is_torch(array) else array.max(axis=-1, keepdims=True)


def flat_rows(x: Any) -> Any:
    """The rows of an array as a matrix, also where rows have no elements."""
    return x if len(x.shape) == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def product(a: Any, b: Any, by_rows: bool = False) -> Any:
    """The product of (..., M,K) and (K,N), or of batches, without a last rounding. ``by_rows``: each row of
    ``a`` by itself, because a library of matrices may add in another order where there are more rows.
    """
    a, b = wide(a), wide(b)
    if not by_rows or 0 in b.shape:
        return a @ b
    if b.ndim > 2:
        return namespace(a).stack([product(a[number], b[number], True) for number in range(b.shape[0])])
    rows = flat_rows(a)
    if is_jax(a):
        made = import_module("jax").lax.map(lambda row: row @ b, rows)
    elif is_torch(a):
        # Each row begins at an address of its own that is aligned in the same way.
        made = rows.new_empty(rows.shape[0], b.shape[-1])
        for number, row in enumerate(rows):
            made[number] = row.clone() @ b
    else:
        import numpy as np

        made, row = np.empty((rows.shape[0], b.shape[-1]), rows.dtype), np.empty(rows.shape[-1:], rows.dtype)
        for number in range(rows.shape[0]):
            row[:] = rows[number]
            made[number] = row @ b
    return made.reshape(*a.shape[:-1], b.shape[-1])


def softmax(x: Any) -> Any:
    """``exp(x)`` over the sum of ``exp(x)`` along the last axis."""
    space, a = namespace(x), wide(x)
    e = space.exp(a - greatest(a))
    return narrow(e / total(e), x)


def softmax_backward(x: Any, d_y: Any) -> Any:
    """The derivative of ``softmax`` by ``x``."""
    space, a, d = namespace(x), wide(x), wide(d_y)
    e = space.exp(a - greatest(a))
    y = e / total(e)
    return narrow(y * (d - total(y * d)), x)


def log_softmax(x: Any) -> Any:
    """The logarithm of the softmax along the last axis."""
    space, a = namespace(x), wide(x)
    a = a - greatest(a)
    return narrow(a - space.log(total(space.exp(a))), x)


def log_softmax_backward(x: Any, d_y: Any) -> Any:
    """The derivative of ``log_softmax`` by ``x``."""
    space, a, d = namespace(x), wide(x), wide(d_y)
    e = space.exp(a - greatest(a))
    return narrow(d - e / total(e) * total(d), x)


def _scaled(a: Any, epsilon: float, is_centred: bool) -> tuple[Any, Any]:
    """Rows over the root of their mean square, and one over that root."""
    length = math.prod(a.shape[-1:])
    if is_centred:
        a = a - total(a) / length
    scale = 1 / namespace(a).sqrt(total(a * a) / length + epsilon)
    return a * scale, scale


def norm(x: Any, weight: Any, bias: Any, epsilon: float, is_centred: bool, is_weight_less_one: bool = False) -> Any:
    """The RMS norm along the last axis, or the layer norm if rows are centred."""
    y, _ = _scaled(wide(x), epsilon, is_centred)
    if weight is not None:
        y = y * (wide(weight) + 1 if is_weight_less_one else wide(weight))
    if bias is not None:
        y = y + wide(bias)
    return narrow(y, x)


def norm_backward(
    x: Any, weight: Any, bias: Any, d_y: Any, d_same: Any, epsilon: float, is_centred: bool, is_weight_less_one: bool = False
) -> tuple[Any, Any, Any]:
    """The derivatives of ``norm`` by ``x``, plus ``d_same``, by the weights and by the bias."""
    normed, scale = _scaled(wide(x), epsilon, is_centred)
    d = wide(d_y)
    rows = tuple(range(d.ndim - 1))
    g = d
    if weight is not None:
        g = d * (wide(weight) + 1 if is_weight_less_one else wide(weight))
    length = math.prod(d.shape[-1:])
    inner = g - normed * (total(g * normed) / length)
    if is_centred:
        inner = inner - total(g) / length
    d_x = inner * scale
    if d_same is not None:
        d_x = d_x + wide(d_same)

    def of_rows(a: Any) -> Any:
        return a.sum(rows) if rows else a

    d_weight = None if weight is None else narrow(of_rows(d * normed), weight)
    d_bias = None if bias is None else narrow(of_rows(d), bias)
    return narrow(d_x, x), d_weight, d_bias


def _erf(a: Any) -> Any:
    if is_torch(a):
        return a.erf()
    if is_jax(a):
        return import_module("jax.scipy.special").erf(a)
    import numpy as np

    return np.vectorize(math.erf, otypes=[a.dtype])(a)


def _sigmoid(a: Any) -> Any:
    if is_torch(a):
        return a.sigmoid()
    # A power of a negative number does not overflow.
    space = namespace(a)
    power = space.exp(-abs(a))
    return space.where(a < 0, power, 1) / (1 + power)


def _relu(a: Any) -> Any:
    return namespace(a).clip(a, 0, None)


_ROOT = math.sqrt(2 / math.pi)


def _inner(a: Any) -> Any:
    return _ROOT * (a + 0.044715 * a * a * a)


#: The functions of elements, each with its slope.
FUNCTIONS: dict[str, tuple[Any, Any]] = {
    # A new array, as every function gives.
    "identity": (lambda a: a * 1, lambda a: namespace(a).ones_like(a)),
    "relu": (_relu, lambda a: namespace(a).where(a <= 0, namespace(a).zeros_like(a), 1)),
    "relu_squared": (lambda a: _relu(a) ** 2, lambda a: 2 * _relu(a)),
    "sigmoid": (_sigmoid, lambda a: _sigmoid(a) * (1 - _sigmoid(a))),
    "silu": (lambda a: a * _sigmoid(a), lambda a: _sigmoid(a) * (1 + a * (1 - _sigmoid(a)))),
    "tanh": (lambda a: namespace(a).tanh(a), lambda a: 1 - namespace(a).tanh(a) ** 2),
    "gelu": (
        lambda a: a * 0.5 * (1 + _erf(a * math.sqrt(0.5))),
        lambda a: 0.5 * (1 + _erf(a * math.sqrt(0.5))) + a * namespace(a).exp(-a * a / 2) / math.sqrt(2 * math.pi),
    ),
    "gelu_tanh": (
        lambda a: a * 0.5 * (1 + namespace(a).tanh(_inner(a))),
        lambda a: 0.5 * (1 + namespace(a).tanh(_inner(a)))
        + a * 0.5 * (1 - namespace(a).tanh(_inner(a)) ** 2) * _ROOT * (1 + 3 * 0.044715 * a * a),
    ),
}  # fmt: skip


def activation(function: str, x: Any, up: Any = None) -> Any:
    """A function of each element, times ``up``, if it is given."""
    y = FUNCTIONS[function][0](wide(x))
    return narrow(y if up is None else y * wide(up), x)


def activation_backward(function: str, x: Any, up: Any, d_y: Any) -> tuple[Any, Any]:
    """The derivatives of ``activation`` by ``x`` and by ``up``."""
    of, slope = FUNCTIONS[function]
    a, d = wide(x), wide(d_y)
    if up is None:
        return narrow(d * slope(a), x), None
    return narrow(d * wide(up) * slope(a), x), narrow(d * of(a), up)


def pair(array: Any, pairs: str, axis: int) -> tuple[Any, Any]:
    """The first and the second members of pairs along the first or the last axis: views of its "halves",
    or of "neighbours".
    """
    half = array.shape[axis] // 2
    first, second = (slice(half), slice(half, None)) if pairs == "halves" else (slice(0, None, 2), slice(1, None, 2))
    return (array[first], array[second]) if axis == 0 else (array[..., first], array[..., second])


def _paired(first: Any, second: Any, pairs: str) -> Any:
    """The array whose pairs along the last axis have these members."""
    space = namespace(first)
    if pairs == "halves":
        return space.concatenate((first, second), -1)
    return space.stack((first, second), -1).reshape(*first.shape[:-1], 2 * first.shape[-1])


def _both_products(x: Any, weight: Any, bias: Any, pairs: str, by_rows: bool) -> tuple[Any, Any]:
    h = product(x, weight.T, by_rows)
    return pair(h if bias is None else h + wide(bias), pairs, -1)


def gated_linear(x: Any, weight: Any, bias: Any, function: str, pairs: str, by_rows: bool = False) -> Any:
    """A function of the product with the first rows of pairs, times the product with the second ones."""
    first, second = _both_products(x, weight, bias, pairs, by_rows)
    return narrow(FUNCTIONS[function][0](first) * second, x)


def gated_linear_backward(
    x: Any, weight: Any, bias: Any, d_y: Any, function: str, pairs: str, by_rows: bool = False
) -> tuple[Any, Any, Any]:
    """The derivatives of ``gated_linear`` by ``x``, ``weight`` and ``bias``."""
    of, slope = FUNCTIONS[function]
    first, second = _both_products(x, weight, bias, pairs, by_rows)
    d = wide(d_y)
    d_h = _paired(d * second * slope(first), d * of(first), pairs)
    rows = flat_rows(d_h)
    d_x = narrow(product(rows, weight, by_rows).reshape(x.shape), x)
    d_weight = narrow(rows.T @ flat_rows(wide(x)), weight)
    return d_x, d_weight, None if bias is None else narrow(rows.sum(0), bias)


def philox(counters: Any, seed: int) -> Any:
    """Word 0 of Philox4x32-10 for the counters ``(c, 0, 0, 0)`` and the key ``(seed, 0)``, as
    integers of 64 bits from 0 to ``2^32 - 1``. The counters are integers of 64 bits.
    """
    mask = 0xFFFFFFFF
    c0, c1, c2, c3 = counters, counters * 0, counters * 0, counters * 0
    k0, k1 = seed & mask, 0

    def parts(a: int, b: Any) -> tuple[Any, Any]:
        # The product of two words in halves, so that it fits in integers with a sign.
        low, high = b & 0xFFFF, b >> 16
        first, second = a * low, a * high
        middle = (first >> 16) + (second & 0xFFFF)
        return ((middle >> 16) + (second >> 16)) & mask, ((middle << 16) | (first & 0xFFFF)) & mask

    for number in range(10):
        if number:
            k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
        (h0, l0), (h1, l1) = parts(0xD2511F53, c0), parts(0xCD9E8D57, c2)
        c0, c1, c2, c3 = h1 ^ c1 ^ k0, l1, h0 ^ c3 ^ k1, l0
    return c0


def dropout(x: Any, probability: float, seed: int) -> Any:
    """Each element, in the order of row-major indices, over ``1 - probability``, or 0 where its word
    of ``philox``, read as an integer with a sign, is below the share ``probability`` of all.
    """
    count = math.prod(x.shape)
    if is_torch(x):
        counters = namespace(x).arange(count, dtype=namespace(x).int64, device=x.device)
    else:
        # JAX has integers of 64 bits only if asked, so the words are NumPy's; they depend on no data.
        counters = import_module("numpy").arange(count)
    words = philox(counters, seed)
    signed = words - ((words >> 31) << 32)
    threshold = round(probability * 2**32) - 2**31
    kept = (signed >= threshold).reshape(x.shape)
    # The factor is rounded to float32, as the kernels have it.
    scale = float(import_module("numpy").float32(1 / (1 - probability)))
    a = wide(x)
    return narrow(namespace(x).where(namespace(x).asarray(kept), a * scale, namespace(x).zeros_like(a)), x)


def _logits(x: Any, softcap: float) -> Any:
    a = wide(x)
    return a if softcap == 0 else namespace(a).tanh(a / softcap) * softcap


def _rows_and_classes(x: Any, targets: Any, ignored: int) -> tuple[Any, Any, Any]:
    """Whether each row counts, whether its target is a class, and the place of the target in a row."""
    space, targets = namespace(x), as_number(targets)
    counts = targets != ignored
    is_class = (targets >= 0) & (targets < x.shape[-1])
    return counts, is_class, space.where(counts & is_class, targets, space.zeros_like(targets))


def cross_entropy(
    logits: Any, targets: Any, ignored: int, smoothing: float, z_loss: float, softcap: float
) -> tuple[Any, Any]:
    """The cross entropy of each row of (M,V) with its target, and the logarithm of the sum of powers."""
    space, a = namespace(logits), _logits(logits, softcap)
    # The difference of two infinities is NaN.
    top = space.clip(greatest(a), -3e38, None)
    lse = (top + space.log(total(space.exp(a - top))))[:, 0]
    counts, is_class, place = _rows_and_classes(logits, targets, ignored)
    rows = _count_to(a, a.shape[0])
    loss = lse - (1 - smoothing) * a[rows, place]
    # Zero times an infinite number is NaN.
    if smoothing:
        loss = loss - smoothing * a.sum(-1) / a.shape[-1]
    if z_loss:
        loss = loss + z_loss * lse * lse
    loss = space.where(is_class, loss, space.full_like(loss, math.inf))
    return space.where(counts, loss, space.zeros_like(loss)), lse


def cross_entropy_backward(
    logits: Any,
    targets: Any,
    lse: Any,
    d_loss: Any,
    ignored: int,
    smoothing: float,
    z_loss: float,
    softcap: float,
) -> Any:
    """The derivative of ``cross_entropy`` by the logits."""
    space, a = namespace(logits), _logits(logits, softcap)
    targets = as_number(targets)
    counts = targets != ignored
    d = space.exp(a - lse[:, None])
    if z_loss:
        d = d * (1 + 2 * z_loss * lse)[:, None]
    d = d - smoothing / a.shape[-1]
    d = space.where(_count_to(a, a.shape[-1])[None, :] == targets[:, None], d - (1 - smoothing), d)
    if softcap != 0:
        d = d * (1 - (a / softcap) ** 2)
    factor = space.where(counts, d_loss, space.zeros_like(d_loss))[:, None]
    # A row that does not count has no derivative, whatever is in it.
    return narrow(space.where(counts[:, None], d * factor, space.zeros_like(d)), logits)


def as_number(indices: Any) -> Any:
    """Integers that are computed with and index an array: those of 8 and 16 bits overflow, those without
    a sign have no numbers below 0, and bytes are a mask to PyTorch.
    """
    name = str(indices.dtype).removeprefix("torch.")
    if is_jax(indices) or name[0] not in "iu" or name in ("int32", "int64"):
        return indices
    return indices.long() if is_torch(indices) else indices.astype("int64")


def embedding(indices: Any, table: Any) -> Any:
    """Rows of a table by their numbers; a number that no row has gives NaN."""
    space = namespace(table)
    indices = as_number(indices)
    if table.shape[0] == 0:
        return space.full((*indices.shape, table.shape[1]), math.nan, dtype=table.dtype, **_beside(table))
    inside = (indices >= 0) & (indices < table.shape[0])
    rows = table[space.where(inside, indices, space.zeros_like(indices))]
    return space.where(inside[..., None], rows, space.full_like(rows, math.nan))


def embedding_backward(indices: Any, d_y: Any, vocabulary: int, padding: int | None, like: Any) -> Any:
    """The derivative of ``embedding`` by the table: for each row the sum of those that name it."""
    flat = as_number(indices).reshape(-1)
    d = flat_rows(wide(d_y))
    counts = (flat >= 0) & (flat < vocabulary)
    if padding is not None:
        counts = counts & (flat != padding)
    space = namespace(d)
    place = space.where(counts, flat, space.zeros_like(flat))
    d = space.where(counts[:, None], d, space.zeros_like(d))
    if is_torch(d):
        made = space.zeros((vocabulary, d.shape[-1]), dtype=d.dtype, device=d.device)
        return narrow(made.index_add(0, place.long(), d), like)
    if is_jax(d):
        return narrow(space.zeros((vocabulary, d.shape[-1]), d.dtype).at[place].add(d), like)
    made = space.zeros((vocabulary, d.shape[-1]), d.dtype)
    space.add.at(made, place, d)
    return narrow(made, like)


def rope(x: Any, cos: Any, sin: Any, is_interleaved: bool) -> Any:
    """Pairs of elements of each head, rotated: ``cos`` and ``sin`` broadcast to the pairs of ``x``."""
    space, a = namespace(x), wide(x)
    rotated = 2 * cos.shape[-1]
    own, rest = a[..., :rotated], a[..., rotated:]
    if is_interleaved:
        first, second = own[..., 0::2], own[..., 1::2]
    else:
        first, second = own[..., : rotated // 2], own[..., rotated // 2 :]
    c, s = wide(cos), wide(sin)
    first, second = first * c - second * s, second * c + first * s
    parts = space.stack([first, second], -1).reshape(own.shape) if is_interleaved else space.concatenate([first, second], -1)
    return narrow(space.concatenate([parts, rest], -1), x)


def adamw(
    p: Any, g: Any, m: Any, v: Any, lr: float, beta1: float, beta2: float, epsilon: float, decay: float, step: int
) -> tuple[Any, Any, Any]:
    """A step of AdamW: the parameters and the averages after it."""
    a, d, first, second = (wide(own) for own in (p, g, m, v))
    first = first + (1 - beta1) * (d - first)
    second = second + (1 - beta2) * (d * d - second)
    root = (second / (1 - beta2**step)) ** 0.5
    a = a - lr * decay * a - lr * (first / (1 - beta1**step)) / (root + epsilon)
    return narrow(a, p), narrow(first, m), narrow(second, v)


class AttentionSettings(NamedTuple):
    """The options of attention: each is known when kernels are compiled."""

    causal: bool
    #: How many keys before and after its position a query sees; -1 is no limit.
    left: int
    right: int
    scale: float
    softcap: float
    #: The axis of the heads: 1 for (B,H,S,D), 2 for (B,S,H,D).
    heads: int
    #: An expression of tile programs that is added to the logits.
    expression: str
    #: Whether two calls of the backward give the same bits.
    deterministic: bool = True


class Sight(NamedTuple):
    """Which keys queries see before the options of attention: positions that broadcast to (B,1,S,T)."""

    #: The position of each query, and of each key.
    at: Any
    other: Any
    #: Whether a query may see a key.
    seen: Any


def attention_scores(
    q: Any,
    k: Any,
    slopes: Any,
    bias: Any,
    own: AttentionSettings,
    sight: Sight | None = None,
) -> tuple[Any, Any, Any]:
    """The logits of attention of (B,H,S,D) and (B,G,T,D), heads of ``q`` in groups; whether each key is
    seen; and the scaled products, before the softcap.
    """
    space = namespace(q)
    group = q.shape[1] // k.shape[1]
    keys = wide(k) if group == 1 else space.repeat_interleave(wide(k), group, 1) if is_torch(k) else space.repeat(wide(k), group, 1)
    products = wide(q) @ space.swapaxes(keys, -1, -2) * own.scale
    scores = products if own.softcap == 0 else space.tanh(products / own.softcap) * own.softcap
    if sight is None:
        queries, rows, where = q.shape[2], k.shape[2], _beside(q)
        at = space.arange(queries, **where)[:, None] + (rows - queries)
        other = space.arange(rows, **where)[None, :]
        sight = Sight(at, other, other - 0 * at < rows)
    at, other, seen = sight
    if own.causal:
        seen = seen & (other <= at)
    if own.left >= 0:
        seen = seen & (other >= at - own.left)
    if own.right >= 0:
        seen = seen & (other <= at + own.right)
    if slopes is not None:
        distance = wide(abs(at - other)) if is_torch(q) else abs(at - other).astype("float32")
        scores = scores - wide(slopes)[:, None, None] * distance
    if bias is not None:
        scores = scores + wide(bias)
    return space.where(seen, scores, space.full_like(scores, -math.inf)), seen, products


def attention(
    q: Any,
    k: Any,
    v: Any,
    sinks: Any,
    slopes: Any,
    bias: Any,
    own: AttentionSettings,
    sight: Sight | None = None,
) -> tuple[Any, Any]:
    """Attention, and the logarithm of the sum of powers of each row."""
    space = namespace(q)
    scores, _, _ = attention_scores(q, k, slopes, bias, own, sight)
    top = space.clip(greatest(scores), -3e38, None)
    if sinks is not None:
        top = space.maximum(top, wide(sinks)[None, :, None, None] + 0 * top)
    powers = space.exp(scores - top)
    sums = total(powers)
    if sinks is not None:
        sums = sums + space.exp(wide(sinks)[None, :, None, None] - top)
    group = q.shape[1] // v.shape[1]
    values = wide(v) if group == 1 else space.repeat_interleave(wide(v), group, 1) if is_torch(v) else space.repeat(wide(v), group, 1)
    # A query that sees no key has 0.
    whole = space.where(sums > 0, sums, space.ones_like(sums))
    o = powers / whole @ values
    lse = space.where(sums > 0, top + space.log(whole), space.full_like(sums, -math.inf))
    return narrow(o, q), lse[..., 0]


def attention_decode(
    q: Any, k: Any, v: Any, lengths: Any, pages: Any, sinks: Any, slopes: Any, own: AttentionSettings
) -> tuple[Any, Any]:
    """Attention over the first ``lengths`` rows of a cache, (B,G,T,D), or of pages of it, (P,R,G,D)."""
    space, lengths = namespace(q), as_number(lengths)
    if pages is not None:
        # Pages that a sequence does not use may have any number.
        is_used = space.arange(pages.shape[1], **_beside(q))[None, :] * k.shape[1] < lengths[:, None]
        number = as_number(space.where(is_used, pages, space.zeros_like(pages)))
        k, v = (space.swapaxes(each[number].reshape(q.shape[0], -1, *each.shape[2:]), 1, 2) for each in (k, v))
    there, other = lengths[:, None, None, None], space.arange(k.shape[2], **_beside(q))
    at = space.arange(q.shape[2], **_beside(q))[:, None] + (there - q.shape[2])
    seen = other < there
    # What is in the other rows counts for nothing, NaN too.
    k, v = (space.where(space.swapaxes(seen, -1, -2), each, space.zeros_like(each)) for each in (k, v))
    return attention(q, k, v, sinks, slopes, None, own, Sight(at, other, seen))


def packed_sight(cu_q: Any, cu_k: Any, rows: int, keys: int) -> Sight:
    """What queries of packed sequences see: the keys of their sequence."""
    space = namespace(cu_q)

    def located(bounds: Any, count: int) -> tuple[Any, Any, Any]:
        """The sequence of each row, its position in it, and whether it is in one."""
        row = space.arange(count)
        sequence = space.clip(space.searchsorted(bounds, row, side="right") - 1, 0, bounds.shape[0] - 2)
        return sequence, row - bounds[sequence], (row >= bounds[0]) & (row < bounds[-1])

    (of_q, at, is_q), (of_k, other, is_k) = located(cu_q, rows), located(cu_k, keys)
    longer = (cu_k[1:] - cu_k[:-1]) - (cu_q[1:] - cu_q[:-1])
    seen = (of_q[:, None] == of_k[None, :]) & is_q[:, None] & is_k[None, :]
    return Sight((at + longer[of_q])[:, None], other[None, :], seen)


def _beside(array: Any) -> dict[str, Any]:
    """Where an array beside another one is made."""
    return {"device": array.device} if is_torch(array) else {}


def attention_backward(
    q: Any,
    k: Any,
    v: Any,
    sinks: Any,
    slopes: Any,
    bias: Any,
    o: Any,
    lse: Any,
    d_o: Any,
    d_lse: Any,
    own: AttentionSettings,
    sight: Sight | None = None,
) -> tuple[Any, Any, Any, Any, Any]:
    """The derivatives of ``attention`` by ``q``, ``k``, ``v``, ``sinks`` and ``bias``."""
    space = namespace(q)
    scores, _, products = attention_scores(q, k, slopes, bias, own, sight)
    batch, kv, rows = k.shape[:3]
    group = q.shape[1] // kv

    def repeated(a: Any) -> Any:
        a = wide(a)
        return a if group == 1 else space.repeat_interleave(a, group, 1) if is_torch(a) else space.repeat(a, group, 1)

    def folded(a: Any) -> Any:
        return a.reshape(batch, kv, group, rows, a.shape[-1]).sum(2)

    row = lse[..., None]
    inside = row > -math.inf
    p = space.where(inside, space.exp(scores - space.where(inside, row, space.zeros_like(row))), space.zeros_like(scores))
    d, out = wide(d_o), wide(o)
    delta = total(d * out)
    if d_lse is not None:
        delta = delta - wide(d_lse)[..., None]
    d_scores = p * (d @ space.swapaxes(repeated(v), -1, -2) - delta)
    d_v = folded(space.swapaxes(p, -1, -2) @ d)
    d_sinks = None
    if sinks is not None:
        power = space.where(inside, space.exp(wide(sinks)[None, :, None, None] - space.where(inside, row, space.zeros_like(row))), space.zeros_like(row))
        d_sinks = narrow((-power * delta).sum((0, 2, 3)), sinks)
    d_bias = None
    if bias is not None:
        d_bias = d_scores
        for axis in range(4):
            if bias.shape[axis] == 1 and d_bias.shape[axis] != 1:
                d_bias = total(d_bias, axis)
        d_bias = narrow(d_bias, bias)
    slope = d_scores if own.softcap == 0 else d_scores * (1 - space.tanh(products / own.softcap) ** 2)
    d_q = slope @ repeated(k) * own.scale
    d_k = folded(space.swapaxes(slope, -1, -2) @ wide(q)) * own.scale
    return narrow(d_q, q), narrow(d_k, k), narrow(d_v, v), d_sinks, d_bias


def route(logits: Any, chosen: int, over_all: bool) -> tuple[Any, Any]:
    """The experts of each token with the greatest logits, and their weights by a softmax."""
    space, a = namespace(logits), wide(logits)
    # Of equal logits the first is the greater.
    order = space.argsort(-a, **_stable(a))[:, :chosen]
    score = space.take_along_dim(a, order, 1) if is_torch(a) else space.take_along_axis(a, order, 1)
    base = a if over_all else score
    top = greatest(base)
    weights = space.exp(score - top) / total(space.exp(base - top))
    return as_i32(order), weights


def _stable(a: Any) -> dict[str, Any]:
    return {"dim": -1, "stable": True} if is_torch(a) else {"axis": -1} if is_jax(a) else {"axis": -1, "kind": "stable"}


def as_i32(numbers: Any) -> Any:
    """Integers of 32 bits."""
    return numbers.int() if is_torch(numbers) else numbers.astype("int32")


def route_backward(logits: Any, experts: Any, weights: Any, d_weights: Any, over_all: bool) -> Any:
    """The derivative of ``route`` by the logits."""
    space, w, d = namespace(logits), wide(weights), wide(d_weights)
    inner = total(w * d)
    columns = (experts[..., None] == _count_to(experts, logits.shape[-1])) * 1
    if not over_all:
        return narrow(((w * (d - inner))[..., None] * columns).sum(1), logits)
    a = wide(logits)
    e = space.exp(a - greatest(a))
    return narrow(e / total(e) * ((d[..., None] * columns).sum(1) - inner), logits)


def _count_to(like: Any, count: int) -> Any:
    space = namespace(like)
    return space.arange(count, device=like.device) if is_torch(like) else space.arange(count)


def expert_places(experts: Any, count: int, tile: int) -> tuple[Any, Any, Any, Any, Any]:
    """The row of each choice, the choice of each row, and where each expert begins, in tiles of rows."""
    space, flat = namespace(experts), as_number(experts).reshape(-1)
    rows = (flat.shape[0] + (tile - 1) * count) // tile * tile
    columns = (flat[:, None] == _count_to(flat, count)) * 1
    used = columns.sum(0)
    tiles = -(-used // tile)
    ends = space.cumsum(tiles, 0)
    first = ends - tiles
    # A choice lies behind those of its expert before it.
    rank = ((space.cumsum(columns, 0) - columns) * columns).sum(1)
    is_known = (flat >= 0) & (flat < count)
    places = space.where(is_known, (first * columns).sum(1) * tile + rank, -space.ones_like(rank))
    # The last row is that of choices that go nowhere.
    choices = _count_to(flat, rows + 1) * 0 - 1
    number, into = _count_to(flat, flat.shape[0]), space.where(is_known, places, space.full_like(places, rows))
    if is_jax(flat):
        choices = choices.at[into].set(number)
    else:
        choices[into] = number
    tile_experts = (_count_to(flat, rows // tile)[:, None] >= ends).sum(1)
    made = [as_i32(each) for each in (places, choices[:rows], tile_experts, first, tiles)]
    return made[0].reshape(experts.shape), made[1], made[2], made[3], made[4]


def _gathered(x: Any, rows: Any) -> Any:
    """Rows by their numbers; 0 where a number is negative."""
    space = namespace(x)
    if x.shape[0] == 0:
        return space.zeros((*rows.shape, *x.shape[1:]), dtype=x.dtype, **_beside(x))
    found = x[space.where(rows >= 0, rows, space.zeros_like(rows))]
    return space.where((rows >= 0)[..., None], found, space.zeros_like(found))


def permute(x: Any, choices: Any, chosen: int) -> Any:
    """The rows of tokens at the places of their choices."""
    return _gathered(x, namespace(x).where(choices >= 0, choices // chosen, choices))


def combine(x: Any, places: Any, weights: Any) -> Any:
    """For each token the weighted sum of the rows of its choices."""
    return narrow((_gathered(wide(x), places) * wide(weights)[..., None]).sum(1), x)


def permute_backward(d_y: Any, places: Any) -> Any:
    """The derivative of ``permute`` by ``x``."""
    return narrow(_gathered(wide(d_y), places).sum(1), d_y)


def combine_backward(x: Any, d_y: Any, places: Any, choices: Any, weights: Any) -> tuple[Any, Any]:
    """The derivatives of ``combine`` by ``x`` and by the weights."""
    d = wide(d_y)
    of_rows = _gathered(wide(weights).reshape(-1, 1), choices)
    d_x = _gathered(d, namespace(x).where(choices >= 0, choices // places.shape[1], choices)) * of_rows
    return narrow(d_x, x), (_gathered(wide(x), places) * d[:, None]).sum(-1)


def _of_rows(tile_experts: Any, tile: int, count: int) -> list[tuple[int, slice]]:
    """The rows of each expert."""
    found = [int(number) for number in tile_experts]
    return [
        (expert, slice(found.index(expert) * tile, (found.index(expert) + found.count(expert)) * tile))
        for expert in range(count)
        if expert in found
    ]


def expert_product(x: Any, w: Any, tile_experts: Any, transposed: bool, tile: int, by_rows: bool = False) -> Any:
    """The rows of each expert times its matrix; ``by_rows`` as in ``product``."""
    space = namespace(x)
    a, b = wide(x), wide(w)
    if is_jax(x):
        # Numbers of experts are not known as it is traced: a tile of rows after another.
        def of_tile(own: Any) -> Any:
            rows, expert = own
            factor = b[expert].T if transposed else b[expert]
            return space.where(expert < w.shape[0], product(rows, factor, by_rows), 0.0)

        tiles = a.reshape(-1, tile, a.shape[1])
        return narrow(import_module("jax.lax").map(of_tile, (tiles, tile_experts)).reshape(a.shape[0], -1), x)
    y = space.zeros_like(a[:, :1] @ b[0, :1, :] if not transposed else a[:, :1] @ b[0, :, :1].T)
    for expert, rows in _of_rows(tile_experts, tile, w.shape[0]):
        y[rows] = product(a[rows], b[expert].T if transposed else b[expert], by_rows)
    return narrow(y, x)


def expert_product_backward(
    x: Any, w: Any, d_y: Any, tile_experts: Any, transposed: bool, tile: int, by_rows: bool = False
) -> tuple[Any, Any]:
    """The derivatives of ``expert_product`` by ``x`` and ``w``; ``by_rows`` as in ``product``, for the first."""
    space = namespace(x)
    a, b, d = wide(x), wide(w), wide(d_y)
    d_x, d_w = space.zeros_like(a), space.zeros_like(b)
    if is_jax(x):
        def add(total: Any, own: Any) -> tuple[Any, Any]:
            rows, slope, expert = own
            summed = slope.T @ rows if transposed else rows.T @ slope
            factor = b[expert] if transposed else b[expert].T
            # What is added to an expert that there is not is dropped.
            d_rows = space.where(expert < w.shape[0], product(slope, factor, by_rows), 0.0)
            return total.at[expert].add(summed, mode="drop"), d_rows

        tiles = [each.reshape(-1, tile, each.shape[1]) for each in (a, d)]
        d_w, d_x = import_module("jax.lax").scan(add, d_w, (*tiles, tile_experts))
        return narrow(d_x.reshape(a.shape), x), narrow(d_w, w)
    for expert, rows in _of_rows(tile_experts, tile, w.shape[0]):
        d_x[rows] = product(d[rows], b[expert] if transposed else b[expert].T, by_rows)
        d_w[expert] = d[rows].T @ a[rows] if transposed else a[rows].T @ d[rows]
    return narrow(d_x, x), narrow(d_w, w)


def quantize(x: Any, square: bool, power_of_two: bool) -> tuple[Any, Any]:
    """Numbers of e4m3 before they are rounded, and their scales, for blocks of 128 along K."""
    space, a = namespace(x), wide(x)
    rows, columns = a.shape
    high = 128 if square else 1
    down, across = -(-rows // high), -(-columns // 128)
    padded = space.concatenate([abs(a), space.zeros((down * high - rows, columns), dtype=a.dtype, **_beside(a))], 0)
    padded = space.concatenate([padded, space.zeros((down * high, across * 128 - columns), dtype=a.dtype, **_beside(a))], 1)
    blocks = padded.reshape(down, high, across, 128)
    top = blocks.amax((1, 3)) if is_torch(a) else blocks.max((1, 3))
    # The quotient of a number near 0 is 0, and what is divided by it would be NaN.
    scales = space.where(top / 448 == 0, space.ones_like(top), top / 448)
    if power_of_two:
        scales = 2 ** space.ceil(space.log2(scales))
    return a / _spread(scales, rows, columns, high), scales


def _spread(scales: Any, rows: int, columns: int, high: int) -> Any:
    """A scale for each element of a matrix."""
    if is_torch(scales):
        whole = scales.repeat_interleave(high, 0).repeat_interleave(128, 1)
    else:
        space = namespace(scales)
        whole = space.repeat(space.repeat(scales, high, 0), 128, 1)
    return whole[:rows, :columns]


def scaled_linear(
    x: Any, x_scales: Any, weight: Any, weight_scales: Any, bias: Any, element: str, by_rows: bool = False
) -> Any:
    """The product of rows with scales for each 128 elements: the sum of each 128 products times both scales."""
    space, n = namespace(x), weight.shape[0]
    a = flat_rows(wide(x))
    of_x = _spread_scales(flat_rows(wide(x_scales)), a.shape[0])
    of_weight, b = _spread_scales(wide(weight_scales), n), wide(weight)
    y = product(a, b.T, by_rows) * 0
    for block in range(of_x.shape[1]):
        own = slice(128 * block, 128 * block + 128)
        y = y + product(a[:, own], b[:, own].T, by_rows) * (of_x[:, block : block + 1] * of_weight[:, block])
    y = y if bias is None else y + wide(bias)
    to = getattr(space, {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}[element])
    return (y.to(to) if is_torch(y) else y.astype(to)).reshape(*x.shape[:-1], n)


def _spread_scales(scales: Any, rows: int) -> Any:
    """The scales of each row, of scales of rows or of 128 rows."""
    if scales.shape[0] == rows:
        return scales
    spread = scales.repeat_interleave(128, 0) if is_torch(scales) else scales.repeat(128, 0)
    return spread[:rows]


#: Weights of four bits along K that share a scale, and the places of a word, four bits each, of K 0 to 7.
INT4_GROUP = 128
_INT4_PLACES = (0, 4, 1, 5, 2, 6, 3, 7)


def _to(array: Any, kind: str) -> Any:
    return array.to(getattr(namespace(array), kind)) if is_torch(array) else array.astype(kind)


def quantize_int4(weight: Any) -> tuple[Any, Any]:
    """Weights as words of eight integers of four bits, and the scales of each 128 of a row."""
    space, (rows, columns) = namespace(weight), weight.shape
    groups = wide(weight).reshape(rows, columns // INT4_GROUP, INT4_GROUP)
    most = abs(groups).amax(-1) if is_torch(weight) else abs(groups).max(-1)
    scales = narrow(most / 7, weight)
    scales = space.where(scales == 0, space.ones_like(scales), scales)
    numbers = space.round(groups / wide(scales)[..., None]).clip(-8, 7).reshape(rows, columns // 8, 8)
    bits = _to(numbers, "int32") & 15
    words = bits[..., 0] * 0
    for k, place in enumerate(_INT4_PLACES):
        words = words | bits[..., k] << 4 * place
    turned = scales.T
    # Arrays of JAX are contiguous.
    return words, turned.contiguous() if is_torch(turned) else turned if is_jax(turned) else space.ascontiguousarray(turned)


def int4_weights(weight: Any, scales: Any) -> Any:
    """The weights of words and scales, in float32."""
    space = namespace(weight)
    numbers = space.stack([(weight << 28 - 4 * place) >> 28 for place in _INT4_PLACES], -1)
    count, length = weight.shape[0], 8 * weight.shape[1]
    rows = _to(numbers, "float32").reshape(count, length // INT4_GROUP, INT4_GROUP)
    return (rows * wide(scales).T[..., None]).reshape(count, length)


def int4_linear(x: Any, weight: Any, scales: Any, bias: Any, by_rows: bool = False) -> Any:
    """The product of rows with weights of four bits."""
    y = product(x, narrow(int4_weights(weight, scales), wide(x)).T, by_rows)
    return narrow(y if bias is None else y + wide(bias), x)


def int4_linear_backward(weight: Any, scales: Any, d_y: Any, by_rows: bool = False) -> Any:
    """The derivative of ``int4_linear`` by ``x``."""
    return narrow(product(d_y, narrow(int4_weights(weight, scales), wide(d_y)), by_rows), d_y)


def dequantize(q: Any, scales: Any, square: bool) -> Any:
    """The numbers of ``quantize``, in the type of the scales."""
    return wide(q) * _spread(scales, q.shape[0], q.shape[1], 128 if square else 1)
