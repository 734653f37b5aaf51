# mypy: ignore-errors
"""Kernels that are timed on a device: what is refused without one, and that a result is compared before it is timed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright as tw
from tilewright import tile

HERE = Path(__file__).resolve().parent


@tw.tile(grid="ceil(M/4)")
def twice(x: tw.Input("f32", "(M,64):(64,1)"), y: tw.Output("f32", "(M,64):(64,1)")):
    y.store((tile.block.x, 0), x.load((4, 64), (tile.block.x, 0)) * 2)


def without_driver():
    try:
        return tw.gpu.device_count() == 0
    except tw.GpuError as error:
        return error.code == "E0801"


@pytest.mark.skipif(not without_driver(), reason="there is a device")
def test_without_a_device_nothing_is_timed():
    asked = [tw.kernels.named("softmax").bench, tw.kernels.named("softmax.tile").bench, lambda **named: twice.bench(M=64, **named)]
    for bench in asked:
        with pytest.raises(tw.GpuError) as raised:
            bench()
        assert raised.value.code == "E0801" and "driver" in raised.value.help
    # What is asked is read first.
    with pytest.raises(ValueError, match="repeats is 1 to 10000, not 0"):
        twice.bench(M=64, repeats=0)
    with pytest.raises(TypeError, match="whose text says its types"):
        tw.kernels.named("softmax.tile").bench(type="f32")
    with pytest.raises(tw.LayoutError):
        tw.kernels.named("softmax").bench(type="i32")
    with pytest.raises(tw.LayoutError):
        tw.kernels.named("softmax").bench(Q=3)


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs a C compiler, on Linux")
def test_what_a_device_leaves_is_compared():
    """By the driver that launches nothing: no result is right, so no time is told."""
    code = "import test_bench; test_bench.on_imitation()"
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "libcuda.so.1"
        subprocess.run(["cc", "-w", "-shared", "-fPIC", "-o", str(library), str(HERE / "driver.c")], check=True)
        paths = [folder, os.environ.get("LD_LIBRARY_PATH", "")]
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": ":".join(path for path in paths if path),
            "XDG_CACHE_HOME": folder,
            "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)]),
        }
        told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)
    assert told.returncode == 0, told.stdout + told.stderr


def on_imitation():
    for bench, words in [
        (lambda **named: tw.kernels.named("softmax").bench(M=8, **named), "the definition says"),
        (lambda **named: tw.kernels.named("softmax.tile").bench(M=8, **named), "the program means"),
        (lambda **named: twice.bench(M=8, **named), "the program means"),
        (lambda **named: twice.bench(M=1 << 20, checked={"M": 8}, **named), "the program means"),
    ]:
        with pytest.raises(tw.KernelError, match=words):
            bench()
        with pytest.raises(tw.GpuError, match="E0803"):
            bench(device=7)
    # Sizes of a check are those of the kernel.
    with pytest.raises(tw.KernelError, match="size"):
        twice.bench(M=8, checked={"N": 8})
