//! Reductions along modes of a sharded tensor.
//!
//! Law: `D(..) = sum over i of A(.., i)`, or the maximum, or the mean, for modes that may be cut
//! along the mesh. Each device reduces its local part. Positions along the mesh of a reduced mode
//! then become summands of the result, so the rest is a reshard in which summands are combined by
//! the reduction: [`reshard`] finds reduce-scatter, all-reduce and so on.

use std::fmt;

use bytemuck::Pod;
use tilewright_layout::Tree;

use crate::devices::{Devices, Simulated, slices};
use crate::engine::beside;
use crate::engine::{Engine, element_line, elements};
use crate::error::MeshError;
use crate::local::{Reduced, whole};
use crate::machine::Machine;
use crate::map::{cheapest, without_sums};
use crate::number::Number;
use crate::plan::{Plan, micros, reshard};
use crate::sharded::{Along, ShardedLayout, Step};

/// How elements along modes are reduced to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduction {
    /// Their sum. Integers wrap.
    Sum,
    /// Their sum, divided by their number: for `f32` and `f64`.
    Mean,
    /// The maximum; NaN if one of them is NaN.
    Max,
}

/// The plan of a reduction of a sharded tensor: [`reduce()`] makes it.
#[derive(Debug, Clone)]
pub struct ReducePlan {
    by: Reduction,
    moves: Moves,
}

/// The plan of an argmax of a sharded tensor: [`argmax`] makes it.
#[derive(Debug, Clone)]
pub struct ArgmaxPlan {
    moves: Moves,
    greatest: Plan,
}

/// The communication of a reduction.
#[derive(Debug, Clone)]
struct Moves {
    over: Vec<usize>,
    /// The number of elements that are reduced to one.
    count: i64,
    operand: Plan,
    parts: Plan,
    /// The reshard of the result; None if the partial results can be combined directly in the
    /// layout of the result.
    result: Option<Plan>,
}

/// A candidate for one element of the result of an argmax: its key and its index. The largest key
/// wins; of equal keys, the smallest index.
type Candidate = [u64; 2];

/// Plans the reduction of the modes `over` of a tensor with elements of `bytes` bytes. Modes are
/// numbered from 0. In the layout of the result, either each of these modes has one element, or
/// none of them exists.
/// 0. In the result each of them has one element, or none of them is there.
///
/// Errors: no mode, a mode that is named twice, or one that the tensor does not have
/// ([`MeshError::Operation`]); a result of another shape; those of [`reshard`].
///
/// ```
/// use tilewright_mesh::{Machine, Mesh, Reduction, ShardedLayout, StepKind, reduce};
///
/// let mesh: Mesh = "x=2".parse().unwrap();
/// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
/// // Two rows of four elements, cut along x; each device is to get the sum of one row.
/// let (matrix, sums) = (parse("(2,(2,2)):(1,(2,1@x))"), parse("2:1@x"));
/// let plan = reduce(&matrix, &[1], Reduction::Sum, &sums, 8, &Machine::HGX_H200).unwrap();
/// assert_eq!(plan.parts().steps()[0].kind, StepKind::ReduceScatter);
/// let memory = [vec![1, 10, 2, 20], vec![3, 30, 4, 40]];
/// assert_eq!(plan.simulate(&memory).unwrap(), [[10], [100]]);
/// ```
pub fn reduce(
    from: &ShardedLayout,
    over: &[usize],
    by: Reduction,
    to: &ShardedLayout,
    bytes: i64,
    machine: &Machine,
) -> Result<ReducePlan, MeshError> {
    let is_sum = by != Reduction::Max;
    Ok(ReducePlan { by, moves: moves(from, over, to, is_sum, [bytes; 3], machine)? })
}

/// Plans an argmax along modes: the index of the maximum in these modes, the first mode fastest. Of
/// equal elements the first counts; NaN is greater than every number. The indices are `i64`.
///
/// Errors: those of [`reduce`].
///
/// ```
/// use tilewright_mesh::{Machine, Mesh, ShardedLayout, argmax};
///
/// let mesh: Mesh = "x=2".parse().unwrap();
/// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
/// // Four elements along one mode, two on each device.
/// let (row, place) = (parse("((2,2),):((1,1@x),)"), parse("1:0 copied 2:1@x"));
/// let plan = argmax(&row, &[0], &place, 8, &Machine::HGX_H200).unwrap();
/// assert_eq!(plan.simulate(&[vec![1.0, 5.0], vec![7.0, 7.0]]).unwrap(), [[2], [2]]);
/// ```
pub fn argmax(
    from: &ShardedLayout,
    over: &[usize],
    to: &ShardedLayout,
    bytes: i64,
    machine: &Machine,
) -> Result<ArgmaxPlan, MeshError> {
    let candidate = size_of::<Candidate>() as i64;
    let moves = moves(from, over, to, false, [bytes, candidate, size_of::<i64>() as i64], machine)?;
    let partial = moves.parts.from();
    let greatest = reshard(partial, &whole(partial)?, bytes, machine)?;
    Ok(ArgmaxPlan { moves, greatest })
}

/// The reshards of the operand, of the partial results of the devices, and of the result; `bytes`
/// are the sizes of an element of each.
fn moves(
    from: &ShardedLayout,
    over: &[usize],
    to: &ShardedLayout,
    is_sum: bool,
    bytes: [i64; 3],
    machine: &Machine,
) -> Result<Moves, MeshError> {
    let count = checked(from, over)?;
    let to = with_modes(to, over, from.mode_sizes().len())?;
    // Summands of the operand are summands of a sum; other reductions require that they are added
    // first.
    let between = if is_sum { vec![from.clone()] } else { without_sums(from)? };
    // A result may have zeros for summands; partial results cannot be combined into such a layout,
    // unless the reduction is a sum.
    let combined = if is_sum { to.clone() } else { whole(&to)? };
    let result = if combined == to { None } else { Some(reshard(&combined, &to, bytes[2], machine)?) };
    let plans = between.iter().map(|at| {
        let reduced = Reduced::of(at, over)?;
        let (operand, parts) =
            (reshard(from, at, bytes[0], machine)?, reshard(reduced.layout(), &combined, bytes[1], machine)?);
        Ok(Moves { over: over.to_vec(), count, operand, parts, result: result.clone() })
    });
    let plans = plans.collect::<Result<Vec<_>, MeshError>>()?;
    let least = cheapest(plans, |plan| (plan.seconds(), plan.operand.to().local_size()));
    least.ok_or(MeshError::Operation { what: "there is no layout to reduce in".into() })
}

/// The number of elements that are reduced to one.
pub(crate) fn checked(layout: &ShardedLayout, over: &[usize]) -> Result<i64, MeshError> {
    let sizes = layout.mode_sizes();
    let refused = |what: String| Err(MeshError::Operation { what: what.into() });
    if over.is_empty() {
        return refused("no mode is given to go over".to_owned());
    }
    let mut count = 1;
    for (at, mode) in over.iter().enumerate() {
        let Some(size) = sizes.get(*mode) else {
            return refused(format!("there is no mode {mode}: the tensor has {} modes", sizes.len()));
        };
        if over.iter().take(at).any(|other| other == mode) {
            return refused(format!("mode {mode} is given twice"));
        }
        count *= size;
    }
    Ok(count)
}

/// A layout with a mode of one element for each reduced mode that it lacks.
fn with_modes(to: &ShardedLayout, over: &[usize], modes: usize) -> Result<ShardedLayout, MeshError> {
    let own: Vec<_> = to.elements.modes().collect();
    // A tensor that is reduced to one number still has a mode.
    let is_one = over.len() == modes && own.len() == 1 && to.size() == 1;
    if own.len() + over.len() != modes && !is_one {
        return Ok(to.clone());
    }
    let mut own = own.into_iter().filter(|_| !is_one);
    let one = Tree::leaf((1, Step { by: 0, along: Along::Offset }));
    let trees = (0..modes).map(|mode| if over.contains(&mode) { Some(one.clone()) } else { own.next() });
    let trees: Vec<_> = trees.flatten().collect();
    let mut bounds = to.uneven.iter().filter(|_| !is_one).cloned();
    let uneven = (0..modes).map(|mode| if over.contains(&mode) { None } else { bounds.next().flatten() }).collect();
    ShardedLayout::new(to.mesh(), crate::sharded::Parts { elements: Tree::tuple(trees.iter())?, uneven, ..to.parts() })
}

impl Moves {
    fn plans(&self) -> impl Iterator<Item = &Plan> {
        [&self.operand, &self.parts].into_iter().chain(&self.result)
    }

    fn seconds(&self) -> f64 {
        self.plans().map(Plan::seconds).sum()
    }

    fn mesh(&self) -> &crate::Mesh {
        self.operand.from().mesh()
    }

    fn contract(&self, operation: &str) -> String {
        let mut contract = format!("operation: {operation} over modes {:?}\n", self.over);
        self.plans().for_each(|plan| contract.push_str(&plan.contract()));
        contract
    }

    /// Combines the partial results of all devices. A partial result begins as `first`; `take` adds
    /// an element with its index to it, and `finish` converts it to the type that is sent.
    fn carry<T: Number, P: Pod, Q: Pod>(
        &self,
        devices: &mut impl Devices,
        memory: &[&[T]],
        (first, take, finish): (P, impl Fn(&mut P, T, i64), impl Fn(P) -> Q),
        combine: impl Fn(&mut Q, Q),
    ) -> Result<Vec<Vec<Q>>, MeshError> {
        let operand = devices.carry(&self.operand, "the operand", memory, |sum: &mut T, summand| {
            *sum = sum.plus(summand);
        })?;
        let at = Reduced::of(self.operand.to(), &self.over)?;
        let mut parts = Vec::new();
        for (rank, operand) in devices.ranks().zip(&operand) {
            let mut partial = vec![first; elements(at.layout().reach())];
            at.each(rank, |[read, write, index]| {
                if let (Some(element), Some(partial)) = (operand.get(elements(read)), partial.get_mut(elements(write)))
                {
                    take(partial, *element, index);
                }
            });
            parts.push(partial.into_iter().map(&finish).collect::<Vec<Q>>());
        }
        devices.carry(&self.parts, "the parts", &slices(&parts), combine)
    }

    /// The combined result, resharded.
    fn finished<T: Pod>(&self, devices: &mut impl Devices, combined: Vec<Vec<T>>) -> Result<Vec<Vec<T>>, MeshError> {
        match &self.result {
            // The combined result has no summands.
            Some(plan) => devices.carry(plan, "the result", &slices(&combined), |place, value| *place = value),
            None => Ok(combined),
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, operation: &str) -> fmt::Result {
        writeln!(f, "{operation} over modes {:?}, {} elements each, over {}", self.over, self.count, self.mesh())?;
        writeln!(f, "  operand  {}", self.operand.summary())?;
        writeln!(f, "     reduced as {} to {}", self.operand.to(), self.parts.from())?;
        writeln!(f, "  parts    {}", self.parts.summary())?;
        if let Some(result) = &self.result {
            writeln!(f, "  result   {}", result.summary())?;
        }
        write!(f, "  {} us one after another", micros(self.seconds()))
    }
}

impl ReducePlan {
    /// The kind of the reduction.
    pub fn by(&self) -> Reduction {
        self.by
    }

    /// The modes that are reduced, numbered from 0.
    pub fn over(&self) -> &[usize] {
        &self.moves.over
    }

    /// The number of elements that are reduced to one.
    pub fn count(&self) -> i64 {
        self.moves.count
    }

    /// The reshard before devices reduce their local parts.
    pub fn operand(&self) -> &Plan {
        &self.moves.operand
    }

    /// The exchange of partial results.
    pub fn parts(&self) -> &Plan {
        &self.moves.parts
    }

    /// The reshard from the layout in which partial results are combined to that of the result;
    /// None if they are the same.
    pub fn result(&self) -> Option<&Plan> {
        self.moves.result.as_ref()
    }

    /// The time that the links take, in seconds.
    pub fn seconds(&self) -> f64 {
        self.moves.seconds()
    }

    /// The memory of the result on all devices, computed from that of the operand.
    ///
    /// Errors: memory that is smaller than a layout requires; a mean of integers
    /// ([`MeshError::Operation`]).
    pub fn simulate<T: Number>(&self, memory: &[Vec<T>]) -> Result<Vec<Vec<T>>, MeshError> {
        self.carry(&mut Simulated(self.moves.mesh().size()), &slices(memory))
    }

    /// The memory of the result in this process, computed from that of the operand.
    ///
    /// Errors: those of [`ReducePlan::simulate`] and [`Plan::run`].
    pub fn run<T: Number>(&self, engine: &mut impl Engine, memory: &[T]) -> Result<Vec<T>, MeshError> {
        let contract = element_line::<T>() + &self.moves.contract(&self.by.to_string());
        let done = beside(engine, self.moves.mesh(), &contract, |own| self.carry(own, &[memory]))?;
        Ok(done.into_iter().next().unwrap_or_default())
    }

    fn carry<T: Number>(&self, devices: &mut impl Devices, memory: &[&[T]]) -> Result<Vec<Vec<T>>, MeshError> {
        if self.by == Reduction::Mean && T::default().divided(1).is_none() {
            let what = format!("the mean of `{}` is not one of them in general", std::any::type_name::<T>());
            return Err(MeshError::Operation { what: what.into() });
        }
        let mut combined = match self.by {
            Reduction::Max => {
                let take = |greatest: &mut T, element: T, _| *greatest = greatest.larger(element);
                self.moves.carry(devices, memory, (T::LEAST, take, |greatest| greatest), |one, other| {
                    *one = one.larger(other)
                })?
            }
            Reduction::Sum | Reduction::Mean => {
                let take = |sum: &mut T::Wide, element: T, _| element.add_to(sum);
                let adding = (T::Wide::default(), take, T::narrow);
                self.moves.carry(devices, memory, adding, |one: &mut T, other| *one = one.plus(other))?
            }
        };
        if self.by == Reduction::Mean {
            for element in combined.iter_mut().flatten() {
                *element = element.divided(self.moves.count).unwrap_or(*element);
            }
        }
        self.moves.finished(devices, combined)
    }
}

impl ArgmaxPlan {
    /// The modes that are searched, numbered from 0.
    pub fn over(&self) -> &[usize] {
        &self.moves.over
    }

    /// The plan by which all devices that hold a part receive the maxima, if these are sent before
    /// their indices, as on GPUs. Between processes, elements and indices are sent together.
    pub fn greatest(&self) -> &Plan {
        &self.greatest
    }

    /// The reshard before devices search their local parts, and the exchange that compares their
    /// results.
    pub fn moves(&self) -> [&Plan; 2] {
        [&self.moves.operand, &self.moves.parts]
    }

    /// The reshard from the layout in which candidates are compared to that of the result; None if
    /// they are the same.
    pub fn result(&self) -> Option<&Plan> {
        self.moves.result.as_ref()
    }

    /// The time that the links take, in seconds.
    pub fn seconds(&self) -> f64 {
        self.moves.seconds()
    }

    /// The indices on all devices, from the memory of the operand.
    ///
    /// Errors: memory that is smaller than a layout requires.
    pub fn simulate<T: Number>(&self, memory: &[Vec<T>]) -> Result<Vec<Vec<i64>>, MeshError> {
        self.carry(&mut Simulated(self.moves.mesh().size()), &slices(memory))
    }

    /// The indices in this process, from the memory of the operand.
    ///
    /// Errors: those of [`ArgmaxPlan::simulate`] and [`Plan::run`].
    pub fn run<T: Number>(&self, engine: &mut impl Engine, memory: &[T]) -> Result<Vec<i64>, MeshError> {
        let contract = element_line::<T>() + &self.moves.contract("argmax");
        let done = beside(engine, self.moves.mesh(), &contract, |own| self.carry(own, &[memory]))?;
        Ok(done.into_iter().next().unwrap_or_default())
    }

    fn carry<T: Number>(&self, devices: &mut impl Devices, memory: &[&[T]]) -> Result<Vec<Vec<i64>>, MeshError> {
        let better = |one: &mut Candidate, other: Candidate| {
            if other[0] > one[0] || other[0] == one[0] && other[1] < one[1] {
                *one = other;
            }
        };
        let take = |best: &mut Candidate, element: T, index: i64| better(best, [element.key(), index as u64]);
        let combined = self.moves.carry(devices, memory, ([0, u64::MAX], take, |best| best), better)?;
        let indices = combined.into_iter().map(|of| of.into_iter().map(|[_, index]| index as i64).collect());
        self.moves.finished(devices, indices.collect())
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Reduction::Sum => "sum",
            Reduction::Mean => "mean",
            Reduction::Max => "max",
        })
    }
}

impl fmt::Display for ReducePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.moves.write(f, &self.by.to_string())
    }
}

impl fmt::Display for ArgmaxPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.moves.write(f, "argmax")
    }
}
