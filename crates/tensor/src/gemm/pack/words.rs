//! How numbers become the words that lanes of an instruction multiply.
//!
//! **Law.** A word stands for [`Packing::GROUP`] numbers that follow one another along K; what is
//! missing at the end of a row is zero. The product of a word of A and one of B, as the instruction
//! computes it, is the sum of the products of their numbers. With [`Offset`] it is more, and
//! [`write_corrections`] says by how much.
//!
//! Reason for unsafe code: corrections are written to packed memory, which Rust knows by its
//! address.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use half::{bf16, f16};

/// How numbers become words.
pub(in crate::gemm) trait Packing {
    /// A number of the operand.
    type Source: Copy + Default;
    /// What a lane of the micro-kernel reads.
    type Word: Copy + Default;
    /// The numbers in a word.
    const GROUP: usize;
    /// Whether a word is its numbers, byte for byte.
    const SAME: bool;
    /// The word of the first [`Packing::GROUP`] of four numbers.
    fn word(numbers: [Self::Source; 4]) -> Self::Word;
}

/// Numbers as they are.
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

/// Numbers as wider ones, which hold them exactly: those of 16 bits in single precision, bytes in
/// 32 bits.
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
    /// Without a branch, so that a loop over it becomes a loop over vectors. The magnitude, shifted
    /// to where single precision has it, is too small by the difference of the exponents' biases,
    /// 2^112. Multiplying by that is exact, also for subnormal numbers.
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

/// Two numbers of 16 bits in a word.
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

/// Two bytes in a word, widened to 16 bits with their signs.
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

/// Four bytes in a word, each with 128 added, and so unsigned: the form that one operand of the dot
/// product of bytes has.
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

/// Writes below a slice of words of four signed bytes -128 times the sum of the bytes of each
/// column, which corrects their products with bytes that are [`Offset`] by 128.
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
