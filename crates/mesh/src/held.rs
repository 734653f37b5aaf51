//! The part of a tensor on a device.
//!
//! Law: different steps along an axis lead to different positions. So the position of a device
//! along an axis either determines the index of the device in each mode that steps along it, or
//! means that the device holds no element. The positions along all axes together determine the
//! elements, the copy and the summand of a device.

use crate::limits::MAX_AXES;
use crate::mesh::Mesh;
use crate::sharded::ShardedLayout;
use crate::uneven::Along;

/// The part of a tensor on a device: its index in each mode that steps along the mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    /// The index in each leaf of the elements; 0 for a leaf that steps along offsets.
    pub elements: Vec<i64>,
    /// The index in each mode of copies.
    pub copies: Vec<i64>,
    /// The index in each mode of summands.
    pub sums: Vec<i64>,
}

/// The role of a mode that steps along an axis.
#[derive(Debug, Clone, Copy)]
enum AxisRole {
    Element(usize),
    Copy(usize),
    Sum(usize),
}

/// A mode that steps along an axis: its role, its extent and its step.
type OnAxis = (AxisRole, i64, i64);

/// The map from devices to the parts that they hold.
#[derive(Debug, Clone)]
pub(crate) struct Holders {
    mesh: Mesh,
    corner: Vec<i64>,
    /// For each axis, the modes that step along it.
    modes: Vec<Vec<OnAxis>>,
    /// For each axis and position on it, the combined index of all its modes, the first mode
    /// fastest; None if no element is there.
    indices: Vec<Vec<Option<i64>>>,
    counts: [usize; 3],
}

impl Holders {
    pub fn of(layout: &ShardedLayout) -> Holders {
        let mut modes: Vec<Vec<OnAxis>> = vec![Vec::new(); layout.mesh.axes().len()];
        let mut note = |axis: usize, mode: OnAxis| modes.iter_mut().skip(axis).take(1).for_each(|list| list.push(mode));
        for (leaf, (extent, step)) in layout.elements.leaves().iter().enumerate() {
            if let Along::Axis(axis) = step.along {
                note(axis, (AxisRole::Element(leaf), *extent, step.by));
            }
        }
        for (at, mode) in layout.copies.iter().enumerate() {
            note(mode.axis, (AxisRole::Copy(at), mode.extent, mode.step));
        }
        for (at, mode) in layout.sums.iter().enumerate() {
            note(mode.axis, (AxisRole::Sum(at), mode.extent, mode.step));
        }
        let along = layout.mesh.axes().iter().zip(&modes).zip(&layout.corner);
        let indices = along.map(|((axis, modes), corner)| {
            let mut table = vec![None; usize::try_from(axis.extent).unwrap_or(0)];
            let all: i64 = modes.iter().map(|(_, extent, _)| extent).product();
            for index in 0..all {
                let (mut rest, mut at) = (index, *corner);
                for (_, extent, step) in modes {
                    at += rest % extent * step;
                    rest /= extent;
                }
                if let Some(place) = usize::try_from(at).ok().and_then(|at| table.get_mut(at)) {
                    *place = Some(index);
                }
            }
            table
        });
        let indices = indices.collect();
        let counts = [layout.elements.leaves().len(), layout.copies.len(), layout.sums.len()];
        Holders { mesh: layout.mesh.clone(), corner: layout.corner.clone(), modes, indices, counts }
    }

    /// The part of a device; None if it holds no element.
    pub fn held(&self, rank: usize) -> Option<Held> {
        let [elements, copies, sums] = self.counts.map(|count| vec![0; count]);
        let mut held = Held { elements, copies, sums };
        for ((at, table), modes) in self.mesh.at(rank).iter().zip(&self.indices).zip(&self.modes) {
            let mut rest = table.get(usize::try_from(*at).ok()?).copied().flatten()?;
            for (mode, extent, _) in modes {
                let place = match mode {
                    AxisRole::Element(leaf) => held.elements.get_mut(*leaf),
                    AxisRole::Copy(at) => held.copies.get_mut(*at),
                    AxisRole::Sum(at) => held.sums.get_mut(*at),
                };
                *place? = rest % extent;
                rest /= extent;
            }
        }
        Some(held)
    }

    /// The device that holds this part.
    pub fn rank(&self, held: &Held) -> Option<usize> {
        // The coordinate is on the stack, because this function is called for each message.
        let mut device = [0; MAX_AXES];
        let device = device.get_mut(..self.corner.len())?;
        device.copy_from_slice(&self.corner);
        for (at, modes) in device.iter_mut().zip(&self.modes) {
            for (mode, _, step) in modes {
                let index = match mode {
                    AxisRole::Element(leaf) => held.elements.get(*leaf),
                    AxisRole::Copy(at) => held.copies.get(*at),
                    AxisRole::Sum(at) => held.sums.get(*at),
                };
                *at += index? * step;
            }
        }
        self.mesh.rank(device)
    }

    /// The copy from which a device takes its part: its own copy if it has one, otherwise one
    /// chosen by its rank, so that all copies serve equally many devices.
    pub fn copy_for(&self, rank: usize, own: Option<&Held>, layout: &ShardedLayout) -> Vec<i64> {
        if let Some(own) = own {
            return own.copies.clone();
        }
        let mut rest = rank as i64;
        let index = |extent: i64| {
            let index = rest % extent;
            rest /= extent;
            index
        };
        layout.copies.iter().map(|mode| mode.extent).map(index).collect()
    }
}

impl ShardedLayout {
    /// The number of elements of a device.
    pub fn local_size_on(&self, rank: usize) -> i64 {
        let held = Holders::of(self).held(rank);
        held.map_or(0, |held| self.counts_on(&held.elements).iter().product())
    }

    /// The number of elements of memory that a device needs: one more than the offset of its last
    /// element.
    pub fn reach_on(&self, rank: usize) -> i64 {
        let Some(held) = Holders::of(self).held(rank) else { return 0 };
        self.reach_of(&held.elements)
    }
}
