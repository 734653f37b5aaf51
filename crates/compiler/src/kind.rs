//! The kinds of values that are interned.
//!
//! Law: each kind has a pool of its own and a tag of its own. A new kind is one line in the table
//! below; a kind of layout is one more, in [`crate::algebra`], for the operations that it has.

use std::hash::Hash;

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Coordinate, Layout, Profile, Swizzle, Tiler, Tree, Xor};

use crate::pool::Pool;

/// A kind of value that an [`Interner`](crate::Interner) holds: layouts, composed layouts, and what
/// operations on them take.
///
/// Two values are the same when they are equal as structures: `(2,4):(1,2)` and `8:1` are two
/// values, although they are one function.
pub trait Kind: sealed::Pooled + Clone + Eq + Hash + Send + Sync + 'static {}

pub(crate) mod sealed {
    use super::{Pool, Pools};

    /// Where the values of a kind are.
    pub trait Pooled: Sized {
        const TAG: u8;

        fn pool(pools: &Pools) -> &Pool<Self>;
    }
}

macro_rules! kinds {
    ($($tag:literal $field:ident: $kind:ty,)*) => {
        /// The pools of all kinds.
        pub struct Pools {
            $($field: Pool<$kind>,)*
        }

        impl Pools {
            pub(crate) fn new(limit: u32) -> Pools {
                Pools { $($field: Pool::new(limit),)* }
            }

            /// How many values there are, of all kinds.
            pub(crate) fn len(&self) -> u64 {
                [$(self.$field.len(),)*].into_iter().map(u64::from).sum()
            }
        }

        $(
            impl Kind for $kind {}

            impl sealed::Pooled for $kind {
                const TAG: u8 = $tag;

                fn pool(pools: &Pools) -> &Pool<$kind> {
                    &pools.$field
                }
            }
        )*
    };
}

kinds! {
    0 layouts: Layout,
    1 xor_layouts: Layout<Xor>,
    2 coordinate_layouts: Layout<Coordinate>,
    3 symbolic_layouts: Layout<Expr>,
    4 symbolic_coordinate_layouts: Layout<Coordinate<Expr>>,
    5 composed: Composed,
    6 symbolic_composed: Composed<Expr>,
    7 swizzles: Swizzle,
    8 tilers: Tiler,
    9 symbolic_tilers: Tiler<Expr>,
    10 trees: Tree<i64>,
    11 symbolic_trees: Tree<Expr>,
    12 profiles: Profile,
}
