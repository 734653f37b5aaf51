//! Counts of accesses for patterns whose wavefronts and sectors are known.

use super::assembler::{Assembler, is_right};
use crate::element::Element;
use crate::interpret::{AccessCount, Class};
use crate::program::memory::Role;

/// Each lane of a warp stores `count` words, `step` bytes apart, to shared memory.
fn stored(step: i64, count: usize) -> AccessCount {
    let mut k = Assembler::new(1, 32);
    let shared = k.shared(Element::U32, 32 * step / 4 + 4);
    let thread = k.thread();
    let address = k.scaled(thread, step, 0);
    k.store_vector(shared, address, 32, &vec![thread; count]);
    let run = is_right(&k.program());
    assert_eq!(run.counts.executed(Class::Store), 1);
    run.counts.accesses[0].clone()
}

#[test]
pub(super) fn wavefronts_are_those_of_the_banks() {
    // The step in bytes, words of a lane, wavefronts, and wavefronts without bank conflicts.
    for (step, count, wavefronts, least) in [
        (4, 1, 1, 1),
        (8, 1, 2, 1),
        (12, 1, 1, 1),
        (64, 1, 16, 1),
        (128, 1, 32, 1),
        (132, 1, 1, 1),
        (8, 2, 2, 2),
        (16, 2, 4, 2),
        (16, 4, 4, 4),
        (32, 4, 8, 4),
        (128, 4, 32, 4),
        (144, 4, 4, 4),
    ] {
        let found = stored(step, count);
        assert_eq!((found.wavefronts, found.least_wavefronts), (wavefronts, least), "{step} {count}");
        assert_eq!((found.requests, found.bytes), (1, 128 * count as u64));
    }
}

#[test]
pub(super) fn sectors_are_those_that_are_touched() {
    for (step, count, sectors, lines) in
        [(4, 1, 4, 1), (0, 1, 1, 1), (8, 1, 8, 2), (32, 1, 32, 8), (128, 1, 32, 32), (16, 4, 16, 4), (32, 4, 32, 8)]
    {
        let mut k = Assembler::new(3, 32);
        let source = k.global(Role::Input, Element::U32, 32 * step / 4 + 4);
        let thread = k.thread();
        let address = k.scaled(thread, step, 0);
        k.load_vector(source, address, 32, count);
        let run = is_right(&k.program());
        let found = &run.counts.accesses[0];
        assert_eq!((found.requests, found.sectors, found.lines), (3, 3 * sectors, 3 * lines), "{step} {count}");
    }
}
