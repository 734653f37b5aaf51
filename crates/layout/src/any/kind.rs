//! The kinds of layouts, and their joins.
//!
//! Law: [`Kind::join`] is commutative, associative and idempotent. Converting a layout to the join
//! of its kind and another one keeps its values.

use alloc::borrow::Cow;
use alloc::boxed::Box;

use super::{AnyLayout, CoordinateStep, convert, wrong_kind};
use crate::composed::Composed;
use crate::coordinate::Coordinate;
use crate::ground::words::words;
use crate::refusal::error::{LayoutError, RefusedOperand};
use crate::symbolic::Expr;
use crate::value::layout::Layout;
use crate::xor::Xor;

words! {
    /// The kind of a layout.
    ///
    /// ```
    /// use tilewright_layout::{AnyLayout, Kind};
    ///
    /// let kind = |text: &str| text.parse::<AnyLayout>().unwrap().kind();
    /// assert_eq!(kind("(4,8):(8,1)"), Kind::Integer);
    /// assert_eq!(kind("(4,M):(M,1)").join(kind("S<1,0,1> o 0 o 4:1")), Some(Kind::LaunchComposed));
    /// assert_eq!(Kind::Xor.join(Kind::Coordinate), None);
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Kind {
        /// Integers.
        Integer = "layout",
        /// Numbers known at launch.
        Launch = "layout known at launch",
        /// Coordinate steps.
        Coordinate = "coordinate layout",
        /// XOR steps.
        Xor = "XOR layout",
        /// An outer map, an offset and an inner layout of integers.
        Composed = "composed layout",
        /// A composed layout with sizes known at launch.
        LaunchComposed = "composed layout known at launch",
        /// A composed layout whose inner layout has coordinates as values.
        CoordinateComposed = "composed layout of coordinates",
    }
}

impl Kind {
    /// The least kind to which layouts of both kinds can be converted; None if numbers would be
    /// combined with coordinates.
    ///
    /// The join of integers and XOR steps is XOR steps, to which only strides of 0 can be
    /// converted. A layout without a counterpart is refused when it is converted.
    pub fn join(self, other: Kind) -> Option<Kind> {
        use Kind::{Composed, Coordinate, CoordinateComposed, Integer, Launch, LaunchComposed, Xor};
        match (self.min(other), self.max(other)) {
            (low, high) if low == high => Some(high),
            // A composed layout of coordinates is combined with others as a map of indices.
            (low, CoordinateComposed) => low.join(LaunchComposed),
            (Coordinate, Xor | Composed | LaunchComposed) => None,
            (Launch, Xor | Composed) => Some(LaunchComposed),
            (Integer | Launch | Xor | Composed, high) => Some(high),
            _ => None,
        }
    }
}

impl AnyLayout {
    /// The kind of this layout.
    pub fn kind(&self) -> Kind {
        match self {
            AnyLayout::Integer(_) => Kind::Integer,
            AnyLayout::Launch(_) => Kind::Launch,
            AnyLayout::Coordinate(_) => Kind::Coordinate,
            AnyLayout::Xor(_) => Kind::Xor,
            AnyLayout::Composed(_) => Kind::Composed,
            AnyLayout::LaunchComposed(_) => Kind::LaunchComposed,
            AnyLayout::CoordinateComposed(_) => Kind::CoordinateComposed,
        }
    }

    /// Whether it is a composed layout, of any kind.
    pub fn is_composed(&self) -> bool {
        matches!(self, AnyLayout::Composed(_) | AnyLayout::LaunchComposed(_) | AnyLayout::CoordinateComposed(_))
    }

    /// Whether it is composed or has XOR steps: such a layout is a map of the bits of an index.
    pub fn is_map_of_bits(&self) -> bool {
        self.is_composed() || matches!(self, AnyLayout::Xor(_))
    }

    /// The layout with integer strides; None if it is of another kind.
    pub fn integer(&self) -> Option<&Layout> {
        if let AnyLayout::Integer(layout) = self { Some(layout) } else { None }
    }

    /// The layout with integer strides.
    ///
    /// Errors: it is of another kind ([`LayoutError::Kind`]).
    pub fn integers(&self) -> Result<&Layout, LayoutError> {
        self.integer_in("layout", RefusedOperand::First)
    }

    /// The layout with expressions as numbers; None if it has none.
    pub fn launch(&self) -> Option<Cow<'_, Layout<Expr>>> {
        match self {
            AnyLayout::Integer(layout) => Some(Cow::Owned(Layout::from(layout))),
            AnyLayout::Launch(layout) => Some(Cow::Borrowed(layout)),
            _ => None,
        }
    }

    /// The layout with coordinates as values, or None. A number is a step in a codomain that is not
    /// a tuple.
    pub fn coordinate(&self) -> Option<Cow<'_, Layout<CoordinateStep>>> {
        match self {
            AnyLayout::Coordinate(layout) => Some(Cow::Borrowed(layout)),
            _ => convert::step_layout(&*self.launch()?).map(Cow::Owned),
        }
    }

    /// The coordinate layout with known numbers; None if it is not one.
    pub fn known_coordinate(&self) -> Option<Layout<Coordinate>> {
        convert::known_steps(&*self.coordinate()?)
    }

    /// The layout with XOR strides, or None. Strides of 0 are XOR strides.
    pub fn xor(&self) -> Option<Cow<'_, Layout<Xor>>> {
        match self {
            AnyLayout::Xor(layout) => Some(Cow::Borrowed(layout)),
            AnyLayout::Integer(layout) => convert::xor_layout(layout).map(Cow::Owned),
            _ => None,
        }
    }

    /// The same function as a map of indices; only a composed layout of coordinates changes.
    ///
    /// Errors: the map of indices is not representable.
    pub fn by_index(&self) -> Result<Cow<'_, AnyLayout>, LayoutError> {
        match self {
            AnyLayout::CoordinateComposed(map) => Ok(Cow::Owned(map.by_index()?.into())),
            _ => Ok(Cow::Borrowed(self)),
        }
    }

    /// The composed layout with known numbers that is the same function.
    ///
    /// Errors: its values are coordinates, or numbers that become known at launch
    /// ([`LayoutError::Kind`]); it is not representable.
    pub fn composed(&self) -> Result<Cow<'_, Composed>, LayoutError> {
        self.composed_in("composed layout", RefusedOperand::First)
    }

    pub(super) fn composed_in(
        &self,
        op: &'static str,
        operand: RefusedOperand,
    ) -> Result<Cow<'_, Composed>, LayoutError> {
        match self {
            AnyLayout::Composed(map) => Ok(Cow::Borrowed(map)),
            AnyLayout::Integer(layout) => Ok(Cow::Owned(Composed::from(layout))),
            AnyLayout::Xor(layout) => Ok(Cow::Owned(layout.composed()?)),
            AnyLayout::CoordinateComposed(map) => match convert::known_composed(&map.by_index()?) {
                Some(known) => Ok(Cow::Owned(known)),
                None => wrong_kind(op, operand, "a map whose numbers are known"),
            },
            AnyLayout::LaunchComposed(_) => wrong_kind(op, operand, "a map whose numbers are known"),
            AnyLayout::Launch(_) | AnyLayout::Coordinate(_) => wrong_kind(op, operand, self.not_integer()),
        }
    }

    /// The composed layout with expressions as numbers that is the same function.
    ///
    /// Errors: its values are coordinates, or bit vectors, which equal a map of bits only for
    /// nonnegative indices ([`LayoutError::Kind`]); it is not representable.
    pub fn launch_composed(&self) -> Result<Cow<'_, Composed<Expr>>, LayoutError> {
        self.launch_composed_in("composed layout", RefusedOperand::First)
    }

    pub(super) fn launch_composed_in(
        &self,
        op: &'static str,
        operand: RefusedOperand,
    ) -> Result<Cow<'_, Composed<Expr>>, LayoutError> {
        match self {
            AnyLayout::Composed(map) => Ok(Cow::Owned(convert::symbolic_composed(map)?)),
            AnyLayout::LaunchComposed(map) => Ok(Cow::Borrowed(map)),
            AnyLayout::CoordinateComposed(map) => Ok(Cow::Owned(map.by_index()?)),
            _ => Ok(Cow::Owned(Composed::from(self.launch_in(op, operand)?.into_owned()))),
        }
    }

    /// The expected operand of an operation on integers, given a layout of another kind.
    pub(super) fn not_integer(&self) -> &'static str {
        match self {
            AnyLayout::Launch(_) => "a layout whose numbers are known",
            AnyLayout::Coordinate(_) | AnyLayout::Xor(_) => "a layout with integer strides",
            _ => "a layout",
        }
    }

    pub(super) fn integer_in(&self, op: &'static str, operand: RefusedOperand) -> Result<&Layout, LayoutError> {
        self.integer().map_or_else(|| wrong_kind(op, operand, self.not_integer()), Ok)
    }

    pub(super) fn launch_in(
        &self,
        op: &'static str,
        operand: RefusedOperand,
    ) -> Result<Cow<'_, Layout<Expr>>, LayoutError> {
        self.launch().map_or_else(|| wrong_kind(op, operand, self.not_integer()), Ok)
    }

    pub(super) fn coordinate_in(
        &self,
        op: &'static str,
        operand: RefusedOperand,
    ) -> Result<Cow<'_, Layout<CoordinateStep>>, LayoutError> {
        match self.coordinate() {
            Some(layout) => Ok(layout),
            None if self.is_map_of_bits() => wrong_kind(op, operand, self.not_integer()),
            None => wrong_kind(op, operand, "a layout with coordinate strides"),
        }
    }

    pub(super) fn xor_in(
        &self,
        op: &'static str,
        operand: RefusedOperand,
    ) -> Result<Cow<'_, Layout<Xor>>, LayoutError> {
        match (self.xor(), self) {
            (Some(layout), _) => Ok(layout),
            (None, AnyLayout::Integer(_)) => wrong_kind(op, operand, "a layout with XOR strides, as the other one has"),
            _ => wrong_kind(op, operand, self.not_integer()),
        }
    }
}

crate::from_variants!(AnyLayout: Integer(Layout), CoordinateComposed(Composed<CoordinateStep>));

impl From<Layout<Expr>> for AnyLayout {
    fn from(layout: Layout<Expr>) -> AnyLayout {
        match convert::known_layout(&layout) {
            Some(known) => AnyLayout::Integer(known),
            None => AnyLayout::Launch(Box::new(layout)),
        }
    }
}

impl From<Layout<CoordinateStep>> for AnyLayout {
    fn from(layout: Layout<CoordinateStep>) -> AnyLayout {
        match convert::plain_layout(&layout) {
            Some(plain) => plain.into(),
            None => AnyLayout::Coordinate(Box::new(layout)),
        }
    }
}

impl From<Layout<Coordinate>> for AnyLayout {
    fn from(layout: Layout<Coordinate>) -> AnyLayout {
        convert::launch_steps(&layout).into()
    }
}

impl From<Layout<Xor>> for AnyLayout {
    fn from(layout: Layout<Xor>) -> AnyLayout {
        match convert::without_bits(&layout) {
            Some(plain) => AnyLayout::Integer(plain),
            None => AnyLayout::Xor(layout),
        }
    }
}

impl From<Composed> for AnyLayout {
    fn from(map: Composed) -> AnyLayout {
        match map.as_layout() {
            Some(layout) => AnyLayout::Integer(layout.clone()),
            None => AnyLayout::Composed(Box::new(map)),
        }
    }
}

impl From<Composed<Expr>> for AnyLayout {
    fn from(map: Composed<Expr>) -> AnyLayout {
        if let Some(layout) = map.as_layout() {
            return layout.clone().into();
        }
        match convert::known_composed(&map) {
            Some(known) => known.into(),
            None => AnyLayout::LaunchComposed(Box::new(map)),
        }
    }
}
