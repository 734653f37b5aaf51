//! Plans carried out by several processes, each with the memory of one device.
//!
//! Law: each process computes the messages that it sends and receives from the plan alone, so
//! nothing but elements is sent. Before the first step all processes compare what they are about to
//! do, and after the last they tell each other that it is done: either every process has its
//! result, or every process has an error that names a rank and a step. What is computed is what
//! [`Plan::simulate`] computes, to the bit.

mod environment;
mod frame;
mod processes;

use std::any::type_name;
use std::ops::AddAssign;

use bytemuck::Pod;

pub use environment::Place;
pub use processes::Processes;

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
        let mut memory = memory.to_vec();
        for (number, step) in self.steps().iter().enumerate() {
            let told = format!("step {}, {}", number + 1, step.kind);
            memory = step.exchange.run(engine, &told, &memory)?;
        }
        engine.agree("after the last step", "")?;
        Ok(memory)
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
        let (own, needed) = (engine.rank(), self.from().reach());
        let incoming = self.messages_to(own);
        let mut sends = Vec::new();
        for rank in (0..engine.ranks()).filter(|rank| *rank != own) {
            let mut bytes = Vec::new();
            for message in self.messages_to(rank).iter().filter(|message| message.from == own) {
                if (memory.len() as i64) < needed {
                    return Err(MeshError::Memory { rank: own, elements: memory.len(), needed });
                }
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
        for message in incoming.iter().filter(|message| message.from != own) {
            let bytes = usize::try_from(message.footprint.size()).unwrap_or(0) * size_of::<T>();
            match receives.iter_mut().find(|(rank, _)| *rank == message.from) {
                Some((_, place)) => place.resize(place.len() + bytes, 0),
                None => receives.push((message.from, vec![0; bytes])),
            }
        }
        engine.exchange(step, &sends, &mut receives)?;
        let mut result = vec![T::zeroed(); usize::try_from(self.to().reach()).unwrap_or(0)];
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
