//! Element types for which a copy can replace the element.
//!
//! Law: a type is plain only if it is in a list of number types. All its bytes are initialised, and
//! nothing can be changed through a shared reference to it.

use std::any::TypeId;

/// Whether a type is one of the plain number types. None of them has a lifetime.
pub(super) fn plain<T>() -> bool {
    let this = typeid::of::<T>();
    macro_rules! is {
        ($($number:ty),*) => { [$(TypeId::of::<$number>()),*].contains(&this) };
    }
    is!(f32, f64, half::f16, half::bf16, i8, i16, i32, i64, u8, u16, u32, u64, isize, usize, bool, char)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_plain() {
        assert!(plain::<f32>() && plain::<half::f16>() && plain::<u8>() && plain::<bool>());
    }

    #[test]
    fn what_can_change_or_has_gaps_is_not() {
        fn of<T>(_: T) -> bool {
            plain::<T>()
        }
        let number = 1_u32;
        assert!(
            !plain::<std::sync::atomic::AtomicU32>() && !plain::<(u8, u16)>() && !plain::<std::mem::MaybeUninit<u32>>()
        );
        assert!(!of(&number) && !of(std::cell::Cell::new(&number)));
    }
}
