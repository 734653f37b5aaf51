"""Optimizers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Optional

import torch

from .. import ops

__all__ = ["AdamW"]


class AdamW(torch.optim.Optimizer):  # type: ignore[misc]
    """AdamW with decoupled weight decay, as ``torch.optim.AdamW``: a step reads each parameter, its
    gradient and its averages once. The averages have the type of the parameters, or ``state``.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        state: Optional[torch.dtype] = None,
    ) -> None:
        if lr < 0 or eps < 0 or weight_decay < 0 or not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"lr, eps and weight_decay are from 0, and betas less than 1: {lr}, {eps}, {weight_decay}, {betas}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "state": state})

    def load_state_dict(self, state_dict: Any) -> None:
        """As that of ``torch.optim.Optimizer``, which gives averages the type of the parameters: here they keep
        the type ``state``.
        """
        super().load_state_dict(state_dict)
        numbers = [number for group in state_dict["param_groups"] for number in group["params"]]
        own = [(parameter, group) for group in self.param_groups for parameter in group["params"]]
        for number, (parameter, group) in zip(numbers, own):
            for name in ("exp_avg", "exp_avg_sq"):
                if group["state"] is not None and name in state_dict["state"].get(number, {}):
                    saved = state_dict["state"][number][name]
                    self.state[parameter][name] = saved.to(device=parameter.device, dtype=group["state"], copy=True)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """A step of all parameters that have gradients."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            by_step: dict[int, list[Any]] = {}
            for own in group["params"]:
                if own.grad is None:
                    continue
                state = self.state[own]
                if not state:
                    state["step"] = 0
                    for name in ("exp_avg", "exp_avg_sq"):
                        state[name] = torch.zeros_like(own, dtype=group["state"] or own.dtype)
                state["step"] += 1
                by_step.setdefault(state["step"], []).append((own, own.grad, state["exp_avg"], state["exp_avg_sq"]))
            for step, arrays in by_step.items():
                ops.adamw(
                    *zip(*arrays),
                    step=step,
                    lr=float(group["lr"]),
                    betas=group["betas"],
                    epsilon=group["eps"],
                    decay=group["weight_decay"],
                )
        return loss
