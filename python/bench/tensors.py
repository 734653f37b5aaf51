"""Tensors on the GPU, and how two of them are compared."""

# mypy: ignore-errors
from __future__ import annotations

import torch


def numbers(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda").to(dtype)


def whole(*shape, dtype=torch.float32):
    """Small whole numbers, whose products and sums are exact."""
    return torch.randint(-3, 4, shape, device="cuda").to(dtype)


def poisoned(*shape, dtype=torch.float32):
    return torch.full(shape, float("nan") if dtype.is_floating_point else 77, device="cuda", dtype=dtype)


def same(found, wanted, what):
    if not torch.equal(found, wanted.to(found.dtype)):
        wrong = (found != wanted.to(found.dtype)).nonzero()
        raise AssertionError(f"{what}: {len(wrong)} of {found.numel()} elements are wrong, the first at {wrong[0].tolist()}")


def close(found, wanted, what, tolerance=None):
    """Within what rounding to the type of the result, and sums in f32, allow."""
    tolerance = tolerance or {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}[found.dtype]
    wanted = wanted.double()
    off = (found.double() - wanted).abs() / (wanted.abs() + 1)
    # NaN is not below anything.
    if not bool((off < tolerance).all()):
        raise AssertionError(f"{what}: off by {off.max().item():.3g} at {off.argmax().item()}, {tolerance} is allowed")
