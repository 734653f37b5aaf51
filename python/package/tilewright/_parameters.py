"""Parameters of kernels: their annotations and arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin

from . import _native
from ._native import Layout, Tensor


class Array:
    """A tensor that a kernel takes: the type of its elements, and its layout.

    Sizes that become known at launch are names, with facts in braces: ``"(M{div=64},N):(N,1)"``.
    Without a layout, that of the array that is passed is taken: its sizes are numbers of the launch
    where the kernel does not use them as constants.
    """

    role = "tensor"

    def __init__(self, element: Any, layout: Any = None) -> None:
        self.element = element
        self.layout = layout

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.element!r}, {str(self.layout)!r})"


class Input(Array):
    """A tensor that the kernel reads and never writes."""

    role = "input"


class Output(Array):
    """A tensor each element of which the kernel writes exactly once."""

    role = "output"


class InOut(Array):
    """A tensor that the kernel reads and writes."""

    role = "tensor"


class Scalar:
    """A number that the launch passes, of a type of 16 bits or more."""

    def __init__(self, element: Any) -> None:
        self.element = element

    def __repr__(self) -> str:
        return f"Scalar({self.element!r})"


class Known:
    """What is said of sizes and integers without a declaration: that they are constants, or numbers
    of the launch; and a value that it is said of, where it is said in a call.
    """

    __slots__ = ("value", "is_static", "div")

    def __init__(self, value: Any, is_static: bool, div: int | None) -> None:
        self.value = value
        self.is_static = is_static
        self.div = div

    def __repr__(self) -> str:
        name = "static" if self.is_static else "dynamic"
        return f"tw.{name}({'' if self.value is None else repr(self.value)}{'' if self.div is None else f', div={self.div}'})"


def static(value: Any = None) -> Any:
    """Says that an integer, or all sizes of an array, are constants of the kernel: one is traced for
    each value. In a call, ``kernel(x, tw.static(n))``, or as an annotation, ``n: tw.static``.
    """
    return Known(value, True, None)


def dynamic(value: Any = None, *, div: int | None = None) -> Any:
    """Says that an integer, or all sizes of an array, are numbers of the launch; a kernel that needs
    one as a constant is refused. With ``div``, an integer, or the strides and the contiguous extent
    of an array, are multiples of it. In a call, ``kernel(tw.dynamic(x, div=8), n)``, or as an
    annotation, ``n: tw.dynamic``.
    """
    if div is not None and (isinstance(div, bool) or not isinstance(div, int) or div < 1):
        raise ValueError(f"div is a positive integer, not {div!r}")
    return Known(value, False, div)


class Shape:
    """The type and the shape of an array, where a question about a kernel needs no elements:
    ``kernel.ptx(tw.spec("f32", (1024, 512)))``.
    """

    __slots__ = ("element", "shape", "strides")

    def __init__(self, element: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.element = element
        self.shape = shape
        self.strides = strides

    def __repr__(self) -> str:
        return f"tw.spec({self.element!r}, {self.shape}, {self.strides})"


def spec(element: Any, shape: Any, strides: Any = None) -> Shape:
    """The type, the shape and the strides of an array, for questions about a kernel that need no
    elements: `ptx`, `cost`, `check`, `draw`. Without strides the last axis is contiguous.

    >>> import tilewright as tw
    >>> tw.spec("f32", (4, 8))
    tw.spec('f32', (4, 8), (8, 1))
    """
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if strides is None:
        strides, step = (), 1
        for extent in reversed(shape):
            strides, step = (step, *strides), step * extent
    strides = tuple(strides) if isinstance(strides, (tuple, list)) else (strides,)
    for number in (*shape, *strides):
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise TypeError(f"a shape and strides are integers from 0 on, not {number!r}")
    if len(shape) != len(strides):
        raise TypeError(f"a shape of {len(shape)} axes has {len(shape)} strides, not {len(strides)}")
    return Shape(_native.element_name(element), shape, strides)


class Placed:
    """A `Shape` as an array without memory, which native functions read shapes of."""

    __slots__ = ("shape", "dtype", "__array_interface__")

    def __init__(self, of: Shape) -> None:
        # Wherever it is, it is aligned.
        bytes_of = {"f64": 8, "i64": 8, "u64": 8, "f32": 4, "i32": 4, "u32": 4, "f16": 2, "bf16": 2, "i16": 2, "u16": 2}
        width = bytes_of.get(of.element, 1)
        self.dtype = of.element
        self.shape = of.shape
        self.__array_interface__ = {
            "data": (0, False),
            "shape": of.shape,
            "strides": tuple(stride * width for stride in of.strides),
            "typestr": f"|V{width}",
        }


def is_array(value: Any) -> bool:
    if isinstance(value, (Tensor, Placed)):
        return True
    return hasattr(value, "__array_interface__") or hasattr(value, "__cuda_array_interface__") or hasattr(value, "data_ptr")


Spec = Array | Scalar | Known | None


def _spec(said: Any) -> Spec:
    if said is static or said is dynamic:
        said = said()
    return said if isinstance(said, (Array, Scalar, Known)) else None


def specs_of(function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Spec]:
    """What each parameter is: said in the annotations, or to the decorator."""
    import inspect

    # What is traced has a text, whose lines messages show.
    written: bool = inspect.isfunction(function) or inspect.ismethod(function)
    if not written:
        raise TypeError(f"a kernel is a function that is written in Python, with `def`, not {type(function).__name__}")
    annotations = getattr(function, "__annotations__", {})
    specs: dict[str, Spec] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise TypeError(f"'{name}' of {function.__name__}: a kernel has plain parameters, each with a name")
        said = given.pop(name, annotations.get(name))
        if isinstance(said, str):
            try:
                said = eval(said, function.__globals__, inspect.getclosurevars(function).nonlocals)
            except NameError as error:
                raise TypeError(
                    f"the annotation of '{name}' is not understood ({error}): say it to the decorator, @tw.jit({name}=tw.Input(..))"
                ) from None
        if get_origin(said) is Annotated:
            said = next((item for item in get_args(said)[1:] if _spec(item) is not None), None)
        specs[name] = _spec(said)
    if given:
        raise TypeError(f"{function.__name__} has no parameter '{next(iter(given))}'")
    return specs


__all__ = ["Array", "InOut", "Input", "Layout", "Output", "Scalar", "dynamic", "spec", "static"]
