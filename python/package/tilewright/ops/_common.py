"""What the functions of operators share: where a call runs, checks of arrays, rows and pitches."""

from __future__ import annotations

from typing import Any

from .. import _native, gpu
from .._arrays import compact, empty, is_torch
from .._operators import Matrix, alignment, is_on_device, matrix
from .._record import recorder


def by_definition(on: str | None, *arrays: Any) -> bool:
    """Whether a call runs by its definition: on arrays of the host, unless the interpreter is asked
    for.
    """
    if on == "interpreter" or recorder() is not None:
        return False
    if on is not None:
        raise ValueError(f'an operator runs where its arrays are, or on="interpreter", not on {on!r}')
    if is_on_device(*arrays):
        return False
    for array in arrays:
        if isinstance(array, _native.Tensor):
            raise TypeError('on the host, operators take arrays of NumPy or PyTorch; tensors of this package run on="interpreter"')
    return True


def records(*arrays: Any) -> bool:
    """Whether gradients by these arrays are recorded, or a call is traced: then it goes through the
    operators that are registered with PyTorch.
    """
    for array in arrays:
        if array is not None and is_torch(array):
            import torch

            if torch.compiler.is_compiling() or type(array) not in (torch.Tensor, torch.nn.Parameter):
                return True
            if getattr(torch._C, "_are_functorch_transforms_active", bool)():
                # Tensors of `vmap` look like ordinary ones. That is asked of a function that is not public.
                return True
            return torch.is_grad_enabled() and any(own is not None and own.requires_grad for own in arrays)
    return False


def stored(out: Any, value: Any) -> Any:
    """A result, or ``out`` with its elements."""
    if out is None:
        return value
    if is_torch(out):
        return out.copy_(value)
    out[...] = value
    return out


def check_same(x: Any, name: str, of: Any) -> None:
    """Refuses an array that has not the shape of ``x``."""
    if tuple(of.shape) != tuple(x.shape):
        raise ValueError(f"{name} has the shape {tuple(of.shape)}, and x has {tuple(x.shape)}")


def check_vector(x: Any, name: str, of: Any) -> None:
    """Refuses an array that has not one number for each element of a row of ``x``."""
    length = x.shape[-1] if len(x.shape) else 1
    if tuple(of.shape) != (length,):
        raise ValueError(f"{name} has the shape {tuple(of.shape)}, and a row of x has {length} elements")


def rows_of(on: str | None, **arrays: Any) -> dict[str, Matrix]:
    return {name: matrix(array, on) for name, array in arrays.items()}


def common_alignment(rows: dict[str, Matrix], *others: Any) -> int:
    """What the pitches of all matrices, and of contiguous results of the same rows, are multiples
    of.
    """
    first = next(iter(rows.values()))
    pitches = [own.pitch for own in rows.values() if own.rows > 1]
    if first.rows > 1:
        pitches.append(first.length)
    return alignment(first.element, *pitches) if pitches else alignment(first.element, 0)


def sizes_of_rows(rows: dict[str, Matrix], facts: int, **made: int) -> dict[str, int]:
    """The sizes of a launch on rows. The pitch of a single row is any multiple of the alignment."""
    first = next(iter(rows.values()))
    sizes = {"M": first.rows}
    for name, pitch in [*((name, own.pitch) for name, own in rows.items()), *made.items()]:
        sizes[f"{name}_pitch"] = pitch if first.rows > 1 else -(-pitch // facts) * facts
    return sizes


def strides_of(array: Any) -> tuple[int, ...]:
    return _native.array_axes(array)[2]


def packed_rows(own: Matrix, on: str | None) -> Matrix:
    """The rows in a contiguous array."""
    if own.pitch == own.length or own.rows <= 1:
        return own._replace(pitch=own.length)
    room = empty(own.array, tuple(own.array.shape))
    gpu.relayout(own.array, room, on=on)
    return own._replace(array=room, pitch=own.length)


def contiguous(array: Any, on: str | None) -> Any:
    """An array, or a contiguous copy of it."""
    _, shape, strides, _, before = _native.array_axes(array)
    if not before and all(extent == 1 or own == step for extent, own, step in zip(shape, strides, compact(shape))):
        return array
    room = empty(array, shape)
    return gpu.relayout(array, room, on=on) if 0 not in shape else room


def through_torch(name: str, *arguments: Any) -> Any:
    """A call of an operator that is registered with PyTorch."""
    from .. import torch as registered

    return getattr(registered.operators, name)(*arguments)


def through_jax(name: str, *arrays: Any, **named: Any) -> Any:
    """A call on arrays of JAX."""
    from .. import jax as registered

    if named.pop("out", None) is not None or named.pop("on", None) is not None:
        raise TypeError("arrays of JAX are not written, and run where JAX has them: leave `out` and `on` out")
    return getattr(registered, name)(*arrays, **named)


def autocast(*arrays: Any) -> Any:
    """Tensors of PyTorch in the type of its automatic mixed precision, where that is enabled."""
    first = arrays[0]
    if not is_torch(first):
        return arrays
    import torch

    kind = first.device.type
    if not torch.is_autocast_enabled(kind):
        return arrays
    to = torch.get_autocast_dtype(kind)
    return tuple(own.to(to) if own is not None and own.is_floating_point() else own for own in arrays)
