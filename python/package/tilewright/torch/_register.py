"""How an operator is registered with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ..ops import _common

#: The registered operators by their names.
operators = SimpleNamespace()

_is_compiling = torch.compiler.is_compiling
_is_grad_enabled = torch.is_grad_enabled
#: Whether `vmap` or another transformation of functions is active. Its tensors look like ordinary ones,
#: and that is asked of a function that is not public.
_is_transformed: Callable[[], bool] = getattr(torch._C, "_are_functorch_transforms_active", bool)
#: The types of tensors that are nothing but tensors.
_PLAIN = (Tensor, torch.nn.Parameter)


def fresh(y: Tensor, *inputs: Optional[Tensor]) -> Tensor:
    """A contiguous tensor that shares no memory with the inputs, as the fake implementations
    promise.
    """
    if y.is_cuda and y.is_contiguous():
        # Kernels write to memory of their own.
        return y
    y = y.contiguous()
    storage = y.untyped_storage().data_ptr()
    if any(own is not None and storage and own.untyped_storage().data_ptr() == storage for own in inputs):
        return y.clone()
    return y


def like(x: Tensor, shape: Any = None, dtype: Any = None) -> Tensor:
    """A contiguous tensor without contents."""
    return torch.empty(x.shape if shape is None else shape, dtype=x.dtype if dtype is None else dtype, device=x.device)


def wide(x: Tensor) -> torch.dtype:
    """The type of sums and of logarithms beside a tensor."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


class Operator:
    """An operator that is registered with PyTorch. A call on ordinary tensors outside of traces goes to
    the function itself, which saves the dispatcher's time.
    """

    def __init__(self, name: str, own: Any, function: Callable[..., Any]) -> None:
        self.name = name
        self.own = own
        self._function = function
        self._recorded: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if forward_ad._current_level >= 0:
            _common.check_no_tangents(arguments)
        if _is_compiling() or _is_transformed():
            return self.own(*arguments)
        is_recorded = False
        for own in arguments:
            if isinstance(own, Tensor):
                if type(own) not in _PLAIN or own.is_meta:
                    return self.own(*arguments)
                is_recorded = is_recorded or own.requires_grad
            elif isinstance(own, (list, tuple)):
                # A function whose derivatives are recorded takes no list of tensors.
                return self.own(*arguments)
        if is_recorded and self._recorded is not None and _is_grad_enabled():
            return self._recorded(None, *arguments)
        return self._function(*arguments)

    def derive_by(self, derive: Callable[..., Any], keep: Callable[..., Any]) -> None:
        """Registers the derivatives: `keep` saves what `derive` needs of a call."""
        self.own.register_autograd(derive, setup_context=keep)
        function = self._function

        def forward(ctx: Any, made: Optional[tuple[Any]], *arguments: Any) -> Any:
            results = function(*arguments) if made is None else made[0]
            keep(ctx, arguments, results)
            return results

        def backward(ctx: Any, *derivatives: Any) -> Any:
            # Where the backward is recorded itself, so are the operators that it calls, or they are refused.
            made = derive(ctx, *derivatives)
            return (None, *made) if isinstance(made, tuple) else (None, made)

        methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        recorded: Any = type("Recorded", (torch.autograd.Function,), methods)
        # In PyTorch 2.11 `apply` of the class asks in Python what a call was asked before, and then
        # calls this one.
        self._recorded = super(torch.autograd.Function, recorded).apply  # type: ignore[misc]
        _common.recorded[self.name] = self._recorded

    def derive_not(self, reason: str) -> None:
        """Registers that there are no derivatives: a backward through a call is an error with this reason."""

        def refuse(ctx: Any, *derivatives: Any) -> Any:
            raise RuntimeError(f"there are no derivatives of {self.own._name}: {reason}")

        self.derive_by(refuse, lambda ctx, inputs, output: None)


def no_derivatives_by(operator: str, **tensors: Optional[Tensor]) -> None:
    """Refuses tensors that require gradients, of an operator that has no derivatives by them."""
    for name, own in tensors.items():
        if own is not None and own.requires_grad:
            raise RuntimeError(f"there are no derivatives of {operator} by `{name}`: pass `{name}.detach()`")


def is_special(own: Any) -> bool:
    """Whether a tensor is traced, transformed or without contents, so that calls go to the dispatcher."""
    return type(own) not in _PLAIN or own.is_meta or _is_compiling() or _is_transformed()


def register(
    name: str, function: Callable[..., Any], fake: Callable[..., Any], mutates: tuple[str, ...] = ()
) -> Operator:
    """Registers an operator: `function` is annotated with the types of its schema. It is called where
    PyTorch records nothing. No parameter has a default: PyTorch 2.11 leaves out arguments that equal
    their defaults, and then refuses derivatives of all of them.
    """

    def unrecorded(*arguments: Any) -> Any:
        with torch.no_grad():
            return function(*arguments)

    schema = torch.library.infer_schema(function, mutates_args=mutates)
    own: Any = torch.library.custom_op(f"tilewright::{name}", unrecorded, mutates_args=mutates, schema=schema)
    own.register_fake(fake)
    operator = Operator(name, own, function)
    if name.endswith("_backward"):
        operator.derive_not("it is a derivative itself, and is differentiated no further")
    setattr(operators, name, operator)
    return operator


def batched(operator: Operator, moves: Callable[..., Any]) -> None:
    """Registers the rule for ``vmap``: where ``moves`` says how, a call on arrays with one axis more;
    else a call for each element of the batch.
    """

    own = operator.own

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
        # Of a batch of none, the results of zeros say the shapes.
        each = [own(*map(partial(_element, number), arguments, dims)) for number in range(info.batch_size or 1)]
        if isinstance(each[0], Tensor):
            return torch.stack(each)[: info.batch_size], 0
        parts = [torch.stack(part)[: info.batch_size] for part in zip(*each)]
        return (parts, [0] * len(parts)) if isinstance(each[0], list) else (tuple(parts), (0,) * len(parts))

    own.register_vmap(rule)


def _element(number: int, argument: Any, dim: Any) -> Any:
    """An argument of a call of one element of a batch: ``dim`` is the axis of the batch, of each tensor of a list."""
    if isinstance(argument, (list, tuple)):
        return [_element(number, own, None if dim is None else at) for own, at in zip(argument, dim or argument)]
    if not isinstance(argument, Tensor) or dim is None:
        return argument
    return argument.select(dim, number) if argument.shape[dim] else argument.new_zeros(argument.movedim(dim, 0).shape[1:])


def one_by_one(*operators: Operator) -> None:
    """Registers that ``vmap`` is a call for each element of the batch."""
    for own in operators:
        batched(own, lambda leading, is_batched, size: None)


def spread(leading: list[Any], is_batched: list[bool], size: int, *places: int) -> bool:
    """Whether the arguments at these places are the only tensors of a batch; those of them that are
    in none are repeated.
    """
    if any(batched and place not in places for place, batched in enumerate(is_batched)):
        return False
    for place in places:
        if isinstance(leading[place], Tensor) and not is_batched[place]:
            leading[place] = leading[place].expand(size, *leading[place].shape)
    return True
