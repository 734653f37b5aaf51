//! A crate that depends on `tilewright` alone.

#![deny(warnings)]

use tilewright::{Layout, StaticLayout, StaticTiler, layout, tiler};

/// In a constant.
pub const TILE: StaticLayout = layout!("(8,16):(16,1)");
/// In a static, by path, in a raw literal of several lines, with a comma at the end.
pub static ROWS: StaticLayout = tilewright::layout!(
    r"A = (128,64):(64,1)
      A o (4,4):(2,128)",
);

/// A module in which other things have the names of the expansion.
pub mod shadowed {
    /// Not the option.
    pub struct Some;
    /// Not the library.
    pub mod core {}
    /// Not the library.
    pub mod tilewright_layout {}
    /// Not the value.
    pub const VALUE: i64 = 1;
    /// A layout.
    pub const TILE: super::StaticLayout = super::layout!("4:1");
    /// A tiler.
    pub const TILER: super::StaticTiler = super::tiler!("[4:1;_]");
}

/// What a macro of the user passes on.
#[macro_export]
macro_rules! passed_on {
    ($program:literal, $again:expr) => {
        (tilewright::layout!($program), tilewright::tiler!($again))
    };
}

/// In expressions.
pub fn expressions(matrix: &Layout) -> Option<Layout> {
    let (tile, tiler): (StaticLayout, StaticTiler) = passed_on!("4:1", "[16:1;8:1]");
    let by_mode = matrix.zipped_divide(&tiler!("(4,_)").to_tiler()).ok()?;
    by_mode.compose(&tile.to_layout()).ok()?.zipped_divide(&tiler.to_tiler()).ok()
}
