//! Applies functions to the elements of a patch, in a form that the compiler vectorizes.
//!
//! Law: the function is called once with every element of the patch.
//!
//! A row that is contiguous in the written operand is passed as one mutable slice. So the compiler
//! knows that it shares no memory with the other operands, nor with the captures of the function.
//! In such a row, operands that are read are contiguous, or one of them is constant. All other rows
//! are processed element by element.
//!
//! # Invariant
//!
//! The patch has elements of the types of the function, and nobody else uses those that are
//! written.
//!
//! Reason for unsafe code: slices and elements are made of the pointers of a patch.
#![allow(unsafe_code)]
// With one operand, no other operands are read.
#![allow(unused_unsafe)]

use crate::visit::Patch;

macro_rules! rows {
    ($(#[$doc:meta])* $name:ident, $operands:literal, $([$x:ident: $X:ident, $bit:literal]),*) => {
        $(#[$doc])*
        /// Calls `f` for the elements of a patch.
        ///
        /// # Safety
        /// The invariant of this module.
        pub(super) unsafe fn $name<$($X,)* T>(patch: &Patch<'_, $operands>, f: &impl Fn($(&$X,)* &mut T)) {
            /// Processes a row; the operands whose bits are set in `STAY` have one element.
            ///
            /// It is not inlined, because the compiler assumes only of parameters that they share
            /// no memory with others.
            #[inline(never)]
            unsafe fn row<const STAY: usize, $($X,)* T>($($x: *const $X,)* dst: &mut [T], f: &impl Fn($(&$X,)* &mut T)) {
                for (_index, dst) in dst.iter_mut().enumerate() {
                    // SAFETY: the operands have as many elements as the destination, or one, which
                    // the patch says.
                    unsafe { f($(&*$x.add(if STAY & $bit == 0 { _index } else { 0 }),)* dst) };
                }
            }
            /// Processes a short row.
            #[inline(never)]
            unsafe fn few<const COUNT: usize, $($X,)* T>(
                $($x: *const $X,)*
                dst: &mut [T; COUNT],
                f: &impl Fn($(&$X,)* &mut T),
            ) {
                for (_index, dst) in dst.iter_mut().enumerate() {
                    // SAFETY: the operands have as many elements as the destination.
                    unsafe { f($(&*$x.add(_index),)* dst) };
                }
            }
            let stay = patch.contiguous([$(size_of::<$X>(),)* size_of::<T>()]);
            // SAFETY: the invariant of this module: these are elements of the patch, and the rows
            // are as long as it says.
            unsafe {
                macro_rules! rows {
                    ($stay:literal) => {
                        patch.rows(|[$($x,)* dst]| {
                            let dst = std::slice::from_raw_parts_mut(dst.cast::<T>(), patch.count());
                            row::<$stay, $($X,)* T>($($x.cast(),)* dst, f);
                        })
                    };
                }
                macro_rules! few {
                    ($count:literal) => {
                        patch.rows(|[$($x,)* dst]| few($($x.cast::<$X>(),)* &mut *dst.cast::<[T; $count]>(), f))
                    };
                }
                match (stay, patch.count()) {
                    // Runs of these lengths are the vectors that a swizzle leaves contiguous.
                    (Some(0), 4) => few!(4),
                    (Some(0), 8) => few!(8),
                    (Some(0), 16) => few!(16),
                    (Some(0), _) => rows!(0),
                    (Some(1), _) if $operands > 1 => rows!(1),
                    (Some(2), _) if $operands > 2 => rows!(2),
                    (Some(4), _) if $operands > 3 => rows!(4),
                    _ => patch.each(|[$($x,)* dst]| f($(&*$x.cast::<$X>(),)* &mut *dst.cast::<T>())),
                }
            }
        }
    };
}

rows!(
    /// Calls `f` with every element that is written.
    singles, 1,
);
rows!(
    /// Calls `f` with every element that is read, and the one that is written.
    pairs, 2, [a: A, 1]
);
rows!(
    /// Calls `f` with every two elements that are read, and the one that is written.
    triples, 3, [a: A, 1], [b: B, 2]
);
rows!(
    /// Calls `f` with every three elements that are read, and the one that is written.
    quadruples, 4, [a: A, 1], [b: B, 2], [c: C, 4]
);
