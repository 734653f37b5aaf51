//! Transposes of squares of words in registers: eight words of each of several rows.
//!
//! **Law.** Word `t` of row `r` goes to `to[t * width + r]`, for `r < rows` and `t < 8`, and
//! nothing else is written. There are two rows, four, or eight.
//!
//! Reason for unsafe code: vector instructions on memory that Rust knows only by its address.
#![allow(unsafe_code)]

/// The most rows of a square, and the words of each.
pub(crate) const SQUARE: usize = 8;
/// The rows of half a square, and of a quarter.
pub(crate) const HALF: usize = 4;
pub(crate) const PAIR: usize = 2;

/// Transposes a square of this many rows.
///
/// *Invariant*, upheld by the caller: eight words of each of these rows may be read, the words that
/// the law names may be written, and the processor has the instructions.
pub(crate) type Transpose<W> = unsafe fn(&[*const W; SQUARE], usize, *mut W, usize);

/// Transposes with the instructions that every machine has.
pub(crate) unsafe fn portable<W: Copy>(lines: &[*const W; SQUARE], rows: usize, to: *mut W, width: usize) {
    for (r, line) in lines.iter().take(rows).enumerate() {
        for t in 0..SQUARE {
            // SAFETY: the caller vouches for eight words of each row, and for their places.
            unsafe { to.add(t * width + r).write(line.add(t).read_unaligned()) };
        }
    }
}

/// Transposes in registers of 32 bytes, words of four or of eight bytes.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn vector<W: Copy>(lines: &[*const W; SQUARE], rows: usize, to: *mut W, width: usize) {
    // SAFETY: words are moved whatever they mean; the caller vouches for the rows and their places.
    unsafe {
        match (size_of::<W>(), rows) {
            (4, SQUARE) => registers::eight_rows(&lines.map(|line| line.cast()), to.cast(), width),
            (4, HALF) => registers::four_rows(&lines.map(|line| line.cast()), to.cast(), width),
            (4, PAIR) => registers::two_rows([lines[0].cast(), lines[1].cast()], to.cast(), width),
            (8, PAIR) => registers::two_rows_of_doubles([lines[0].cast(), lines[1].cast()], to.cast(), width),
            (8, SQUARE) => {
                let lines = lines.map(|line| line.cast());
                let [a, b, c, d, e, f, g, h] = lines;
                registers::four_rows_of_doubles(&[a, b, c, d], to.cast(), width);
                registers::four_rows_of_doubles(&[e, f, g, h], to.cast::<f64>().add(HALF), width);
            }
            (8, HALF) => {
                let [a, b, c, d, ..] = lines.map(|line| line.cast());
                registers::four_rows_of_doubles(&[a, b, c, d], to.cast(), width);
            }
            _ => portable(lines, rows, to, width),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod registers {
    use core::arch::x86_64::*;

    use super::{HALF, PAIR, SQUARE};

    /// # Safety
    ///
    /// That of [`super::Transpose`], here and below.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) unsafe fn eight_rows(lines: &[*const f32; SQUARE], to: *mut f32, width: usize) {
        // SAFETY: eight words of each row are read, and written at eight steps.
        unsafe {
            for half in [0, HALF] {
                // Rows r and r+4 share a register, so that no shuffle crosses its middle.
                let quarter = |r: usize| {
                    let low = _mm256_castps128_ps256(_mm_loadu_ps(lines[r].add(half)));
                    _mm256_insertf128_ps::<1>(low, _mm_loadu_ps(lines[r + HALF].add(half)))
                };
                let steps = transposed([quarter(0), quarter(1), quarter(2), quarter(3)]);
                for (t, step) in steps.into_iter().enumerate() {
                    _mm256_storeu_ps(to.add((half + t) * width), step);
                }
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) unsafe fn four_rows(lines: &[*const f32; SQUARE], to: *mut f32, width: usize) {
        // SAFETY: eight words of each of four rows are read, and written at eight steps.
        unsafe {
            // Steps t and t+4 share a register.
            let line = |r: usize| _mm256_loadu_ps(lines[r]);
            let steps = transposed([line(0), line(1), line(2), line(3)]);
            for (t, step) in steps.into_iter().enumerate() {
                _mm_storeu_ps(to.add(t * width), _mm256_castps256_ps128(step));
                _mm_storeu_ps(to.add((t + HALF) * width), _mm256_extractf128_ps::<1>(step));
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) unsafe fn two_rows(lines: [*const f32; PAIR], to: *mut f32, width: usize) {
        // SAFETY: eight words of each of two rows are read, and written at eight steps, of which
        // two share a register.
        unsafe {
            for half in [0, HALF] {
                let (a, b) = (_mm_loadu_ps(lines[0].add(half)), _mm_loadu_ps(lines[1].add(half)));
                let pairs = [_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b)].map(|pair| _mm_castps_pd(pair));
                for (t, pair) in (half..).step_by(2).zip(pairs) {
                    _mm_storel_pd(to.add(t * width).cast(), pair);
                    _mm_storeh_pd(to.add((t + 1) * width).cast(), pair);
                }
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) unsafe fn two_rows_of_doubles(lines: [*const f64; PAIR], to: *mut f64, width: usize) {
        // SAFETY: eight words of each of two rows are read, and written at eight steps.
        unsafe {
            for t in (0..SQUARE).step_by(2) {
                let (a, b) = (_mm_loadu_pd(lines[0].add(t)), _mm_loadu_pd(lines[1].add(t)));
                _mm_storeu_pd(to.add(t * width), _mm_unpacklo_pd(a, b));
                _mm_storeu_pd(to.add((t + 1) * width), _mm_unpackhi_pd(a, b));
            }
        }
    }

    /// Transposes the four by four words in each half of four registers.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn transposed([a, b, c, d]: [__m256; HALF]) -> [__m256; HALF] {
        let (ab_low, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        let (cd_low, cd_high) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
        [
            _mm256_shuffle_ps::<0b01_00_01_00>(ab_low, cd_low),
            _mm256_shuffle_ps::<0b11_10_11_10>(ab_low, cd_low),
            _mm256_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high),
            _mm256_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high),
        ]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) unsafe fn four_rows_of_doubles(lines: &[*const f64; HALF], to: *mut f64, width: usize) {
        // SAFETY: eight words of each of four rows are read, and written at eight steps.
        unsafe {
            for t in (0..SQUARE).step_by(2) {
                // Rows r and r+2 share a register.
                let pair = |r: usize| {
                    let low = _mm256_castpd128_pd256(_mm_loadu_pd(lines[r].add(t)));
                    _mm256_insertf128_pd::<1>(low, _mm_loadu_pd(lines[r + 2].add(t)))
                };
                let (a, b) = (pair(0), pair(1));
                _mm256_storeu_pd(to.add(t * width), _mm256_unpacklo_pd(a, b));
                _mm256_storeu_pd(to.add((t + 1) * width), _mm256_unpackhi_pd(a, b));
            }
        }
    }
}
