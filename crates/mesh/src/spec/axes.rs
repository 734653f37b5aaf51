//! Meshes in the form in which JAX and PyTorch print them: names and extents of axes, and the order
//! of devices.
//!
//! Law: an axis has a name and an extent, and axes are listed with the slowest first. A mesh that
//! lists its devices has these ranks, if they contain each number from 0 on in an order that is a
//! layout; otherwise it is refused. If a mesh of PyTorch has only strides, and these leave gaps, it
//! is a part of a larger mesh, and its devices are numbered from 0 on in their order.

use super::{arguments, split};
use crate::error::MeshError;
use crate::mesh::Mesh;

/// The axes of a printed mesh, the slowest first.
pub(super) struct Axes {
    pub axes: Vec<(String, i64)>,
    /// The step in ranks along each axis; None if the text lists neither devices nor strides.
    pub strides: Option<Vec<i64>>,
}

impl Axes {
    /// Parses a printed mesh: `Mesh('dp': 2, 'tp': 4)` and `Mesh(axis_sizes=(2, 4),
    /// axis_names=('dp', 'tp'))` of JAX, `DeviceMesh((dp=2, tp=4), 'cuda', stride=(4, 1))` of
    /// PyTorch, and from older versions `Mesh(device_ids=array([[0, 1], [2, 3]]), axis_names=('dp',
    /// 'tp'))` and `DeviceMesh('cuda', [[0, 1], [2, 3]], mesh_dim_names=('dp', 'tp'))`.
    pub fn of(text: &str) -> Option<Axes> {
        let text = text.trim();
        let text = text.strip_prefix("Abstract").unwrap_or(text);
        let found = match arguments(text, "DeviceMesh") {
            Some(parts) => of_torch(&parts),
            None => of_jax(&arguments(text, "Mesh")?),
        };
        found.filter(|found| !found.axes.is_empty())
    }

    /// The mesh with these axes.
    pub fn mesh(&self) -> Result<Mesh, MeshError> {
        let axes = self.axes.iter().map(|(name, extent)| (name.as_str(), *extent));
        match &self.strides {
            Some(strides) => Mesh::with_ranks(axes.zip(strides).map(|((name, extent), step)| (name, extent, *step))),
            None => Mesh::row_major(&axes.collect::<Vec<_>>()),
        }
    }

    /// Checks that a mesh has the same axes, and the same ranks if the text specifies them.
    pub fn check(&self, mesh: &Mesh) -> Result<(), MeshError> {
        let own = mesh.axes().iter().map(|axis| (&axis.name, axis.extent));
        let alike = own.eq(self.axes.iter().map(|(name, extent)| (name, *extent)));
        let ranks = mesh.ranks().leaves().iter().filter(|leaf| leaf.extent > 1).map(|leaf| leaf.stride);
        let moved = self.axes.iter().zip(self.strides.iter().flatten()).filter(|((_, extent), _)| *extent > 1);
        if alike && (self.strides.is_none() || ranks.eq(moved.map(|(_, step)| *step))) {
            return Ok(());
        }
        let strides = self.strides.iter().flatten().map(|step| format!(":{step}")).collect::<Vec<_>>();
        let axis = |(at, (name, extent)): (usize, &(String, i64))| {
            format!("{name}={extent}{}", strides.get(at).map_or("", String::as_str))
        };
        let other: Vec<String> = self.axes.iter().enumerate().map(axis).collect();
        Err(MeshError::Meshes { from: mesh.to_string().into(), to: other.join(",").into() })
    }
}

/// The value of a named argument.
fn named<'a>(parts: &[&'a str], name: &str) -> Option<&'a str> {
    parts.iter().find_map(|part| Some(part.trim().strip_prefix(name)?.trim_start().strip_prefix('=')?.trim()))
}

fn pair(part: &str, between: char) -> Option<(String, i64)> {
    let (name, extent) = part.split_once(between)?;
    let name = name.trim().trim_matches(['\'', '"']);
    Some((name.to_owned(), extent.trim().parse().ok()?))
}

/// The names in `('dp', 'tp')`.
fn names(text: &str) -> Option<Vec<String>> {
    let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some(split(inner)?.into_iter().map(|name| name.trim().trim_matches(['\'', '"']).to_owned()).collect())
}

/// The numbers in `(2, 4)`.
fn tuple(text: &str) -> Option<Vec<i64>> {
    let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    split(inner)?.into_iter().map(|number| number.parse().ok()).collect()
}

fn of_jax(parts: &[&str]) -> Option<Axes> {
    if let Some(devices) = named(parts, "device_ids") {
        let inner = devices.strip_prefix("array(").and_then(|text| text.strip_suffix(')')).unwrap_or(devices);
        // `array([[0, 1], [2, 3]], dtype=int32)`
        let inner = split(inner)?.first().copied()?;
        return listed_axes(inner, named(parts, "axis_names"));
    }
    let axes = match named(parts, "axis_sizes") {
        Some(sizes) => {
            let (sizes, names) = (tuple(sizes)?, names(named(parts, "axis_names")?)?);
            (sizes.len() == names.len()).then(|| names.into_iter().zip(sizes).collect())?
        }
        None => parts.iter().map_while(|part| pair(part, ':')).collect(),
    };
    Some(Axes { axes, strides: None })
}

fn of_torch(parts: &[&str]) -> Option<Axes> {
    if let Some(ranks) = parts.iter().find(|part| part.trim_start().starts_with('[')) {
        return listed_axes(ranks, named(parts, "mesh_dim_names"));
    }
    let inner = parts.first()?.trim().strip_prefix('(')?.strip_suffix(')')?;
    let inner = split(inner)?;
    let axes: Vec<(String, i64)> = if inner.iter().all(|part| part.contains('=')) {
        inner.into_iter().map(|part| pair(part, '=')).collect::<Option<_>>()?
    } else {
        let extents = inner.into_iter().map(|part| part.parse().ok()).collect::<Option<Vec<i64>>>()?;
        extents.into_iter().enumerate().map(|(at, extent)| (format!("d{at}"), extent)).collect()
    };
    let stride = parts.iter().find_map(|part| {
        let rest = part.trim().strip_prefix("stride")?.trim_start();
        tuple(rest.strip_prefix(['=', ':'])?)
    });
    let strides = match stride {
        Some(stride) => Some(packed(&axes, &stride)?),
        None => None,
    };
    Some(Axes { axes, strides })
}

/// The steps of a mesh whose devices are renumbered from 0 on in their order: the strides of a mesh
/// of part of the devices have gaps.
fn packed(axes: &[(String, i64)], stride: &[i64]) -> Option<Vec<i64>> {
    if axes.len() != stride.len() {
        return None;
    }
    let mut order: Vec<usize> = (0..axes.len()).collect();
    order.sort_by_key(|at| (stride.get(*at).copied(), std::cmp::Reverse(*at)));
    let (mut step, mut reach) = (1_i64, 0_i64);
    let mut found = vec![0; axes.len()];
    for at in order {
        let (extent, own) = (axes.get(at)?.1, *stride.get(at)?);
        // The stride of an axis with one device has no meaning.
        if extent > 1 && own <= reach {
            return None;
        }
        *found.get_mut(at)? = step;
        reach = (extent - 1).checked_mul(own)?.checked_add(reach)?;
        step = step.checked_mul(extent)?;
    }
    Some(found)
}

/// The axes of a mesh that lists its devices. Without names they are `d0`, `d1` and so on.
fn listed_axes(ranks: &str, axis_names: Option<&str>) -> Option<Axes> {
    let (shape, ranks) = listed(ranks, 0)?;
    let names = match axis_names {
        None => (0..shape.len()).map(|axis| format!("d{axis}")).collect(),
        Some(text) => names(text)?,
    };
    let strides = steps(&shape, &ranks).filter(|_| ranks.first() == Some(&0))?;
    let axes: Vec<(String, i64)> = names.into_iter().zip(shape.iter().copied()).collect();
    // That each number occurs once is checked when the mesh is made.
    (axes.len() == shape.len()).then_some(Axes { axes, strides: Some(strides) })
}

/// The steps along each axis of a list in the given shape, the last axis fastest; None if the list
/// is not regular.
pub(super) fn steps(shape: &[i64], list: &[i64]) -> Option<Vec<i64>> {
    let below = |axis: usize| shape.iter().skip(axis + 1).product::<i64>();
    let at = |place: i64| usize::try_from(place).ok().and_then(|place| list.get(place)).copied();
    let first = at(0)?;
    let step = |(axis, extent): (usize, &i64)| if *extent < 2 { Some(0) } else { at(below(axis))?.checked_sub(first) };
    let steps: Vec<i64> = shape.iter().enumerate().map(step).collect::<Option<_>>()?;
    let is_linear = list.iter().zip(0_i64..).all(|(own, place)| {
        let index = |axis: usize| place / below(axis) % shape.get(axis).copied().unwrap_or(1);
        let leads = steps.iter().enumerate().map(|(axis, step)| index(axis).saturating_mul(*step));
        leads.fold(first, i64::saturating_add) == *own
    });
    is_linear.then_some(steps)
}

/// The most axes of a mesh that lists its devices.
const MOST_AXES: usize = 16;

/// The shape of a nested list of integers, and the integers.
fn listed(text: &str, depth: usize) -> Option<(Vec<i64>, Vec<i64>)> {
    let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
    if depth > MOST_AXES || !inner.starts_with('[') {
        let numbers: Vec<i64> = inner.split(',').map(|number| number.trim().parse().ok()).collect::<Option<_>>()?;
        return Some((vec![numbers.len() as i64], numbers));
    }
    let rows = split(inner)?.into_iter().map(|row| listed(row, depth + 1)).collect::<Option<Vec<_>>>()?;
    let (first, _) = rows.first()?;
    rows.iter().all(|(shape, _)| shape == first).then_some(())?;
    let shape = [vec![rows.len() as i64], first.clone()].concat();
    Some((shape, rows.into_iter().flat_map(|(_, numbers)| numbers).collect()))
}

#[cfg(test)]
mod tests {
    use super::Axes;

    #[test]
    fn meshes_are_read_as_they_are_printed() {
        for (text, mesh) in [
            ("Mesh('dp': 2, 'tp': 4, axis_types=(Auto, Auto))", "dp=2:4,tp=4:1"),
            ("AbstractMesh('dp': 2, 'tp': 4, axis_types=(Auto, Auto), device_kind=None)", "dp=2:4,tp=4:1"),
            ("Mesh(axis_sizes=(2, 4), axis_names=('dp', 'tp'), axis_types=(Auto, Auto))", "dp=2:4,tp=4:1"),
            ("Mesh(device_ids=array([[0, 1], [2, 3]]), axis_names=('x', 'y'))", "x=2:2,y=2:1"),
            ("Mesh(device_ids=array([[0, 2],\n       [1, 3]]), axis_names=('x', 'y'))", "x=2:1,y=2:2"),
            ("DeviceMesh((dp=2, tp=2), device: 'cuda', stride: (2, 1))", "dp=2:2,tp=2:1"),
            ("DeviceMesh((dp=2, tp=3), 'cuda', stride=(1, 2))", "dp=2:1,tp=3:2"),
            ("DeviceMesh((2, 4), 'cuda', stride=(4, 1))", "d0=2:4,d1=4:1"),
            ("DeviceMesh((dp=4), 'cuda', stride=(2,))", "dp=4:1"),
            ("DeviceMesh('cuda', [0, 1, 2, 3])", "d0=4:1"),
            ("DeviceMesh('cuda', [[0, 2], [1, 3]], mesh_dim_names=('a', 'b'))", "a=2:1,b=2:2"),
        ] {
            let wanted: crate::Mesh = mesh.parse().unwrap();
            assert_eq!(Axes::of(text).unwrap().mesh().unwrap(), wanted, "{text}");
        }
        for text in [
            "DeviceMesh('cuda', [0, 1, 3, 2])",
            "DeviceMesh('cuda', [4, 5, 6, 7], mesh_dim_names=('tp',))",
            "DeviceMesh((a=2, b=2), 'cuda', stride=(1, 1))",
            "DeviceMesh((a=2, b=2), 'cuda', stride=(2,))",
            "Mesh(axis_sizes=(2, 4), axis_names=('x',))",
            "Mesh()",
        ] {
            assert!(Axes::of(text).is_none(), "{text}");
        }
        assert!(Axes::of("DeviceMesh('cuda', [0, 2, 4])").unwrap().mesh().is_err());
    }
}
