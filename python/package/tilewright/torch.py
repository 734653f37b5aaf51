"""Operators of PyTorch: what `tilewright.ops` computes, with gradients, in graphs and compiled.

>>> import torch, tilewright as tw                          # doctest: +SKIP
>>> step = torch.compile(lambda x, w: tw.ops.rms_norm(x, w), fullgraph=True)  # doctest: +SKIP

Every operator is registered in the namespace ``tilewright`` of ``torch.ops``, with a fake
implementation, derivatives and a rule for ``vmap``. The functions of ``tilewright.ops`` call these
where PyTorch records gradients or traces, so a model needs nothing of this module but ``patch`` and
``operator``.

On the host the operators run by their definitions, so tests of models need no GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Optional

import torch
from torch import Tensor

from . import ops

__all__ = ["operators"]

#: The registered operators by their names.
operators = SimpleNamespace()


def _fresh(y: Tensor, *inputs: Optional[Tensor]) -> Tensor:
    """A contiguous tensor that shares no memory with the inputs, as the fake implementations
    promise.
    """
    y = y.contiguous()
    storage = y.untyped_storage().data_ptr()
    if any(own is not None and storage and own.untyped_storage().data_ptr() == storage for own in inputs):
        return y.clone()
    return y


def _like(x: Tensor, shape: Any = None, dtype: Any = None) -> Tensor:
    """A contiguous tensor without contents."""
    return torch.empty(x.shape if shape is None else shape, dtype=x.dtype if dtype is None else dtype, device=x.device)


def _register(
    name: str, function: Callable[..., Any], fake: Callable[..., Any], mutates: tuple[str, ...] = ()
) -> Any:
    """Registers an operator: `function` is annotated with the types of its schema."""

    own = torch.library.custom_op(f"tilewright::{name}", mutates_args=mutates)(function)
    own.register_fake(fake)
    setattr(operators, name, own)
    return own


def _batched(own: Any, moves: Callable[..., Any]) -> None:
    """Registers the rule for ``vmap``: where ``moves`` says how, a call on arrays with one axis more;
    else a call for each element of the batch.
    """

    def rule(info: Any, dims: Any, *arguments: Any) -> Any:
        leading = [
            argument.movedim(dim, 0) if isinstance(argument, Tensor) and dim is not None else argument
            for argument, dim in zip(arguments, dims)
        ]
        is_batched = [isinstance(argument, Tensor) and dim is not None for argument, dim in zip(arguments, dims)]
        moved = moves(leading, is_batched, info.batch_size)
        if moved is not None:
            made = own(*moved)
            return made, 0 if isinstance(made, Tensor) else tuple(0 for _ in made)
        each = [
            own(*[argument[number] if batched else argument for argument, batched in zip(leading, is_batched)])
            for number in range(info.batch_size)
        ]
        if isinstance(each[0], Tensor):
            return torch.stack(each), 0
        return tuple(torch.stack(parts) for parts in zip(*each)), tuple(0 for _ in each[0])

    own.register_vmap(rule)


def _spread(leading: list[Any], is_batched: list[bool], size: int, *places: int) -> bool:
    """Whether the arguments at these places are the only tensors of a batch; those of them that are
    in none are repeated.
    """
    if any(batched and place not in places for place, batched in enumerate(is_batched)):
        return False
    for place in places:
        if isinstance(leading[place], Tensor) and not is_batched[place]:
            leading[place] = leading[place].expand(size, *leading[place].shape)
    return True


# Softmax.


def _row_operator(name: str) -> None:
    def forward(x: Tensor, axis: int) -> Tensor:
        with torch.no_grad():
            return _fresh(getattr(ops, name)(x, axis=axis), x)

    def backward(x: Tensor, d_y: Tensor, axis: int) -> Tensor:
        with torch.no_grad():
            return _fresh(getattr(ops, f"{name}_backward")(x, d_y, axis=axis), x, d_y)

    of = _register(name, forward, lambda x, axis: _like(x))
    by = _register(f"{name}_backward", backward, lambda x, d_y, axis: _like(x))

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.axis = inputs
        ctx.save_for_backward(x)

    def derive(ctx: Any, d_y: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return by(x, d_y, ctx.axis), None

    of.register_autograd(derive, setup_context=keep)

    def moves(leading: list[Any], is_batched: list[bool], size: int) -> Any:
        tensors = tuple(range(len(leading) - 1))
        if not _spread(leading, is_batched, size, *tensors):
            return None
        if leading[0].dim() == 1:
            # A number of a batch is a row of one element, and has no axis to shift.
            return None
        axis = leading[-1]
        return [*leading[:-1], axis if axis < 0 else axis + 1]

    _batched(of, moves)
    _batched(by, moves)


_row_operator("softmax")
_row_operator("log_softmax")


# Norms.


def _rms_norm(x: Tensor, weight: Optional[Tensor], epsilon: float, less_one: bool) -> Tensor:
    with torch.no_grad():
        return _fresh(ops.rms_norm(x, weight, epsilon=epsilon, weight_less_one=less_one), x)


def _rms_norm_residual(
    x: Tensor, weight: Optional[Tensor], residual: Tensor, epsilon: float, less_one: bool
) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        y, total = ops.rms_norm(x, weight, residual=residual, epsilon=epsilon, weight_less_one=less_one)
        return _fresh(y, x, residual), _fresh(total, x, residual)


def _rms_norm_backward(
    x: Tensor, weight: Optional[Tensor], d_y: Tensor, d_sum: Optional[Tensor], epsilon: float, less_one: bool
) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        d_x, d_weight = ops.rms_norm_backward(x, weight, d_y, d_sum=d_sum, epsilon=epsilon, weight_less_one=less_one)
        return _fresh(d_x, d_y), x.new_empty(0) if d_weight is None else _fresh(d_weight)


def _layer_norm(x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], epsilon: float) -> Tensor:
    with torch.no_grad():
        return _fresh(ops.layer_norm(x, weight, bias, epsilon=epsilon), x)


def _layer_norm_residual(
    x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], residual: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        y, total = ops.layer_norm(x, weight, bias, residual=residual, epsilon=epsilon)
        return _fresh(y, x, residual), _fresh(total, x, residual)


def _layer_norm_backward(
    x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], d_y: Tensor, d_sum: Optional[Tensor], epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    with torch.no_grad():
        made = ops.layer_norm_backward(x, weight, bias, d_y, d_sum=d_sum, epsilon=epsilon)
        # An operator returns tensors alone: what there is not is empty.
        d_x, d_weight, d_bias = (x.new_empty(0) if own is None else _fresh(own, d_y) for own in made)
        return d_x, d_weight, d_bias


def _vector(x: Tensor, weight: Optional[Tensor]) -> Tensor:
    return x.new_empty(0) if weight is None else _like(weight)


_of_rms = _register("rms_norm", _rms_norm, lambda x, weight, epsilon, less_one: _like(x))
_of_rms_residual = _register(
    "rms_norm_residual", _rms_norm_residual, lambda x, weight, residual, epsilon, less_one: (_like(x), _like(x))
)
_by_rms = _register(
    "rms_norm_backward", _rms_norm_backward, lambda x, weight, d_y, d_sum, epsilon, less_one: (_like(x), _vector(x, weight))
)
_of_layer = _register("layer_norm", _layer_norm, lambda x, weight, bias, epsilon: _like(x))
_of_layer_residual = _register(
    "layer_norm_residual", _layer_norm_residual, lambda x, weight, bias, residual, epsilon: (_like(x), _like(x))
)
_by_layer = _register(
    "layer_norm_backward",
    _layer_norm_backward,
    lambda x, weight, bias, d_y, d_sum, epsilon: (_like(x), _vector(x, weight), _vector(x, bias)),
)


def _keep_rms(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, ctx.epsilon, ctx.less_one = inputs
    ctx.save_for_backward(x, weight)


def _derive_rms(ctx: Any, d_y: Tensor) -> Any:
    x, weight = ctx.saved_tensors
    d_x, d_weight = _by_rms(x, weight, d_y, None, ctx.epsilon, ctx.less_one)
    return d_x, None if weight is None else d_weight, None, None


def _keep_rms_residual(ctx: Any, inputs: Any, output: Any) -> None:
    _, weight, _, ctx.epsilon, ctx.less_one = inputs
    ctx.save_for_backward(output[1], weight)


def _derive_rms_residual(ctx: Any, d_y: Tensor, d_sum: Tensor) -> Any:
    total, weight = ctx.saved_tensors
    d_x, d_weight = _by_rms(total, weight, d_y, d_sum, ctx.epsilon, ctx.less_one)
    return d_x, None if weight is None else d_weight, d_x, None, None


def _keep_layer(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias, ctx.epsilon = inputs
    ctx.save_for_backward(x, weight, bias)


def _derive_layer(ctx: Any, d_y: Tensor) -> Any:
    x, weight, bias = ctx.saved_tensors
    d_x, d_weight, d_bias = _by_layer(x, weight, bias, d_y, None, ctx.epsilon)
    return d_x, None if weight is None else d_weight, None if bias is None else d_bias, None


def _keep_layer_residual(ctx: Any, inputs: Any, output: Any) -> None:
    _, weight, bias, _, ctx.epsilon = inputs
    ctx.save_for_backward(output[1], weight, bias)


def _derive_layer_residual(ctx: Any, d_y: Tensor, d_sum: Tensor) -> Any:
    total, weight, bias = ctx.saved_tensors
    d_x, d_weight, d_bias = _by_layer(total, weight, bias, d_y, d_sum, ctx.epsilon)
    return d_x, None if weight is None else d_weight, None if bias is None else d_bias, d_x, None


_of_rms.register_autograd(_derive_rms, setup_context=_keep_rms)
_of_rms_residual.register_autograd(_derive_rms_residual, setup_context=_keep_rms_residual)
_of_layer.register_autograd(_derive_layer, setup_context=_keep_layer)
_of_layer_residual.register_autograd(_derive_layer_residual, setup_context=_keep_layer_residual)
_batched(_of_rms, lambda leading, batched, size: leading if _spread(leading, batched, size, 0) else None)
_batched(_of_layer, lambda leading, batched, size: leading if _spread(leading, batched, size, 0) else None)
_batched(_of_rms_residual, lambda leading, batched, size: leading if _spread(leading, batched, size, 0, 2) else None)
_batched(_of_layer_residual, lambda leading, batched, size: leading if _spread(leading, batched, size, 0, 3) else None)
# A derivative by weights is one for each element of the batch.
_batched(_by_rms, lambda leading, batched, size: None)
_batched(_by_layer, lambda leading, batched, size: None)


# Functions of elements.


def _activation(x: Tensor, up: Optional[Tensor], function: str) -> Tensor:
    with torch.no_grad():
        return _fresh(ops.activation(x, function, up=up), x, up)


def _activation_backward(x: Tensor, up: Optional[Tensor], d_y: Tensor, function: str) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        d_x, d_up = ops.activation_backward(x, d_y, function, up=up)
        return _fresh(d_x, x, d_y, up), x.new_empty(0) if d_up is None else _fresh(d_up, x, d_y, up)


_of_activation = _register("activation", _activation, lambda x, up, function: _like(x))
_by_activation = _register(
    "activation_backward", _activation_backward, lambda x, up, d_y, function: (_like(x), x.new_empty(0) if up is None else _like(up))
)


def _keep_activation(ctx: Any, inputs: Any, output: Any) -> None:
    x, up, ctx.function = inputs
    ctx.save_for_backward(x, up)


def _derive_activation(ctx: Any, d_y: Tensor) -> Any:
    x, up = ctx.saved_tensors
    d_x, d_up = _by_activation(x, up, d_y, ctx.function)
    return d_x, None if up is None else d_up, None


_of_activation.register_autograd(_derive_activation, setup_context=_keep_activation)
_batched(_of_activation, lambda leading, batched, size: leading if _spread(leading, batched, size, 0, 1) else None)
_batched(
    _by_activation,
    lambda leading, batched, size: leading if leading[1] is not None and _spread(leading, batched, size, 0, 1, 2) else None,
)


def _dropout(x: Tensor, probability: float, seed: int) -> Tensor:
    with torch.no_grad():
        return _fresh(ops.dropout(x, probability, seed), x)


_of_dropout = _register("dropout", _dropout, lambda x, probability, seed: _like(x))


def _keep_dropout(ctx: Any, inputs: Any, output: Any) -> None:
    _, ctx.probability, ctx.seed = inputs


def _derive_dropout(ctx: Any, d_y: Tensor) -> Any:
    return _of_dropout(d_y, ctx.probability, ctx.seed), None, None


_of_dropout.register_autograd(_derive_dropout, setup_context=_keep_dropout)


# Products.


def _linear(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    with torch.no_grad():
        return _fresh(ops.linear(x, weight, bias), x)


def _linear_backward(x: Tensor, weight: Tensor, d_y: Tensor, bias: bool) -> tuple[Tensor, Tensor, Tensor]:
    with torch.no_grad():
        d_x, d_weight, d_bias = ops.linear_backward(x, weight, d_y, bias=bias)
        return _fresh(d_x), _fresh(d_weight), x.new_empty(0) if d_bias is None else _fresh(d_bias)


def _matmul(a: Tensor, b: Tensor) -> Tensor:
    with torch.no_grad():
        return _fresh(ops.matmul(a, b), a)


_of_linear = _register("linear", _linear, lambda x, weight, bias: _like(x, (*x.shape[:-1], weight.shape[0])))
_by_linear = _register(
    "linear_backward",
    _linear_backward,
    lambda x, weight, d_y, bias: (_like(x), _like(weight), _like(weight, weight.shape[:1]) if bias else x.new_empty(0)),
)
_of_matmul = _register("matmul", _matmul, lambda a, b: _like(a, (*a.shape[:-1], b.shape[-1])))


def _keep_linear(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias = inputs
    ctx.bias = bias is not None
    ctx.save_for_backward(x, weight)


def _derive_linear(ctx: Any, d_y: Tensor) -> Any:
    x, weight = ctx.saved_tensors
    d_x, d_weight, d_bias = _by_linear(x, weight, d_y, ctx.bias)
    return d_x, d_weight, d_bias if ctx.bias else None


def _keep_matmul(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _derive_matmul(ctx: Any, d_y: Tensor) -> Any:
    a, b = ctx.saved_tensors
    return _of_matmul(d_y, b.transpose(-1, -2)), _of_matmul(a.transpose(-1, -2), d_y)


_of_linear.register_autograd(_derive_linear, setup_context=_keep_linear)
_of_matmul.register_autograd(_derive_matmul, setup_context=_keep_matmul)
_batched(_of_linear, lambda leading, batched, size: leading if _spread(leading, batched, size, 0) else None)
_batched(_by_linear, lambda leading, batched, size: None)
_batched(
    _of_matmul,
    lambda leading, batched, size: leading if leading[0].dim() - batched[0] == 2 and _spread(leading, batched, size, 0, 1) else None,
)
