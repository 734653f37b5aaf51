//! What the kernels of warps that multiply by `mma.sync` share: instructions, copies and room.

use tilewright_kernel::machine::Machine;
use tilewright_kernel::{Build, Element, Fragment, KernelError, View};
use tilewright_layout::atoms::{CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_layout::{IntoShape, Layout, Tiler};

/// Rows of `mma.sync`, and its elements along K.
pub(super) const ROWS: i64 = 16;
pub(super) const DEPTH: i64 = 16;
/// Columns of the accumulators that are rescaled, or added to, at once.
pub(super) const STRIP: i64 = 32;
/// Bytes of an element of 16 bits.
pub(super) const BYTES: i64 = 2;

/// Loads of fragments: of rows, of columns that are rows of shared memory, and both transposed.
pub(super) const OF_A: (&str, Operand) = ("SM75_U32x4_LDSM_N", Operand::A);
pub(super) const OF_B: (&str, Operand) = ("SM75_U32x4_LDSM_N", Operand::B);
pub(super) const OF_A_TRANSPOSED: (&str, Operand) = ("SM75_U16x8_LDSM_T", Operand::A);
pub(super) const OF_B_TRANSPOSED: (&str, Operand) = ("SM75_U16x8_LDSM_T", Operand::B);

/// The shared memory of a block, in bytes, where as many are resident on a multiprocessor.
pub(super) fn room(machine: &Machine, resident: i64) -> i64 {
    let own = machine.multiprocessor;
    let each = i64::from(own.shared_bytes) / resident - i64::from(own.reserved_bytes);
    each.min(own.block_shared_bytes.into())
}

/// A product of warps, arranged along rows and columns.
pub(super) fn product(element: Element, arranged: [i64; 2]) -> Result<TiledMma, KernelError> {
    let atom = match element {
        Element::F16 => "SM80_16x8x16_F32F16F16F32_TN",
        _ => "SM80_16x8x16_F32BF16BF16F32_TN",
    };
    let order = Tiler::from_shape(&(ROWS * arranged[0], 16 * arranged[1], DEPTH).into_shape()?)?;
    let grid = Layout::compact(&(arranged[0], arranged[1], 1).into_shape()?)?;
    Ok(TiledMma::new(MmaAtom::named(atom)?, &grid, &order)?)
}

/// A product of warps that are arranged along rows: each has adjacent rows, of this many
/// instructions.
pub(super) fn product_of_rows(element: Element, warps: i64, instructions: i64) -> Result<TiledMma, KernelError> {
    product_of_blocks(element, [warps, 1], instructions)
}

/// As [`product_of_rows`], with warps along rows and across columns: each of these has eight
/// columns in turn.
pub(super) fn product_of_blocks(
    element: Element,
    [along, across]: [i64; 2],
    instructions: i64,
) -> Result<TiledMma, KernelError> {
    let atom = product(element, [along, across])?.atom().clone();
    let rows = Layout::strided((ROWS, along, instructions), (1, ROWS * instructions, ROWS))?;
    let modes = [rows, Layout::strided(16 * across, 1)?, Layout::strided(DEPTH, 1)?].map(Tiler::Layout);
    Ok(TiledMma::new(atom, &Layout::compact(&(along, across, 1).into_shape()?)?, &Tiler::modes(modes)?)?)
}

/// The copy of rows of `wide` elements to shared memory by all threads, 16 bytes each.
pub(super) fn to_shared(warps: i64, wide: i64) -> Result<TiledCopy, KernelError> {
    let chunks = wide / 8;
    Ok(TiledCopy::new(
        CopyAtom::named("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>")?,
        8 * BYTES,
        &Layout::strided((32 * warps / chunks, chunks), (chunks, 1))?,
        &Layout::compact(&(1, 8).into_shape()?)?,
    )?)
}

/// A fragment of an operand in shared memory.
pub(super) fn fragment<'k>(
    k: &'k Build,
    mma: &TiledMma,
    tile: &View<'k>,
    (atom, operand): (&str, Operand),
) -> Result<Fragment<'k>, KernelError> {
    let own = tile.partition_mma(mma, operand)?.fragment()?;
    let by = TiledCopy::of_operand(CopyAtom::named(atom)?, mma, operand)?;
    k.copy(&by, tile, &own.retile(&by, CopyEnd::Destination)?)?;
    Ok(own)
}
