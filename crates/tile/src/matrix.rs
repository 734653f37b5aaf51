//! Products by matrix instructions: who holds which part of the factors and of the sums.
//!
//! Law: an instruction of a warp multiplies 16 x 16 by 16 x 8. Warps stand in rows and columns of
//! the sums, and each does its part of a step of 16 along K after the other. An instruction of four
//! warps multiplies 64 rows by all columns. The layouts are those of the instruction, as `atoms`
//! has them.

use tilewright_atoms::{MmaAtom, Operand, TiledMma};
use tilewright_kernel::{Distribution, Element};
use tilewright_layout::{Layout, Tiler};

use crate::error::Reason;
use crate::held::{self, Held};

/// How a product is carried out.
#[derive(Debug, Clone)]
pub(crate) struct Tiling {
    pub(crate) mma: TiledMma,
    /// The left factor `(M,K)`.
    pub(crate) a: Held,
    /// The right factor `(K,N)`.
    pub(crate) b: Held,
    /// The sums `(M,N)`.
    pub(crate) c: Held,
    /// Rows and columns of warps.
    pub(crate) warps: [i64; 2],
    /// How many columns a warp has side by side: those of one instruction or two; in groups of
    /// warps, those of one.
    pub(crate) beside: i64,
    /// Whether four warps multiply together, B from shared memory.
    pub(crate) by_groups: bool,
}

/// The name of the instruction for factors of a type.
pub(crate) fn atom(factors: Element) -> &'static str {
    match factors {
        Element::F16 => "SM80_16x8x16_F32F16F16F32_TN",
        _ => "SM80_16x8x16_F32BF16BF16F32_TN",
    }
}

/// The ways in which so many warps multiply tiles of these extents. None of them where there are
/// more warps than instructions.
pub(crate) fn tilings(factors: Element, [m, n, k]: [i64; 3], warps: i64) -> Result<Vec<Tiling>, Reason> {
    let mut found = Vec::new();
    let mut rows = warps;
    while rows >= 1 {
        let columns = warps / rows;
        if m >= 16 * rows && n >= 8 * columns {
            found.push(tiling(factors, [m, n, k], [rows, columns])?);
        }
        rows /= 2;
    }
    Ok(found)
}

fn tiling(factors: Element, [m, n, k]: [i64; 3], warps: [i64; 2]) -> Result<Tiling, Reason> {
    let refuse = |error: tilewright_atoms::AtomError| Reason::Held {
        layout: format!("{} x {} warps", warps[0], warps[1]),
        because: error.to_string(),
    };
    let arranged: Layout = format!("({},{},1)", warps[0], warps[1]).parse()?;
    // Two instructions of 8 columns where there is room, so that one load of matrices serves both.
    let beside = if n >= 16 * warps[1] { 16 } else { 8 };
    let order: Tiler = format!("[{}:1;{}:1;16:1]", 16 * warps[0], beside * warps[1]).parse()?;
    let mma = TiledMma::new(MmaAtom::named(atom(factors)).map_err(refuse)?, &arranged, &order).map_err(refuse)?;
    let of = |shape: [i64; 2], operand: Operand| -> Result<Held, Reason> {
        Held::of(Distribution::of_mma(&held::tree(&shape)?, &mma, operand)?.layout())
    };
    let (a, b, c) = (of([m, k], Operand::A)?, of([n, k], Operand::B)?, of([m, n], Operand::C)?);
    // Instructions have N before K, programs K before N.
    let turned = held::bits::transposed(&[n, k], &[1, 0]);
    let b = b.mapped(|bit| Some(turned[usize::from(bit)]));
    Ok(Tiling { mma, a, b, c, warps, beside, by_groups: false })
}

/// The instruction of four warps, for so many columns, A in shared memory or in registers.
pub(crate) fn group_atom(factors: Element, columns: i64, from_shared: bool) -> String {
    let types = match factors {
        Element::F16 => "16_F32F16F16",
        _ => "16_F32BF16BF16",
    };
    format!("SM90_64x{columns}x{types}_{}", if from_shared { "SS" } else { "RS" })
}

/// How so many groups of four warps multiply tiles of these extents, each its rows of 64, by an
/// instruction of so many columns. A factor
/// in shared memory is `shared`, which no thread holds.
pub(crate) fn of_groups(
    factors: Element,
    [m, n, k]: [i64; 3],
    (columns, groups): (i64, i64),
    a: Option<&Held>,
    b: &Held,
) -> Result<Tiling, Reason> {
    let name = group_atom(factors, columns, a.is_some());
    let refuse = |error: tilewright_atoms::AtomError| Reason::Held { layout: name.clone(), because: error.to_string() };
    let arranged: Layout = format!("({groups},1,1)").parse()?;
    let order: Tiler = format!("[{m}:1;{n}:1;16:1]").parse()?;
    let mma = TiledMma::new(MmaAtom::named(&name).map_err(refuse)?, &arranged, &order).map_err(refuse)?;
    let of = |shape: [i64; 2], operand: Operand| -> Result<Held, Reason> {
        Held::of(Distribution::of_mma(&held::tree(&shape)?, &mma, operand)?.layout())
    };
    let c = of([m, n], Operand::C)?;
    let a = match a {
        Some(a) => a.clone(),
        None => of([m, k], Operand::A)?,
    };
    Ok(Tiling { mma, a, b: b.clone(), c, warps: [4 * groups, 1], beside: columns, by_groups: true })
}
