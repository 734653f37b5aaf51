//! Operations on layouts of all kinds: shape, modes, and operations that rearrange or merge modes.
//!
//! Law: each method is that of the layout itself, of the same name.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use super::{AnyLayout, AnyTree, Kind, of_every_kind, wrong_kind};
use crate::composed::Composed;
use crate::refusal::error::{LayoutError, RefusedOperand};
use crate::symbolic::{Expr, Parameter, Symbolic, Values};
use crate::value::layout::Layout;
use crate::value::profile::Profile;
use crate::value::tree::Tree;
use crate::with_layout;

of_every_kind! {
    AnyLayout, with_layout:
    /// The layout with the fewest modes that is the same function: [`Layout::coalesce`].
    coalesce();
    /// The layout with the fewest modes that is the same function on all integers:
    /// [`Layout::coalesce_z`].
    coalesce_z();
    /// Coalesced within each leaf of a profile: [`Layout::coalesce_by`].
    coalesce_by(profile: &Profile);
    /// The coalesced layout without modes of stride 0: [`Layout::filter`].
    filter();
    /// [`Layout::filter`] within each leaf of a profile: [`Layout::filter_by`].
    filter_by(profile: &Profile);
    /// The same leaves in one flat tuple: [`Layout::flatten`].
    flatten();
    /// The same leaves in another nesting: [`Layout::unflatten`].
    unflatten(profile: &Profile);
    /// A range of modes as one mode: [`Layout::group`].
    group(range: Range<usize>);
    /// A range of modes: [`Layout::take`].
    take(range: Range<usize>);
    /// The modes with these numbers: [`Layout::select`].
    select(modes: &[usize]);
    /// The layout without one mode: [`Layout::remove`].
    remove(mode: usize);
    /// The modes in reverse order, at every level of nesting: [`Layout::reverse`].
    reverse();
    /// Transposes modes of modes, `((a,b),(c,d))` to `((a,c),(b,d))`: [`Layout::zip`].
    zip();
    /// Separates pairs, `((a,b),(c,d))` to `((a,c),(b,d))`, as a profile guides: [`Layout::unzip`].
    unzip(guide: &Profile);
}

/// Operations on a layout and another one of its kind; of a composed layout, on its inner layout.
macro_rules! with_another {
    ($($(#[$about:meta])* $name:ident($($argument:ident: $kind:ty),*);)*) => {
        impl AnyLayout {
            $(
                $(#[$about])*
                pub fn $name(&self, $($argument: $kind,)* other: &AnyLayout) -> Result<AnyLayout, LayoutError> {
                    const OP: &str = stringify!($name);
                    match self {
                        AnyLayout::Composed(map) => {
                            Ok(map.$name($($argument,)* other.integer_in(OP, RefusedOperand::Second)?)?.into())
                        }
                        AnyLayout::LaunchComposed(map) => {
                            Ok(map.$name($($argument,)* &*other.launch_in(OP, RefusedOperand::Second)?)?.into())
                        }
                        AnyLayout::CoordinateComposed(map) => {
                            Ok(map.$name($($argument,)* &*other.coordinate_in(OP, RefusedOperand::Second)?)?.into())
                        }
                        _ => super::paired!(OP, self, other, (a, b) => Ok(a.$name($($argument,)* b)?.into())),
                    }
                }
            )*
        }
    };
}

with_another! {
    /// The modes of this layout, followed by the other layout as one mode: [`Layout::append`].
    append();
    /// The other layout as one mode, followed by the modes of this one: [`Layout::prepend`].
    prepend();
    /// The layout followed by copies of the other until there are `rank` modes:
    /// [`Layout::append_to_rank`].
    append_to_rank(rank: usize);
    /// The layout preceded by copies of the other until there are `rank` modes:
    /// [`Layout::prepend_to_rank`].
    prepend_to_rank(rank: usize);
    /// The layout with one mode replaced by the other: [`Layout::replace`].
    replace(mode: usize);
}

impl AnyLayout {
    /// Mode `j` of the result holds mode `j` of both: [`Layout::zip_with`].
    ///
    /// Errors: as [`Layout::zip_with`]; composed layouts ([`LayoutError::Kind`]).
    pub fn zip_with(&self, other: &AnyLayout) -> Result<AnyLayout, LayoutError> {
        super::paired!("zip", self, other, (a, b) => Ok(a.zip_with(b)?.into()))
    }

    /// Modes of stride 0 become extent 1, in place: [`Layout::filter_zeros`].
    ///
    /// Errors: the result for a composed layout is not representable.
    pub fn filter_zeros(&self) -> Result<AnyLayout, LayoutError> {
        Ok(match self {
            AnyLayout::Integer(layout) => layout.filter_zeros().into(),
            AnyLayout::Launch(layout) => layout.filter_zeros().into(),
            AnyLayout::Coordinate(layout) => layout.filter_zeros().into(),
            AnyLayout::Xor(layout) => layout.filter_zeros().into(),
            AnyLayout::Composed(map) => map.filter_zeros()?.into(),
            AnyLayout::LaunchComposed(map) => map.filter_zeros()?.into(),
            AnyLayout::CoordinateComposed(map) => map.filter_zeros()?.into(),
        })
    }

    /// The layout with this shape and these strides. The strides determine its kind.
    ///
    /// Errors: they nest differently ([`LayoutError::NotCongruent`]); an extent is not positive;
    /// strides of one kind cannot have extents of another ([`LayoutError::Kind`]).
    ///
    /// ```
    /// use tilewright_layout::{AnyLayout, AnyTree};
    ///
    /// let tree = |text: &str| text.parse::<AnyTree>().unwrap();
    /// let layout = AnyLayout::new(&tree("(4,M)"), &tree("(1@0,1@1)")).unwrap();
    /// assert_eq!(layout.to_string(), "(4,M):(1@0,1@1)");
    /// ```
    pub fn new(shape: &AnyTree, stride: &AnyTree) -> Result<AnyLayout, LayoutError> {
        const OP: &str = "layout";
        if let (AnyTree::Integer(shape), AnyTree::Integer(stride)) = (shape, stride) {
            return Ok(Layout::new(shape, stride)?.into());
        }
        if let (AnyTree::Integer(shape), AnyTree::Xor(stride)) = (shape, stride) {
            return Ok(Layout::new(shape, stride)?.into());
        }
        let Some(shape) = shape.launch() else {
            return wrong_kind(OP, RefusedOperand::First, "a number or a tuple of numbers");
        };
        match (stride.launch(), stride.coordinate()) {
            _ if matches!(stride, AnyTree::Xor(_)) => {
                wrong_kind(OP, RefusedOperand::First, "a shape of known numbers, for XOR strides")
            }
            (Some(stride), _) => Ok(Layout::new(&shape, &stride)?.into()),
            (None, Some(stride)) => Ok(Layout::new(&shape, &stride)?.into()),
            _ => wrong_kind(OP, RefusedOperand::Second, "strides"),
        }
    }

    /// The layout that consists of these modes, in the join of their kinds: [`Layout::tuple`],
    /// [`Composed::tuple`].
    ///
    /// Errors: the kinds have no join ([`LayoutError::Kind`], with the number of the operand); as
    /// these two functions.
    ///
    /// ```
    /// use tilewright_layout::AnyLayout;
    ///
    /// let modes: [AnyLayout; 2] = ["4:1".parse().unwrap(), "8:K".parse().unwrap()];
    /// assert_eq!(AnyLayout::tuple(&modes).unwrap().to_string(), "(4,8):(1,K)");
    /// ```
    pub fn tuple(modes: &[AnyLayout]) -> Result<AnyLayout, LayoutError> {
        const OP: &str = "make_layout";
        let mut kinds = modes.iter().map(AnyLayout::kind);
        let kind = kinds.try_fold(Kind::Integer, Kind::join);
        let place = |number: usize| if number == 0 { RefusedOperand::First } else { RefusedOperand::Second };
        let numbered = || modes.iter().enumerate().map(|(number, mode)| (mode, place(number)));
        match kind {
            Some(Kind::Integer) => {
                let modes: Result<Vec<_>, _> = numbered().map(|(mode, at)| mode.integer_in(OP, at)).collect();
                Ok(Layout::tuple(modes?)?.into())
            }
            Some(Kind::Launch) => {
                let modes: Result<Vec<_>, _> = numbered().map(|(mode, at)| mode.launch_in(OP, at)).collect();
                Ok(Layout::tuple(modes?.iter().map(|mode| &**mode))?.into())
            }
            Some(Kind::Coordinate) => {
                let modes: Result<Vec<_>, _> = numbered().map(|(mode, at)| mode.coordinate_in(OP, at)).collect();
                Ok(Layout::tuple(modes?.iter().map(|mode| &**mode))?.into())
            }
            Some(Kind::Xor) => {
                let modes: Result<Vec<_>, _> = numbered().map(|(mode, at)| mode.xor_in(OP, at)).collect();
                Ok(Layout::tuple(modes?.iter().map(|mode| &**mode))?.into())
            }
            Some(_) => {
                let modes: Result<Vec<_>, _> = numbered().map(|(mode, at)| mode.composed_in(OP, at)).collect();
                Ok(Composed::tuple(modes?.iter().map(|mode| &**mode))?.into())
            }
            None => wrong_kind(OP, RefusedOperand::Second, "a layout of a kind that the others can be"),
        }
    }

    /// The number of modes at the top level.
    pub fn rank(&self) -> usize {
        with_layout!(self, layout => layout.rank())
    }

    /// The depth of the nesting.
    pub fn depth(&self) -> usize {
        with_layout!(self, layout => layout.depth())
    }

    /// The nesting.
    pub fn profile(&self) -> &Profile {
        with_layout!(self, layout => layout.profile())
    }

    /// The mode with this number.
    pub fn mode(&self, mode: usize) -> Option<AnyLayout> {
        with_layout!(self, layout => layout.mode(mode).map(AnyLayout::from))
    }

    /// The mode at a path of mode numbers, outermost first.
    pub fn at(&self, path: &[usize]) -> Option<AnyLayout> {
        with_layout!(self, layout => layout.at(path).map(AnyLayout::from))
    }

    /// The extents.
    pub fn shape(&self) -> AnyTree {
        with_layout!(self, layout => layout.shape().into())
    }

    /// The extents; None if one is not known.
    pub fn known_shape(&self) -> Option<Tree<i64>> {
        self.shape().integer().cloned()
    }

    /// The extents as expressions.
    pub fn launch_shape(&self) -> Tree<Expr> {
        // Extents are always numbers, so the default is never used.
        self.shape().launch().unwrap_or(Tree::leaf(Expr::from(1)))
    }

    /// The strides; None for composed layouts.
    pub fn stride(&self) -> Option<AnyTree> {
        match self {
            AnyLayout::Integer(layout) => Some(layout.stride().into()),
            AnyLayout::Launch(layout) => Some(layout.stride().into()),
            AnyLayout::Coordinate(layout) => Some(layout.stride().into()),
            AnyLayout::Xor(layout) => Some(layout.stride().into()),
            AnyLayout::Composed(_) | AnyLayout::LaunchComposed(_) | AnyLayout::CoordinateComposed(_) => None,
        }
    }

    /// The number of coordinates.
    pub fn size(&self) -> Expr {
        match self {
            AnyLayout::Integer(layout) => Expr::from(layout.size()),
            AnyLayout::Launch(layout) => layout.size(),
            AnyLayout::Coordinate(layout) => layout.size(),
            AnyLayout::Xor(layout) => Expr::from(layout.size()),
            AnyLayout::Composed(map) => Expr::from(map.size()),
            AnyLayout::LaunchComposed(map) => map.size(),
            AnyLayout::CoordinateComposed(map) => map.size(),
        }
    }

    /// The number of leaves of the layout and of the maps that it is composed of; limits on copies
    /// and text use it.
    pub fn leaves(&self) -> usize {
        match self {
            AnyLayout::Integer(layout) => layout.leaves().len(),
            AnyLayout::Launch(layout) => layout.leaves().len(),
            AnyLayout::Coordinate(layout) => layout.leaves().len(),
            AnyLayout::Xor(layout) => layout.leaves().len(),
            AnyLayout::Composed(map) => map.outer().leaves().saturating_add(map.inner().leaves().len()),
            AnyLayout::LaunchComposed(map) => map.outer().leaves().saturating_add(map.inner().leaves().len()),
            AnyLayout::CoordinateComposed(map) => map.outer().leaves().saturating_add(map.inner().leaves().len()),
        }
    }

    /// The same layout in its least kind. Values made with `From` and results of operations have it
    /// already.
    pub fn reduced(self) -> AnyLayout {
        match self {
            AnyLayout::Integer(_) | AnyLayout::CoordinateComposed(_) => self,
            AnyLayout::Launch(layout) => (*layout).into(),
            AnyLayout::Coordinate(layout) => (*layout).into(),
            AnyLayout::Xor(layout) => layout.into(),
            AnyLayout::Composed(map) => (*map).into(),
            AnyLayout::LaunchComposed(map) => (*map).into(),
        }
    }

    /// The layout converted to the join of its kind and another kind.
    ///
    /// Errors: the kinds have no join, or its strides have no counterpart there
    /// ([`LayoutError::Kind`]).
    pub fn joined(&self, with: Kind) -> Result<AnyLayout, LayoutError> {
        const OP: &str = "join";
        match self.kind().join(with) {
            Some(kind) if kind == self.kind() => Ok(self.clone()),
            Some(Kind::Integer) => Ok(self.clone()),
            Some(Kind::Launch) => {
                Ok(AnyLayout::Launch(Box::new(self.launch_in(OP, RefusedOperand::First)?.into_owned())))
            }
            Some(Kind::Coordinate) => {
                Ok(AnyLayout::Coordinate(Box::new(self.coordinate_in(OP, RefusedOperand::First)?.into_owned())))
            }
            Some(Kind::Xor) => Ok(AnyLayout::Xor(self.xor_in(OP, RefusedOperand::First)?.into_owned())),
            Some(Kind::Composed) => {
                Ok(AnyLayout::Composed(Box::new(self.composed_in(OP, RefusedOperand::First)?.into_owned())))
            }
            Some(Kind::LaunchComposed | Kind::CoordinateComposed) => Ok(AnyLayout::LaunchComposed(Box::new(
                self.launch_composed_in(OP, RefusedOperand::First)?.into_owned(),
            ))),
            None => wrong_kind(OP, RefusedOperand::First, "a layout of a kind that the other can be"),
        }
    }
}

super::with_parameters! {
    ///
    /// ```
    /// use tilewright_layout::AnyLayout;
    /// use tilewright_layout::symbolic::Values;
    ///
    /// let layout: AnyLayout = "(M{div=8},8):(8,1)".parse().unwrap();
    /// let mut values = Values::new();
    /// values.set_named("M", 64);
    /// assert_eq!(layout.substitute(&values).unwrap().to_string(), "(64,8):(8,1)");
    /// ```
    AnyLayout: Launch, Coordinate, LaunchComposed, CoordinateComposed; Integer, Xor, Composed
}
