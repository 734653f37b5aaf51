//! Coordinates with open modes (`_`), whose indices are known or become known at launch.
//!
//! Law: an [`AnyCoord`] made with `From` has known indices if all of them are.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use super::convert;
use crate::refusal::error::LayoutError;
use crate::symbolic::{Expr, Parameter, Symbolic, Values};
use crate::value::coord::{Coord, Slot};
use crate::value::tree::Tree;

/// A coordinate of a layout of any kind: `(2,_)`, `(M,0)`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum AnyCoord {
    /// With constant indices: `(2,_)`.
    Integer(Coord),
    /// With an index that becomes known at launch: `(M,_)`.
    Launch(Box<Coord<Expr>>),
}

impl AnyCoord {
    /// The open mode: `_`.
    pub fn open() -> AnyCoord {
        AnyCoord::Integer(Tree::leaf(Slot::All))
    }

    /// The coordinate with known indices; None if an index becomes known at launch.
    pub fn integer(&self) -> Option<&Coord> {
        if let AnyCoord::Integer(coord) = self { Some(coord) } else { None }
    }

    /// The coordinate with expressions as indices.
    pub fn launch(&self) -> Cow<'_, Coord<Expr>> {
        match self {
            AnyCoord::Integer(coord) => Cow::Owned(convert::symbolic_coord(coord)),
            AnyCoord::Launch(coord) => Cow::Borrowed(coord),
        }
    }

    /// The coordinate that consists of these modes.
    ///
    /// Errors: it is larger or nests deeper than a tree may ([`LayoutError::TooLarge`]).
    pub fn tuple(modes: &[AnyCoord]) -> Result<AnyCoord, LayoutError> {
        if let Some(known) = modes.iter().map(AnyCoord::integer).collect::<Option<Vec<_>>>() {
            return Ok(Tree::tuple(known)?.into());
        }
        let modes: Vec<_> = modes.iter().map(AnyCoord::launch).collect();
        Ok(Tree::tuple(modes.iter().map(|mode| &**mode))?.into())
    }

    /// The number of leaves, open or not.
    pub fn len(&self) -> usize {
        match self {
            AnyCoord::Integer(coord) => coord.leaves().len(),
            AnyCoord::Launch(coord) => coord.leaves().len(),
        }
    }

    /// Whether it has no modes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

super::with_parameters!(AnyCoord: Launch; Integer);

crate::from_variants!(AnyCoord: Integer(Coord));

impl From<Coord<Expr>> for AnyCoord {
    fn from(coord: Coord<Expr>) -> AnyCoord {
        match convert::known_coord(&coord) {
            Some(known) => AnyCoord::Integer(known),
            None => AnyCoord::Launch(Box::new(coord)),
        }
    }
}
