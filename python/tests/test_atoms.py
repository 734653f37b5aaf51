# mypy: ignore-errors
"""Atoms that a tile program in Python names, of each kind: the bits of NumPy by that instruction, or
a refusal at its line; and the pictures of what was chosen.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import tile

READ, THREADS, ENGINE = "UniversalCopy<uint64_t>", "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", "SM90_TMA_LOAD"
WARP, GROUP = "SM80_16x8x16_F32{0}{0}F32_TN", "SM90_64x64x16_F32{0}{0}_SS"


def product(element="f16", left="", right="", total="", machine=None, shape=(64, 64, 64)):
    """A product of which each value may be given by an atom."""
    m, n, k = shape

    def by(value, atom):
        return value.atom(atom) if atom else value

    def program(a, b, d):
        i, j = tile.block.x, tile.block.y
        sums = tile.carry(tile.full((m, n), 0.0))
        for turn in tile.range(f"ceil(K/{k})", sums):
            of_a, of_b = by(a.load((m, k), (i, turn)), left), by(b.load((k, n), (turn, j)), right)
            sums.set(by(of_a.dot(of_b, sums), total))
        d.store((i, j), sums)

    specs = {
        "a": tw.Input(element, "(M,K{div=8}):(K,1)"),
        "b": tw.Input(element, "(K,N{div=8}):(N,1)"),
        "d": tw.Output("f32", "(M,N):(N,1)"),
    }
    return tw.tile(program, grid=(f"ceil(M/{m})", f"ceil(N/{n})"), machine=machine, **specs)


def agrees(kernel, dtype):
    """Sums of whole numbers, which are the same in every order."""
    source = np.random.default_rng(5)
    for m, n, k in [(64, 64, 64), (70, 72, 136)]:
        a, b = (source.integers(-3, 4, shape).astype(dtype) for shape in ((m, k), (k, n)))
        d = np.full((m, n), np.nan, np.float32)
        kernel(a, b, d)
        wanted = a.astype(np.float32) @ b.astype(np.float32)
        assert np.array_equal(d.view(np.uint32), wanted.view(np.uint32)), (m, n, k)


@pytest.mark.parametrize("element, dtype", [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_products_by_the_instruction_that_is_named(element, dtype):
    types = element.upper()
    by_warps = product(element, total=WARP.format(types), machine="sm_90a")
    agrees(by_warps, dtype)
    assert "mma.sync.aligned.m16n8k16" in by_warps.ptx("sm_90a") and "wgmma" not in by_warps.ptx("sm_90a")
    by_groups = product(element, total=GROUP.format(types), machine="sm_90a")
    agrees(by_groups, dtype)
    assert "wgmma.mma_async.sync.aligned.m64n64k16" in by_groups.ptx("sm_90a")


@pytest.mark.parametrize(
    "left, right, target, has, lacks",
    [
        (READ, THREADS, None, ["ld.global.v2.b32", "cp.async.cg"], ["ld.global.v4"]),
        (THREADS, THREADS, "sm_90a", ["cp.async.cg"], ["cp.async.bulk"]),
        (ENGINE, ENGINE, "sm_90a", ["cp.async.bulk.tensor"], ["cp.async.cg"]),
    ],
)
def test_factors_come_as_they_are_named(left, right, target, has, lacks):
    kernel = product(left=left, right=right, machine=target)
    agrees(kernel, np.float16)
    written = kernel.ptx("sm_90a")
    assert all(word in written for word in has) and not any(word in written for word in lacks)
    # The names are part of the text.
    assert kernel.text().count("atom(") == 2 and left in kernel.text()


@pytest.mark.parametrize("bits, load", [(32, ".b32"), (64, ".v2.b32"), (128, ".v4.b32")])
def test_rows_are_read_so_many_bits_at_once(bits, load):
    @tw.tile(grid="ceil(M/8)")
    def doubled(x: tw.Input("f32", "(M,64):(64,1)"), y: tw.Output("f32", "(M,64):(64,1)")):
        at = (tile.block.x, 0)
        y.store(at, 2.0 * x.load((8, 64), at).atom(f"UniversalCopy<uint{bits}_t>"))

    x = np.random.default_rng(6).standard_normal((13, 64), dtype=np.float32)
    y = np.full_like(x, np.nan)
    doubled(x, y)
    assert np.array_equal(y.view(np.uint32), (2 * x).view(np.uint32))
    loads = {line.split()[0] for line in doubled.ptx("sm_90a").replace("@", " ").splitlines() if " ld.global" in f" {line}"}
    assert f"ld.global{load}" in doubled.ptx("sm_90a"), loads


def test_what_cannot_be_given_so_is_refused_at_its_line():
    for kernel, code, said in [
        (product(total="SM80_16X8"), "E1203", "no atom"),
        (product(total=WARP.format("BF16")), "E1212", "operands of f16"),
        (product(total=GROUP.format("F16")), "E1212", "sm_90a"),
        (product(left=ENGINE), "E1212", "sm_90a"),
        (product(left="SM75_U32x4_LDSM_N"), "E1212", "a load is one by"),
    ]:
        with pytest.raises(tw.KernelError, match=said) as refused:
            kernel.program()
        assert (refused.value.code, refused.value.filename) == (code, __file__)
    with pytest.raises(ValueError, match="sm_80"):
        product(machine="sm_1").program()


def test_an_explanation_has_pictures():
    for target, name in [(None, "v"), ("sm_90a", "v")]:
        explained = product(machine=target).explain()
        assert isinstance(explained, str) and "cycles of a multiprocessor" in explained
        assert explained.pictures
        in_shared = [names for names in explained.pictures if names.endswith("in shared memory")]
        assert len(in_shared) == 2
        for names, picture in explained.pictures.items():
            assert names.startswith(name) and picture.svg().startswith("<svg") and str(picture)
        assert "bank" in explained.pictures[in_shared[0]].svg()
        page = explained._repr_html_()
        assert page.count("data:image/svg+xml") == len(explained.pictures) and "&lt;" in page
    # What is drawn is what was chosen.
    @tw.tile(grid="1")
    def held(x: tw.Input("f32", "(4,32):(32,1)"), y: tw.Output("f32", "(4,32):(32,1)")):
        y.store((0, 0), x.load((4, 32), (0, 0)).held("(32,4):(4,1)"))

    pictures = held.explain().pictures
    assert any("T31" in picture.svg() for picture in pictures.values())


def test_small_tiles_are_staged():
    # Fewer elements than the threads of a block would copy.
    a, b = (np.random.default_rng(8).integers(-3, 4, shape).astype(np.float16) for shape in ((32, 16), (16, 32)))

    @tw.tile(grid="1")
    def staged(a: tw.Input("f16"), b: tw.Input("f16"), c: tw.Output("f32")):
        left, right = a.stage((32, 16), (0, 0), (0, 1)), b.stage((16, 32), (0, 0), (0, 1))
        c.store((0, 0), tile.dot(left, right, tile.full((32, 32), 0.0)))

    c = np.zeros((32, 32), np.float32)
    staged(a, b, c)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    staged.check(a, b, c)
