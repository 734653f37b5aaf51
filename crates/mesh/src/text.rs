//! The text form of sharded layouts: a printed layout parses as the same layout.
//!
//! ```text
//! sharded := layout [ ('of' | 'packed') sizes ] [ 'copied' layout ] [ 'summed' layout ] [ 'at' term { '+' term } ]
//! ```
//!
//! If devices hold unequal parts, the sizes of the modes follow `of`: `((3,4),7):((7,1@tp),1) of
//! (10,7)`. With `packed`, a device with fewer elements has the strides of its own extents.
//!
//! A layout is shape:stride. A stride is a step along offsets, `8`, or along an axis of the mesh,
//! `1@tp`; a shape alone is compact in the memory of a device. The first offset and the coordinate
//! of the first device follow `at`. The mesh defines the names of axes, so a layout is parsed for a
//! given mesh. A word begins a part if there are spaces around it.

use std::fmt;

use tilewright_layout::{Coordinate, Layout, LayoutError, ModePath, Tree};

use crate::error::MeshError;
use crate::mesh::Mesh;
use crate::sharded::{Along, MeshMode, Parts, ShardedLayout, Step};

impl ShardedLayout {
    /// Parses a layout over a mesh.
    ///
    /// Errors: a text that is not a sharded layout; an axis that the mesh does not have; those of
    /// [`ShardedLayout::new`].
    pub fn parse(mesh: &Mesh, text: &str) -> Result<ShardedLayout, MeshError> {
        // Parts are removed from the end, so that the elements remain.
        let (rest, at) = cut(text, " at ");
        let (rest, summed) = cut(rest, " summed ");
        let (rest, copied) = cut(rest, " copied ");
        let (rest, packed) = cut(rest, " packed ");
        let (elements, sizes) = cut(rest, " of ");
        if packed.is_some() && sizes.is_some() {
            return Err(MeshError::Syntax { text: text.trim().into(), expected: "`of` or `packed`, and not both" });
        }
        let along_mesh = |text: Option<&str>| text.map_or(Ok(Vec::new()), |text| mesh_modes(mesh, text));
        let (corner, start) = at.map_or(Ok((Vec::new(), 0)), |text| read_corner(mesh, text))?;
        let (copies, sums) = (along_mesh(copied)?, along_mesh(summed)?);
        let elements = read_layout(mesh, elements)?;
        let uneven = sizes.or(packed).map_or(Ok(Vec::new()), |text| read_sizes(&elements, text))?;
        ShardedLayout::new(mesh, Parts { elements, copies, sums, corner, start, uneven, packed: packed.is_some() })
    }
}

/// The size of each mode.
fn read_sizes(elements: &Tree<(i64, Step)>, text: &str) -> Result<Vec<Option<i64>>, MeshError> {
    let fail = || MeshError::Syntax { text: text.trim().into(), expected: "the size of each mode, such as `(10,7)`" };
    let sizes: Tree<i64> = text.trim().parse().map_err(|_| fail())?;
    let is_flat = sizes.modes().all(|mode| mode.is_leaf());
    let fits = sizes.is_leaf() == elements.is_leaf() && sizes.modes().count() == elements.modes().count();
    (is_flat && fits).then(|| sizes.leaves().iter().copied().map(Some).collect()).ok_or_else(fail)
}

/// The text before and after a word.
fn cut<'a>(text: &'a str, word: &str) -> (&'a str, Option<&'a str>) {
    text.split_once(word).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// The text with axes replaced by numbers: `8` becomes `8@0`, and `1@tp` becomes `1@2` if `tp` is
/// axis 1.
fn numbered(mesh: &Mesh, text: &str) -> Result<String, MeshError> {
    let mut numbered = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let take = |rest: &'_ str, wanted: fn(char) -> bool| rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        if !first.is_ascii_digit() {
            numbered.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            continue;
        }
        let (number, after) = rest.split_at(take(rest, |c| c.is_ascii_digit()));
        numbered.push_str(number);
        rest = after;
        let Some(after) = rest.strip_prefix('@') else {
            numbered.push_str("@0");
            continue;
        };
        let (name, after) = after.split_at(take(after, |c| c.is_ascii_alphanumeric() || c == '_'));
        let axis =
            mesh.axis(name).ok_or_else(|| MeshError::NoAxis { name: name.into(), mesh: mesh.to_string().into() });
        numbered.push_str(&format!("@{}", axis? + 1));
        rest = after;
    }
    Ok(numbered)
}

/// Extents and steps.
fn read_layout(mesh: &Mesh, text: &str) -> Result<Tree<(i64, Step)>, MeshError> {
    let Some((shape, strides)) = text.split_once(':') else {
        let compact = Layout::compact(&text.parse::<Tree<i64>>().map_err(|error| not_a_layout(text, error))?)?;
        return Ok(compact.tree().map(|leaf| (leaf.extent, Step { by: leaf.stride, along: Along::Offset })));
    };
    let numbered = format!("{shape}:{}", numbered(mesh, strides)?);
    let layout = numbered.parse::<Layout<Coordinate>>().map_err(|error| not_a_layout(text, error))?;
    layout.tree().try_map(|leaf| Ok((leaf.extent, step_of(&leaf.stride, text)?)))
}

/// The error of a text that is not a layout. It gives no position in the text, because the text was
/// parsed with numbers in place of names.
fn not_a_layout(text: &str, error: LayoutError) -> MeshError {
    match error {
        LayoutError::Syntax { .. } => {
            MeshError::Syntax { text: text.trim().into(), expected: "a layout over the mesh, such as `(2,4):(1,1@tp)`" }
        }
        error => MeshError::Layout(error),
    }
}

/// The step that a parsed coordinate denotes: path `@0` is for offsets and `@1` for the first axis.
fn step_of(stride: &Coordinate, text: &str) -> Result<Step, MeshError> {
    let mut terms = stride.terms();
    let first = terms.next();
    if terms.next().is_some() {
        return Err(MeshError::Syntax { text: text.trim().into(), expected: "steps along one thing each" });
    }
    Ok(first.map_or(Step { by: 0, along: Along::Offset }, |(path, by)| Step { by: *by, along: along(path) }))
}

fn along(path: ModePath) -> Along {
    path.modes().next().and_then(|mode| mode.checked_sub(1)).map_or(Along::Offset, Along::Axis)
}

/// Parses modes that must all step along the mesh.
fn mesh_modes(mesh: &Mesh, text: &str) -> Result<Vec<MeshMode>, MeshError> {
    let modes = read_layout(mesh, text)?;
    let of_leaf = |(extent, step): &(i64, Step)| match step.along {
        Along::Axis(axis) => Ok(MeshMode { extent: *extent, axis, step: step.by }),
        Along::Offset => {
            Err(MeshError::Syntax { text: text.trim().into(), expected: "steps along the mesh, such as `2:1@dp`" })
        }
    };
    modes.leaves().iter().map(of_leaf).collect()
}

/// Parses the coordinate of the first device and the first offset.
fn read_corner(mesh: &Mesh, text: &str) -> Result<(Vec<i64>, i64), MeshError> {
    let terms: Coordinate = numbered(mesh, text.trim())?.parse().map_err(|error| not_a_layout(text, error))?;
    let (mut corner, mut start) = (vec![0; mesh.axes().len()], 0);
    for (path, by) in terms.terms() {
        match along(path) {
            Along::Offset => start = *by,
            Along::Axis(axis) => corner.iter_mut().skip(axis).take(1).for_each(|at| *at = *by),
        }
    }
    Ok((corner, start))
}

/// The written form of a step.
struct Written<'a>(&'a Mesh, Step);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Written(mesh, Step { by, along }) = self;
        write!(f, "{by}")?;
        match along {
            Along::Offset => Ok(()),
            Along::Axis(axis) => match mesh.axes().get(*axis) {
                Some(axis) => write!(f, "@{}", axis.name),
                None => write!(f, "@{axis}"),
            },
        }
    }
}

/// Writes a tree, with `leaf` for its leaves.
fn write_tree<T>(
    f: &mut fmt::Formatter<'_>,
    tree: &Tree<T>,
    leaf: &impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result
where
    T: Clone,
{
    if let (true, [only]) = (tree.is_leaf(), tree.leaves()) {
        return leaf(f, only);
    }
    f.write_str("(")?;
    for (at, mode) in tree.modes().enumerate() {
        f.write_str(if at == 0 { "" } else { "," })?;
        write_tree(f, &mode, leaf)?;
    }
    // A tuple of one mode has a trailing comma, as in Python.
    f.write_str(if tree.rank() == 1 { ",)" } else { ")" })
}

/// Writes modes along the mesh as a layout.
fn write_modes(f: &mut fmt::Formatter<'_>, mesh: &Mesh, modes: &[MeshMode]) -> fmt::Result {
    let list = |f: &mut fmt::Formatter<'_>, part: &dyn Fn(&mut fmt::Formatter<'_>, &MeshMode) -> fmt::Result| {
        f.write_str(if modes.len() == 1 { "" } else { "(" })?;
        for (at, mode) in modes.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "," })?;
            part(f, mode)?;
        }
        f.write_str(if modes.len() == 1 { "" } else { ")" })
    };
    list(f, &|f, mode| write!(f, "{}", mode.extent))?;
    f.write_str(":")?;
    list(f, &|f, mode| write!(f, "{}", Written(mesh, Step { by: mode.step, along: Along::Axis(mode.axis) })))
}

impl fmt::Display for ShardedLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_tree(f, &self.elements, &|f, (extent, _)| write!(f, "{extent}"))?;
        f.write_str(":")?;
        write_tree(f, &self.elements, &|f, (_, step)| Written(&self.mesh, *step).fmt(f))?;
        if self.is_uneven() {
            f.write_str(if self.packed { " packed " } else { " of " })?;
            f.write_str(if self.elements.is_leaf() { "" } else { "(" })?;
            for (at, mode) in self.modes().iter().enumerate() {
                write!(f, "{}{}", if at == 0 { "" } else { "," }, mode.size)?;
            }
            f.write_str(match (self.elements.is_leaf(), self.elements.rank()) {
                (true, _) => "",
                (false, 1) => ",)",
                _ => ")",
            })?;
        }
        for (word, modes) in [("copied", &self.copies), ("summed", &self.sums)] {
            if !modes.is_empty() {
                write!(f, " {word} ")?;
                write_modes(f, &self.mesh, modes)?;
            }
        }
        let own = self.corner.iter().enumerate().map(|(axis, by)| Step { by: *by, along: Along::Axis(axis) });
        let corner = own.chain([Step { by: self.start, along: Along::Offset }]).filter(|step| step.by != 0);
        for (at, step) in corner.enumerate() {
            write!(f, "{}{}", if at == 0 { " at " } else { "+" }, Written(&self.mesh, step))?;
        }
        Ok(())
    }
}
