"""The plugin of pytest: tests whose launches of Triton run on the host and are checked.

    @pytest.mark.tilewright(schedules=4)
    def test_add():
        x, y, z = (np.ones(1000, np.float32) for _ in range(3))
        add[(8,)](x, y, z, 1000, BLOCK=128)
        assert (z == 2).all()

What is found fails the test, with the lines of the source that take part. The arguments of the mark are
those of ``tilewright.sanitizer``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


def pytest_configure(config: Any) -> None:
    config.addinivalue_line(
        "markers",
        "tilewright(target='sm_90a', schedules=1, seed=0, limit=..): launches of Triton on arrays of the host run there, checked",
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    mark = item.get_closest_marker("tilewright")
    if mark is None:
        yield
        return
    from ._sanitizer import sanitizer

    if mark.args:
        raise pytest.UsageError("the arguments of the mark `tilewright` have names, such as schedules=4")
    with sanitizer(**mark.kwargs):
        yield
