//! The kinds of values that are interned.
//!
//! Law: each kind has a pool of its own. Layouts, tuples and tilers are those of
//! [`tilewright_layout`] whose kind of numbers is known as the program runs, so one pool holds the
//! layouts of all kinds; each value has the least kind that holds it, and so one identity.

use std::hash::Hash;

use tilewright_layout::{AnyLayout, AnyTiler, AnyTree, Profile, Swizzle};

use crate::pool::Pool;

/// A kind of value that an [`Interner`](crate::Interner) holds: layouts, and what operations on
/// them take.
///
/// Two values are the same when they are equal as structures: `(2,4):(1,2)` and `8:1` are two
/// values, although they are one function.
pub trait Interned: sealed::Pooled + Clone + Eq + Hash + Send + Sync + 'static {}

pub(crate) mod sealed {
    use super::{Pool, Pools};

    /// Where the values of a kind are.
    pub trait Pooled: Sized {
        fn pool(pools: &Pools) -> &Pool<Self>;
    }
}

macro_rules! pools {
    ($($field:ident: $kind:ty,)*) => {
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
            impl Interned for $kind {}

            impl sealed::Pooled for $kind {
                fn pool(pools: &Pools) -> &Pool<$kind> {
                    &pools.$field
                }
            }
        )*
    };
}

pools! {
    layouts: AnyLayout,
    tilers: AnyTiler,
    trees: AnyTree,
    profiles: Profile,
    swizzles: Swizzle,
}
