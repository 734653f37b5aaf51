"""Launches of Triton that run on the host, checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import triton as on_host
from ._sanitize import Sanitized

#: The modules and classes of Triton that launch kernels.
_LAUNCHERS = (("triton.runtime.jit", "JITFunction"), ("triton.runtime.autotuner", "Autotuner"), ("triton.runtime.autotuner", "Heuristics"))


@contextmanager
def sanitizer(*, target: str = "sm_90a", **options: Any) -> Iterator[list[Sanitized]]:
    """In this context, a launch of a function of ``@triton.jit`` on arrays of the host, ``add[grid](x, y, z,
    n, BLOCK=128)``, is compiled for the target, runs on the host and is checked; it needs no GPU. What each
    launch gave is in the list. Launches on tensors of a device go there, unchecked.

    ``options`` are those of ``tilewright.sanitize``: ``schedules``, ``seed``, ``limit``, ``check``, ``costs``. What is
    found is a ``SanitizerError`` of the launch, unless ``check`` is False. ``@triton.autotune`` takes its first
    configuration. The context is that of all threads.

    >>> import tilewright as tw
    >>> with tw.sanitizer(schedules=2) as reports:               # doctest: +SKIP
    ...     add[(8,)](x, y, z, 1000, BLOCK=128)
    """
    from importlib import import_module

    unknown = set(options) - {"schedules", "seed", "limit", "check", "costs"}
    if unknown:
        raise TypeError(f"sanitizer() has no option {sorted(unknown)[0]!r}; it has target, schedules, seed, limit, check and costs")
    reports: list[Sanitized] = []
    before = []
    for module, name in _LAUNCHERS:
        launcher = getattr(import_module(module), name)
        before.append((launcher, launcher.run))
        launcher.run = _checked(launcher.run, reports, target, options)
    try:
        yield reports
    finally:
        for launcher, run in before:
            launcher.run = run


def _checked(run: Any, reports: list[Sanitized], target: str, options: dict[str, Any]) -> Any:
    """The method of Triton that launches a kernel, but for arrays of the host."""

    def launch(self: Any, *args: Any, grid: Any, warmup: bool = False, **named: Any) -> Any:
        if warmup or any(_is_on_device(own) for own in (*args, *named.values())):
            return run(self, *args, grid=grid, warmup=warmup, **named)
        report = on_host.run(self, grid, *args, target=target, **named, **{**options, "check": False})
        reports.append(report)
        if options.get("check", True) and not report.is_clean:
            from ._sanitize import SanitizerError

            raise SanitizerError(report)
        return None

    return launch


def _is_on_device(own: Any) -> bool:
    return bool(getattr(own, "is_cuda", False)) or hasattr(own, "__cuda_array_interface__")
