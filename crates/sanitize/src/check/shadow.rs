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
/// How many where the uses of reads are watched, so that few readers stand for others.
const MAX_WATCHED_READERS: usize = 2048;

/// Which earlier reads a new one stands for, so that it takes their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    /// For all that are ordered before it.
    All,
    /// For those of its own instruction: the uses of some reads are watched, and this one counts as
    /// used.
    Own,
    /// For none: its own use is watched.
    Nothing,
}

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
    /// One more than the place of the first other read; 0 for none.
    more: u32,
}

/// One of the other reads of a cell. They are in one list of the page, so that a cell takes no
/// memory of its own.
#[derive(Debug, Clone, Copy)]
struct Link {
    reading: Reading,
    /// One more than the place of the next; 0 for none.
    next: u32,
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
    links: Vec<Link>,
    /// One more than the place of the first link that is free; 0 for none.
    free: u32,
    /// Whether it holds a barrier, whose bytes nobody else may touch.
    pub(super) barriers: bool,
    /// Whether strong accesses have written in it.
    pub(super) strong: bool,
    /// Whether a cell had more readers than are kept while uses are watched.
    pub(super) lost: bool,
}

impl Page {
    /// A page whose first access has some bytes at an address.
    pub(super) fn new(initial: Event, address: u64, bytes: u32) -> Page {
        let width = fitting(address, bytes);
        let cell = Cell { write: initial, read: Event::NONE, mask: 0, more: 0 };
        let cells = vec![cell; (PAGE_BYTES >> width) as usize];
        Page { width, cells, links: Vec::new(), free: 0, barriers: false, strong: false, lost: false }
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
        let first = (cell.mask != 0).then_some(Reading { event: cell.read, mask: cell.mask });
        first.into_iter().chain(self.chain(cell.more))
    }

    /// Notes a read; `is_before` says whether another is ordered before it.
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

    /// A link with a reading, of which its place and one is given.
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
        // Those that the new one stands for go; the others keep their order.
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

    /// Puts a link behind the last of a chain.
    fn append(&mut self, first: &mut u32, last: &mut u32, own: u32) {
        match *last {
            0 => *first = own,
            last => self.links[last as usize - 1].next = own,
        }
        *last = own;
    }
}

/// Whether all that conflicts with one entry conflicts with a later one too: a strong read
/// conflicts with least.
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
