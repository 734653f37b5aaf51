//! Packing: a copy of a block of an operand to where the micro-kernels read it, side by side.
//!
//! **Law.** A panel of `width` rows and `k` numbers a row becomes words. With `g` numbers to a word, word `r + width * t` holds the numbers
//! `g * t .. g * (t + 1)` of row `r`: the layout `(width,(g,k/g)):(g,(1,g*width))` in numbers. What lies beyond the rows and beyond `k` is zero.
//!
//! A block is given by the offsets of its rows and those of its steps along K, whose sums are where its numbers lie: any integer layout is
//! of that kind, however its modes are nested. Where rows are neighbours in memory they are copied as vectors, where steps are,
//! squares of eight by eight words are transposed in registers, elsewhere numbers are gathered.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use half::{bf16, f16};

/// How numbers become words.
pub(super) trait Packing {
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
pub(super) struct Same<T>(PhantomData<T>);

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

/// Numbers as wider ones, which hold them exactly: those of 16 bits in single precision, bytes in 32 bits.
pub(super) struct Widened<T>(PhantomData<T>);

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
    /// Without a branch, so that a loop over it is a loop over vectors. The magnitude, moved to where single precision has it, is too
    /// small by the difference of the exponents' biases, 2^112; so are subnormal numbers, for which the product is as exact.
    #[inline(always)]
    fn word([number, ..]: [f16; 4]) -> f32 {
        let bits = u32::from(number.to_bits());
        let magnitude = f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
        // Infinities and what is no number have the largest exponent, here as there.
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
pub(super) struct Pairs;

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
pub(super) struct WidenedPairs;

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

/// Four bytes in a word, each 128 more than it was and so without a sign, as one side of the dot product of bytes wants them.
pub(super) struct Raised;

impl Packing for Raised {
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
pub(super) struct Signed;

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

/// Packs a panel: from the element at offset 0, the offsets of rows and of steps, the width of the panel in words, to its first word.
///
/// *Invariant*, which the caller upholds: every sum of an offset of a row and one of a step is that of a number that may be read, there are at
/// most `width` rows, and there is room for `width * ceil(steps / GROUP)` words.
pub(super) type Pack<S, W> = unsafe fn(*const S, &[isize], &[isize], usize, *mut W);

/// Rows that are transposed at once.
const SQUARE: usize = 8;

/// The words of eight rows, eight of each, so that the words of one step lie side by side.
type Turn<W> = unsafe fn(&[*const W; SQUARE], *mut W, usize);

/// Packs with what every machine has.
pub(super) unsafe fn portable<P: Packing>(
    from: *const P::Source,
    rows: &[isize],
    steps: &[isize],
    width: usize,
    to: *mut P::Word,
) {
    // SAFETY: the caller's.
    unsafe { panel::<P>(from, rows, steps, width, to, turn_portable) }
}

/// Packs with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn avx2<P: Packing>(
    from: *const P::Source,
    rows: &[isize],
    steps: &[isize],
    width: usize,
    to: *mut P::Word,
) {
    // SAFETY: the caller's.
    unsafe { panel::<P>(from, rows, steps, width, to, vector::turn::<P::Word>) }
}

/// Packs with AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn avx512<P: Packing>(
    from: *const P::Source,
    rows: &[isize],
    steps: &[isize],
    width: usize,
    to: *mut P::Word,
) {
    // SAFETY: the caller's.
    unsafe { panel::<P>(from, rows, steps, width, to, vector::turn::<P::Word>) }
}

/// How many of the offsets, from the first on, go up by one.
#[inline(always)]
fn run(offsets: &[isize]) -> usize {
    1 + offsets.windows(2).take_while(|pair| matches!(pair, [a, b] if b.wrapping_sub(*a) == 1)).count()
}

/// Whether all of the offsets go up by one.
#[inline(always)]
fn is_run(offsets: &[isize]) -> bool {
    offsets.windows(2).fold(true, |all, pair| all & matches!(pair, [a, b] if b.wrapping_sub(*a) == 1))
}

#[inline(always)]
unsafe fn panel<P: Packing>(
    from: *const P::Source,
    rows: &[isize],
    steps: &[isize],
    width: usize,
    to: *mut P::Word,
    turn: Turn<P::Word>,
) {
    let mut done = 0;
    // SAFETY: rows and steps are those of the panel, and words go to places `row + width * step`, for rows below the width.
    unsafe {
        while let Some(rest @ [first, ..]) = rows.get(done..) {
            let length = if is_run(rest) { rest.len() } else { run(rest) };
            let place = to.add(done);
            if length >= SQUARE || length == rows.len() {
                copied::<P>(from.offset(*first), length, steps, width, place);
                done += length;
            } else {
                let square = rest.get(..SQUARE).unwrap_or(rest);
                turned::<P>(from, square, steps, width, place, turn);
                done += square.len();
            }
        }
        let words = steps.len().div_ceil(P::GROUP);
        if rows.len() < width {
            for t in 0..words {
                for r in rows.len()..width {
                    to.add(t * width + r).write(P::Word::default());
                }
            }
        }
    }
}

/// The words of neighbouring rows.
#[inline(always)]
unsafe fn copied<P: Packing>(from: *const P::Source, rows: usize, steps: &[isize], width: usize, to: *mut P::Word) {
    // SAFETY: as for the panel; pieces of rows are as long as they divide the rows.
    unsafe {
        match rows {
            // What is copied byte for byte moves as vectors when its length is known to the compiler.
            64 => pieces::<P, 64>(from, rows, steps, width, to),
            48 => pieces::<P, 48>(from, rows, steps, width, to),
            24 => pieces::<P, 24>(from, rows, steps, width, to),
            12 => pieces::<P, 12>(from, rows, steps, width, to),
            6 => pieces::<P, 6>(from, rows, steps, width, to),
            _ if rows.is_multiple_of(16) => pieces::<P, 16>(from, rows, steps, width, to),
            _ if rows.is_multiple_of(8) => pieces::<P, 8>(from, rows, steps, width, to),
            _ => pieces::<P, 1>(from, rows, steps, width, to),
        }
    }
}

/// The words of neighbouring rows, in pieces of `L`, which divides their number.
#[inline(always)]
unsafe fn pieces<P: Packing, const L: usize>(
    from: *const P::Source,
    rows: usize,
    steps: &[isize],
    width: usize,
    to: *mut P::Word,
) {
    for (t, group) in steps.chunks(P::GROUP).enumerate() {
        for row in (0..rows).step_by(L) {
            // SAFETY: as for the panel.
            unsafe {
                let place = to.add(t * width + row).cast::<[P::Word; L]>();
                let piece = |g: usize| {
                    group.get(g).map_or([P::Source::default(); L], |step| {
                        from.offset(*step).add(row).cast::<[P::Source; L]>().read_unaligned()
                    })
                };
                let none = P::Source::default();
                if P::SAME && P::GROUP == 1 {
                    let first = group.first().copied().unwrap_or_default();
                    place.copy_from_nonoverlapping(from.offset(first).add(row).cast(), 1);
                } else if P::GROUP == 1 {
                    let a = piece(0);
                    place.write_unaligned(std::array::from_fn(|i| P::word([a[i], none, none, none])));
                } else if P::GROUP == 2 {
                    let (a, b) = (piece(0), piece(1));
                    place.write_unaligned(std::array::from_fn(|i| P::word([a[i], b[i], none, none])));
                } else {
                    let (a, b, c, d) = (piece(0), piece(1), piece(2), piece(3));
                    place.write_unaligned(std::array::from_fn(|i| P::word([a[i], b[i], c[i], d[i]])));
                }
            }
        }
    }
}

/// The words of up to eight rows, each read along K.
#[inline(always)]
unsafe fn turned<P: Packing>(
    from: *const P::Source,
    rows: &[isize],
    steps: &[isize],
    width: usize,
    to: *mut P::Word,
    turn: Turn<P::Word>,
) {
    let whole = SQUARE * P::GROUP;
    for (square, steps) in steps.chunks(whole).enumerate() {
        // SAFETY: as for the panel; a square is turned only if the numbers of its rows are there, and side by side along K.
        unsafe {
            let place = to.add(square * SQUARE * width);
            if let ([.., last], [first, ..]) = (rows, steps)
                && steps.len() == whole
                && is_run(steps)
            {
                // Where there are fewer rows, the last one stands for those that are missing.
                let eight: [isize; SQUARE] = std::array::from_fn(|r| first + rows.get(r).unwrap_or(last));
                let mut words = [[P::Word::default(); SQUARE]; SQUARE];
                let mut lines: [*const P::Word; SQUARE] = eight.map(|offset| from.offset(offset).cast());
                if !P::SAME {
                    for ((words, line), offset) in words.iter_mut().zip(&mut lines).zip(eight) {
                        for (t, word) in words.iter_mut().enumerate() {
                            let mut group = [P::Source::default(); 4];
                            for (g, number) in group.iter_mut().take(P::GROUP).enumerate() {
                                *number = *from.offset(offset).add(t * P::GROUP + g);
                            }
                            *word = P::word(group);
                        }
                        *line = words.as_ptr();
                    }
                }
                if rows.len() == SQUARE {
                    turn(&lines, place, width);
                    continue;
                }
                let mut turned = [[P::Word::default(); SQUARE]; SQUARE];
                turn(&lines, turned.as_mut_ptr().cast(), SQUARE);
                for (t, words) in turned.iter().enumerate() {
                    for (r, word) in words.iter().take(rows.len()).enumerate() {
                        place.add(t * width + r).write(*word);
                    }
                }
                continue;
            }
            for (t, group) in steps.chunks(P::GROUP).enumerate() {
                for (r, row) in rows.iter().enumerate() {
                    let mut numbers = [P::Source::default(); 4];
                    for (number, step) in numbers.iter_mut().zip(group) {
                        *number = *from.offset(row + step);
                    }
                    place.add(t * width + r).write(P::word(numbers));
                }
            }
        }
    }
}

/// Writes below a slice of words of four signed bytes -128 times the sum of the bytes of each column: what is missing from, or rather too much
/// in, their products with bytes that are [`Raised`].
///
/// # Safety
///
/// The slice has `words` rows of `width` words, and room for one more.
pub(super) unsafe fn corrections(to: *mut u32, width: usize, words: usize) {
    for r in 0..width {
        let mut sum = 0_i32;
        for t in 0..words {
            // SAFETY: a word of the panel, which was written.
            let bytes = unsafe { *to.add(t * width + r) }.to_le_bytes();
            sum = bytes.iter().fold(sum, |sum, byte| sum.wrapping_add(i32::from(*byte as i8)));
        }
        // SAFETY: the row below the panel.
        unsafe { to.add(words * width + r).write(sum.wrapping_mul(-128) as u32) };
    }
}

unsafe fn turn_portable<W: Copy>(rows: &[*const W; SQUARE], to: *mut W, width: usize) {
    for (r, row) in rows.iter().enumerate() {
        for t in 0..SQUARE {
            // SAFETY: as for the panel.
            unsafe { to.add(t * width + r).write(row.add(t).read_unaligned()) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod vector {
    use core::arch::x86_64::*;

    use super::SQUARE;

    /// Transposes eight by eight words in registers.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn turn<W: Copy>(rows: &[*const W; SQUARE], to: *mut W, width: usize) {
        // SAFETY: words of four and of eight bytes are moved, whatever they mean, from and to where the caller says.
        unsafe {
            if size_of::<W>() == 4 {
                turn_32(&rows.map(|row| row.cast()), to.cast(), width);
            } else if size_of::<W>() == 8 {
                for half in 0..2 {
                    turn_64(
                        &rows.map(|row| row.cast::<f64>().add(4 * half)),
                        to.cast::<f64>().add(4 * half * width),
                        width,
                    );
                }
            } else {
                super::turn_portable(rows, to, width);
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn turn_32(rows: &[*const f32; SQUARE], to: *mut f32, width: usize) {
        // SAFETY: the caller's: eight words of each row are read, and written at eight steps.
        unsafe {
            for half in 0..2 {
                // Rows r and r+4 share a register, so that no shuffle crosses its middle.
                let quarter = |r: usize| {
                    let low = _mm256_castps128_ps256(_mm_loadu_ps(rows[r].add(4 * half)));
                    _mm256_insertf128_ps::<1>(low, _mm_loadu_ps(rows[r + 4].add(4 * half)))
                };
                let (a, b, c, d) = (quarter(0), quarter(1), quarter(2), quarter(3));
                let (ab_low, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                let (cd_low, cd_high) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
                let place = to.add(4 * half * width);
                _mm256_storeu_ps(place, _mm256_shuffle_ps::<0b01_00_01_00>(ab_low, cd_low));
                _mm256_storeu_ps(place.add(width), _mm256_shuffle_ps::<0b11_10_11_10>(ab_low, cd_low));
                _mm256_storeu_ps(place.add(2 * width), _mm256_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high));
                _mm256_storeu_ps(place.add(3 * width), _mm256_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high));
            }
        }
    }

    /// Four steps of eight rows.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn turn_64(rows: &[*const f64; SQUARE], to: *mut f64, width: usize) {
        // SAFETY: the caller's: four words of each row are read, and written at four steps.
        unsafe {
            for quad in 0..2 {
                // Rows r and r+2 share a register.
                let pair = |r: usize, t: usize| {
                    let low = _mm256_castpd128_pd256(_mm_loadu_pd(rows[4 * quad + r].add(t)));
                    _mm256_insertf128_pd::<1>(low, _mm_loadu_pd(rows[4 * quad + r + 2].add(t)))
                };
                for t in [0, 2] {
                    let (a, b) = (pair(0, t), pair(1, t));
                    let place = to.add(t * width + 4 * quad);
                    _mm256_storeu_pd(place, _mm256_unpacklo_pd(a, b));
                    _mm256_storeu_pd(place.add(width), _mm256_unpackhi_pd(a, b));
                }
            }
        }
    }
}
