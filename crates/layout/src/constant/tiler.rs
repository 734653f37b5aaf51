//! Tilers that are known at compile time.
//!
//! Law: a [`StaticTiler`] is the [`Tiler`] with the same text; it is converted to that tiler when
//! it tiles a run-time layout.

use alloc::vec::Vec;
use core::fmt;

use crate::constant::layout::StaticLayout;
use crate::ground::words::debug_as_text;
use crate::limits::{MAX_DEPTH, MAX_NODES};
use crate::tile::tiler::{Tiler, TilerModes};
use crate::value::number::Extent;

/// A tiler that is known at compile time: the value of the macro `tiler!`.
///
/// `(&tiler).into()` is the run-time [`Tiler`]. For `_`, and for a layout of up to eight leaves,
/// the conversion needs no heap. A tiler by mode needs one list on the heap for each level, as
/// every [`Tiler`] does.
///
/// ```
/// use tilewright_layout::{Layout, Leaf, StaticLayout, StaticTiler};
///
/// const fn extent(extent: i64) -> StaticTiler {
///     // In a tiler, the number 16 means 16:1.
///     match extent {
///         16 => StaticTiler::layout(StaticLayout::new(&[Leaf { extent: 16, stride: 1 }], &[0], &[0]).unwrap()),
///         _ => StaticTiler::KEEP,
///     }
/// }
/// // The expansion of tiler!("[16:1;_]").
/// const TILER: StaticTiler = StaticTiler::modes(const { &[extent(16), extent(0)] }).unwrap();
///
/// let matrix: Layout = "(64,8):(8,1)".parse().unwrap();
/// assert_eq!(TILER.to_string(), "[16:1;_]");
/// assert_eq!(matrix.logical_divide(&TILER.to_tiler()).unwrap().to_string(), "((16,4),8):((8,128),1)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StaticTiler {
    part: ConstantTiler,
    depth: usize,
    nodes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ConstantTiler {
    Keep,
    Layout(StaticLayout),
    Modes(&'static [StaticTiler]),
}

impl StaticTiler {
    /// `_`: the mode stays unchanged.
    pub const KEEP: StaticTiler = StaticTiler { part: ConstantTiler::Keep, depth: 0, nodes: 1 };

    /// The positions of one tile, as a layout into the domain.
    pub const fn layout(layout: StaticLayout) -> StaticTiler {
        StaticTiler { part: ConstantTiler::Layout(layout), depth: 0, nodes: 1 }
    }

    /// The tiler with the `i`-th of `items` for mode `i`; None if [`Tiler::modes`] refuses.
    pub const fn modes(items: &'static [StaticTiler]) -> Option<StaticTiler> {
        let (mut depth, mut nodes, mut at) = (1, 1_usize, 0);
        while at < items.len() {
            if items[at].depth >= depth {
                depth = items[at].depth + 1;
            }
            nodes = nodes.saturating_add(items[at].nodes);
            at += 1;
        }
        if depth > MAX_DEPTH || nodes > MAX_NODES {
            return None;
        }
        Some(StaticTiler { part: ConstantTiler::Modes(items), depth, nodes })
    }

    /// The same tiler as a run-time value.
    pub fn to_tiler(&self) -> Tiler {
        Tiler::from(self)
    }
}

impl<N: Extent> From<&StaticTiler> for Tiler<N> {
    fn from(tiler: &StaticTiler) -> Tiler<N> {
        match tiler.part {
            ConstantTiler::Keep => Tiler::Keep,
            ConstantTiler::Layout(layout) => Tiler::Layout(layout.into()),
            ConstantTiler::Modes(items) => {
                let items: Vec<Tiler<N>> = items.iter().map(Tiler::from).collect();
                Tiler::Modes(TilerModes::from_valid(items, tiler.depth, tiler.nodes))
            }
        }
    }
}

impl<N: Extent> From<StaticTiler> for Tiler<N> {
    fn from(tiler: StaticTiler) -> Tiler<N> {
        Tiler::from(&tiler)
    }
}

impl<N: Extent> From<&StaticLayout> for Tiler<N> {
    fn from(layout: &StaticLayout) -> Tiler<N> {
        Tiler::Layout(layout.into())
    }
}

impl<N: Extent> From<StaticLayout> for Tiler<N> {
    fn from(layout: StaticLayout) -> Tiler<N> {
        Tiler::from(&layout)
    }
}

impl From<StaticLayout> for StaticTiler {
    fn from(layout: StaticLayout) -> StaticTiler {
        StaticTiler::layout(layout)
    }
}

impl fmt::Display for StaticTiler {
    /// Prints as the [`Tiler`] does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            ConstantTiler::Keep => f.write_str("_"),
            ConstantTiler::Layout(layout) => layout.fmt(f),
            ConstantTiler::Modes(items) => {
                f.write_str("[")?;
                for (position, item) in items.iter().enumerate() {
                    f.write_str(if position > 0 { ";" } else { "" })?;
                    item.fmt(f)?;
                }
                f.write_str("]")
            }
        }
    }
}

debug_as_text!(StaticTiler);
