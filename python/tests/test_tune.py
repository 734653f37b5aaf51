"""`tw.tune` refuses what it cannot do, and says so."""

from __future__ import annotations

import pytest
import tilewright as tw


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_seconds_are_a_number_above_0(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds are a number above 0"):
        tw.tune(seconds=seconds)


def test_at_least_one_plan_is_measured() -> None:
    with pytest.raises(ValueError, match="at least one plan"):
        tw.tune(plans=0)


@pytest.mark.skipif(tw.gpu.device_count() > 0, reason="there is a device")
def test_without_a_device_there_is_nothing_to_measure_on() -> None:
    with pytest.raises(tw.GpuError, match="E0801"):
        tw.tune(seconds=1)


@pytest.mark.skipif(tw.gpu.device_count() == 0, reason="there is no device")
def test_the_fastest_plan_is_taken_by_the_next_call() -> None:
    import torch

    a, b = (torch.randn(512, 512, device="cuda", dtype=torch.float16) for _ in range(2))
    wanted = tw.gpu.gemm(a, b)
    tuning = tw.tune([(tw.gpu.gemm, a, b)], seconds=20, plans=4)
    assert not tuning.refused
    (own,) = tuning.results
    assert own.kernel == "gemm" and own.microseconds <= own.model_microseconds and own.plans == 4
    assert own.plan in str(tuning)
    torch.testing.assert_close(tw.gpu.gemm(a, b), wanted)
    beside = tw.tune([(tw.gpu.gemm, a, b)], seconds=5, plans=2, background=True)
    assert beside.wait().done and len(beside.results) == 1
