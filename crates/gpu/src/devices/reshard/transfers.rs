//! Large messages, which copy engines transfer between devices.
//!
//! Law: a message is divided into parts, each of which consists of contiguous lines at one stride
//! in the source. Parts whose lines are also contiguous in the destination are copied there
//! directly. All others are copied to a compact staging buffer, from which a kernel copies each
//! part to the result while the next one is in flight. Copy engines use links better than kernels
//! that read other devices, but take longer to start: about 10 us for each copy between two H200,
//! in which a link transfers 4 MB. So parts are large, and the last ones small, because no transfer
//! overlaps the unpacking of the last one.

use crate::Lines;
use crate::memory::KERNEL_ALIGNMENT_BYTES;
use tilewright_kernel::Element;
use tilewright_layout::{Layout, Leaf, Tree};
use tilewright_mesh::{Exchange, Footprint};
use tilewright_planners::{Planned, Planner};

use super::{Combine, Pull, ReshardError, place, pulls_of, where_they_lie};

/// The least size, in bytes, of a message that copy engines transfer directly to its destination.
/// Between two H200 this was slower at 8 MiB, and faster from 32 MiB on.
pub const MIN_DIRECT_BYTES: u64 = 32 << 20;
/// The least size, in bytes, of a message that copy engines transfer through a staging buffer, in
/// parts, because lines that are contiguous in the source are not contiguous in the destination.
pub const MIN_STAGED_BYTES: u64 = 128 << 20;
/// The least size of a line for copy engines, in bytes.
pub const MIN_LINE_BYTES: u64 = 4096;
/// The least and the greatest size of a staged part, in bytes. A part is half of the rest of a
/// message, within these limits.
const PART: (i64, i64) = (16 << 20, 128 << 20);
/// Long modes are split at multiples of this number of positions.
const WHOLE: i64 = 64;
/// The most parts of a message.
const MAX_PARTS: usize = 1024;

/// A strided transfer by a copy engine: contiguous lines of another device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineCopy {
    /// The rank that has the lines.
    pub source: usize,
    /// The offset of the first byte in the source.
    pub read: u64,
    /// The lines. In a staging buffer, they have no gaps.
    pub lines: Lines,
    /// The offset of the first byte in the destination: in the tensor, or in the staging buffer's
    /// part.
    pub write: u64,
    /// The index of the kernel that unpacks them; None if they are copied to their destination.
    pub put: Option<usize>,
}

/// The transfers to a device in a step.
#[derive(Debug)]
pub struct Transfers {
    /// The kernels that read other devices and this one.
    pub pulls: Vec<Pull>,
    /// The transfers by copy engines, in order.
    pub engine_copies: Vec<EngineCopy>,
    /// The kernels that unpack staged parts.
    pub puts: Vec<Planned>,
    /// The bytes of the largest staged part.
    pub room: u64,
}

/// The transfers by which a device gets its tensor after a step. Copy engines transfer messages of
/// at least `least[0]` bytes directly, if their lines are contiguous in the destination, and others
/// of at least `least[1]` bytes in staged parts; lines must be long enough.
///
/// Errors: as [`super::pulls`].
///
/// ```
/// use tilewright::kernel::Element;
/// use tilewright::kernel::machine::Machine;
/// use tilewright::mesh::{Exchange, Mesh, ShardedLayout};
/// use tilewright::reshard::{Combine, transfers};
///
/// # fn main() -> Result<(), tilewright::reshard::ReshardError> {
/// let h200 = Machine::named("H200").unwrap();
/// let mesh: Mesh = "tp=2".parse()?;
/// let rows = ShardedLayout::parse(&mesh, "((2048,2),4096):((4096,1@tp),1)")?;
/// let all = ShardedLayout::parse(&mesh, "(4096,4096):(4096,1) copied 2:1@tp")?;
/// let step = transfers(&Exchange::new(&rows, &all)?, 0, Element::F32, &h200, Combine::Sum, [1 << 20; 2])?;
/// // The rows of device 1 come in one piece; a kernel moves those of device 0.
/// let copies = &step.engine_copies;
/// assert_eq!((copies.len(), copies[0].lines.count, step.pulls.len()), (1, 1, 1));
/// # Ok(())
/// # }
/// ```
pub fn transfers(
    exchange: &Exchange,
    rank: usize,
    element: Element,
    planner: &dyn Planner,
    combine: Combine,
    least: [u64; 2],
) -> Result<Transfers, ReshardError> {
    let bytes = |elements: i64| elements as u64 * u64::from(element.bytes());
    let (mut engine_copies, mut puts, mut room) = (Vec::new(), Vec::new(), 0);
    // The shapes for which kernels have been planned.
    let mut known: Vec<(Vec<Mode>, i64)> = Vec::new();
    let mut left = Vec::new();
    for message in exchange.messages_to(rank) {
        let is_remote = exchange.added() == 1 && message.from != rank;
        let is_large = least.map(|least| is_remote && bytes(message.footprint.size()) >= least);
        let Some(parts) = parts(&message.footprint, element, is_large) else {
            left.push(message);
            continue;
        };
        for Part { read, write, modes, lines, in_place } in parts {
            let (source, read) = (message.from, bytes(read));
            if in_place {
                engine_copies.push(EngineCopy { source, read, lines, write: bytes(write), put: None });
                continue;
            }
            let behind = write % (KERNEL_ALIGNMENT_BYTES / i64::from(element.bytes()));
            room = room.max(lines.count * lines.bytes);
            let number = known.iter().position(|(of, begin)| *of == modes && *begin == behind);
            if number.is_none() {
                let (from, to) = put_layouts(&modes)?;
                puts.push(planner.relayout(((&from).into(), element), (place(&to, behind)?, element))?);
                known.push((modes, behind));
            }
            let put = Some(number.unwrap_or(puts.len() - 1));
            engine_copies.push(EngineCopy { source, read, lines, write: bytes(write - behind), put });
        }
    }
    // Each device begins with its neighbour, so that not all devices read from the same one.
    let ranks = exchange.from().mesh().size();
    engine_copies.sort_by_key(|copy| (copy.source + ranks - rank) % ranks);
    let pulls = pulls_of(left, (exchange.added(), combine), element, planner, where_they_lie)?;
    Ok(Transfers { pulls, engine_copies, puts, room })
}

/// A mode: extent, stride in the source, and stride in the destination.
type Mode = (i64, i64, i64);

/// A part of a message: its first offsets, in elements, its modes, and its lines.
struct Part {
    read: i64,
    write: i64,
    modes: Vec<Mode>,
    lines: Lines,
    in_place: bool,
}

/// The limits of parts.
struct Limits {
    /// Whether parts are copied directly to their destination.
    in_place: bool,
    /// The least and the greatest number of elements of a part, and the bytes of an element.
    least: i64,
    most: i64,
    width: i64,
    /// The least number of bytes of a line.
    line: u64,
}

/// The parts of a message, for direct or staged transfer; None if lines are short, or parts are too
/// many.
fn parts(footprint: &Footprint, element: Element, may: [bool; 2]) -> Option<Vec<Part>> {
    let mut modes: Vec<Mode> = footprint.modes.iter().copied().filter(|mode| mode.0 > 1).collect();
    modes.sort_by_key(|mode| mode.1);
    let modes = joined(modes, |last, next| last.1 * last.0 == next.1 && last.2 * last.0 == next.2);
    let width = i64::from(element.bytes());
    let beside = (PART.0 / width, PART.1 / width);
    let ways = [(true, (i64::MAX, i64::MAX)), (false, beside)].into_iter().zip(may).filter(|(_, may)| *may);
    ways.map(|(way, _)| way).find_map(|(in_place, (least, most))| {
        let mut parts = Vec::new();
        let limits = Limits { in_place, least, most, width, line: MIN_LINE_BYTES };
        let cut = |start: &(i64, i64)| cut(&modes, *start, &limits, &mut parts);
        footprint.starts.iter().map(cut).collect::<Option<Vec<()>>>()?;
        Some(parts)
    })
}

/// Merges neighbouring modes that form one mode.
fn joined(modes: Vec<Mode>, goes_on: impl Fn(&Mode, &Mode) -> bool) -> Vec<Mode> {
    let mut joined: Vec<Mode> = Vec::new();
    for mode in modes {
        match joined.last_mut() {
            Some(last) if goes_on(last, &mode) => last.0 *= mode.0,
            _ => joined.push(mode),
        }
    }
    joined
}

/// Splits along the outermost mode until each part has lines at one stride and at most
/// `limits.most` elements, and the last parts are small.
fn cut(modes: &[Mode], (read, write): (i64, i64), limits: &Limits, parts: &mut Vec<Part>) -> Option<()> {
    let Limits { in_place, least, most, width, line } = *limits;
    let size: i64 = modes.iter().map(|mode| mode.0).product();
    let mut push = |modes: Vec<Mode>, read: i64, write: i64| {
        let lines = lines(&modes, in_place, width)?;
        let is_long = lines.bytes >= line && parts.len() < MAX_PARTS;
        is_long.then(|| parts.push(Part { read, write, modes, lines, in_place }))
    };
    let is_lines = lines(modes, in_place, width).is_some();
    let Some(((extent, from, to), inner)) = modes.split_last().filter(|_| size > least || !is_lines) else {
        return push(modes.to_vec(), read, write);
    };
    let of_one = size / extent;
    if of_one <= most && is_lines {
        let mut first = 0;
        while first < *extent {
            let left = extent - first;
            let half = ((left + 1) / 2).clamp((least / of_one).max(1), most / of_one).min(left);
            // The rest begins at a multiple of `WHOLE`, so that accesses can be wide.
            let half = if half < left && half > WHOLE { half - half % WHOLE } else { half };
            let modes = inner.iter().copied().chain([(half, *from, *to)]).collect();
            push(modes, read + first * from, write + first * to)?;
            first += half;
        }
        return Some(());
    }
    (0..*extent).try_for_each(|at| cut(inner, (read + at * from, write + at * to), limits, parts))
}

/// Modes as contiguous lines, sorted by stride in the source. The destination is the result, or a
/// compact buffer. None if the lines have more than one stride.
fn lines(modes: &[Mode], in_place: bool, width: i64) -> Option<Lines> {
    let mut bytes = width;
    let whole = modes.iter().take_while(|(extent, from, to)| {
        let goes_on = from * width == bytes && (!in_place || to * width == bytes);
        bytes *= if goes_on { *extent } else { 1 };
        goes_on
    });
    let whole = whole.count();
    let outer = modes.get(whole..).unwrap_or_default().to_vec();
    let outer = joined(outer, |last, next| last.1 * last.0 == next.1 && (!in_place || last.2 * last.0 == next.2));
    let (count, read, written) = match outer[..] {
        [] => (1, bytes, bytes),
        [(extent, from, to)] => (extent, from * width, if in_place { to * width } else { bytes }),
        _ => return None,
    };
    let [count, bytes, read, written] = [count, bytes, read, written].map(|number| u64::try_from(number).ok());
    Some(Lines { count: count?, bytes: bytes?, read: read?, written: written? })
}

/// The layouts of the elements of a part in the staging buffer and in the result.
fn put_layouts(modes: &[Mode]) -> Result<(Layout, Layout), ReshardError> {
    if modes.is_empty() {
        return Ok((Layout::unit(), Layout::unit()));
    }
    let mut next = 1;
    let beside = modes.iter().map(|(extent, ..)| {
        let leaf = Leaf { extent: *extent, stride: next };
        next *= extent;
        leaf
    });
    let beside: Vec<_> = beside.collect();
    let to = modes.iter().map(|(extent, _, to)| Leaf { extent: *extent, stride: *to });
    Ok((Layout::from_tree(Tree::flat(beside)?)?, Layout::from_tree(Tree::flat(to)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The positions that parts read and write, by definition.
    fn places(parts: &[Part]) -> Vec<(i64, i64)> {
        let mut places = Vec::new();
        for Part { read, write, modes, .. } in parts {
            let part = Footprint { starts: vec![(*read, *write)], modes: modes.clone() };
            part.each(|read, write| places.push((read, write)));
        }
        places.sort_unstable();
        places
    }

    #[test]
    fn parts_are_the_message_in_lines_within_their_limits() {
        let footprints: [&[Mode]; 6] = [
            &[(64, 1, 1)],
            &[(8, 1, 1), (6, 16, 8)],
            &[(8, 1, 6), (6, 8, 1)],
            &[(4, 1, 1), (5, 4, 100), (3, 40, 20), (2, 200, 4)],
            &[(16, 1, 9), (3, 32, 3), (3, 96, 1)],
            &[(2, 1, 50), (7, 2, 7), (7, 14, 1)],
        ];
        let mut cut_apart = 0;
        for modes in footprints {
            let whole = Footprint { starts: vec![(3, 5)], modes: modes.to_vec() };
            let mut right = Vec::new();
            whole.each(|read, write| right.push((read, write)));
            right.sort_unstable();
            let limits = [(i64::MAX, i64::MAX), (1, 1), (3, 7), (6, 24), (1, i64::MAX), (i64::MAX, i64::MAX)];
            for (number, (least, most)) in limits.into_iter().enumerate() {
                let (mut parts, width, in_place) = (Vec::new(), 4, number == 0);
                let limits = Limits { in_place, least, most, width, line: 4 };
                cut(modes, (3, 5), &limits, &mut parts).unwrap();
                assert_eq!(places(&parts), right, "{modes:?}, {in_place}, {most}");
                cut_apart += usize::from(parts.len() > 1);
                for Part { read, write, modes, lines, .. } in &parts {
                    // Byte by byte: what the lines copy, in order.
                    let mut copied = Vec::new();
                    for line in 0..lines.count {
                        for at in (0..lines.bytes).step_by(4) {
                            copied.push((line * lines.read + at, line * lines.written + at));
                        }
                    }
                    let size: i64 = modes.iter().map(|mode| mode.0).product();
                    assert!(copied.len() as i64 == size && size <= most);
                    let mut wanted = Vec::new();
                    let part = Footprint { starts: vec![(0, 0)], modes: modes.clone() };
                    let mut next = 0;
                    part.each(|from, to| {
                        wanted.push((4 * from as u64, if in_place { 4 * to as u64 } else { 4 * next }));
                        next += 1;
                    });
                    copied.sort_unstable();
                    wanted.sort_unstable();
                    assert_eq!(copied, wanted, "{read} {write} {modes:?}");
                }
            }
        }
        assert!(cut_apart > 10, "{cut_apart}");
    }

    #[test]
    fn parts_are_half_of_what_is_left_within_their_limits() {
        let mib =
            |parts: &[Part]| parts.iter().map(|part| (part.lines.count * part.lines.bytes) >> 20).collect::<Vec<_>>();
        // Lines of 16 KiB that are not contiguous in the destination; 512 MiB in total.
        let turned = Footprint { starts: vec![(0, 0)], modes: vec![(4096, 1, 65536), (32768, 8192, 1)] };
        let parts = parts(&turned, Element::F32, [true; 2]).unwrap();
        assert_eq!(mib(&parts), [128, 128, 128, 64, 32, 16, 16]);
        assert!(parts.iter().all(|part| !part.in_place));
    }

    #[test]
    fn short_lines_are_left_to_kernels() {
        let short = Footprint { starts: vec![(0, 0)], modes: vec![(512, 1, 1), (4096, 1024, 512)] };
        assert!(parts(&short, Element::F32, [true; 2]).is_none());
        let long = Footprint { starts: vec![(0, 0)], modes: vec![(1024, 1, 1), (4096, 2048, 1024)] };
        let parts = parts(&long, Element::F32, [true; 2]).unwrap();
        let [Part { lines, in_place: true, .. }] = parts[..] else { panic!("{}", parts.len()) };
        assert_eq!(lines, Lines { count: 4096, bytes: 4096, read: 8192, written: 4096 });
    }
}
