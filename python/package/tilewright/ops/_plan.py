"""Plans of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _native
from .._operators import OperatorPlan
from .._record import record


class Plans:
    """The plans of a call, in the order of their launches: of kernels, and of copies of arrays whose
    strides no kernel takes.
    """

    def __init__(self, plans: list[Any]) -> None:
        self.plans = plans

    @property
    def programs(self) -> list[_native.Program]:
        """The kernels, in the order in which they are launched."""
        return [
            program
            for own in self.plans
            for program in (own.programs if isinstance(own, OperatorPlan) else [program for program, _ in own.launches])
        ]

    def __str__(self) -> str:
        return "\n".join(str(own) for own in self.plans)

    def __repr__(self) -> str:
        return f"<plan of {len(self.programs)} launches>"


def plan(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Plans:
    """The kernels of a call of a function of this module, without launching them: ``plan(rms_norm,
    x)``. Of arrays on the host they are those for an H200.

    >>> import numpy as np
    >>> from tilewright.ops import softmax
    >>> print(plan(softmax, np.zeros((2, 64), np.float32)))     # doctest: +ELLIPSIS
    tile softmax {
        input  x: f32 (M,64):(x_pitch{div=4},1)
    ...
    """
    asked = record(function, arguments, named)[1].plans
    if not asked:
        name = getattr(function, "__name__", str(function))
        raise TypeError(f"{name} plans no kernels: it is not a function of tilewright.ops, or an array has no elements")
    return Plans(asked)
