"""Tensors sharded over a mesh of devices: layouts whose values are devices and offsets there.

>>> import tilewright as tw
>>> mesh = tw.mesh.Mesh("dp=2,tp=4")
>>> rows = mesh.layout("((64,4),256):((1,1@tp),64) copied 2:1@dp")
>>> columns = mesh.layout("(256,(64,4)):(1,(256,1@tp)) copied 2:1@dp")
>>> plan = rows.reshard(columns, bytes=2)
>>> plan.kinds, plan.received(0)
(['all-to-all'], 24576)

A product of sharded matrices is planned in the same way:

>>> mesh = tw.mesh.Mesh("tp=2")
>>> a, b, d = (mesh.of_placements(shape, "[Shard(1)]") for shape in ((64, 128), (128, 32), (64, 32)))
>>> product = a.multiply(b, d, bytes=2)
>>> product.roles, product.local_sizes, [move.kinds for move in product.moves]
(['columns'], [64, 16, 128], [['all-gather'], ['nothing'], ['local relayout']])

Layouts of JAX and PyTorch are read and written:

>>> mesh = tw.mesh.Mesh.row_major(dp=2, tp=4)
>>> layout = mesh.of_partition_spec((8, 6), "P('tp', None)")
>>> str(layout), layout.placements()
('((2,4),6):((6,1@tp),1) copied 2:1@dp', '[Replicate(), Shard(0)]')

Processes carry out such plans together, on tensors of PyTorch in a group of ``torch.distributed``,
or on arrays of NumPy where sockets connect them: ``reshard``, ``map``, ``reduce``, ``argmax``,
``softmax`` and ``multiply``, each in one call.
"""

from __future__ import annotations

from ._collective import argmax, map, multiply, reduce, reshard, softmax
from ._group import Group
from ._native import Mesh, Operation, Processes, Product, Resharding, Sharded

__all__ = [
    "Group", "Mesh", "Operation", "Processes", "Product", "Resharding", "Sharded", "argmax", "map", "multiply", "reduce",
    "reshard", "softmax",
]  # fmt: skip
