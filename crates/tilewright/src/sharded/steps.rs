//! Work on sharded tensors as steps that all devices do one after another.
//!
//! Law: a step moves a tensor from one sharded layout to another, or runs one kernel on each
//! device, on what it holds. What is moved, and in which layout devices compute, the plans of
//! `mesh` say; here it becomes kernels, before there is a device. Tensors that nothing moves are
//! used where they are.

use std::fmt;

use tilewright_kernel::Element;
use tilewright_kernels::gemm::{Matrix, Problem, Product};
use tilewright_kernels::{Expression, Planned, Statistic, map_at, reduce, reduce_at, relayout};
use tilewright_layout::{Layout, LayoutError, Leaf, Tree};
use tilewright_mesh::{Along, Kind, MapPlan, Plan, ProductPlan, ReducePlan, Reduction, ShardedLayout, SoftmaxPlan};

use super::ShardedError;
use crate::reshard::Combine;

/// The type of elements in which devices reduce.
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
            WorkStep::Move { to, .. } | WorkStep::Launch { to, .. } | WorkStep::Multiply { to, .. } => *to,
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
    /// A function of elements of floating-point numbers, which is computed in f32, or in f64 where
    /// elements are.
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
        let mut work = WorkPlan::of(plan.operands().iter().map(Plan::from), plan.result().to(), element);
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

    /// A sum, mean or greatest element along modes, of f32. Sums are taken in f32, in an order that
    /// is fixed; a NaN is the greatest only where there is nothing else.
    ///
    /// Errors: as [`fn@crate::kernels::reduce`].
    ///
    /// ```
    /// use tilewright::mesh::{Machine, Mesh, Reduction, ShardedLayout, reduce};
    /// use tilewright::sharded::{WorkPlan, WorkStep};
    ///
    /// let mesh: Mesh = "x=2".parse().unwrap();
    /// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    /// let (matrix, all) = (parse("(128,(64,2)):(1,(128,1@x))"), parse("128:1 copied 2:1@x"));
    /// let plan = reduce(&matrix, &[1], Reduction::Max, &all, 4, &Machine::HGX_H200).unwrap();
    /// let work = WorkPlan::reduce(&plan).unwrap();
    /// assert!(matches!(work.steps(), [WorkStep::Launch { .. }, WorkStep::Move { .. }]));
    /// ```
    pub fn reduce(plan: &ReducePlan) -> Result<WorkPlan, ShardedError> {
        let to = plan.result().map_or(plan.parts().to(), Plan::to);
        let mut work = WorkPlan::of([plan.operand().from()], to, REAL);
        let (statistic, combine) = match plan.by() {
            Reduction::Max => (Statistic::Maximum, Combine::Max),
            _ => (Statistic::Sum, Combine::Sum),
        };
        let x = work.moved(plan.operand(), REAL, Combine::Sum, Tensor::Operand(0));
        let at = Local::of(plan.operand().to())?;
        let is_mean = plan.by() == Reduction::Mean;
        let after: Vec<&Plan> = plan.result().into_iter().collect();
        let all: Vec<&Plan> = [plan.parts()].into_iter().chain(after.iter().copied()).collect();
        let made =
            if is_mean { work.own(plan.parts().from(), REAL) } else { work.before(&all, plan.parts().from(), REAL) };
        work.reduced(statistic, &at, plan.over(), x, made)?;
        let mut combined = made;
        if moves(plan.parts()) {
            combined =
                if is_mean { work.own(plan.parts().to(), REAL) } else { work.before(&after, plan.parts().to(), REAL) };
            work.push_move(plan.parts(), REAL, combine, made, combined);
        }
        if is_mean {
            let at = Local::of(plan.parts().to())?;
            let (layout, target) = (at.flat(|leaf| leaf.stride)?, work.before(&after, plan.parts().to(), REAL));
            let mean = Expression::input(0) / plan.count() as f64;
            let planned = map_at("mean", &mean, &[(&layout, REAL, at.start)], (&layout, REAL, at.start))?;
            work.launch(planned, &[combined], target);
            combined = target;
        }
        if let Some(result) = plan.result() {
            work.finish(result, REAL, combined);
        }
        Ok(work)
    }

    /// A softmax along modes, of f32. The greatest elements of all devices are found first, then
    /// the sums of exponentials relative to them; nothing but these numbers moves, and what the
    /// layouts of operand and result want.
    ///
    /// Errors: as [`fn@crate::kernels::reduce`].
    ///
    /// ```
    /// use tilewright::mesh::{Machine, Mesh, ShardedLayout, softmax};
    /// use tilewright::sharded::{WorkPlan, WorkStep};
    ///
    /// let mesh: Mesh = "x=2".parse().unwrap();
    /// let matrix = ShardedLayout::parse(&mesh, "(128,(64,2)):(1,(128,1@x))").unwrap();
    /// let plan = softmax(&matrix, &[1], &matrix, 4, &Machine::HGX_H200).unwrap();
    /// let work = WorkPlan::softmax(&plan).unwrap();
    /// assert_eq!(work.steps().iter().filter(|step| matches!(step, WorkStep::Move { .. })).count(), 2);
    /// ```
    pub fn softmax(plan: &SoftmaxPlan) -> Result<WorkPlan, ShardedError> {
        let [operand, pairs, result] = plan.moves();
        let mut work = WorkPlan::of([operand.from()], result.to(), REAL);
        let x = work.moved(operand, REAL, Combine::Sum, Tensor::Operand(0));
        let at = Local::of(operand.to())?;
        let (layout, rows) = (at.flat(|leaf| leaf.stride)?, at.kept(plan.over())?);
        let elements = |layout| (layout, REAL, at.start);
        let greatest = work.own(pairs.from(), REAL);
        work.reduced(Statistic::Maximum, &at, plan.over(), x, greatest)?;
        let greatest = work.moved(pairs, REAL, Combine::Max, greatest);
        let exponential = (Expression::input(0) - Expression::input(1)).exp();
        let planned = map_at("exponentials", &exponential, &[elements(&layout), (&rows, REAL, 0)], elements(&layout))?;
        let exponentials = work.own(operand.to(), REAL);
        work.launch(planned, &[x, greatest], exponentials);
        let sums = work.own(pairs.from(), REAL);
        work.reduced(Statistic::Sum, &at, plan.over(), exponentials, sums)?;
        let sums = work.moved(pairs, REAL, Combine::Sum, sums);
        let share = Expression::input(0) / Expression::input(1);
        let planned = map_at("shares", &share, &[elements(&layout), (&rows, REAL, 0)], elements(&layout))?;
        let made = work.before(&[result], result.from(), REAL);
        work.launch(planned, &[exponentials, sums], made);
        work.finish(result, REAL, made);
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
        let mut work = WorkPlan::of([a.from(), b.from()], d.to(), element);
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
        element: Element,
    ) -> WorkPlan {
        let bytes = |layout: &ShardedLayout| bytes_of(layout, element);
        let operands = operands.into_iter().map(bytes).collect();
        let (devices, result) = (result.mesh().size(), bytes(result));
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
        statistic: Statistic,
        at: &Local,
        over: &[usize],
        from: Tensor,
        to: Tensor,
    ) -> Result<(), ShardedError> {
        let layout = at.modes()?;
        let is_aligned = at.start * i64::from(REAL.bytes()) % VECTOR == 0;
        let planned = if is_aligned {
            reduce(statistic, (&layout, REAL), over)?
        } else {
            reduce_at(statistic, (&layout, REAL), over, 1)?
        };
        let first = u64::try_from(at.start).unwrap_or(0) * u64::from(REAL.bytes());
        // Results are numbered in the order of the elements; the plan wants that of the modes.
        let (left, wanted) = (at.kept_by(over, |leaf| leaf.stride)?, at.kept(over)?);
        let of_rows = |layout: &Layout| at.only_kept(over, layout);
        let (left, wanted) = (of_rows(&left)?, of_rows(&wanted)?);
        if left == wanted {
            self.steps.push(WorkStep::Launch { planned: Box::new(planned), inputs: vec![(from, first)], to });
            return Ok(());
        }
        self.between.push(u64::try_from(left.size()).unwrap_or(0) * u64::from(REAL.bytes()));
        let beside = Tensor::Between(self.between.len() - 1);
        self.steps.push(WorkStep::Launch { planned: Box::new(planned), inputs: vec![(from, first)], to: beside });
        self.launch(relayout(&left, REAL, &wanted, REAL)?, &[beside], to);
        Ok(())
    }
}

fn bytes_of(layout: &ShardedLayout, element: Element) -> u64 {
    u64::try_from(layout.reach()).unwrap_or(0).saturating_mul(u64::from(element.bytes()))
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
                WorkStep::Multiply { product, .. } => {
                    let ([m, n, k], tile) = (product.problem().sizes(), product.plan());
                    writeln!(f, "  multiplies {m} x {n} x {k}: tiles of {} x {}", tile.rows, tile.columns)?;
                }
            }
        }
        Ok(())
    }
}
