"""Measures the plans of problems on the device of the user."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import _native, gpu
from ._errors import LayoutError
from ._record import record


@dataclass(frozen=True)
class Tuned:
    """A problem whose plans were measured."""

    #: The name of the kernel, such as "gemm", and the problem.
    kernel: str
    problem: str
    #: The fastest plan, and the time of a launch.
    plan: str
    microseconds: float
    #: The time of the plan that is taken without measurements.
    model_microseconds: float
    #: How many plans were measured, and the file in which the fastest is kept.
    plans: int
    path: str

    def __str__(self) -> str:
        return (
            f"{self.kernel} {self.problem}\n  {self.microseconds:.2f} us, the fastest of {self.plans}; "
            f"the plan of the model {self.model_microseconds:.2f} us\n  {self.plan}"
        )


class Tuning:
    """Measurements that are under way, or over. ``print`` shows what was measured."""

    def __init__(self) -> None:
        #: The problems that were measured.
        self.results: list[Tuned] = []
        #: The problems that were not, with the reason.
        self.refused: list[tuple[str, str, str]] = []
        self._left = 0
        self._thread: threading.Thread | None = None
        self._is_stopped = False

    @property
    def done(self) -> bool:
        """Whether nothing is measured any more."""
        return self._thread is None or not self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> Tuning:
        """Waits until all was measured, or for so many seconds."""
        if self._thread is not None:
            self._thread.join(timeout)
        return self

    def stop(self) -> Tuning:
        """Ends it behind the problem that is measured now."""
        self._is_stopped = True
        return self.wait()

    def __str__(self) -> str:
        lines = [str(own) for own in self.results]
        lines += [f"{kernel} {problem}\n  not measured: {because}" for kernel, problem, because in self.refused]
        if self._left:
            lines.append(f"{self._left} problems were not reached in time")
        return "\n".join(lines) or "no problem was planned for this device"

    def _run(self, problems: _native.Problems, seconds: float, plans: int) -> None:
        end = time.monotonic() + seconds
        count = len(problems)
        for number in range(count):
            left = end - time.monotonic()
            if self._is_stopped or (number and left <= 0):
                self._left = count - number
                break
            kernel, problem = problems.name(number)
            try:
                made = problems.tune(number, max(left, 0.0) / (count - number), plans)
            except (LayoutError, ValueError) as error:
                self.refused.append((kernel, problem, str(error)))
                continue
            self.results.append(Tuned(kernel, problem, *made))
        gpu._forget()


def tune(
    calls: Sequence[tuple[Any, ...]] | None = None,
    *,
    seconds: float = 60.0,
    plans: int = 16,
    background: bool = False,
    device: int = 0,
) -> Tuning:
    """Measures plans of the GEMMs, relayouts and reductions that this process has planned for a device,
    and keeps the fastest of each. Later calls of this process take it, and so do later processes with
    the same card, driver and version of the package.

    ``calls``: the problems of these calls alone, each a function of ``tilewright.gpu`` or
    ``tilewright.ops`` and its arguments, which are planned and not launched: ``tune([(tw.ops.linear, x,
    weight)])``. Options are given by ``functools.partial``. ``seconds`` is shared equally by the problems; ``plans`` are measured of each at most, those
    first that the model takes for the fastest. A plan whose result is wrong ends the measurement of
    its problem, and is reported.

    ``background``: returns at once, and measures beside other work of the process. Times are then those
    of a device that is shared, and the fastest plan among them is still a right one.

    >>> import tilewright as tw
    >>> if tw.gpu.device_count():
    ...     print(tw.tune(seconds=1))
    """
    if not seconds > 0 or not seconds < float("inf"):
        raise ValueError(f"seconds are a number above 0, not {seconds}")
    if plans < 1:
        raise ValueError(f"at least one plan of a problem is measured, not {plans}")
    since = 0
    if calls is not None:
        # A problem whose plan is kept would not be asked for again.
        gpu._forget()
        since = _native.asked_count(device)
        for function, *arguments in calls:
            record(function, tuple(arguments), {})
    tuning = Tuning()
    problems = _native.Problems(device, since)
    if background:
        tuning._thread = threading.Thread(target=tuning._run, args=(problems, seconds, plans), name="tilewright-tune", daemon=True)
        tuning._thread.start()
    else:
        tuning._run(problems, seconds, plans)
    return tuning

