//! How numbers become the words that lanes of an instruction multiply.
//!
//! **Law.** A word holds [`Packing::GROUP`] numbers that are consecutive along K; missing numbers
//! at the end of a row are zero. The product of a word of A and one of B, as the instruction
//! computes it, is the sum of the products of their numbers. With [`Offset`] it is larger, and
//! [`write_corrections`] compensates for the difference.
//!
//! Reason for unsafe code: corrections are written to packed memory, which Rust knows by its
//! address.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use half::{bf16, f16};

/// How numbers are packed into words.
pub(in crate::gemm) trait Packing {
    /// A number of the operand.
    type Source: Copy + Default;
    /// A word: what a lane of the micro-kernel reads.
    type Word: Copy + Default;
    /// The number of numbers in a word.
    const GROUP: usize;
    /// Whether the bytes of a word are those of its numbers.
    const SAME: bool;
    /// The word made of the first [`Packing::GROUP`] of four numbers.
    fn word(numbers: [Self::Source; 4]) -> Self::Word;
}

/// Words that are the numbers themselves.
pub(in crate::gemm) struct Same<T>(PhantomData<T>);

impl<T: Copy + Default> Packing for Same<T> {
    type Source = T;
    type Word = T;
    const GROUP: usize = 1;
    const SAME: bool = true;
    #[inline(always)]
    fn word([number, ..]: [T; 4]) -> T {
        number
    }
}

/// Words that are wider numbers with the same value: `f32` for 16-bit floats, 32 bits for bytes.
pub(in crate::gemm) struct Widened<T>(PhantomData<T>);

impl Packing for Widened<bf16> {
    type Source = bf16;
    type Word = f32;
    const GROUP: usize = 1;
    const SAME: bool = false;
    #[inline(always)]
    fn word([number, ..]: [bf16; 4]) -> f32 {
        f32::from_bits(u32::from(number.to_bits()) << 16)
    }
}

impl Packing for Widened<f16> {
    type Source = f16;
    type Word = f32;
    const GROUP: usize = 1;
    const SAME: bool = false;
    /// Has no branch, so that a loop over it is vectorized. The magnitude is shifted to its
    /// position in single precision. It is then too small by the difference of the exponent biases,
    /// a factor of 2^112. Multiplying by that is exact, also for subnormal numbers.
    #[inline(always)]
    fn word([number, ..]: [f16; 4]) -> f32 {
        let bits = u32::from(number.to_bits());
        let magnitude = f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
        // Infinities and NaN have the largest exponent in both formats.
        let special = if magnitude >= 65536.0 { 0xff << 23 } else { 0 };
        f32::from_bits(magnitude.to_bits() | special | (bits & 0x8000) << 16)
    }
}

impl Packing for Widened<i8> {
    type Source = i8;
    type Word = i32;
    const GROUP: usize = 1;
    const SAME: bool = false;
    #[inline(always)]
    fn word([number, ..]: [i8; 4]) -> i32 {
        i32::from(number)
    }
}

/// Two 16-bit numbers in a word.
pub(in crate::gemm) struct Pairs;

impl Packing for Pairs {
    type Source = bf16;
    type Word = u32;
    const GROUP: usize = 2;
    const SAME: bool = true;
    #[inline(always)]
    fn word([low, high, ..]: [bf16; 4]) -> u32 {
        u32::from(low.to_bits()) | u32::from(high.to_bits()) << 16
    }
}

/// Two bytes in a word, sign-extended to 16 bits.
pub(in crate::gemm) struct WidenedPairs;

impl Packing for WidenedPairs {
    type Source = i8;
    type Word = u32;
    const GROUP: usize = 2;
    const SAME: bool = false;
    #[inline(always)]
    fn word([low, high, ..]: [i8; 4]) -> u32 {
        (i32::from(low) & 0xffff | i32::from(high) << 16) as u32
    }
}

/// Four bytes in a word, with 128 added to each to make it unsigned: one operand of the dot product
/// of bytes must be unsigned.
pub(in crate::gemm) struct Offset;

impl Packing for Offset {
    type Source = i8;
    type Word = u32;
    const GROUP: usize = 4;
    const SAME: bool = false;
    #[inline(always)]
    fn word(numbers: [i8; 4]) -> u32 {
        Signed::word(numbers) ^ 0x8080_8080
    }
}

/// Four bytes in a word.
pub(in crate::gemm) struct Signed;

impl Packing for Signed {
    type Source = i8;
    type Word = u32;
    const GROUP: usize = 4;
    const SAME: bool = true;
    #[inline(always)]
    fn word([a, b, c, d]: [i8; 4]) -> u32 {
        u32::from_le_bytes([a as u8, b as u8, c as u8, d as u8])
    }
}

/// Writes -128 times the sum of the bytes of each column below a slice of words of four signed
/// bytes. That corrects their products with bytes to which [`Offset`] adds 128.
///
/// # Safety
///
/// The slice has `words` rows of `width` words, and room for one more.
pub(in crate::gemm) unsafe fn write_corrections(to: *mut u32, width: usize, words: usize) {
    for r in 0..width {
        let mut sum = 0_i32;
        for t in 0..words {
            // SAFETY: the slice has been packed, so that this word is written.
            let bytes = unsafe { *to.add(t * width + r) }.to_le_bytes();
            sum = bytes.iter().fold(sum, |sum, byte| sum.wrapping_add(i32::from(*byte as i8)));
        }
        // SAFETY: the caller has room for one more row below the slice.
        unsafe { to.add(words * width + r).write(sum.wrapping_mul(-128) as u32) };
    }
}
