//! Layouts, tuples and tilers whose kind of numbers is known only at run time.
//!
//! Law: an operation on an [`AnyLayout`] is the operation on the layout that it contains. A result
//! has the **least kind** that can represent it. Operands of different kinds are converted to the
//! least kind that can represent them all ([`Kind::join`]). A kind that does not have the operation
//! refuses ([`LayoutError::Kind`]).
//!
//! | kind | extents | strides | layout |
//! |---|---|---|---|
//! | integer | `i64` | `i64` | `(4,8):(8,1)` |
//! | known at launch | [`Expr`] | [`Expr`] | `(M,8):(8,1)` |
//! | coordinate | [`Expr`] | [`Coordinate`] of [`Expr`] | `(4,8):(1@0,1@1)` |
//! | XOR | `i64` | [`Xor`] | `(8,8):(^1,^9)` |
//! | composed | `i64` | | `S<3,0,3> o 0 o (8,8):(8,1)` |
//! | composed, known at launch | [`Expr`] | | `S<3,0,3> o 0 o (8,M):(M,1)` |
//! | composed of coordinates | [`Expr`] | | `(4,5):(1,4) o (0,0) o (2,3):(1@0,1@1)` |
//!
//! Conversions to the least kind: an expression whose value is known becomes an integer; a
//! coordinate in a codomain that is not a tuple becomes a number; XOR strides that are all 0 become
//! integers; a composed layout whose outer map is the identity becomes its inner layout. XOR steps
//! cannot be combined with other steps; 0 is a step of every kind.
//!
//! To add a kind, add a row to [`with_layout!`](crate::with_layout), to `convert`, and to
//! [`Kind::join`].
//!
//! * `convert`: from one kind of number to another
//! * `kind`: the kinds and their joins
//! * `layout`: operations that all kinds have
//! * `tree`, `coordinate`, `tiler`: tuples, coordinates and tilers of any kind
//! * `combine`: composition, division, product
//! * `algebra`, `predicate`, `place`, `width`: the other operations
//! * `text`: reading and printing

mod algebra;
mod combine;
mod convert;
mod coordinate;
mod kind;
mod layout;
mod place;
mod predicate;
mod text;
mod tiler;
mod tree;
mod width;

pub use coordinate::AnyCoord;
pub use kind::Kind;
pub use tiler::AnyTiler;
pub use tree::AnyTree;

use alloc::boxed::Box;

use crate::composed::Composed;
use crate::coordinate::Coordinate;
use crate::refusal::error::{LayoutError, RefusedOperand};
use crate::symbolic::Expr;
use crate::value::layout::Layout;
use crate::xor::Xor;

/// A coordinate step whose scales may become known at launch.
pub type CoordinateStep = Coordinate<Expr>;

/// A layout of any kind: with integer strides, numbers known at launch, coordinate or XOR steps, or
/// composed of several maps.
///
/// A value made with `From` has the least kind that can represent it, and so has every result. The
/// macro [`with_layout!`](crate::with_layout) accesses the contained layout.
///
/// ```
/// use tilewright_layout::AnyLayout;
///
/// # fn main() -> Result<(), tilewright_layout::LayoutError> {
/// let swizzled: AnyLayout = "S<3,0,3> o 0 o (8,8):(8,1)".parse()?;
/// let rows: AnyLayout = "(4,8):(8,1)".parse()?;
/// assert_eq!(swizzled.compose(&rows)?.to_string(), "S<3,0,3> o 0 o (4,8):(1,8)");
/// assert_eq!(rows.compose(&"4:1".parse()?)?.to_string(), "4:8");
///
/// // Numbers that become known at launch.
/// let tiled = "(M{div=8},8):(8,1)".parse::<AnyLayout>()?.compose(&"8:1".parse()?)?;
/// assert_eq!(tiled.to_string(), "8:8");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum AnyLayout {
    /// A layout with integer strides: `(4,8):(8,1)`.
    Integer(Layout),
    /// A layout with a number that becomes known at launch: `(M,8):(8,1)`.
    Launch(Box<Layout<Expr>>),
    /// A layout whose value is a coordinate: `(4,8):(1@0,1@1)`.
    Coordinate(Box<Layout<CoordinateStep>>),
    /// A layout whose value is an XOR of steps: `(8,8):(^1,^9)`.
    Xor(Layout<Xor>),
    /// A layout whose offsets a swizzle or another map changes: `S<3,4,3> o 0 o (8,64):(64,1)`.
    Composed(Box<Composed>),
    /// A composed layout with sizes known at launch: `(M,8):(8,1) o K o 4:1`.
    LaunchComposed(Box<Composed<Expr>>),
    /// A map of coordinates, given by an inner coordinate layout:
    /// `(4,5):(1,4) o (0,0) o (2,3):(1@0,1@1)`.
    CoordinateComposed(Box<Composed<CoordinateStep>>),
}

/// Evaluates an expression for the layout in an [`AnyLayout`], whatever its kind. This macro has
/// the only list of the kinds.
///
/// ```
/// use tilewright_layout::{AnyLayout, with_layout};
///
/// let swizzled: AnyLayout = "S<3,0,3> o 0 o (8,8):(8,1)".parse().unwrap();
/// assert_eq!(with_layout!(&swizzled, layout => layout.rank()), 2);
/// ```
#[macro_export]
macro_rules! with_layout {
    ($any:expr, $layout:ident => $result:expr) => {
        match $any {
            $crate::AnyLayout::Integer($layout) => $result,
            $crate::AnyLayout::Launch($layout) => $result,
            $crate::AnyLayout::Coordinate($layout) => $result,
            $crate::AnyLayout::Xor($layout) => $result,
            $crate::AnyLayout::Composed($layout) => $result,
            $crate::AnyLayout::LaunchComposed($layout) => $result,
            $crate::AnyLayout::CoordinateComposed($layout) => $result,
        }
    };
}

/// Methods of a type of any kind that call the method of its contents; `$each!` matches on the
/// kind.
macro_rules! of_every_kind {
    ($Any:ident, $each:ident: $($(#[$about:meta])* $name:ident($($argument:ident: $kind:ty),*);)*) => {
        impl $Any {
            $(
                $(#[$about])*
                pub fn $name(&self $(, $argument: $kind)*) -> Result<$Any, LayoutError> {
                    $each!(self, held => Ok(held.$name($($argument),*)?.into()))
                }
            )*
        }
    };
}
use of_every_kind;

/// The methods about parameters of a type of any kind; only some kinds have parameters.
macro_rules! with_parameters {
    ($(#[$example:meta])* $Any:ident: $($open:ident),+; $($known:ident),+) => {
        impl $Any {
            /// The parameters in it, each once: the numbers that become known at launch.
            pub fn parameters(&self) -> Vec<Parameter> {
                match self {
                    $($Any::$open(held) => held.parameters(),)+
                    $($Any::$known(_) => Vec::new(),)+
                }
            }

            /// Replaces the given parameters by numbers.
            ///
            /// Errors: as [`Symbolic::substitute`].
            $(#[$example])*
            pub fn substitute(&self, values: &Values) -> Result<$Any, LayoutError> {
                Ok(match self {
                    $($Any::$open(held) => held.substitute(values)?.into(),)+
                    $($Any::$known(_) => self.clone(),)+
                })
            }
        }
    };
}
use with_parameters;

/// Evaluates an expression for two layouts after converting both to the join of their kinds;
/// composed layouts are refused.
macro_rules! paired {
    ($op:expr, $a:expr, $b:expr, ($x:ident, $y:ident) => $result:expr) => {{
        let (a, b, op): (&AnyLayout, &AnyLayout, &'static str) = ($a, $b, $op);
        match a.kind().join(b.kind()) {
            Some($crate::any::Kind::Integer) => {
                let ($x, $y) = (a.integer_in(op, RefusedOperand::First)?, b.integer_in(op, RefusedOperand::Second)?);
                $result
            }
            Some($crate::any::Kind::Launch) => {
                let (x, y) = (a.launch_in(op, RefusedOperand::First)?, b.launch_in(op, RefusedOperand::Second)?);
                let ($x, $y) = (&*x, &*y);
                $result
            }
            Some($crate::any::Kind::Coordinate) => {
                let (x, y) =
                    (a.coordinate_in(op, RefusedOperand::First)?, b.coordinate_in(op, RefusedOperand::Second)?);
                let ($x, $y) = (&*x, &*y);
                $result
            }
            Some($crate::any::Kind::Xor) => {
                let (x, y) = (a.xor_in(op, RefusedOperand::First)?, b.xor_in(op, RefusedOperand::Second)?);
                let ($x, $y) = (&*x, &*y);
                $result
            }
            _ => $crate::any::no_pair(op, a, b),
        }
    }};
}
use paired;

/// The refusal of two layouts whose kinds have no join, or of a composed one.
#[cold]
fn no_pair<T>(op: &'static str, a: &AnyLayout, b: &AnyLayout) -> Result<T, LayoutError> {
    let first = a.is_composed() || !b.is_composed() && !matches!(a, AnyLayout::Xor(_));
    let (operand, layout) = if first { (RefusedOperand::First, a) } else { (RefusedOperand::Second, b) };
    wrong_kind(op, operand, layout.not_integer())
}

/// The refusal of an operand of a kind that the operation does not take.
#[cold]
fn wrong_kind<T>(op: &'static str, operand: RefusedOperand, wanted: &'static str) -> Result<T, LayoutError> {
    Err(LayoutError::Kind { op, operand, wanted })
}
