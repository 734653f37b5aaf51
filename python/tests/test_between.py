# mypy: ignore-errors
"""Work on sharded tensors by several processes, each of them started by these tests.

Sockets connect processes with arrays of NumPy everywhere; PyTorch's gloo does where PyTorch is
installed, which takes minutes and gigabytes, so that nothing here installs it.
"""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw

PROGRAM = Path(__file__).parent / "between.py"
THROUGH = [
    "sockets",
    pytest.param("gloo", marks=pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="there is no PyTorch")),
]
PATIENCE = 4.0
# The patience and three seconds, as promised, and what a busy machine needs to start and to end.
BOUND = PATIENCE + 3 + 30


def started(ranks, through, *arguments, patience=30.0):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = []
    for rank in range(ranks):
        place = {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        environment = {**os.environ, **{name: str(value) for name, value in place.items()}, "PATIENCE": str(patience)}
        environment["TILEWRIGHT_TOKEN"] = "token-of-the-tests"
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, str(PROGRAM), through, *map(str, arguments)]
        processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    return processes


def ended(processes, bound=240.0):
    """The last line that each process says."""
    until = time.monotonic() + bound
    lines = []
    try:
        for process in processes:
            out, error = process.communicate(timeout=max(until - time.monotonic(), 0.1))
            lines.append((out.strip().splitlines() or [error])[-1])
            assert process.returncode <= 0, error
    finally:
        for process in processes:
            process.kill()
    return lines


@pytest.mark.parametrize("through", THROUGH)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_what_processes_hold_is_what_defines_it(through, ranks):
    count = 60 if ranks > 1 else 10
    first = 1000 * ranks
    assert ended(started(ranks, through, "all", first, first + count)) == [f"right {count}"] * ranks


@pytest.mark.parametrize("through", THROUGH)
@pytest.mark.parametrize("case", range(4))
def test_who_is_killed_or_hangs_is_named_by_all_others(through, case):
    source = random.Random(20261123 + case)
    ranks = [2, 3, 3, 4][case]
    processes = started(ranks, through, "endless", patience=PATIENCE)
    assert [process.stdout.readline() for process in processes] == ["begun\n"] * ranks
    time.sleep(1 + source.random())
    victim = source.randrange(ranks)
    hangs = case % 2 == 1
    processes[victim].send_signal(signal.SIGSTOP if hangs else signal.SIGKILL)
    others = [process for rank, process in enumerate(processes) if rank != victim]
    try:
        lines = ended(others, BOUND)
    finally:
        processes[victim].kill()
        processes[victim].communicate()
    for line in lines:
        assert line.startswith(f"error E1111 rank {victim} is lost, ") and "step" in line, lines


@pytest.mark.parametrize("through", THROUGH)
@pytest.mark.parametrize(
    ("what", "code", "words"),
    [
        ("layout", "E1110", "rank 2 has another layout after"),
        ("type", "E1110", "rank 2 has another element"),
        ("mesh", "E1110", "rank 2 has another mesh"),
        ("work", "E1110", "rank 2 has another operation"),
        ("memory", "E1109", "rank 2 has memory for 5 elements"),
        ("shape", "E1116", "rank 2 cannot go on, before step 1"),
        ("function", "E1116", "rank 2 cannot go on, in the function of elements: OSError: no such thing"),
        ("interrupt", "E1111", "rank 2 is lost, in the function of elements: it was interrupted"),
    ],
)
def test_who_does_something_else_is_named_by_all(through, what, code, words):
    lines = ended(started(3, through, "other", what, patience=PATIENCE))
    own = {"shape": "ValueError", "function": "OSError", "interrupt": "error interrupted"}
    for rank, line in enumerate(lines):
        if rank == 2 and what in own:
            assert own[what] in line, lines
        else:
            assert line.startswith(f"error {code} {words}"), lines


def alone():
    return tw.mesh.Processes(0, 1, "127.0.0.1", 29500)


def test_groups():
    processes = alone()
    assert (processes.rank, processes.ranks, processes.patience, repr(processes)) == (0, 1, 30.0, "<process 0 of 1>")
    assert processes.exchange("step 1", [], []) == []
    for refused in (lambda: tw.mesh.Processes(1, 1, "", 1), lambda: tw.mesh.Processes(0, 1, "", 1, 0.0), lambda: tw.mesh.Processes(0, 1, "", 1, float("nan"))):
        with pytest.raises(ValueError):
            refused()
    with pytest.raises(tw.LayoutError) as error:
        tw.mesh.Processes(1, 2, "127.0.0.1", 1, 0.2, token="token-of-the-tests")
    assert error.value.code == "E1111"
    with pytest.raises(tw.LayoutError, match="token") as error:
        tw.mesh.Processes(1, 2, "127.0.0.1", 1, 0.2, token="short")
    assert error.value.code == "E1112"
    mesh = tw.mesh.Mesh("x=1")
    row = mesh.layout("4:1")
    with pytest.raises(TypeError, match="PyTorch"):
        tw.mesh.reshard([1, 2, 3, 4], row, row, processes)
    # A process that failed once fails again, by the same error.
    with pytest.raises(tw.LayoutError) as error:
        tw.mesh.reshard(np.zeros(4), row, mesh.layout("5:1"), processes)
    assert error.value.code == "E1105"
    with pytest.raises(tw.LayoutError):
        processes.agree("later", "")


def test_work_of_one_process():
    mesh = tw.mesh.Mesh("x=1")
    matrix, column = mesh.layout("(2,3):(3,1)"), mesh.layout("(2,1):(1,0)")
    numbers = np.array([[1.0, 5.0, 5.0], [np.nan, 7.0, 2.0]])
    assert tw.mesh.argmax(numbers, matrix, 1, column, alone()).tolist() == [[1], [0]]
    # Of all elements, as NumPy counts them; of equal ones the first.
    for all_ in (numbers, np.array([[1.0, 5.0, 5.0], [5.0, 2.0, 5.0]])):
        assert tw.mesh.argmax(all_, matrix, (0, 1), mesh.layout("(1,1):(0,0)"), alone()).item() == all_.argmax()
    assert np.isnan(tw.mesh.reduce(numbers, matrix, 1, column, "max", alone())[1, 0])
    assert tw.mesh.reduce(np.array([[1, 2, 3], [4, 5, 6]]), matrix, (1, 0), mesh.layout("(1,1):(0,0)"), "sum", alone()) == [[21]]
    with pytest.raises(ValueError, match="mean"):
        tw.mesh.reduce(np.array([[1, 2, 3], [4, 5, 6]]), matrix, 1, column, "mean", alone())
    with pytest.raises(ValueError, match="median"):
        tw.mesh.reduce(numbers, matrix, 1, column, "median", alone())
    with pytest.raises(ValueError, match="real"):
        tw.mesh.softmax(np.array([[1, 2, 3], [4, 5, 6]]), matrix, 1, group=alone())
    with pytest.raises(ValueError, match="layout"):
        tw.mesh.map(np.add, [numbers, numbers], [matrix], matrix, alone())
    with pytest.raises(ValueError, match="shape"):
        tw.mesh.map(np.sum, [numbers], [matrix], matrix, alone())


def test_plans_of_operations():
    mesh = tw.mesh.Mesh("tp=2")
    rows, sums = mesh.layout("((2,2),4):((1,1@tp),2)"), mesh.layout("(1,4):(0,1) copied 2:1@tp")
    plan = rows.reduce([0], sums, bytes=8)
    assert [move.kinds for move in plan.moves] == [["nothing"], ["all-reduce"]] and plan.seconds > 0
    assert "plan of sum over modes [0]" in repr(plan) and "all-reduce" in str(plan)
    memory = [[float(rank * 8 + at) for at in range(8)] for rank in range(2)]
    assert plan.simulate(memory) == [[18.0, 26.0, 34.0, 42.0]] * 2
    assert rows.reduce([0], sums, bytes=8, by="argmax").simulate(memory) == [[3.0] * 4] * 2
    soft = rows.softmax([0], rows, bytes=8)
    assert np.allclose(np.sum(soft.simulate(memory), axis=0).reshape(4, 2).sum(axis=1), 1)
    both = rows.map([rows], sums_of(mesh), bytes=8)
    assert len(both.moves) == 3
    with pytest.raises(ValueError, match="function"):
        both.simulate(memory)
    with pytest.raises(ValueError, match="median"):
        rows.reduce([0], sums, bytes=8, by="median")
    with pytest.raises(tw.LayoutError):
        rows.reduce([2], sums, bytes=8)
    move = rows.reshard(sums_of(mesh), bytes=8)
    assert (move.before, move.after) == (rows, sums_of(mesh)) and move.contract.startswith("mesh: tp=2\n")
    # What a process holds: two rows from row 2 on, and all columns.
    assert rows.part(1) == (0, [(2, [(2, 1, 1)]), (0, [(4, 1, 2)])]) and rows.reach == 8
    kind, reach, is_full, sends, arrivals = move.steps(1)[0]
    assert (reach, is_full, [to for to, _ in sends]) == (8, True, [0]), kind
    assert sorted((source, add) for source, add, _ in arrivals) == [(0, False), (1, False)]


def sums_of(mesh):
    return mesh.layout("(4,(2,2)):(1,(4,1@tp))")
