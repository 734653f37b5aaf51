"""Steps of optimizers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _definitions as definitions
from .. import _native
from .._arrays import is_torch
from .._definitions import is_jax
from .._operators import Options, Result, again, alignment, launch, machine_of, planned
from ._common import by_definition, check_arrays, check_type, stored, is_traced, through_jax, through_torch


def adamw(
    parameters: Sequence[Any],
    gradients: Sequence[Any],
    first: Sequence[Any],
    second: Sequence[Any],
    *,
    step: int,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    epsilon: float = 1e-8,
    decay: float = 1e-2,
    on: str | None = None,
) -> Any:
    """A step of AdamW, in place: ``parameters`` and the averages ``first`` and ``second`` of their
    ``gradients`` are lists of contiguous arrays. ``step`` counts from 1.

    Arrays of JAX are not written: the result is the lists of the parameters and averages after the
    step. Its numbers may be traced there. A CUDA graph that holds a step repeats the numbers of that
    step.

    >>> import numpy as np
    >>> p, g, m, v = np.ones(1, np.float32), np.ones(1, np.float32), np.zeros(1, np.float32), np.zeros(1, np.float32)
    >>> adamw([p], [g], [m], [v], step=1, lr=0.5, decay=0.0)
    >>> p.round(4).tolist()
    [0.5]
    """
    if any(hasattr(own, "shape") for own in (parameters, gradients, first, second)):
        raise TypeError("parameters, gradients and averages are lists of arrays: put a single array in a list")
    if not len(parameters) == len(gradients) == len(first) == len(second):
        raise ValueError("there are as many gradients and averages as parameters")
    lists = (list(parameters), list(gradients), list(first), list(second))
    # The number of a step of JAX may be traced.
    if isinstance(step, int) or not is_jax(step):
        if not hasattr(step, "__index__"):
            raise TypeError(f"steps are counted by integers, not by {type(step).__name__}")
        if step < 1:
            raise ValueError(f"steps count from 1, not from {step}")
    if lists[0] and is_jax(lists[0][0]):
        return through_jax("adamw", *lists, step=step, lr=lr, betas=betas, epsilon=epsilon, decay=decay, on=on)
    beta1, beta2 = betas
    if lists[0] and is_traced(*lists[0]):
        return through_torch("adamw", *lists, step, lr, beta1, beta2, epsilon, decay)
    return step_all(*lists, step, lr, beta1, beta2, epsilon, decay, on)


def step_all(
    parameters: Sequence[Any],
    gradients: Sequence[Any],
    first: Sequence[Any],
    second: Sequence[Any],
    step: int,
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    decay: float,
    on: str | None,
) -> None:
    """``adamw``, launched."""
    numbers = {
        "lr": lr,
        "beta1": beta1,
        "beta2": beta2,
        "epsilon": epsilon,
        "decay": decay,
        "correction1": 1 - beta1**step,
        "correction2": 1 - beta2**step,
    }
    for arrays in zip(parameters, gradients, first, second):
        _step(arrays, numbers, step, on)


def _step(arrays: tuple[Any, Any, Any, Any], numbers: dict[str, float], step: int, on: str | None) -> None:
    p, g, m, v = arrays
    outs = (p, m, v)
    if on is None and again(("adamw",), (g,), outs, numbers) is not None:
        return
    check_arrays(parameter=p, gradient=g, first=m, second=v)
    shapes = {tuple(own.shape) for own in arrays}
    if len(shapes) > 1:
        raise ValueError(f"a parameter, its gradient and its averages have one shape, not {', '.join(map(str, shapes))}")
    check_type(m, "the average of squares", v, "the average")
    if by_definition(on, *arrays):
        made = definitions.adamw(
            p, g, m, v, numbers["lr"], numbers["beta1"], numbers["beta2"], numbers["epsilon"], numbers["decay"], step
        )
        for own, value in zip(outs, made):
            # As kernels do, it writes parameters that require gradients.
            stored(own.detach() if is_torch(own) else own, value)
        return
    axes = [_native.array_axes(own) for own in arrays]
    shape = axes[0][1]
    if 0 in shape:
        return
    # Elements are taken in the order of memory, which is the same for all.
    if len({own[2] for own in axes}) > 1 or not _is_dense(shape, axes[0][2]):
        raise ValueError("a parameter, its gradient and its averages have the same strides, without gaps: copy them first")
    count = math.prod(shape)
    # Of a view that begins between two multiples of 16 bytes, elements are taken one by one.
    facts = 1 if any(own[4] for own in axes) else alignment(axes[0][0], alignment("bf16", count), count)
    options: Options = (
        ("element", axes[0][0]),
        ("gradient_element", axes[1][0]),
        ("state_element", axes[2][0]),
        ("alignment", facts),
    )
    kernels = planned("adamw", options, False, machine_of(p))
    results = {name: Result(shape, own[0], array) for name, own, array in zip("pmv", (axes[0], *axes[2:]), outs)}
    launch(kernels, {"g": g}, results, {"N": count}, on, numbers=numbers, call=("adamw",), called=(g,))


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether the elements of an array have no gaps between them."""
    step = 1
    for stride, extent in sorted(zip(strides, shape)):
        if extent > 1:
            if stride != step:
                return False
            step *= extent
    return True
