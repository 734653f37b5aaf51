"""Times of works on the GPU that take turns, and tables of them."""

# mypy: ignore-errors
from __future__ import annotations

import statistics

import torch


def median(values):
    return statistics.median(values)


def in_turns(works, turn=0.015, turns=9):
    """Milliseconds of each work on the device, by events, the works taking turns."""
    counts, taken = {}, {name: [] for name in works}
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def timed(work, count):
        work()  # The device is busy with it while the host prepares the first call that is timed.
        begin.record()
        for _ in range(count):
            work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / count

    for name, work in works.items():
        timed(work, 2)
        counts[name] = max(1, int(1e3 * turn / max(timed(work, 2), 1e-3)))
    for _ in range(turns):
        for name, work in works.items():
            taken[name].append(timed(work, counts[name]))
    return {name: median(times) for name, times in taken.items()}


def table(heads, lines):
    print("\n| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for line in lines:
        print("| " + " | ".join(str(cell) for cell in line) + " |", flush=True)
