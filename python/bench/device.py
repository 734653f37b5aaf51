"""Python kernels and those of the library on the first GPU, beside PyTorch and Triton, in one run.

    python bench/device.py [--quick | --launches]

First every result is compared, with outputs that were filled with NaN or another number before: on the current stream and on others,
behind work that takes long, from several threads, and with tensors that are freed while kernels run. Then three tables: what a launch
takes of the host, what making a kernel takes, and what the work takes on the device, in turns with PyTorch and Triton. Where a result is
wrong the exit status is 1. `--quick` leaves the times out; `--launches` is what a launch takes of the host alone.
"""

# mypy: ignore-errors
from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

# Nothing is taken from caches of earlier runs, so that what compiling takes is seen.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
os.environ["CUDA_CACHE_PATH"] = tempfile.mkdtemp()
os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()

import torch  # noqa: E402

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "tests")]
import results  # noqa: E402
import times  # noqa: E402


def main():
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, Triton {times.in_triton.triton.__version__}, Python {sys.version.split()[0]}")
    torch.manual_seed(1)
    if "--launches" in sys.argv:
        return times.launches()
    if "--quick" not in sys.argv:
        times.first_calls()
    failed = 0
    for check in results.ALL:
        begun = time.perf_counter()
        try:
            check()
            torch.cuda.synchronize()
            print(f"{check.__name__}: right, {time.perf_counter() - begun:.1f} s", flush=True)
        except Exception as error:
            failed += 1
            import traceback

            traceback.print_exc()
            print(f"{check.__name__}: {error}", flush=True)
    if "--quick" not in sys.argv:
        times.launches()
        times.work()
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
