//! Plans carried out in one process, on memory that represents that of the devices.
//!
//! Law: each device has its own memory, and devices exchange only the messages of the plan. The
//! results equal those of engines between processes, bit for bit: summands are added in the order
//! of the messages.

use std::ops::AddAssign;

use crate::devices::{holds, slices};
use crate::error::MeshError;
use crate::plan::Plan;
use crate::step::Exchange;

impl Exchange {
    /// The memory of all devices after the step; offsets without an element are 0.
    ///
    /// Errors: the memory of a device is smaller than its layout requires ([`MeshError::Memory`]).
    pub fn simulate<T: Copy + Default + AddAssign>(&self, memory: &[Vec<T>]) -> Result<Vec<Vec<T>>, MeshError> {
        self.simulate_by(&slices(memory), T::default(), &|sum: &mut T, summand| *sum += summand)
    }

    /// The memory of one device after the step, computed from that of all devices before it.
    ///
    /// Errors: those of [`Exchange::simulate`].
    pub fn simulate_one<T: Copy + Default + AddAssign>(
        &self,
        memory: &[Vec<T>],
        rank: usize,
    ) -> Result<Vec<T>, MeshError> {
        self.simulate_rank(&slices(memory), rank, T::default(), &|sum: &mut T, summand| *sum += summand)
    }

    /// The same for memory that is initialised with `zero`, and with another function to combine
    /// summands.
    pub(crate) fn simulate_by<T: Copy>(
        &self,
        memory: &[&[T]],
        zero: T,
        combine: &impl Fn(&mut T, T),
    ) -> Result<Vec<Vec<T>>, MeshError> {
        (0..self.from().mesh().size()).map(|rank| self.simulate_rank(memory, rank, zero, combine)).collect()
    }

    fn simulate_rank<T: Copy>(
        &self,
        memory: &[&[T]],
        rank: usize,
        zero: T,
        combine: &impl Fn(&mut T, T),
    ) -> Result<Vec<T>, MeshError> {
        let mut own = vec![zero; usize::try_from(self.to().reach()).unwrap_or(0)];
        for message in self.messages_to(rank) {
            let source = memory.get(message.from).copied().unwrap_or_default();
            holds(message.from, source, self.needed(message.from))?;
            message.footprint.each_in_blocks(|read, write| {
                let element = usize::try_from(read).ok().and_then(|read| source.get(read));
                let place = usize::try_from(write).ok().and_then(|write| own.get_mut(write));
                if let (Some(element), Some(place)) = (element, place) {
                    if message.add { combine(place, *element) } else { *place = *element }
                }
            });
        }
        Ok(own)
    }
}

impl Plan {
    /// The memory of all devices after the plan; offsets without an element are 0.
    ///
    /// Errors: those of [`Exchange::simulate`].
    ///
    /// ```
    /// use tilewright_mesh::{Machine, Mesh, ShardedLayout, reshard};
    ///
    /// let mesh: Mesh = "x=2".parse().unwrap();
    /// let rows = ShardedLayout::parse(&mesh, "((2,2),2):((1,1@x),2)").unwrap();
    /// let columns = ShardedLayout::parse(&mesh, "(4,2):(1,1@x)").unwrap();
    /// let plan = reshard(&rows, &columns, 4, &Machine::HGX_H200).unwrap();
    /// let memory = [vec![0, 1, 4, 5], vec![2, 3, 6, 7]];
    /// assert_eq!(plan.simulate(&memory).unwrap(), [[0, 1, 2, 3], [4, 5, 6, 7]]);
    /// ```
    pub fn simulate<T: Copy + Default + AddAssign>(&self, memory: &[Vec<T>]) -> Result<Vec<Vec<T>>, MeshError> {
        let Some((first, others)) = self.steps().split_first() else { return Ok(memory.to_vec()) };
        let mut memory = first.exchange.simulate(memory)?;
        for step in others {
            memory = step.exchange.simulate(&memory)?;
        }
        Ok(memory)
    }
}
