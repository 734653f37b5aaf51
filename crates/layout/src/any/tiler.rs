//! Tilers of any kind.
//!
//! Law: an [`AnyTiler`] made with `From` has the least kind that can represent it. A composed
//! layout, or one with XOR strides, tiles the whole domain, not a mode.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{AnyLayout, AnyTree, CoordinateStep, convert};
use crate::coordinate::Coordinate;
use crate::refusal::error::{LayoutError, RefusedOperand};
use crate::symbolic::{Expr, Parameter, Symbolic, Values};
use crate::tile::tiler::Tiler;
use crate::value::number::Stride;

/// A tiler of a layout of any kind: layouts of indices, layouts of coordinates, or a composed
/// layout.
///
/// ```
/// use tilewright_layout::{AnyLayout, AnyTiler, DivideForm};
///
/// let rows: AnyLayout = "(M{div=16},64):(64,1)".parse().unwrap();
/// let tiler: AnyTiler = "[16:1;8:1]".parse().unwrap();
/// let tiles = rows.divide(DivideForm::Zipped, &tiler).unwrap();
/// assert_eq!(tiles.to_string(), "((16,8),(M{div=16}/16,8)):((64,1),(1024,8))");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum AnyTiler {
    /// For layouts with integer strides: `[2:1;_]`.
    Integer(Tiler),
    /// With a number that becomes known at launch: `[M:1;_]`.
    Launch(Box<Tiler<Expr>>),
    /// With a layout whose values are coordinates: `2:64@0` steps in mode 0.
    Coordinate(Box<Tiler<CoordinateStep>>),
    /// A composed layout, or one with XOR strides, for the whole domain.
    Map(Box<AnyLayout>),
}

/// Evaluates an expression for the tiler in an [`AnyTiler`], whatever its kind, and another one for
/// a layout of the whole domain.
macro_rules! with_tiler {
    ($any:expr, $tiler:ident => $result:expr, $map:ident => $of_map:expr) => {
        match $any {
            AnyTiler::Integer($tiler) => $result,
            AnyTiler::Launch($tiler) => $result,
            AnyTiler::Coordinate($tiler) => $result,
            AnyTiler::Map($map) => $of_map,
        }
    };
}

/// The items of a tiler by mode; None if it tiles the whole domain.
fn items<D: Stride>(tiler: &Tiler<D>) -> Option<&[Tiler<D>]> {
    if let Tiler::Modes(modes) = tiler { Some(modes.items()) } else { None }
}

fn leaves<D: Stride>(tiler: &Tiler<D>) -> usize {
    match tiler {
        Tiler::Keep => 1,
        Tiler::Layout(layout) => 1 + layout.leaves().len(),
        Tiler::Modes(modes) => modes.items().iter().map(leaves).fold(1, usize::saturating_add),
    }
}

impl AnyTiler {
    /// The tiler that has one of these items for each mode.
    ///
    /// Errors: an item can tile only a whole domain ([`LayoutError::Kind`]); as [`Tiler::modes`].
    pub fn modes(items: &[AnyTiler]) -> Result<AnyTiler, LayoutError> {
        if let Some(known) = items.iter().map(|item| item.integer().cloned()).collect::<Option<Vec<Tiler>>>() {
            return Ok(Tiler::modes(known)?.into());
        }
        if let Some(launch) = items.iter().map(AnyTiler::launch).collect::<Option<Vec<_>>>() {
            return Ok(Tiler::modes(launch.into_iter().map(Cow::into_owned))?.into());
        }
        match items.iter().map(AnyTiler::coordinate).collect::<Option<Vec<_>>>() {
            Some(steps) => Ok(Tiler::modes(steps.into_iter().map(Cow::into_owned))?.into()),
            None => super::wrong_kind("tiler", RefusedOperand::First, "a layout, an extent, '_' or a tiler"),
        }
    }

    /// Whether it is `_`, which keeps its operand unchanged.
    pub fn is_keep(&self) -> bool {
        matches!(self, AnyTiler::Integer(Tiler::Keep))
    }

    /// The number of tiles that cover a shape, for each mode: [`Tiler::tiles_of`].
    ///
    /// Errors: as [`Tiler::tiles_of`]; a tiler of coordinates, or a shape of steps
    /// ([`LayoutError::Kind`]).
    pub fn tiles_of(&self, shape: &AnyTree) -> Result<AnyTree, LayoutError> {
        const OP: &str = "ceil_div";
        if let (AnyTiler::Integer(tiler), AnyTree::Integer(shape)) = (self, shape) {
            return Ok(tiler.tiles_of(shape)?.into());
        }
        let Some(tiler) = self.launch() else { return super::wrong_kind(OP, RefusedOperand::Second, "a tiler") };
        let Some(shape) = shape.launch() else {
            return super::wrong_kind(OP, RefusedOperand::First, "a shape or a layout");
        };
        Ok(tiler.tiles_of(&shape)?.into())
    }

    /// The number of its modes; 1 if it tiles the whole domain.
    pub fn rank(&self) -> usize {
        with_tiler!(self, tiler => items(tiler).map_or(1, <[_]>::len), _map => 1)
    }

    /// The tiler of the mode with this number. A tiler of the whole domain is its own mode 0.
    pub fn mode(&self, mode: usize) -> Option<AnyTiler> {
        with_tiler!(self, tiler => match items(tiler) {
            Some(items) => items.get(mode).cloned().map(AnyTiler::from),
            None => (mode == 0).then(|| self.clone()),
        }, _map => (mode == 0).then(|| self.clone()))
    }

    /// The layout that tiles the whole domain; None if there is none.
    pub fn layout(&self) -> Option<AnyLayout> {
        match self {
            AnyTiler::Integer(Tiler::Layout(layout)) => Some(layout.clone().into()),
            AnyTiler::Launch(tiler) => match &**tiler {
                Tiler::Layout(layout) => Some(layout.clone().into()),
                _ => None,
            },
            AnyTiler::Coordinate(tiler) => match &**tiler {
                Tiler::Layout(layout) => Some(layout.clone().into()),
                _ => None,
            },
            AnyTiler::Map(map) => Some((**map).clone()),
            AnyTiler::Integer(_) => None,
        }
    }

    /// The tiler with integer strides; None if it is of another kind.
    pub fn integer(&self) -> Option<&Tiler> {
        if let AnyTiler::Integer(tiler) = self { Some(tiler) } else { None }
    }

    /// The tiler with expressions as numbers; None if it has none.
    pub fn launch(&self) -> Option<Cow<'_, Tiler<Expr>>> {
        match self {
            AnyTiler::Integer(tiler) => convert::retiled(tiler, &|layout| Some(layout.into())).map(Cow::Owned),
            AnyTiler::Launch(tiler) => Some(Cow::Borrowed(tiler)),
            _ => None,
        }
    }

    /// The tiler with coordinates as values; None if it has none.
    pub fn coordinate(&self) -> Option<Cow<'_, Tiler<CoordinateStep>>> {
        match self {
            AnyTiler::Coordinate(tiler) => Some(Cow::Borrowed(tiler)),
            _ => convert::retiled(&*self.launch()?, &convert::step_layout).map(Cow::Owned),
        }
    }

    /// The tiler of coordinates with known numbers; None if it is not one.
    pub fn known_coordinate(&self) -> Option<Tiler<Coordinate>> {
        convert::retiled(&*self.coordinate()?, &convert::known_steps)
    }

    /// The number of its leaves; limits on copies and text use it.
    pub fn leaves(&self) -> usize {
        with_tiler!(self, tiler => leaves(tiler), map => map.leaves())
    }
}

super::with_parameters!(AnyTiler: Launch, Coordinate, Map; Integer);

crate::from_variants!(AnyTiler: Integer(Tiler));

impl From<Tiler<Expr>> for AnyTiler {
    fn from(tiler: Tiler<Expr>) -> AnyTiler {
        match convert::retiled(&tiler, &convert::known_layout) {
            Some(known) => AnyTiler::Integer(known),
            None => AnyTiler::Launch(Box::new(tiler)),
        }
    }
}

impl From<Tiler<CoordinateStep>> for AnyTiler {
    fn from(tiler: Tiler<CoordinateStep>) -> AnyTiler {
        match convert::retiled(&tiler, &convert::plain_layout) {
            Some(plain) => plain.into(),
            None => AnyTiler::Coordinate(Box::new(tiler)),
        }
    }
}

impl From<AnyLayout> for AnyTiler {
    fn from(layout: AnyLayout) -> AnyTiler {
        match layout {
            AnyLayout::Integer(layout) => AnyTiler::Integer(Tiler::Layout(layout)),
            AnyLayout::Launch(layout) => AnyTiler::Launch(Box::new(Tiler::Layout(*layout))),
            AnyLayout::Coordinate(layout) => AnyTiler::Coordinate(Box::new(Tiler::Layout(*layout))),
            map => AnyTiler::Map(Box::new(map)),
        }
    }
}
