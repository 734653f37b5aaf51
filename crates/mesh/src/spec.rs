//! Layouts as JAX and PyTorch write them.
//!
//! Law: `PartitionSpec` names, for each mode of a tensor, the axes of the mesh that cut it, the
//! slowest first; along all other axes lie copies. DTensor says the same the other way round: for
//! each axis of the mesh, which mode it cuts, or that copies or summands lie along it; of several
//! axes that cut one mode the first is slowest. In memory the elements of a device lie row by row.
//!
//! What is read this way is written the same way. Both forms say less than a layout: they are
//! refused where an axis is used in part, where offsets come before the mesh, and (in JAX) for
//! sums. A mode that its axes do not cut into equal parts is refused ([`MeshError::Uneven`]):
//! PyTorch would give some devices less, JAX refuses it too.

use std::fmt::Write as _;

use tilewright_layout::Tree;

use crate::error::MeshError;
use crate::mesh::Mesh;
use crate::sharded::{Along, MeshMode, Parts, ShardedLayout, Step};

const SPEC: &str = "PartitionSpec";
const PLACEMENTS: &str = "list of placements";

impl ShardedLayout {
    /// The layout that a `PartitionSpec` of JAX stands for: `P('dp', None, ('tp', 'pp'))`.
    ///
    /// Errors: a text that is no such specification, an axis twice, more entries than modes, or an
    /// axis that the mesh does not have; a mode that is not cut into equal parts.
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
        rows(mesh, shape, &cut, &[]).map_err(|error| error.unwrap_or_else(fail))
    }

    /// The layout that placements of DTensor stand for: `[Shard(0), Replicate(), Partial()]`, one
    /// for each axis of the mesh.
    ///
    /// Errors: a text that is no such list; a mode that the tensor does not have, or that is not
    /// cut into equal parts.
    ///
    /// ```
    /// use tilewright_mesh::{Mesh, ShardedLayout};
    ///
    /// let mesh = Mesh::row_major(&[("dp", 2), ("tp", 4)]).unwrap();
    /// let placements = "[Partial(), Shard(1)]";
    /// let layout = ShardedLayout::of_placements(&mesh, &[6, 8], placements).unwrap();
    /// assert_eq!(layout.to_string(), "(6,(2,4)):(2,(1,1@tp)) summed 2:1@dp");
    /// assert_eq!(layout.placements().unwrap(), placements);
    /// ```
    pub fn of_placements(mesh: &Mesh, shape: &[i64], placements: &str) -> Result<ShardedLayout, MeshError> {
        let expected = "[Shard(0), Replicate(), Partial()], one for each axis of the mesh";
        let fail = || MeshError::Syntax { text: placements.trim().into(), expected };
        let inner = placements.trim();
        let inner = inner.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let inner = inner.or_else(|| placements.trim().strip_prefix('(').and_then(|text| text.strip_suffix(')')));
        let entries = inner.and_then(split).filter(|entries| entries.len() == mesh.axes().len()).ok_or_else(fail)?;
        let (mut cut, mut summed) = (vec![Vec::new(); shape.len()], Vec::new());
        for (axis, entry) in entries.into_iter().enumerate() {
            match entry.split_once('(').and_then(|(kind, rest)| Some((kind.trim(), rest.strip_suffix(')')?.trim()))) {
                Some(("Replicate", "")) => {}
                Some(("Partial", "" | "sum" | "'sum'" | "\"sum\"")) => summed.push(axis),
                Some(("Shard", mode)) => {
                    let mode = mode.strip_prefix("dim=").unwrap_or(mode);
                    let mode = mode.parse::<usize>().map_err(|_| fail())?;
                    cut.get_mut(mode).ok_or_else(fail)?.push(axis);
                }
                _ => return Err(fail()),
            }
        }
        rows(mesh, shape, &cut, &summed).map_err(|error| error.unwrap_or_else(fail))
    }

    /// This layout as a `PartitionSpec`, which says nothing of offsets.
    ///
    /// Errors: what none says ([`MeshError::Unwritten`]).
    pub fn partition_spec(&self) -> Result<String, MeshError> {
        let (cut, summed) = self.cuts(SPEC)?;
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

    /// This layout as placements of DTensor, which say nothing of offsets.
    ///
    /// Errors: what none say ([`MeshError::Unwritten`]).
    pub fn placements(&self) -> Result<String, MeshError> {
        let (cut, summed) = self.cuts(PLACEMENTS)?;
        if cut.iter().any(|axes| !axes.is_sorted()) {
            let why = "of the axes that cut a mode, the first is slowest there";
            return Err(MeshError::Unwritten { form: PLACEMENTS, why });
        }
        let of_axis = |axis: usize| match cut.iter().position(|axes| axes.contains(&axis)) {
            Some(mode) => format!("Shard({mode})"),
            None if summed.contains(&axis) => "Partial()".to_owned(),
            None => "Replicate()".to_owned(),
        };
        let entries: Vec<_> = (0..self.mesh.axes().len()).map(of_axis).collect();
        Ok(format!("[{}]", entries.join(", ")))
    }

    /// The axes that cut each mode, the slowest first, and those along which summands lie.
    fn cuts(&self, form: &'static str) -> Result<(Vec<Vec<usize>>, Vec<usize>), MeshError> {
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
                    Along::Offset if !axes.is_empty() => return fail("in a mode, elements of a device lie apart"),
                    Along::Offset => {}
                    Along::Axis(axis) if whole(axis, *extent, step.by) => axes.insert(0, axis),
                    Along::Axis(_) => return fail("a mode uses an axis in part"),
                }
            }
            cut.push(axes);
        }
        if !self.copies.iter().chain(&self.sums).all(|mode| whole(mode.axis, mode.extent, mode.step)) {
            return fail("copies or summands use an axis in part");
        }
        let used = |axis: &usize| {
            cut.iter().any(|axes| axes.contains(axis))
                || self.copies.iter().chain(&self.sums).any(|mode| mode.axis == *axis)
        };
        if self.mesh.axes().iter().enumerate().any(|(at, axis)| axis.extent > 1 && !used(&at)) {
            return fail("along an axis only the first device holds anything");
        }
        Ok((cut, self.sums.iter().map(|mode| mode.axis).collect()))
    }
}

/// The parts of a list, at commas outside of parentheses; none where parentheses do not match.
fn split(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                parts.push(text.get(start..at)?.trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text.get(start..)?.trim();
    // A comma may stand behind the last entry.
    if !last.is_empty() {
        parts.push(last);
    }
    (depth == 0 && parts.iter().all(|part| !part.is_empty())).then_some(parts)
}

/// The layout whose modes are cut by these axes, the slowest first, rows of a device one after
/// another. The error is none where an axis stands twice.
fn rows(mesh: &Mesh, shape: &[i64], cut: &[Vec<usize>], summed: &[usize]) -> Result<ShardedLayout, Option<MeshError>> {
    let extent = |axis: usize| mesh.axes().get(axis).map_or(1, |axis| axis.extent);
    let mut used: Vec<usize> = cut.iter().flatten().chain(summed).copied().collect();
    used.sort_unstable();
    if used.windows(2).any(|pair| pair.first() == pair.last()) {
        return Err(None);
    }
    let mut stride = 1_i64;
    let mut modes = Vec::new();
    for (mode, (size, axes)) in shape.iter().zip(cut).enumerate().rev() {
        let parts: i64 = axes.iter().map(|axis| extent(*axis)).product();
        if *size < 1 || size % parts != 0 {
            return Err(Some(MeshError::Uneven { mode, size: *size, parts }));
        }
        let local = (size / parts, Step { by: stride, along: Along::Offset });
        let slower = axes.iter().rev().map(|axis| (extent(*axis), Step { by: 1, along: Along::Axis(*axis) }));
        let leaves: Vec<_> = [local].into_iter().chain(slower).collect();
        let tree = if axes.is_empty() { Ok(Tree::leaf(local)) } else { Tree::flat(leaves) };
        modes.insert(0, tree.map_err(MeshError::from)?);
        stride = stride.saturating_mul(size / parts);
    }
    let elements = Tree::tuple(modes.iter()).map_err(MeshError::from)?;
    let whole = |axis: usize| MeshMode { extent: extent(axis), axis, step: 1 };
    let copies = (0..mesh.axes().len()).filter(|axis| used.binary_search(axis).is_err()).map(whole).collect();
    let sums = summed.iter().map(|axis| whole(*axis)).collect();
    Ok(ShardedLayout::new(mesh, Parts { elements, copies, sums, corner: Vec::new(), start: 0 })?)
}
