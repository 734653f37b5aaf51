//! Tilings of `dot` by matrix instructions: which thread holds which elements of the operands and
//! of the accumulators.
//!
//! Law: an MMA instruction of a warp multiplies 16 x K by K x 8, where K is 16 elements of 16 bits,
//! 32 of 8 bits, or 8 of tf32. Warps are arranged in rows and columns of the result, and each
//! computes its part of a k-step. wgmma multiplies 64 rows by all columns. The layouts are those of
//! the instruction, from `atoms`.
//!
//! 32-bit accumulators are held in pairs of columns, and an 8-bit A operand in runs of four. If the
//! columns of the B operand are permuted in shared memory, each thread holds four adjacent
//! accumulators: so accumulators become an 8-bit operand without an exchange between threads
//! ([`Tiling::crossed`]).

use tilewright_kernel::{Distribution, Element};
use tilewright_layout::atoms::{MmaAtom, Operand, TiledMma};
use tilewright_layout::{IntoShape, Layout, LayoutError, Tiler};

use crate::error::Reason;
use crate::held::{self, Held};

/// The tiling of a `dot`.
#[derive(Debug, Clone)]
pub(crate) struct Tiling {
    pub(crate) mma: TiledMma,
    /// The A operand `(M,K)`.
    pub(crate) a: Held,
    /// The B operand `(K,N)`.
    pub(crate) b: Held,
    /// The accumulators `(M,N)`.
    pub(crate) c: Held,
    /// The number of warps along the rows and along the columns of the result.
    pub(crate) warps: [i64; 2],
    /// The adjacent columns of a warp: those of one or two instructions. With wgmma, those of one.
    pub(crate) beside: i64,
    /// Whether `dot` uses wgmma, with B in shared memory.
    pub(crate) by_groups: bool,
    /// Whether the columns of B are permuted in shared memory, as [`crossing`] describes.
    pub(crate) crossed: bool,
}

/// The extent of an instruction along K, in elements: 32 bytes.
pub(crate) fn depth(operand: Element) -> i64 {
    256 / i64::from(operand.bits()).max(1)
}

/// The position of each of `columns` columns in shared memory if they are permuted: of 16 columns,
/// column `a + 2b + 4c` is at position `a + 8b + 2c`, where `a` and `b` are less than 2, and `c`
/// less than 4. The instruction gives a thread the columns `2c`, `2c + 1`, `8 + 2c` and `9 + 2c`:
/// these are then `4c` to `4c + 3`.
pub(crate) fn crossing(columns: i64) -> Result<Layout, LayoutError> {
    Layout::strided((2, 2, 4, columns / 16), (1, 8, 2, 16))
}

/// The MMA instruction of a warp for operands of a type.
pub(crate) fn atom(operand: Element) -> &'static str {
    match operand {
        Element::F16 => "SM80_16x8x16_F32F16F16F32_TN",
        Element::E4M3 => "SM89_16x8x32_F32E4M3E4M3F32_TN",
        Element::E5M2 => "SM89_16x8x32_F32E5M2E5M2F32_TN",
        Element::F32 => "SM80_16x8x8_F32TF32TF32F32_TN",
        _ => "SM80_16x8x16_F32BF16BF16F32_TN",
    }
}

/// The tilings of a `dot` of these extents for a number of warps. The list is empty if there are
/// more warps than instructions.
pub(crate) fn tilings(operand: Element, [m, n, k]: [i64; 3], warps: i64) -> Result<Vec<Tiling>, Reason> {
    let mut found = Vec::new();
    let mut rows = warps;
    while rows >= 1 {
        let columns = warps / rows;
        if m >= 16 * rows && n >= 8 * columns {
            found.push(tiling(operand, [m, n, k], [rows, columns])?);
        }
        rows /= 2;
    }
    Ok(found)
}

fn tiling(operand: Element, [m, n, k]: [i64; 3], warps: [i64; 2]) -> Result<Tiling, Reason> {
    let refuse = |error: tilewright_layout::atoms::AtomError| Reason::Held {
        layout: format!("{} x {} warps", warps[0], warps[1]),
        because: error.to_string(),
    };
    let arranged = Layout::compact(&(warps[0], warps[1], 1).into_shape()?)?;
    // Two instructions of 8 columns if the tile is wide enough, so that one `ldmatrix` serves both.
    let beside = if n >= 16 * warps[1] { 16 } else { 8 };
    let order = Tiler::from_shape(&(16 * warps[0], beside * warps[1], depth(operand)).into_shape()?)?;
    let mma = TiledMma::new(MmaAtom::named(atom(operand)).map_err(refuse)?, &arranged, &order).map_err(refuse)?;
    let of = |shape: [i64; 2], operand: Operand| -> Result<Held, Reason> {
        Held::of(Distribution::of_mma(&held::tree(&shape)?, &mma, operand)?.layout())
    };
    let (a, b, c) = (of([m, k], Operand::A)?, of([n, k], Operand::B)?, of([m, n], Operand::C)?);
    // The layouts of instructions have N before K. Those of programs have K before N.
    let turned = held::bits::transposed(&[n, k], &[1, 0]);
    let b = b.mapped(|bit| Some(turned[usize::from(bit)]));
    Ok(Tiling { mma, a, b, c, warps, beside, by_groups: false, crossed: false })
}

/// The name of the wgmma with this many columns, with A in shared memory or in registers.
pub(crate) fn group_atom(operand: Element, columns: impl std::fmt::Display, from_shared: bool) -> String {
    let (types, lies) = match operand {
        Element::F16 => ("F16F16", ""),
        Element::E4M3 => ("E4M3E4M3", "_TN"),
        Element::E5M2 => ("E5M2E5M2", "_TN"),
        _ => ("BF16BF16", ""),
    };
    let held = if from_shared { "SS" } else { "RS" };
    format!("SM90_64x{columns}x{}_F32{types}_{held}{lies}", depth(operand))
}

/// The tilings of a `dot` of these extents for a number of warpgroups, 64 rows each, by a wgmma of
/// `columns` columns. If possible, also one with permuted columns. No thread holds an operand that
/// is in shared memory.
pub(crate) fn of_groups(
    operand: Element,
    [m, n, k]: [i64; 3],
    (columns, groups, crosses): (i64, i64, bool),
    a: Option<&Held>,
    b: &Held,
) -> Result<Vec<Tiling>, Reason> {
    let name = group_atom(operand, columns, a.is_some());
    let refuse =
        |error: tilewright_layout::atoms::AtomError| Reason::Held { layout: name.clone(), because: error.to_string() };
    let arranged = Layout::compact(&(groups, 1, 1).into_shape()?)?;
    let order = Tiler::from_shape(&(m, n, depth(operand)).into_shape()?)?;
    let mma = TiledMma::new(MmaAtom::named(&name).map_err(refuse)?, &arranged, &order).map_err(refuse)?;
    let of = |shape: [i64; 2], operand: Operand| -> Result<Held, Reason> {
        Held::of(Distribution::of_mma(&held::tree(&shape)?, &mma, operand)?.layout())
    };
    let c = of([m, n], Operand::C)?;
    let a = match a {
        Some(a) => a.clone(),
        None => of([m, k], Operand::A)?,
    };
    let (b, warps) = (b.clone(), [4 * groups, 1]);
    let own = Tiling { mma, a, b, c, warps, beside: columns, by_groups: true, crossed: false };
    let other = crosses.then(|| crossed(&own, m));
    Ok([Some(own), other].into_iter().flatten().collect())
}

/// The tiling of a `dot` by wgmma if the columns of its B operand are permuted in shared memory.
fn crossed(own: &Tiling, rows: i64) -> Tiling {
    // Bits 1, 2 and 3 of the instruction's column are bits 2, 3 and 1 of the tile's column.
    let first = rows.trailing_zeros() as u8;
    let moved = |bit: u8| match bit.checked_sub(first) {
        Some(1) => first + 2,
        Some(2) => first + 3,
        Some(3) => first + 1,
        _ => bit,
    };
    Tiling { c: own.c.mapped(|bit| Some(moved(bit))), crossed: true, ..own.clone() }
}
