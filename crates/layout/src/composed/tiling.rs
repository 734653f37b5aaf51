//! Composition, division and product of composed layouts.
//!
//! Law: `R o f = A o offset o (B o f)`, so these operations are applied to the inner layout. If
//! `B o f` is not a layout, `R o f` still exists: `f` becomes the inner layout, and `B` becomes
//! part of the outer map, `(A o offset o B) o 0 o f`. So a composition is never refused because the
//! composite is not a layout.
//!
//! A division is a composition with a layout that has every index once as a value: the division of
//! the compact layout of the same shape. A division by mode agrees with the division of `B` if no
//! tile leaves its mode. A tile that extends past its mode continues in the steps of `B`, so in
//! this case only `B` is divided.
//!
//! In a product, copies of `B` do not overlap; an injective `A` preserves this.

use super::{Composed, InnerValue};
use crate::algebra::inner::Inner;
use crate::coordinate::Coordinate;
use crate::refusal::error::{Fits, LayoutError};
use crate::tile::form::DivideForm;
use crate::tile::product::Blocks;
use crate::tile::tiler::Tiler;
use crate::value::layout::Layout;
use crate::value::number::{Extent, Stride};
use crate::value::tree::Tree;

/// Whether an error means that the result is not a layout, or was not proved to be one.
pub(super) fn is_no_layout(error: &LayoutError) -> bool {
    matches!(error, LayoutError::Carry(_) | LayoutError::Uneven(_) | LayoutError::Undecided { .. })
}

impl<D: InnerValue> Composed<D> {
    /// This map after a layout of indices: `c -> A(offset + B(b(c)))`.
    ///
    /// If `B o b` is a layout, it is the new inner layout; otherwise `b` is, and `B` becomes part
    /// of the outer map. So the composition with a layout of indices always exists.
    ///
    /// Errors: a number is not representable; the result is a chain of more than
    /// [`crate::limits::MAX_CHAIN`] maps.
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let tile: Composed = "S<2,0,3> o 0 o (4,8):(8,1)".parse().unwrap();
    /// let compose = |b: &str| tile.compose(&b.parse().unwrap()).unwrap().to_string();
    /// assert_eq!(compose("(2,8):(2,4)"), "S<2,0,3> o 0 o (2,8):(16,1)");
    /// assert_eq!(compose("8:3"), "S<2,0,3> o 0 o (4,8):(8,1) o 0 o 8:3"); // every third element
    /// ```
    pub fn compose(&self, b: &Layout<D::Extent>) -> Result<Composed<D>, LayoutError> {
        match self.inner.compose(b) {
            Err(error) if is_no_layout(&error) => D::over(self, b).unwrap_or(Err(error)),
            inner => self.with(inner?),
        }
    }

    /// [`Layout::compose_tiler`]: the part of each mode that the tiler names.
    ///
    /// Errors: as [`Layout::compose_tiler`]; if no tile leaves its mode, it is not an error that
    /// the result is not a layout.
    pub fn compose_tiler(&self, tiler: &Tiler<D::Extent>) -> Result<Composed<D>, LayoutError> {
        // A nested tile may leave its inner mode without this being noticed.
        let flat = |tiler: &Tiler<D::Extent>| !matches!(tiler, Tiler::Modes(_));
        match tiler {
            Tiler::Layout(b) => self.compose(b),
            Tiler::Modes(modes) if !modes.items().iter().all(flat) => self.with(self.inner.compose_tiler(tiler)?),
            _ => self.by_indices(
                |inner| inner.compose_tiler(tiler),
                |indices| indices.compose_tiler(tiler),
                |indices| {
                    indices.modes().zip(self.inner.modes()).enumerate().all(|(position, (tile, mode))| {
                        let step = self.inner.take(0..position).map(|before| before.size());
                        let end = step.ok().and_then(|step| mode.size().times(&step));
                        tile.range().is_ok_and(|(least, most)| {
                            !least.less(&D::Extent::from(0)).proved() && end.is_some_and(|end| most.less(&end).proved())
                        })
                    })
                },
            ),
        }
    }

    /// `op` of the inner layout; if that is not a layout, `by_index` of the compact layout of the
    /// shape, provided that `whole` accepts the result.
    fn by_indices(
        &self,
        op: impl Fn(&Layout<D>) -> Result<Layout<D>, LayoutError>,
        by_index: impl Fn(&Layout<D::Extent>) -> Result<Layout<D::Extent>, LayoutError>,
        whole: impl Fn(&Layout<D::Extent>) -> bool,
    ) -> Result<Composed<D>, LayoutError> {
        let error = match op(&self.inner) {
            Err(error) if is_no_layout(&error) => error,
            inner => return self.with(inner?),
        };
        let indices = Layout::compact(&self.shape()).and_then(|indices| by_index(&indices));
        match indices {
            Ok(indices) if whole(&indices) => D::over(self, &indices).unwrap_or(Err(error)),
            _ => Err(error),
        }
    }

    /// As [`Composed::by_indices`] for a division. The result is correct if a single layout of
    /// indices is the tile, or if the size does not grow: then no tile leaves its mode.
    fn divided<B: Inner<D>>(
        &self,
        tiler: &Tiler<B>,
        op: impl Fn(&Layout<D>) -> Result<Layout<D>, LayoutError>,
        by_index: impl Fn(&Layout<D::Extent>) -> Result<Layout<D::Extent>, LayoutError>,
    ) -> Result<Composed<D>, LayoutError> {
        let whole = B::INDICES && matches!(tiler, Tiler::Layout(_));
        self.by_indices(op, by_index, |indices| whole || indices.size().same(&self.size()).proved())
    }
}

/// Divisions of the inner layout, or of its indices.
macro_rules! divisions {
    ($($(#[$about:meta])* $name:ident;)*) => {
        impl<D: InnerValue> Composed<D> {
            $(
                $(#[$about])*
                pub fn $name<B: Inner<D> + Inner<D::Extent>>(
                    &self,
                    tiler: &Tiler<B>,
                ) -> Result<Composed<D>, LayoutError> {
                    self.divided(tiler, |inner| inner.$name(tiler), |indices| indices.$name(tiler))
                }
            )*
        }
    };
}

divisions! {
    /// [`Layout::logical_divide`]: the tile and the layout over the tiles, `((tile,rest),..)`.
    /// Errors: the tile has no complement; the tiler does not fit.
    ///
    /// ```
    /// use tilewright_layout::{Composed, Tiler};
    ///
    /// let tile: Composed = "S<3,3,3> o 0 o (8,64):(64,1)".parse().unwrap();
    /// let divided = tile.logical_divide(&"[2:1;16:1]".parse::<Tiler>().unwrap()).unwrap();
    /// assert_eq!(divided.to_string(), "S<3,3,3> o 0 o ((2,4),(16,4)):((64,128),(1,16))");
    /// ```
    logical_divide;
    /// [`Layout::zipped_divide`]: `((tiles),(rests))`. Errors: as [`Composed::logical_divide`].
    zipped_divide;
    /// [`Layout::tiled_divide`]: `((tiles),rest,..)`. Errors: as [`Composed::logical_divide`].
    tiled_divide;
    /// [`Layout::flat_divide`]: `(tile,..,rest,..)`. Errors: as [`Composed::logical_divide`].
    flat_divide;
}

impl<D: InnerValue> Composed<D> {
    /// The division in a form that is an argument.
    ///
    /// Errors: as [`Layout::logical_divide`].
    pub fn divide<B: Inner<D> + Inner<D::Extent>>(
        &self,
        form: DivideForm,
        tiler: &Tiler<B>,
    ) -> Result<Composed<D>, LayoutError> {
        self.divided(tiler, |inner| inner.divide(form, tiler), |indices| indices.divide(form, tiler))
    }
}

impl<N: Extent> Composed<N> {
    /// This map after a layout of coordinates of its domain: `c -> R(b(c))`, over the domain of
    /// `b`.
    ///
    /// Errors: a step is in a mode that the domain does not have ([`LayoutError::NoPath`]); a
    /// coordinate leaves the domain, and the composite is not a layout
    /// ([`LayoutError::OutOfDomain`]); the result is a chain of more than
    /// [`crate::limits::MAX_CHAIN`] maps.
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let tile: Composed = "S<2,0,3> o 0 o (4,8):(8,1)".parse().unwrap();
    /// let compose = |b: &str| tile.compose_coordinates(&b.parse().unwrap()).unwrap().to_string();
    /// assert_eq!(compose("(8,4):(1@1,1@0)"), "S<2,0,3> o 0 o (8,4):(1,8)"); // the transpose
    /// assert_eq!(compose("4:1@0+1@1"), "S<2,0,3> o 0 o 4:9"); // a diagonal
    /// ```
    pub fn compose_coordinates(&self, b: &Layout<Coordinate<N>>) -> Result<Composed<N>, LayoutError> {
        // The coordinates are those of the inner layout, also past its modes. Joining it with the
        // outer map may lose its shape.
        let Composed { outer, offset, inner } =
            Composed::new(self.inner.clone(), Coordinate::zero(), b.clone())?.by_index()?;
        if outer.is_identity() {
            let offset = self.offset.plus(&offset).fits_as::<N>("composition")?;
            return Composed::new(self.outer.clone(), offset, inner);
        }
        Composed::new(self.outer.after(&self.offset, &outer)?, offset, inner)
    }

    /// This map after a composed layout: `c -> R(b(c))`, over the domain of `b`. It always exists.
    ///
    /// Errors: the result is a chain of more than [`crate::limits::MAX_CHAIN`] maps.
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let (a, b): (Composed, Composed) = ("S<1,0,1> o 0 o (2,2):(2,1)".parse().unwrap(), "S<1,0,1> o 1 o 2:1".parse().unwrap());
    /// let both = a.compose_composed(&b).unwrap();
    /// assert_eq!(both.to_string(), "S<1,0,1> o 0 o (2,2):(2,1) o 0 o S<1,0,1> o 1 o 2:1");
    /// assert_eq!(both.eval(&1), a.eval(&b.eval(&1).unwrap()));
    /// ```
    pub fn compose_composed(&self, b: &Composed<N>) -> Result<Composed<N>, LayoutError> {
        b.then(self.map()?)
    }
}

/// Products that are applied to the inner layout.
macro_rules! products {
    ($($(#[$about:meta])* $name:ident($Tiler:ident);)*) => {
        impl<D: InnerValue + Blocks> Composed<D> {
            $(
                $(#[$about])*
                pub fn $name<B: Inner<D>>(&self, tiler: &$Tiler<B>) -> Result<Composed<D>, LayoutError> {
                    self.with(self.inner.$name(tiler)?)
                }
            )*
        }
    };
}

products! {
    /// [`Layout::logical_product`] of the inner layout: copies of it, to which the same outer map
    /// is applied. So `R(i,0) = A(i)`, and copies do not overlap if the outer map is injective; but
    /// the values of one copy are not a translate of those of another (as in CuTe).
    ///
    /// ```
    /// use tilewright_layout::{Composed, Tiler};
    ///
    /// let block: Composed = "S<2,0,-2> o 0 o 8:1".parse().unwrap();
    /// let product = block.logical_product(&"2:1".parse::<Tiler>().unwrap()).unwrap();
    /// assert_eq!(product.to_string(), "S<2,0,-2> o 0 o (8,2):(1,8)");
    /// ```
    logical_product(Tiler);
    /// [`Layout::zipped_product`] of the inner layout.
    zipped_product(Tiler);
    /// [`Layout::tiled_product`] of the inner layout.
    tiled_product(Tiler);
    /// [`Layout::flat_product`] of the inner layout.
    flat_product(Tiler);
    /// [`Layout::blocked_product`] of the inner layout.
    blocked_product(Layout);
    /// [`Layout::raked_product`] of the inner layout.
    raked_product(Layout);
}

impl<D: InnerValue + Blocks> Composed<D> {
    /// The product in a form that is an argument.
    ///
    /// Errors: as [`Layout::logical_product`].
    pub fn product<B: Inner<D>>(&self, form: DivideForm, tiler: &Tiler<B>) -> Result<Composed<D>, LayoutError> {
        self.with(self.inner.product(form, tiler)?)
    }

    /// [`Layout::tile_to_shape`] of the inner layout.
    pub fn tile_to_shape(
        &self,
        target: &Tree<D::Extent>,
        order: Option<&Tree<i64>>,
    ) -> Result<Composed<D>, LayoutError> {
        self.with(self.inner.tile_to_shape(target, order)?)
    }
}
