//! Shardings of Shardy, in the form in which StableHLO and JAX print them.
//!
//! Law: `#sdy.sharding<@mesh, [{"x", "y"}, {}]>` names, for each mode of a tensor, the axes that
//! cut it, the slowest first. The tensor is replicated along all other axes, and is a sum of parts
//! along those of `unreduced`. `"x":(m)k` is the part of an axis of extent `n` that has `m` devices
//! before it and `n / (m k)` after it: `k` devices that are `n / (m k)` apart. `?` and `p1` state
//! what a later pass may change, and do not affect the tensor. A mode that its axes do not cut into
//! equal parts is refused, as in JAX. (OpenXLA, "Sharding representation".)

use super::axes::steps;
use super::{Cut, cut_rows};
use crate::error::MeshError;
use crate::mesh::Mesh;
use crate::sharded::{MeshMode, ShardedLayout};
use crate::spec::cut::CutLeaf;

const EXPECTED: &str = "#sdy.sharding<@mesh, [{\"x\"}, {}]>, or sdy.mesh @mesh = <[\"x\"=2, \"y\"=4]>";

fn fail(text: &str) -> MeshError {
    MeshError::Syntax { text: text.trim().into(), expected: EXPECTED }
}

impl Mesh {
    /// The mesh that Shardy prints, `sdy.mesh @mesh = <["x"=2, "y"=4]>`, or the part in `<..>`: the
    /// last axis is the fastest, or the devices are listed.
    ///
    /// Errors: any other text; a mesh without axes, which denotes a single device; devices in an
    /// order that is no layout.
    ///
    /// ```
    /// use tilewright_mesh::Mesh;
    ///
    /// let mesh = |text: &str| Mesh::of_shardy(text).unwrap().to_string();
    /// assert_eq!(mesh("sdy.mesh @mesh = <[\"x\"=2, \"y\"=4]>"), "x=2:4,y=4:1");
    /// assert_eq!(mesh("<[\"x\"=2, \"y\"=2], device_ids=[0, 2, 1, 3]>"), "x=2,y=2"); // x is fastest
    /// ```
    pub fn of_shardy(text: &str) -> Result<Mesh, MeshError> {
        let mut scan = Scan { rest: text.trim() };
        if scan.eat("sdy.mesh") {
            let named = scan.eat("@") && scan.name().is_some() && scan.eat("=");
            named.then_some(()).ok_or_else(|| fail(text))?;
        }
        let _ = scan.eat("#sdy.mesh") || scan.eat("mesh");
        let mesh = scan.mesh().ok_or_else(|| fail(text))?;
        mesh.filter(|_| scan.rest.is_empty()).ok_or_else(|| fail(text))?.made()
    }
}

impl ShardedLayout {
    /// The layout of a tensor that a sharding of Shardy denotes: `#sdy.sharding<@mesh, [{"x"},
    /// {}]>`, or the part in `<..>`. The mesh is the given one, whatever its name.
    ///
    /// Errors: any other text; an axis that the mesh does not have, or that is used twice; more or
    /// fewer entries than modes; a mode that is not cut into equal parts; a mesh inside of the text
    /// that differs from the given one.
    ///
    /// ```
    /// use tilewright_mesh::{Mesh, ShardedLayout};
    ///
    /// let mesh = Mesh::row_major(&[("x", 2), ("y", 4)]).unwrap();
    /// let read = |text: &str| ShardedLayout::of_shardy(&mesh, &[8, 6], text).unwrap().to_string();
    /// assert_eq!(read("#sdy.sharding<@mesh, [{\"y\"}, {}]>"), "((2,4),6):((6,1@y),1) copied 2:1@x");
    /// assert_eq!(read("<@mesh, [{\"y\":(1)2}, {?}], unreduced={\"x\"}>"), "((4,2),6):((6,2@y),1) copied 2:1@y summed 2:1@x");
    /// ```
    pub fn of_shardy(mesh: &Mesh, shape: &[i64], text: &str) -> Result<ShardedLayout, MeshError> {
        let mut scan = Scan { rest: text.trim() };
        let _ = scan.eat("#sdy.sharding") || scan.eat("sdy.sharding");
        let sharding = scan.sharding().filter(|_| scan.rest.is_empty()).ok_or_else(|| fail(text))?;
        if let Some(own) = sharding.mesh {
            let own = own.made()?;
            if own != *mesh {
                return Err(MeshError::Meshes { from: mesh.to_string().into(), to: own.to_string().into() });
            }
        }
        if sharding.modes.len() != shape.len() {
            return Err(fail(text));
        }
        let mut used: Vec<MeshMode> = Vec::new();
        let mut take = |part: &Part| -> Result<MeshMode, MeshError> {
            let mode = part.on(mesh).ok_or_else(|| match mesh.axis(&part.name) {
                None => MeshError::NoAxis { name: part.name.as_str().into(), mesh: mesh.to_string().into() },
                Some(_) => fail(text),
            })?;
            // Parts of one axis must not overlap.
            let apart = |other: &MeshMode| {
                other.axis != mode.axis
                    || other.step >= mode.step * mode.extent
                    || mode.step >= other.step * other.extent
            };
            used.iter().all(apart).then_some(()).ok_or_else(|| fail(text))?;
            used.push(mode);
            Ok(mode)
        };
        let mut cuts = Vec::new();
        for (mode, (size, parts)) in shape.iter().zip(&sharding.modes).enumerate() {
            let along = parts.iter().map(&mut take).collect::<Result<Vec<MeshMode>, MeshError>>()?;
            let count = along.iter().try_fold(1_i64, |count, own| count.checked_mul(own.extent));
            let uneven = MeshError::Uneven { mode, size: *size, parts: count.unwrap_or(i64::MAX) };
            let count = count.filter(|count| *size > 0 && size % count == 0).ok_or(uneven)?;
            let mut leaves = vec![CutLeaf { extent: size / count, along: None }];
            leaves.extend(
                along.iter().rev().map(|own| CutLeaf { extent: own.extent, along: Some((own.axis, own.step)) }),
            );
            cuts.push(Cut { leaves, size: *size });
        }
        let sums = sharding.unreduced.iter().map(&mut take).collect::<Result<Vec<MeshMode>, MeshError>>()?;
        // Axes that are named as replicated are replicated anyway, but must not be used otherwise.
        let _ = sharding.replicated.iter().map(&mut take).collect::<Result<Vec<MeshMode>, MeshError>>()?;
        used.retain(|own| {
            cuts.iter().flat_map(|cut| &cut.leaves).any(|leaf| leaf.along == Some((own.axis, own.step)))
                || sums.contains(own)
        });
        cut_rows(mesh, shape, &cuts, (left(mesh, used), sums), Vec::new())
    }
}

/// The rest of the axes of a mesh, without the parts that are used.
fn left(mesh: &Mesh, mut used: Vec<MeshMode>) -> Vec<MeshMode> {
    used.sort_by_key(|own| (own.axis, own.step));
    let mut found = Vec::new();
    for (axis, own) in mesh.axes().iter().enumerate() {
        let mut step = 1;
        let parts = used.iter().filter(|part| part.axis == axis).map(|part| (part.step, part.extent));
        for (next, extent) in parts.chain([(own.extent, 1)]) {
            if next > step {
                found.push(MeshMode { extent: next / step, axis, step });
            }
            step = next * extent;
        }
    }
    found
}

/// An axis, or a part of one: `"x"`, `"x":(2)4`.
struct Part {
    name: String,
    /// The number of devices before the part, and in it; None for a whole axis.
    within: Option<(i64, i64)>,
}

impl Part {
    /// The devices of a mesh along this axis or part; None if the mesh does not have it.
    fn on(&self, mesh: &Mesh) -> Option<MeshMode> {
        let axis = mesh.axis(&self.name)?;
        let whole = mesh.axes().get(axis)?.extent;
        let (before, extent) = self.within.unwrap_or((1, whole));
        let covered = before.checked_mul(extent).filter(|covered| *covered > 0 && whole % covered == 0)?;
        Some(MeshMode { extent, axis, step: whole / covered })
    }
}

/// A mesh as written.
struct WrittenSharding {
    axes: Vec<(String, i64)>,
    devices: Option<Vec<i64>>,
}

impl WrittenSharding {
    fn made(&self) -> Result<Mesh, MeshError> {
        let axes: Vec<(&str, i64)> = self.axes.iter().map(|(name, extent)| (name.as_str(), *extent)).collect();
        let Some(devices) = &self.devices else { return Mesh::row_major(&axes) };
        let extents: Vec<i64> = axes.iter().map(|(_, extent)| *extent).collect();
        let size = extents.iter().try_fold(1_i64, |size, extent| size.checked_mul((*extent).max(0)));
        let listed = || format!("device_ids of {} devices", devices.len());
        if axes.is_empty() || size != i64::try_from(devices.len()).ok() || devices.first() != Some(&0) {
            return Err(fail(&listed()));
        }
        let steps = steps(&extents, devices).ok_or_else(|| fail(&listed()))?;
        Mesh::with_ranks(axes.iter().zip(steps).map(|((name, extent), step)| (*name, *extent, step)))
    }
}

struct Sharding {
    /// The mesh, if it is in the text.
    mesh: Option<WrittenSharding>,
    modes: Vec<Vec<Part>>,
    replicated: Vec<Part>,
    unreduced: Vec<Part>,
}

struct Scan<'a> {
    rest: &'a str,
}

impl<'a> Scan<'a> {
    /// Skips a token after blanks, and the blanks after it; false if it is not next.
    fn eat(&mut self, sign: &str) -> bool {
        let found = self.rest.trim_start().strip_prefix(sign);
        if let Some(rest) = found {
            self.rest = rest.trim_start();
        }
        found.is_some()
    }

    /// A name of MLIR, plain or in quotes.
    fn name(&mut self) -> Option<&'a str> {
        if let Some(rest) = self.rest.strip_prefix('"') {
            let (name, rest) = rest.split_once('"')?;
            self.rest = rest;
            return Some(name);
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | '$' | '-'));
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        (!name.is_empty()).then_some(name)
    }

    fn number(&mut self) -> Option<i64> {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, rest) = rest.split_at(end);
        self.rest = rest;
        digits.parse().ok()
    }

    /// Items separated by commas, up to the closing token.
    fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut found = Vec::new();
        if self.eat(close) {
            return Some(found);
        }
        loop {
            found.push(item(self)?);
            if self.eat(close) {
                return Some(found);
            }
            self.eat(",").then_some(())?;
        }
    }

    /// Parses `<["x"=2, "y"=4], device_ids=[..]>`; the inner value is None for a mesh of one
    /// device.
    fn mesh(&mut self) -> Option<Option<WrittenSharding>> {
        self.eat("<").then_some(())?;
        let mut axes = Vec::new();
        if self.eat("[") {
            axes = self.list("]", |scan| {
                let name = scan.name()?.to_owned();
                let extent = scan.eat("=").then(|| scan.number()).flatten()?;
                Some((name, extent))
            })?;
        }
        let _ = self.eat(",");
        let mut devices = None;
        if self.eat("device_ids") {
            (self.eat("=") && self.eat("[")).then_some(())?;
            devices = Some(self.list("]", Scan::number)?);
        }
        self.eat(">").then_some(())?;
        Some((!axes.is_empty()).then_some(WrittenSharding { axes, devices }))
    }

    fn part(&mut self) -> Option<Part> {
        self.rest = self.rest.trim_start();
        self.rest.starts_with('"').then_some(())?;
        let name = self.name()?.to_owned();
        let within = match self.eat(":") {
            false => None,
            true => {
                let before = self.eat("(").then(|| self.number()).flatten()?;
                let extent = self.eat(")").then(|| self.number()).flatten()?;
                Some((before, extent))
            }
        };
        Some(Part { name, within })
    }

    /// Parses `{"x", "y", ?}p1`.
    fn mode(&mut self) -> Option<Vec<Part>> {
        self.eat("{").then_some(())?;
        let parts = self.list("}", |scan| if scan.eat("?") { Some(None) } else { scan.part().map(Some) })?;
        // `?` must be last.
        let open = parts.iter().position(Option::is_none);
        (open.is_none() || open == parts.len().checked_sub(1)).then_some(())?;
        if self.eat("p") {
            self.number()?;
        }
        Some(parts.into_iter().flatten().collect())
    }

    fn sharding(&mut self) -> Option<Sharding> {
        self.eat("<").then_some(())?;
        let mesh = if self.eat("@") {
            self.name()?;
            None
        } else {
            (self.eat("mesh") || self.eat("#sdy.mesh")).then_some(())?;
            Some(self.mesh()??)
        };
        (self.eat(",") && self.eat("[")).then_some(())?;
        let modes = self.list("]", Scan::mode)?;
        let (mut replicated, mut unreduced) = (Vec::new(), Vec::new());
        while self.eat(",") {
            let own = if self.eat("replicated") {
                &mut replicated
            } else {
                self.eat("unreduced").then_some(&mut unreduced)?
            };
            (own.is_empty() && self.eat("=") && self.eat("{")).then_some(())?;
            *own = self.list("}", Scan::part)?;
        }
        self.eat(">").then_some(Sharding { mesh, modes, replicated, unreduced })
    }
}
