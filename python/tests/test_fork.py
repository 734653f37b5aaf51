# mypy: ignore-errors
"""Work after a fork: a forked process has none of its parent's threads, and does what the parent did."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import warnings

import numpy as np
import pytest

import tilewright as tw

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")

# More elements than one thread works on.
SIDE = 1500
# Nobody waits for ever for a process that hangs.
BOUND = 60


def work() -> list[float]:
    """Work that is shared among threads: a reduction, a copy in another order, and a product."""
    values = np.arange(SIDE * SIDE, dtype=np.float64).reshape(SIDE, SIDE) % 1009
    rows = tw.Tensor(values)
    total = float(rows.sum())
    turned = tw.Tensor(np.zeros((SIDE, SIDE)).T)
    tw.copy(rows, turned)
    product = tw.Tensor(np.zeros((400, 400)))
    tw.gemm(tw.Tensor(values[:400, :400].copy()), tw.Tensor(values[:400, :400].copy()), product)
    return [total, float(turned.sum()), float(product.sum())]


def forked(call) -> int:
    """The exit status of a forked process that makes a call; one that hangs is ended by an alarm."""
    with warnings.catch_warnings():
        # Newer Pythons warn of forks of processes that have threads.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        signal.alarm(BOUND)
        status = 1
        try:
            status = call()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def test_a_forked_process_works_as_its_parent_does():
    wanted = work()
    assert forked(lambda: 0 if work() == wanted else 2) == 0
    # In threads of it, and in a process that it forks itself.
    def again():
        if work() != wanted:
            return 3
        return forked(lambda: 0 if work() == wanted else 4)

    assert forked(again) == 0
    # The parent goes on.
    assert work() == wanted


def test_a_process_that_is_forked_before_any_work():
    code = f"import os, sys; sys.path[:0] = {sys.path!r}; import test_fork; sys.exit(test_fork.forked(lambda: 0 if len(test_fork.work()) == 3 else 1))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])}
    import subprocess

    assert subprocess.run([sys.executable, "-c", code], env=environment, timeout=BOUND).returncode == 0


def test_pools_of_forked_processes():
    wanted = work()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.apply_async(work).get(BOUND) == wanted
            assert [one.get(BOUND) for one in [pool.apply_async(work) for _ in range(4)]] == [wanted] * 4
