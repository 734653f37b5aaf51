//! The operations that an interner memoises.
//!
//! Law: `op(handle of x, handle of y) = handle of op(x, y)`, and where `op(x, y)` is refused, so is
//! the operation on handles, with the same error. The key of an outcome is the operation, the kinds
//! of its operands and their numbers.
//!
//! An operation is one line here, for all kinds of layouts that have it ([`crate::algebra`]): what
//! it is called, and what computes it.

use tilewright_layout::{Composed, Extent, Layout, LayoutError, Profile, Stride};

use crate::algebra::sealed::Operand;
use crate::algebra::{AnyLayout, Complemented, Copies, Invertible, Recast};
use crate::handle::Handle;
use crate::interner::{InternError, Interner};
use crate::kind::Kind;
use crate::memo::Key;

/// Which operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Operation {
    Add,
    BlockedProduct,
    Coalesce,
    CoalesceBy,
    Complement,
    ComplementOpen,
    Compose,
    ComposeComposed,
    ComposeTiler,
    ComposeWithin,
    Filter,
    FilterZeros,
    FlatDivide,
    FlatProduct,
    Flatten,
    LeftInverse,
    LogicalDivide,
    LogicalProduct,
    Nullspace,
    RakedProduct,
    Recast,
    RightInverse,
    TiledDivide,
    TiledProduct,
    WeakComplement,
    WeakComplementOpen,
    ZippedDivide,
    ZippedProduct,
}

/// Methods of an interner that take one handle, or two.
macro_rules! memoised {
    ($($(#[$text:meta])* [$($generics:tt)*] $name:ident($($operand:ty),+) -> $result:ty = $operation:ident, $method:path;)*) => {
        impl Interner {
            $(memoised!(@method $(#[$text])* [$($generics)*] $name($($operand),+) -> $result = $operation, $method);)*
        }
    };
    (@method $(#[$text:meta])* [$kind:ident: $bound:path $(, $($where:tt)+)?] $name:ident($a:ty) -> $result:ty = $operation:ident, $method:path) => {
        $(#[$text])*
        #[inline]
        pub fn $name<$kind: $bound>(&self, a: Handle<$a>) -> Result<Handle<$result>, InternError> $(where $($where)+)? {
            self.unary(Operation::$operation, a, [0, 0], $method)
        }
    };
    (@method $(#[$text:meta])* [$kind:ident: $bound:path $(, $($where:tt)+)?] $name:ident($a:ty, $b:ty) -> $result:ty = $operation:ident, $method:path) => {
        $(#[$text])*
        #[inline]
        pub fn $name<$kind: $bound>(&self, a: Handle<$a>, b: Handle<$b>) -> Result<Handle<$result>, InternError>
        $(where $($where)+)?
        {
            self.binary(Operation::$operation, a, b, $method)
        }
    };
}

memoised! {
    /// `a o b`: [`Layout::compose`].
    [A: AnyLayout] compose(A, A::Index) -> A = Compose, A::compose;

    /// The part of `a` that the tiler `b` names: [`Layout::compose_tiler`].
    [A: AnyLayout] compose_tiler(A, A::Tiler) -> A = ComposeTiler, A::compose_tiler;

    /// `a o b` where `b` stays inside `a`: [`Layout::compose_within`].
    [D: Stride, Layout<D>: Kind, Layout<D::Extent>: Kind]
    compose_within(Layout<D>, Layout<D::Extent>) -> Layout<D> = ComposeWithin, Layout::compose_within;

    /// The same function with the fewest modes: [`Layout::coalesce`].
    [A: AnyLayout] coalesce(A) -> A = Coalesce, A::coalesce;

    /// The same within the modes that `b` names: [`Layout::coalesce_by`].
    [A: AnyLayout] coalesce_by(A, Profile) -> A = CoalesceBy, A::coalesce_by;

    /// The same leaves in a flat tuple: [`Layout::flatten`].
    [A: AnyLayout] flatten(A) -> A = Flatten, A::flatten;

    /// Coalesced, and without modes of stride 0: [`Layout::filter`].
    [A: AnyLayout] filter(A) -> A = Filter, A::filter;

    /// The sum of two layouts, index by index: [`Layout::add`].
    [D: Stride, Layout<D>: Kind] add(Layout<D>, Layout<D>) -> Layout<D> = Add, Layout::add;

    /// The indices that go to 0: [`Layout::nullspace`].
    [A: AnyLayout] nullspace(A) -> A::Index = Nullspace, A::nullspace;

    /// `a o b` for maps that are composed already: [`Composed::compose_composed`].
    [N: Extent, Composed<N>: Kind]
    compose_composed(Composed<N>, Composed<N>) -> Composed<N> = ComposeComposed, Composed::compose_composed;

    /// The layout that leads back from offsets to indices: [`Layout::left_inverse`].
    [A: Invertible] left_inverse(A) -> A::Inverse = LeftInverse, A::left_inverse;

    /// The largest layout after which the layout is the identity: [`Layout::right_inverse`].
    [A: Invertible] right_inverse(A) -> A::Inverse = RightInverse, A::right_inverse;

    /// The next copies of the whole, without an end: [`Layout::complement_open`].
    [A: Complemented] complement_open(A) -> A::Complement = ComplementOpen, A::complement_open;

    /// The same where there may be holes: [`Layout::weak_complement_open`].
    [A: Complemented] weak_complement_open(A) -> A::Complement = WeakComplementOpen, A::weak_complement_open;

    /// `((tile,rest),..)`: [`Layout::logical_divide`].
    [A: AnyLayout] logical_divide(A, A::Tiler) -> A = LogicalDivide, A::logical_divide;

    /// `((tiles),(rests))`: [`Layout::zipped_divide`].
    [A: AnyLayout] zipped_divide(A, A::Tiler) -> A = ZippedDivide, A::zipped_divide;

    /// `((tiles),rest,..)`: [`Layout::tiled_divide`].
    [A: AnyLayout] tiled_divide(A, A::Tiler) -> A = TiledDivide, A::tiled_divide;

    /// `(tile,..,rest,..)`: [`Layout::flat_divide`].
    [A: AnyLayout] flat_divide(A, A::Tiler) -> A = FlatDivide, A::flat_divide;

    /// `((block,copies),..)`: [`Layout::logical_product`].
    [A: Copies] logical_product(A, A::Tiler) -> A = LogicalProduct, A::logical_product;

    /// `((blocks),(copies))`: [`Layout::zipped_product`].
    [A: Copies] zipped_product(A, A::Tiler) -> A = ZippedProduct, A::zipped_product;

    /// `((blocks),copies,..)`: [`Layout::tiled_product`].
    [A: Copies] tiled_product(A, A::Tiler) -> A = TiledProduct, A::tiled_product;

    /// `(block,..,copies,..)`: [`Layout::flat_product`].
    [A: Copies] flat_product(A, A::Tiler) -> A = FlatProduct, A::flat_product;

    /// Mode by mode `(block,copies)`: [`Layout::blocked_product`].
    [A: Copies] blocked_product(A, A::Index) -> A = BlockedProduct, A::blocked_product;

    /// Mode by mode `(copies,block)`: [`Layout::raked_product`].
    [A: Copies] raked_product(A, A::Index) -> A = RakedProduct, A::raked_product;
}

impl Interner {
    /// What fills the holes of `a` up to `target`: [`Layout::complement`].
    pub fn complement<A: Complemented>(
        &self,
        a: Handle<A>,
        target: &A::Target,
    ) -> Result<Handle<A::Complement>, InternError> {
        self.unary(Operation::Complement, a, target.words(self)?, |a| a.complement(target))
    }

    /// What fills the holes of `a` up to `target` as far as copies do: [`Layout::weak_complement`].
    pub fn weak_complement<A: Complemented>(
        &self,
        a: Handle<A>,
        target: &A::Target,
    ) -> Result<Handle<A::Complement>, InternError> {
        self.unary(Operation::WeakComplement, a, target.words(self)?, |a| a.weak_complement(target))
    }

    /// The layout of elements of `new_bits` over the memory of elements of `old_bits`:
    /// [`Layout::recast`].
    pub fn recast<A: Recast>(&self, a: Handle<A>, new_bits: i64, old_bits: i64) -> Result<Handle<A>, InternError> {
        self.unary(Operation::Recast, a, [new_bits, old_bits], |a| a.recast(new_bits, old_bits))
    }

    /// `a` with every mode of stride 0 reduced to extent 1, in its place: [`Layout::filter_zeros`].
    pub fn filter_zeros<D: Stride>(&self, a: Handle<Layout<D>>) -> Result<Handle<Layout<D>>, InternError>
    where
        Layout<D>: Kind,
    {
        self.unary(Operation::FilterZeros, a, [0, 0], |a| Ok(a.filter_zeros()))
    }

    /// Whether two layouts are the same function of an index: [`Layout::equivalent`], by comparing
    /// the handles of their coalesced forms.
    ///
    /// ```
    /// use tilewright_compiler::Interner;
    /// use tilewright_layout::Layout;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let interner = Interner::new();
    /// let a = interner.intern(&"(2,4):(1,2)".parse::<Layout>()?)?;
    /// let b = interner.intern(&"8:1".parse::<Layout>()?)?;
    /// assert!(a != b && interner.equivalent(a, b)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn equivalent<D: Stride>(&self, a: Handle<Layout<D>>, b: Handle<Layout<D>>) -> Result<bool, InternError>
    where
        Layout<D>: AnyLayout,
    {
        let (short_a, short_b) = (self.coalesce(a)?, self.coalesce(b)?);
        // The empty layout coalesces to itself, and is the function of 1:0.
        let single = |handle: Handle<Layout<D>>| Ok::<bool, InternError>(self.get(handle)?.size().is_one().proved());
        Ok(short_a == short_b || (single(short_a)? && single(short_b)?))
    }

    #[inline]
    fn unary<A: Kind, R: Kind>(
        &self,
        operation: Operation,
        a: Handle<A>,
        numbers: [i64; 2],
        compute: impl FnOnce(&A) -> Result<R, LayoutError>,
    ) -> Result<Handle<R>, InternError> {
        let [second, third] = numbers.map(|number| number as u64);
        let key = Key::new(operation, [A::TAG, 0], self.index(a)?, second, third);
        self.remember(key, || Ok(compute(self.get(a)?)))
    }

    #[inline]
    fn binary<A: Kind, B: Kind, R: Kind>(
        &self,
        operation: Operation,
        a: Handle<A>,
        b: Handle<B>,
        compute: impl FnOnce(&A, &B) -> Result<R, LayoutError>,
    ) -> Result<Handle<R>, InternError> {
        let (first, second) = (self.index(a)?, u64::from(self.index(b)?));
        let key = Key::new(operation, [A::TAG, B::TAG], first, second, 0);
        self.remember(key, || Ok(compute(self.get(a)?, self.get(b)?)))
    }
}
