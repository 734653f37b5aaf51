//! A step in which each message is one contiguous piece.
//!
//! Law: the elements of a message are sent in the order of the sender's addresses. If they are
//! contiguous there, they are sent in place; otherwise a kernel packs them. If they are contiguous
//! at the receiver, in the same order, they are received in place; otherwise a kernel unpacks them.
//! So a message that is contiguous on both sides needs no kernel.

use crate::Transfer;
use tilewright_kernel::Element;
use tilewright_layout::{Layout, LayoutError};
use tilewright_mesh::{Exchange, Footprint, MeshError, Message};
use tilewright_planners::{Planned, Planner};

use super::{Combine, MAX_LAUNCHES, Pull, ReshardError, compact, place, pulls_of, sides, tuple};

/// The memory that bytes are sent from, or received in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageMemory {
    /// The memory of the tensor itself.
    Tensor,
    /// A separate buffer.
    Buffer,
}

/// A step in which each message is one contiguous piece.
#[derive(Debug)]
pub struct Packed {
    /// For each rank, the kernels that pack elements from the tensor before the step into the send
    /// buffer.
    pub packs: Vec<Vec<Planned>>,
    /// The transfers.
    pub transfers: Vec<Transfer>,
    /// The memory that is sent from.
    pub sent: MessageMemory,
    /// The memory that is received in.
    pub received: MessageMemory,
    /// For each rank, the kernels that unpack elements. Kernels whose source is another rank read
    /// the receive buffer.
    pub places: Vec<Vec<Pull>>,
    /// For each rank, the number of elements of the send buffer and of the receive buffer.
    pub room: Vec<[i64; 2]>,
}

/// The step for elements of a type, on devices like the machine of a planner.
///
/// Errors: as [`super::pulls`].
pub fn packed(exchange: &Exchange, element: Element, planner: &dyn Planner) -> Result<Packed, ReshardError> {
    let ranks = exchange.from().mesh().size();
    let messages: Vec<Vec<Message>> = (0..ranks).map(|rank| exchange.messages_to(rank)).collect();
    let remote = || messages.iter().flatten().filter(|message| message.from != message.to);
    let sent = if remote().all(|message| lies_whole(&message.footprint, false)) {
        MessageMemory::Tensor
    } else {
        MessageMemory::Buffer
    };
    let whole = exchange.added() == 1 && remote().all(|message| lies_whole(&message.footprint, true));
    let received = if whole { MessageMemory::Tensor } else { MessageMemory::Buffer };
    let mut step = Packed {
        packs: (0..ranks).map(|_| Vec::new()).collect(),
        transfers: Vec::new(),
        sent,
        received,
        places: Vec::new(),
        room: vec![[0, 0]; ranks],
    };
    let bytes = |elements: i64| elements as u64 * u64::from(element.bytes());
    // The offset of each remote message in the receive buffer.
    let mut begins: Vec<((usize, usize), i64)> = Vec::new();
    for (rank, messages) in messages.iter().enumerate() {
        for (number, message) in messages.iter().enumerate().filter(|(_, message)| message.from != rank) {
            let size = message.footprint.size();
            let first = message.footprint.starts.first().copied().unwrap_or_default();
            let [mut read, mut write] = [first.0, first.1];
            if sent == MessageMemory::Buffer {
                let (Some(room), Some(packs)) = (step.room.get_mut(message.from), step.packs.get_mut(message.from))
                else {
                    continue;
                };
                read = room[0];
                room[0] += size;
                let (from, to) = (sides(&message.footprint)?[0].clone(), in_order(&message.footprint)?);
                let run = to.size();
                for (at, (start, _)) in message.footprint.starts.iter().enumerate() {
                    if packs.len() >= MAX_LAUNCHES {
                        let limit = MAX_LAUNCHES as i64;
                        return Err(MeshError::TooLarge { what: "kernels of a device in one step", limit }.into());
                    }
                    let there = place(&to, read + run * at as i64)?;
                    packs.push(planner.relayout((place(&from, *start)?, element), (there, element))?);
                }
            }
            if received == MessageMemory::Buffer {
                let Some(room) = step.room.get_mut(rank) else { continue };
                write = room[1];
                room[1] += size;
                begins.push(((rank, number), write));
            }
            let (read, write, bytes) = (bytes(read), bytes(write), bytes(size));
            step.transfers.push(Transfer { from: message.from, to: rank, read, write, bytes });
        }
    }
    for (rank, messages) in messages.into_iter().enumerate() {
        let begin = |message: &Message, all: &[Message]| {
            let number = all.iter().position(|own| own == message)?;
            begins.iter().find(|(own, _)| *own == (rank, number)).map(|(_, begin)| *begin)
        };
        let all = messages.clone();
        let own = |message: &Message| received == MessageMemory::Buffer || message.from == rank;
        let messages: Vec<Message> = messages.into_iter().filter(own).collect();
        let places = pulls_of(messages, (exchange.added(), Combine::Sum), element, planner, |message, run| {
            if message.from == rank {
                let start = message.footprint.starts.get(run).map_or(0, |start| start.0);
                return Ok((sides(&message.footprint)?[0].clone(), start));
            }
            let order = in_order(&message.footprint)?;
            let start = begin(message, &all).unwrap_or(0) + order.size() * run as i64;
            Ok((order, start))
        });
        step.places.push(places?);
    }
    Ok(step)
}

/// The modes of a footprint with their strides on one side, sorted by the stride in the memory that
/// is read.
fn by_address(footprint: &Footprint, written: bool) -> Vec<(i64, i64)> {
    let mut modes = footprint.modes.clone();
    modes.sort_by_key(|mode| mode.1);
    modes.into_iter().map(|(extent, from, to)| (extent, if written { to } else { from })).collect()
}

/// Whether the elements of a message are contiguous, in the order in which they are sent.
fn lies_whole(footprint: &Footprint, written: bool) -> bool {
    let mut next = 1;
    let compact = by_address(footprint, written).into_iter().all(|(extent, step)| {
        let follows = step == next;
        next *= extent;
        follows
    });
    compact && footprint.starts.len() == 1
}

/// The layout of the elements of a run in the send buffer, mode by mode as in the footprint.
fn in_order(footprint: &Footprint) -> Result<Layout, LayoutError> {
    tuple(compact(footprint.modes.iter().map(|(extent, from, _)| (*extent, *from))))
}
