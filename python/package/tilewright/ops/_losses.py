"""Cross entropy, of logits and of a linear layer."""

from __future__ import annotations

import math
from typing import Any

from .. import _definitions as definitions
from .. import _native, gpu
from .._arrays import empty, is_torch
from .._definitions import is_jax
from .._operators import Matrix, Options, Result, again, alignment, launch, machine_of, matrix, planned
from ._common import (
    by_definition,
    check_arrays,
    check_out,
    contiguous,
    records,
    sizes_of_rows,
    stored,
    through_jax,
    through_torch,
    type_name,
)
from ._invariance import is_invariant

#: The bytes of the logits of a chunk of rows of a fused loss.
_CHUNK_BYTES = 256 << 20
#: The shortest rows that are taken as one long row: a chunk of it has parts of two rows at most.
_JOINED_LENGTH = 4096


def settings_of(ignored: int, smoothing: float, z_loss: float, softcap: float) -> Options:
    """The options of a loss, checked."""
    if not hasattr(ignored, "__index__") or not -(2**31) <= ignored < 2**31:
        raise ValueError(f"the ignored target is an integer of 32 bits, not {ignored!r}")
    if not 0 <= smoothing < 1:
        raise ValueError(f"a smoothing is from 0, and less than 1, not {smoothing}")
    for name, value in (("z_loss", z_loss), ("softcap", softcap)):
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} is a number from 0, not {value}")
    return (("ignored", ignored), ("smoothing", float(smoothing)), ("z_loss", float(z_loss)), ("softcap", float(softcap)))


def _options(own: Matrix, facts: int, vocabulary: int | None, settings: Options) -> Options:
    """The options of the kernels for rows of logits."""
    classes = own.length if vocabulary is None else vocabulary
    of_rows: Options = (("vocabulary", classes), ("element", own.element), ("alignment", facts))
    return (*of_rows, ("padded", vocabulary is not None), *settings)


def _is_joined(own: Matrix, facts: int) -> bool:
    """Whether rows that begin at odd addresses are read in whole vectors as one long row: they lie one
    after another, have as many elements together as whole vectors, and fewer than integers of 32 bits count.
    """
    elements = own.rows * own.length
    whole = alignment(own.element, 0)
    is_compact = own.pitch == own.length and elements % whole == 0 and elements < 1 << 31
    return is_compact and facts < whole and own.length >= _JOINED_LENGTH


def _check_rows(logits: Any, targets: Any, vocabulary: int | None) -> None:
    """Refuses logits that are no matrix, targets that are not one for each row, and rows that are not
    padded as they are said to be.
    """
    if len(logits.shape) != 2 or tuple(targets.shape) != tuple(logits.shape[:1]):
        raise ValueError(f"logits are (M,V) and targets (M), and they have the shapes {tuple(logits.shape)} and {tuple(targets.shape)}")
    if logits.shape[1] == 0:
        raise ValueError(f"logits are (M,V) with classes, and have the shape {tuple(logits.shape)}")
    if vocabulary is not None and not 1 <= vocabulary <= logits.shape[1]:
        raise ValueError(f"rows of {logits.shape[1]} logits have no {vocabulary} classes")


def as_i32(numbers: Any) -> Any:
    """Integers of 32 bits, which kernels read. A number that these lack becomes the nearest one, which is no
    row, class or position either.
    """
    name = type_name(numbers)
    if name == "int32":
        return numbers
    if name == "uint64":
        raise TypeError("numbers of rows, classes and positions are integers of at most 64 bits with a sign, not uint64")
    ends = (0, 2**31 - 1) if name == "uint32" else (-(2**31), 2**31 - 1)
    is_wide = name in ("int64", "uint32")
    if is_torch(numbers):
        import torch

        # PyTorch computes little with integers without a sign.
        return (numbers.to(torch.int64).clamp(*ends) if is_wide else numbers).to(torch.int32)
    return (numbers.clip(*ends) if is_wide else numbers).astype("int32")


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
    check_arrays(logits=logits, targets=targets)
    _check_rows(logits, targets, vocabulary)
    if is_jax(logits):
        if vocabulary is not None:
            logits = logits[:, :vocabulary]
        return through_jax(  # type: ignore[no-any-return]
            "cross_entropy_rows", logits, targets, ignored=ignored, smoothing=smoothing, z_loss=z_loss, softcap=softcap, on=on
        )
    if records(logits, targets, on=on):
        if vocabulary is not None:
            logits = logits[:, :vocabulary]
        return through_torch("cross_entropy", logits, targets, ignored, smoothing, z_loss, softcap)  # type: ignore[no-any-return]
    return entropy(logits, targets, settings_of(ignored, smoothing, z_loss, softcap), vocabulary, on)


def entropy(logits: Any, targets: Any, settings: Options, vocabulary: int | None, on: str | None) -> tuple[Any, Any]:
    """``cross_entropy_rows``, launched."""
    _check_rows(logits, targets, vocabulary)
    if by_definition(on, logits, integers=(targets,)):
        options: Any = dict(settings)
        return definitions.cross_entropy(logits[:, :vocabulary], targets, **options)
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
    check_arrays("out", logits=logits, targets=targets, lse=lse, d_loss=d_loss, out=out)
    options = {"ignored": ignored, "smoothing": smoothing, "z_loss": z_loss, "softcap": softcap}
    if is_jax(logits):
        named = {"vocabulary": vocabulary, "out": out, "on": on}
        return through_jax("cross_entropy_rows_backward", logits, targets, lse, d_loss, **options, **named)
    if records(logits, targets, lse, d_loss, on=on, out=out):
        if vocabulary is not None:
            raise TypeError("a graph of padded rows is not traced: leave `vocabulary` out")
        return through_torch("cross_entropy_backward", logits, targets, lse, d_loss, *options.values())
    return entropy_backward(logits, targets, lse, d_loss, settings_of(**options), vocabulary, out, on)  # type: ignore[arg-type]


def entropy_backward(
    logits: Any, targets: Any, lse: Any, d_loss: Any, settings: Options, vocabulary: int | None, out: Any, on: str | None
) -> Any:
    """``cross_entropy_rows_backward``, launched."""
    _check_rows(logits, targets, vocabulary)
    for name, array in (("lse", lse), ("d_loss", d_loss)):
        if tuple(array.shape) != tuple(targets.shape):
            raise ValueError(f"{name} has the shape {tuple(array.shape)}, and the targets {tuple(targets.shape)}")
    if out is not None:
        check_out(out, tuple(logits.shape), logits)
    padded = vocabulary is not None
    if by_definition(on, logits, lse, d_loss, integers=(targets,)):
        if padded:
            raise ValueError("definitions take rows without padding")
        named: Any = dict(settings)
        return stored(out, definitions.cross_entropy_backward(logits, targets, lse, d_loss, **named))
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
    inputs = {"targets": contiguous(targets, on), "lse": contiguous(lse, on), "d_loss": contiguous(d_loss, on)}
    sizes = sizes_of_rows({"logits": own}, facts)
    if not padded and _is_joined(own, facts):
        options = (*options, ("joined", True))
        sizes = {"M": own.rows, "elements": own.rows * own.length}
    kernels = planned("cross_entropy", options, True, machine_of(logits))
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
    return definitions.narrow(loss.sum() / (count.clamp(min=1) if is_torch(count) else count.clip(1)), loss)


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
    >>> round(float(cross_entropy(np.zeros((4, 2), np.float32), np.array([0, 1, -100, 0], np.int32))), 4)
    0.6931
    """
    check_arrays(logits=logits, targets=targets)
    _check_reduction(reduction)
    # The same numbers decide which rows count for the mean.
    targets = definitions.as_number(targets)
    shape = tuple(targets.shape)
    if tuple(logits.shape[:-1]) != shape:
        raise ValueError(f"logits are (..., V) and targets (...), and they have the shapes {tuple(logits.shape)} and {shape}")
    flat = definitions.flat_rows(logits)
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
    >>> round(float(linear_cross_entropy(x, weight, np.array([0, 1, 1, 0], np.int32))), 4)
    0.6931
    """
    check_arrays(x=x, weight=weight, targets=targets)
    _check_reduction(reduction)
    if reduction == "none":
        raise ValueError('a fused loss is reduced: "mean" or "sum"')
    flat = definitions.flat_rows(x)
    classes = targets.reshape(-1)
    settings, is_same = (ignored, smoothing, z_loss, softcap), is_invariant(invariant)
    if is_jax(x):
        named = {"ignored": ignored, "smoothing": smoothing, "z_loss": z_loss, "softcap": softcap}
        more = {"is_mean": reduction == "mean", "rows": rows or 0, "invariant": is_same, "on": on}
        return through_jax("linear_cross_entropy", flat, weight, classes, **more, **named)
    if records(x, weight, targets, on=on):
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


def chunk_of(x: Any, weight: Any, targets: Any, rows: int) -> int:
    """The rows that are computed at once, ``rows`` if it is not 0, after the shapes were checked."""
    if len(weight.shape) != 2 or weight.shape[1] != x.shape[1] or tuple(targets.shape) != tuple(x.shape[:1]):
        raise ValueError(
            f"x is (M,K), weight (V,K) and targets (M), and they have the shapes {tuple(x.shape)}, {tuple(weight.shape)} and "
            f"{tuple(targets.shape)}"
        )
    if rows < 0 or weight.shape[0] == 0:
        raise ValueError(f"a loss is of chunks of rows and of classes, not of {rows} rows and {weight.shape[0]} classes")
    return rows or max(128, _CHUNK_BYTES // (2 * weight.shape[0]) // 128 * 128)


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
    from ._products import multiply, product

    size = chunk_of(x, weight, targets, rows)
    count, vocabulary = x.shape[0], weight.shape[0]
    settings = settings_of(ignored, smoothing, z_loss, softcap)
    space = definitions.namespace(x)
    is_defined = by_definition(on, x, weight, integers=(targets,))
    counted = (definitions.as_number(targets) != ignored).sum()
    counted = counted.clamp(min=1) if is_torch(counted) else counted.clip(1)
    # In the type of the loss: the quotient of integers is of float32 in PyTorch, and of float64 in NumPy.
    counted = definitions.narrow(counted, definitions.wide(x[:0]))
    scale = 1 / counted if is_mean else counted * 0 + 1
    d_weight = None
    d_x: Any = space.empty_like(x) if needs_gradients else None
    losses = []
    for first in range(0, count, size):
        part, classes = x[first : first + size], targets[first : first + size]
        classified = None
        if is_defined:
            logits = multiply(part, weight, None, invariant=invariant, on=on)
        else:
            # Rows are padded to whole vectors of 16 bytes, whatever the number of classes is.
            logits = empty(part, (part.shape[0], -(-vocabulary // 8) * 8))
            multiply(part, weight, None, out=logits[:, :vocabulary], invariant=invariant, on=on)
            classified = vocabulary
        loss, lse = entropy(logits, classes, settings, classified, on)
        losses.append(loss.sum())
        if needs_gradients:
            d_loss = definitions.narrow(space.ones_like(loss) * scale, loss)
            d_logits = entropy_backward(logits, classes, lse, d_loss, settings, classified, logits, on)[:, :vocabulary]
            product(d_logits, weight, d_x[first : first + size], invariant, on)
            d_weight = _summed(d_logits, part, d_weight, on)
    if not losses:
        # A sum over no rows.
        nothing = definitions.wide(x).sum()
        return nothing, d_x, space.zeros_like(weight) if needs_gradients else None
    loss = sum(losses[1:], losses[0]) * scale
    return loss, d_x, None if d_weight is None else definitions.narrow(d_weight, weight)
