# mypy: ignore-errors
"""Layouts over meshes, and the plans between them."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tilewright as tw
from tilewright.mesh import Mesh


def test_meshes():
    mesh = Mesh("dp=2,tp=4")
    assert mesh.axes == [("dp", 2), ("tp", 4)] and mesh.size == 8 and str(mesh) == "dp=2,tp=4"
    # The first axis is fastest; as JAX and PyTorch number devices the last one.
    assert [mesh.rank(mesh.coordinate(rank)) for rank in range(8)] == list(range(8)) and mesh.rank((1, 3)) == 7
    rows = Mesh.row_major(dp=2, tp=4)
    assert rows == Mesh("dp=2:4,tp=4:1") != mesh and hash(rows) == hash(Mesh("dp=2:4,tp=4:1")) and rows.rank([1, 0]) == 4
    assert eval(repr(rows)) == rows
    with pytest.raises(ValueError, match="no device"):
        mesh.rank((2, 0))
    with pytest.raises(ValueError, match="no device"):
        mesh.coordinate(8)
    for refused in ("", "dp", "dp=0", "dp=2,dp=2", "dp=2:2,tp=4:1", "dp=100000"):
        with pytest.raises(tw.LayoutError) as error:
            Mesh(refused)
        assert error.value.code.startswith("E") and tw.explain(error.value)


class PartitionSpec(tuple):
    """As JAX prints it."""

    def __repr__(self):
        return "PartitionSpec" + super().__repr__()


class Placement:
    """As PyTorch prints it."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def test_parts_of_unequal_sizes():
    mesh = Mesh.row_major(tp=4)
    rows = mesh.of_placements((10, 3), "[Shard(0)]")
    assert str(rows) == "((3,4),3):((3,1@tp),1) of (10,3)" and rows.shape == (10, 3) and rows.size == 30
    assert [rows.local_size_on(rank) for rank in range(4)] == [9, 9, 9, 3] and [rows.reach_on(rank) for rank in (0, 3)] == [9, 3]
    columns = mesh.of_placements((2, 5), "[Shard(1)]")
    assert str(columns) == "(2,(2,4)):(2,(1,1@tp)) packed (2,5)" and mesh.layout(str(columns)) == columns
    assert columns.part(3) == (0, [(0, [(2, 1, 0)]), (5, [(0, 1, 1)])]) and columns.placements() == "[Shard(1)]"
    # Each device has its own columns, row by row.
    whole = mesh.layout("(2,5):(5,1) copied 4:1@tp")
    held = [[0.0, 1.0, 5.0, 6.0], [2.0, 3.0, 7.0, 8.0], [4.0, 9.0], []]
    assert columns.reshard(whole, bytes=8).simulate(held) == [[float(value) for value in range(10)]] * 4
    with pytest.raises(tw.LayoutError, match="parts of equal sizes"):
        rows.partition_spec()


class GSPMDSharding:
    def __repr__(self):
        return "GSPMDSharding({devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate})"


def test_shardings_as_they_print_themselves():
    mesh = Mesh.row_major(dp=2, tp=4)
    named = "NamedSharding(mesh=Mesh('dp': 2, 'tp': 4), spec=PartitionSpec('tp', None))"
    layout = mesh.of_partition_spec((8, 6), "P('tp', None)")
    for sharding in (named, GSPMDSharding(), repr(GSPMDSharding()), "[Replicate(), Shard(0)]"):
        assert mesh.of_sharding((8, 6), sharding) == layout
    assert str(Mesh.from_sharding(named)) == "dp=2:4,tp=4:1" and str(Mesh.from_sharding(GSPMDSharding())) == "d0=2:4,d1=4:1"
    with pytest.raises(tw.LayoutError) as error:
        Mesh.row_major(x=8).of_sharding((8, 6), named)
    assert error.value.code == "E1105"


def test_forms_of_other_libraries():
    mesh = Mesh.row_major(dp=2, tp=4)
    layout = mesh.of_partition_spec((8, 6), PartitionSpec(("tp", None)))
    assert str(layout) == "((2,4),6):((6,1@tp),1) copied 2:1@dp" and layout == mesh.of_partition_spec((8, 6), "P('tp', None)")
    assert layout.partition_spec() == "P('tp', None)" and layout.placements() == "[Replicate(), Shard(0)]"
    assert layout == mesh.of_placements((8, 6), [Placement("Replicate()"), Placement("Shard(dim=0)")])
    sums = mesh.of_placements([6, 8], "[Partial(), Shard(1)]")
    assert (sums.sums, sums.copies, sums.local_size, sums.shape, sums.size) == (2, 1, 12, (6, (2, 4)), 48)
    assert sums == mesh.of_placements([6, 8], (Placement("Partial(sum)"), Placement("Shard(1)")))
    with pytest.raises(tw.LayoutError, match="summands"):
        sums.partition_spec()
    for refused in (lambda: mesh.of_partition_spec((8, 6), "P('xx')"), lambda: mesh.of_placements((7, 6), "[_StridedShard(0, sf=2), Shard(1)]"), lambda: mesh.of_partition_spec((7, 6), "P('dp')"), lambda: mesh.layout("(8,6")):
        with pytest.raises(tw.LayoutError):
            refused()
    with pytest.raises(TypeError):
        mesh.of_placements((8, 6), 5)


@pytest.mark.parametrize("seed", range(20))
def test_plans_move_what_they_should(seed):
    """What lies where after a plan is what the layout says, element by element."""
    source = random.Random(seed)
    mesh = Mesh.row_major(a=2, b=source.choice([2, 4]))
    shape = (8, 16)
    kinds = ["Shard(0)", "Shard(1)", "Replicate()"]
    before, after = (mesh.of_placements(shape, f"[{source.choice(kinds)}, {source.choice(kinds)}]") for _ in range(2))
    plan = before.reshard(after, bytes=4)

    def memory(layout, of):
        held = [[0.0] * layout.local_size for _ in range(mesh.size)]
        for element in range(layout.size):
            for rank, offset in layout.places(element):
                held[rank][offset] = of(element)
        return held

    assert plan.simulate(memory(before, lambda element: element + 1.0)) == memory(after, lambda element: element + 1.0)
    assert all(plan.received(rank) >= plan.least(rank) for rank in range(mesh.size))
    assert (plan.seconds > 0) == (max(map(plan.received, range(mesh.size))) > 0) and str(plan)


def memory_of(layout, matrix):
    """What each device holds of a matrix, whose first mode is fastest in a layout."""
    held = [[0.0] * layout.local_size for _ in range(layout.mesh.size)]
    for element, value in enumerate(matrix.reshape(-1, order="F")):
        for rank, offset in layout.places(element):
            held[rank][offset] = float(value)
    return held


@pytest.mark.parametrize("seed", range(12))
def test_products(seed):
    """What lies where after a product is what NumPy makes of the matrices."""
    source = random.Random(seed)
    mesh = Mesh.row_major(a=2, b=source.choice([2, 4]))
    m, n, k = (source.choice([8, 16]) for _ in range(3))
    kinds = ["Shard(0)", "Shard(1)", "Replicate()"]
    a, b, d = (mesh.of_placements(shape, f"[{source.choice(kinds)}, {source.choice(kinds)}]") for shape in ((m, k), (k, n), (m, n)))
    plan = a.multiply(b, d, bytes=2)
    left, right = (np.random.default_rng(seed).integers(-4, 5, shape) for shape in ((m, k), (k, n)))
    assert plan.simulate(memory_of(a, left), memory_of(b, right)) == memory_of(d, left @ right)
    assert plan.sizes == [m, n, k] and len(plan.roles) == 2
    parts = {role: [extent for own, (_, extent) in zip(plan.roles, mesh.axes) if own == role] for role in ("rows", "columns", "depth")}
    assert plan.local_sizes == [size // int(np.prod(parts[role])) for size, role in zip((m, n, k), ("rows", "columns", "depth"))]
    # Moves begin where the factors are, and end where the product shall be.
    of_a, of_b, of_d = plan.moves
    assert str(a) in repr(of_a) and str(b) in repr(of_b) and str(d) in repr(of_d)
    assert plan.seconds >= sum(move.seconds for move in plan.moves) and str(plan) and "product of" in repr(plan)


def test_products_that_are_none():
    mesh = Mesh("tp=2")
    a, b, d = (mesh.of_placements(shape, "[Shard(1)]") for shape in ((8, 16), (16, 4), (8, 4)))
    plan = a.multiply(b, d, bytes=4, rate=1e12, machine="2 x 450 GB/s 5 us")
    with pytest.raises(tw.LayoutError, match="8"):
        a.multiply(d, b, bytes=4)
    with pytest.raises(tw.LayoutError):
        a.multiply(Mesh("tp=4").of_placements((16, 4), "[Shard(1)]"), d, bytes=4)
    with pytest.raises(tw.LayoutError):
        a.multiply(b, d, bytes=0)
    with pytest.raises(ValueError, match="rate"):
        a.multiply(b, d, bytes=4, rate=float("nan"))
    with pytest.raises(tw.LayoutError):
        plan.simulate([[1.0]], [[1.0]])
    with pytest.raises(TypeError):
        plan.simulate(1, 2)


def test_sums_are_reduced():
    mesh = Mesh("tp=4")
    sums, whole = mesh.layout("16:1 summed 4:1@tp"), mesh.layout("16:1 copied 4:1@tp")
    plan = sums.reshard(whole, bytes=4, machine="8 x 450 GB/s 5 us")
    assert plan.simulate([[float(rank + 1)] * 16 for rank in range(4)]) == [[10.0] * 16] * 4
    assert set(plan.kinds) <= {"reduce-scatter", "all-gather", "all-reduce"} and "plan of" in repr(plan)
    with pytest.raises(tw.LayoutError):
        sums.reshard(whole, bytes=0)
    with pytest.raises(tw.LayoutError):
        sums.reshard(whole, bytes=4, machine="fast")
    with pytest.raises(tw.LayoutError):
        plan.simulate([[1.0]])
