//! A crate without `std` that depends on `tilewright-layout` and `tilewright-macros` alone. The
//! test reads its assembly.

#![no_std]
#![deny(warnings)]

use tilewright_layout::{Layout, StaticComposed, StaticLayout, StaticTiler};
use tilewright_macros::{layout, tiler};

/// Shifts and masks.
pub const POWERS: StaticLayout = layout!("zipped_divide((128,64):(64,1), [16:1;8:1])");
/// Other divisors.
pub const OTHERS: StaticLayout = layout!("((3,5),(2,6)):((1,7),(100,1000))");
/// As many leaves as are evaluated without a loop.
pub const LONG: StaticLayout = layout!(
    "((3,5,2),(6,7),(2,3,4),(3,5),(2,3),(7,2),(3,5)):((1,7,100),(900,33),(5,1300,20),(1,7),(3,11),(33,5),(1000,17))"
);
/// A tile in shared memory.
pub const SWIZZLED: StaticComposed = layout!("S<3,3,3> o 64 o (8,64):(64,1)");
/// A tiler in a program without `std`.
pub static TILER: StaticTiler = tiler!("[16:1;_]");

/// A tile that a generic function receives.
pub trait Kernel {
    /// The tile.
    const TILE: StaticLayout;
}

/// A kernel.
pub struct Other;

impl Kernel for Other {
    const TILE: StaticLayout = layout!("((3,7),2):((1,5),100)");
}

#[inline(never)]
pub fn fixed_powers_index(index: u32) -> Option<i64> {
    POWERS.eval(i64::from(index))
}

#[inline(never)]
pub fn fixed_powers_any_index(index: i64) -> Option<i64> {
    POWERS.eval(index)
}

#[inline(never)]
pub fn fixed_powers_coordinate(element: u32, tile: u32) -> Option<i64> {
    POWERS.eval_at([i64::from(element), i64::from(tile)])
}

#[inline(never)]
pub fn fixed_powers_swizzled(row: u32, column: u32) -> Option<i64> {
    SWIZZLED.eval_at([i64::from(row), i64::from(column)])
}

#[inline(never)]
pub fn fixed_others_index(index: u32) -> Option<i64> {
    OTHERS.eval(i64::from(index))
}

#[inline(never)]
pub fn fixed_others_any_index(index: i64) -> Option<i64> {
    OTHERS.eval(index)
}

#[inline(never)]
pub fn fixed_others_any_coordinate(coord: [i64; 2]) -> Option<i64> {
    OTHERS.eval_at(coord)
}

#[inline(never)]
pub fn fixed_long_index(index: i64) -> Option<i64> {
    LONG.eval(index)
}

#[inline(never)]
pub fn fixed_long_coordinate(coord: [i64; 7]) -> Option<i64> {
    LONG.eval_at(coord)
}

#[inline(always)]
fn offset<K: Kernel>(index: i64) -> Option<i64> {
    K::TILE.eval(index)
}

#[inline(never)]
pub fn fixed_generic_index(index: i64) -> Option<i64> {
    offset::<Other>(index)
}

#[inline(never)]
pub fn fixed_constant() -> Option<i64> {
    LONG.eval_at([1, 2, 3, 4, 5, 6, 7])
}

/// The same code without the numbers: what the test must find fault with.
#[inline(never)]
pub fn given_static(layout: &StaticLayout, index: i64) -> Option<i64> {
    layout.eval(index)
}

/// The run-time layout: what the test must find fault with.
#[inline(never)]
pub fn given_layout(layout: &Layout, index: i64) -> Option<i64> {
    layout.eval(&index).ok()
}
