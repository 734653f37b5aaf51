//! Messages that copy engines bring.
//!
//! Law: a large message whose elements lie in lines is copied by the engines of the device that
//! needs it, which leave its processors to what moves in its own memory. Where the lines lie alike
//! after the step they are copied to their place; else beside the tensor, part by part, and put in
//! place by a relayout while the next part comes.

use tilewright_gpu::{Device, Event, GpuError, Lines, Memory, ModuleOptions, SizedKernel, Stream};
use tilewright_kernel::Element;
use tilewright_kernels::{Planned, relayout_for};
use tilewright_mesh::{Exchange, Footprint, Message};

use super::packed::in_order;
use super::{ReshardError, place, sides};

/// The least bytes of a message that engines bring: below, a kernel that reads the other device is
/// as fast.
pub const LEAST_BULK: i64 = 64 << 20;
/// The least bytes of a line.
const LINE: i64 = 2048;
/// In how many parts a message comes that is put in place after.
const PARTS: i64 = 4;

/// A part of a message, copied by engines.
#[derive(Debug)]
pub struct Bulk {
    /// The rank whose memory is read.
    pub from: usize,
    /// The first byte there.
    pub read: u64,
    /// Where the first byte goes: in the result, or beside it.
    pub written: u64,
    /// The lines.
    pub lines: Lines,
    /// What puts in place what came beside the tensor.
    pub then: Option<Planned>,
}

/// The parts of the messages of a step to a device that have `least` bytes or more and lie in lines,
/// and how many bytes come beside its tensor; what is left are the messages that kernels read.
///
/// Errors: as [`super::pulls`].
pub fn bulks(
    exchange: &Exchange,
    rank: usize,
    element: Element,
    processors: u32,
    least: i64,
) -> Result<(Vec<Bulk>, u64, Vec<Message>), ReshardError> {
    let bytes = i64::from(element.bytes());
    let (mut bulks, mut beside, mut left) = (Vec::new(), 0, Vec::new());
    for message in exchange.messages_to(rank) {
        let large = message.footprint.size().saturating_mul(bytes) >= least;
        if message.from == rank || exchange.added() > 1 || !large || message.footprint.starts.len() != 1 {
            left.push(message);
            continue;
        }
        if let Some(straight) = Straight::of(&message.footprint, bytes, true) {
            bulks.push(straight.bulk(&message, bytes, None, None));
            continue;
        }
        let parts = parted(&message.footprint);
        let straight: Option<Vec<Straight>> = parts.iter().map(|part| Straight::of(part, bytes, false)).collect();
        let Some(straight) = straight else {
            left.push(message);
            continue;
        };
        for (part, straight) in parts.iter().zip(straight) {
            let (from, [_, to]) = (in_order(part)?, sides(part)?);
            let write = part.starts.first().map_or(0, |start| start.1);
            let at = beside / bytes;
            let then = relayout_for(processors, place(&from, at)?, element, place(&to, write)?, element)?;
            let message = Message { footprint: part.clone(), ..message.clone() };
            bulks.push(straight.bulk(&message, bytes, Some(beside), Some(then)));
            // Each part begins where kernels are given memory.
            beside += (part.size() * bytes + 255) / 256 * 256;
        }
    }
    Ok((bulks, u64::try_from(beside).unwrap_or(0), left))
}

/// A footprint in parts along the mode with the largest step in the memory that is read.
fn parted(footprint: &Footprint) -> Vec<Footprint> {
    let modes = footprint.modes.iter().enumerate();
    let slowest = modes.filter(|(_, mode)| mode.0 > 1).max_by_key(|(_, mode)| mode.1).map(|(at, _)| at);
    let Some((slowest, (extent, read, write))) = slowest.and_then(|at| Some((at, *footprint.modes.get(at)?))) else {
        return vec![footprint.clone()];
    };
    let parts = (1..=PARTS).rev().find(|parts| extent % parts == 0).unwrap_or(1);
    let height = extent / parts;
    let part = |number: i64| {
        let mut part = footprint.clone();
        part.modes.iter_mut().skip(slowest).take(1).for_each(|mode| mode.0 = height);
        let moved =
            |start: &mut (i64, i64)| *start = (start.0 + number * height * read, start.1 + number * height * write);
        part.starts.iter_mut().for_each(moved);
        part
    };
    (0..parts).map(part).collect()
}

/// Elements that lie in lines where they are read.
struct Straight {
    elements: i64,
    count: i64,
    /// From line to line.
    read: i64,
    /// From line to line where they are written, if they come to their place.
    written: i64,
}

impl Straight {
    /// The lines of a run: elements that are neighbours, on both sides if they come to their place,
    /// then lines at one step.
    fn of(footprint: &Footprint, bytes: i64, to_place: bool) -> Option<Straight> {
        let mut modes: Vec<_> = footprint.modes.iter().filter(|mode| mode.0 > 1).copied().collect();
        modes.sort_by_key(|mode| mode.1);
        let mut line = 1;
        let mut rest = modes.iter().peekable();
        while let Some((extent, ..)) = rest.next_if(|mode| mode.1 == line && (mode.2 == line || !to_place)) {
            line *= extent;
        }
        let (mut count, mut steps) = (1, None);
        for (extent, read, write) in rest {
            let (first, across) = *steps.get_or_insert((*read, *write));
            if *read != first * count || to_place && *write != across * count {
                return None;
            }
            count *= extent;
        }
        let (read, across) = steps.unwrap_or((line, line));
        let apart = read >= line && (across >= line || !to_place);
        (line * bytes >= LINE && apart).then_some(Straight { elements: line, count, read, written: across })
    }

    fn bulk(&self, message: &Message, bytes: i64, beside: Option<i64>, then: Option<Planned>) -> Bulk {
        let number = |elements: i64| u64::try_from(elements * bytes).unwrap_or(0);
        let start = message.footprint.starts.first().copied().unwrap_or_default();
        let written = if beside.is_some() { self.elements } else { self.written };
        let lines = Lines {
            count: u64::try_from(self.count).unwrap_or(0),
            bytes: number(self.elements),
            read: number(self.read),
            written: number(written),
        };
        let at = beside.map_or(number(start.1), |at| u64::try_from(at).unwrap_or(0));
        Bulk { from: message.from, read: number(start.0), written: at, lines, then }
    }
}

/// The parts on their device.
pub(super) struct Arriving {
    copies: Stream,
    places: Stream,
    parts: Vec<Part>,
    beside: Memory,
}

/// A part: what it is, what puts it in place, when it has come, and when it is in place.
struct Part {
    bulk: Bulk,
    then: Option<SizedKernel>,
    come: Event,
    placed: Event,
}

impl Arriving {
    pub(super) fn new(device: &Device, bulks: Vec<Bulk>, beside: u64) -> Result<Arriving, GpuError> {
        let compiled =
            |planned: &Planned| device.compile(planned.kernel(), &ModuleOptions::default())?.at(planned.sizes());
        let part = |bulk: Bulk| {
            let then = bulk.then.as_ref().map(compiled).transpose()?;
            Ok(Part { bulk, then, come: device.event()?, placed: device.event()? })
        };
        let parts = bulks.into_iter().map(part).collect::<Result<_, GpuError>>()?;
        Ok(Arriving { copies: device.stream()?, places: device.stream()?, parts, beside: device.allocate(beside)? })
    }

    /// Gives the copies, and what puts them in place, to streams.
    pub(super) fn launch(&mut self, device: &Device, from: &[Memory], own: &mut Memory) -> Result<(), GpuError> {
        let Arriving { copies, places, parts, beside } = self;
        for Part { bulk, then, come, placed } in parts {
            let Some(memory) = from.get(bulk.from) else { continue };
            let seen = memory.seen_by(device)?.part(bulk.read, memory.bytes().saturating_sub(bulk.read))?;
            let into = if then.is_some() { &mut *beside } else { &mut *own };
            let room = into.bytes().saturating_sub(bulk.written);
            // What came before has been put in place.
            copies.wait(placed)?;
            into.written_by(device)?.part(bulk.written, room)?.copy_lines(copies, &seen, bulk.lines)?;
            if let Some(then) = then {
                copies.record(come)?;
                places.wait(come)?;
                then.launch(places, &[(&*beside).into(), (&mut *own).into()])?;
                places.record(placed)?;
            }
        }
        Ok(())
    }
}
