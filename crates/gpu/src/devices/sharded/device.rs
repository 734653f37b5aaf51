//! GEMM of sharded matrices over devices of this process with peer access.
//!
//! Law: a device has three streams: one copies operands from other devices, one multiplies, and one
//! multiplies pieces that are added to partial sums of other devices, so that transfers block
//! nothing. A piece begins when its inputs have arrived, which an event signals, on the same device
//! or on another; the host does not wait. The next GEMM overwrites a result only after it has been
//! read.

use std::fmt;

use crate::{Argument, Device, Event, GpuError, Memory, ModuleOptions, PeerMemory, Stream};
use tilewright_planners::gemm::Product;

use super::ShardedError;
use super::planned::{Arrival, Operand, PartialDestination, PieceProduct, ShardedPlan};
use crate::devices::gemm::DeviceProduct;
use crate::devices::reshard::as_many;

/// A compiled piece, and the event that signals its end.
struct Piece {
    product: DeviceProduct,
    operands: [Operand; 2],
    added: Vec<usize>,
    target: PartialDestination,
    done: Event,
}

impl Piece {
    /// Enqueues the kernels on a stream. They write to memory from byte `at` on.
    fn launch(
        &mut self,
        device: &Device,
        stream: &Stream,
        read: &[PeerMemory<'_>],
        (memory, at): (&mut Memory, u64),
    ) -> Result<(), GpuError> {
        let bytes = memory.bytes().saturating_sub(at);
        let mut written = memory.written_by(device)?.part(at, bytes)?;
        let arguments: Vec<Argument<'_>> = read.iter().map(Argument::from).collect();
        self.product.launch(stream, &arguments, &[Argument::from(&mut written)])?;
        stream.record(&self.done)
    }
}

/// A block of another device: the transfer, its memory on this device, and the event that signals
/// its arrival.
struct Copied {
    arrival: Arrival,
    memory: Memory,
    come: Event,
}

struct DeviceWork {
    device: Device,
    multiplies: Stream,
    adds: Stream,
    copies: Stream,
    arrivals: Vec<Copied>,
    pieces: Vec<Piece>,
    /// Events: when all pieces without remote partial sums are finished, and when all pieces are.
    multiplied: Event,
    done: Event,
}

/// A GEMM of sharded matrices, compiled for the devices of a mesh from a [`ShardedPlan`]. It can be
/// launched any number of times.
pub struct ShardedProduct {
    ranks: Vec<DeviceWork>,
    /// For each device, the buffers that receive partial sums of other devices.
    places: Vec<Vec<Memory>>,
}

impl ShardedProduct {
    /// Compiles a plan for devices in the order of ranks.
    ///
    /// Errors: the number of devices differs from the plan (E1110); there is not enough memory for
    /// the blocks of other devices; devices have no peer access, or the driver refuses a kernel.
    pub fn new(devices: &[Device], plan: &ShardedPlan) -> Result<ShardedProduct, ShardedError> {
        as_many(&[devices.len()], plan.ranks().len())?;
        let (mut ranks, mut places) = (Vec::new(), Vec::new());
        for (device, plan) in devices.iter().zip(plan.ranks()) {
            let options = ModuleOptions::default();
            let product = |product: &Product| DeviceProduct::of(device, product.clone(), &options);
            let piece = |piece: &PieceProduct| {
                let PieceProduct { operands, added, target, .. } = piece.clone();
                Ok(Piece { product: product(&piece.product)?, operands, added, target, done: device.mark()? })
            };
            let copied = |arrival: &Arrival| {
                let (arrival, memory) = (*arrival, device.allocate(arrival.bytes)?);
                Ok(Copied { arrival, memory, come: device.mark()? })
            };
            ranks.push(DeviceWork {
                device: device.clone(),
                multiplies: device.stream()?,
                adds: device.stream()?,
                copies: device.stream()?,
                arrivals: plan.arrivals.iter().map(copied).collect::<Result<_, GpuError>>()?,
                pieces: plan.pieces.iter().map(piece).collect::<Result<_, ShardedError>>()?,
                multiplied: device.mark()?,
                done: device.mark()?,
            });
            let memory = plan.places.iter().map(|bytes| device.allocate(*bytes));
            places.push(memory.collect::<Result<_, GpuError>>()?);
        }
        Ok(ShardedProduct { ranks, places })
    }

    /// Launches the GEMM, and returns at once. `a`, `b` and `d` are the memories of the devices, in
    /// the order of ranks. Work on other streams is not waited for.
    ///
    /// Errors: memory that is missing, too small, or of another device; devices without peer
    /// access; the driver refused.
    pub fn launch(&mut self, a: &[Memory], b: &[Memory], d: &mut [Memory]) -> Result<(), ShardedError> {
        let size = self.ranks.len();
        as_many(&[a.len(), b.len(), d.len()], size)?;
        for on in &mut self.ranks {
            // The blocks received for the previous GEMM have been read.
            on.copies.wait(&on.done)?;
            for Copied { arrival, memory, come } in &mut on.arrivals {
                let from = if arrival.is_b { b } else { a };
                let Some(from) = from.get(arrival.from) else { continue };
                let from = from.seen_by(&on.device)?.part(arrival.at, arrival.bytes)?;
                memory.written_by(&on.device)?.copy_from(&on.copies, &from)?;
                on.copies.record(come)?;
            }
        }
        // An event must be recorded before it is waited for. So the pieces that others wait for
        // come first.
        for first in [true, false] {
            for rank in 0..size {
                self.launch_pieces(rank, first, [a, b], d)?;
            }
        }
        for on in &self.ranks {
            on.multiplies.record(&on.multiplied)?;
            on.adds.wait(&on.multiplied)?;
            on.adds.record(&on.done)?;
        }
        Ok(())
    }

    /// Launches the pieces of a device on its stream: if `first`, those without remote partial
    /// sums, otherwise those that add them.
    fn launch_pieces(
        &mut self,
        rank: usize,
        first: bool,
        given: [&[Memory]; 2],
        d: &mut [Memory],
    ) -> Result<(), ShardedError> {
        let ShardedProduct { ranks, places } = self;
        if rank >= ranks.len() {
            return Ok(());
        }
        let (before, rest) = ranks.split_at_mut(rank);
        let Some((on, after)) = rest.split_first_mut() else { return Ok(()) };
        let DeviceWork { device, multiplies, adds, arrivals, pieces, .. } = on;
        let stream: &Stream = if first { multiplies } else { adds };
        for piece in pieces.iter_mut().filter(|piece| piece.added.is_empty() == first) {
            let mut seen: Vec<PeerMemory<'_>> = Vec::new();
            for (operand, memory) in piece.operands.iter().zip(given) {
                let (memory, at) = match operand {
                    Operand::Own(at) => (memory.get(rank), *at),
                    Operand::Arrived(number, at) => {
                        let copied = arrivals.get(*number);
                        if let Some(copied) = copied {
                            stream.wait(&copied.come)?;
                        }
                        (copied.map(|copied| &copied.memory), *at)
                    }
                };
                if let Some(memory) = memory {
                    seen.push(memory.seen_by(device)?.part(at, memory.bytes().saturating_sub(at))?);
                }
            }
            match piece.target {
                PartialDestination::Own(at) | PartialDestination::Other(_, at) => {
                    for number in &piece.added {
                        let sent = |other: &&Piece| other.target == PartialDestination::Place(rank, *number);
                        for sent in before.iter().chain(&*after).flat_map(|on| &on.pieces).filter(sent) {
                            stream.wait(&sent.done)?;
                        }
                        if let Some(memory) = places.get(rank).and_then(|places| places.get(*number)) {
                            seen.push(memory.seen_by(device)?);
                        }
                    }
                    let owner = if let PartialDestination::Other(other, _) = piece.target { other } else { rank };
                    if let Some(memory) = d.get_mut(owner) {
                        piece.launch(device, stream, &seen, (memory, at))?;
                    }
                }
                PartialDestination::Place(other, number) => {
                    // The partial sums sent for the previous GEMM have been added.
                    let owner = if other < rank { before.get(other) } else { after.get(other - rank - 1) };
                    let added = owner.into_iter().flat_map(|on| &on.pieces);
                    for added in added.filter(|own| own.added.contains(&number)) {
                        stream.wait(&added.done)?;
                    }
                    let place = places.get_mut(other).and_then(|places| places.get_mut(number));
                    if let Some(memory) = place {
                        piece.launch(device, stream, &seen, (memory, 0))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits until all devices are done.
    ///
    /// Errors: a kernel failed.
    pub fn wait(&self) -> Result<(), ShardedError> {
        self.ranks.iter().try_for_each(|on| Ok(on.device.synchronize()?))
    }
}

impl fmt::Debug for ShardedProduct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardedProduct({} devices)", self.ranks.len())
    }
}
