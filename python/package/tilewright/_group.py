"""Processes that carry out plans together: those of ``torch.distributed``, or connected by sockets.

Bytes go through the group that the program already has. What processes say to each other beside
them, what they are about to do and who is lost, goes through connections of their own, so it needs
no stream of a device, and arrives when the group hangs.
"""

from __future__ import annotations

import importlib
import os
import secrets
import socket
from collections.abc import Sequence
from typing import Any, NoReturn

from ._errors import LayoutError
from ._native import Processes


class Group:
    """Processes that carry out plans together, each with the memory of one device.

    ``group`` is a group of ``torch.distributed``, by itself all processes, or ``Processes``, which
    need no PyTorch. A process that does not answer for ``patience`` seconds is lost.

    With ``check`` all processes compare what they are about to do before anything moves: version,
    type, layouts and steps. It takes as long as two short messages; without it processes that do
    different things hang, or hold wrong elements. With ``wait`` a call returns when its result is
    there on all processes; without it, as PyTorch's own calls on CUDA tensors do, when the work has
    been given to the current stream. By itself it waits but for groups of NCCL.

    To make one is a call of all processes.
    """

    def __init__(
        self, group: Any = None, *, patience: float = 30.0, check: bool = True, wait: bool | None = None
    ) -> None:
        self._torch: Any = None
        # Whether a call failed, so that no later one can be made.
        self.failed = False
        # What the group may still read or write after a failure.
        self._kept: list[Any] = []
        self.check = check
        self.backend = "sockets"
        if isinstance(group, Processes):
            self.control = group
        else:
            self._torch = importlib.import_module("torch")
            self._dist = importlib.import_module("torch.distributed")
            if not (self._dist.is_available() and self._dist.is_initialized()):
                raise RuntimeError(
                    "there is no group of torch.distributed: call torch.distributed.init_process_group before, "
                    "or give group=tilewright.mesh.Processes.of_environment()"
                )
            self.group = self._dist.group.WORLD if group is None else group
            self.backend = str(self._dist.get_backend(self.group))
            self.control = self._beside(patience)
        self.rank, self.size, self.patience = self.control.rank, self.control.ranks, self.control.patience
        self.wait = self.backend != "nccl" if wait is None else wait

    def _beside(self, patience: float) -> Processes:
        """Connections beside a group, whose processes learn from it where the first one is."""
        dist = self._dist
        rank, size = dist.get_rank(self.group), dist.get_world_size(self.group)
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        places: list[Any] = [None] * size
        # The first one's token is that of the job: a new one for each group.
        place = (socket.gethostname(), _address(), port, secrets.token_hex(16))
        dist.all_gather_object(places, place, group=self.group)
        here = len({host for host, *_ in places}) == 1
        _, address, port, token = places[0]
        return Processes(rank, size, "127.0.0.1" if here else address, port, patience, token=token)

    def agree(self, step: str, text: str, devices: int | None = None) -> None:
        """Waits until all processes say the same text."""
        self._on(lambda: self.control.agree(step, text, devices))

    def fail(self, step: str, error: BaseException) -> NoReturn:
        """Tells all processes why this one cannot continue, and raises the error."""
        known, self.failed = self.failed, True
        if known:
            raise error
        if not isinstance(error, Exception):
            # Ctrl-C and the like.
            self.control.interrupted(step)
            raise error
        words = error.message if isinstance(error, LayoutError) else str(error)
        try:
            self.control.give_up(step, f"{type(error).__name__}: {words}")
        except LayoutError as refused:
            if not isinstance(error, LayoutError):
                raise refused from error
        raise error

    def too_small(self, elements: int, needed: int) -> None:
        """Raises, on all processes, that this one has too little memory."""
        self._on(lambda: self.control.too_small(elements, needed))

    def _on(self, call: Any) -> Any:
        try:
            return call()
        except LayoutError:
            self.failed = True
            raise

    def exchange(self, step: str, sends: Sequence[tuple[int, Any]], receives: Sequence[tuple[int, Any]]) -> None:
        """Sends one-dimensional arrays, each to its rank, and fills others, in place."""
        if self._torch is None:
            self._by_sockets(step, sends, receives)
        elif sends or receives:
            self._by_torch(step, sends, receives)

    def _by_sockets(self, step: str, sends: Sequence[tuple[int, Any]], receives: Sequence[tuple[int, Any]]) -> None:
        out = [(rank, _host(array).tobytes()) for rank, array in sends]
        places = [(rank, _host(array)) for rank, array in receives]
        sizes = [(rank, place.nbytes) for rank, place in places]
        for (_, place), come in zip(places, self._on(lambda: self.control.exchange(step, out, sizes))):
            memoryview(place).cast("B")[:] = come

    def _by_torch(self, step: str, sends: Sequence[tuple[int, Any]], receives: Sequence[tuple[int, Any]]) -> None:
        dist, torch = self._dist, self._torch
        both = [(dist.irecv, rank, array) for rank, array in receives]
        both += [(dist.isend, rank, array) for rank, array in sends]
        ranks = [rank for _, rank, _ in both]
        works: list[Any] = []
        try:
            # Bytes, so that every type goes through every backend.
            operations = [
                dist.P2POp(way, array.view(torch.uint8), dist.get_global_rank(self.group, rank), self.group)
                for way, rank, array in both
            ]
            works = dist.batch_isend_irecv(operations)
            for work in works:
                self._finish(work)
                ranks = ranks[1:] if len(works) == len(both) else ranks
        except (RuntimeError, ValueError) as error:
            self._kept += [works, both]
            words = (str(error).strip() or type(error).__name__).splitlines()[0]
            late = "imed out" in words or "imeout" in words
            why = f"it did not answer within {self.patience:g} s" if late else words
            self._on(lambda: self.control.blame(step, ranks, why))

    def _finish(self, work: Any) -> None:
        from datetime import timedelta

        if self.wait:
            work.wait(timedelta(seconds=self.patience))
        else:
            work.wait()


def _host(array: Any) -> Any:
    """A one-dimensional array as bytes of NumPy, in place."""
    if type(array).__module__.split(".")[0] == "torch":
        array = array.view(importlib.import_module("torch").uint8).numpy()
    return array


def _address() -> str:
    """The address at which the other machines of this job reach this one."""
    master = os.environ.get("MASTER_ADDR", "127.0.0.1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as seen:
        try:
            # Nothing is sent: it asks which way packets would go.
            seen.connect((master, 9))
            return str(seen.getsockname()[0])
        except OSError:
            return "127.0.0.1"


_groups: dict[int, tuple[Any, Group]] = {}


def group_of(group: Any) -> Group:
    """The processes that a caller names: those of a group are connected at the first call."""
    if isinstance(group, Group):
        return group
    key = group
    if group is None:
        try:
            dist = importlib.import_module("torch.distributed")
        except ImportError:
            raise RuntimeError(
                "there is no PyTorch, whose groups are taken if none is given: "
                "give group=tilewright.mesh.Processes.of_environment()"
            ) from None
        key = dist.group.WORLD if dist.is_available() and dist.is_initialized() else None
    kept = _groups.get(id(key))
    if key is not None and kept is not None and kept[0] is key and not kept[1].failed:
        return kept[1]
    made = Group(group)
    _groups[id(key)] = (key, made)
    return made
