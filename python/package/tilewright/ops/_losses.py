"""Cross entropy, of logits and of a linear layer."""

from __future__ import annotations

from typing import Any

from .. import _definitions as definitions
from .. import _native, gpu
from .._arrays import empty, is_torch
from .._definitions import is_jax
from .._operators import Matrix, Options, Result, again, alignment, launch, machine_of, matrix, planned
from ._common import by_definition, contiguous, records, sizes_of_rows, through_jax, through_torch
from ._invariance import is_invariant

#: The bytes of the logits of a chunk of rows of a fused loss.
_CHUNK_BYTES = 256 << 20


def _settings(ignored: int, smoothing: float, z_loss: float, softcap: float) -> Options:
    return (("ignored", ignored), ("smoothing", float(smoothing)), ("z_loss", float(z_loss)), ("softcap", float(softcap)))


def _options(own: Matrix, facts: int, vocabulary: int | None, settings: Options) -> Options:
    """The options of the kernels for rows of logits."""
    classes = own.length if vocabulary is None else vocabulary
    of_rows: Options = (("vocabulary", classes), ("element", own.element), ("alignment", facts))
    return (*of_rows, ("padded", vocabulary is not None), *settings)


def _check_rows(logits: Any, targets: Any, vocabulary: int | None) -> None:
    """Refuses logits that are no matrix, targets that are not one for each row, and rows that are not
    padded as they are said to be.
    """
    if len(logits.shape) != 2 or tuple(targets.shape) != tuple(logits.shape[:1]):
        raise ValueError(f"logits are (M,V) and targets (M), and they have the shapes {tuple(logits.shape)} and {tuple(targets.shape)}")
    if vocabulary is not None and not 1 <= vocabulary <= logits.shape[1]:
        raise ValueError(f"rows of {logits.shape[1]} logits have no {vocabulary} classes")


def as_i32(numbers: Any) -> Any:
    """Integers of 32 bits, which kernels read."""
    if is_torch(numbers):
        import torch

        return numbers if numbers.dtype == torch.int32 else numbers.to(torch.int32)
    return numbers if numbers.dtype.name == "int32" else numbers.astype("int32")


def cross_entropy_rows(
    logits: Any,
    targets: Any,
    *,
    ignored: int = -100,
    smoothing: float = 0.0,
    z_loss: float = 0.0,
    softcap: float = 0.0,
    vocabulary: int | None = None,
    on: str | None = None,
) -> tuple[Any, Any]:
    """The cross entropy of each row of ``logits``, (M,V), with its target, (M), and the logarithm of
    the sum of the powers of the row, both of float32. Logits are read once.

    ``cross_entropy`` explains the options. With ``vocabulary``, rows have so many classes, and then
    padding up to the next multiple of 16 bytes, so that they are read in whole vectors.

    >>> import numpy as np
    >>> loss, lse = cross_entropy_rows(np.zeros((1, 2), np.float32), np.array([1], np.int32))
    >>> np.allclose(loss, np.log(2)), np.allclose(lse, np.log(2))
    (True, True)
    """
    if is_jax(logits):
        return through_jax(  # type: ignore[no-any-return]
            "cross_entropy_rows", logits, targets, ignored=ignored, smoothing=smoothing, z_loss=z_loss, softcap=softcap, on=on
        )
    if records(logits):
        return through_torch("cross_entropy", logits, targets, ignored, smoothing, z_loss, softcap)  # type: ignore[no-any-return]
    _check_rows(logits, targets, vocabulary)
    settings = _settings(ignored, smoothing, z_loss, softcap)
    if by_definition(on, logits, targets):
        return definitions.cross_entropy(logits[:, :vocabulary], targets, ignored, smoothing, z_loss, softcap)
    targets = as_i32(targets)
    call = ("cross_entropy", settings, vocabulary)
    if on is None and (found := again(call, (logits, targets))) is not None:
        return found  # type: ignore[no-any-return]
    own = matrix(logits, on)
    results = {"loss": Result((own.rows,), "f32"), "lse": Result((own.rows,), "f32")}
    if 0 in logits.shape:
        loss, lse = (empty(logits, (own.rows,), "f32") for _ in range(2))
        return loss, lse
    facts = alignment(own.element, own.pitch if own.rows > 1 else 0)
    kernels = planned("cross_entropy", _options(own, facts, vocabulary, settings), False, machine_of(logits))
    inputs = {"logits": own.array, "targets": contiguous(targets, on)}
    sizes = sizes_of_rows({"logits": own}, facts)
    loss, lse = launch(kernels, inputs, results, sizes, on, call=call, called=(logits, targets))
    return loss, lse


def cross_entropy_rows_backward(
    logits: Any,
    targets: Any,
    lse: Any,
    d_loss: Any,
    *,
    ignored: int = -100,
    smoothing: float = 0.0,
    z_loss: float = 0.0,
    softcap: float = 0.0,
    vocabulary: int | None = None,
    out: Any = None,
    on: str | None = None,
) -> Any:
    """The derivative of ``cross_entropy_rows`` by the logits, from the second result of the forward and
    the derivative by the first. ``out`` may be ``logits``, which are overwritten then; with
    ``vocabulary`` they must be.

    >>> import numpy as np
    >>> logits, targets = np.zeros((1, 2), np.float32), np.array([1], np.int32)
    >>> loss, lse = cross_entropy_rows(logits, targets)
    >>> cross_entropy_rows_backward(logits, targets, lse, np.ones(1, np.float32)).round(6).tolist()
    [[0.5, -0.5]]
    """
    _check_rows(logits, targets, vocabulary)
    settings = _settings(ignored, smoothing, z_loss, softcap)
    padded = vocabulary is not None
    if by_definition(on, logits, targets):
        if padded:
            raise ValueError("definitions take rows without padding")
        d = definitions.cross_entropy_backward(logits, targets, lse, d_loss, ignored, smoothing, z_loss, softcap)
        if out is None:
            return d
        out[...] = d
        return out
    targets = as_i32(targets)
    in_place = out is logits
    if padded and not in_place:
        raise ValueError("the derivative of padded rows is written over the logits: pass them as `out`")
    call = ("cross_entropy_backward", settings, in_place, vocabulary)
    arrays = (targets, lse, d_loss) if in_place else (logits, targets, lse, d_loss)
    if on is None and (found := again(call, arrays, None if out is None else (out,))) is not None:
        return found
    own = matrix(logits, on)
    shape = tuple(logits.shape)
    if 0 in shape:
        return out if out is not None else empty(logits, shape, own.element)
    pitch = own.pitch
    if out is None and pitch != own.length:
        # The derivative has the pitch of the logits, so these are packed first.
        room = empty(logits, shape)
        gpu.relayout(own.array, room, on=on)
        own = own._replace(array=room, pitch=own.length)
    if out is not None and (tuple(out.shape) != shape or _native.array_axes(out)[2] != _native.array_axes(own.array)[2]):
        raise ValueError(f"out has another shape or other strides than the logits, {shape}")
    facts = alignment(own.element, own.pitch if own.rows > 1 else 0)
    options: Options = (*_options(own, facts, vocabulary, settings), ("in_place", in_place))
    kernels = planned("cross_entropy", options, True, machine_of(logits))
    inputs = {"targets": contiguous(targets, on), "lse": contiguous(lse, on), "d_loss": contiguous(d_loss, on)}
    sizes = sizes_of_rows({"logits": own}, facts)
    if in_place:
        launch(kernels, inputs, {"logits": Result(shape, own.element, out)}, sizes, on, call=call, called=arrays)
        return out
    inputs = {"logits": own.array, **inputs}
    (d,) = launch(kernels, inputs, {"d_logits": Result(shape, own.element, out)}, sizes, on, call=call, called=arrays)
    return d


def _reduced(loss: Any, targets: Any, ignored: int, reduction: str) -> Any:
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    count = (targets != ignored).sum()
    return loss.sum() / (count.clamp(min=1) if is_torch(count) else count.clip(1))


def _check_reduction(reduction: str) -> None:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f'a reduction is "mean", "sum" or "none", not {reduction!r}')


def cross_entropy(
    logits: Any,
    targets: Any,
    *,
    ignored: int = -100,
    smoothing: float = 0.0,
    z_loss: float = 0.0,
    softcap: float = 0.0,
    reduction: str = "mean",
    on: str | None = None,
) -> Any:
    """The cross entropy of rows of ``logits``, (..., V), with the classes ``targets``, (...): the
    logarithm of the sum of the powers of a row, less the logit of its target.

    * Rows whose target is ``ignored`` count for nothing, and the mean is over the others; 0 if there are none.
    * ``smoothing``: this share of the loss is the mean over all classes.
    * ``z_loss``: so many times the square of the logarithm is added.
    * ``softcap``: logits become ``softcap * tanh(logits / softcap)`` first.
    * ``reduction``: "mean", "sum", or "none", which gives the losses of the rows.

    Losses are of float32. The loss of a target that is no class is infinite.

    >>> import numpy as np
    >>> float(cross_entropy(np.zeros((4, 2), np.float32), np.array([0, 1, -100, 0], np.int32)).round(4))
    0.6931
    """
    _check_reduction(reduction)
    shape = tuple(targets.shape)
    if tuple(logits.shape[:-1]) != shape:
        raise ValueError(f"logits are (..., V) and targets (...), and they have the shapes {tuple(logits.shape)} and {shape}")
    flat = logits if len(logits.shape) == 2 else logits.reshape(-1, logits.shape[-1])
    classes = targets.reshape(-1)
    options = {"ignored": ignored, "smoothing": smoothing, "z_loss": z_loss, "softcap": softcap}
    loss, _ = cross_entropy_rows(flat, classes, on=on, **options)  # type: ignore[arg-type]
    return loss.reshape(shape) if reduction == "none" else _reduced(loss, classes, ignored, reduction)


def linear_cross_entropy(
    x: Any,
    weight: Any,
    targets: Any,
    *,
    ignored: int = -100,
    smoothing: float = 0.0,
    z_loss: float = 0.0,
    softcap: float = 0.0,
    reduction: str = "mean",
    rows: int | None = None,
    invariant: bool | None = None,
    on: str | None = None,
) -> Any:
    """``cross_entropy(linear(x, weight), targets)``, chunk by chunk of ``rows`` rows, so that the
    logits are never all in memory. With tensors that require gradients, the derivatives are computed
    in the same pass. ``reduction`` is "mean" or "sum". ``invariant``: the loss of a row, and the
    derivative by it, have the same bits for every number of rows; their sums do not.

    >>> import numpy as np
    >>> x, weight = np.ones((4, 8), np.float16), np.zeros((2, 8), np.float16)
    >>> float(linear_cross_entropy(x, weight, np.array([0, 1, 1, 0], np.int32)).round(4))
    0.6931
    """
    _check_reduction(reduction)
    if reduction == "none":
        raise ValueError('a fused loss is reduced: "mean" or "sum"')
    flat = x if len(x.shape) == 2 else x.reshape(-1, x.shape[-1])
    classes = targets.reshape(-1)
    settings, is_same = (ignored, smoothing, z_loss, softcap), is_invariant(invariant)
    if records(x, weight):
        needs = records_gradients(x, weight)
        loss, _, _ = through_torch("linear_cross_entropy", flat, weight, classes, *settings, reduction == "mean", rows or 0, needs, is_same)
        return loss
    return fused(flat, weight, classes, *settings, reduction == "mean", rows or 0, False, is_same, on)[0]


def records_gradients(*arrays: Any) -> bool:
    """Whether PyTorch records gradients by one of these arrays."""
    import torch

    return torch.is_grad_enabled() and any(own.requires_grad for own in arrays)


def _summed(d_logits: Any, part: Any, before: Any, on: str | None) -> Any:
    """The derivative by the weights of a chunk of rows, in float32, added to that of the chunks before
    it.
    """
    if by_definition(on, d_logits, part):
        product = definitions.wide(d_logits).T @ definitions.wide(part)
        return product if before is None else before + product
    shape, element = (d_logits.shape[1], part.shape[1]), "f32"
    out = empty(d_logits, shape, element)
    if before is None:
        return gpu.gemm(d_logits.T, part.T, out=out, on=on)
    return gpu.gemm(d_logits.T, part.T, function="x + before", before=before, out=out, on=on)


def fused(
    x: Any,
    weight: Any,
    targets: Any,
    ignored: int,
    smoothing: float,
    z_loss: float,
    softcap: float,
    is_mean: bool,
    rows: int,
    needs_gradients: bool,
    invariant: bool,
    on: str | None,
) -> tuple[Any, Any, Any]:
    """The loss of a linear layer, and its derivatives by ``x`` and ``weight`` if they are needed."""
    from ._products import linear, matmul

    count, vocabulary = x.shape[0], weight.shape[0]
    if len(weight.shape) != 2 or weight.shape[1] != x.shape[1] or tuple(targets.shape) != (count,):
        raise ValueError(
            f"x is (M,K), weight (V,K) and targets (M), and they have the shapes {tuple(x.shape)}, {tuple(weight.shape)} and "
            f"{tuple(targets.shape)}"
        )
    size = rows or max(128, _CHUNK_BYTES // (2 * vocabulary) // 128 * 128)
    settings: Any = {"ignored": ignored, "smoothing": smoothing, "z_loss": z_loss, "softcap": softcap}
    space = definitions.namespace(x)
    counted = (targets != ignored).sum()
    counted = counted.clamp(min=1) if is_torch(counted) else counted.clip(1)
    scale = 1 / counted if is_mean else counted * 0 + 1
    d_weight = None
    d_x: Any = space.empty_like(x) if needs_gradients else None
    losses = []
    for first in range(0, count, size):
        part, classes = x[first : first + size], targets[first : first + size]
        if by_definition(on, part, weight):
            logits = linear(part, weight, invariant=invariant, on=on)
        else:
            # Rows are padded to whole vectors of 16 bytes, whatever the number of classes is.
            logits = empty(part, (part.shape[0], -(-vocabulary // 8) * 8))
            linear(part, weight, out=logits[:, :vocabulary], invariant=invariant, on=on)
            settings["vocabulary"] = vocabulary
        loss, lse = cross_entropy_rows(logits, classes, on=on, **settings)
        losses.append(loss.sum())
        if needs_gradients:
            d_loss = definitions.narrow((loss * 0 + 1) * scale, loss)
            d_logits = cross_entropy_rows_backward(logits, classes, lse, d_loss, out=logits, on=on, **settings)[:, :vocabulary]
            matmul(d_logits, weight, out=d_x[first : first + size], invariant=invariant, on=on)
            d_weight = _summed(d_logits, part, d_weight, on)
    total = sum(losses[1:], losses[0]) if losses else space.zeros(()) if not is_torch(x) else x.new_zeros((), dtype=space.float32)
    loss = total * scale
    return loss, d_x, None if d_weight is None else definitions.narrow(d_weight, weight)
