//! Which kinds of layouts have which operations.
//!
//! Law: a method here is the one of the same name on the layout; nothing is computed in another
//! way. A kind of layout is one line in the table of each family of operations that it has.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Coordinate, Layout, LayoutError, Profile, Tiler, Tree, Xor};

use crate::kind::Kind;

/// A kind of layout: what all of them have in common.
pub trait AnyLayout: Kind {
    /// The layouts that give indices of this one.
    type Index: Kind;

    /// What this one is tiled by.
    type Tiler: Kind;

    /// `self o b`.
    fn compose(&self, b: &Self::Index) -> Result<Self, LayoutError>;

    /// The part that a tiler names.
    fn compose_tiler(&self, tiler: &Self::Tiler) -> Result<Self, LayoutError>;

    /// The same function with the fewest modes.
    fn coalesce(&self) -> Result<Self, LayoutError>;

    /// The same within the modes that a profile names.
    fn coalesce_by(&self, profile: &Profile) -> Result<Self, LayoutError>;

    /// Coalesced, and without modes of stride 0.
    fn filter(&self) -> Result<Self, LayoutError>;

    /// The indices that change nothing.
    fn nullspace(&self) -> Result<Self::Index, LayoutError>;

    /// The same leaves in a flat tuple.
    fn flatten(&self) -> Result<Self, LayoutError>;

    /// `((tile,rest),..)`, each mode in its place.
    fn logical_divide(&self, tiler: &Self::Tiler) -> Result<Self, LayoutError>;

    /// `((tiles),(rests))`.
    fn zipped_divide(&self, tiler: &Self::Tiler) -> Result<Self, LayoutError>;

    /// `((tiles),rest,..)`.
    fn tiled_divide(&self, tiler: &Self::Tiler) -> Result<Self, LayoutError>;

    /// `(tile,..,rest,..)`.
    fn flat_divide(&self, tiler: &Self::Tiler) -> Result<Self, LayoutError>;
}

/// A kind of layout of which there can be copies side by side.
pub trait Copies: AnyLayout {
    /// `((block,copies),..)`, each mode in its place.
    fn logical_product(&self, tiler: &Self::Tiler) -> Result<Self, LayoutError>;

    /// `((blocks),(copies))`.
    fn zipped_product(&self, tiler: &Self::Tiler) -> Result<Self, LayoutError>;

    /// `((blocks),copies,..)`.
    fn tiled_product(&self, tiler: &Self::Tiler) -> Result<Self, LayoutError>;

    /// `(block,..,copies,..)`.
    fn flat_product(&self, tiler: &Self::Tiler) -> Result<Self, LayoutError>;

    /// Mode by mode `(block,copies)`: blocks stay together.
    fn blocked_product(&self, tiler: &Self::Index) -> Result<Self, LayoutError>;

    /// Mode by mode `(copies,block)`: copies interleave.
    fn raked_product(&self, tiler: &Self::Index) -> Result<Self, LayoutError>;
}

/// A kind of layout with inverses.
pub trait Invertible: AnyLayout {
    /// The layouts that lead back.
    type Inverse: Kind;

    /// Leads back from offsets to indices.
    fn left_inverse(&self) -> Result<Self::Inverse, LayoutError>;

    /// The largest layout after which this one is the identity.
    fn right_inverse(&self) -> Result<Self::Inverse, LayoutError>;
}

/// A kind of layout with complements.
pub trait Complemented: AnyLayout {
    /// What a complement fills: a number of offsets, or a shape.
    type Target: sealed::Operand;

    /// The layouts of what is filled.
    type Complement: Kind;

    /// What fills the holes up to the target.
    fn complement(&self, target: &Self::Target) -> Result<Self::Complement, LayoutError>;

    /// The next copies of the whole, without an end.
    fn complement_open(&self) -> Result<Self::Complement, LayoutError>;

    /// What fills the holes up to the target as far as copies do.
    fn weak_complement(&self, target: &Self::Target) -> Result<Self::Complement, LayoutError>;

    /// The next copies of the whole, without an end, where there may be holes.
    fn weak_complement_open(&self) -> Result<Self::Complement, LayoutError>;
}

/// A kind of layout that can be read as one of elements of another width.
pub trait Recast: AnyLayout {
    /// The layout of elements of `new_bits` over the memory of elements of `old_bits`.
    fn recast(&self, new_bits: i64, old_bits: i64) -> Result<Self, LayoutError>;
}

pub(crate) mod sealed {
    use tilewright_layout::symbolic::Expr;
    use tilewright_layout::{Extent, Tree};

    use crate::interner::{InternError, Interner};
    use crate::kind::Kind;

    /// An operand that is no handle.
    pub trait Operand {
        /// What stands for it in a key.
        fn words(&self, interner: &Interner) -> Result<[i64; 2], InternError>;
    }

    impl Operand for i64 {
        #[inline]
        fn words(&self, _: &Interner) -> Result<[i64; 2], InternError> {
            Ok([*self, 0])
        }
    }

    impl<N: Extent> Operand for Tree<N>
    where
        Tree<N>: Kind,
    {
        fn words(&self, interner: &Interner) -> Result<[i64; 2], InternError> {
            Ok([i64::from(interner.intern(self)?.index()), 0])
        }
    }

    impl Operand for Expr {
        fn words(&self, interner: &Interner) -> Result<[i64; 2], InternError> {
            match self.known() {
                Some(number) => Ok([number, 0]),
                None => Ok([i64::from(interner.intern(&Tree::leaf(self.clone()))?.index()), 1]),
            }
        }
    }
}

/// The methods of a table's kind, by those of the layout.
macro_rules! forward {
    ($kind:ty => $result:ty: $($method:ident($($name:ident: $operand:ty)?))*) => {
        $(
            #[inline]
            fn $method(&self $(, $name: &$operand)?) -> Result<$result, LayoutError> {
                <$kind>::$method(self $(, $name)?)
            }
        )*
    };
}

macro_rules! layouts {
    ($($kind:ty, index $index:ty, tiler $tiler:ty;)*) => {
        $(
            impl AnyLayout for $kind {
                type Index = $index;
                type Tiler = $tiler;

                forward!($kind => $index: nullspace());
                forward!($kind => $kind: compose(b: $index) compose_tiler(tiler: $tiler) coalesce() coalesce_by(profile: Profile)
                    filter() flatten() logical_divide(tiler: $tiler) zipped_divide(tiler: $tiler) tiled_divide(tiler: $tiler)
                    flat_divide(tiler: $tiler));
            }
        )*
    };
}

macro_rules! copies {
    ($($kind:ty, index $index:ty, tiler $tiler:ty;)*) => {
        $(
            impl Copies for $kind {
                forward!($kind => $kind: logical_product(tiler: $tiler) zipped_product(tiler: $tiler)
                    tiled_product(tiler: $tiler) flat_product(tiler: $tiler) blocked_product(tiler: $index)
                    raked_product(tiler: $index));
            }
        )*
    };
}

macro_rules! invertible {
    ($($kind:ty, inverse $inverse:ty;)*) => {
        $(
            impl Invertible for $kind {
                type Inverse = $inverse;

                forward!($kind => $inverse: left_inverse() right_inverse());
            }
        )*
    };
}

macro_rules! complemented {
    ($($kind:ty, target $target:ty, complement $complement:ty;)*) => {
        $(
            impl Complemented for $kind {
                type Target = $target;
                type Complement = $complement;

                forward!($kind => $complement: complement(target: $target) complement_open() weak_complement(target: $target)
                    weak_complement_open());
            }
        )*
    };
}

macro_rules! recast {
    ($($kind:ty;)*) => {
        $(
            impl Recast for $kind {
                #[inline]
                fn recast(&self, new_bits: i64, old_bits: i64) -> Result<$kind, LayoutError> {
                    <$kind>::recast(self, new_bits, old_bits)
                }
            }
        )*
    };
}

layouts! {
    Layout, index Layout, tiler Tiler;
    Layout<Xor>, index Layout, tiler Tiler;
    Layout<Coordinate>, index Layout, tiler Tiler;
    Layout<Expr>, index Layout<Expr>, tiler Tiler<Expr>;
    Layout<Coordinate<Expr>>, index Layout<Expr>, tiler Tiler<Expr>;
    Composed, index Layout, tiler Tiler;
    Composed<Expr>, index Layout<Expr>, tiler Tiler<Expr>;
}

copies! {
    Layout, index Layout, tiler Tiler;
    Layout<Xor>, index Layout, tiler Tiler;
    Layout<Coordinate>, index Layout, tiler Tiler;
    Layout<Expr>, index Layout<Expr>, tiler Tiler<Expr>;
    Layout<Coordinate<Expr>>, index Layout<Expr>, tiler Tiler<Expr>;
    Composed, index Layout, tiler Tiler;
    Composed<Expr>, index Layout<Expr>, tiler Tiler<Expr>;
}

invertible! {
    Layout, inverse Layout;
    Layout<Xor>, inverse Layout<Xor>;
    Layout<Coordinate>, inverse Layout;
    Layout<Expr>, inverse Layout<Expr>;
    Layout<Coordinate<Expr>>, inverse Layout<Expr>;
    Composed, inverse Composed;
}

complemented! {
    Layout, target i64, complement Layout;
    Layout<Xor>, target i64, complement Layout<Xor>;
    Layout<Coordinate>, target Tree<i64>, complement Layout<Coordinate>;
    Layout<Expr>, target Expr, complement Layout<Expr>;
    Layout<Coordinate<Expr>>, target Tree<Expr>, complement Layout<Coordinate<Expr>>;
    Composed, target i64, complement Layout;
}

recast! {
    Layout;
    Composed;
}
