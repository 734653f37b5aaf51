//! The traffic of a warp's access to global and to shared memory.
//!
//! Law: global memory moves sectors of 32 bytes, four of which make a line; a request moves the
//! sectors that its lanes touch. Shared memory has 32 banks of 4 bytes. It serves lanes in phases:
//! eight lanes of 16 bytes together, sixteen of 8, otherwise all. A phase takes as many wavefronts
//! as the largest number of different words that are accessed in one bank. Lanes that access the
//! same word share it. Two phases of an ordinary load are merged if all lanes `i` and `i ^ 1`, or
//! all lanes `i` and `i ^ 2`, access the same address; an inactive lane counts as equal to its
//! partner. An H200 counts in this way (`scripts/sanitize-costs-on-device`).

/// Bytes of a sector of global memory.
pub const SECTOR_BYTES: u64 = 32;
/// Bytes of a line of global memory.
pub const LINE_BYTES: u64 = 128;
/// Banks of shared memory.
pub const BANKS: usize = 32;
/// Bytes of a word of a bank.
pub const WORD_BYTES: u64 = 4;
/// Bytes of a wavefront of shared memory: a word of each bank.
pub const WAVEFRONT_BYTES: u64 = BANKS as u64 * WORD_BYTES;

/// The traffic of accesses to global memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GlobalCount {
    /// The number of requests: warp instructions, boxes, or bulk copies.
    pub requests: u64,
    /// Bytes that lanes access. A byte that several lanes access counts several times.
    pub bytes: u64,
    /// Sectors of 32 bytes.
    pub sectors: u64,
    /// The least number of sectors that could hold the different bytes.
    pub least_sectors: u64,
    /// Lines of 128 bytes.
    pub lines: u64,
}

/// The traffic of accesses to shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedCount {
    /// The number of requests: warp instructions, boxes, or bulk copies.
    pub requests: u64,
    /// Bytes that lanes access. A byte that several lanes access counts several times.
    pub bytes: u64,
    /// Wavefronts: cycles of the banks.
    pub wavefronts: u64,
    /// The number of wavefronts without bank conflicts: one for each phase.
    pub least_wavefronts: u64,
}

impl GlobalCount {
    /// Adds another count.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.sectors += other.sectors;
        self.least_sectors += other.least_sectors;
        self.lines += other.lines;
    }
}

impl SharedCount {
    /// Adds another count.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.wavefronts += other.wavefronts;
        self.least_wavefronts += other.least_wavefronts;
    }

    /// The wavefronts that bank conflicts add.
    pub fn conflicts(&self) -> u64 {
        self.wavefronts - self.least_wavefronts
    }
}

/// The lanes of a mask.
pub(super) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}

/// The number of different values.
fn different(numbers: &mut [u64]) -> usize {
    numbers.sort_unstable();
    numbers.chunk_by(|a, b| a == b).count()
}

/// The traffic of a request to global memory, in which each lane of the mask accesses `bytes` bytes
/// at its address. An access must be in one sector: it is aligned to its size, which is at most 32
/// bytes. `sector` is called with each sector, as the address of its first byte divided by 32.
///
/// ```
/// use tilewright_sanitize::costs::global_request;
///
/// // A warp reads a column of rows of 256 bytes: a sector for each lane.
/// let column = std::array::from_fn(|lane| 256 * lane as u64);
/// let count = global_request(u32::MAX, &column, |_| 4, |_| ());
/// assert_eq!((count.sectors, count.least_sectors, count.lines, count.bytes), (32, 4, 32, 128));
/// ```
pub fn global_request(
    mask: u32,
    addresses: &[u64; 32],
    bytes: impl Fn(usize) -> u32,
    mut sector: impl FnMut(u64),
) -> GlobalCount {
    let mut wanted = [(0_u64, 0_u64); 32];
    let mut count = 0;
    let mut own = GlobalCount { requests: 1, ..GlobalCount::default() };
    for lane in lanes(mask) {
        let bytes = u64::from(bytes(lane));
        if bytes > 0 {
            wanted[count] = (addresses[lane], bytes);
            count += 1;
            own.bytes += bytes;
        }
    }
    let wanted = &mut wanted[..count];
    wanted.sort_unstable();
    let (mut end, mut different_bytes) = (0, 0);
    let (mut last_sector, mut last_line) = (u64::MAX, u64::MAX);
    for (address, bytes) in wanted.iter().copied() {
        // The bytes of this access that no earlier access has counted.
        let from = address.max(end);
        different_bytes += (address + bytes).saturating_sub(from);
        end = end.max(address + bytes);
        if address / SECTOR_BYTES != last_sector {
            last_sector = address / SECTOR_BYTES;
            own.sectors += 1;
            sector(last_sector);
        }
        if address / LINE_BYTES != last_line {
            last_line = address / LINE_BYTES;
            own.lines += 1;
        }
    }
    own.least_sectors = different_bytes.div_ceil(SECTOR_BYTES);
    own
}

/// The traffic of contiguous bytes of global memory. `sector` is called with each sector.
pub(super) fn global_span(address: u64, bytes: u64, sector: impl FnMut(u64)) -> GlobalCount {
    if bytes == 0 {
        return GlobalCount::default();
    }
    let blocks = |size: u64| (address + bytes - 1) / size - address / size + 1;
    let first = address / SECTOR_BYTES;
    let sectors = blocks(SECTOR_BYTES);
    (first..first + sectors).for_each(sector);
    GlobalCount { requests: 1, bytes, sectors, least_sectors: bytes.div_ceil(SECTOR_BYTES), lines: blocks(LINE_BYTES) }
}

/// The number of lanes in a phase of shared memory, if each lane accesses this many bytes.
pub fn phase_lanes(bytes: u32) -> usize {
    match bytes {
        0..=4 => 32,
        5..=8 => 16,
        9..=16 => 8,
        _ => 4,
    }
}

/// The wavefronts of the lanes of a phase; and the least number, which is 1 if there is any lane.
fn phase(mask: u32, addresses: &[u64; 32], bytes: u32) -> (u64, u64) {
    let mut words = [0; 64];
    let mut count = 0;
    for lane in lanes(mask) {
        let first = addresses[lane] / WORD_BYTES;
        for word in 0..u64::from(bytes).div_ceil(WORD_BYTES) {
            words[count] = first + word;
            count += 1;
        }
    }
    let words = &mut words[..count];
    different(words);
    let mut banks = [0_u64; BANKS];
    let mut last = u64::MAX;
    for word in words.iter().copied() {
        if word != last {
            banks[word as usize % BANKS] += 1;
            last = word;
        }
    }
    (banks.into_iter().max().unwrap_or(0), u64::from(count > 0))
}

/// Whether each lane of a mask accesses the same address as the lane whose number differs in one
/// bit, if that lane is active.
fn is_paired(mask: u32, addresses: &[u64; 32], bit: usize) -> bool {
    lanes(mask).all(|lane| mask >> (lane ^ bit) & 1 == 0 || addresses[lane] == addresses[lane ^ bit])
}

/// The traffic of a request to shared memory, in which each lane of the mask accesses `bytes`
/// bytes, at most 32, at its address. `loads` is true for an ordinary load.
///
/// ```
/// use tilewright_sanitize::costs::shared_request;
///
/// // A column of rows of 32 words: all lanes want bank 0.
/// let column = std::array::from_fn(|lane| 128 * lane as u64);
/// let count = shared_request(u32::MAX, &column, 4, true);
/// assert_eq!((count.wavefronts, count.least_wavefronts, count.conflicts()), (32, 1, 31));
/// // Rows of 33 words spread them over the banks.
/// let padded = std::array::from_fn(|lane| 132 * lane as u64);
/// assert_eq!(shared_request(u32::MAX, &padded, 4, true).wavefronts, 1);
/// ```
pub fn shared_request(mask: u32, addresses: &[u64; 32], bytes: u32, loads: bool) -> SharedCount {
    let together = phase_lanes(bytes);
    let mut own =
        SharedCount { requests: 1, bytes: u64::from(mask.count_ones()) * u64::from(bytes), ..SharedCount::default() };
    for lanes in served_together(mask, addresses, together, loads) {
        let (wavefronts, least) = phase(lanes, addresses, bytes);
        own.wavefronts += wavefronts;
        own.least_wavefronts += least;
    }
    own
}

/// The masks of the phases, if a phase has this many lanes.
fn served_together(mask: u32, addresses: &[u64; 32], together: usize, loads: bool) -> impl Iterator<Item = u32> {
    let part = move |first: usize, count: usize| mask & (u32::MAX >> (32 - count)) << first;
    let is_paired = loads && [1, 2].iter().any(|bit| is_paired(mask, addresses, *bit));
    (0..32).step_by((2 * together).min(32)).flat_map(move |first| {
        let both = part(first, (2 * together).min(32));
        let is_one = together == 32 || is_paired && matches!(together, 8 | 16);
        match is_one {
            true => [both, 0],
            false => [part(first, together), part(first + together, together)],
        }
    })
}

/// The traffic of contiguous bytes of shared memory.
pub(super) fn shared_span(bytes: u64) -> SharedCount {
    let wavefronts = bytes.div_ceil(WAVEFRONT_BYTES);
    SharedCount { requests: 1, bytes, wavefronts, least_wavefronts: wavefronts }
}
