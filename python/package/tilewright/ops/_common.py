"""What the functions of operators share: where a call runs, checks of arrays, rows and pitches."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .. import _native, gpu
from .._arrays import compact, empty, is_torch
from .._native import repeat_call
from .._operators import Matrix, alignment, is_on_device, known_calls, matrix
from .._record import recorder

#: ``torch.compiler.is_compiling``, once there was a call on tensors of PyTorch outside of a trace.
_is_compiling: Any = None
#: ``torch.is_autocast_enabled``, likewise.
_is_autocast: Any = None
#: ``torch.autograd.forward_ad``, likewise. Its level is not public: it is 0 or more while forward
#: derivatives are computed.
_forward: Any = None
#: What records a call with PyTorch's autograd, by the names of operators, for ordinary tensors outside
#: of traces: it takes the results in a tuple, or None, and the arguments of the operator. It is filled
#: by ``tilewright.torch``.
recorded: dict[str, Any] = {}


def by_definition(on: str | None, *arrays: Any, integers: tuple[Any, ...] = ()) -> bool:
    """Whether a call runs by its definition: on arrays of the host, unless the interpreter is asked
    for. ``integers`` are those of its arrays whose elements are integers.

    Errors: the arrays are of several packages or devices, or of a device that neither has kernels nor is
    the host, or of a type with which the definition does not compute.
    """
    if recorder() is not None:
        return False
    if on not in (None, "interpreter", "definition"):
        raise ValueError(f'an operator runs where its arrays are, on="interpreter" or on="definition", not on {on!r}')
    floats = [own for own in arrays if own is not None]
    for own in floats:
        if not hasattr(own, "shape") or not hasattr(own, "dtype"):
            raise TypeError(f"an operator takes arrays of NumPy, PyTorch or JAX, not {type(own).__name__}")
    numbers = [own for own in integers if own is not None]
    kind = _place(floats + numbers)
    for own in numbers:
        check_integers(own)
    if on == "interpreter" or (on is None and kind == "cuda"):
        return False
    if on is None and kind != "cpu":
        raise TypeError(
            f"an operator has kernels for CUDA devices and a definition for the host, and these tensors are on {kind}: move them "
            'with `.cuda()` or `.cpu()`, or say on="definition" to run the formula where they are'
        )
    for own in floats:
        if isinstance(own, _native.Tensor):
            raise TypeError('on the host, operators take arrays of NumPy or PyTorch; tensors of this package run on="interpreter"')
        if not _is_real(own):
            raise ValueError(f"an operator computes with real numbers, and an array has the type {type_name(own)}: convert it first")
    return True


#: Types of arrays that were seen before.
_known: set[type] = set()


def check_arrays(*optional: str, **named: Any) -> None:
    """Refuses arguments, by their names, that are no arrays: what is optional may be None. Arrays whose
    products, or whose elements that count, are not those of plain arrays are refused too.
    """
    for name, own in named.items():
        if type(own) in _known or (own is None and name in optional):
            continue
        if not hasattr(own, "shape") or not hasattr(own, "dtype"):
            raise TypeError(f"`{name}` is an array of NumPy, PyTorch or JAX, not {None if own is None else type(own).__name__}")
        if type(own).__name__ in ("matrix", "MaskedArray"):
            raise TypeError(f"`{name}` is a {type(own).__name__} of NumPy, which is no plain array: pass `numpy.array({name})`")
        _known.add(type(own))


def _place(arrays: list[Any]) -> str:
    """Where all arrays are: "cpu", "cuda", or the name of another device of PyTorch."""
    places: dict[Any, Any] = {}
    for own in arrays:
        if is_torch(own):
            if own.layout is not _torch().strided:
                raise TypeError(f"an operator takes tensors with strides, and one has the layout {own.layout}: call `.to_dense()` first")
            places.setdefault(("PyTorch", own.device), own)
        else:
            places.setdefault((type(own).__module__.partition(".")[0], None), own)
    names = {package for package, _ in places}
    # Numbers of rows may be those of NumPy beside a tensor of this package.
    if len(names) > 1 and "PyTorch" in names:
        raise TypeError(f"an operator takes arrays of one package, and these are of {', '.join(sorted(names))}: convert them first")
    devices = [device for _, device in places if device is not None]
    if len(devices) > 1:
        raise ValueError(f"the tensors are on {', '.join(sorted(map(str, devices)))}: move them to one device first")
    if devices:
        kind: str = devices[0].type
        return kind
    return "cuda" if is_on_device(*arrays) else "cpu"


def _torch() -> Any:
    """PyTorch, of which there is a tensor."""
    return import_module("torch")


def type_name(array: Any) -> str:
    """The name of the type of the elements of an array."""
    kind = array.dtype
    return str(kind).removeprefix("torch.") if is_torch(array) else str(getattr(kind, "name", kind))


def _is_real(array: Any) -> bool:
    # Types that NumPy does not have, such as bfloat16, are known by their names. Definitions compute in
    # float64 at most.
    return "float" in type_name(array) and type_name(array) not in ("float96", "float128", "longdouble")


def check_integers(array: Any) -> None:
    """Refuses an array whose elements are no integers."""
    if type_name(array)[0] not in "iu":
        raise ValueError(f"numbers of rows, classes and positions are integers, and an array of them has the type {type_name(array)}")


def records(*arrays: Any, on: str | None = None, out: Any = None) -> bool:
    """Whether gradients by these arrays are recorded, or a call is traced: then it goes through the
    operators that are registered with PyTorch. Of what is None, there is none; the first is there.

    Errors: the call says where it runs or what it writes, and such calls are not recorded.
    """
    if not is_torch(arrays[0]) or is_plain(*arrays) or not _is_recorded(arrays):
        return False
    if out is not None:
        raise RuntimeError("gradients are not recorded, and graphs not traced, through `out`: leave it out, or pass `x.detach()`")
    if on is not None:
        raise RuntimeError(f'gradients are not recorded, and graphs not traced, through on="{on}": leave it out, or pass `x.detach()`')
    return True


def is_plain(*arrays: Any) -> bool:
    """Whether all arrays are ordinary tensors of PyTorch, and a call on them is neither recorded nor
    traced. This is the question of every call, so it is answered before all others.
    """
    import torch

    global _forward, _is_autocast, _is_compiling
    is_compiling = torch.compiler.is_compiling
    if is_compiling():
        return False
    _is_compiling, _is_autocast, _forward = is_compiling, torch.is_autocast_enabled, torch.autograd.forward_ad
    if _forward._current_level >= 0:
        check_no_tangents(arrays)
    is_grad_enabled = torch.is_grad_enabled()
    for own in arrays:
        if own is None:
            continue
        if type(own) is not torch.Tensor and type(own) is not torch.nn.Parameter:
            return False
        if (is_grad_enabled and own.requires_grad) or own.is_meta:
            return False
    # Tensors of `vmap` look like ordinary ones. That is asked of a function that is not public.
    return not getattr(torch._C, "_are_functorch_transforms_active", bool)()


def check_no_tangents(arrays: Any) -> None:
    """Refuses tensors that have tangents, which kernels do not read: the derivative would be 0."""
    unpacked = import_module("torch.autograd.forward_ad").unpack_dual
    for own in arrays:
        if is_torch(own) and unpacked(own).tangent is not None:
            raise RuntimeError(
                "operators have no forward derivatives (`jvp`, `jacfwd`): use those of `backward`, or write the formula in PyTorch"
            )


def repeated(
    call: Any,
    arrays: tuple[Any, ...],
    name: str,
    arguments: Any,
    out: Any = None,
    calls: Any = known_calls,
    by_rows: bool = False,
) -> Any:
    """The results of a call on ordinary tensors of PyTorch, by repeating the launches of an equal
    earlier call; None if there was none, or if the call needs a look at ``out``. Where gradients are
    recorded, they are those of the operator ``name`` on ``arguments``, and the result is a new tensor.
    Of the arrays that are None, there is none; the first is there.

    This is the whole way of most calls, so it asks nothing of what is asked again behind it.
    """
    if _is_compiling is None or _is_compiling() or _forward._current_level >= 0:
        return None
    return repeat_call(calls, call, arrays, recorded.get(name), arguments, out, by_rows)


def is_autocast() -> bool:
    """Whether PyTorch's automatic mixed precision is enabled for CUDA tensors."""
    return _is_autocast is not None and _is_autocast("cuda")


def _is_recorded(arrays: tuple[Any, ...]) -> bool:
    import torch

    if torch.is_grad_enabled():
        for own in arrays:
            if own is not None and getattr(own, "requires_grad", False):
                return True
    return is_traced(*arrays)


def is_traced(*arrays: Any) -> bool:
    """Whether a call on these arrays is traced, by the compiler of PyTorch or another transformation, or
    has tensors without contents.

    Errors: some of them are no tensors, or have contents while others have none.
    """
    if not is_torch(arrays[0]):
        return False
    import torch

    given = [own for own in arrays if own is not None]
    if all(type(own) in (torch.Tensor, torch.nn.Parameter) and not own.is_meta for own in given):
        # Tensors of `vmap` look like ordinary ones. That is asked of a function that is not public.
        return torch.compiler.is_compiling() or bool(getattr(torch._C, "_are_functorch_transforms_active", bool)())
    for own in given:
        if not is_torch(own):
            raise TypeError(f"an operator takes arrays of one package, and these are of PyTorch and of {type(own).__module__}: convert them first")
    if len({own.is_meta for own in given}) > 1:
        raise ValueError("some of the tensors are on the device meta, and have no contents: move all there, or none")
    return True


def stored(out: Any, value: Any) -> Any:
    """A result, or ``out`` with its elements."""
    if out is None:
        return value
    if is_torch(out):
        return out.copy_(value)
    if any(step == 0 and extent > 1 for extent, step in zip(out.shape, getattr(out, "strides", ()))):
        raise ValueError(f"out, of the shape {tuple(out.shape)}, has several elements at one place in memory: pass a copy of it")
    out[...] = value
    return out


def overlaps(out: Any, *arrays: Any) -> bool:
    """Whether ``out`` may share memory with an array, which a kernel that writes it reads."""
    if out is None:
        return False
    return any(_may_share(out, own) for own in arrays if own is not None)


def _may_share(out: Any, array: Any) -> bool:
    if out is array:
        return True
    if is_torch(out) and is_torch(array):
        if out.device != array.device or not out.numel() or not array.numel():
            return False
        (first, end), (begin, last) = _reach(out), _reach(array)
        return first < last and begin < end
    import numpy as np

    return isinstance(out, np.ndarray) and isinstance(array, np.ndarray) and np.may_share_memory(out, array)


def _reach(tensor: Any) -> tuple[int, int]:
    """The addresses from the first element of a tensor to behind the last."""
    first = tensor.data_ptr()
    steps = sum((extent - 1) * step for extent, step in zip(tensor.shape, tensor.stride()))
    return first, first + (steps + 1) * tensor.element_size()


def check_same(x: Any, name: str, of: Any) -> None:
    """Refuses an array that has not the shape and the type of ``x``."""
    if tuple(of.shape) != tuple(x.shape):
        raise ValueError(f"{name} has the shape {tuple(of.shape)}, and x has {tuple(x.shape)}")
    check_type(x, name, of)


def check_type(x: Any, name: str, of: Any, beside: str = "x") -> None:
    """Refuses an array that has not the type of ``x``."""
    if type_name(of) != type_name(x):
        raise ValueError(f"{name} has the type {type_name(of)}, and {beside} has {type_name(x)}: convert one of them first")


def check_out(out: Any, shape: tuple[int, ...], like: Any, *others: str) -> None:
    """Refuses an ``out`` that has not this shape and the type of an array, or one of others."""
    if tuple(out.shape) != shape or type_name(out) not in (type_name(like), *others):
        raise ValueError(
            f"out has the shape {tuple(out.shape)} and the type {type_name(out)}, and the result {shape} and {type_name(like)}"
        )


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


#: The operators that are registered with PyTorch, once they are.
registered: Any = None


def through_torch(name: str, *arguments: Any) -> Any:
    """A call of an operator that is registered with PyTorch."""
    if registered is None:
        import_module("tilewright.torch")
    return getattr(registered, name)(*arguments)


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
    if kind == "meta" or not torch.is_autocast_enabled(kind):
        return arrays
    to = torch.get_autocast_dtype(kind)
    # As PyTorch does, it leaves double precision alone.
    return tuple(
        own.to(to) if own is not None and own.is_floating_point() and own.dtype != torch.float64 else own for own in arrays
    )
