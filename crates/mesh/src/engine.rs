//! Plans carried out by several processes, each with the memory of one device.
//!
//! Law: each process computes the messages that it sends and receives from the plan alone, so
//! nothing but elements is sent. Before the first step all processes compare what they are about to
//! do, and after the last they tell each other that it is done: either every process has its
//! result, or every process has an error that names a rank and a step. What is computed is what
//! [`Plan::simulate`] computes, to the bit.

mod environment;
mod frame;
#[cfg(all(feature = "mpi", unix))]
mod mpi;
mod processes;

use std::any::type_name;
use std::ops::AddAssign;

use bytemuck::Pod;

pub use environment::Place;
#[cfg(all(feature = "mpi", unix))]
pub use mpi::Mpi;
pub use processes::{Interrupter, Processes};

use crate::error::MeshError;
use crate::plan::Plan;
use crate::step::Exchange;

/// Processes that send each other bytes.
///
/// The calls of all processes follow one another alike. A call ends when all that it receives is
/// there, or with an error on every process.
pub trait Engine {
    /// The number of this process.
    fn rank(&self) -> usize;

    /// How many processes there are.
    fn ranks(&self) -> usize;

    /// Sends each of `sends`, a rank and the bytes for it, and fills each of `receives`, a rank and
    /// the place for its bytes. At most one message goes from one rank to another; `step` says in
    /// errors what is going on.
    ///
    /// Errors: a process that is gone, or does not answer ([`MeshError::Lost`]).
    fn exchange(
        &mut self,
        step: &str,
        sends: &[(usize, Vec<u8>)],
        receives: &mut [(usize, Vec<u8>)],
    ) -> Result<(), MeshError>;

    /// Waits until every process says the same text, lines of `name: value`.
    ///
    /// Errors: a process that says something else ([`MeshError::Differs`]), is gone, or does not
    /// answer.
    fn agree(&mut self, step: &str, text: &str) -> Result<(), MeshError>;

    /// Tells all others why this process gives up: their calls end with the same error, and so does
    /// every later call of this process.
    fn give_up(&mut self, error: MeshError) -> MeshError;
}

impl Plan {
    /// The memory of this process after the plan; what no element lies in is 0.
    ///
    /// Errors: a process with another version, mesh, layout or type of elements
    /// ([`MeshError::Differs`]); one that is gone or does not answer ([`MeshError::Lost`]); less
    /// memory than the layout needs; as many processes as the mesh has devices are needed.
    pub fn run<T: Pod + AddAssign>(&self, engine: &mut impl Engine, memory: &[T]) -> Result<Vec<T>, MeshError> {
        let size = self.from().mesh().size();
        if engine.ranks() != size {
            return Err(MeshError::Processes { processes: engine.ranks(), devices: size });
        }
        engine.agree("before step 1", &self.contract(type_name::<T>()))?;
        let mut held: Option<Vec<T>> = None;
        for (number, step) in self.steps().iter().enumerate() {
            let told = format!("step {}, {}", number + 1, step.kind);
            held = Some(step.exchange.run(engine, &told, held.as_deref().unwrap_or(memory))?);
        }
        engine.agree("after the last step", "")?;
        Ok(held.unwrap_or_else(|| memory.to_vec()))
    }

    /// What all processes have to agree on.
    fn contract(&self, element: &str) -> String {
        let mut contract = format!(
            "version: {}\nmesh: {}\nelement: {element}\nlayout before: {}\nlayout after: {}\n",
            env!("CARGO_PKG_VERSION"),
            self.from().mesh(),
            self.from(),
            self.to(),
        );
        for (number, step) in self.steps().iter().enumerate() {
            contract.push_str(&format!("step {}: {} to {}\n", number + 1, step.kind, step.exchange.to()));
        }
        contract
    }
}

impl Exchange {
    /// The memory of this process after the step.
    fn run<T: Pod + AddAssign>(&self, engine: &mut impl Engine, step: &str, memory: &[T]) -> Result<Vec<T>, MeshError> {
        match self.run_with(engine, step, memory) {
            // What the engine itself did not find out the others do not know yet.
            Err(error @ (MeshError::Memory { .. } | MeshError::OutOfMemory { .. })) => Err(engine.give_up(error)),
            done => done,
        }
    }

    fn run_with<T: Pod + AddAssign>(
        &self,
        engine: &mut impl Engine,
        step: &str,
        memory: &[T],
    ) -> Result<Vec<T>, MeshError> {
        let (own, needed) = (engine.rank(), self.from().reach());
        let incoming = self.messages_to(own);
        let mut sends = Vec::new();
        for rank in (0..engine.ranks()).filter(|rank| *rank != own) {
            let messages: Vec<_> = self.messages_to(rank).into_iter().filter(|message| message.from == own).collect();
            if !messages.is_empty() && (memory.len() as i64) < needed {
                return Err(MeshError::Memory { rank: own, elements: memory.len(), needed });
            }
            let all: usize = messages.iter().map(|message| elements(message.footprint.size())).sum();
            let mut bytes: Vec<u8> = room(own, step, all.saturating_mul(size_of::<T>()))?;
            for message in messages {
                message.footprint.each(|read, _| {
                    if let Some(element) = usize::try_from(read).ok().and_then(|read| memory.get(read)) {
                        bytes.extend_from_slice(bytemuck::bytes_of(element));
                    }
                });
            }
            if !bytes.is_empty() {
                sends.push((rank, bytes));
            }
        }
        let mut receives: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut wanted: Vec<(usize, usize)> = Vec::new();
        for message in incoming.iter().filter(|message| message.from != own) {
            let bytes = elements(message.footprint.size()).saturating_mul(size_of::<T>());
            match wanted.iter_mut().find(|(rank, _)| *rank == message.from) {
                Some((_, all)) => *all = all.saturating_add(bytes),
                None => wanted.push((message.from, bytes)),
            }
        }
        for (rank, bytes) in wanted {
            let mut place = room(own, step, bytes)?;
            place.resize(bytes, 0);
            receives.push((rank, place));
        }
        let all = elements(self.to().reach());
        let mut result = room(own, step, all)?;
        result.resize(all, T::zeroed());
        engine.exchange(step, &sends, &mut receives)?;
        let mut taken = vec![0; receives.len()];
        for message in &incoming {
            let from = receives.iter().position(|(rank, _)| *rank == message.from);
            message.footprint.each(|read, write| {
                let element = match from.and_then(|from| Some((receives.get(from)?, taken.get_mut(from)?))) {
                    Some(((_, bytes), taken)) => {
                        let element = bytes.get(*taken..*taken + size_of::<T>());
                        *taken += size_of::<T>();
                        element.map(bytemuck::pod_read_unaligned)
                    }
                    None => usize::try_from(read).ok().and_then(|read| memory.get(read)).copied(),
                };
                let place = usize::try_from(write).ok().and_then(|write| result.get_mut(write));
                if let (Some(element), Some(place)) = (element, place) {
                    if message.add { *place += element } else { *place = element }
                }
            });
        }
        Ok(result)
    }
}

/// A number of elements as one of memory; one that memory cannot have is refused there.
fn elements(count: i64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Room for so many elements, if there is memory.
fn room<T>(rank: usize, step: &str, count: usize) -> Result<Vec<T>, MeshError> {
    let mut room = Vec::new();
    let bytes = count.saturating_mul(size_of::<T>());
    let refused = |_| MeshError::OutOfMemory { rank, step: step.into(), bytes };
    room.try_reserve_exact(count).map_err(refused)?;
    Ok(room)
}

/// The first line in which what a process says differs from what the first says.
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

/// Name and value of a line.
fn part(line: Option<&str>) -> (&str, &str) {
    line.and_then(|line| line.split_once(": ")).unwrap_or(("text", "nothing"))
}
