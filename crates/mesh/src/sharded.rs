//! Layouts over meshes.
//!
//! Law: a sharded layout maps an element, a copy and a summand to a place, which is a device and an
//! offset in its memory. It has three parts:
//!
//! * the *elements*: a layout in which each mode steps along offsets, `8`, or along an axis of the
//!   mesh, `1@tp`;
//! * *copies*: modes along the mesh on which the elements do not depend. At each of their positions
//!   there is a copy of every element, with the same value;
//! * *sums*: modes along the mesh whose positions hold summands (partial sums). The value of an
//!   element is their sum.
//!
//! No two elements share a device and an offset. So each element is held exactly `copies * sums`
//! times, each time on another device.
//!
//! ```text
//! value(e) = sum over p of held( place(e, r, p) )      for each copy r
//! ```
//!
//! The size of a mode may be less than the number of positions of its leaves (`uneven.rs`). Then
//! the last devices hold fewer elements, or none. Their memory either has the strides of a full
//! device, or it is *packed*: its strides are those of the device's own extents, in the same order.

use std::fmt;

use tilewright_layout::{Layout, Leaf, Tree};

use crate::error::{Flaw, MeshError};
use crate::mesh::Mesh;
use crate::uneven::CutMode;
pub use crate::uneven::{Along, Step};

/// A mode along the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MeshMode {
    /// The number of positions.
    pub extent: i64,
    /// The index of the axis.
    pub axis: usize,
    /// The step along the axis.
    pub step: i64,
}

/// The distribution of the elements of a tensor over the devices of a mesh.
///
/// ```
/// use tilewright_mesh::{Mesh, ShardedLayout};
///
/// let mesh: Mesh = "dp=2,tp=4".parse().unwrap();
/// // Eight rows, two for each position along tp; column after column; a copy for each dp.
/// let rows = ShardedLayout::parse(&mesh, "((2,4),3):((1,1@tp),2) copied 2:1@dp").unwrap();
/// assert_eq!((rows.size(), rows.copies(), rows.local_size()), (24, 2, 6));
/// assert_eq!(rows.places(5).unwrap(), [(4, 1), (5, 1)]); // row 5: device tp=2, once for each dp
/// assert_eq!(rows.to_string(), "((2,4),3):((1,1@tp),2) copied 2:1@dp");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ShardedLayout {
    pub(crate) mesh: Mesh,
    /// The extents and steps, nested as the modes of the tensor are.
    pub(crate) elements: Tree<(i64, Step)>,
    pub(crate) copies: Vec<MeshMode>,
    pub(crate) sums: Vec<MeshMode>,
    /// The coordinate of the first device, and the first offset.
    pub(crate) corner: Vec<i64>,
    pub(crate) start: i64,
    /// The size of each uneven mode; None for other modes.
    pub(crate) uneven: Vec<Option<i64>>,
    /// Whether devices with fewer elements pack them.
    pub(crate) packed: bool,
    /// The memory that a device needs, in elements: the largest offset plus 1.
    reach: i64,
}

/// The parts that a sharded layout is made of.
#[derive(Clone)]
pub struct Parts {
    /// The extents and steps of the elements, nested as the modes of the tensor are.
    pub elements: Tree<(i64, Step)>,
    /// The modes of copies.
    pub copies: Vec<MeshMode>,
    /// The modes of summands.
    pub sums: Vec<MeshMode>,
    /// The coordinate of the first device; if empty, all zeros.
    pub corner: Vec<i64>,
    /// The first offset.
    pub start: i64,
    /// For each mode its size, if the axes that cut it give devices unequal parts; empty if no mode
    /// is uneven. The first leaf of such a mode has as many elements as the largest part.
    pub uneven: Vec<Option<i64>>,
    /// Whether a device with fewer elements packs them: its strides are those of its own extents.
    pub packed: bool,
}

impl ShardedLayout {
    /// The layout with these parts.
    ///
    /// Modes of extent 1 get the step 0; adjacent modes of copies, and adjacent modes of sums, are
    /// merged.
    ///
    /// Errors: a step that is not positive, or that leads out of the mesh; two elements, copies or
    /// summands at the same place; a size of a mode that its leaves cannot have.
    pub fn new(mesh: &Mesh, parts: Parts) -> Result<ShardedLayout, MeshError> {
        let Parts { elements, copies, sums, mut corner, start, mut uneven, packed } = parts;
        corner.resize(mesh.axes().len(), 0);
        let shape = elements.map(|(extent, _)| *extent);
        // This checks that extents are positive and that the size of the shape is representable.
        Layout::compact(&shape)?;
        let still = Step { by: 0, along: Along::Offset };
        let elements = elements.map(|(extent, step)| (*extent, if *extent == 1 { still } else { *step }));
        let layout = ShardedLayout {
            mesh: mesh.clone(),
            elements,
            copies: joined(copies),
            sums: joined(sums),
            corner,
            start,
            uneven: Vec::new(),
            packed: false,
            reach: 0,
        };
        let reach = layout.checked()?;
        uneven.resize(layout.elements.modes().count().max(uneven.len()), None);
        for (mode, size) in layout.modes().iter().zip(&mut uneven) {
            *size = size.filter(|size| *size != mode.size);
        }
        let layout = ShardedLayout { reach, uneven, ..layout };
        layout.checked_sizes()?;
        let packed = packed && layout.packs_otherwise()?;
        Ok(ShardedLayout { packed, ..layout })
    }

    /// The modes of the tensor, as their leaves cut them.
    pub(crate) fn modes(&self) -> Vec<CutMode> {
        let mut first = 0;
        let modes = self.elements.modes().enumerate().map(|(number, tree)| {
            let mode = CutMode::new(first, tree.leaves(), self.uneven.get(number).copied().flatten());
            first += tree.leaves().len();
            mode
        });
        modes.collect()
    }

    /// Whether a device holds fewer elements than another because the parts of a mode have unequal
    /// sizes.
    pub fn is_uneven(&self) -> bool {
        self.uneven.iter().any(Option::is_some)
    }

    /// Checks that the sizes of modes are those of parts that are cut as in `uneven.rs`.
    fn checked_sizes(&self) -> Result<(), MeshError> {
        let refused = |mode: usize, why| Err(MeshError::Size { layout: self.to_string().into(), mode, why });
        let modes = self.modes();
        if self.uneven.len() > modes.len() {
            return refused(modes.len(), "the tensor has no such mode");
        }
        for (number, mode) in modes.iter().enumerate().filter(|(_, mode)| !mode.is_even) {
            if mode.size < 1 {
                return refused(number, "it has an element or more");
            }
            if !mode.is_block() {
                return refused(number, "a part is one run of elements, so the leaf of the elements is the first one");
            }
            if mode.local().map_or(1, |digit| digit.extent) != mode.largest() {
                return refused(number, "the first leaf has the size divided by each axis, rounded up");
            }
        }
        Ok(())
    }

    /// Whether packing makes a difference: if some mode is slower in memory than an uneven one. The
    /// modes of a packed layout are compact.
    fn packs_otherwise(&self) -> Result<bool, MeshError> {
        let refused = |mode, why| Err(MeshError::Size { layout: self.to_string().into(), mode, why });
        let (mut next, mut makes_difference, mut is_behind) = (1_i64, false, false);
        for (number, mode, step, count) in self.by_step() {
            let mut own = step;
            for digit in mode.digits.iter().filter(|digit| digit.extent > 1 && digit.step.along == Along::Offset) {
                if digit.step.by != own {
                    return refused(number, "a packed layout has one step along each mode of a device");
                }
                own = own.saturating_mul(digit.extent);
            }
            if step != next {
                return refused(number, "the modes of a packed layout must be compact");
            }
            next = next.saturating_mul(count);
            makes_difference |= is_behind;
            is_behind |= !mode.is_even;
        }
        Ok(makes_difference)
    }

    /// The modes of which a full device has several positions, sorted by their steps in memory: for
    /// each, its index, the mode, its step and its count.
    fn by_step(&self) -> Vec<(usize, CutMode, i64, i64)> {
        let local = |mode: &CutMode| {
            let local = mode.digits.iter().filter(|digit| digit.extent > 1 && digit.step.along == Along::Offset);
            let (first, count) = (local.clone().next()?.step.by, local.map(|digit| digit.extent).product());
            Some((first, count))
        };
        let modes = self.modes().into_iter().enumerate();
        let mut modes: Vec<_> = modes
            .filter_map(|(number, mode)| {
                let (step, count) = local(&mode)?;
                Some((number, mode, step, count))
            })
            .collect();
        modes.sort_by_key(|(.., step, _)| *step);
        modes
    }

    /// The step of each leaf in the memory of a device, given the indices of the device in the
    /// leaves along the mesh.
    pub(crate) fn steps_on(&self, held: &[i64]) -> Vec<i64> {
        let mut steps: Vec<i64> = self.elements.leaves().iter().map(|(_, step)| step.by).collect();
        if self.packed {
            let mut next = 1_i64;
            for (_, mode, _, count) in self.by_step() {
                let mut own = next;
                for digit in mode.digits.iter().filter(|digit| digit.extent > 1 && digit.step.along == Along::Offset) {
                    steps.iter_mut().skip(digit.leaf).take(1).for_each(|step| *step = own);
                    own = own.saturating_mul(digit.extent);
                }
                next = next.saturating_mul(if mode.is_even { count } else { mode.run(held).count });
            }
        }
        steps
    }

    /// The number of positions of each mode on a device, given the indices of the device in the
    /// leaves.
    pub(crate) fn counts_on(&self, held: &[i64]) -> Vec<i64> {
        let count = |mode: &CutMode| {
            let local = mode.digits.iter().filter(|digit| digit.step.along == Along::Offset);
            if mode.is_even { local.map(|digit| digit.extent).product() } else { mode.run(held).count }
        };
        self.modes().iter().map(count).collect()
    }

    /// As [`ShardedLayout::reach_on`], given the indices in the leaves.
    pub(crate) fn reach_of(&self, held: &[i64]) -> i64 {
        if !self.is_uneven() {
            return self.reach;
        }
        let steps = self.steps_on(held);
        let mut last = self.start;
        for mode in self.modes() {
            let run = if mode.is_even { None } else { Some(mode.run(held)) };
            if run.is_some_and(|run| run.count == 0) {
                return 0;
            }
            for digit in mode.digits.iter().filter(|digit| digit.step.along == Along::Offset) {
                let count = run.map_or(digit.extent, |run| digit.extent.min(run.count));
                last += (count - 1) * steps.get(digit.leaf).copied().unwrap_or(0);
            }
        }
        last + 1
    }

    /// The parts of this layout: elements, shape, mesh and modes.
    pub(crate) fn parts(&self) -> Parts {
        Parts {
            elements: self.elements.clone(),
            copies: self.copies.clone(),
            sums: self.sums.clone(),
            corner: self.corner.clone(),
            start: self.start,
            uneven: self.uneven.clone(),
            packed: self.packed,
        }
    }

    /// Checks every invariant, and returns the reach.
    fn checked(&self) -> Result<i64, MeshError> {
        let flaw = |flaw| MeshError::Places { layout: self.to_string().into(), flaw };
        if self.start < 0 || self.copies.iter().chain(&self.sums).any(|mode| mode.extent < 1) {
            return Err(flaw(Flaw::Backwards));
        }
        if self.elements.leaves().iter().any(|(extent, step)| *extent > 1 && step.by < 1) {
            return Err(flaw(Flaw::Backwards));
        }
        let own = self.elements.leaves().iter().map(|(extent, step)| (*extent, step.by, step.along));
        let others = self.copies.iter().chain(&self.sums).map(|mode| (mode.extent, mode.step, Along::Axis(mode.axis)));
        let modes: Vec<_> = own.chain(others).filter(|(extent, ..)| *extent > 1).collect();
        if modes.iter().any(|(_, by, _)| *by < 1) {
            return Err(flaw(Flaw::Backwards));
        }
        let along = |wanted: Along| -> Result<Layout, MeshError> {
            let chosen = modes.iter().filter(|(.., along)| *along == wanted);
            let leaves: Vec<_> = chosen.map(|(extent, by, _)| Leaf { extent: *extent, stride: *by }).collect();
            Ok(if leaves.is_empty() { Layout::unit() } else { Layout::from_tree(Tree::flat(leaves)?)? })
        };
        for (at, axis) in self.mesh.axes().iter().enumerate() {
            let steps = along(Along::Axis(at))?;
            if !steps.is_injective()? {
                return Err(flaw(Flaw::Shared { along: axis.name.as_str().into() }));
            }
            let corner = self.corner.get(at).copied().unwrap_or(0);
            let last = steps.range()?.1.checked_add(corner);
            if corner < 0 || last.is_none_or(|last| last >= axis.extent) {
                return Err(flaw(Flaw::Outside { axis: axis.name.as_str().into(), extent: axis.extent }));
            }
        }
        if modes.iter().any(|(.., along)| matches!(along, Along::Axis(axis) if *axis >= self.mesh.axes().len())) {
            return Err(flaw(Flaw::NoAxis));
        }
        let offsets = along(Along::Offset)?;
        if !offsets.is_injective()? {
            return Err(flaw(Flaw::Shared { along: "offsets".into() }));
        }
        let last = offsets.range()?.1.checked_add(self.start).and_then(|last| last.checked_add(1));
        last.ok_or_else(|| flaw(Flaw::Outside { axis: "offsets".into(), extent: i64::MAX }))
    }

    /// The mesh.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// The shape of the tensor. An uneven mode is a single extent, its size.
    pub fn shape(&self) -> Tree<i64> {
        let whole = self.elements.map(|(extent, _)| *extent);
        if !self.is_uneven() {
            return whole;
        }
        let sizes = self.mode_sizes();
        let modes = whole.modes().zip(&sizes).zip(&self.uneven);
        let modes: Vec<_> =
            modes.map(|((mode, size), bounds)| if bounds.is_some() { Tree::leaf(*size) } else { mode }).collect();
        Tree::tuple(modes.iter()).unwrap_or(whole)
    }

    /// The extents and steps of the elements, nested as the modes of the tensor are.
    pub fn elements(&self) -> &Tree<(i64, Step)> {
        &self.elements
    }

    /// The modes of copies, by axis and step.
    pub fn copy_modes(&self) -> &[MeshMode] {
        &self.copies
    }

    /// The modes of summands, by axis and step.
    pub fn sum_modes(&self) -> &[MeshMode] {
        &self.sums
    }

    /// The number of elements of the tensor.
    pub fn size(&self) -> i64 {
        self.mode_sizes().iter().product()
    }

    /// The sizes of the tensor's modes.
    pub fn mode_sizes(&self) -> Vec<i64> {
        self.modes().iter().map(|mode| mode.size).collect()
    }

    /// The number of copies of each summand.
    pub fn copies(&self) -> i64 {
        self.copies.iter().map(|mode| mode.extent).product()
    }

    /// The number of summands of an element.
    pub fn sums(&self) -> i64 {
        self.sums.iter().map(|mode| mode.extent).product()
    }

    /// The number of elements of a device with a full part. If no mode is uneven, that is every
    /// device that holds any elements; otherwise it is the first device.
    pub fn local_size(&self) -> i64 {
        let local = self.elements.leaves().iter().filter(|(_, step)| step.along == Along::Offset);
        local.map(|(extent, _)| extent).product()
    }

    /// The memory that a device needs, in elements: the largest offset plus 1.
    pub fn reach(&self) -> i64 {
        self.reach
    }

    /// The places of an element, copy by copy and summand by summand: the rank and offset of each.
    ///
    /// Errors: the tensor has no such element.
    pub fn places(&self, element: i64) -> Result<Vec<(usize, i64)>, MeshError> {
        if !(0..self.size()).contains(&element) {
            return Err(MeshError::Element { element, size: self.size() });
        }
        let (mut rest, mut offset, mut device) = (element, self.start, self.corner.clone());
        let mut indices = vec![0; self.elements.leaves().len()];
        for mode in self.modes() {
            for (digit, index) in mode.at(rest % mode.size) {
                indices.iter_mut().skip(digit.leaf).take(1).for_each(|own| *own = index);
            }
            rest /= mode.size;
        }
        let steps = self.steps_on(&indices);
        for (((_, step), by), index) in self.elements.leaves().iter().zip(steps).zip(&indices) {
            let along = match step.along {
                Along::Offset => Some(&mut offset),
                Along::Axis(axis) => device.get_mut(axis),
            };
            if let Some(place) = along {
                *place += index * by;
            }
        }
        let modes: Vec<_> = self.copies.iter().chain(&self.sums).collect();
        let all = self.copies() * self.sums();
        let places = (0..all).filter_map(|index| {
            let (mut rest, mut device) = (index, device.clone());
            for mode in &modes {
                *device.get_mut(mode.axis)? += rest % mode.extent * mode.step;
                rest /= mode.extent;
            }
            Some((self.mesh.rank(&device)?, offset))
        });
        Ok(places.collect())
    }
}

/// Modes sorted by axis and step, without those of extent 1; adjacent ones are merged.
fn joined(mut modes: Vec<MeshMode>) -> Vec<MeshMode> {
    modes.retain(|mode| mode.extent != 1);
    modes.sort_by_key(|mode| (mode.axis, mode.step));
    let mut joined: Vec<MeshMode> = Vec::new();
    for mode in modes {
        match joined.last_mut() {
            Some(last) if last.axis == mode.axis && last.step.checked_mul(last.extent) == Some(mode.step) => {
                last.extent = last.extent.saturating_mul(mode.extent);
            }
            _ => joined.push(mode),
        }
    }
    joined
}

impl fmt::Debug for ShardedLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardedLayout({self} over {})", self.mesh)
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = f.debug_struct("Parts");
        parts.field("shape", &self.elements.map(|(extent, _)| *extent)).field("steps", &self.elements.leaves());
        parts.field("copies", &self.copies).field("sums", &self.sums);
        parts.field("uneven", &self.uneven).field("packed", &self.packed);
        parts.field("corner", &self.corner).field("start", &self.start).finish()
    }
}
