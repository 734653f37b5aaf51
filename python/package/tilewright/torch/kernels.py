"""Kernels of users as operators of PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from .. import _native
from .._arrays import _NAMES
from .._native import Layout
from .._parameters import Array, Scalar
from .._tile import TileKernel

__all__ = ["operator"]

_numbers = itertools.count()


def _declared(kernel: Any) -> tuple[dict[str, Array], dict[str, Array], dict[str, Scalar]]:
    """The inputs, outputs and numbers of a kernel."""
    inputs: dict[str, Array] = {}
    outputs: dict[str, Array] = {}
    numbers: dict[str, Scalar] = {}
    for name, spec in kernel.specs.items():
        if isinstance(spec, Scalar):
            numbers[name] = spec
        elif isinstance(spec, Array) and spec.layout is not None and spec.role in ("input", "output"):
            (inputs if spec.role == "input" else outputs)[name] = spec
        else:
            raise TypeError(
                f"'{name}' of {kernel.__name__} is no tw.Input, tw.Output or tw.Scalar with a layout: an operator says what it "
                "reads and writes"
            )
    if not inputs or not outputs:
        raise TypeError(f"{kernel.__name__} has no input or no output: an operator computes tensors of tensors")
    return inputs, outputs, numbers


def _extents(layout: Any) -> tuple[Any, ...]:
    shape = Layout(str(layout)).shape
    return shape if isinstance(shape, tuple) else (shape,)


def _sizes(kernel: Any, inputs: dict[str, Array], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The sizes that the shapes of the inputs say. A size is said by an extent that it is alone."""
    sizes: dict[str, Any] = {}
    for name, spec in inputs.items():
        extents, shape = _extents(spec.layout), tensors[name].shape
        if len(extents) != len(shape):
            raise ValueError(f"'{name}' of {kernel.__name__} has {len(shape)} axes, and its layout is {spec.layout}")
        for extent, own in zip(extents, shape):
            if type(extent) is not int:
                sizes.setdefault(str(extent).partition("{")[0], own)
    return sizes


def _shape(kernel: Any, name: str, spec: Array, sizes: Mapping[str, Any]) -> tuple[Any, ...]:
    """The shape of an output at these sizes."""
    shape = []
    for extent in _extents(spec.layout):
        if type(extent) is int:
            shape.append(extent)
            continue
        word = str(extent).partition("{")[0]
        if word not in sizes:
            raise ValueError(f"an extent of '{name}' of {kernel.__name__} is {extent}, which no input has alone")
        shape.append(sizes[word])
    return tuple(shape)


def _type(spec: Array) -> torch.dtype:
    return getattr(torch, _NAMES[_native.element_name(spec.element)])


def operator(kernel: Any = None, *, name: str | None = None, gradient: Callable[..., Any] | None = None) -> Any:
    """A kernel, ``@tw.jit`` or ``@tw.tile``, as an operator of PyTorch: a function of its inputs and
    numbers, in the order of its parameters, that returns its outputs. ``torch.compile`` keeps it in one
    graph. As a decorator it stands above the decorator of the kernel.

    Parameters of the kernel are ``tw.Input``, ``tw.Output`` and ``tw.Scalar``, each tensor with a layout of
    one mode an axis. Each size of an output is an extent of an input.

    A tile program is differentiated by its ``gradient``. For other kernels, or in its place,
    ``gradient`` is a function of the inputs, the numbers and the derivatives by the outputs; it returns
    the derivatives by the inputs, or None. Without one, such an operator has no derivatives.

    On the host the kernel runs in the interpreter.

    >>> import tilewright as tw, tilewright.torch, torch
    >>> @tilewright.torch.operator
    ... @tw.tile(grid="ceil(N/4)")
    ... def square(x: tw.Input("f32", "N:1"), y: tw.Output("f32", "N:1")):
    ...     a = x.load((4,), (tw.tile.block.x,))
    ...     y.store((tw.tile.block.x,), a * a)
    >>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> square(x).sum().backward()
    >>> x.grad
    tensor([2., 4., 6.])

    Errors: a parameter that is not declared (``TypeError``); shapes that do not fit (``ValueError``).
    """
    if kernel is None:
        return lambda own: operator(own, name=name, gradient=gradient)
    inputs, outputs, numbers = _declared(kernel)
    parameters = [own for own in kernel.specs if own not in outputs]
    called = name or f"{kernel.__name__}_{next(_numbers)}"

    def launch(*arguments: Any) -> Any:
        given = dict(zip(parameters, arguments))
        sizes = _sizes(kernel, inputs, given)
        like = next(given[own] for own in inputs)
        with torch.no_grad():
            taken = {own: value.detach().contiguous() if own in inputs else value for own, value in given.items()}
            made = {own: like.new_empty(_shape(kernel, own, spec, sizes), dtype=_type(spec)) for own, spec in outputs.items()}
            kernel(**taken, **made)
        results = tuple(made.values())
        return results[0] if len(results) == 1 else results

    def fake(*arguments: Any) -> Any:
        given = dict(zip(parameters, arguments))
        sizes = _sizes(kernel, inputs, given)
        like = next(given[own] for own in inputs)
        results = tuple(like.new_empty(_shape(kernel, own, spec, sizes), dtype=_type(spec)) for own, spec in outputs.items())
        return results[0] if len(results) == 1 else results

    schema = ", ".join(_parameter(own, numbers) for own in parameters)
    result = "Tensor" if len(outputs) == 1 else f"({', '.join('Tensor' for _ in outputs)})"
    own: Any = torch.library.custom_op(f"tilewright_kernels::{called}", launch, mutates_args=(), schema=f"({schema}) -> {result}")
    own.register_fake(fake)
    differentiable = [each for each, spec in inputs.items() if _type(spec).is_floating_point]
    slope = gradient
    if slope is None and isinstance(kernel, TileKernel) and differentiable:
        slope = _derived(kernel, called, parameters, list(outputs), differentiable, schema)
    if slope is not None:
        own.register_autograd(_derivation(slope, parameters, set(inputs)), setup_context=_keep)
    return own


def _parameter(name: str, numbers: dict[str, Scalar]) -> str:
    if name not in numbers:
        return f"Tensor {name}"
    return f"{'int' if _native.element_name(numbers[name].element)[0] in 'iu' else 'float'} {name}"


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*(own for own in inputs if isinstance(own, Tensor)))
    ctx.others = [None if isinstance(own, Tensor) else own for own in inputs]


def _derivation(slope: Callable[..., Any], parameters: list[str], inputs: set[str]) -> Callable[..., Any]:
    """The derivatives by all parameters of what a function gives for the inputs."""

    def derive(ctx: Any, *derivatives: Any) -> Any:
        tensors = iter(ctx.saved_tensors)
        given = [next(tensors) if own is None else own for own in ctx.others]
        made = slope(*given, *derivatives)
        found = iter(made if isinstance(made, (tuple, list)) else (made,))
        return tuple(next(found) if name in inputs else None for name in parameters)

    return derive


def _derived(
    kernel: TileKernel, called: str, parameters: list[str], outputs: list[str], of: list[str], schema: str
) -> Callable[..., Any]:
    """The gradient of a tile program as an operator of its own."""
    made: list[Any] = []

    def launch(*arguments: Any) -> Any:
        if not made:
            made.append(kernel.gradient(of=tuple(of)))
        names = [*parameters, *(f"d_{name}" for name in outputs)]
        with torch.no_grad():
            given = {
                name: value.detach().contiguous() if isinstance(value, Tensor) else value for name, value in zip(names, arguments)
            }
            found = made[0](**given)
        return [found[f"d_{name}"] for name in of]

    def fake(*arguments: Any) -> Any:
        given = dict(zip(parameters, arguments))
        return [torch.empty_like(given[name], memory_format=torch.contiguous_format) for name in of]

    derivatives = ", ".join(f"Tensor d_{name}" for name in outputs)
    own: Any = torch.library.custom_op(
        f"tilewright_kernels::{called}_backward", launch, mutates_args=(), schema=f"({schema}, {derivatives}) -> Tensor[]"
    )
    own.register_fake(fake)

    def slope(*arguments: Any) -> Any:
        found = dict(zip(of, own(*arguments)))
        return [found.get(name) for name in parameters if isinstance(arguments[parameters.index(name)], Tensor)]

    return slope
