//! Layouts over meshes.
//!
//! Law: a sharded layout sends an element, a copy and a summand to a place, which is a device and
//! an offset in its memory. It has three parts:
//!
//! * the *elements*: a layout in which each mode steps along offsets, `8`, or along an axis of the
//!   mesh, `1@tp`;
//! * *copies*: modes along the mesh that no element sees. An element lies once for each of their
//!   positions, with the same value;
//! * *sums*: modes along the mesh whose positions hold summands. The value of an element is their
//!   sum.
//!
//! All places differ. So each element is held exactly `copies * sums` times, each time on another
//! device.
//!
//! ```text
//! value(e) = sum over p of held( place(e, r, p) )      for each copy r
//! ```

use std::fmt;

use tilewright_layout::{Layout, Leaf, Tree};

use crate::error::{Flaw, MeshError};
use crate::mesh::Mesh;

/// Where a mode steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Along {
    /// Along offsets in the memory of a device.
    Offset,
    /// Along the axis of the mesh with this number.
    Axis(usize),
}

/// A step: how far, and along what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// How far.
    pub by: i64,
    /// Along what.
    pub along: Along,
}

/// A mode along the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MeshMode {
    /// How many positions.
    pub extent: i64,
    /// The axis.
    pub axis: usize,
    /// The step along it.
    pub step: i64,
}

/// Where the elements of a tensor lie on the devices of a mesh.
///
/// ```
/// use tilewright_mesh::{Mesh, ShardedLayout};
///
/// let mesh: Mesh = "dp=2,tp=4".parse().unwrap();
/// // Eight rows, two for each position along tp; the columns follow each other; a copy along dp.
/// let rows = ShardedLayout::parse(&mesh, "((2,4),3):((1,1@tp),2) copied 2:1@dp").unwrap();
/// assert_eq!((rows.size(), rows.copies(), rows.local_size()), (24, 2, 6));
/// assert_eq!(rows.places(5).unwrap(), [(4, 1), (5, 1)]); // row 5: device tp=2, once for each dp
/// assert_eq!(rows.to_string(), "((2,4),3):((1,1@tp),2) copied 2:1@dp");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ShardedLayout {
    pub(crate) mesh: Mesh,
    /// The extents and steps, nested as the tensor's modes are.
    pub(crate) elements: Tree<(i64, Step)>,
    pub(crate) copies: Vec<MeshMode>,
    pub(crate) sums: Vec<MeshMode>,
    /// The coordinate of the first device, and the first offset.
    pub(crate) corner: Vec<i64>,
    pub(crate) start: i64,
    /// How much memory a device needs: one more than the greatest offset.
    reach: i64,
}

/// The parts that a sharded layout is made of.
#[derive(Clone)]
pub struct Parts {
    /// The extents and steps of the elements, nested as the tensor's modes are.
    pub elements: Tree<(i64, Step)>,
    /// Modes of copies.
    pub copies: Vec<MeshMode>,
    /// Modes of summands.
    pub sums: Vec<MeshMode>,
    /// The coordinate of the first device; zeros where it is empty.
    pub corner: Vec<i64>,
    /// The first offset.
    pub start: i64,
}

impl ShardedLayout {
    /// The layout with these parts.
    ///
    /// Modes of extent 1 get the step 0; neighbouring modes of copies, and of sums, are put
    /// together.
    ///
    /// Errors: a step that leads nowhere, backwards or out of the mesh; two elements, copies or
    /// summands in one place.
    pub fn new(mesh: &Mesh, parts: Parts) -> Result<ShardedLayout, MeshError> {
        let Parts { elements, copies, sums, mut corner, start } = parts;
        corner.resize(mesh.axes().len(), 0);
        let shape = elements.map(|(extent, _)| *extent);
        // The size of the shape is checked here, and that extents are positive.
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
            reach: 0,
        };
        let reach = layout.checked()?;
        Ok(ShardedLayout { reach, ..layout })
    }

    /// The same elements, shape and mesh, moved by other modes.
    pub(crate) fn parts(&self) -> Parts {
        Parts {
            elements: self.elements.clone(),
            copies: self.copies.clone(),
            sums: self.sums.clone(),
            corner: self.corner.clone(),
            start: self.start,
        }
    }

    /// Checks every invariant, and gives the reach.
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

    /// The shape of the tensor.
    pub fn shape(&self) -> Tree<i64> {
        self.elements.map(|(extent, _)| *extent)
    }

    /// The extents and steps of the elements, nested as the tensor's modes are.
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

    /// How many elements the tensor has.
    pub fn size(&self) -> i64 {
        self.elements.leaves().iter().map(|(extent, _)| extent).product()
    }

    /// The sizes of the tensor's modes.
    pub fn mode_sizes(&self) -> Vec<i64> {
        self.shape().modes().map(|mode| mode.leaves().iter().product()).collect()
    }

    /// How many copies there are of each summand.
    pub fn copies(&self) -> i64 {
        self.copies.iter().map(|mode| mode.extent).product()
    }

    /// How many summands an element has.
    pub fn sums(&self) -> i64 {
        self.sums.iter().map(|mode| mode.extent).product()
    }

    /// How many elements each device has that has any.
    pub fn local_size(&self) -> i64 {
        let local = self.elements.leaves().iter().filter(|(_, step)| step.along == Along::Offset);
        local.map(|(extent, _)| extent).product()
    }

    /// How many elements of memory a device needs: one more than the greatest offset.
    pub fn reach(&self) -> i64 {
        self.reach
    }

    /// The places of an element, copy by copy and summand by summand: rank and offset of each.
    ///
    /// Errors: no such element.
    pub fn places(&self, element: i64) -> Result<Vec<(usize, i64)>, MeshError> {
        if !(0..self.size()).contains(&element) {
            return Err(MeshError::Element { element, size: self.size() });
        }
        let (mut rest, mut offset, mut device) = (element, self.start, self.corner.clone());
        for (extent, step) in self.elements.leaves() {
            let along = match step.along {
                Along::Offset => Some(&mut offset),
                Along::Axis(axis) => device.get_mut(axis),
            };
            if let Some(place) = along {
                *place += rest % extent * step.by;
            }
            rest /= extent;
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

/// Modes sorted by axis and step, those of extent 1 left out, neighbours put together.
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
        parts.field("corner", &self.corner).field("start", &self.start).finish()
    }
}
