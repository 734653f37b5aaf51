//! The cells of the shadow memory: which conflicts an access finds there, and what it records.

use super::actor::{Actor, Ordering};
use crate::check::checker::Access;
use crate::check::clock::Known;
use crate::check::cluster::{WarpView, lanes};
use crate::check::event::Event;
use crate::check::shadow::{Page, Reading, Stands};

/// A conflict.
#[derive(Clone, Copy)]
pub(super) enum Conflict {
    Unwritten,
    /// With an earlier access by a lane. `writes` says whether that access wrote.
    With {
        event: Event,
        lane: u32,
        wrote: bool,
        unfenced: bool,
    },
    /// A non-coherent read of bytes that this launch wrote.
    NonCoherent {
        event: Event,
        lane: u32,
    },
}

/// A conflict, and the range of bytes from the beginning of the access.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) conflict: Conflict,
    pub(super) first: u32,
    pub(super) bytes: u32,
}

/// The effect of an access on a cell.
#[derive(Clone, Copy)]
pub(super) struct Effect {
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) strong: bool,
    pub(super) coherent: bool,
    /// Which earlier reads it replaces, if it is a read. While uses are watched, all conflicts of
    /// an access are reported; otherwise only the first.
    pub(super) stands: Stands,
}

impl Effect {
    /// Whether it is a read that can race only with writes.
    #[inline]
    pub(super) fn is_weak_read(self) -> bool {
        self.reads && !self.writes && !self.strong && self.coherent
    }
}

/// If a weak access is ordered after all earlier ones by program order or by a barrier, checks and
/// records it, and returns true. Otherwise records nothing.
#[inline(always)]
fn touch_plainly(page: &mut Page, address: u64, bytes: u32, actor: &Actor<'_>, writes: bool) -> bool {
    let Some(cells) = page.cells_that_fit(address, bytes) else { return false };
    let code = &actor.code;
    for cell in &*cells {
        if (!writes && cell.write == Event::NONE) || !actor.is_behind_write(cell.write) {
            return false;
        }
        if cell.has_readings() && !cell.single().is_some_and(|old| is_replaced(actor, old, writes)) {
            return false;
        }
    }
    for cell in cells {
        match writes {
            true => cell.write_after_all(code.with_lane(actor.event, actor.lane)),
            false => cell.read_after_all(Reading { event: actor.event, mask: actor.lanes }),
        }
    }
    true
}

/// Checks and records a weak read of several lanes, if the last write is ordered before it by
/// program order or by a barrier. Returns whether it is.
fn read_together(page: &mut Page, address: u64, bytes: u32, actor: &Actor<'_>, stands: Stands) -> bool {
    page.fit(address, bytes);
    let cells = page.cells_of(address, bytes);
    let is_fine = |write: Event| write != Event::NONE && actor.is_behind_write(write);
    if !cells.clone().all(|at| is_fine(page.cell(at).write)) {
        return false;
    }
    for at in cells {
        let new = Reading { event: actor.event, mask: actor.lanes };
        page.note_read(&actor.code, at, new, stands, |old| actor.is_before(old));
    }
    true
}

/// Checks and records a weak read through the async proxy, if the last write of the bytes is
/// ordered before it for all lanes. Returns whether it is. `last` is a write that is known to be
/// ordered, so that bytes that one instruction of a warp wrote are checked once.
pub(super) fn read_behind_proxy(
    page: &mut Page,
    address: u64,
    bytes: u32,
    actor: &Actor<'_>,
    stands: Stands,
    last: &mut Option<Event>,
) -> bool {
    let code = &actor.code;
    page.fit(address, bytes);
    let cells = page.cells_of(address, bytes);
    for at in cells.clone() {
        let write = code.with_no_lane(page.cell(at).write);
        if *last == Some(write) {
            continue;
        }
        if write == Event::NONE || actor.order(write, u32::MAX, true) != Ordering::Ordered {
            return false;
        }
        *last = Some(write);
    }
    for at in cells {
        let new = Reading { event: actor.event, mask: actor.lanes };
        page.note_read(code, at, new, stands, |old| actor.is_before(old));
    }
    true
}

/// Whether an access replaces the only read or strong write of a cell, or, if it is the same event,
/// joins it.
#[inline(always)]
fn is_replaced(actor: &Actor<'_>, old: Reading, writes: bool) -> bool {
    let is_plain = actor.is_plainly_after(old.event, old.mask);
    match writes {
        true => is_plain,
        false => old.event == actor.event || (is_plain && actor.code.strength(old.event) == 0),
    }
}

/// Checks an access to some bytes of a page and records it. `unchanged` says whether a conflicting
/// write leaves the bytes as they are: such a write is no conflict. Only the first conflict is
/// reported, unless uses are watched.
pub(super) fn touch(
    page: &mut Page,
    address: u64,
    bytes: u32,
    actor: &Actor<'_>,
    effect: Effect,
    unchanged: impl Fn(Option<u32>) -> bool,
    mut find: impl FnMut(Found),
) {
    page.fit(address, bytes);
    let watches = effect.stands != Stands::All;
    let cells = page.cells_of(address, bytes);
    let (start, width) = (cells.start, bytes / cells.len() as u32);
    let mut is_first = true;
    for at in cells {
        let mut find = |conflict: Conflict| {
            if std::mem::take(&mut is_first) || watches {
                find(Found { conflict, first: (at - start) as u32 * width, bytes: width });
            }
        };
        let write = page.cell(at).write;
        let code = &actor.code;
        if effect.reads {
            if write == Event::NONE {
                find(Conflict::Unwritten);
                // One report is enough, unless it matters which of several reads is used.
                if !watches {
                    page.set_write(at, Event::INITIAL);
                }
            } else if !effect.coherent && write.is_access() {
                find(Conflict::NonCoherent { event: write, lane: code.lane(write) });
            }
        }
        let lane = code.lane(write);
        match actor.order(write, 1 << lane, true) {
            Ordering::Ordered => {}
            ordering => {
                let other =
                    (code.agent(write) == actor.thread && code.at(write) == code.at(actor.event)).then_some(lane);
                if effect.writes && !effect.reads && unchanged(other) {
                    continue;
                }
                let unfenced = ordering == Ordering::Unfenced;
                find(Conflict::With { event: write, lane, wrote: true, unfenced });
            }
        }
        if effect.writes || page.strong {
            let mut skip = false;
            let mut check = |reading: Reading| {
                let wrote = code.is_strong_write(reading.event);
                if reading.mask == 0 || !(effect.writes || wrote) {
                    return;
                }
                let ordering = actor.order(reading.event, reading.mask, wrote);
                if ordering == Ordering::Ordered {
                    return;
                }
                if effect.writes && !effect.reads && unchanged(None) {
                    skip = true;
                    return;
                }
                let mask = reading.mask;
                let mask = if code.agent(reading.event) == actor.thread { mask & !(1 << actor.lane) } else { mask };
                let unfenced = ordering == Ordering::Unfenced;
                if watches && !wrote {
                    // One lane may use the value that it has read while another does not.
                    for lane in lanes(mask) {
                        if actor.order(reading.event, 1 << lane, wrote) != Ordering::Ordered {
                            find(Conflict::With { event: reading.event, lane, wrote, unfenced });
                        }
                    }
                    return;
                }
                let lane = actor.unknown_lane(reading.event, mask);
                find(Conflict::With { event: reading.event, lane, wrote, unfenced });
            };
            match page.single(at) {
                Some(reading) => check(reading),
                None => page.readings(at).for_each(check),
            }
            if skip {
                continue;
            }
        }
        if effect.writes && !effect.strong {
            page.set_write(at, code.with_lane(actor.event, actor.lane));
        } else {
            if effect.writes {
                page.set_written(at);
            }
            let new = Reading { event: actor.event, mask: 1 << actor.lane };
            page.note_read(code, at, new, effect.stands, |old| actor.is_before(old));
        }
    }
}

/// Calls a function for each lane of an access with its view. If lanes with the same view read the
/// same bytes, and the order of these reads does not matter, calls it once for all of them.
#[inline(always)]
pub(super) fn for_each_actor(access: &Access<'_>, effect: Effect, view: &WarpView, mut visit: impl FnMut(u32, &Known)) {
    match view {
        WarpView::One(view) if effect.is_weak_read() && !is_rising(access.addresses, access.by.mask) => {
            let mut left = access.by.mask;
            while left != 0 {
                let address = access.addresses[left.trailing_zeros() as usize & 31];
                let mut same = 0;
                for (lane, own) in access.addresses.iter().enumerate() {
                    same |= u32::from(*own == address) << lane;
                }
                visit(same & left, &view.known);
                left &= !same;
            }
        }
        WarpView::One(view) => lanes(access.by.mask).for_each(|lane| visit(1 << lane, &view.known)),
        WarpView::Each(views) => {
            lanes(access.by.mask).for_each(|lane| visit(1 << lane, &views[lane as usize].known));
        }
    }
}

/// Whether the addresses of the lanes increase strictly.
#[inline]
fn is_rising(addresses: &[u64; 32], mask: u32) -> bool {
    if mask == u32::MAX {
        return addresses.iter().zip(&addresses[1..]).fold(true, |rising, (a, b)| rising & (a < b));
    }
    let mut last = None;
    lanes(mask).all(|lane| {
        let own = Some(addresses[lane as usize]);
        std::mem::replace(&mut last, own) < own
    })
}

/// Checks and records an access of lanes with the same view to the same bytes of a page.
#[inline(always)]
pub(super) fn touch_group(
    page: &mut Page,
    access: &Access<'_>,
    address: u64,
    actor: Actor<'_>,
    effect: Effect,
    find: &mut impl FnMut(u32, Found),
) {
    let is_plain = !effect.strong && effect.coherent && effect.reads != effect.writes && !page.strong;
    let is_alone = effect.stands == Stands::All;
    if is_plain && is_alone && touch_plainly(page, address, access.bytes, &actor, effect.writes) {
        return;
    }
    touch_slowly(page, access, address, actor, effect, is_plain, find);
}

#[inline(never)]
fn touch_slowly(
    page: &mut Page,
    access: &Access<'_>,
    address: u64,
    actor: Actor<'_>,
    effect: Effect,
    is_plain: bool,
    find: &mut impl FnMut(u32, Found),
) {
    let all = actor.lanes;
    if is_plain && all & (all - 1) != 0 && read_together(page, address, access.bytes, &actor, effect.stands) {
        return;
    }
    for lane in lanes(all) {
        let actor = Actor { lane, lanes: 1 << lane, ..actor };
        let unchanged = |other| is_unchanged(access, lane, other);
        touch(page, address, access.bytes, &actor, effect, unchanged, |found| find(lane, found));
    }
}

/// Whether lanes of one instruction write equal values, or floats of 32 bits that differ in their
/// last places only. Lanes that sum the same numbers by shuffles may do so in several orders, and
/// each of the sums is right.
fn is_alike(own: &[u8], other: &[u8]) -> bool {
    /// The largest difference, in units of the last place, between sums of 32 or 64 numbers.
    const LAST_PLACES: u32 = 64;
    /// The magnitudes of floats that count as sums. Integers below 507 million have the bits of
    /// smaller floats.
    const SUMS: std::ops::Range<f32> = 1e-20..1e20;
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u32::from(*byte));
    let is_near = |own: u32, other: u32| {
        let both_sums = [own, other].iter().all(|bits| SUMS.contains(&f32::from_bits(*bits).abs()));
        both_sums && own.abs_diff(other) <= LAST_PLACES && own >> 31 == other >> 31
    };
    own == other
        || own.len() >= 4
            && own.chunks_exact(4).zip(other.chunks_exact(4)).all(|(own, other)| {
                let (own, other) = (word(own), word(other));
                own == other || is_near(own, other)
            })
}

/// Whether a write leaves its bytes as they are: the same as before, or as another lane of the same
/// instruction writes them.
fn is_unchanged(access: &Access<'_>, lane: u32, other: Option<u32>) -> bool {
    let bytes = access.bytes as usize;
    let Some(written) = access.values.written(lane as usize) else { return false };
    let is_same_instruction = |other: &u32| {
        access.by.mask >> other & 1 == 1 && access.addresses[*other as usize] == access.addresses[lane as usize]
    };
    if let Some(other) = other.filter(is_same_instruction) {
        return access
            .values
            .written(other as usize)
            .is_some_and(|theirs| is_alike(&theirs[..bytes], &written[..bytes]));
    }
    access.values.held(lane as usize)[..bytes] == written[..bytes]
}
