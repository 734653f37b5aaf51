//! The cost of accesses to global memory.
//!
//! Law: a request transfers the 32-byte sectors that its lanes access, in lines of 128 bytes. Its
//! efficiency is
//!
//! ```text
//! efficiency = different bytes accessed / (32 * sectors)
//! ```
//!
//! A request of this many different bytes needs at least `ceil(bytes / 32)` sectors. The widest
//! load or store of a thread has the largest power of two of values, up to 16 bytes, such that all
//! of its vectors are contiguous and aligned.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::analysis::access::Access;
use crate::analysis::error::AnalysisError;
use crate::analysis::storage::Storage;
use crate::analysis::units::{Lines, Number, Units, Visit, with_units};
use crate::{Extent, LayoutError};

/// The bytes of a sector.
pub const SECTOR_BYTES: i64 = 32;
/// The bytes of a cache line.
pub const LINE_BYTES: i64 = 128;

/// The cost of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// The number of the group of lanes, which is a warp.
    pub group: i64,
    /// The index of the load or store of its threads.
    pub instruction: i64,
    /// The number of lanes.
    pub lanes: i64,
    /// The number of different bytes that are accessed.
    pub bytes: i64,
    /// The number of sectors that are accessed.
    pub sectors: i64,
    /// The number of lines that are accessed.
    pub lines: i64,
}

impl Request {
    /// The sum of the bytes that the lanes access; bytes that several lanes access count for each.
    pub fn asked(&self, access: &Access) -> i64 {
        self.lanes * access.bytes()
    }

    /// The least number of sectors for this number of bytes.
    pub fn ideal(&self) -> i64 {
        (self.bytes + SECTOR_BYTES - 1) / SECTOR_BYTES
    }

    /// The fraction of the transferred bytes that is accessed, from 0 to 1.
    pub fn efficiency(&self) -> f64 {
        ratio(self.bytes, self.sectors * SECTOR_BYTES)
    }
}

fn ratio(part: i64, whole: i64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// The cost of an access to global memory, request by request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalReport {
    requests: Vec<Request>,
}

impl GlobalReport {
    /// The requests, sorted by group, then by instruction.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// The number of sectors of all requests.
    pub fn sectors(&self) -> i64 {
        self.requests.iter().map(|request| request.sectors).sum()
    }

    /// The least number of sectors for the accessed bytes.
    pub fn ideal(&self) -> i64 {
        self.requests.iter().map(Request::ideal).sum()
    }

    /// The number of lines of all requests.
    pub fn lines(&self) -> i64 {
        self.requests.iter().map(|request| request.lines).sum()
    }

    /// The sum over the requests of their different bytes.
    pub fn bytes(&self) -> i64 {
        self.requests.iter().map(|request| request.bytes).sum()
    }

    /// The fraction of the transferred bytes that is accessed, from 0 to 1.
    pub fn efficiency(&self) -> f64 {
        ratio(self.bytes(), self.sectors() * SECTOR_BYTES)
    }

    /// The index of the first request with the least efficiency.
    pub fn worst(&self) -> usize {
        // The efficiencies are compared as fractions, so the comparison is exact.
        let worse = |a: &Request, b: &Request| (a.bytes * b.sectors).cmp(&(b.bytes * a.sectors));
        let numbered = self.requests.iter().enumerate();
        numbered.min_by(|a, b| worse(a.1, b.1).then(a.0.cmp(&b.0))).map_or(0, |(number, _)| number)
    }
}

/// The cost of an access to a tile in global memory, request by request.
///
/// Errors: as [`crate::analysis::bank_conflicts`], except those about banks.
///
/// ```
/// use tilewright_layout::analysis::{Access, Storage, global_access};
/// use tilewright_layout::Layout;
///
/// let matrix: Layout = "(32,64):(64,1)".parse().unwrap();
/// let storage = Storage::from(&matrix);
/// let rows = Access::rows(&matrix.shape(), 32, 1).unwrap();
/// assert_eq!(global_access(&storage, &rows).unwrap().efficiency(), 1.0);
/// let columns = Access::columns(&matrix.shape(), 32, 1).unwrap();
/// assert_eq!(global_access(&storage, &columns).unwrap().efficiency(), 0.125); // 4 of 32 bytes
/// ```
pub fn global_access(storage: &Storage, access: &Access) -> Result<GlobalReport, AnalysisError> {
    with_units(storage, access, LINE_BYTES, GlobalCount)
}

struct GlobalCount;

impl Visit for GlobalCount {
    type Output = Result<GlobalReport, AnalysisError>;

    fn visit<N: Number>(self, units: Units<'_, impl Fn(i64) -> Result<N, LayoutError>>) -> Self::Output {
        let access = units.access;
        let (bytes, lanes, threads) = (access.bytes(), access.lanes(), access.threads());
        let mut requests = Vec::new();
        let (mut seen, mut sectors, mut lines): (Vec<N>, Vec<N>, Vec<N>) = Default::default();
        for group in 0..access.groups() {
            let first = group * lanes;
            let here = lanes.min(threads - first);
            for instruction in 0..access.instructions() {
                seen.clear();
                sectors.clear();
                lines.clear();
                for thread in first..first + here {
                    let add = |all: &mut Vec<N>, new: N| {
                        // A unit is often the same as the one before.
                        for known in all.iter().rev() {
                            if units.same(known, &new, thread, instruction)? {
                                return Ok::<_, AnalysisError>(());
                            }
                        }
                        all.push(new);
                        Ok(())
                    };
                    let unit = units.unit(thread, instruction)?;
                    let (sector, _) = units.line(&unit, SECTOR_BYTES / bytes, thread, instruction)?;
                    let (line, _) = units.line(&sector, LINE_BYTES / SECTOR_BYTES, thread, instruction)?;
                    add(&mut seen, unit)?;
                    add(&mut sectors, sector)?;
                    add(&mut lines, line)?;
                }
                requests.push(Request {
                    group,
                    instruction,
                    lanes: here,
                    bytes: seen.len() as i64 * bytes,
                    sectors: sectors.len() as i64,
                    lines: lines.len() as i64,
                });
            }
        }
        Ok(GlobalReport { requests })
    }
}

/// The bytes that one lane accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Taken {
    /// The lane, counted within its group.
    pub lane: i64,
    /// The index of the line in [`RequestUnits::lines`].
    pub line: usize,
    /// The first byte, counted from the start of the line.
    pub byte: i64,
}

/// The accesses of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestUnits {
    /// The lines of 128 bytes that are accessed, each as the address of its first byte; known
    /// addresses in increasing order.
    pub lines: Vec<Box<str>>,
    /// The bytes that each lane accesses, in the order of lanes.
    pub units: Vec<Taken>,
}

/// The accesses in request `number` of [`GlobalReport::requests`].
///
/// Errors: as [`global_access`]; there is no such request.
///
/// ```
/// use tilewright_layout::analysis::{Access, Storage, request_units};
/// use tilewright_layout::Layout;
///
/// let columns: Layout = "(4,64):(64,1)".parse().unwrap(); // rows of 256 bytes
/// let access = Access::columns(&columns.shape(), 32, 1).unwrap();
/// let first = request_units(&Storage::from(&columns), &access, 0).unwrap();
/// assert_eq!((&*first.lines[1], first.units[9].byte), ("256", 8)); // lane 9 has row 1 of column 2
/// ```
pub fn request_units(storage: &Storage, access: &Access, number: usize) -> Result<RequestUnits, AnalysisError> {
    with_units(storage, access, LINE_BYTES, ListedBytes { number })
}

struct ListedBytes {
    number: usize,
}

impl Visit for ListedBytes {
    type Output = Result<RequestUnits, AnalysisError>;

    fn visit<N: Number>(self, units: Units<'_, impl Fn(i64) -> Result<N, LayoutError>>) -> Self::Output {
        let access = units.access;
        let number = i64::try_from(self.number).unwrap_or(i64::MAX);
        let (group, instruction) = (number / access.instructions(), number % access.instructions());
        if group >= access.groups() {
            let wanted = "one that the access has";
            return Err(AnalysisError::Memory { what: "the request", value: number, wanted });
        }
        let first = group * access.lanes();
        let mut lines = Lines::new();
        let mut taken = Vec::new();
        for thread in first..access.threads().min(first + access.lanes()) {
            let unit = units.unit(thread, instruction)?;
            let (line, place) = units.line(&unit, LINE_BYTES / access.bytes(), thread, instruction)?;
            let line = lines.number(line, |a, b| units.same(a, b, thread, instruction))?;
            taken.push(Taken { lane: thread - first, line, byte: place * access.bytes() });
        }
        let (rank, lines) = lines.in_order(LINE_BYTES);
        for unit in &mut taken {
            unit.line = rank.get(unit.line).copied().unwrap_or(0);
        }
        Ok(RequestUnits { lines, units: taken })
    }
}

/// The widest loads and stores that are possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widths {
    /// For each thread, the number of elements of its widest load or store.
    pub threads: Vec<i64>,
    /// The largest power of two that divides the byte address of each access; None if all addresses
    /// are 0.
    pub alignment: Option<i64>,
}

impl Widths {
    /// The number of elements of the widest load or store that is possible for all threads.
    pub fn all(&self) -> i64 {
        self.threads.iter().copied().min().unwrap_or(1)
    }
}

/// The widest loads or stores with which threads can access their values, up to 16 bytes. The
/// vector width of `access` itself is ignored.
///
/// With numbers known at launch, the result holds for all their values.
///
/// Errors: as the layout's own; an index outside the tile.
///
/// ```
/// use tilewright_layout::analysis::{Access, Storage, widths};
/// use tilewright_layout::Layout;
///
/// let rows: Layout = "(32,12):(12,1)".parse().unwrap(); // rows of 12 halves begin at multiples of 8 bytes
/// let access = Access::thread_values(&rows.shape(), 16, 1).unwrap();
/// let widths = widths(&Storage::from(&rows), &access).unwrap();
/// assert_eq!((widths.all(), widths.alignment), (4, Some(8)));
/// ```
pub fn widths(storage: &Storage, access: &Access) -> Result<Widths, AnalysisError> {
    with_units(storage, access, LINE_BYTES, Widest)
}

struct Widest;

impl Visit for Widest {
    type Output = Result<Widths, AnalysisError>;

    fn visit<N: Number>(self, units: Units<'_, impl Fn(i64) -> Result<N, LayoutError>>) -> Self::Output {
        let access = units.access;
        let most = lowest_bit(access.values()).min(floor_power(128 / access.bits()));
        let mut threads = Vec::new();
        // The greatest common divisor of the offsets at which vectors begin.
        let mut common = 0_i64;
        for thread in 0..access.threads() {
            let mut widest = most;
            let mut before: Option<N> = None;
            let mut starts = N::zero();
            for value in 0..access.values() {
                let offset = units.offset(thread, value)?;
                let next = before.as_ref().and_then(|before| before.plus(&N::one()));
                if value > 0 && !next.is_some_and(|next| next.same(&offset).proved()) {
                    widest = widest.min(lowest_bit(value));
                }
                if value % widest == 0 {
                    starts = N::from(offset.shared_divisor(&starts).known().unwrap_or(1));
                    widest = widest.min(lowest_bit(starts.known().unwrap_or(1)));
                }
                before = Some(offset);
            }
            let start = starts.known().unwrap_or(1);
            common = start.shared_divisor(&common);
            threads.push(widest);
        }
        let alignment = match common {
            0 => None,
            common => Some(lowest_bit(common.saturating_mul(access.bits())).max(8) / 8),
        };
        Ok(Widths { threads, alignment })
    }
}

/// The greatest power of two that divides a number. For 0 the result is larger than any width.
fn lowest_bit(number: i64) -> i64 {
    1_i64.checked_shl(number.trailing_zeros()).filter(|bit| *bit > 0).unwrap_or(1 << 62)
}

/// The greatest power of two that is at most a number; 1 for numbers below 1.
fn floor_power(number: i64) -> i64 {
    1 << number.max(1).ilog2()
}
