//! Shadow memory: for each byte, the last write and the reads since.
//!
//! A page covers 4096 bytes. Its cells are as wide as the accesses allow: the first access sets the
//! width, and a narrower access splits the cells. A cell holds its last weak write, and the reads
//! and strong writes since, which do not conflict with each other. Each of these entries has a
//! warp, an instruction, a count, and a mask of lanes. An entry that is ordered after another one
//! of its kind replaces it, because whatever comes after the later one comes after both.

use super::event::{Code, Event};

/// Bytes of a page.
pub(super) const PAGE_BYTES: u64 = 1 << PAGE_SHIFT;
/// The logarithm to base 2 of [`PAGE_BYTES`].
pub(super) const PAGE_SHIFT: u32 = 12;
/// The width of the widest cell, as a logarithm to base 2 of bytes.
const MAX_WIDTH: u32 = 4;
/// The most readers of one cell that are kept, in addition to the last one. A cell has more only if
/// so many unordered warps read it. Then the first ones are kept.
const MAX_READERS: usize = 64;
/// The same limit while the uses of reads are watched, because then few readers replace others.
const MAX_WATCHED_READERS: usize = 2048;

/// Which earlier reads a new read replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    /// All that are ordered before it.
    All,
    /// Those of its own instruction. The uses of some reads are watched, and this one counts as
    /// used.
    Own,
    /// None, because its own use is watched.
    Nothing,
}

/// A read, or a strong write, of a cell by lanes of a warp.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// The event, with lane 0.
    pub(super) event: Event,
    /// The mask of the lanes.
    pub(super) mask: u32,
}

/// The history of some bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    /// The last weak write.
    pub(super) write: Event,
    /// The last read or strong write since; none if its mask is 0.
    read: Event,
    mask: u32,
    /// One more than the index of the first link to other reads; 0 if there are none.
    more: u32,
}

/// One of the other reads of a cell. All links of a page are in one list, so that cells need no
/// allocations.
#[derive(Debug, Clone, Copy)]
struct Link {
    reading: Reading,
    /// One more than the index of the next link; 0 if there is none.
    next: u32,
}

impl Cell {
    /// Whether there were reads or strong writes since the last weak write.
    #[inline]
    pub(super) fn has_readings(&self) -> bool {
        self.mask != 0 || self.more != 0
    }

    /// The only read or strong write; None if there are several.
    #[inline]
    pub(super) fn single(&self) -> Option<Reading> {
        (self.more == 0).then_some(Reading { event: self.read, mask: self.mask })
    }

    /// Records a weak write to a cell without links.
    #[inline]
    pub(super) fn write_after_all(&mut self, event: Event) {
        (self.write, self.mask) = (event, 0);
    }

    /// Records a read that replaces or equals the last one, in a cell without links.
    #[inline]
    pub(super) fn read_after_all(&mut self, new: Reading) {
        let same = if self.read == new.event { self.mask } else { 0 };
        (self.read, self.mask) = (new.event, same | new.mask);
    }
}

/// A page of memory.
#[derive(Debug)]
pub(super) struct Page {
    /// The width of a cell, as a logarithm to base 2 of bytes.
    width: u32,
    cells: Vec<Cell>,
    links: Vec<Link>,
    /// One more than the index of the first free link; 0 if there is none.
    free: u32,
    /// Whether it holds an mbarrier, whose bytes no ordinary access may touch.
    pub(super) barriers: bool,
    /// Whether strong accesses have written to it.
    pub(super) strong: bool,
    /// Whether a cell had more readers than are kept while uses were watched.
    pub(super) lost: bool,
}

impl Page {
    /// A page whose first access has this size and address.
    pub(super) fn new(initial: Event, address: u64, bytes: u32) -> Page {
        let width = fitting(address, bytes);
        let cell = Cell { write: initial, read: Event::NONE, mask: 0, more: 0 };
        let cells = vec![cell; (PAGE_BYTES >> width) as usize];
        Page { width, cells, links: Vec::new(), free: 0, barriers: false, strong: false, lost: false }
    }

    /// Splits cells so that an access covers whole cells.
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
        for at in 0..self.cells.len() {
            for piece in 0..pieces {
                let mut cell = self.cells[at];
                if piece > 0 && cell.more > 0 {
                    let others: Vec<Reading> = self.chain(cell.more).collect();
                    cell.more = 0;
                    for reading in others.into_iter().rev() {
                        cell.more = self.new_link(Link { reading, next: cell.more });
                    }
                }
                cells.push(cell);
            }
        }
        (self.width, self.cells) = (width, cells);
    }

    /// The cells of an access; None if the cells are wider than the access.
    #[inline(always)]
    pub(super) fn cells_that_fit(&mut self, address: u64, bytes: u32) -> Option<&mut [Cell]> {
        if (address | u64::from(bytes)) & ((1 << self.width) - 1) != 0 {
            return None;
        }
        let cells = self.cells_of(address, bytes);
        self.cells.get_mut(cells)
    }

    /// The cells of an access that covers whole cells.
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
        let first = std::mem::take(&mut cell.more);
        if first > 0 {
            let mut last = first;
            while self.links[last as usize - 1].next > 0 {
                last = self.links[last as usize - 1].next;
            }
            self.links[last as usize - 1].next = self.free;
            self.free = first;
        }
    }

    /// Records that bytes were written, by a strong write.
    #[inline]
    pub(super) fn set_written(&mut self, at: usize) {
        let write = &mut self.cells[at].write;
        if *write == Event::NONE {
            *write = Event::INITIAL;
        }
        self.strong = true;
    }

    /// The only read since the last write; None if there are several.
    #[inline]
    pub(super) fn single(&self, at: usize) -> Option<Reading> {
        self.cells[at].single()
    }

    /// All reads since the last write.
    pub(super) fn readings(&self, at: usize) -> impl Iterator<Item = Reading> {
        let cell = &self.cells[at];
        let first = (cell.mask != 0).then_some(Reading { event: cell.read, mask: cell.mask });
        first.into_iter().chain(self.chain(cell.more))
    }

    /// Records a read. `is_before` says whether another read is ordered before it.
    #[inline]
    pub(super) fn note_read(
        &mut self,
        code: &Code,
        at: usize,
        new: Reading,
        stands: Stands,
        is_before: impl Fn(Reading) -> bool,
    ) {
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
            if stands_for(code, old, new, stands) && (follows(code, old, new) || is_before(old)) {
                (cell.read, cell.mask) = (new.event, new.mask);
                return;
            }
        }
        self.note_among(code, at, new, stands, is_before);
    }

    /// Adds a link with a reading, and returns its index plus one.
    fn new_link(&mut self, link: Link) -> u32 {
        match self.free.checked_sub(1) {
            Some(at) => {
                let own = &mut self.links[at as usize];
                self.free = std::mem::replace(own, link).next;
                at + 1
            }
            None => {
                self.links.push(link);
                self.links.len() as u32
            }
        }
    }

    /// The readings from a link on.
    fn chain(&self, first: u32) -> impl Iterator<Item = Reading> {
        let mut next = first;
        std::iter::from_fn(move || {
            let link = self.links.get(next.checked_sub(1)? as usize)?;
            next = link.next;
            Some(link.reading)
        })
    }

    fn note_among(
        &mut self,
        code: &Code,
        at: usize,
        new: Reading,
        stands: Stands,
        is_before: impl Fn(Reading) -> bool,
    ) {
        let Cell { read, mask, more, .. } = self.cells[at];
        if read == new.event {
            self.cells[at].mask |= new.mask;
            return;
        }
        let mut next = more;
        while next > 0 {
            let link = &mut self.links[next as usize - 1];
            if link.reading.event == new.event {
                link.reading.mask |= new.mask;
                return;
            }
            next = link.next;
        }
        let gone = |old: Reading| stands_for(code, old, new, stands) && (follows(code, old, new) || is_before(old));
        let most = if stands == Stands::All { MAX_READERS } else { MAX_WATCHED_READERS };
        // Removes the readings that the new one replaces. The others keep their order.
        let (mut first, mut last, mut count) = (0, 0, 0);
        let mut next = more;
        while next > 0 {
            let own = next;
            let link = &mut self.links[own as usize - 1];
            next = link.next;
            if gone(link.reading) {
                link.next = self.free;
                self.free = own;
                continue;
            }
            link.next = 0;
            self.append(&mut first, &mut last, own);
            count += 1;
        }
        if gone(Reading { event: read, mask }) {
            (self.cells[at].read, self.cells[at].mask) = (new.event, new.mask);
        } else if count < most {
            let own = self.new_link(Link { reading: new, next: 0 });
            self.append(&mut first, &mut last, own);
        } else {
            self.lost |= stands != Stands::All;
        }
        self.cells[at].more = first;
    }

    /// Appends a link to a chain.
    fn append(&mut self, first: &mut u32, last: &mut u32, own: u32) {
        match *last {
            0 => *first = own,
            last => self.links[last as usize - 1].next = own,
        }
        *last = own;
    }
}

/// Whether every access that conflicts with the old entry also conflicts with the new one. A strong
/// read conflicts with the fewest accesses.
#[inline]
fn stands_for(code: &Code, old: Reading, new: Reading, stands: Stands) -> bool {
    match stands {
        Stands::All => {}
        Stands::Own if code.at(old.event) == code.at(new.event) => {}
        Stands::Own | Stands::Nothing => return false,
    }
    let kind = |reading: Reading| (code.strength(reading.event), code.is_strong_write(reading.event));
    let (old, new) = (kind(old), kind(new));
    old == new || (old.0 > 0 && !old.1 && (new.0 == 0 || new.0 <= old.0))
}

/// Whether an entry comes after another one of the same lanes by program order. If several lanes
/// read together, only the first one counts: the others see the entry that it has made.
#[inline]
fn follows(code: &Code, old: Reading, new: Reading) -> bool {
    code.agent(old.event) == code.agent(new.event)
        && old.mask & !(new.mask & new.mask.wrapping_neg()) == 0
        && code.is_thread(code.local_of(new.event))
}

/// The widest cells such that an access covers whole cells, as a logarithm to base 2 of bytes.
fn fitting(address: u64, bytes: u32) -> u32 {
    (address | u64::from(bytes)).trailing_zeros().min(MAX_WIDTH)
}
