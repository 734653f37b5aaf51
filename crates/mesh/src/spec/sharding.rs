//! Shardings in the form in which JAX and PyTorch print them.
//!
//! Law: a text is parsed as the object that prints it: `NamedSharding(mesh=.., spec=..)`,
//! `GSPMDSharding({devices=[2,4]<=[8]})`, `DTensorSpec(mesh=.., placements=(..))`, or the part
//! inside the parentheses. A named mesh must have the axes of the given one. A GSPMD sharding
//! numbers devices: `devices=[t0,t1]<=[d0,d1]T(1,0)` are the numbers from 0 on in the shape
//! `[d0,d1]`, with its axes permuted, reshaped to the tiles, the last axis fastest; so each tile
//! has a device. (OpenXLA, `HloSharding`.)

use super::axes::{Axes, steps};
use super::{Cut, arguments, cut_rows};
use crate::error::MeshError;
use crate::mesh::Mesh;
use crate::sharded::{MeshMode, ShardedLayout};
use crate::spec::cut::CutLeaf;

const EXPECTED: &str = "PartitionSpec(..), NamedSharding(mesh=.., spec=..), GSPMDSharding({devices=[2,4]<=[8]}), \
                        [Shard(0), Replicate()], or DTensorSpec(mesh=.., placements=(..))";

fn fail(text: &str) -> MeshError {
    MeshError::Syntax { text: text.trim().into(), expected: EXPECTED }
}

impl ShardedLayout {
    /// The layout of a tensor that a printed sharding of JAX or PyTorch denotes: a `NamedSharding`,
    /// a `GSPMDSharding`, a `PartitionSpec`, placements, a `DTensorSpec`, or an `#sdy.sharding` of
    /// Shardy.
    ///
    /// Errors: a text of none of these forms; a mesh in it that differs from the given one; modes
    /// that JAX cuts unevenly; those of [`ShardedLayout::of_partition_spec`] and
    /// [`ShardedLayout::of_placements`].
    ///
    /// ```
    /// use tilewright_mesh::{Mesh, ShardedLayout};
    ///
    /// let mesh = Mesh::row_major(&[("dp", 2), ("tp", 4)]).unwrap();
    /// let read = |text: &str| ShardedLayout::of_sharding(&mesh, &[8, 6], text).unwrap();
    /// let named = read("NamedSharding(mesh=Mesh('dp': 2, 'tp': 4), spec=PartitionSpec('tp', None))");
    /// assert_eq!(named, read("GSPMDSharding({devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate})"));
    /// assert_eq!(named, read("DTensorSpec(mesh=mesh, placements=(Replicate(), Shard(dim=0)))"));
    /// ```
    pub fn of_sharding(mesh: &Mesh, shape: &[i64], text: &str) -> Result<ShardedLayout, MeshError> {
        let own = text.trim();
        let own = own.strip_prefix("jax.sharding.").unwrap_or(own);
        if let Some(parts) = arguments(own, "NamedSharding") {
            let own = argument(&parts, "mesh").and_then(Axes::of).ok_or_else(|| fail(text))?;
            own.check(mesh)?;
            let spec = argument(&parts, "spec").ok_or_else(|| fail(text))?;
            return ShardedLayout::of_partition_spec(mesh, shape, spec);
        }
        if let Some(parts) = arguments(own, "DTensorSpec") {
            if let Some(own) = argument(&parts, "mesh").and_then(Axes::of) {
                own.check(mesh)?;
            }
            let placements = argument(&parts, "placements").ok_or_else(|| fail(text))?;
            return ShardedLayout::of_placements(mesh, shape, placements);
        }
        if let Some(parts) = arguments(own, "GSPMDSharding") {
            return gspmd(mesh, shape, parts.first().ok_or_else(|| fail(text))?);
        }
        if is_shardy(own) {
            return ShardedLayout::of_shardy(mesh, shape, own);
        }
        match own.chars().next() {
            Some('{') => gspmd(mesh, shape, own),
            Some('[' | '(') => ShardedLayout::of_placements(mesh, shape, own),
            Some('P') => ShardedLayout::of_partition_spec(mesh, shape, own),
            _ => Err(fail(text)),
        }
    }
}

impl Mesh {
    /// The mesh in a printed sharding of JAX or PyTorch. For a `NamedSharding` or `DTensorSpec`, it
    /// has the printed axes, the last one fastest; for a `GSPMDSharding`, whose devices are only
    /// numbered, axes `d0`, `d1` and so on. For Shardy it is the mesh `sdy.mesh @mesh = <["x"=2]>`,
    /// or one inside of an `#sdy.sharding`.
    ///
    /// Errors: a text without a mesh; one whose devices are in an order that is no layout.
    ///
    /// ```
    /// use tilewright_mesh::Mesh;
    ///
    /// let mesh = |text: &str| Mesh::of_sharding(text).unwrap().to_string();
    /// assert_eq!(mesh("NamedSharding(mesh=Mesh('dp': 2, 'tp': 4), spec=PartitionSpec('tp',))"), "dp=2:4,tp=4:1");
    /// assert_eq!(mesh("GSPMDSharding({devices=[2,4]<=[4,2]T(1,0)})"), "d0=4:2,d1=2:1");
    /// let listed = "DeviceMesh('cuda', [[0, 1], [2, 3]], mesh_dim_names=('dp', 'tp'))";
    /// assert_eq!(mesh(&format!("DTensorSpec(mesh={listed}, placements=(Shard(dim=0), Replicate()))")), "dp=2:2,tp=2:1");
    /// ```
    pub fn of_sharding(text: &str) -> Result<Mesh, MeshError> {
        let own = text.trim();
        let own = own.strip_prefix("jax.sharding.").unwrap_or(own);
        for name in ["NamedSharding", "DTensorSpec"] {
            if let Some(parts) = arguments(own, name) {
                return argument(&parts, "mesh").and_then(Axes::of).ok_or_else(|| fail(text))?.mesh();
            }
        }
        if own.starts_with("sdy.mesh") {
            return Mesh::of_shardy(own);
        }
        // The mesh may be inside of a sharding of Shardy.
        if is_shardy(own) {
            let inner = own.split_once("mesh<").and_then(|(_, rest)| rest.split_once('>')).ok_or_else(|| fail(text))?;
            return Mesh::of_shardy(&format!("<{}>", inner.0));
        }
        let inner = arguments(own, "GSPMDSharding").and_then(|parts| parts.first().copied()).unwrap_or(own);
        let devices = ShardingDevices::of(inner).ok_or_else(|| fail(text))?;
        let extents = match &devices.order {
            Order::Iota { shape, .. } => shape.clone(),
            Order::Listed(all) => vec![all.len() as i64],
        };
        let names: Vec<String> = (0..extents.len()).map(|at| format!("d{at}")).collect();
        let axes: Vec<(&str, i64)> = names.iter().map(String::as_str).zip(extents).collect();
        Mesh::row_major(&axes)
    }
}

/// Whether a text is a sharding of Shardy.
fn is_shardy(text: &str) -> bool {
    ["#sdy.sharding<", "sdy.sharding<", "<@", "<mesh<", "<#sdy.mesh<"].iter().any(|sign| text.starts_with(sign))
}

/// The value of a named argument.
fn argument<'a>(parts: &[&'a str], name: &str) -> Option<&'a str> {
    parts.iter().find_map(|part| Some(part.strip_prefix(name)?.trim_start().strip_prefix('=')?.trim()))
}

/// The order of devices over tiles.
enum Order {
    /// The numbers from 0 on in a shape, with its axes permuted.
    Iota { shape: Vec<i64>, axes: Vec<usize> },
    /// The device of each tile.
    Listed(Vec<i64>),
}

/// `devices=[..]..` of a sharding of GSPMD.
struct ShardingDevices {
    tiles: Vec<i64>,
    order: Order,
    /// The number of axes of tiles, the last ones, along which there are copies.
    replicated: usize,
}

fn numbers(text: &str) -> Option<Vec<i64>> {
    text.split(',').map(|number| number.trim().parse().ok()).collect()
}

/// The numbers in brackets at the beginning of a text, and the rest of the text.
fn bracketed(text: &str) -> Option<(Vec<i64>, &str)> {
    let (inner, rest) = text.trim_start().strip_prefix('[')?.split_once(']')?;
    Some((numbers(inner)?, rest))
}

impl ShardingDevices {
    fn of(text: &str) -> Option<ShardingDevices> {
        let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
        let (tiles, rest) = bracketed(inner.trim().strip_prefix("devices=")?)?;
        let (order, rest) = match rest.strip_prefix("<=") {
            Some(rest) => {
                let (shape, rest) = bracketed(rest)?;
                let (axes, rest) = match rest.strip_prefix("T(") {
                    Some(rest) => {
                        let (axes, rest) = rest.split_once(')')?;
                        let axes = numbers(axes)?.into_iter().map(|axis| usize::try_from(axis).ok());
                        (axes.collect::<Option<Vec<_>>>()?, rest)
                    }
                    None => ((0..shape.len()).collect(), rest),
                };
                let is_permutation = axes.len() == shape.len() && (0..shape.len()).all(|axis| axes.contains(&axis));
                is_permutation.then_some((Order::Iota { axes, shape }, rest))?
            }
            None => {
                let end = rest.find([' ', '}']).unwrap_or(rest.len());
                let (list, rest) = rest.split_at(end);
                (Order::Listed(numbers(list)?), rest)
            }
        };
        let replicated = match rest.trim() {
            "" => 0,
            "last_tile_dim_replicate" => 1,
            other => {
                let kinds = other.strip_prefix("last_tile_dims={")?.strip_suffix('}')?;
                let kinds: Vec<&str> = kinds.split(',').map(str::trim).collect();
                kinds.iter().all(|kind| *kind == "replicated").then_some(kinds.len())?
            }
        };
        let product = |all: &[i64]| all.iter().try_fold(1_i64, |all, one| (*one > 0).then(|| all.checked_mul(*one))?);
        let count = match &order {
            Order::Iota { shape, .. } => product(shape),
            Order::Listed(all) => Some(all.len() as i64),
        };
        let fits = product(&tiles).is_some() && product(&tiles) == count && replicated <= tiles.len();
        fits.then_some(ShardingDevices { tiles, order, replicated })
    }

    /// For each axis of tiles, the extents and steps in ranks along it, the slowest first; None if
    /// an axis of tiles ends within an axis of the shape, or a list is not regular.
    fn factors(&self) -> Option<Vec<Vec<(i64, i64)>>> {
        match &self.order {
            Order::Iota { shape, axes } => {
                let stride = |axis: usize| shape.iter().skip(axis + 1).product::<i64>();
                let mut left: Vec<(i64, i64)> =
                    axes.iter().map(|axis| (shape.get(*axis).copied().unwrap_or(1), stride(*axis))).rev().collect();
                let of_tile = |tile: &i64| {
                    let (mut wanted, mut factors) = (*tile, Vec::new());
                    while wanted > 1 {
                        let (extent, step) = left.pop()?;
                        let taken = extent.min(wanted);
                        if extent % taken != 0 || wanted % taken != 0 {
                            return None;
                        }
                        wanted /= taken;
                        if taken > 1 {
                            factors.push((taken, step * (extent / taken)));
                        }
                        if extent > taken {
                            left.push((extent / taken, step));
                        }
                    }
                    Some(factors)
                };
                self.tiles.iter().map(of_tile).collect()
            }
            Order::Listed(all) => {
                let steps = steps(&self.tiles, all).filter(|_| all.first() == Some(&0))?;
                Some(self.tiles.iter().zip(steps).map(|(tile, step)| vec![(*tile, step)]).collect())
            }
        }
    }
}

/// The layout that a sharding of GSPMD denotes.
fn gspmd(mesh: &Mesh, shape: &[i64], text: &str) -> Result<ShardedLayout, MeshError> {
    let inner = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}')).ok_or_else(|| fail(text))?.trim();
    let whole = |shape: &[i64]| shape.iter().map(|size| Cut::whole(*size)).collect::<Vec<_>>();
    let axis = |axis: usize| mesh.axes().get(axis).map_or(1, |axis| axis.extent);
    if inner == "replicated" {
        let copies = (0..mesh.axes().len()).map(|at| MeshMode { extent: axis(at), axis: at, step: 1 }).collect();
        return cut_rows(mesh, shape, &whole(shape), (copies, Vec::new()), Vec::new());
    }
    if let Some(device) = inner.strip_prefix("maximal device=") {
        let rank: usize = device.trim().parse().map_err(|_| fail(text))?;
        let corner = mesh.coordinate(rank);
        if corner.is_empty() {
            return Err(fail(text));
        }
        return cut_rows(mesh, shape, &whole(shape), (Vec::new(), Vec::new()), corner);
    }
    let devices = ShardingDevices::of(text).ok_or_else(|| fail(text))?;
    let count: i64 = devices.tiles.iter().product();
    if count != mesh.size() as i64 {
        let to = format!("{count} devices");
        return Err(MeshError::Meshes { from: mesh.to_string().into(), to: to.into() });
    }
    let modes = devices.tiles.len() - devices.replicated;
    if modes != shape.len() {
        return Err(fail(text));
    }
    let factors = devices.factors().ok_or_else(|| fail(text))?;
    let mut cuts = Vec::new();
    for (mode, (size, factors)) in shape.iter().zip(&factors).enumerate() {
        let parts: i64 = factors.iter().map(|(extent, _)| extent).product();
        if *size < 1 || size % parts != 0 {
            return Err(MeshError::Uneven { mode, size: *size, parts });
        }
        let mut leaves = vec![CutLeaf { extent: size / parts, along: None }];
        for (extent, step) in factors.iter().rev() {
            let along = on_axes(mesh, *extent, *step).ok_or_else(|| fail(text))?;
            leaves.extend(
                along.into_iter().map(|mode| CutLeaf { extent: mode.extent, along: Some((mode.axis, mode.step)) }),
            );
        }
        cuts.push(Cut { leaves, size: *size });
    }
    let mut copies = Vec::new();
    for (extent, step) in factors.iter().skip(modes).flatten() {
        copies.extend(on_axes(mesh, *extent, *step).ok_or_else(|| fail(text))?);
    }
    cut_rows(mesh, shape, &cuts, (copies, Vec::new()), Vec::new())
}

/// A step in ranks as steps along the axes of a mesh, the fastest first.
fn on_axes(mesh: &Mesh, extent: i64, step: i64) -> Option<Vec<MeshMode>> {
    let (mut extent, mut step, mut modes) = (extent, step, Vec::new());
    while extent > 1 {
        let strides = mesh.ranks().leaves();
        let mut axes = mesh.axes().iter().zip(strides).enumerate();
        let (axis, (own, leaf)) = axes.find(|(_, (axis, leaf))| {
            axis.extent > 1 && leaf.stride <= step && step < leaf.stride * axis.extent && step % leaf.stride == 0
        })?;
        let by = step / leaf.stride;
        let room = own.extent / by;
        if own.extent % by != 0 || (extent > room && extent % room != 0) || (extent < room && room % extent != 0) {
            return None;
        }
        let taken = extent.min(room);
        modes.push(MeshMode { extent: taken, axis, step: by });
        extent /= taken;
        step *= taken;
    }
    Some(modes)
}
