//! Text of values of any kind.
//!
//! Law: the printed text parses to the same value. Names are printed with their facts.

use core::fmt;
use core::str::FromStr;

use super::tree::with_tree;
use super::{AnyCoord, AnyLayout, AnyTiler, AnyTree, CoordinateStep, convert};
use crate::composed::Composed;
use crate::ground::words::debug_as_text;
use crate::refusal::error::LayoutError;
use crate::symbolic::{Declarations, Expr, Symbolic};
use crate::tile::tiler::{Tiler, read_tiler};
use crate::value::coord::Coord;
use crate::value::layout::Layout;
use crate::value::tree::Tree;
use crate::with_layout;
use crate::xor::Xor;

impl fmt::Display for AnyLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyLayout::Integer(layout) => layout.fmt(f),
            AnyLayout::Launch(layout) => f.write_str(&layout.with_facts()),
            AnyLayout::Coordinate(layout) => f.write_str(&layout.with_facts()),
            AnyLayout::Xor(layout) => layout.fmt(f),
            AnyLayout::Composed(map) => map.fmt(f),
            AnyLayout::LaunchComposed(map) => f.write_str(&map.with_facts()),
            AnyLayout::CoordinateComposed(map) => f.write_str(&map.with_facts()),
        }
    }
}

impl fmt::Debug for AnyLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_layout!(self, layout => layout.fmt(f))
    }
}

impl fmt::Display for AnyTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyTree::Integer(tree) => tree.fmt(f),
            AnyTree::Launch(tree) => f.write_str(&tree.with_facts()),
            AnyTree::Coordinate(tree) => f.write_str(&tree.with_facts()),
            AnyTree::Xor(tree) => tree.fmt(f),
        }
    }
}

impl fmt::Debug for AnyTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_tree!(self, tree => tree.fmt(f))
    }
}

impl fmt::Display for AnyCoord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyCoord::Integer(coord) => coord.fmt(f),
            AnyCoord::Launch(coord) => f.write_str(&coord.with_facts()),
        }
    }
}

debug_as_text!(AnyCoord);

impl fmt::Display for AnyTiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyTiler::Integer(tiler) => tiler.fmt(f),
            AnyTiler::Launch(tiler) => f.write_str(&tiler.with_facts()),
            AnyTiler::Coordinate(tiler) => f.write_str(&tiler.with_facts()),
            AnyTiler::Map(map) => map.fmt(f),
        }
    }
}

debug_as_text!(AnyTiler);

/// One way to parse a text.
type Reading<T> = fn(&str) -> Result<T, LayoutError>;

/// The result of the first parser that succeeds; otherwise the error of the one that read furthest.
fn first_of<T>(text: &str, readings: &[Reading<T>]) -> Result<T, LayoutError> {
    let mut farthest = LayoutError::Syntax { at: 0, expected: "a value" };
    for read in readings {
        match read(text) {
            Err(LayoutError::Syntax { at, expected }) => {
                if !matches!(farthest, LayoutError::Syntax { at: before, .. } if before >= at) || at == 0 {
                    farthest = LayoutError::Syntax { at, expected };
                }
            }
            result => return result,
        }
    }
    Err(farthest)
}

/// The names in a text and the facts that it declares about them.
fn names(text: &str) -> Result<Declarations, LayoutError> {
    let mut names = Declarations::new();
    names.gather(text)?;
    Ok(names)
}

impl FromStr for AnyLayout {
    type Err = LayoutError;

    /// Parses a layout, to the least kind that can represent it. Strides default to compact, first
    /// mode fastest.
    ///
    /// Errors: the text is not a layout ([`LayoutError::Syntax`]); as the layout's own.
    fn from_str(text: &str) -> Result<AnyLayout, LayoutError> {
        first_of(
            text,
            &[
                |text| text.parse::<Layout>().map(AnyLayout::from),
                |text| text.parse::<Layout<Xor>>().map(AnyLayout::from),
                |text| text.parse::<Layout<Expr>>().map(AnyLayout::from),
                |text| names(text)?.coordinate_layout(text).map(AnyLayout::from),
                |text| text.parse::<Composed>().map(AnyLayout::from),
                |text| text.parse::<Composed<Expr>>().map(AnyLayout::from),
                |text| text.parse::<Composed<CoordinateStep>>().map(AnyLayout::from),
            ],
        )
    }
}

impl FromStr for AnyTree {
    type Err = LayoutError;

    /// Parses a tuple, to the least kind that can represent it.
    ///
    /// Errors: the text is not a tuple ([`LayoutError::Syntax`]).
    fn from_str(text: &str) -> Result<AnyTree, LayoutError> {
        first_of(
            text,
            &[
                |text| text.parse::<Tree<i64>>().map(AnyTree::from),
                |text| text.parse::<Tree<Xor>>().map(AnyTree::from),
                |text| text.parse::<Tree<Expr>>().map(AnyTree::from),
                |text| names(text)?.coordinate_steps(text).map(AnyTree::from),
            ],
        )
    }
}

impl FromStr for AnyCoord {
    type Err = LayoutError;

    /// Parses a coordinate.
    ///
    /// Errors: the text is not a coordinate ([`LayoutError::Syntax`]).
    fn from_str(text: &str) -> Result<AnyCoord, LayoutError> {
        first_of(
            text,
            &[|text| text.parse::<Coord>().map(AnyCoord::from), |text| text.parse::<Coord<Expr>>().map(AnyCoord::from)],
        )
    }
}

impl FromStr for AnyTiler {
    type Err = LayoutError;

    /// Parses a tiler, to the least kind that can represent it.
    ///
    /// Errors: the text is not a tiler ([`LayoutError::Syntax`]); as the tiler's own.
    fn from_str(text: &str) -> Result<AnyTiler, LayoutError> {
        first_of(
            text,
            &[
                |text| text.parse::<Tiler>().map(AnyTiler::from),
                |text| text.parse::<Tiler<Expr>>().map(AnyTiler::from),
                |text| {
                    let names = names(text)?;
                    let read = |value: &str, strides: bool| match strides {
                        true => names.coordinate_layout(value).map(Tiler::Layout),
                        false => tiler_of_shape(&names.tree(value)?),
                    };
                    read_tiler::<CoordinateStep>(text, &read).map(AnyTiler::from)
                },
                |text| text.parse::<AnyLayout>().map(AnyTiler::from),
            ],
        )
    }
}

/// The tiler by mode of a shape, as a tiler of coordinates in a codomain that is not a tuple.
fn tiler_of_shape(shape: &Tree<Expr>) -> Result<Tiler<CoordinateStep>, LayoutError> {
    let tiler = Tiler::from_shape(shape)?;
    let wanted = LayoutError::Syntax { at: 0, expected: "a tiler of coordinates" };
    convert::retiled(&tiler, &convert::step_layout).ok_or(wanted)
}
