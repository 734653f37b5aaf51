//! Layouts as JAX and PyTorch write them.
//!
//! Law: `PartitionSpec` names, for each mode of a tensor, the axes of the mesh that cut it, the
//! slowest first; the tensor is replicated along all other axes. DTensor has one entry for each
//! axis of the mesh: the mode that it cuts (`Shard`), or that the tensor is replicated or partial
//! along it; of several axes that cut one mode, the first is the slowest. The local part of a
//! device is row-major.
//!
//! Every text that is read is written in the same form. Both forms are less expressive than a
//! layout: a layout cannot be written if it uses a part of an axis; nor, for JAX, if the elements
//! of a device are not contiguous or if it has partial sums. DTensor cuts a mode into parts that
//! are rounded up, so that the last devices have fewer elements, or none; their memory is packed.
//! JAX refuses a mode that its axes do not cut into equal parts ([`MeshError::Uneven`]).

mod axes;
mod cut;
mod sharding;
mod shardy;

use std::fmt::Write as _;

use tilewright_layout::Tree;

use crate::error::MeshError;
use crate::mesh::Mesh;
use crate::sharded::{Along, MeshMode, Parts, ShardedLayout, Step};
use cut::Cut;

const SPEC: &str = "PartitionSpec";
const PLACEMENTS: &str = "list of placements";

impl ShardedLayout {
    /// The layout that a `PartitionSpec` of JAX denotes: `P('dp', None, ('tp', 'pp'))`.
    ///
    /// Errors: a text that is no such specification, an axis that is used twice, more entries than
    /// modes, or an axis that the mesh does not have; a mode that is not cut into equal parts.
    ///
    /// ```
    /// use tilewright_mesh::{Mesh, ShardedLayout};
    ///
    /// let mesh = Mesh::row_major(&[("dp", 2), ("tp", 4)]).unwrap();
    /// let spec = "P('tp', None)";
    /// let layout = ShardedLayout::of_partition_spec(&mesh, &[8, 6], spec).unwrap();
    /// assert_eq!(layout.to_string(), "((2,4),6):((6,1@tp),1) copied 2:1@dp");
    /// assert_eq!(layout.partition_spec().unwrap(), spec);
    /// ```
    pub fn of_partition_spec(mesh: &Mesh, shape: &[i64], spec: &str) -> Result<ShardedLayout, MeshError> {
        let fail = || MeshError::Syntax { text: spec.trim().into(), expected: "P('dp', None, ('tp', 'pp'))" };
        let entries = spec.trim();
        let entries = entries.strip_prefix("jax.sharding.").unwrap_or(entries);
        let entries = entries.strip_prefix(SPEC).or_else(|| entries.strip_prefix('P')).ok_or_else(fail)?;
        let entries = entries.trim().strip_prefix('(').and_then(|text| text.strip_suffix(')')).ok_or_else(fail)?;
        let entries = split(entries).ok_or_else(fail)?;
        if entries.len() > shape.len() {
            return Err(fail());
        }
        let axis = |text: &str| {
            let quoted = |quote| text.trim().strip_prefix(quote).and_then(|text: &str| text.strip_suffix(quote));
            let name = quoted('\'').or_else(|| quoted('"')).ok_or_else(fail)?;
            mesh.axis(name).ok_or_else(|| MeshError::NoAxis { name: name.into(), mesh: mesh.to_string().into() })
        };
        let mut cut = vec![Vec::new(); shape.len()];
        for (axes, entry) in cut.iter_mut().zip(entries) {
            *axes = match entry.strip_prefix('(').and_then(|names| names.strip_suffix(')')) {
                _ if entry == "None" => Vec::new(),
                Some(names) => split(names).ok_or_else(fail)?.into_iter().map(axis).collect::<Result<_, _>>()?,
                None => vec![axis(entry)?],
            };
        }
        once(cut.iter().flatten()).ok_or_else(fail)?;
        let extent = |axis: &usize| mesh.axes().get(*axis).map_or(1, |axis| axis.extent);
        let mut cuts = Vec::new();
        for (mode, (size, axes)) in shape.iter().zip(&cut).enumerate() {
            let parts: i64 = axes.iter().map(extent).product();
            let mut own = Cut::whole(*size);
            let is_cut = axes.iter().all(|axis| own.shard(*axis, extent(axis)));
            if *size < 1 || size % parts != 0 || !is_cut {
                return Err(MeshError::Uneven { mode, size: *size, parts });
            }
            cuts.push(own);
        }
        let used: Vec<usize> = cut.into_iter().flatten().collect();
        cut_rows(mesh, shape, &cuts, (unused(mesh, &used), Vec::new()), Vec::new())
    }

    /// The layout that placements of DTensor denote: `[Shard(0), Replicate(), Partial()]`, one for
    /// each axis of the mesh, or `_StridedShard(dim=0, split_factor=2)`.
    ///
    /// The size of a part is the size of the mode divided by the number of parts, rounded up, as in
    /// `torch.chunk`: the last devices have fewer elements, or none.
    ///
    /// Errors: a text that is no such list; a mode that the tensor does not have; a mode that
    /// `_StridedShard` does not cut into equal parts.
    ///
    /// ```
    /// use tilewright_mesh::{Mesh, ShardedLayout};
    ///
    /// let mesh = Mesh::row_major(&[("dp", 2), ("tp", 4)]).unwrap();
    /// let placements = "[Partial(), Shard(1)]";
    /// let layout = ShardedLayout::of_placements(&mesh, &[6, 8], placements).unwrap();
    /// assert_eq!(layout.to_string(), "(6,(2,4)):(2,(1,1@tp)) summed 2:1@dp");
    /// assert_eq!(layout.placements().unwrap(), placements);
    /// // Ten columns in parts of 3, 3, 3 and 1.
    /// let uneven = ShardedLayout::of_placements(&mesh, &[6, 10], placements).unwrap();
    /// assert_eq!(uneven.to_string(), "(6,(3,4)):(3,(1,1@tp)) packed (6,10) summed 2:1@dp");
    /// assert_eq!((uneven.local_size_on(2), uneven.local_size_on(3)), (18, 6));
    /// ```
    pub fn of_placements(mesh: &Mesh, shape: &[i64], placements: &str) -> Result<ShardedLayout, MeshError> {
        let expected =
            "[Shard(0), Replicate(), Partial(), _StridedShard(0, split_factor=2)], one for each axis of the mesh";
        let fail = || MeshError::Syntax { text: placements.trim().into(), expected };
        let inner = placements.trim();
        let inner = inner.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let inner = inner.or_else(|| placements.trim().strip_prefix('(').and_then(|text| text.strip_suffix(')')));
        let entries = inner.and_then(split).filter(|entries| entries.len() == mesh.axes().len()).ok_or_else(fail)?;
        let mut cuts: Vec<Cut> = shape.iter().map(|size| Cut::whole(*size)).collect();
        let (mut used, mut summed) = (Vec::new(), Vec::new());
        for (axis, (entry, own)) in entries.into_iter().zip(mesh.axes()).enumerate() {
            let (kind, rest) = entry.split_once('(').ok_or_else(fail)?;
            let parts = rest.strip_suffix(')').and_then(split).ok_or_else(fail)?;
            let mode = |text: &str| {
                let text = text.strip_prefix("dim=").unwrap_or(text).trim();
                let mode = text.parse::<i64>().ok()?;
                // Negative modes count from the last one, as in Python.
                usize::try_from(if mode < 0 { mode.checked_add(shape.len() as i64)? } else { mode }).ok()
            };
            let named = |text: &str| {
                let text = text.strip_prefix("split_factor").or_else(|| text.strip_prefix("sf"));
                text.map_or("", str::trim_start)
                    .strip_prefix('=')
                    .map(str::trim)
                    .unwrap_or_default()
                    .parse::<i64>()
                    .ok()
            };
            match (kind.trim(), parts.as_slice()) {
                ("Replicate", []) => continue,
                ("Partial", [] | ["sum" | "'sum'" | "\"sum\"" | "reduce_op=sum" | "reduce_op='sum'"]) => {
                    summed.push(axis)
                }
                ("Shard", [text]) => {
                    let mode = mode(text).ok_or_else(fail)?;
                    let cut = cuts.get_mut(mode).ok_or_else(fail)?;
                    if !cut.shard(axis, own.extent) {
                        let size = shape.get(mode).copied().unwrap_or(0);
                        return Err(MeshError::Uneven { mode, size, parts: own.extent });
                    }
                }
                ("_StridedShard", [text] | [text, _]) => {
                    let mode = mode(text).ok_or_else(fail)?;
                    let blocks = parts.get(1).map_or(Some(1), |text| text.parse().ok().or_else(|| named(text)));
                    let blocks = blocks.filter(|blocks| *blocks > 0).ok_or_else(fail)?;
                    let cut = cuts.get_mut(mode).ok_or_else(fail)?;
                    if !cut.strided(axis, own.extent, blocks) {
                        let size = shape.get(mode).copied().unwrap_or(0);
                        return Err(MeshError::Uneven { mode, size, parts: blocks.saturating_mul(own.extent) });
                    }
                }
                _ => return Err(fail()),
            }
            used.push(axis);
        }
        if let Some(mode) = shape.iter().position(|size| *size < 1) {
            return Err(MeshError::Uneven { mode, size: shape.get(mode).copied().unwrap_or(0), parts: 1 });
        }
        let whole = |axis: &usize| MeshMode {
            extent: mesh.axes().get(*axis).map_or(1, |own| own.extent),
            axis: *axis,
            step: 1,
        };
        let sums = summed.iter().map(whole).collect();
        cut_rows(mesh, shape, &cuts, (unused(mesh, &used), sums), Vec::new())
    }

    /// This layout as a `PartitionSpec`, which does not express offsets.
    ///
    /// Errors: a layout that no `PartitionSpec` expresses ([`MeshError::Unwritten`]).
    pub fn partition_spec(&self) -> Result<String, MeshError> {
        let (cut, summed) = self.cuts(SPEC)?;
        if self.is_uneven() {
            return Err(MeshError::Unwritten { form: SPEC, why: "it knows parts of equal sizes alone" });
        }
        if cut.iter().any(|leaves| leaves.iter().skip_while(|axis| axis.is_some()).any(Option::is_some)) {
            return Err(MeshError::Unwritten { form: SPEC, why: "in a mode, elements of a device are not contiguous" });
        }
        let cut: Vec<Vec<usize>> = cut.into_iter().map(|leaves| leaves.into_iter().flatten().collect()).collect();
        if !summed.is_empty() {
            return Err(MeshError::Unwritten { form: SPEC, why: "it knows no summands" });
        }
        let mut text = "P(".to_owned();
        for (mode, axes) in cut.iter().enumerate() {
            let names = axes.iter().filter_map(|axis| Some(format!("'{}'", self.mesh.axes().get(*axis)?.name)));
            let names: Vec<_> = names.collect();
            text.push_str(if mode == 0 { "" } else { ", " });
            match names.as_slice() {
                [] => text.push_str("None"),
                [name] => text.push_str(name),
                names => {
                    let _ = write!(text, "({})", names.join(", "));
                }
            }
        }
        text.push(')');
        Ok(text)
    }

    /// This layout as placements of DTensor, which do not express offsets.
    ///
    /// Errors: a layout that no placements express ([`MeshError::Unwritten`]).
    pub fn placements(&self) -> Result<String, MeshError> {
        let (cut, summed) = self.cuts(PLACEMENTS)?;
        let leaves: Vec<_> = self.elements.modes().map(|mode| mode.leaves().to_vec()).collect();
        // The number of blocks that this axis cuts: the product of the slower leaves of the mode,
        // except those along earlier axes.
        let blocks = |mode: usize, axis: usize| {
            let slower = leaves.get(mode).into_iter().flatten().rev();
            let slower = slower.take_while(|(_, step)| step.along != Along::Axis(axis));
            let later = slower.filter(|(_, step)| {
                matches!(step.along, Along::Axis(other) if other > axis) || step.along == Along::Offset
            });
            later.map(|(extent, _)| extent).product::<i64>()
        };
        let of_axis = |axis: usize| match cut.iter().position(|axes| axes.contains(&Some(axis))) {
            Some(mode) => match blocks(mode, axis) {
                1 => format!("Shard({mode})"),
                blocks => format!("_StridedShard(dim={mode}, split_factor={blocks})"),
            },
            None if summed.contains(&axis) => "Partial()".to_owned(),
            None => "Replicate()".to_owned(),
        };
        let entries: Vec<_> = (0..self.mesh.axes().len()).map(of_axis).collect();
        let text = format!("[{}]", entries.join(", "));
        // The text must determine which device holds which elements, which it does not for uneven
        // parts in another order.
        let again = ShardedLayout::of_placements(&self.mesh, &self.mode_sizes(), &text);
        match again.is_ok_and(|again| again.holds_alike(self)) {
            true => Ok(text),
            false => {
                let why = "unequal parts are cut along the axes of the mesh in their order there";
                Err(MeshError::Unwritten { form: PLACEMENTS, why })
            }
        }
    }

    /// Whether each device holds the same elements of the modes in both layouts.
    fn holds_alike(&self, other: &ShardedLayout) -> bool {
        let cut = |layout: &ShardedLayout| -> Vec<Vec<(i64, Option<Along>, i64)>> {
            let of_mode = |mode: crate::uneven::CutMode| {
                let mut leaves: Vec<(i64, Option<Along>, i64)> = Vec::new();
                for digit in mode.digits.iter().filter(|digit| digit.extent > 1) {
                    let along = Some(digit.step.along).filter(|along| *along != Along::Offset);
                    match leaves.last_mut() {
                        Some((extent, None, _)) if along.is_none() => *extent *= digit.extent,
                        _ => leaves.push((digit.extent, along, if mode.is_even { digit.weight } else { 0 })),
                    }
                }
                leaves
            };
            layout.modes().into_iter().map(of_mode).collect()
        };
        self.mode_sizes() == other.mode_sizes() && cut(self) == cut(other)
    }

    /// The cuts of each mode, the slowest first, where None is a leaf that steps along offsets; and
    /// the axes with summands.
    fn cuts(&self, form: &'static str) -> Result<Cuts, MeshError> {
        let fail = |why| Err(MeshError::Unwritten { form, why });
        let whole = |axis: usize, extent: i64, step: i64| {
            step == 1 && self.mesh.axes().get(axis).is_some_and(|axis| axis.extent == extent)
        };
        if self.corner.iter().any(|at| *at != 0) {
            return fail("its first device is not that of rank 0");
        }
        let mut cut = Vec::new();
        for mode in self.elements.modes() {
            let mut axes = Vec::new();
            for (extent, step) in mode.leaves().iter().filter(|(extent, _)| *extent > 1) {
                match step.along {
                    Along::Offset => axes.insert(0, None),
                    Along::Axis(axis) if whole(axis, *extent, step.by) => axes.insert(0, Some(axis)),
                    Along::Axis(_) => return fail("a mode uses an axis in part"),
                }
            }
            cut.push(axes);
        }
        if !self.copies.iter().chain(&self.sums).all(|mode| whole(mode.axis, mode.extent, mode.step)) {
            return fail("copies or summands use an axis in part");
        }
        let used = |axis: &usize| {
            cut.iter().any(|axes| axes.contains(&Some(*axis)))
                || self.copies.iter().chain(&self.sums).any(|mode| mode.axis == *axis)
        };
        if self.mesh.axes().iter().enumerate().any(|(at, axis)| axis.extent > 1 && !used(&at)) {
            return fail("along an axis only the first device holds anything");
        }
        Ok((cut, self.sums.iter().map(|mode| mode.axis).collect()))
    }
}

/// The cuts of each mode, the slowest first, where None is a leaf that steps along offsets; and the
/// axes with summands.
type Cuts = (Vec<Vec<Option<usize>>>, Vec<usize>);

/// Checks that no axis occurs twice.
fn once<'a>(axes: impl Iterator<Item = &'a usize>) -> Option<()> {
    let mut axes: Vec<&usize> = axes.collect();
    axes.sort_unstable();
    axes.windows(2).all(|pair| pair.first() != pair.last()).then_some(())
}

/// The unused axes, as modes of copies.
fn unused(mesh: &Mesh, used: &[usize]) -> Vec<MeshMode> {
    let axes = mesh.axes().iter().enumerate().filter(|(at, _)| !used.contains(at));
    axes.map(|(axis, own)| MeshMode { extent: own.extent, axis, step: 1 }).collect()
}

/// The arguments of a call of this name; None if the text is no such call.
fn arguments<'a>(text: &'a str, name: &str) -> Option<Vec<&'a str>> {
    split(text.trim().strip_prefix(name)?.trim_start().strip_prefix('(')?.strip_suffix(')')?)
}

/// The parts of a list, split at commas outside of brackets; None if brackets do not match.
fn split(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                parts.push(text.get(start..at)?.trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text.get(start..)?.trim();
    // A trailing comma is allowed.
    if !last.is_empty() {
        parts.push(last);
    }
    (depth == 0 && parts.iter().all(|part| !part.is_empty())).then_some(parts)
}

/// The layout whose modes have these cuts, row-major on each device; a device with fewer elements
/// packs them.
fn cut_rows(
    mesh: &Mesh,
    shape: &[i64],
    cuts: &[Cut],
    (copies, sums): (Vec<MeshMode>, Vec<MeshMode>),
    corner: Vec<i64>,
) -> Result<ShardedLayout, MeshError> {
    let mut stride = 1_i64;
    let mut modes = Vec::new();
    for cut in cuts.iter().take(shape.len()).rev() {
        let leaves = cut.leaves.iter().map(|leaf| match leaf.along {
            Some((axis, step)) => (leaf.extent, Step { by: step, along: Along::Axis(axis) }),
            None => {
                let own = (leaf.extent, Step { by: stride, along: Along::Offset });
                stride = stride.saturating_mul(leaf.extent);
                own
            }
        });
        let leaves: Vec<_> = leaves.collect();
        modes.insert(0, if let [only] = leaves[..] { Tree::leaf(only) } else { Tree::flat(leaves)? });
    }
    let elements = Tree::tuple(modes.iter())?;
    let uneven = cuts.iter().map(|cut| Some(cut.size)).collect();
    ShardedLayout::new(mesh, Parts { elements, copies, sums, corner, start: 0, uneven, packed: true })
}
