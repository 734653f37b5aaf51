//! The operations that an interner memoises.
//!
//! Law: `op(handle of x, handle of y) = handle of op(x, y)`, and where `op(x, y)` is refused, so is
//! the operation on handles, with the same error. The key of an outcome is the operation and the
//! numbers of its operands.
//!
//! An operation is one line here: what it is called, and the method of [`AnyLayout`] that computes
//! it, for every kind of layout that has it.

use tilewright_layout::{AnyLayout, AnyTiler, AnyTree, DivideForm, LayoutError, Profile, Truth};

use crate::handle::Handle;
use crate::interned::Interned;
use crate::interner::{InternError, Interner};
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
    ComposeTiler,
    ComposeWithin,
    Divide,
    Filter,
    FilterZeros,
    Flatten,
    LeftInverse,
    Nullspace,
    Product,
    RakedProduct,
    Recast,
    RightInverse,
    WeakComplement,
    WeakComplementOpen,
}

/// Methods of an interner that take the handle of a layout, or that and another.
macro_rules! memoised {
    ($($(#[$text:meta])* $name:ident($($operand:ty)?) = $operation:ident;)*) => {
        impl Interner {
            $(memoised!(@method $(#[$text])* $name($($operand)?) = $operation);)*
        }
    };
    (@method $(#[$text:meta])* $name:ident() = $operation:ident) => {
        $(#[$text])*
        #[inline]
        pub fn $name(&self, a: Handle<AnyLayout>) -> Result<Handle<AnyLayout>, InternError> {
            self.unary(Operation::$operation, a, [0, 0], AnyLayout::$name)
        }
    };
    (@method $(#[$text:meta])* $name:ident($b:ty) = $operation:ident) => {
        $(#[$text])*
        #[inline]
        pub fn $name(&self, a: Handle<AnyLayout>, b: Handle<$b>) -> Result<Handle<AnyLayout>, InternError> {
            self.binary(Operation::$operation, a, b, 0, AnyLayout::$name)
        }
    };
}

memoised! {
    /// `a o b`: [`AnyLayout::compose`].
    compose(AnyLayout) = Compose;

    /// The part of `a` that the tiler `b` names: [`AnyLayout::compose_tiler`].
    compose_tiler(AnyTiler) = ComposeTiler;

    /// `a o b` where `b` stays inside `a`: [`AnyLayout::compose_within`].
    compose_within(AnyLayout) = ComposeWithin;

    /// The same function with the fewest modes: [`AnyLayout::coalesce`].
    coalesce() = Coalesce;

    /// The same within the modes that `b` names: [`AnyLayout::coalesce_by`].
    coalesce_by(Profile) = CoalesceBy;

    /// The same leaves in a flat tuple: [`AnyLayout::flatten`].
    flatten() = Flatten;

    /// Coalesced, and without modes of stride 0: [`AnyLayout::filter`].
    filter() = Filter;

    /// With every mode of stride 0 reduced to extent 1, in its place: [`AnyLayout::filter_zeros`].
    filter_zeros() = FilterZeros;

    /// The sum of two layouts, index by index: [`AnyLayout::add`].
    add(AnyLayout) = Add;

    /// The indices that go to 0: [`AnyLayout::nullspace`].
    nullspace() = Nullspace;

    /// The layout that leads back from offsets to indices: [`AnyLayout::left_inverse`].
    left_inverse() = LeftInverse;

    /// The largest layout after which the layout is the identity: [`AnyLayout::right_inverse`].
    right_inverse() = RightInverse;

    /// The next copies of the whole, without an end: [`AnyLayout::complement_open`].
    complement_open() = ComplementOpen;

    /// The same where there may be holes: [`AnyLayout::weak_complement_open`].
    weak_complement_open() = WeakComplementOpen;

    /// Mode by mode `(block,copies)`: [`AnyLayout::blocked_product`].
    blocked_product(AnyLayout) = BlockedProduct;

    /// Mode by mode `(copies,block)`: [`AnyLayout::raked_product`].
    raked_product(AnyLayout) = RakedProduct;
}

impl Interner {
    /// Tiles of `a` and their arrangement, in a form: [`AnyLayout::divide`].
    pub fn divide(
        &self,
        form: DivideForm,
        a: Handle<AnyLayout>,
        b: Handle<AnyTiler>,
    ) -> Result<Handle<AnyLayout>, InternError> {
        self.binary(Operation::Divide, a, b, form as u64, |a, b| a.divide(form, b))
    }

    /// Copies of the block `a`, in a form: [`AnyLayout::product`].
    pub fn product(
        &self,
        form: DivideForm,
        a: Handle<AnyLayout>,
        b: Handle<AnyTiler>,
    ) -> Result<Handle<AnyLayout>, InternError> {
        self.binary(Operation::Product, a, b, form as u64, |a, b| a.product(form, b))
    }

    /// What fills the holes of `a` up to `target`: [`AnyLayout::complement`].
    pub fn complement(&self, a: Handle<AnyLayout>, target: &AnyTree) -> Result<Handle<AnyLayout>, InternError> {
        self.unary(Operation::Complement, a, self.words(target)?, |a| a.complement(target))
    }

    /// What fills the holes of `a` up to `target` as far as copies do:
    /// [`AnyLayout::weak_complement`].
    pub fn weak_complement(&self, a: Handle<AnyLayout>, target: &AnyTree) -> Result<Handle<AnyLayout>, InternError> {
        self.unary(Operation::WeakComplement, a, self.words(target)?, |a| a.weak_complement(target))
    }

    /// The layout of elements of `new_bits` over the memory of elements of `old_bits`:
    /// [`AnyLayout::recast`].
    pub fn recast(&self, a: Handle<AnyLayout>, new_bits: i64, old_bits: i64) -> Result<Handle<AnyLayout>, InternError> {
        let bits = [new_bits, old_bits].map(|bits| bits as u64);
        self.unary(Operation::Recast, a, bits, |a| a.recast(new_bits, old_bits))
    }

    /// Whether two layouts are the same function of an index: [`AnyLayout::same_function`]. Where
    /// their coalesced forms have one handle, they are.
    ///
    /// Errors: as [`AnyLayout::same_function`]; [`InternError::Foreign`], [`InternError::Full`].
    ///
    /// ```
    /// use tilewright_compiler::Interner;
    /// use tilewright_layout::{AnyLayout, Truth};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let interner = Interner::new();
    /// let a = interner.intern(&"(2,4):(1,2)".parse::<AnyLayout>()?)?;
    /// let b = interner.intern(&"8:1".parse::<AnyLayout>()?)?;
    /// assert!(a != b && interner.equivalent(a, b)? == Truth::Proved);
    /// # Ok(())
    /// # }
    /// ```
    pub fn equivalent(&self, a: Handle<AnyLayout>, b: Handle<AnyLayout>) -> Result<Truth, InternError> {
        let (first, second) = (self.get(a)?, self.get(b)?);
        let short = |handle| match self.coalesce(handle) {
            // The other way may have an answer.
            Err(InternError::Refused(_)) => Ok(None),
            short => short.map(Some),
        };
        match (short(a)?, short(b)?) {
            (Some(a), Some(b)) if a == b => Ok(Truth::Proved),
            _ => Ok(first.same_function(second)?),
        }
    }

    /// What stands for the target of a complement in a key: itself, or else the number of its
    /// tuple.
    fn words(&self, target: &AnyTree) -> Result<[u64; 2], InternError> {
        if let AnyTree::Integer(tree) = target
            && let (true, [number]) = (tree.is_leaf(), tree.leaves())
        {
            return Ok([*number as u64, 0]);
        }
        Ok([u64::from(self.intern(target)?.index()), 1])
    }

    #[inline]
    fn unary(
        &self,
        operation: Operation,
        a: Handle<AnyLayout>,
        [second, third]: [u64; 2],
        compute: impl FnOnce(&AnyLayout) -> Result<AnyLayout, LayoutError>,
    ) -> Result<Handle<AnyLayout>, InternError> {
        let key = Key::new(operation, self.index(a)?, second, third);
        self.remember(key, || Ok(compute(self.get(a)?)))
    }

    #[inline]
    fn binary<B: Interned>(
        &self,
        operation: Operation,
        a: Handle<AnyLayout>,
        b: Handle<B>,
        third: u64,
        compute: impl FnOnce(&AnyLayout, &B) -> Result<AnyLayout, LayoutError>,
    ) -> Result<Handle<AnyLayout>, InternError> {
        let (first, second) = (self.index(a)?, u64::from(self.index(b)?));
        let key = Key::new(operation, first, second, third);
        self.remember(key, || Ok(compute(self.get(a)?, self.get(b)?)))
    }
}
