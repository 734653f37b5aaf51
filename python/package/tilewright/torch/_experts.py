"""A mixture of experts, and matrices of 8 bits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..ops import _experts
from ..ops._experts import TILE_ROWS, Places
from ._register import fresh, like, one_by_one, register, wide


def _route(logits: Tensor, chosen: int, over_all: bool) -> tuple[Tensor, Tensor]:
    experts, weights = _experts.choose(logits, chosen, over_all, None)
    return fresh(experts), fresh(weights)


def _route_backward(logits: Tensor, experts: Tensor, weights: Tensor, d_weights: Tensor, over_all: bool) -> Tensor:
    return fresh(_experts.route_backward(logits, experts, weights, d_weights, over_all=over_all), logits)


def _fake_route(logits: Tensor, chosen: int, over_all: bool) -> tuple[Tensor, Tensor]:
    shape = (logits.shape[0], chosen)
    return like(logits, shape, torch.int32), like(logits, shape, wide(logits))


_of_route = register("route", _route, _fake_route)
_by_route = register("route_backward", _route_backward, lambda logits, *others: like(logits))


def _keep_route(ctx: Any, inputs: Any, output: Any) -> None:
    logits, _, ctx.over_all = inputs
    ctx.save_for_backward(logits, *output)
    ctx.mark_non_differentiable(output[0])
    ctx.set_materialize_grads(False)


def _derive_route(ctx: Any, d_experts: Any, d_weights: Tensor | None) -> Any:
    if d_weights is None:
        return None, None, None
    return _by_route(*ctx.saved_tensors, d_weights, ctx.over_all), None, None


def _nobody(tensor: Tensor) -> Tensor:
    return tensor.new_empty(0)


def _expert_places(experts: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    places, choices, tile_experts, first_tiles, tiles = (fresh(own, experts) for own in _experts.place(experts, count, None))
    return places, choices, tile_experts, first_tiles, tiles


def _fake_places(experts: Tensor, count: int) -> tuple[Tensor, ...]:
    tokens, chosen = experts.shape
    tiles = (tokens * chosen + (TILE_ROWS - 1) * count) // TILE_ROWS
    return tuple(like(experts, shape, torch.int32) for shape in ((tokens, chosen), (tiles * TILE_ROWS,), (tiles,), (count,), (count,)))


_of_places = register("expert_places", _expert_places, _fake_places)


def _permute(x: Tensor, places: Tensor, choices: Tensor) -> Tensor:
    none = _nobody(places)
    return fresh(_experts.to_places(x, Places(places, choices, none, none, none), None), x)


def _permute_backward(d_y: Tensor, places: Tensor) -> Tensor:
    return fresh(_experts.permute_backward(d_y, places), d_y)


_of_permute = register("permute", _permute, lambda x, places, choices: like(x, (choices.shape[0], x.shape[1])))
_by_permute = register(
    "permute_backward", _permute_backward, lambda d_y, places: like(d_y, (places.shape[0], d_y.shape[1]))
)


def _keep_permute(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[1])


def _derive_permute(ctx: Any, d_y: Tensor) -> Any:
    return _by_permute(d_y, *ctx.saved_tensors), None, None


def _expert_product(
    x: Tensor,
    w: Tensor,
    tile_experts: Tensor,
    first_tiles: Tensor,
    tiles: Tensor,
    transposed: bool,
    invariant: bool,
) -> Tensor:
    none = _nobody(x)
    return fresh(_experts.multiply_rows(x, w, Places(none, none, tile_experts, first_tiles, tiles), transposed, invariant, None), x)


def _expert_product_backward(
    x: Tensor,
    w: Tensor,
    d_y: Tensor,
    tile_experts: Tensor,
    first_tiles: Tensor,
    tiles: Tensor,
    transposed: bool,
    invariant: bool,
) -> tuple[Tensor, Tensor]:
    none = _nobody(x)
    where = Places(none, none, tile_experts, first_tiles, tiles)
    d_x, d_w = _experts.expert_product_backward(x, w, d_y, where, transposed=transposed, invariant=invariant)
    return fresh(d_x, d_y), fresh(d_w)


_of_product = register(
    "expert_product",
    _expert_product,
    lambda x, w, tile_experts, first_tiles, tiles, transposed, invariant=False: like(x, (x.shape[0], w.shape[1 if transposed else 2])),
)
_by_product = register("expert_product_backward", _expert_product_backward, lambda x, w, *others: (like(x), like(w)))


def _keep_product(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, ctx.transposed, ctx.invariant = inputs
    ctx.save_for_backward(*tensors)


def _derive_product(ctx: Any, d_y: Tensor) -> Any:
    x, w, *where = ctx.saved_tensors
    d_x, d_w = _by_product(x, w, d_y, *where, ctx.transposed, ctx.invariant)
    return (d_x, d_w, *(None,) * 5)


def _combine(x: Tensor, places: Tensor, choices: Tensor, weights: Tensor) -> Tensor:
    none = _nobody(places)
    return fresh(_experts.weigh(x, Places(places, choices, none, none, none), weights, None), x)


def _combine_backward(
    x: Tensor, d_y: Tensor, places: Tensor, choices: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor]:
    d_x, d_weights = _experts.combine_backward(x, d_y, places, choices, weights)
    return fresh(d_x, d_y), fresh(d_weights)


_of_combine = register("combine", _combine, lambda x, places, *others: like(x, (places.shape[0], x.shape[1])))
_by_combine = register(
    "combine_backward", _combine_backward, lambda x, d_y, places, choices, weights: (like(x), like(weights))
)


def _keep_combine(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _derive_combine(ctx: Any, d_y: Tensor) -> Any:
    x, places, choices, weights = ctx.saved_tensors
    d_x, d_weights = _by_combine(x, d_y, places, choices, weights)
    return d_x, None, None, d_weights


_of_route.derive_by(_derive_route, _keep_route)
_of_permute.derive_by(_derive_permute, _keep_permute)
_of_product.derive_by(_derive_product, _keep_product)
_of_combine.derive_by(_derive_combine, _keep_combine)
one_by_one(_of_route, _by_route, _of_places, _of_permute, _by_permute, _of_product, _by_product, _of_combine, _by_combine)


def _quantize(x: Tensor, square: bool, power_of_two: bool) -> tuple[Tensor, Tensor]:
    q, scales = _experts.to_8_bits(x, square, power_of_two, None)
    return fresh(q), fresh(scales)


def _fake_quantize(x: Tensor, square: bool, power_of_two: bool) -> tuple[Tensor, Tensor]:
    (rows, columns), high = x.shape, TILE_ROWS if square else 1
    return like(x, dtype=torch.float8_e4m3fn), like(x, (-(-rows // high), -(-columns // 128)), torch.float32)


def _dequantize(q: Tensor, scales: Tensor, square: bool, element: str) -> Tensor:
    return fresh(_experts.from_8_bits(q, scales, square, element, None))


_of_quantize = register("quantize", _quantize, _fake_quantize)
_of_dequantize = register(
    "dequantize", _dequantize, lambda q, scales, square, element: like(q, dtype=getattr(torch, _experts._ELEMENTS[element]))
)
_of_quantize.derive_not("it rounds to numbers of 8 bits. Pass `x.detach()`")
_of_dequantize.derive_not("numbers of 8 bits are rounded. Pass `scales.detach()`")
one_by_one(_of_quantize, _of_dequantize)
