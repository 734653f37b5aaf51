//! Work on sharded tensors as steps that all devices do one after another.
//!
//! Law: a step moves a tensor from one sharded layout to another, or runs one kernel on each
//! device, on what it holds. What is moved, and in which layout devices compute, the plans of
//! `mesh` say; here it becomes kernels, before there is a device. Tensors that nothing moves are
//! used where they are.

use std::fmt;

use tilewright_kernel::Element;
use tilewright_kernels::gemm::{Matrix, Problem, Product};
use tilewright_kernels::{
    Expression, Indices, Planned, Statistic, indices_of_greatest, map_at, reduce, reduce_at, relayout,
};
use tilewright_layout::{Layout, LayoutError, Leaf, Tree};
use tilewright_mesh::{
    Along, ArgmaxPlan, Kind, MapPlan, MeshError, Plan, ProductPlan, ReducePlan, Reduction, ShardedLayout, SoftmaxPlan,
};

use super::ShardedError;
use crate::reshard::Combine;

/// The type in which exponentials are computed.
const REAL: Element = Element::F32;
/// Kernels that reduce read vectors of so many bytes.
const VECTOR: i64 = 16;

/// A tensor of a work: its memory on each device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tensor {
    /// The operand of this number.
    Operand(usize),
    /// The tensor of this number between steps.
    Between(usize),
    /// The result.
    Result,
}

/// What all devices do at a time.
#[derive(Debug, Clone)]
pub enum WorkStep {
    /// A tensor goes from one layout to another.
    Move {
        /// The steps between devices.
        plan: Box<Plan>,
        /// The type of the elements.
        element: Element,
        /// How summands become one.
        combine: Combine,
        /// What is moved.
        from: Tensor,
        /// Where to.
        to: Tensor,
    },
    /// A kernel on each device.
    Launch {
        /// The kernel.
        planned: Box<Planned>,
        /// Its inputs, each from this byte on.
        inputs: Vec<(Tensor, u64)>,
        /// What it writes.
        to: Tensor,
    },
    /// Kernels that differ from device to device, on whole tensors.
    LaunchEach {
        /// The kernels, in the order of ranks.
        planned: Vec<Planned>,
        /// Their inputs.
        inputs: Vec<Tensor>,
        /// What they write.
        to: Tensor,
    },
    /// A product of what each device holds.
    Multiply {
        /// The kernels.
        product: Box<Product>,
        /// A and B.
        factors: [Tensor; 2],
        /// The result.
        to: Tensor,
    },
}

impl WorkStep {
    /// What is written.
    pub fn to(&self) -> Tensor {
        match self {
            WorkStep::Move { to, .. }
            | WorkStep::Launch { to, .. }
            | WorkStep::LaunchEach { to, .. }
            | WorkStep::Multiply { to, .. } => *to,
        }
    }
}

/// Work on sharded tensors as steps that all devices do one after another, and the bytes that each
/// tensor takes on each device.
#[derive(Debug, Clone)]
pub struct WorkPlan {
    devices: usize,
    operands: Vec<u64>,
    between: Vec<u64>,
    result: u64,
    steps: Vec<WorkStep>,
}

impl WorkPlan {
    /// A function of elements, which is computed in f32, in f64 where elements are, or in integers
    /// of 32 bits or more.
    ///
    /// Errors: as [`fn@crate::kernels::map`].
    ///
    /// ```
    /// use tilewright::kernel::Element;
    /// use tilewright::kernels::Expression;
    /// use tilewright::mesh::{Machine, Mesh, ShardedLayout, map};
    /// use tilewright::sharded::{WorkPlan, WorkStep};
    ///
    /// let mesh: Mesh = "x=2".parse().unwrap();
    /// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    /// let (rows, columns) = (parse("((64,2),128):((128,1@x),1)"), parse("(128,(64,2)):(1,(128,1@x))"));
    /// let plan = map(&[&rows, &columns], &rows, 4, &Machine::HGX_H200).unwrap();
    /// let sum = Expression::input(0) + Expression::input(1);
    /// let work = WorkPlan::map(&plan, &sum, Element::F32).unwrap();
    /// // The second operand is moved, then each device adds what it has.
    /// assert!(matches!(work.steps(), [WorkStep::Move { .. }, WorkStep::Launch { .. }]));
    /// ```
    pub fn map(plan: &MapPlan, function: &Expression, element: Element) -> Result<WorkPlan, ShardedError> {
        let mut work = WorkPlan::of(plan.operands().iter().map(Plan::from), plan.result().to(), [element; 2]);
        let at = Local::of(plan.result().from())?;
        let mut inputs = Vec::new();
        for (number, operand) in plan.operands().iter().enumerate() {
            inputs.push(work.moved(operand, element, Combine::Sum, Tensor::Operand(number)));
        }
        let made = work.before(&[plan.result()], plan.result().from(), element);
        let layout = at.flat(|leaf| leaf.stride)?;
        let given: Vec<_> = inputs.iter().map(|_| (&layout, element, at.start)).collect();
        let planned = map_at("map", function, &given, (&layout, element, at.start))?;
        work.launch(planned, &inputs, made);
        work.finish(plan.result(), element, made);
        Ok(work)
    }

    /// A sum, mean or greatest element along modes: sums of a device are taken in f32, in f64 of
    /// such elements, or exactly of integers, which wrap, in an order that is fixed. On its way a
    /// sum has the type of the elements, as the plan counts its bytes. A NaN is the greatest only
    /// where there is nothing else.
    ///
    /// Errors: as [`fn@crate::kernels::reduce`]; a mean of integers, integers of less than 32 bits.
    ///
    /// ```
    /// use tilewright::kernel::Element;
    /// use tilewright::mesh::{Machine, Mesh, Reduction, ShardedLayout, reduce};
    /// use tilewright::sharded::{WorkPlan, WorkStep};
    ///
    /// let mesh: Mesh = "x=2".parse().unwrap();
    /// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    /// let (matrix, all) = (parse("(128,(64,2)):(1,(128,1@x))"), parse("128:1 copied 2:1@x"));
    /// let plan = reduce(&matrix, &[1], Reduction::Max, &all, 2, &Machine::HGX_H200).unwrap();
    /// let work = WorkPlan::reduce(&plan, Element::Bf16).unwrap();
    /// assert!(matches!(work.steps(), [WorkStep::Launch { .. }, WorkStep::Move { .. }]));
    /// ```
    pub fn reduce(plan: &ReducePlan, element: Element) -> Result<WorkPlan, ShardedError> {
        let is_mean = plan.by() == Reduction::Mean;
        reducible(element, is_mean.then_some("a mean"))?;
        let to = plan.result().map_or(plan.parts().to(), Plan::to);
        let mut work = WorkPlan::of([plan.operand().from()], to, [element; 2]);
        let (statistic, combine) = match plan.by() {
            Reduction::Max => (Statistic::Maximum, Combine::Max),
            _ => (Statistic::Sum, Combine::Sum),
        };
        let x = work.moved(plan.operand(), element, Combine::Sum, Tensor::Operand(0));
        let at = Local::of(plan.operand().to())?;
        let after: Vec<&Plan> = plan.result().into_iter().collect();
        let all: Vec<&Plan> = [plan.parts()].into_iter().chain(after.iter().copied()).collect();
        let (from, to) = (plan.parts().from(), plan.parts().to());
        let made = if is_mean { work.own(from, element) } else { work.before(&all, from, element) };
        work.reduced((statistic, element), &at, plan.over(), x, made)?;
        let mut combined = made;
        if moves(plan.parts()) {
            combined = if is_mean { work.own(to, element) } else { work.before(&after, to, element) };
            work.push_move(plan.parts(), element, combine, made, combined);
        }
        if is_mean {
            let at = Local::of(to)?;
            let (layout, target) = (at.flat(|leaf| leaf.stride)?, work.before(&after, to, element));
            let mean = Expression::input(0) / plan.count() as f64;
            let planned = map_at("mean", &mean, &[(&layout, element, at.start)], (&layout, element, at.start))?;
            work.launch(planned, &[combined], target);
            combined = target;
        }
        if let Some(result) = plan.result() {
            work.finish(result, element, combined);
        }
        Ok(work)
    }

    /// Where the greatest element along modes lies, as i64: of equal elements the first; a NaN is
    /// the greatest only where there is nothing else. The greatest elements of all devices are
    /// found first; then each device that has one gives its index, and the least of these counts.
    ///
    /// Errors: as [`fn@crate::kernels::reduce`]; integers of less than 32 bits.
    ///
    /// ```
    /// use tilewright::kernel::Element;
    /// use tilewright::mesh::{Machine, Mesh, ShardedLayout, argmax};
    /// use tilewright::sharded::{WorkPlan, WorkStep};
    ///
    /// let mesh: Mesh = "x=2".parse().unwrap();
    /// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    /// let (matrix, all) = (parse("(128,(64,2)):(1,(128,1@x))"), parse("128:1 copied 2:1@x"));
    /// let plan = argmax(&matrix, &[1], &all, 4, &Machine::HGX_H200).unwrap();
    /// let work = WorkPlan::argmax(&plan, Element::F32).unwrap();
    /// // Two move: greatest elements, and indices.
    /// assert_eq!(work.steps().iter().filter(|step| matches!(step, WorkStep::Move { .. })).count(), 2);
    /// ```
    pub fn argmax(plan: &ArgmaxPlan, element: Element) -> Result<WorkPlan, ShardedError> {
        const INDEX: Element = Element::I64;
        reducible(element, None)?;
        let [operand, parts] = plan.moves();
        let to = plan.result().map_or(parts.to(), Plan::to);
        let mut work = WorkPlan::of([operand.from()], to, [element, INDEX]);
        let x = work.moved(operand, element, Combine::Sum, Tensor::Operand(0));
        let at = Local::of(operand.to())?;
        let own = work.own(parts.from(), element);
        work.reduced((Statistic::Maximum, element), &at, plan.over(), x, own)?;
        let place = work.own(parts.from(), Element::I32);
        work.reduced((Statistic::ArgMaximum, element), &at, plan.over(), x, place)?;
        let greatest = work.moved(plan.greatest(), element, Combine::Max, own);
        let after: Vec<&Plan> = plan.result().into_iter().collect();
        let all: Vec<&Plan> = [parts].into_iter().chain(after.iter().copied()).collect();
        let made = work.before(&all, parts.from(), INDEX);
        let results = parts.from().local_size();
        let of_device = |rank: usize| {
            let indices = indices_of(operand.to(), plan.over(), rank);
            Ok::<_, ShardedError>(indices_of_greatest(element, results, &indices)?)
        };
        let planned = (0..work.devices).map(of_device).collect::<Result<_, _>>()?;
        work.steps.push(WorkStep::LaunchEach { planned, inputs: vec![own, greatest, place], to: made });
        let mut combined = made;
        if moves(parts) {
            combined = work.before(&after, parts.to(), INDEX);
            work.push_move(parts, INDEX, Combine::Min, made, combined);
        }
        if let Some(result) = plan.result() {
            work.finish(result, INDEX, combined);
        }
        Ok(work)
    }

    /// A softmax along modes of f16, bf16 or f32, computed in f32. The greatest elements of all
    /// devices are found first, then the sums of exponentials relative to them; nothing but these
    /// numbers moves, and what the layouts of operand and result want. Exponentials and their sums
    /// are f32.
    ///
    /// Errors: as [`fn@crate::kernels::reduce`]; elements of another type.
    ///
    /// ```
    /// use tilewright::kernel::Element;
    /// use tilewright::mesh::{Machine, Mesh, ShardedLayout, softmax};
    /// use tilewright::sharded::{WorkPlan, WorkStep};
    ///
    /// let mesh: Mesh = "x=2".parse().unwrap();
    /// let matrix = ShardedLayout::parse(&mesh, "(128,(64,2)):(1,(128,1@x))").unwrap();
    /// let plan = softmax(&matrix, &[1], &matrix, 4, &Machine::HGX_H200).unwrap();
    /// let work = WorkPlan::softmax(&plan, Element::F32).unwrap();
    /// assert_eq!(work.steps().iter().filter(|step| matches!(step, WorkStep::Move { .. })).count(), 2);
    /// ```
    pub fn softmax(plan: &SoftmaxPlan, element: Element) -> Result<WorkPlan, ShardedError> {
        if !matches!(element, Element::F16 | Element::Bf16 | REAL) {
            return Err(not_computed("a softmax", element));
        }
        let [operand, pairs, result] = plan.moves();
        let mut work = WorkPlan::of([operand.from()], result.to(), [element; 2]);
        let x = work.moved(operand, element, Combine::Sum, Tensor::Operand(0));
        let at = Local::of(operand.to())?;
        let (layout, rows) = (at.flat(|leaf| leaf.stride)?, at.kept(plan.over())?);
        let greatest = work.own(pairs.from(), element);
        work.reduced((Statistic::Maximum, element), &at, plan.over(), x, greatest)?;
        let greatest = work.moved(pairs, element, Combine::Max, greatest);
        let exponential = (Expression::input(0) - Expression::input(1)).exp();
        let given = [(&layout, element, at.start), (&rows, element, 0)];
        let planned = map_at("exponentials", &exponential, &given, (&layout, REAL, at.start))?;
        let exponentials = work.own(operand.to(), REAL);
        work.launch(planned, &[x, greatest], exponentials);
        let sums = work.own(pairs.from(), REAL);
        work.reduced((Statistic::Sum, REAL), &at, plan.over(), exponentials, sums)?;
        let sums = work.moved(pairs, REAL, Combine::Sum, sums);
        let share = Expression::input(0) / Expression::input(1);
        let given = [(&layout, REAL, at.start), (&rows, REAL, 0)];
        let planned = map_at("shares", &share, &given, (&layout, element, at.start))?;
        let made = work.before(&[result], result.from(), element);
        work.launch(planned, &[exponentials, sums], made);
        work.finish(result, element, made);
        Ok(work)
    }

    /// A product under any layouts: factors are moved, each device multiplies what it needs, and
    /// the result is moved; summands in `sums`. Where all comes in blocks, a
    /// [`super::ShardedPlan`] does these at the same time.
    ///
    /// Errors: as [`Product::new`].
    ///
    /// ```
    /// use tilewright::kernel::Element;
    /// use tilewright::mesh::{Machine, Mesh, ShardedLayout, multiply};
    /// use tilewright::sharded::{ShardedPlan, WorkPlan};
    ///
    /// let mesh: Mesh = "x=2".parse().unwrap();
    /// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    /// let (a, b) = (parse("(512,(128,2)):(128,(1,1@x))"), parse("((128,2),512):((1,1@x),128)"));
    /// // Both devices want all sums.
    /// let d = parse("(512,512):(512,1) copied 2:1@x");
    /// let plan = multiply(&a, &b, &d, 2, 7e14, &Machine::HGX_H200).unwrap();
    /// assert!(ShardedPlan::new(&plan, Element::Bf16, Element::F32).unwrap().is_none());
    /// assert!(WorkPlan::product(&plan, Element::Bf16, Element::F32).unwrap().steps().len() > 1);
    /// ```
    pub fn product(plan: &ProductPlan, element: Element, sums: Element) -> Result<WorkPlan, ShardedError> {
        let [a, b, d] = plan.moves();
        let mut work = WorkPlan::of([a.from(), b.from()], d.to(), [element; 2]);
        let factors = [
            work.moved(a, element, Combine::Sum, Tensor::Operand(0)),
            work.moved(b, element, Combine::Sum, Tensor::Operand(1)),
        ];
        let made = if d.from().sums() > 1 { sums } else { element };
        let matrix = |of: &ShardedLayout, element: Element, order: [usize; 2]| {
            let at = Local::of(of)?;
            Ok::<_, ShardedError>(Matrix::new(element, &at.modes()?.select(&order)?)?.at(at.start)?)
        };
        let problem = Problem::of(
            matrix(a.to(), element, [0, 1])?,
            matrix(b.to(), element, [1, 0])?,
            matrix(d.from(), made, [0, 1])?,
        )?;
        let narrows = made != element;
        let target = if narrows { work.own(d.from(), made) } else { work.before(&[d], d.from(), made) };
        work.steps.push(WorkStep::Multiply { product: Box::new(Product::new(&problem)?), factors, to: target });
        if !narrows {
            work.finish(d, element, target);
            return Ok(work);
        }
        let wide = work.moved(d, made, Combine::Sum, target);
        let at = Local::of(d.to())?;
        let layout = at.flat(|leaf| leaf.stride)?;
        let planned =
            map_at("narrow", &Expression::input(0), &[(&layout, made, at.start)], (&layout, element, at.start))?;
        work.launch(planned, &[wide], Tensor::Result);
        Ok(work)
    }

    /// The steps.
    pub fn steps(&self) -> &[WorkStep] {
        &self.steps
    }

    /// How many devices there are.
    pub fn devices(&self) -> usize {
        self.devices
    }

    /// Bytes that a tensor takes on each device; none where there is no such tensor.
    pub fn bytes(&self, tensor: Tensor) -> Option<u64> {
        match tensor {
            Tensor::Operand(number) => self.operands.get(number).copied(),
            Tensor::Between(number) => self.between.get(number).copied(),
            Tensor::Result => Some(self.result),
        }
    }

    /// How many operands there are, and tensors between steps.
    pub fn tensors(&self) -> [usize; 2] {
        [self.operands.len(), self.between.len()]
    }

    fn of<'a>(
        operands: impl IntoIterator<Item = &'a ShardedLayout>,
        result: &ShardedLayout,
        [given, made]: [Element; 2],
    ) -> WorkPlan {
        let operands = operands.into_iter().map(|layout| bytes_of(layout, given)).collect();
        let (devices, result) = (result.mesh().size(), bytes_of(result, made));
        WorkPlan { devices, operands, between: Vec::new(), result, steps: Vec::new() }
    }

    /// A tensor between steps.
    fn own(&mut self, layout: &ShardedLayout, element: Element) -> Tensor {
        self.between.push(bytes_of(layout, element));
        Tensor::Between(self.between.len() - 1)
    }

    /// A tensor that these plans move on: the result where they move nothing.
    fn before(&mut self, plans: &[&Plan], layout: &ShardedLayout, element: Element) -> Tensor {
        if plans.iter().any(|plan| moves(plan)) { self.own(layout, element) } else { Tensor::Result }
    }

    fn push_move(&mut self, plan: &Plan, element: Element, combine: Combine, from: Tensor, to: Tensor) {
        self.steps.push(WorkStep::Move { plan: Box::new(plan.clone()), element, combine, from, to });
    }

    /// A tensor where a plan moves it; where it is if the plan moves nothing.
    fn moved(&mut self, plan: &Plan, element: Element, combine: Combine, from: Tensor) -> Tensor {
        if !moves(plan) {
            return from;
        }
        let to = self.own(plan.to(), element);
        self.push_move(plan, element, combine, from, to);
        to
    }

    /// Moves what was made to the result, if it is not there.
    fn finish(&mut self, plan: &Plan, element: Element, made: Tensor) {
        if made != Tensor::Result {
            self.push_move(plan, element, Combine::Sum, made, Tensor::Result);
        }
    }

    fn launch(&mut self, planned: Planned, inputs: &[Tensor], to: Tensor) {
        let inputs = inputs.iter().map(|tensor| (*tensor, 0)).collect();
        self.steps.push(WorkStep::Launch { planned: Box::new(planned), inputs, to });
    }

    /// A statistic of what each device holds, where the plan wants it.
    fn reduced(
        &mut self,
        (statistic, element): (Statistic, Element),
        at: &Local,
        over: &[usize],
        from: Tensor,
        to: Tensor,
    ) -> Result<(), ShardedError> {
        let layout = at.modes()?;
        let is_aligned = at.start * i64::from(element.bytes()) % VECTOR == 0;
        let planned = if is_aligned {
            reduce(statistic, (&layout, element), over)?
        } else {
            reduce_at(statistic, (&layout, element), over, 1)?
        };
        let made = if statistic == Statistic::ArgMaximum { Element::I32 } else { element };
        let first = u64::try_from(at.start).unwrap_or(0) * u64::from(element.bytes());
        // Results are numbered in the order of the elements; the plan wants that of the modes.
        let (left, wanted) = (at.kept_by(over, |leaf| leaf.stride)?, at.kept(over)?);
        let of_rows = |layout: &Layout| at.only_kept(over, layout);
        let (left, wanted) = (of_rows(&left)?, of_rows(&wanted)?);
        if left == wanted {
            self.steps.push(WorkStep::Launch { planned: Box::new(planned), inputs: vec![(from, first)], to });
            return Ok(());
        }
        self.between.push(u64::try_from(left.size()).unwrap_or(0) * u64::from(made.bytes()));
        let beside = Tensor::Between(self.between.len() - 1);
        self.steps.push(WorkStep::Launch { planned: Box::new(planned), inputs: vec![(from, first)], to: beside });
        self.launch(relayout(&left, made, &wanted, made)?, &[beside], to);
        Ok(())
    }
}

fn bytes_of(layout: &ShardedLayout, element: Element) -> u64 {
    u64::try_from(layout.reach()).unwrap_or(0).saturating_mul(u64::from(element.bytes()))
}

/// That devices reduce elements of a type.
fn reducible(element: Element, mean: Option<&str>) -> Result<(), ShardedError> {
    let is_whole = matches!(element, Element::U32 | Element::I32 | Element::U64 | Element::I64);
    let is_real = matches!(element, Element::F16 | Element::Bf16 | Element::F32 | Element::F64);
    match mean {
        Some(what) if !is_real => Err(not_computed(what, element)),
        _ if is_whole || is_real => Ok(()),
        _ => Err(not_computed("a reduction", element)),
    }
}

fn not_computed(what: &str, element: Element) -> ShardedError {
    MeshError::Operation { what: format!("{what} of {element} is not computed on GPUs").into() }.into()
}

/// The indices in the reduced modes of what a device has.
fn indices_of(layout: &ShardedLayout, over: &[usize], rank: usize) -> Indices {
    let (mut indices, mut weight) = (Indices { first: 0, digits: Vec::new() }, 1);
    let modes = layout.part(rank).map_or(Vec::new(), |part| part.modes);
    for (number, (mode, size)) in modes.iter().zip(layout.mode_sizes()).enumerate() {
        if over.contains(&number) {
            indices.first += mode.first * weight;
            indices.digits.extend(mode.runs.iter().map(|run| (run.extent, run.index * weight)));
            weight *= size;
        }
    }
    indices
}

/// Whether a plan moves anything.
fn moves(plan: &Plan) -> bool {
    plan.steps().iter().any(|step| step.kind != Kind::Nothing)
}

/// A leaf that steps along offsets, with its mode and its number.
#[derive(Debug, Clone, Copy)]
struct LocalLeaf {
    mode: usize,
    number: usize,
    extent: i64,
    stride: i64,
}

/// What a device holds: the leaves that step along offsets, and the first offset.
struct Local {
    modes: usize,
    leaves: Vec<LocalLeaf>,
    start: i64,
}

impl Local {
    fn of(layout: &ShardedLayout) -> Result<Local, ShardedError> {
        let mut leaves = Vec::new();
        for (mode, tree) in layout.elements().modes().enumerate() {
            for (extent, step) in tree.leaves().iter().filter(|(_, step)| step.along == Along::Offset) {
                leaves.push(LocalLeaf { mode, number: leaves.len(), extent: *extent, stride: step.by });
            }
        }
        let start = layout.places(0)?.first().map_or(0, |(_, offset)| *offset);
        Ok(Local { modes: layout.mode_sizes().len(), leaves, start })
    }

    /// All leaves, one behind another, with these strides.
    fn flat(&self, stride: impl Fn(&LocalLeaf) -> i64) -> Result<Layout, LayoutError> {
        let leaves: Vec<_> =
            self.leaves.iter().map(|leaf| Leaf { extent: leaf.extent, stride: stride(leaf) }).collect();
        flat(&leaves)
    }

    /// A mode for each mode of the tensor.
    fn modes(&self) -> Result<Layout, LayoutError> {
        let modes = (0..self.modes).map(|mode| {
            let own = self.leaves.iter().filter(|leaf| leaf.mode == mode);
            let own: Vec<_> = own.map(|leaf| Leaf { extent: leaf.extent, stride: leaf.stride }).collect();
            match own[..] {
                [] => Ok(Tree::leaf(Leaf { extent: 1, stride: 0 })),
                [only] => Ok(Tree::leaf(only)),
                _ => Tree::flat(own),
            }
        });
        let modes = modes.collect::<Result<Vec<_>, LayoutError>>()?;
        Layout::from_tree(Tree::tuple(modes.iter())?)
    }

    /// All leaves, where those of modes that are not reduced lie without gaps, the first fastest.
    fn kept(&self, over: &[usize]) -> Result<Layout, LayoutError> {
        self.kept_by(over, |leaf| leaf.number as i64)
    }

    /// As [`Local::kept`], in another order.
    fn kept_by(&self, over: &[usize], order: impl Fn(&LocalLeaf) -> i64) -> Result<Layout, LayoutError> {
        let mut kept: Vec<&LocalLeaf> = self.leaves.iter().filter(|leaf| !over.contains(&leaf.mode)).collect();
        kept.sort_by_key(|leaf| (order(leaf), leaf.number));
        let (mut strides, mut next) = (vec![0; self.leaves.len()], 1);
        for leaf in kept {
            if let Some(stride) = strides.get_mut(leaf.number) {
                *stride = next;
                next *= leaf.extent;
            }
        }
        self.flat(|leaf| strides.get(leaf.number).copied().unwrap_or(0))
    }

    /// The leaves of a layout of all leaves that are not reduced and have several positions.
    fn only_kept(&self, over: &[usize], of: &Layout) -> Result<Layout, LayoutError> {
        let kept = self.leaves.iter().zip(of.leaves()).filter(|(own, _)| own.extent > 1 && !over.contains(&own.mode));
        flat(&kept.map(|(_, leaf)| *leaf).collect::<Vec<_>>())
    }
}

/// A layout of leaves one behind another.
fn flat(leaves: &[Leaf<i64>]) -> Result<Layout, LayoutError> {
    match leaves {
        [] => Ok(Layout::unit()),
        [only] => Layout::mode_of(only.extent, only.stride),
        _ => Layout::from_tree(Tree::flat(leaves.to_vec())?),
    }
}

impl fmt::Display for WorkPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            match step {
                WorkStep::Move { plan, element, .. } => writeln!(f, "  moves {element}: {}", plan.summary())?,
                WorkStep::Launch { planned, .. } => {
                    writeln!(f, "  computes {}", planned.plan().first().map_or("", String::as_str))?;
                }
                WorkStep::LaunchEach { planned, .. } => {
                    for (rank, planned) in planned.iter().enumerate() {
                        let what = planned.plan().first().map_or("", String::as_str);
                        writeln!(f, "  computes on device {rank} {what}")?;
                    }
                }
                WorkStep::Multiply { product, .. } => {
                    let ([m, n, k], tile) = (product.problem().sizes(), product.plan());
                    writeln!(f, "  multiplies {m} x {n} x {k}: tiles of {} x {}", tile.rows, tile.columns)?;
                }
            }
        }
        Ok(())
    }
}
