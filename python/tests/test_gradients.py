"""Gradients of tile programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw


@tw.tile(grid="ceil(M/2)")  # type: ignore[untyped-decorator]
def rms_norm(
    x: tw.Input("f32", "(M,64):(64,1)"),  # type: ignore[valid-type]
    w: tw.Input("f32", "(1,64):(64,1)"),  # type: ignore[valid-type]
    y: tw.Output("f32", "(M,64):(64,1)"),  # type: ignore[valid-type]
) -> None:
    at = (tw.tile.block.x, 0)
    a = x.load((2, 64), at)
    scale = ((a * a).reduce_sum(1) / 64.0 + 1e-5).rsqrt()
    y.store(at, a * scale * w.load((1, 64), (0, 0)))


def _arrays(rows: int) -> tuple[Any, Any, Any]:
    source = np.random.default_rng(rows)
    return tuple(source.standard_normal(shape).astype("f4") for shape in [(rows, 64), (1, 64), (rows, 64)])  # type: ignore[return-value]


@pytest.mark.parametrize("rows", [1, 7, 130])
def test_a_norm_has_the_gradient_of_its_formula(rows: int) -> None:
    x, w, d = _arrays(rows)
    found = rms_norm.gradient()(x=x, w=w, d_y=d)
    assert sorted(found) == ["d_w", "d_x"]
    a, weights, by = (own.astype("f8") for own in (x, w, d))
    scale = 1 / np.sqrt((a * a).mean(1, keepdims=True) + 1e-5)
    g = by * weights
    np.testing.assert_allclose(found["d_w"], (by * a * scale).sum(0, keepdims=True), rtol=1e-4, atol=1e-4)
    exact = scale * g - a * scale**3 * (g * a).mean(1, keepdims=True)
    np.testing.assert_allclose(found["d_x"], exact, rtol=1e-4, atol=1e-4)


def test_given_arrays_are_written_in_place() -> None:
    x, w, d = _arrays(5)
    out = np.empty_like(w)
    gradient = rms_norm.gradient(of="w")
    found = gradient(x=x, w=w, d_y=d, d_w=out)
    assert found["d_w"] is out and list(found) == ["d_w"]
    assert np.array_equal(out, gradient(x=x, w=w, d_y=d)["d_w"])
    # One program has the parts, and one adds them.
    assert len(gradient.programs) == 2
    assert "parts_of_d_w" in gradient.text
    # Atomics add to what is there.
    added = np.ones_like(w)
    rms_norm.gradient(of="w", atomic=True)(x=x, w=w, d_y=d, d_w=added)
    np.testing.assert_allclose(added, 1 + out, rtol=1e-5, atol=1e-5)


def test_numbers_of_the_launch_are_passed() -> None:
    @tw.tile(grid="ceil(N/16)")  # type: ignore[untyped-decorator]
    def scaled(x: tw.Input("f32", "N:1"), scale: tw.Scalar("f32"), y: tw.Output("f32", "N:1")) -> None:  # type: ignore[valid-type]
        a = x.load((16,), (tw.tile.block.x,))
        y.store((tw.tile.block.x,), a * a * scale)

    x = np.arange(20, dtype="f4")
    found = scaled.gradient()(x=x, scale=3.0, d_y=np.ones_like(x))
    np.testing.assert_array_equal(found["d_x"], 6 * x)
    with pytest.raises(TypeError, match="misses its number 'scale'"):
        scaled.gradient()(x=x, d_y=x)


def test_what_is_missing_or_unknown_is_named() -> None:
    x, w, d = _arrays(3)
    gradient = rms_norm.gradient()
    with pytest.raises(TypeError, match="misses its array 'w'"):
        gradient(x=x, d_y=d)
    with pytest.raises(TypeError, match="no tensor 'z'"):
        gradient(x=x, w=w, d_y=d, z=d)
    with pytest.raises(ValueError):
        gradient(x=x, w=w, d_y=d[:2])
    with pytest.raises(tw.KernelError, match="no tensor of this name") as refused:
        rms_norm.gradient(of="z")
    assert refused.value.code == "E1213"

    @tw.tile(grid="M")  # type: ignore[untyped-decorator]
    def product(x: tw.Input("f32", "(M,8):(8,1)"), y: tw.Output("f32", "(M,1):(1,1)")) -> None:  # type: ignore[valid-type]
        y.store((tw.tile.block.x, 0), x.load((1, 8), (tw.tile.block.x, 0)).reduce_product(1))

    with pytest.raises(tw.KernelError, match="a product along a mode") as refused:
        product.gradient()
    assert refused.value.lineno is not None


@pytest.mark.parametrize("strides", ["(1,M)", "(9,1)"])
def test_derivatives_lie_as_their_inputs(strides: str) -> None:
    @tw.tile(grid="ceil(M/4)", x=tw.Input("f32", f"(M,8):{strides}"))  # type: ignore[untyped-decorator]
    def square(x: Any, y: tw.Output("f32", "(M,8):(8,1)")) -> None:  # type: ignore[valid-type]
        at = (tw.tile.block.x, 0)
        a = x.load((4, 8), at)
        y.store(at, a * a)

    x = np.random.default_rng(11).integers(-9, 9, (7, 9)).astype("f4")[:, :8]
    x = np.asfortranarray(x) if strides == "(1,M)" else x
    found = square.gradient()(x=x, d_y=np.ones((7, 8), "f4"))
    assert np.array_equal(found["d_x"], 2 * x) and found["d_x"].strides == x.strides
