//! Packing: copies a block of an operand into the contiguous order in which the micro-kernels read
//! it.
//!
//! **Law.** A panel of `width` rows and `k` numbers a row becomes words. With `g` numbers to a
//! word, word `r + width * t` holds the numbers `g * t .. g * (t + 1)` of row `r`: the layout
//! `(width,(g,k/g)):(g,(1,g*width))` in numbers. Beyond the rows and beyond `k` there are zeros.
//!
//! A block is given by the offsets of its rows and those of its steps along K; the offset of a
//! number is the sum of the two. Any integer layout has this form, however its modes are nested.
//! Packing has three ways:
//!
//! * rows contiguous in memory are copied as vectors, and the rows of several narrow panels at
//!   once, so that whole lines are read;
//! * steps contiguous in memory are transposed in registers, by squares of eight by eight words, or
//!   of four or two by eight;
//! * otherwise numbers are gathered one by one.
//!
//! Reason for unsafe code: numbers and words are accessed by offsets, and a bounds check for each
//! would cost more than the copy.
#![allow(unsafe_code)]

mod words;

use crate::simd::square::{self, HALF, PAIR, SQUARE, Transpose};
pub(super) use words::{Offset, Packing, Pairs, Same, Signed, Widened, WidenedPairs, write_corrections};

/// The width of panels in words, and the words from one panel to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Panels {
    pub width: usize,
    pub apart: usize,
}

/// Packs panels. The arguments are the element at offset 0, the offsets of the rows of all panels,
/// those of the steps, the panels, and the first word of the first panel.
///
/// *Invariant*, upheld by the caller: every sum of an offset of a row and one of a step leads to a
/// number that may be read. Each panel has room for `width * ceil(steps / GROUP)` words, in which
/// no other panel begins. The processor has the instructions.
pub(super) type Pack<S, W> = unsafe fn(*const S, &[isize], &[isize], Panels, *mut W);

/// Packs with the instructions that every machine has.
pub(super) unsafe fn portable<P: Packing>(
    from: *const P::Source,
    rows: &[isize],
    steps: &[isize],
    by: Panels,
    to: *mut P::Word,
) {
    // SAFETY: the caller vouches for the offsets, the room and the instructions.
    unsafe { panels::<P>(from, rows, steps, by, to, square::portable) }
}

/// Packs with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn avx2<P: Packing>(
    from: *const P::Source,
    rows: &[isize],
    steps: &[isize],
    by: Panels,
    to: *mut P::Word,
) {
    // SAFETY: the caller vouches for the offsets, the room and the instructions.
    unsafe { panels::<P>(from, rows, steps, by, to, square::vector::<P::Word>) }
}

/// Packs with AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn avx512<P: Packing>(
    from: *const P::Source,
    rows: &[isize],
    steps: &[isize],
    by: Panels,
    to: *mut P::Word,
) {
    // SAFETY: the caller vouches for the offsets, the room and the instructions.
    unsafe { panels::<P>(from, rows, steps, by, to, square::vector::<P::Word>) }
}

/// The length of the prefix of the offsets that go up by one.
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
unsafe fn panels<P: Packing>(
    from: *const P::Source,
    rows: &[isize],
    steps: &[isize],
    Panels { width, apart }: Panels,
    to: *mut P::Word,
    transpose: Transpose<P::Word>,
) {
    // SAFETY: the caller vouches for the offsets and the room; panels follow one another.
    unsafe {
        if let [first, _, ..] = rows
            && P::SAME
            && P::GROUP == 1
            && rows.len().is_multiple_of(width)
            && rows.len() > width
            && is_run(rows)
        {
            let from = from.offset(*first).cast();
            let number = rows.len() / width;
            match width {
                2 => return pack_contiguous::<P::Word, 2>(from, number, steps, apart, to),
                4 => return pack_contiguous::<P::Word, 4>(from, number, steps, apart, to),
                6 => return pack_contiguous::<P::Word, 6>(from, number, steps, apart, to),
                8 => return pack_contiguous::<P::Word, 8>(from, number, steps, apart, to),
                16 => return pack_contiguous::<P::Word, 16>(from, number, steps, apart, to),
                _ => {}
            }
        }
        for (number, rows) in rows.chunks(width).enumerate() {
            panel::<P>(from, rows, steps, width, to.add(number * apart), transpose);
        }
    }
}

/// Packs several panels of contiguous rows, each `L` wide, step by step.
#[inline(always)]
unsafe fn pack_contiguous<W: Copy, const L: usize>(
    from: *const W,
    number: usize,
    steps: &[isize],
    apart: usize,
    to: *mut W,
) {
    for (t, step) in steps.iter().enumerate() {
        for panel in 0..number {
            // SAFETY: these rows are contiguous from the first offset on, and the room is that of
            // the panels; a word is the number itself.
            unsafe {
                let place = to.add(panel * apart + t * L).cast::<[W; L]>();
                place.copy_from_nonoverlapping(from.offset(*step).add(panel * L).cast(), 1);
            }
        }
    }
}

#[inline(always)]
unsafe fn panel<P: Packing>(
    from: *const P::Source,
    rows: &[isize],
    steps: &[isize],
    width: usize,
    to: *mut P::Word,
    transpose: Transpose<P::Word>,
) {
    let along = is_run(steps);
    let mut done = 0;
    // SAFETY: rows and steps are those of the panel, and words go to `row + width * step`, for rows
    // below the width.
    unsafe {
        while let Some(rest @ [first, ..]) = rows.get(done..) {
            let length = if is_run(rest) { rest.len() } else { run(rest) };
            let place = to.add(done);
            if length >= SQUARE || length == rows.len() {
                copy_rows::<P>(from.offset(*first), length, steps, width, place);
                done += length;
                continue;
            }
            let some = rest.get(..square_height(rest.len())).unwrap_or(rest);
            let done_steps = if along { pack_squares::<P>(from, some, steps, width, place, transpose) } else { 0 };
            let (rest_of_steps, place) =
                (steps.get(done_steps..).unwrap_or(&[]), place.add(done_steps / P::GROUP * width));
            gather::<P>(from, some, rest_of_steps, width, place);
            done += some.len();
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

/// The rows of the next square if this many are left: eight, four, or two.
#[inline(always)]
fn square_height(rows: usize) -> usize {
    match rows {
        0..=PAIR => PAIR,
        3..SQUARE => HALF,
        _ => SQUARE,
    }
}

/// Packs contiguous rows.
#[inline(always)]
unsafe fn copy_rows<P: Packing>(from: *const P::Source, rows: usize, steps: &[isize], width: usize, to: *mut P::Word) {
    // SAFETY: the rows are contiguous from the first offset on, and pieces divide them.
    unsafe {
        match rows {
            // If its length is known at compile time, a copy becomes vector instructions.
            64 => copy_pieces::<P, 64>(from, rows, steps, width, to),
            48 => copy_pieces::<P, 48>(from, rows, steps, width, to),
            32 => copy_pieces::<P, 32>(from, rows, steps, width, to),
            24 => copy_pieces::<P, 24>(from, rows, steps, width, to),
            16 => copy_pieces::<P, 16>(from, rows, steps, width, to),
            12 => copy_pieces::<P, 12>(from, rows, steps, width, to),
            8 => copy_pieces::<P, 8>(from, rows, steps, width, to),
            6 => copy_pieces::<P, 6>(from, rows, steps, width, to),
            4 => copy_pieces::<P, 4>(from, rows, steps, width, to),
            2 => copy_pieces::<P, 2>(from, rows, steps, width, to),
            _ if rows.is_multiple_of(16) => copy_pieces::<P, 16>(from, rows, steps, width, to),
            _ if rows.is_multiple_of(8) => copy_pieces::<P, 8>(from, rows, steps, width, to),
            _ => copy_pieces::<P, 1>(from, rows, steps, width, to),
        }
    }
}

/// Packs contiguous rows in pieces of `L`, which divides their number.
#[inline(always)]
unsafe fn copy_pieces<P: Packing, const L: usize>(
    from: *const P::Source,
    rows: usize,
    steps: &[isize],
    width: usize,
    to: *mut P::Word,
) {
    for (t, group) in steps.chunks(P::GROUP).enumerate() {
        for row in (0..rows).step_by(L) {
            // SAFETY: `L` contiguous rows at a step of the panel, and their place in its words.
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

/// Packs up to eight rows whose numbers are contiguous along K, square by square. Returns the
/// number of steps in whole squares.
#[inline(always)]
unsafe fn pack_squares<P: Packing>(
    from: *const P::Source,
    rows: &[isize],
    steps: &[isize],
    width: usize,
    to: *mut P::Word,
    transpose: Transpose<P::Word>,
) -> usize {
    let (Some(last), Some(first)) = (rows.last(), steps.first()) else { return 0 };
    let squares = steps.len() / (SQUARE * P::GROUP);
    // SAFETY: the numbers of whole squares are contiguous along K, and their words lie in the
    // panel.
    unsafe {
        // If a square has fewer rows, the last row is repeated for the missing ones.
        let mut lines: [*const P::Source; SQUARE] =
            std::array::from_fn(|r| from.offset(first + rows.get(r).unwrap_or(last)));
        let several = if rows.len() > HALF { SQUARE } else { rows.len().next_power_of_two().max(PAIR) };
        for square in 0..squares {
            let place = to.add(square * SQUARE * width);
            let mut converted = [[P::Word::default(); SQUARE]; SQUARE];
            let mut words: [*const P::Word; SQUARE] = lines.map(|line| line.cast());
            if !P::SAME {
                for ((converted, word), line) in converted.iter_mut().zip(&mut words).zip(lines).take(several) {
                    for (t, to) in converted.iter_mut().enumerate() {
                        let mut group = [P::Source::default(); 4];
                        for (g, number) in group.iter_mut().take(P::GROUP).enumerate() {
                            *number = *line.add(t * P::GROUP + g);
                        }
                        *to = P::word(group);
                    }
                    *word = converted.as_ptr();
                }
            }
            if rows.len() == several {
                transpose(&words, several, place, width);
            } else {
                let mut square = [[P::Word::default(); SQUARE]; SQUARE];
                transpose(&words, several, square.as_mut_ptr().cast(), SQUARE);
                for (t, step) in square.iter().enumerate() {
                    for (r, word) in step.iter().take(rows.len()).enumerate() {
                        place.add(t * width + r).write(*word);
                    }
                }
            }
            lines = lines.map(|line| line.wrapping_add(SQUARE * P::GROUP));
        }
    }
    squares * SQUARE * P::GROUP
}

/// Packs rows number by number.
#[inline(always)]
unsafe fn gather<P: Packing>(from: *const P::Source, rows: &[isize], steps: &[isize], width: usize, to: *mut P::Word) {
    for (t, group) in steps.chunks(P::GROUP).enumerate() {
        for (r, row) in rows.iter().enumerate() {
            let mut numbers = [P::Source::default(); 4];
            // SAFETY: the sum of an offset of a row and one of a step, and its place in the words
            // of the panel.
            unsafe {
                for (number, step) in numbers.iter_mut().zip(group) {
                    *number = *from.offset(row + step);
                }
                to.add(t * width + r).write(P::word(numbers));
            }
        }
    }
}
