//! Composition, division and product of layouts of any kind.
//!
//! Law: `R(c) = A(B(c))`, where the values of `B` are indices or coordinates of `A`, for every
//! combination of kinds. A division is a composition with the tiler and the layout over the tiles;
//! a product combines a block with its copies. A composed layout or a layout with XOR strides may
//! be the inner layout of any layout whose indices are its values.

use super::{AnyLayout, AnyTiler, AnyTree, convert, wrong_kind};
use crate::composed::Composed;
use crate::refusal::error::{LayoutError, RefusedOperand};
use crate::symbolic::Expr;
use crate::tile::form::DivideForm;
use crate::tile::tiler::Tiler;
use crate::value::layout::Layout;
use crate::value::tree::Tree;
use crate::xor::Xor;

/// Evaluates an expression for a layout and an operand, which is a layout or a tiler (`$Any` is its
/// type), after converting both to kinds that match.
///
/// `picked` handles a composed layout and an operand of coordinates; `seen` handles a composed
/// layout of coordinates and an operand of coordinates.
macro_rules! combined {
    (
        $Any:ident, $op:expr, $whole:expr, $by:expr,
        ($map:ident, $tile:ident) => $result:expr,
        picked ($picked:ident, $place:ident) => $of_picked:expr,
        seen ($seen:ident, $at:ident) => $of_seen:expr $(,)?
    ) => {
        match ($whole, $by) {
            (AnyLayout::Integer($map), $Any::Integer($tile)) => $result,
            (AnyLayout::Composed($map), $Any::Integer($tile)) => $result,
            (AnyLayout::Xor($map), $Any::Integer($tile)) => $result,
            (AnyLayout::Xor($map), by @ $Any::Coordinate(_)) => match by.known_coordinate() {
                Some(known) => {
                    let $tile = &known;
                    $result
                }
                None => wrong_kind($op, RefusedOperand::Second, "a tiler whose numbers are known"),
            },
            (AnyLayout::Xor(_), _) => wrong_kind($op, RefusedOperand::Second, "a tiler whose numbers are known"),
            (AnyLayout::CoordinateComposed($seen), $Any::Coordinate($at)) => $of_seen,
            (whole, $Any::Coordinate(place)) if whole.is_composed() => {
                let whole = whole.launch_composed_in($op, RefusedOperand::First)?;
                let ($picked, $place) = (&*whole, place);
                $of_picked
            }
            (whole, $Any::Coordinate($tile)) => {
                let whole = whole.coordinate_in($op, RefusedOperand::First)?;
                let $map = &*whole;
                $result
            }
            (whole, by) => {
                let Some(by) = by.launch() else { return wrong_kind($op, RefusedOperand::Second, "a tiler") };
                let $tile = &*by;
                match whole {
                    AnyLayout::Coordinate($map) => $result,
                    AnyLayout::CoordinateComposed($map) => $result,
                    whole if whole.is_composed() => {
                        let whole = whole.launch_composed_in($op, RefusedOperand::First)?;
                        let $map = &*whole;
                        $result
                    }
                    whole => {
                        let whole = whole.launch_in($op, RefusedOperand::First)?;
                        let $map = &*whole;
                        $result
                    }
                }
            }
        }
    };
}

impl AnyLayout {
    /// `A o B`: the layout with value `A(B(c))` at each coordinate `c` of `B`. The values of `B`
    /// are indices or coordinates of `A`; `B` may be composed or have XOR strides.
    ///
    /// Errors: as [`Layout::compose`]; the two kinds have no composition ([`LayoutError::Kind`]).
    ///
    /// ```
    /// use tilewright_layout::AnyLayout;
    ///
    /// let any = |text: &str| text.parse::<AnyLayout>().unwrap();
    /// assert_eq!(any("(6,2):(8,2)").compose(&any("(4,3):(3,1)")).unwrap().to_string(), "((2,2),3):((24,2),8)");
    /// assert_eq!(any("(4,8):(8,1)").compose(&any("2:3@1")).unwrap().to_string(), "2:3");
    /// assert_eq!(any("(4,8):(^8,^1)").compose(&any("4:1")).unwrap().to_string(), "4:^8");
    /// ```
    #[inline]
    pub fn compose(&self, b: &AnyLayout) -> Result<AnyLayout, LayoutError> {
        if let (AnyLayout::Integer(a), AnyLayout::Integer(b)) = (self, b) {
            return Ok(AnyLayout::Integer(a.compose(b)?));
        }
        self.compose_kinds(b)
    }

    fn compose_kinds(&self, b: &AnyLayout) -> Result<AnyLayout, LayoutError> {
        const OP: &str = "composition";
        if b.is_map_of_bits() {
            return self.after_map(b);
        }
        combined! {
            AnyLayout, OP, self, b,
            (map, tile) => Ok(map.compose(tile)?.into()),
            picked (map, place) => Ok(map.compose_coordinates(place)?.into()),
            seen (map, place) => Ok(map.by_index()?.compose_coordinates(place)?.into()),
        }
    }

    /// `A o B` for a composed `B` or one with XOR strides.
    fn after_map(&self, b: &AnyLayout) -> Result<AnyLayout, LayoutError> {
        const OP: &str = "composition";
        let (a, b) = (self.by_index()?, b.by_index()?);
        match (&*a, &*b) {
            (AnyLayout::Integer(_) | AnyLayout::Composed(_), AnyLayout::Composed(right)) => {
                Ok(a.composed_in(OP, RefusedOperand::First)?.compose_composed(right)?.into())
            }
            (AnyLayout::Xor(left), AnyLayout::Xor(_) | AnyLayout::Composed(_)) => {
                Ok(vectors(b.composed_in(OP, RefusedOperand::Second)?.then_xor(left)?))
            }
            (AnyLayout::Integer(_) | AnyLayout::Composed(_), AnyLayout::Xor(right)) => {
                Ok(numbers(a.composed_in(OP, RefusedOperand::First)?.compose_composed(&right.composed()?)?))
            }
            (AnyLayout::Coordinate(left), AnyLayout::Composed(_) | AnyLayout::Xor(_)) => {
                // The values of a composed layout are numbers, so it must equal a layout of
                // indices, or there is no composite.
                match b.composed_in(OP, RefusedOperand::Second)?.to_layout()? {
                    (indices, 0) => Ok(left.compose(&Layout::<Expr>::from(&indices))?.into()),
                    _ => wrong_kind(
                        OP,
                        RefusedOperand::Second,
                        "a map of indices that begins at 0, after which coordinates add up",
                    ),
                }
            }
            _ => {
                let (left, right) = (
                    a.launch_composed_in(OP, RefusedOperand::First)?,
                    b.launch_composed_in(OP, RefusedOperand::Second)?,
                );
                Ok(left.compose_composed(&right)?.into())
            }
        }
    }

    /// `A o B`, refused unless the values of `B` stay within the domain of `A`.
    ///
    /// Errors: as [`Layout::compose_within`]; `A` is a composed layout ([`LayoutError::Kind`]).
    pub fn compose_within(&self, b: &AnyLayout) -> Result<AnyLayout, LayoutError> {
        const OP: &str = "composition_within";
        if let (AnyLayout::Integer(a), AnyLayout::Integer(b)) = (self, b) {
            return Ok(a.compose_within(b)?.into());
        }
        match (self, b) {
            (whole, _) if whole.is_composed() => {
                wrong_kind(OP, RefusedOperand::First, "a layout with an end of its own")
            }
            (_, b) if b.is_map_of_bits() => wrong_kind(OP, RefusedOperand::Second, b.not_integer()),
            (whole, AnyLayout::Coordinate(b)) => {
                Ok(whole.coordinate_in(OP, RefusedOperand::First)?.compose_within(b)?.into())
            }
            (AnyLayout::Xor(a), b) => Ok(a.compose_within(b.integer_in(OP, RefusedOperand::Second)?)?.into()),
            (AnyLayout::Coordinate(a), b) => Ok(a.compose_within(&*b.launch_in(OP, RefusedOperand::Second)?)?.into()),
            (a, b) => {
                let (a, b) = (a.launch_in(OP, RefusedOperand::First)?, b.launch_in(OP, RefusedOperand::Second)?);
                Ok(a.compose_within(&*b)?.into())
            }
        }
    }

    /// The composition with a tiler, mode by mode: [`Layout::compose_tiler`].
    ///
    /// Errors: as [`Layout::compose_tiler`]; a tiler by mode with coordinates, for a composed
    /// layout ([`LayoutError::Kind`]).
    pub fn compose_tiler(&self, tiler: &AnyTiler) -> Result<AnyLayout, LayoutError> {
        const OP: &str = "composition";
        const WANTED: &str = "a layout, or a tiler of numbers";
        if let AnyTiler::Map(map) = tiler {
            return self.after_map(map);
        }
        combined! {
            AnyTiler, OP, self, tiler,
            (map, tile) => Ok(map.compose_tiler(tile)?.into()),
            picked (map, place) => match &**place {
                Tiler::Layout(place) => Ok(map.compose_coordinates(place)?.into()),
                _ => wrong_kind(OP, RefusedOperand::Second, WANTED),
            },
            seen (map, place) => match &**place {
                Tiler::Layout(place) => Ok(map.by_index()?.compose_coordinates(place)?.into()),
                _ => wrong_kind(OP, RefusedOperand::Second, WANTED),
            },
        }
    }

    /// The layout divided into tiles and the layout over the tiles, in one of the forms:
    /// [`Layout::divide`].
    ///
    /// Errors: as [`Layout::divide`]; a tiler of a kind for which there is no division
    /// ([`LayoutError::Kind`]).
    ///
    /// ```
    /// use tilewright_layout::{AnyLayout, AnyTiler, DivideForm};
    ///
    /// let swizzled: AnyLayout = "S<1,0,3> o 0 o (4,8):(8,1)".parse().unwrap();
    /// let tiler: AnyTiler = "[2:1;4:1]".parse().unwrap();
    /// let tiles = swizzled.divide(DivideForm::Zipped, &tiler).unwrap();
    /// assert_eq!(tiles.to_string(), "S<1,0,3> o 0 o ((2,4),(2,2)):((8,1),(16,4))");
    /// ```
    pub fn divide(&self, form: DivideForm, tiler: &AnyTiler) -> Result<AnyLayout, LayoutError> {
        let op = form.division();
        if let AnyTiler::Map(tile) = tiler {
            let tile = tile.composed_in(op, RefusedOperand::Second)?;
            return match self {
                // The layout of indices is divided, then the XOR layout is applied.
                AnyLayout::Xor(whole) => {
                    let indices = Composed::from(Layout::compact(&whole.shape())?);
                    Ok(vectors(indices.divide_composed(form, &tile)?.then_xor(whole)?))
                }
                whole => Ok(whole.composed_in(op, RefusedOperand::First)?.divide_composed(form, &tile)?.into()),
            };
        }
        combined! {
            AnyTiler, op, self, tiler,
            (map, tile) => Ok(map.divide(form, tile)?.into()),
            picked (map, place) => Ok(map.divide(form, place)?.into()),
            seen (map, place) => Ok(map.divide(form, place)?.into()),
        }
    }

    /// Copies of this block, arranged by a tiler, in one of the forms: [`Layout::product`].
    ///
    /// Errors: as [`Layout::product`]; a tiler of a kind for which there is no product
    /// ([`LayoutError::Kind`]).
    pub fn product(&self, form: DivideForm, tiler: &AnyTiler) -> Result<AnyLayout, LayoutError> {
        let op = form.product();
        if let AnyTiler::Map(by) = tiler {
            let by = by.composed_in(op, RefusedOperand::Second)?;
            return match self {
                // The offsets of copies are added by XOR, so the arrangement has XOR strides.
                AnyLayout::Xor(whole) => Ok(whole.product(form, &Tiler::from(indices(&by)?))?.into()),
                whole => Ok(whole.composed_in(op, RefusedOperand::First)?.product_composed(form, &by)?.into()),
            };
        }
        combined! {
            AnyTiler, op, self, tiler,
            (map, tile) => Ok(map.product(form, tile)?.into()),
            picked (map, place) => Ok(map.product(form, place)?.into()),
            seen (map, place) => Ok(map.product(form, place)?.into()),
        }
    }

    /// The block repeated until it covers a shape: [`Layout::tile_to_shape`].
    ///
    /// Errors: as [`Layout::tile_to_shape`]; the target is not a tuple of numbers; for XOR strides,
    /// it has numbers that are not known ([`LayoutError::Kind`]).
    pub fn tile_to_shape(&self, target: &AnyTree, order: Option<&Tree<i64>>) -> Result<AnyLayout, LayoutError> {
        const OP: &str = "tile_to_shape";
        match (self, target.integer()) {
            (AnyLayout::Integer(layout), Some(target)) => return Ok(layout.tile_to_shape(target, order)?.into()),
            (AnyLayout::Composed(map), Some(target)) => return Ok(map.tile_to_shape(target, order)?.into()),
            (AnyLayout::Xor(layout), Some(target)) => return Ok(layout.tile_to_shape(target, order)?.into()),
            (AnyLayout::Xor(_), None) => {
                return wrong_kind(OP, RefusedOperand::Second, "a shape whose extents are known");
            }
            _ => {}
        }
        let Some(target) = target.launch() else {
            return wrong_kind(OP, RefusedOperand::Second, "a shape or a layout");
        };
        match self {
            AnyLayout::Coordinate(layout) => Ok(layout.tile_to_shape(&target, order)?.into()),
            AnyLayout::CoordinateComposed(map) => Ok(map.tile_to_shape(&target, order)?.into()),
            map if map.is_composed() => {
                Ok(map.launch_composed_in(OP, RefusedOperand::First)?.tile_to_shape(&target, order)?.into())
            }
            layout => Ok(layout.launch_in(OP, RefusedOperand::First)?.tile_to_shape(&target, order)?.into()),
        }
    }
}

/// Products that pair the modes of block and arrangement one by one.
macro_rules! paired_products {
    ($($(#[$about:meta])* $name:ident, $composed:ident;)*) => {
        impl AnyLayout {
            $(
                $(#[$about])*
                pub fn $name(&self, by: &AnyLayout) -> Result<AnyLayout, LayoutError> {
                    const OP: &str = stringify!($name);
                    if by.is_map_of_bits() {
                        let by = by.composed_in(OP, RefusedOperand::Second)?;
                        return match self {
                            AnyLayout::Xor(whole) => Ok(whole.$name(&indices(&by)?)?.into()),
                            whole => Ok(whole.composed_in(OP, RefusedOperand::First)?.$composed(&by)?.into()),
                        };
                    }
                    combined! {
                        AnyLayout, OP, self, by,
                        (map, tile) => Ok(map.$name(tile)?.into()),
                        picked (map, place) => Ok(map.$name(place)?.into()),
                        seen (map, place) => Ok(map.$name(place)?.into()),
                    }
                }
            )*
        }
    };
}

paired_products! {
    /// Copies side by side in every mode, `((block,copies),..)`: [`Layout::blocked_product`].
    ///
    /// Errors: as [`Layout::blocked_product`]; an arrangement of a kind for which there is no
    /// product ([`LayoutError::Kind`]).
    blocked_product, blocked_product_composed;
    /// Copies interleaved in every mode, `((copies,block),..)`: [`Layout::raked_product`].
    ///
    /// Errors: as [`AnyLayout::blocked_product`].
    raked_product, raked_product_composed;
}

/// A map whose values are bit vectors, as a layout with XOR strides if it equals one.
pub(super) fn vectors(map: Composed) -> AnyLayout {
    match map.to_xor() {
        Ok(layout) => layout.into(),
        Err(_) => map.into(),
    }
}

/// A map of numbers that was made from bit vectors, as a layout if it equals one.
fn numbers(map: Composed) -> AnyLayout {
    match map.to_layout() {
        Ok((layout, 0)) => layout.into(),
        _ => vectors(map),
    }
}

/// The layout that equals a map of indices.
fn indices(map: &Composed) -> Result<Layout, LayoutError> {
    match map.to_layout()? {
        (layout, 0) => Ok(layout),
        (_, value) => Err(LayoutError::Argument {
            op: "logical_product",
            what: "the offset of the arrangement",
            value,
            wanted: "0",
        }),
    }
}

impl AnyLayout {
    /// The composed layout `outer o 0 o A` of a map after this layout; a layout with XOR strides
    /// stays one if the result equals one.
    ///
    /// Errors: the result is a chain of more than [`MAX_CHAIN`](crate::limits::MAX_CHAIN) maps; the
    /// values are coordinates ([`LayoutError::Kind`]).
    pub fn then(&self, outer: &crate::OuterMap) -> Result<AnyLayout, LayoutError> {
        const OP: &str = "composition";
        match &*self.by_index()? {
            AnyLayout::Composed(map) => Ok(map.then(outer.clone())?.into()),
            AnyLayout::Xor(layout) => Ok(vectors(layout.composed()?.then(outer.clone())?)),
            map => Ok(map.launch_composed_in(OP, RefusedOperand::Second)?.then(convert::symbolic_map(outer)?)?.into()),
        }
    }

    /// This layout after a map of its indices: `A o map`, over the shape of `A`.
    ///
    /// Errors: as [`AnyLayout::then`]; this is a coordinate layout, and the result is not one
    /// ([`LayoutError::Kind`]).
    pub fn after(&self, map: &crate::OuterMap) -> Result<AnyLayout, LayoutError> {
        const OP: &str = "composition";
        let first = |shape: &Tree<i64>| Composed::new(map.clone(), 0, Layout::compact(shape)?);
        match &*self.by_index()? {
            left @ (AnyLayout::Integer(_) | AnyLayout::Composed(_)) => {
                let left = left.composed_in(OP, RefusedOperand::First)?;
                let map = left.map()?.after(&0, map)?;
                Ok(Composed::new(map, 0, Layout::compact(&left.shape())?)?.into())
            }
            AnyLayout::Xor(layout) => Ok(vectors(first(&layout.shape())?.then_xor(layout)?)),
            left @ AnyLayout::Coordinate(_) => match left.known_shape() {
                Some(shape) => left.after_map(&first(&shape)?.into()),
                None => wrong_kind(OP, RefusedOperand::First, "a shape whose extents are known"),
            },
            left => {
                let left = left.launch_composed_in(OP, RefusedOperand::First)?;
                let map = left.map()?.after(&Expr::from(0), &convert::symbolic_map(map)?)?;
                Ok(Composed::new(map, Expr::from(0), Layout::compact(&left.shape())?)?.into())
            }
        }
    }

    /// The layout with XOR strides that is the same function.
    ///
    /// Errors: as [`Layout::of_integers`] and [`Composed::to_xor`]; the numbers are not known
    /// ([`LayoutError::Kind`]).
    pub fn to_xor(&self) -> Result<Layout<Xor>, LayoutError> {
        match &*self.by_index()? {
            AnyLayout::Xor(layout) => Ok(layout.clone()),
            AnyLayout::Integer(layout) => Layout::<Xor>::of_integers(layout),
            map => map.composed_in("to_xor", RefusedOperand::First)?.to_xor(),
        }
    }
}
