//! Carries out plans by several processes, each of which holds the memory of one device.
//!
//! Law: each process computes the messages that it sends and receives from the plan alone, so only
//! elements are sent. Before the first step, all processes compare their plans, and after the last
//! one they confirm completion: either every process has its result, or every process has an error
//! that names a rank and a step. The result equals that of [`Plan::simulate`], bit for bit.

mod environment;
mod frame;
#[cfg(all(feature = "mpi", unix))]
mod mpi;
mod processes;
mod token;

use std::any::type_name;
use std::ops::{AddAssign, Range};

use bytemuck::Pod;

pub use environment::Place;
#[cfg(all(feature = "mpi", unix))]
pub use mpi::Mpi;
pub use processes::{Interrupter, Processes};
pub use token::Token;

use crate::devices::{Devices, holds};
use crate::error::MeshError;
use crate::mesh::Mesh;
use crate::plan::Plan;
use crate::step::{Exchange, Message};

/// A transport: processes that send bytes to each other.
///
/// All processes make the same calls in the same order. A call returns when everything that it
/// receives has arrived, or with an error on every process.
pub trait Engine {
    /// The rank of this process.
    fn rank(&self) -> usize;

    /// The number of processes.
    fn ranks(&self) -> usize;

    /// Sends each of `sends`, a rank and its bytes, and fills each of `receives`, a rank and the
    /// buffer for its bytes. There is at most one message from one rank to another. Error messages
    /// name the current `step`.
    ///
    /// Errors: a process has exited or does not respond ([`MeshError::Lost`]).
    fn exchange(
        &mut self,
        step: &str,
        sends: &[(usize, Vec<u8>)],
        receives: &mut [(usize, Vec<u8>)],
    ) -> Result<(), MeshError>;

    /// As [`Engine::exchange`], while this process works: `meanwhile` produces the messages to
    /// send, and receives those that arrive. Each of `targets` gets one message, and each of
    /// `sources` sends the number of bytes given with it.
    ///
    /// A process that computes for longer than the patience of the others before it sends a message
    /// is treated as lost.
    ///
    /// Errors: those of [`Engine::exchange`]; those of `meanwhile`.
    fn exchange_while(
        &mut self,
        step: &str,
        targets: &[usize],
        sources: &[(usize, usize)],
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<(), MeshError>;

    /// Waits until every process has passed the same text, lines of `name: value`.
    ///
    /// Errors: a process passes another text ([`MeshError::Differs`]), has exited, or does not
    /// respond.
    fn agree(&mut self, step: &str, text: &str) -> Result<(), MeshError>;

    /// Sends the reason why this process gives up to all others. Their calls return the same error,
    /// and so does every later call of this process.
    fn give_up(&mut self, error: MeshError) -> MeshError;
}

/// The work of a process while bytes are in flight.
pub trait Meanwhile {
    /// Works for a short time; None if there is nothing to do until more bytes arrive.
    ///
    /// Errors: the work cannot be done; then all processes end with that error.
    fn work(&mut self) -> Result<Option<Progress>, MeshError>;

    /// Receives the bytes of a rank.
    ///
    /// Errors: those of [`Meanwhile::work`].
    fn take(&mut self, rank: usize, bytes: Vec<u8>) -> Result<(), MeshError>;
}

/// The result of one call of [`Meanwhile::work`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// There is nothing to send yet.
    Worked,
    /// These bytes are ready to be sent to this rank.
    Ready(usize, Vec<u8>),
}

/// The error if a [`Meanwhile`] has finished without a message that other processes wait for.
fn missing_message(step: &str) -> MeshError {
    MeshError::Operation { what: format!("{step}: a message was not made").into() }
}

impl Plan {
    /// The memory of this process after the plan; offsets without an element are 0.
    ///
    /// Errors: a process has another version, mesh, layout or type of elements
    /// ([`MeshError::Differs`]); one has exited or does not respond ([`MeshError::Lost`]); the
    /// memory is smaller than the layout requires; the number of processes differs from the number
    /// of devices of the mesh.
    pub fn run<T: Pod + AddAssign>(&self, engine: &mut impl Engine, memory: &[T]) -> Result<Vec<T>, MeshError> {
        let contract = format!("{}{}", element_line::<T>(), self.contract());
        beside(engine, self.from().mesh(), &contract, |own| {
            let held = own.carry(self, "", &[memory], |sum, summand| *sum += summand)?;
            Ok(held.into_iter().next().unwrap_or_default())
        })
    }

    /// The contract that all processes must agree on before the plan is carried out: lines of
    /// `name: value` with the mesh, both layouts and the steps.
    ///
    /// ```
    /// use tilewright_mesh::{Machine, Mesh, ShardedLayout, reshard};
    ///
    /// let mesh: Mesh = "x=2".parse().unwrap();
    /// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    /// let (halves, whole) = (parse("(4,2):(1,1@x)"), parse("(4,2):(1,4) copied 2:1@x"));
    /// let contract = reshard(&halves, &whole, 4, &Machine::HGX_H200).unwrap().contract();
    /// assert!(contract.starts_with("mesh: x=2\nlayout before: (4,2):(1,1@x)\n"));
    /// assert!(contract.ends_with("step 1: all-gather to (4,2):(1,4) copied 2:1@x\n"));
    /// ```
    pub fn contract(&self) -> String {
        let mut contract =
            format!("mesh: {}\nlayout before: {}\nlayout after: {}\n", self.from().mesh(), self.from(), self.to());
        for (number, step) in self.steps().iter().enumerate() {
            contract.push_str(&format!("step {}: {} to {}\n", number + 1, step.kind, step.exchange.to()));
        }
        contract
    }
}

/// The line of the contract with the version and the type of elements.
pub(crate) fn element_line<T>() -> String {
    format!("version: {}\nelement: {}\n", env!("CARGO_PKG_VERSION"), type_name::<T>())
}

impl Exchange {
    /// The number of elements of memory that a device must have before the step.
    pub(crate) fn needed(&self, rank: usize) -> i64 {
        let layout = self.from();
        if layout.is_uneven() { layout.reach_on(rank) } else { layout.reach() }
    }

    /// The memory of this process after the step.
    pub(crate) fn run<T: Pod>(
        &self,
        engine: &mut impl Engine,
        step: &str,
        memory: &[T],
        combine: &impl Fn(&mut T, T),
    ) -> Result<Vec<T>, MeshError> {
        let own = engine.rank();
        let incoming = self.messages_to(own);
        let sends = self.packed(own, step, memory)?;
        if incoming.iter().any(|message| message.from == own) {
            holds(own, memory, self.needed(own))?;
        }
        let mut receives: Vec<(usize, Vec<u8>)> = Vec::new();
        for (rank, bytes) in awaited::<T>(&incoming, own) {
            let mut place = room(own, step, bytes)?;
            place.resize(bytes, 0);
            receives.push((rank, place));
        }
        let all = elements(self.to().reach());
        let mut result = room(own, step, all)?;
        result.resize(all, T::zeroed());
        engine.exchange(step, &sends, &mut receives)?;
        unpack(&incoming, own, memory, &receives, &mut result, combine);
        Ok(result)
    }

    /// The bytes that a process sends to each other process that needs elements of it.
    pub(crate) fn packed<T: Pod>(
        &self,
        own: usize,
        step: &str,
        memory: &[T],
    ) -> Result<Vec<(usize, Vec<u8>)>, MeshError> {
        let mut sends = Vec::new();
        for rank in (0..self.from().mesh().size()).filter(|rank| *rank != own) {
            let messages: Vec<_> = self.messages_to(rank).into_iter().filter(|message| message.from == own).collect();
            if messages.is_empty() {
                continue;
            }
            holds(own, memory, self.needed(own))?;
            let bytes = pack(&messages, own, step, memory)?;
            if !bytes.is_empty() {
                sends.push((rank, bytes));
            }
        }
        Ok(sends)
    }
}

/// Packs the elements of messages to one process, one message after another.
pub(crate) fn pack<T: Pod>(messages: &[Message], own: usize, step: &str, memory: &[T]) -> Result<Vec<u8>, MeshError> {
    let all: usize = messages.iter().map(|message| elements(message.footprint.size())).sum();
    let mut bytes: Vec<u8> = room(own, step, all.saturating_mul(size_of::<T>()))?;
    for message in messages {
        message.footprint.each(|read, _| {
            if let Some(element) = usize::try_from(read).ok().and_then(|read| memory.get(read)) {
                bytes.extend_from_slice(bytemuck::bytes_of(element));
            }
        });
    }
    Ok(bytes)
}

/// Unpacks messages, in their order. Messages of this process are read from its memory, the others
/// from the received bytes.
pub(crate) fn unpack<T: Pod>(
    messages: &[Message],
    own: usize,
    memory: &[T],
    receives: &[(usize, Vec<u8>)],
    result: &mut [T],
    combine: &impl Fn(&mut T, T),
) {
    let mut taken = vec![0; receives.len()];
    for message in messages {
        let from = receives.iter().position(|(rank, _)| message.from != own && *rank == message.from);
        message.footprint.each(|read, write| {
            let element = match from.and_then(|from| Some((receives.get(from)?, taken.get_mut(from)?))) {
                Some(((_, bytes), taken)) => next(bytes, taken),
                None => usize::try_from(read).ok().and_then(|read| memory.get(read)).copied(),
            };
            let place = usize::try_from(write).ok().and_then(|write| result.get_mut(write));
            if let (Some(element), Some(place)) = (element, place) {
                if message.add { combine(place, element) } else { *place = element }
            }
        });
    }
}

/// The number of bytes that each other process sends to this one.
pub(crate) fn awaited<T>(incoming: &[Message], own: usize) -> Vec<(usize, usize)> {
    let mut awaited: Vec<(usize, usize)> = Vec::new();
    for message in incoming.iter().filter(|message| message.from != own) {
        let bytes = elements(message.footprint.size()).saturating_mul(size_of::<T>());
        match awaited.iter_mut().find(|(rank, _)| *rank == message.from) {
            Some((_, all)) => *all = all.saturating_add(bytes),
            None => awaited.push((message.from, bytes)),
        }
    }
    awaited
}

/// Reads the next element of bytes, and advances `taken`, the number of bytes that have been read.
pub(crate) fn next<T: Pod>(bytes: &[u8], taken: &mut usize) -> Option<T> {
    let element = bytes.get(*taken..*taken + size_of::<T>());
    *taken += size_of::<T>();
    element.map(bytemuck::pod_read_unaligned)
}

/// A number of elements as usize; if it does not fit, a number that is too large for any memory,
/// which is then refused.
pub(crate) fn elements(count: i64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Allocates room for this many elements; refuses if there is not enough memory.
pub(crate) fn room<T>(rank: usize, step: &str, count: usize) -> Result<Vec<T>, MeshError> {
    let mut room = Vec::new();
    let bytes = count.saturating_mul(size_of::<T>());
    let refused = |_| MeshError::OutOfMemory { rank, step: step.into(), bytes };
    room.try_reserve_exact(count).map_err(refused)?;
    Ok(room)
}

/// The first line in which the contract of a process differs from that of the first process.
fn difference(own: &str, other: &str, rank: usize) -> Option<MeshError> {
    if own == other {
        return None;
    }
    let (mut ours, mut theirs) = (own.lines(), other.lines());
    loop {
        match (ours.next(), theirs.next()) {
            (Some(one), Some(another)) if one == another => {}
            (one, another) => {
                let ((what, own), (_, other)) = (part(one.or(another)), part(another));
                return Some(MeshError::Differs { rank, what: what.into(), own: own.into(), other: other.into() });
            }
        }
    }
}

/// The name and the value of a line.
fn part(line: Option<&str>) -> (&str, &str) {
    line.and_then(|line| line.split_once(": ")).unwrap_or(("text", "nothing"))
}

/// The device of this process, with the engine that connects it to the others.
pub(crate) struct Own<'a, E: Engine>(pub &'a mut E);

impl<E: Engine> Devices for Own<'_, E> {
    fn ranks(&self) -> Range<usize> {
        self.0.rank()..self.0.rank() + 1
    }

    fn carry<T: Pod>(
        &mut self,
        plan: &Plan,
        of: &str,
        memory: &[&[T]],
        combine: impl Fn(&mut T, T),
    ) -> Result<Vec<Vec<T>>, MeshError> {
        let operand = memory.first().copied().unwrap_or_default();
        let mut held: Option<Vec<T>> = None;
        for (number, step) in plan.steps().iter().enumerate() {
            let name = step_name(number, of, step.kind);
            held = Some(step.exchange.run(self.0, &name, held.as_deref().unwrap_or(operand), &combine)?);
        }
        Ok(vec![held.unwrap_or_else(|| operand.to_vec())])
    }
}

/// The name of a step in error messages.
pub(crate) fn step_name(number: usize, of: &str, kind: crate::step::StepKind) -> String {
    let between = if of.is_empty() { "" } else { " of " };
    format!("step {}{between}{of}, {kind}", number + 1)
}

/// Carries out `work` on the device of this process. All processes agree on `contract` before, and
/// confirm completion after it. An error of one process ends the work of all.
pub(crate) fn beside<E: Engine, R>(
    engine: &mut E,
    mesh: &Mesh,
    contract: &str,
    work: impl FnOnce(&mut Own<'_, E>) -> Result<R, MeshError>,
) -> Result<R, MeshError> {
    if engine.ranks() != mesh.size() {
        return Err(MeshError::Processes { processes: engine.ranks(), devices: mesh.size() });
    }
    engine.agree("before step 1", contract)?;
    let done = work(&mut Own(engine)).map_err(|error| engine.give_up(error))?;
    engine.agree("after the last step", "")?;
    Ok(done)
}
