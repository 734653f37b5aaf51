//! Shadow memory: for each byte the last write, and the reads since.
//!
//! A page covers 4096 bytes by cells that are as wide as its accesses allow: it begins with the
//! width of its first access and is cut finer when a narrower one comes. A cell has its last weak
//! write, and what came since: reads, and strong writes, which do not conflict with each other and
//! so need no order among them. These are entries of a warp, an instruction and a count, with a bit
//! for each lane. One that is ordered after another of its kind replaces it: what comes after the
//! later one comes after both.

use super::event::{Code, Event};

/// Bytes of a page.
pub(super) const PAGE_BYTES: u64 = 1 << PAGE_SHIFT;
/// Its logarithm.
pub(super) const PAGE_SHIFT: u32 = 12;
/// The widest cell, as a logarithm of bytes.
const MAX_WIDTH: u32 = 4;
/// How many readers of one cell are kept beside the last one. A cell has more only if as many warps
/// read it that nothing orders; the first are kept.
const MAX_READERS: usize = 64;

/// Reads, or strong writes, of a cell by lanes of a warp.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// The event, of lane 0.
    pub(super) event: Event,
    /// Which lanes.
    pub(super) mask: u32,
}

/// The history of some bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    /// The last weak write.
    pub(super) write: Event,
    /// The last read or strong write since; none if the mask is 0.
    read: Event,
    mask: u32,
    /// One more than the index of other reads; 0 for none.
    more: u32,
}

impl Cell {
    /// Whether there were reads or strong writes since the last weak write.
    #[inline]
    pub(super) fn has_readings(&self) -> bool {
        self.mask != 0 || self.more != 0
    }

    /// The only one, if there is at most one.
    #[inline]
    pub(super) fn single(&self) -> Option<Reading> {
        (self.more == 0).then_some(Reading { event: self.read, mask: self.mask })
    }

    /// A weak write, where nothing is kept beside the last read.
    #[inline]
    pub(super) fn write_after_all(&mut self, event: Event) {
        (self.write, self.mask) = (event, 0);
    }

    /// A read that stands for the last one, or is the same, where nothing is kept beside that.
    #[inline]
    pub(super) fn read_after_all(&mut self, new: Reading) {
        let same = if self.read == new.event { self.mask } else { 0 };
        (self.read, self.mask) = (new.event, same | new.mask);
    }
}

/// A page of memory.
#[derive(Debug)]
pub(super) struct Page {
    /// The logarithm of the bytes of a cell.
    width: u32,
    cells: Vec<Cell>,
    more: Vec<Vec<Reading>>,
    free: Vec<u32>,
    /// Whether it holds a barrier, whose bytes nobody else may touch.
    pub(super) barriers: bool,
    /// Whether strong accesses have written in it.
    pub(super) strong: bool,
}

impl Page {
    /// A page whose first access has some bytes at an address.
    pub(super) fn new(initial: Event, address: u64, bytes: u32) -> Page {
        let width = fitting(address, bytes);
        let cell = Cell { write: initial, read: Event::NONE, mask: 0, more: 0 };
        let cells = vec![cell; (PAGE_BYTES >> width) as usize];
        Page { width, cells, more: Vec::new(), free: Vec::new(), barriers: false, strong: false }
    }

    /// Cuts cells so that an access is whole cells.
    #[inline]
    pub(super) fn fit(&mut self, address: u64, bytes: u32) {
        if (address | u64::from(bytes)) & ((1 << self.width) - 1) != 0 {
            self.cut(fitting(address, bytes));
        }
    }

    #[cold]
    fn cut(&mut self, width: u32) {
        let pieces = 1usize << (self.width - width);
        let mut cells = Vec::with_capacity(self.cells.len() * pieces);
        for cell in &self.cells {
            for piece in 0..pieces {
                let mut cell = *cell;
                if piece > 0 && cell.more > 0 {
                    self.more.push(self.more[cell.more as usize - 1].clone());
                    cell.more = self.more.len() as u32;
                }
                cells.push(cell);
            }
        }
        (self.width, self.cells) = (width, cells);
    }

    /// The cells of an access; none where they are too wide for it.
    #[inline(always)]
    pub(super) fn cells_that_fit(&mut self, address: u64, bytes: u32) -> Option<&mut [Cell]> {
        if (address | u64::from(bytes)) & ((1 << self.width) - 1) != 0 {
            return None;
        }
        let cells = self.cells_of(address, bytes);
        self.cells.get_mut(cells)
    }

    /// The cells of an access that fits.
    #[inline]
    pub(super) fn cells_of(&self, address: u64, bytes: u32) -> std::ops::Range<usize> {
        let first = ((address & (PAGE_BYTES - 1)) >> self.width) as usize;
        first..first + ((bytes >> self.width) as usize).max(1)
    }

    #[inline]
    pub(super) fn cell(&self, at: usize) -> &Cell {
        &self.cells[at]
    }

    #[inline]
    pub(super) fn set_write(&mut self, at: usize, event: Event) {
        let cell = &mut self.cells[at];
        cell.write = event;
        cell.mask = 0;
        if cell.more > 0 {
            let list = cell.more - 1;
            cell.more = 0;
            self.more[list as usize].clear();
            self.free.push(list);
        }
    }

    /// Bytes have values, by a strong write.
    #[inline]
    pub(super) fn set_written(&mut self, at: usize) {
        let write = &mut self.cells[at].write;
        if *write == Event::NONE {
            *write = Event::INITIAL;
        }
        self.strong = true;
    }

    /// The only read since the last write, if there is at most one.
    #[inline]
    pub(super) fn single(&self, at: usize) -> Option<Reading> {
        self.cells[at].single()
    }

    /// All reads since the last write.
    pub(super) fn readings(&self, at: usize) -> impl Iterator<Item = Reading> {
        let cell = &self.cells[at];
        let more = cell.more.checked_sub(1).map_or(&[][..], |list| &self.more[list as usize]);
        let first = (cell.mask != 0).then_some(Reading { event: cell.read, mask: cell.mask });
        first.into_iter().chain(more.iter().copied())
    }

    /// Notes a read; `is_before` says whether another is ordered before it.
    #[inline]
    pub(super) fn note_read(&mut self, code: &Code, at: usize, new: Reading, is_before: impl Fn(Reading) -> bool) {
        let cell = &mut self.cells[at];
        if cell.more == 0 {
            if cell.mask == 0 {
                (cell.read, cell.mask) = (new.event, new.mask);
                return;
            }
            if cell.read == new.event {
                cell.mask |= new.mask;
                return;
            }
            let old = Reading { event: cell.read, mask: cell.mask };
            if stands_for(code, old, new) && (follows(code, old, new) || is_before(old)) {
                (cell.read, cell.mask) = (new.event, new.mask);
                return;
            }
        }
        self.note_among(code, at, new, is_before);
    }

    fn note_among(&mut self, code: &Code, at: usize, new: Reading, is_before: impl Fn(Reading) -> bool) {
        let cell = &mut self.cells[at];
        if cell.read == new.event {
            cell.mask |= new.mask;
            return;
        }
        if cell.more == 0 {
            let list = self.free.pop().unwrap_or_else(|| {
                self.more.push(Vec::new());
                self.more.len() as u32 - 1
            });
            cell.more = list + 1;
        }
        let list = &mut self.more[cell.more as usize - 1];
        if let Some(same) = list.iter_mut().find(|reading| reading.event == new.event) {
            same.mask |= new.mask;
            return;
        }
        let gone = |old: Reading| stands_for(code, old, new) && (follows(code, old, new) || is_before(old));
        list.retain(|old| !gone(*old));
        if gone(Reading { event: cell.read, mask: cell.mask }) {
            (cell.read, cell.mask) = (new.event, new.mask);
        } else if list.len() < MAX_READERS {
            list.push(new);
        }
        if list.is_empty() {
            let empty = cell.more - 1;
            cell.more = 0;
            self.free.push(empty);
        }
    }
}

/// Whether all that conflicts with one entry conflicts with a later one too: a strong read
/// conflicts with least.
#[inline]
fn stands_for(code: &Code, old: Reading, new: Reading) -> bool {
    let kind = |reading: Reading| (code.strength(reading.event), code.is_strong_write(reading.event));
    let (old, new) = (kind(old), kind(new));
    old == new || (old.0 > 0 && !old.1 && (new.0 == 0 || new.0 <= old.0))
}

/// Whether an entry comes after another of the same lanes by program order. Of several lanes that
/// read together, the first alone: the others find what it has left.
#[inline]
fn follows(code: &Code, old: Reading, new: Reading) -> bool {
    code.agent(old.event) == code.agent(new.event)
        && old.mask & !(new.mask & new.mask.wrapping_neg()) == 0
        && code.is_thread(code.local_of(new.event))
}

/// The widest cells of which an access is whole ones, as a logarithm.
fn fitting(address: u64, bytes: u32) -> u32 {
    (address | u64::from(bytes)).trailing_zeros().min(MAX_WIDTH)
}
