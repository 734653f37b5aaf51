"""Steps of optimizers."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ..ops import _training
from ._register import register


def _adamw(
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    first: Sequence[Tensor],
    second: Sequence[Tensor],
    step: int,
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    decay: float,
) -> None:
    _training.step_all(parameters, gradients, first, second, step, lr, beta1, beta2, epsilon, decay, None)


register("adamw", _adamw, lambda *arguments: None, ("parameters", "first", "second"))
