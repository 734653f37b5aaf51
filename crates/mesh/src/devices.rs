//! The devices on which plans are carried out: simulated devices in this process, or the device of
//! this process, together with other processes.
//!
//! Law: the computation of a device is written once, as a function of its rank and its memory. So
//! processes compute the same results as the simulation, bit for bit.

use std::ops::Range;

use bytemuck::Pod;

use crate::error::MeshError;
use crate::plan::Plan;

/// The devices whose memory is in this process.
pub(crate) trait Devices {
    /// The ranks of these devices.
    fn ranks(&self) -> Range<usize>;

    /// Carries out a plan; returns the memory of each device after it. `combine` combines summands;
    /// `of` is the name of the moved tensor in error messages.
    fn carry<T: Pod>(
        &mut self,
        plan: &Plan,
        of: &str,
        memory: &[&[T]],
        combine: impl Fn(&mut T, T),
    ) -> Result<Vec<Vec<T>>, MeshError>;
}

/// All devices of a mesh.
pub(crate) struct Simulated(pub usize);

impl Devices for Simulated {
    fn ranks(&self) -> Range<usize> {
        0..self.0
    }

    fn carry<T: Pod>(
        &mut self,
        plan: &Plan,
        _: &str,
        memory: &[&[T]],
        combine: impl Fn(&mut T, T),
    ) -> Result<Vec<Vec<T>>, MeshError> {
        let mut held: Option<Vec<Vec<T>>> = None;
        for step in plan.steps() {
            let now: Vec<&[T]> = held.as_ref().map_or(memory.to_vec(), |held| slices(held));
            held = Some(step.exchange.simulate_by(&now, T::zeroed(), &combine)?);
        }
        Ok(held.unwrap_or_else(|| memory.iter().map(|memory| memory.to_vec()).collect()))
    }
}

/// The memory of devices as slices.
pub(crate) fn slices<T>(memory: &[Vec<T>]) -> Vec<&[T]> {
    memory.iter().map(Vec::as_slice).collect()
}

/// Checks that the memory of a device has the size of its layout.
pub(crate) fn holds<T>(rank: usize, memory: &[T], needed: i64) -> Result<(), MeshError> {
    match (memory.len() as i64) < needed {
        true => Err(MeshError::Memory { rank, elements: memory.len(), needed }),
        false => Ok(()),
    }
}
