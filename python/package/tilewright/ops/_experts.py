"""A mixture of experts, and matrices of 8 bits with scales for blocks."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _definitions as definitions
from .. import _native
from .._arrays import empty, is_torch
from .._definitions import is_jax
from .._operators import Options, Result, again, alignment, launch, machine_of, planned
from ._common import by_definition, check_arrays, check_type, contiguous, records, through_jax, through_torch
from ._invariance import is_invariant
from ._losses import as_i32

#: The rows of a tile of a product: the rows of an expert begin at a multiple of it.
TILE_ROWS = 128


class Places(NamedTuple):
    """Where the choices of tokens go, in integers of 32 bits: the rows of an expert are together."""

    #: The row of each choice, (T,C); -1 if it goes nowhere.
    places: Any
    #: The choice of each row, (P); -1 if it is nobody's.
    choices: Any
    #: The expert of each 128 rows; the number of experts if they are nobody's.
    tile_experts: Any
    #: The first 128 rows of each expert, and how many times 128 rows it has.
    first_tiles: Any
    tiles: Any


def _run(
    name: str,
    options: Options,
    inputs: dict[str, Any],
    results: dict[str, Result],
    sizes: dict[str, int],
    on: str | None,
    is_backward: bool = False,
) -> tuple[Any, ...]:
    """Launches an operator on contiguous arrays, or repeats an earlier call."""
    inputs = {key: contiguous(array, on) for key, array in inputs.items()}
    call = (name, options, is_backward)
    arrays = tuple(inputs.values())
    if on is None and (found := again(call, arrays)) is not None:
        return found if isinstance(found, tuple) else (found,)
    kernels = planned(name, options, is_backward, machine_of(arrays[0]))
    return launch(kernels, inputs, results, sizes, on, call=call, called=arrays)


def route(logits: Any, chosen: int, *, over_all: bool = False, on: str | None = None) -> tuple[Any, Any]:
    """The ``chosen`` experts of each token, (T,E), with the greatest logits, the greatest first, and
    their weights: the softmax among the chosen, or ``over_all`` experts. The results are (T,chosen), of
    int32 and float32.

    >>> import numpy as np
    >>> [own.tolist() for own in route(np.array([[0, 2, 1, 2]], np.float32), 2)]
    [[[1, 3]], [[0.5, 0.5]]]
    """
    check_arrays(logits=logits)
    if len(logits.shape) != 2 or not 1 <= chosen <= logits.shape[1]:
        raise ValueError(f"logits are (T,E), of which 1 to E are chosen: they have the shape {tuple(logits.shape)}, and {chosen} are chosen")
    if is_jax(logits):
        return through_jax("route", logits, chosen, over_all=over_all, on=on)  # type: ignore[no-any-return]
    if records(logits, on=on):
        return through_torch("route", logits, chosen, over_all)  # type: ignore[no-any-return]
    return choose(logits, chosen, over_all, on)


def choose(logits: Any, chosen: int, over_all: bool, on: str | None) -> tuple[Any, Any]:
    """``route``, launched."""
    if by_definition(on, logits):
        return definitions.route(logits, chosen, over_all)
    tokens, experts = logits.shape
    results = {"experts": Result((tokens, chosen), "i32"), "weights": Result((tokens, chosen), "f32")}
    if tokens == 0:
        made = [empty(logits, own.shape, own.element) for own in results.values()]
        return made[0], made[1]
    options = _route_options(logits, chosen, over_all)
    found = _run("route", options, {"logits": logits}, results, {"T": tokens}, on)
    return found[0], found[1]


def _route_options(logits: Any, chosen: int, over_all: bool) -> Options:
    element = _native.array_axes(logits)[0]
    return (("experts", logits.shape[1]), ("chosen", chosen), ("element", element), ("over_all", over_all))


def route_backward(
    logits: Any, experts: Any, weights: Any, d_weights: Any, *, over_all: bool = False, on: str | None = None
) -> Any:
    """The derivative of ``route`` by the logits, from its results and the derivative by the weights.

    >>> import numpy as np
    >>> logits = np.array([[0, 2, 1, 2]], np.float32)
    >>> route_backward(logits, *route(logits, 2), np.array([[1, 0]], np.float32)).tolist()
    [[0.0, 0.25, 0.0, -0.25]]
    """
    check_arrays(logits=logits, experts=experts, weights=weights, d_weights=d_weights)
    if by_definition(on, logits, weights, d_weights, integers=(experts,)):
        return definitions.route_backward(logits, experts, weights, d_weights, over_all)
    inputs = {"experts": experts, "weights": weights, "d_weights": d_weights, **({"logits": logits} if over_all else {})}
    results = {"d_logits": Result(tuple(logits.shape), _native.array_axes(logits)[0])}
    options = _route_options(logits, experts.shape[1], over_all)
    return _run("route", options, inputs, results, {"T": logits.shape[0]}, on, True)[0]


def expert_places(experts: Any, count: int, *, on: str | None = None) -> Places:
    """The rows of the choices of tokens, (T,C), among ``count`` experts. The rows of an expert are
    together, in the order of the choices, and begin at a multiple of 128.

    >>> import numpy as np
    >>> expert_places(np.array([[1], [0], [1]], np.int32), 2).places.tolist()
    [[128], [0], [129]]
    """
    check_arrays(experts=experts)
    if len(experts.shape) != 2:
        raise ValueError(f"experts are (T,C), and have the shape {tuple(experts.shape)}")
    if count < 1:
        raise ValueError(f"there are experts from 1 on, not {count}")
    if is_jax(experts):
        return Places(*through_jax("expert_places", experts, count, on=on))
    if records(experts, on=on):
        return Places(*through_torch("expert_places", experts, count))
    return Places(*place(experts, count, on))


def place(experts: Any, count: int, on: str | None) -> tuple[Any, ...]:
    """``expert_places``, launched."""
    if by_definition(on, integers=(experts,)):
        return definitions.expert_places(experts, count, TILE_ROWS)
    choices = experts.shape[0] * experts.shape[1]
    rows = (choices + (TILE_ROWS - 1) * count) // TILE_ROWS * TILE_ROWS
    results = {
        "places": Result(tuple(experts.shape), "i32"),
        "choices": Result((rows,), "i32"),
        "tile_experts": Result((rows // TILE_ROWS,), "i32"),
        "first_tiles": Result((count,), "i32"),
        "tiles": Result((count,), "i32"),
    }
    if choices == 0:
        raise ValueError("nobody chooses: an array of no choices has no places")
    inputs = {"experts": as_i32(experts)}
    return _run("expert_places", (("experts", count),), inputs, results, {"A": choices, "P": rows}, on)


def permute(x: Any, where: Places, *, on: str | None = None) -> Any:
    """The rows of tokens, (T,N), at the places of their choices, (P,N): 0 where a row is nobody's.

    >>> import numpy as np
    >>> where = expert_places(np.array([[0], [0]], np.int32), 1)
    >>> permute(np.array([[5], [6]], np.float32), where)[:3].tolist()
    [[5.0], [6.0], [0.0]]
    """
    check_arrays(x=x, places=where.places, choices=where.choices)
    if len(x.shape) != 2 or x.shape[0] != where.places.shape[0]:
        raise ValueError(f"x is (T,N), and has the shape {tuple(x.shape)} beside the places {tuple(where.places.shape)}")
    if is_jax(x):
        return through_jax("permute", x, where.places, where.choices, on=on)
    if records(x, where.places, where.choices, on=on):
        return through_torch("permute", x, where.places, where.choices)
    return to_places(x, where, on)


def to_places(x: Any, where: Places, on: str | None) -> Any:
    """``permute``, launched."""
    chosen = where.places.shape[1]
    if by_definition(on, x, integers=(where.choices,)):
        return definitions.permute(x, where.choices, chosen)
    rows, element = where.choices.shape[0], _native.array_axes(x)[0]
    options: Options = (("length", x.shape[1]), ("chosen", chosen), ("element", element))
    results = {"y": Result((rows, x.shape[1]), element)}
    return _run("permute", options, {"x": x, "choices": where.choices}, results, {"T": x.shape[0], "P": rows}, on)[0]


def permute_backward(d_y: Any, places: Any, *, on: str | None = None) -> Any:
    """The derivative of ``permute`` by ``x``: for each token the sum of the rows of its choices.

    >>> import numpy as np
    >>> permute_backward(np.array([[1], [2]], np.float32), np.array([[0, 1]], np.int32)).tolist()
    [[3.0]]
    """
    check_arrays(d_y=d_y, places=places)
    if by_definition(on, d_y, integers=(places,)):
        return definitions.permute_backward(d_y, places)
    (tokens, chosen), element = places.shape, _native.array_axes(d_y)[0]
    options: Options = (("length", d_y.shape[1]), ("chosen", chosen), ("element", element))
    results = {"d_x": Result((tokens, d_y.shape[1]), element)}
    sizes = {"T": tokens, "P": d_y.shape[0]}
    return _run("permute", options, {"d_y": d_y, "places": places}, results, sizes, on, True)[0]


def expert_product(
    x: Any, w: Any, where: Places, *, transposed: bool = True, invariant: bool | None = None, on: str | None = None
) -> Any:
    """The rows of each expert, (P,K), times its matrix: ``w`` is (E,N,K), as of linear layers, or (E,K,N)
    if not ``transposed``. Elements are bf16 or f16 on a device, and K and N multiples of 8.

    A row of the kernel's result has the same bits for every number of rows of its expert, and of
    others: one program serves all sizes. ``invariant`` asks for the same on the host, where rows are
    then multiplied one by one.

    >>> import numpy as np
    >>> where = expert_places(np.array([[0]], np.int32), 1)
    >>> expert_product(np.ones((128, 8), "f2"), np.ones((1, 8, 8), "f2"), where)[0, 0]
    np.float16(8.0)
    """
    check_arrays(x=x, w=w, choices=where.choices, tile_experts=where.tile_experts)
    inner = w.shape[2 if transposed else 1] if len(w.shape) == 3 else None
    if len(x.shape) != 2 or x.shape[1] != inner or x.shape[0] != where.choices.shape[0]:
        raise ValueError(f"x is (P,K) and w (E,N,K), and they have the shapes {tuple(x.shape)} and {tuple(w.shape)}")
    tables, is_same = (where.tile_experts, where.first_tiles, where.tiles), is_invariant(invariant)
    if is_jax(x):
        return through_jax("expert_product", x, w, *tables, transposed=transposed, invariant=is_same, on=on)
    if records(x, w, where.tile_experts, on=on):
        return through_torch("expert_product", x, w, *tables, transposed, is_same)
    return multiply_rows(x, w, where, transposed, is_same, on)


def multiply_rows(x: Any, w: Any, where: Places, transposed: bool, invariant: bool, on: str | None) -> Any:
    """``expert_product``, launched."""
    if by_definition(on, x, w, integers=(where.tile_experts,)):
        check_type(x, "w", w)
        return definitions.expert_product(x, w, where.tile_experts, transposed, TILE_ROWS, invariant)
    outer = w.shape[1 if transposed else 2]
    element = _native.array_axes(x)[0]
    inputs = {"x": x, "w": w, "tile_experts": where.tile_experts}
    sizes = {"P": x.shape[0], "K": x.shape[1], "N": outer}
    results = {"y": Result((x.shape[0], outer), element)}
    return _run("expert_product", _product_options(w, element, transposed), inputs, results, sizes, on)[0]


def _product_options(w: Any, element: str, transposed: bool) -> Options:
    kind = _native.array_axes(w)[0]
    return (("experts", w.shape[0]), ("element", element), ("transposed", transposed), ("gradient_element", kind))


def expert_product_backward(
    x: Any,
    w: Any,
    d_y: Any,
    where: Places,
    *,
    transposed: bool = True,
    invariant: bool | None = None,
    on: str | None = None,
) -> tuple[Any, Any]:
    """The derivatives of ``expert_product`` by ``x`` and ``w``. An expert without rows has 0.
    ``invariant`` is that of ``expert_product``, for the first.

    >>> import numpy as np
    >>> where = expert_places(np.array([[0]], np.int32), 1)
    >>> x, w, d = np.ones((128, 8), "f2"), np.ones((1, 8, 8), "f2"), np.ones((128, 8), "f2")
    >>> expert_product_backward(x, w, d, where)[0][0, 0]
    np.float16(8.0)
    """
    check_arrays(x=x, w=w, d_y=d_y, tile_experts=where.tile_experts)
    if by_definition(on, x, w, d_y, integers=(where.tile_experts,)):
        is_same = is_invariant(invariant)
        return definitions.expert_product_backward(x, w, d_y, where.tile_experts, transposed, TILE_ROWS, is_same)
    element = _native.array_axes(x)[0]
    inputs = {"x": x, "w": w, "d_y": d_y, "tile_experts": where.tile_experts, "first_tiles": where.first_tiles, "tiles": where.tiles}
    sizes = {"P": x.shape[0], "K": x.shape[1], "N": d_y.shape[1]}
    results = {"d_x": Result(tuple(x.shape), element), "d_w": Result(tuple(w.shape), _native.array_axes(w)[0])}
    found = _run("expert_product", _product_options(w, element, transposed), inputs, results, sizes, on, True)
    return found[0], found[1]


def combine(x: Any, where: Places, weights: Any, *, on: str | None = None) -> Any:
    """For each token the sum of the rows of its choices, (P,N), times their weights, (T,C) of float32.

    >>> import numpy as np
    >>> where = expert_places(np.array([[0], [0]], np.int32), 1)
    >>> combine(np.ones((128, 1), np.float32), where, np.array([[2], [3]], np.float32)).tolist()
    [[2.0], [3.0]]
    """
    check_arrays(x=x, weights=weights, places=where.places, choices=where.choices)
    if len(x.shape) != 2 or tuple(weights.shape) != tuple(where.places.shape) or x.shape[0] != where.choices.shape[0]:
        raise ValueError(
            f"x is (P,N) and weights (T,C), and they have the shapes {tuple(x.shape)} and {tuple(weights.shape)} beside "
            f"{where.choices.shape[0]} rows and the places {tuple(where.places.shape)}"
        )
    if is_jax(x):
        return through_jax("combine", x, where.places, where.choices, weights, on=on)
    if records(x, weights, where.places, on=on):
        return through_torch("combine", x, where.places, where.choices, weights)
    return weigh(x, where, weights, on)


def weigh(x: Any, where: Places, weights: Any, on: str | None) -> Any:
    """``combine``, launched."""
    if by_definition(on, x, weights, integers=(where.places,)):
        return definitions.combine(x, where.places, weights)
    (tokens, chosen), element = where.places.shape, _native.array_axes(x)[0]
    options: Options = (("length", x.shape[1]), ("chosen", chosen), ("element", element))
    results = {"y": Result((tokens, x.shape[1]), element)}
    inputs = {"x": x, "places": where.places, "weights": weights}
    return _run("combine", options, inputs, results, {"T": tokens, "P": x.shape[0]}, on)[0]


def combine_backward(
    x: Any, d_y: Any, places: Any, choices: Any, weights: Any, *, on: str | None = None
) -> tuple[Any, Any]:
    """The derivatives of ``combine`` by ``x`` and by the weights.

    >>> import numpy as np
    >>> where = expert_places(np.array([[0]], np.int32), 1)
    >>> x, d, weights = np.ones((128, 1), "f4"), np.ones((1, 1), "f4"), np.full((1, 1), 2, "f4")
    >>> combine_backward(x, d, where.places, where.choices, weights)[1].tolist()
    [[1.0]]
    """
    check_arrays(x=x, d_y=d_y, places=places, choices=choices, weights=weights)
    if by_definition(on, x, d_y, weights, integers=(places, choices)):
        return definitions.combine_backward(x, d_y, places, choices, weights)
    (tokens, chosen), element = places.shape, _native.array_axes(x)[0]
    options: Options = (("length", x.shape[1]), ("chosen", chosen), ("element", element))
    inputs = {"x": x, "d_y": d_y, "places": places, "choices": choices, "weights": weights}
    results = {"d_x": Result(tuple(x.shape), element), "d_weights": Result((tokens, chosen), "f32")}
    found = _run("combine", options, inputs, results, {"T": tokens, "P": x.shape[0]}, on, True)
    return found[0], found[1]


def experts(
    x: Any,
    logits: Any,
    gate: Any,
    up: Any,
    down: Any,
    chosen: int,
    *,
    function: str = "silu",
    over_all: bool = False,
    invariant: bool | None = None,
    on: str | None = None,
) -> Any:
    """A mixture of experts: each token of ``x``, (T,K), goes to the ``chosen`` experts with the greatest
    ``logits``, (T,E), and gets the weighted sum of ``down(function(gate(x)) * up(x))`` of these. ``gate``
    and ``up`` are (E,N,K), and ``down`` is (E,K,N), as weights of linear layers. ``invariant`` is that of
    ``expert_product``.

    >>> import numpy as np
    >>> x, logits = np.ones((3, 8), "f2"), np.zeros((3, 2), "f4")
    >>> gate, up, down = np.ones((2, 8, 8), "f2"), np.ones((2, 8, 8), "f2"), np.ones((2, 8, 8), "f2")
    >>> experts(x, logits, gate, up, down, 1, function="identity")[0, 0]
    np.float16(512.0)
    """
    check_arrays(x=x, logits=logits, gate=gate, up=up, down=down)
    from ._elements import activation

    if len(x.shape) == 2 and x.shape[0] == 0:
        # No token goes anywhere.
        return x + 0
    own, weights = route(logits, chosen, over_all=over_all, on=on)
    where = expert_places(own, logits.shape[1], on=on)
    rows = permute(x, where, on=on)
    is_same = is_invariant(invariant)
    first, second = (expert_product(rows, own, where, invariant=is_same, on=on) for own in (gate, up))
    hidden = activation(first, function, up=second, on=on)
    return combine(expert_product(hidden, down, where, invariant=is_same, on=on), where, weights, on=on)


def quantize(
    x: Any, *, square: bool = False, power_of_two: bool = False, on: str | None = None
) -> tuple[Any, Any]:
    """A matrix, (M,K), in e4m3 with a scale of float32 for each 128 elements of a row, or for each 128 x
    128 if ``square``: the greatest magnitude over 448, or the next power of two. These are the operands
    of ``tilewright.gpu.gemm`` with ``scales``.

    On the host, tensors of PyTorch are taken, and arrays on="interpreter": NumPy has no e4m3.

    >>> import numpy as np
    >>> q, scales = quantize(np.array([[896, -3]], np.float32), on="interpreter")
    >>> scales.tolist()
    [[2.0]]
    """
    check_arrays(x=x)
    if len(x.shape) != 2:
        raise ValueError(f"x is a matrix, and has the shape {tuple(x.shape)}")
    if is_jax(x):
        return through_jax("quantize", x, square=square, power_of_two=power_of_two, on=on)  # type: ignore[no-any-return]
    if records(x, on=on):
        return through_torch("quantize", x, square, power_of_two)  # type: ignore[no-any-return]
    return to_8_bits(x, square, power_of_two, on)


def to_8_bits(x: Any, square: bool, power_of_two: bool, on: str | None) -> tuple[Any, Any]:
    """``quantize``, launched."""
    if by_definition(on, x):
        numbers, scales = definitions.quantize(x, square, power_of_two)
        if is_jax(x):
            return numbers.astype("float8_e4m3fn"), scales.astype("float32")
        if not is_torch(x):
            raise TypeError('NumPy has no e4m3: run on="interpreter", or pass a tensor of PyTorch')
        import torch

        return numbers.float().to(torch.float8_e4m3fn), scales.float()
    rows, columns = x.shape
    high = TILE_ROWS if square else 1
    of_scales = (-(-rows // high), -(-columns // 128))
    element = _native.array_axes(x)[0]
    options: Options = (("element", element), ("square", square), ("power_of_two", power_of_two), ("alignment", _facts(columns)))
    results = {"q": Result((rows, columns), "e4m3"), "scales": Result(of_scales, "f32")}
    found = _run("quantize", options, {"x": x}, results, {"M": rows, "K": columns}, on)
    return found[0], found[1]


def _facts(columns: int) -> int:
    return alignment("e4m3", columns)


def dequantize(q: Any, scales: Any, *, square: bool = False, element: str = "f32", on: str | None = None) -> Any:
    """The matrix of the results of ``quantize``, of float32, or another ``element``: "bf16" or "f16".

    >>> import numpy as np
    >>> q, scales = quantize(np.array([[896, -3]], np.float32), on="interpreter")
    >>> np.asarray(dequantize(q, scales, on="interpreter")).tolist()
    [[896.0, -3.0]]
    """
    check_arrays(q=q, scales=scales)
    high = TILE_ROWS if square else 1
    if len(q.shape) != 2 or tuple(scales.shape) != (-(-q.shape[0] // high), -(-q.shape[1] // 128)):
        raise ValueError(f"q is a matrix with a scale for each block, and the shapes are {tuple(q.shape)} and {tuple(scales.shape)}")
    if element not in _ELEMENTS:
        raise ValueError(f"an element is one of {', '.join(_ELEMENTS)}, not {element!r}")
    if is_jax(q):
        return through_jax("dequantize", q, scales, square=square, element=element, on=on)
    if records(q, scales, on=on):
        return through_torch("dequantize", q, scales, square, element)
    return from_8_bits(q, scales, square, element, on)


#: The types of matrices whose numbers of 8 bits become wide again.
_ELEMENTS = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}


def from_8_bits(q: Any, scales: Any, square: bool, element: str, on: str | None) -> Any:
    """``dequantize``, launched."""
    if by_definition(on, q, scales):
        made, name = definitions.dequantize(q, scales, square), _ELEMENTS[element]
        return made.to(getattr(definitions.namespace(made), name)) if is_torch(made) else made.astype(name)
    rows, columns = q.shape
    options: Options = (("element", element), ("square", square), ("alignment", _facts(columns)))
    results = {"y": Result((rows, columns), element)}
    return _run("dequantize", options, {"q": q, "scales": scales}, results, {"M": rows, "K": columns}, on)[0]
