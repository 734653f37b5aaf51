//! GEMMs of sharded matrices.
//!
//! Law: `D(m,n)` is the sum over k of `A(m,k) * B(k,n)`, for A, B and D with any sharded layouts
//! over one mesh. A *schedule* assigns a role to each axis of the mesh: it cuts M, N or K, or all
//! devices along it compute the same. The schedule determines which parts of A and B each device
//! needs and which part of D it computes, with summands along the axes that cut K. Operands are
//! resharded before, and the result after. All schedules are tried, and the one that takes the
//! least time on the machine is chosen. So all-gather of an operand, reduce-scatter of partial
//! sums, and 2D and 3D matmul are not special cases here but roles.

mod run;
mod tasks;

use std::fmt;
use std::ops::{AddAssign, Mul};

use tilewright_layout::Tree;

use crate::error::MeshError;
use crate::machine::Machine;
use crate::plan::{Plan, micros, reshard};
use crate::sharded::{Along, MeshMode, Parts, ShardedLayout, Step};
use crate::step::Exchange;
use crate::uneven::rounded_up;

/// The most schedules that are tried.
pub const MAX_SCHEDULES: usize = 4096;

/// The most scalar multiplications that [`ProductPlan::simulate`] computes for all devices.
pub const MAX_SIMULATED: i64 = 1 << 28;

/// The role of an axis of the mesh in a matmul.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The axis cuts the rows of A and D.
    Rows,
    /// The axis cuts the columns of B and D.
    Columns,
    /// The axis cuts the columns of A and the rows of B; D is a sum along it.
    Depth,
    /// All devices along the axis compute the same.
    Same,
}

const ROLES: [Role; 4] = [Role::Rows, Role::Columns, Role::Depth, Role::Same];

/// The plan of a matmul of sharded matrices: the role of each axis of the mesh, and the three
/// reshards of A, B and the result. [`multiply`] makes it.
#[derive(Debug, Clone)]
pub struct ProductPlan {
    roles: Vec<Role>,
    a: Plan,
    b: Plan,
    d: Plan,
    multiplying: f64,
    sizes: [i64; 3],
}

/// The schedule that takes the least time for `D = A B` on a machine whose devices compute `rate`
/// multiplications and additions per second, with elements of `bytes` bytes.
///
/// Errors: layouts that are not matrices of matching sizes ([`MeshError::Shapes`]), or are over
/// different meshes ([`MeshError::Meshes`]); more schedules than [`MAX_SCHEDULES`]; errors of
/// [`reshard`].
///
/// ```
/// use tilewright_mesh::{Machine, Mesh, Role, ShardedLayout, StepKind, multiply};
///
/// let mesh: Mesh = "tp=2".parse().unwrap();
/// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
/// let a = parse("((4096,2),8192):((8192,1@tp),1)"); // rows in two parts
/// let b = parse("(8192,(4096,2)):(1,(8192,1@tp))"); // columns in two parts
/// let d = parse("(8192,(4096,2)):(4096,(1,1@tp))");
/// let plan = multiply(&a, &b, &d, 2, 7e14, &Machine::HGX_H200).unwrap();
/// assert_eq!(plan.roles(), [Role::Columns]); // A is gathered, nothing else moves
/// assert_eq!(plan.moves()[0].steps()[0].kind, StepKind::AllGather);
/// ```
pub fn multiply(
    a: &ShardedLayout,
    b: &ShardedLayout,
    d: &ShardedLayout,
    bytes: i64,
    rate: f64,
    machine: &Machine,
) -> Result<ProductPlan, MeshError> {
    if let Some(other) = [b, d].into_iter().find(|other| other.mesh() != a.mesh()) {
        let (from, to) = (a.mesh().to_string().into(), other.mesh().to_string().into());
        return Err(MeshError::Meshes { from, to });
    }
    let (sizes_a, sizes_b, sizes_d) = (a.mode_sizes(), b.mode_sizes(), d.mode_sizes());
    let sizes = match (sizes_a.as_slice(), sizes_b.as_slice(), sizes_d.as_slice()) {
        ([m, k], [k_b, n], [m_d, n_d]) if k == k_b && m == m_d && n == n_d => [*m, *n, *k],
        ([m, _], [_, n], _) => return Err(MeshError::Shapes { from: vec![*m, *n], to: sizes_d }),
        _ => return Err(MeshError::Shapes { from: sizes_a, to: sizes_b }),
    };
    let axes = a.mesh().axes();
    let tried = axes.iter().filter(|axis| axis.extent > 1).count();
    let all = u32::try_from(tried).ok().and_then(|tried| ROLES.len().checked_pow(tried));
    let Some(all) = all.filter(|all| *all <= MAX_SCHEDULES) else {
        return Err(MeshError::TooLarge { what: "schedules", limit: MAX_SCHEDULES as i64 });
    };
    let mut best: Option<ProductPlan> = None;
    for number in 0..all {
        let mut rest = number;
        let roles = axes.iter().map(|axis| {
            let role = if axis.extent > 1 { ROLES.get(rest % ROLES.len()) } else { None };
            rest /= if axis.extent > 1 { ROLES.len() } else { 1 };
            role.copied().unwrap_or(Role::Same)
        });
        let roles: Vec<Role> = roles.collect();
        let Some(plan) = scheduled([a, b, d], &roles, sizes, (bytes, rate), machine)? else { continue };
        if best.as_ref().is_none_or(|best| plan.seconds() < best.seconds() * (1.0 - 1e-9)) {
            best = Some(plan);
        }
    }
    // The schedule in which all devices compute the same always exists.
    best.ok_or(MeshError::TooLarge { what: "schedules", limit: MAX_SCHEDULES as i64 })
}

/// The plan of a schedule; None if its axes do not cut the sizes evenly.
fn scheduled(
    [a, b, d]: [&ShardedLayout; 3],
    roles: &[Role],
    [m, n, k]: [i64; 3],
    (bytes, rate): (i64, f64),
    machine: &Machine,
) -> Result<Option<ProductPlan>, MeshError> {
    let parts = |role: Role| {
        let axes = a.mesh().axes().iter().zip(roles).filter(|(_, own)| **own == role);
        axes.map(|(axis, _)| axis.extent).product::<i64>()
    };
    // Two kinds of schedules leave devices idle: those that cut an extent into more parts than it
    // has lines, and those that cut it unevenly although the layouts of the operands are even.
    let is_even = ![a, b, d].iter().any(|layout| layout.is_uneven());
    let cuts = [(m, Role::Rows), (n, Role::Columns), (k, Role::Depth)];
    if cuts.iter().any(|(size, role)| if is_even { size % parts(*role) != 0 } else { *size < parts(*role) }) {
        return Ok(None);
    }
    let needed_a = needed(a, [(m, Role::Rows), (k, Role::Depth)], roles)?;
    let needed_b = needed(b, [(k, Role::Depth), (n, Role::Columns)], roles)?;
    let multiplied = part(d, [(m, Role::Rows), (n, Role::Columns)], roles)?;
    let [rows, columns, depth] = cuts.map(|(size, role)| cut_by(size, axes_of(a.mesh(), roles, role)));
    let local = rows * columns * depth;
    Ok(Some(ProductPlan {
        roles: roles.to_vec(),
        a: reshard(a, &needed_a, bytes, machine)?,
        b: reshard(b, &needed_b, bytes, machine)?,
        d: reshard(&multiplied, d, bytes, machine)?,
        multiplying: 2.0 * local as f64 / rate,
        sizes: [m, n, k],
    }))
}

/// The extents of the axes that have a role.
fn axes_of<'a>(mesh: &'a crate::Mesh, roles: &'a [Role], role: Role) -> impl DoubleEndedIterator<Item = i64> + 'a {
    mesh.axes().iter().zip(roles).filter(move |(_, own)| **own == role).map(|(axis, _)| axis.extent)
}

/// The number of lines of the largest part if axes of these extents cut `size` lines, the fastest
/// axis first.
fn cut_by(size: i64, axes: impl DoubleEndedIterator<Item = i64>) -> i64 {
    axes.rev().fold(size, rounded_up)
}

/// The layout in which an operand is multiplied: its own layout, if each device already holds
/// exactly the part that it needs.
fn needed(own: &ShardedLayout, modes: [(i64, Role); 2], roles: &[Role]) -> Result<ShardedLayout, MeshError> {
    let needed = part(own, modes, roles)?;
    if own.is_uneven() == needed.is_uneven()
        && own.sums() == 1
        && own.local_size() == needed.local_size()
        && own.copies() == needed.copies()
    {
        let traffic = Exchange::new(own, &needed)?.traffic();
        if traffic.moved() == 0 {
            return Ok(own.clone());
        }
    }
    Ok(needed)
}

/// A column-major matrix whose modes are cut by the axes of their roles, in whole blocks. If K is
/// none of its modes, it has summands along the axes that cut K. Along all other axes that do not
/// cut its modes, it has copies.
pub(crate) fn part(of: &ShardedLayout, modes: [(i64, Role); 2], roles: &[Role]) -> Result<ShardedLayout, MeshError> {
    let axes = of.mesh().axes();
    let with = |role: Role| (0..axes.len()).filter(move |axis| roles.get(*axis) == Some(&role));
    let extent = |axis: usize| axes.get(axis).map_or(1, |axis| axis.extent);
    let whole = |axis: usize| MeshMode { extent: extent(axis), axis, step: 1 };
    let mut stride = 1;
    let (mut trees, mut uneven) = (Vec::new(), Vec::new());
    for (size, role) in modes {
        let local = cut_by(size, with(role).map(extent));
        let own = (local, Step { by: stride, along: Along::Offset });
        let cut = with(role).map(|axis| (extent(axis), Step { by: 1, along: Along::Axis(axis) }));
        let leaves: Vec<_> = [own].into_iter().chain(cut).collect();
        trees.push(if leaves.len() == 1 { Tree::leaf(own) } else { Tree::flat(leaves)? });
        uneven.push(Some(size));
        stride *= local;
    }
    let cutting = modes.map(|(_, role)| role);
    let is_result = !cutting.contains(&Role::Depth);
    let sums = with(Role::Depth).filter(|_| is_result).map(whole).collect();
    let copied = |axis: &usize| {
        roles.get(*axis).is_some_and(|role| !(cutting.contains(role) || is_result && *role == Role::Depth))
    };
    let copies = (0..axes.len()).filter(copied).map(whole).collect();
    let elements = Tree::tuple(trees.iter())?;
    let parts = Parts { elements, copies, sums, corner: Vec::new(), start: 0, uneven, packed: false };
    ShardedLayout::new(of.mesh(), parts)
}

impl ProductPlan {
    /// The role of each axis of the mesh.
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// M, N and K.
    pub fn sizes(&self) -> [i64; 3] {
        self.sizes
    }

    /// M, N and K of the local GEMM; those of the largest part if they differ.
    pub fn local_sizes(&self) -> [i64; 3] {
        let [m, n, k] = self.sizes;
        let cuts = [(m, Role::Rows), (n, Role::Columns), (k, Role::Depth)];
        cuts.map(|(size, role)| cut_by(size, axes_of(self.a.from().mesh(), &self.roles, role)))
    }

    /// The reshards: of A and B before the multiplication, and of D after it.
    pub fn moves(&self) -> [&Plan; 3] {
        [&self.a, &self.b, &self.d]
    }

    /// The time of links and devices, added, in seconds.
    pub fn seconds(&self) -> f64 {
        self.moves().iter().map(|plan| plan.seconds()).sum::<f64>() + self.multiplying
    }

    /// The memory of D on all devices, computed from that of A and B.
    ///
    /// Errors: more than [`MAX_SIMULATED`] products of elements; memory that is smaller than a
    /// layout requires.
    pub fn simulate<T>(&self, a: &[Vec<T>], b: &[Vec<T>]) -> Result<Vec<Vec<T>>, MeshError>
    where
        T: Copy + Default + AddAssign + Mul<Output = T>,
    {
        let ([m, n, k], devices) = (self.sizes, self.a.from().mesh().size());
        let all = m.checked_mul(n).and_then(|all| all.checked_mul(k)?.checked_mul(devices as i64));
        if all.is_none_or(|all| all > MAX_SIMULATED) {
            return Err(MeshError::TooLarge { what: "products of elements on all devices", limit: MAX_SIMULATED });
        }
        let (a, b) = (self.a.simulate(a)?, self.b.simulate(b)?);
        let [of_a, of_b] = [held(self.a.to(), devices)?, held(self.b.to(), devices)?];
        let multiplied = self.d.from();
        let mut products = vec![vec![T::default(); usize::try_from(multiplied.reach()).unwrap_or(0)]; devices];
        for element in 0..m * n {
            let (row, column) = (element % m, element / m);
            for (rank, offset) in multiplied.places(element)? {
                let mut sum = T::default();
                for depth in 0..k {
                    let operand = |held: &[Vec<Option<usize>>], memory: &[Vec<T>], element: i64| {
                        let at = held.get(rank)?.get(usize::try_from(element).ok()?).copied().flatten()?;
                        memory.get(rank)?.get(at).copied()
                    };
                    let (left, right) = (operand(&of_a, &a, row + m * depth), operand(&of_b, &b, depth + k * column));
                    if let (Some(left), Some(right)) = (left, right) {
                        sum += left * right;
                    }
                }
                let place = usize::try_from(offset).ok().and_then(|offset| products.get_mut(rank)?.get_mut(offset));
                place.into_iter().for_each(|place| *place = sum);
            }
        }
        self.d.simulate(&products)
    }
}

/// For each device, the elements that it holds and their offsets.
fn held(layout: &ShardedLayout, devices: usize) -> Result<Vec<Vec<Option<usize>>>, MeshError> {
    let size = usize::try_from(layout.size()).unwrap_or(0);
    let mut held = vec![vec![None; size]; devices];
    for element in 0..layout.size() {
        for (rank, offset) in layout.places(element)? {
            let place = usize::try_from(element).ok().and_then(|element| held.get_mut(rank)?.get_mut(element));
            place.into_iter().for_each(|place| *place = usize::try_from(offset).ok());
        }
    }
    Ok(held)
}

impl fmt::Display for ProductPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = self.sizes;
        writeln!(f, "{m} x {n} x {k} over {}", self.a.from().mesh())?;
        for (axis, role) in self.a.from().mesh().axes().iter().zip(&self.roles).filter(|(axis, _)| axis.extent > 1) {
            let does = match role {
                Role::Rows => "cuts the rows of A and D",
                Role::Columns => "cuts the columns of B and D",
                Role::Depth => "cuts the depth, so that D is a sum along it",
                Role::Same => "cuts nothing",
            };
            writeln!(f, "  {} {does}", axis.name)?;
        }
        writeln!(f, "  A  {}", self.a.summary())?;
        writeln!(f, "  B  {}", self.b.summary())?;
        writeln!(f, "     multiplied as {} by {}: {} us", self.a.to(), self.b.to(), micros(self.multiplying))?;
        writeln!(f, "  D  {}", self.d.summary())?;
        write!(f, "  {} us one after another", micros(self.seconds()))
    }
}
