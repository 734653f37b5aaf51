//! Packing: a copy of a block of an operand to where the micro-kernels read it, side by side.
//!
//! **Law.** A panel of `width` rows and `k` numbers a row becomes words. With `g` numbers to a word, word `r + width * t` holds the numbers
//! `g * t .. g * (t + 1)` of row `r`: the layout `(width,(g,k/g)):(g,(1,g*width))` in numbers. What lies beyond the rows and beyond `k` is zero.
//!
//! A block is given by the offsets of its rows and those of its steps along K, whose sums are where its numbers lie: any integer layout is
//! of that kind, however its modes are nested. Where rows are neighbours in memory they are copied as vectors, of narrow panels those of several at once, so that lines are
//! read as a whole; where steps are, squares of eight by eight words, or of four or two by eight, are transposed in registers; elsewhere numbers are gathered.
#![allow(unsafe_code)]

mod words;

use crate::simd::square::{self, HALF, PAIR, SQUARE, Turn};
pub(super) use words::{Packing, Pairs, Raised, Same, Signed, Widened, WidenedPairs, corrections};

/// The width of panels in words, and the words from one panel to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Panels {
    pub width: usize,
    pub apart: usize,
}

/// Packs panels: from the element at offset 0, the offsets of the rows of all panels and those of the steps, to the first word of the first panel.
///
/// *Invariant*, which the caller upholds: every sum of an offset of a row and one of a step is that of a number that may be read, and there is room for
/// `width * ceil(steps / GROUP)` words from the beginning of each panel on, which no other panel begins in.
pub(super) type Pack<S, W> = unsafe fn(*const S, &[isize], &[isize], Panels, *mut W);

/// Packs with what every machine has.
pub(super) unsafe fn portable<P: Packing>(
    from: *const P::Source,
    rows: &[isize],
    steps: &[isize],
    by: Panels,
    to: *mut P::Word,
) {
    // SAFETY: the caller's.
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
    // SAFETY: the caller's.
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
    // SAFETY: the caller's.
    unsafe { panels::<P>(from, rows, steps, by, to, square::vector::<P::Word>) }
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
unsafe fn panels<P: Packing>(
    from: *const P::Source,
    rows: &[isize],
    steps: &[isize],
    Panels { width, apart }: Panels,
    to: *mut P::Word,
    turn: Turn<P::Word>,
) {
    // SAFETY: the caller's: these are the panels, one after another.
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
                2 => return several::<P::Word, 2>(from, number, steps, apart, to),
                4 => return several::<P::Word, 4>(from, number, steps, apart, to),
                6 => return several::<P::Word, 6>(from, number, steps, apart, to),
                8 => return several::<P::Word, 8>(from, number, steps, apart, to),
                16 => return several::<P::Word, 16>(from, number, steps, apart, to),
                _ => {}
            }
        }
        for (number, rows) in rows.chunks(width).enumerate() {
            panel::<P>(from, rows, steps, width, to.add(number * apart), turn);
        }
    }
}

/// The words of several panels of neighbouring rows, each `L` wide: all that lie side by side, step by step.
#[inline(always)]
unsafe fn several<W: Copy, const L: usize>(from: *const W, number: usize, steps: &[isize], apart: usize, to: *mut W) {
    for (t, step) in steps.iter().enumerate() {
        for panel in 0..number {
            // SAFETY: as for the panels; words are copied as they are.
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
    turn: Turn<P::Word>,
) {
    let along = is_run(steps);
    let mut done = 0;
    // SAFETY: rows and steps are those of the panel, and words go to places `row + width * step`, for rows below the width.
    unsafe {
        while let Some(rest @ [first, ..]) = rows.get(done..) {
            let length = if is_run(rest) { rest.len() } else { run(rest) };
            let place = to.add(done);
            if length >= SQUARE || length == rows.len() {
                copied::<P>(from.offset(*first), length, steps, width, place);
                done += length;
                continue;
            }
            // Eight rows, or four, or those that are left.
            let several = height(rest.len());
            let some = rest.get(..several).unwrap_or(rest);
            let turned = if along { turned::<P>(from, some, steps, width, place, turn) } else { 0 };
            gathered::<P>(from, some, steps.get(turned..).unwrap_or(&[]), width, place.add(turned / P::GROUP * width));
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

/// The rows that are turned at once of so many: eight, or four, or two.
#[inline(always)]
fn height(rows: usize) -> usize {
    match rows {
        0..=PAIR => PAIR,
        3..SQUARE => HALF,
        _ => SQUARE,
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
            32 => pieces::<P, 32>(from, rows, steps, width, to),
            24 => pieces::<P, 24>(from, rows, steps, width, to),
            16 => pieces::<P, 16>(from, rows, steps, width, to),
            12 => pieces::<P, 12>(from, rows, steps, width, to),
            8 => pieces::<P, 8>(from, rows, steps, width, to),
            6 => pieces::<P, 6>(from, rows, steps, width, to),
            4 => pieces::<P, 4>(from, rows, steps, width, to),
            2 => pieces::<P, 2>(from, rows, steps, width, to),
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

/// The words of up to eight rows whose numbers are side by side along K, square by square; says how many steps there were whole squares for.
#[inline(always)]
unsafe fn turned<P: Packing>(
    from: *const P::Source,
    rows: &[isize],
    steps: &[isize],
    width: usize,
    to: *mut P::Word,
    turn: Turn<P::Word>,
) -> usize {
    let (Some(last), Some(first)) = (rows.last(), steps.first()) else { return 0 };
    let squares = steps.len() / (SQUARE * P::GROUP);
    // SAFETY: as for the panel: the numbers of whole squares are there, side by side along K.
    unsafe {
        // Where there are fewer rows than are turned at once, the last one stands for those that are missing.
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
                turn(&words, several, place, width);
            } else {
                let mut apart = [[P::Word::default(); SQUARE]; SQUARE];
                turn(&words, several, apart.as_mut_ptr().cast(), SQUARE);
                for (t, apart) in apart.iter().enumerate() {
                    for (r, word) in apart.iter().take(rows.len()).enumerate() {
                        place.add(t * width + r).write(*word);
                    }
                }
            }
            lines = lines.map(|line| line.wrapping_add(SQUARE * P::GROUP));
        }
    }
    squares * SQUARE * P::GROUP
}

/// The words of some rows, number by number.
#[inline(always)]
unsafe fn gathered<P: Packing>(
    from: *const P::Source,
    rows: &[isize],
    steps: &[isize],
    width: usize,
    to: *mut P::Word,
) {
    for (t, group) in steps.chunks(P::GROUP).enumerate() {
        for (r, row) in rows.iter().enumerate() {
            let mut numbers = [P::Source::default(); 4];
            // SAFETY: as for the panel.
            unsafe {
                for (number, step) in numbers.iter_mut().zip(group) {
                    *number = *from.offset(row + step);
                }
                to.add(t * width + r).write(P::word(numbers));
            }
        }
    }
}
