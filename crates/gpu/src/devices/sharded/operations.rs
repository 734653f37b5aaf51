//! The operations on sharded tensors as steps: functions of elements, reductions, softmax, GEMM.
//!
//! Law: an operation reshards its operands to the layouts in which its plan computes, launches
//! kernels on the local parts of each device, and reshards the result.

use tilewright_kernel::Element;
use tilewright_mesh::{
    ArgmaxPlan, MapPlan, MeshError, Plan, ProductPlan, ReducePlan, Reduction, ShardedLayout, SoftmaxPlan,
};
use tilewright_planners::gemm::{Matrix, Problem};
use tilewright_planners::{Expression, Indices, MapOptions, Planner, Statistic, indices_of_greatest, map};

use super::ShardedError;
use super::local::Local;
use super::steps::{Tensor, WorkPlan, WorkStep, moves};
use crate::devices::reshard::Combine;

/// The type in which exponentials are computed.
const REAL: Element = Element::F32;

impl WorkPlan {
    /// An elementwise function. It is computed in f32, in f64 for elements of f64, or in integers
    /// of 32 bits or more.
    ///
    /// Errors: as [`fn@tilewright_planners::map`].
    ///
    /// ```
    /// use tilewright::kernel::Element;
    /// use tilewright::planners::Expression;
    /// use tilewright::mesh::{Machine, Mesh, ShardedLayout, map};
    /// use tilewright::sharded::{WorkPlan, WorkStep};
    ///
    /// let h200 = tilewright::kernel::machine::Machine::named("H200").unwrap();
    /// let mesh: Mesh = "x=2".parse().unwrap();
    /// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    /// let (rows, columns) = (parse("((64,2),128):((128,1@x),1)"), parse("(128,(64,2)):(1,(128,1@x))"));
    /// let plan = map(&[&rows, &columns], &rows, 4, &Machine::HGX_H200).unwrap();
    /// let sum = Expression::input(0) + Expression::input(1);
    /// let work = WorkPlan::map(&h200, &plan, &sum, Element::F32).unwrap();
    /// // The second operand is resharded, then each device adds its part.
    /// assert!(matches!(work.steps(), [WorkStep::Move { .. }, WorkStep::Launch { .. }]));
    /// ```
    pub fn map(
        planner: &dyn Planner,
        plan: &MapPlan,
        function: &Expression,
        element: Element,
    ) -> Result<WorkPlan, ShardedError> {
        let mut work =
            WorkPlan::without_steps(plan.operands().iter().map(Plan::from), plan.result().to(), [element; 2]);
        let at = Local::of(plan.result().from())?;
        let mut inputs = Vec::new();
        for (number, operand) in plan.operands().iter().enumerate() {
            inputs.push(work.moved(operand, element, Combine::Sum, Tensor::Operand(number)));
        }
        let computed = work.target_before(&[plan.result()], plan.result().from(), element);
        let layout = at.flat(|leaf| leaf.stride)?;
        let operands: Vec<_> = inputs.iter().map(|_| (&layout, element, at.start)).collect();
        let planned = map(planner.machine(), function, &operands, (&layout, element, at.start), MapOptions::default())?;
        work.push_launch(planned, &inputs, computed);
        work.move_to_result(plan.result(), element, computed);
        Ok(work)
    }

    /// The sum, mean or maximum along modes. On a device, sums are computed in f32, in f64 for
    /// elements of f64, or exactly for integers, which wrap; the order is fixed. Partial sums are
    /// sent in the type of the elements, as the plan counts their bytes. NaN is greater than every
    /// number.
    ///
    /// Errors: as [`fn@tilewright_planners::reduce`]; a mean of integers; integers of less than 32
    /// bits.
    ///
    /// ```
    /// use tilewright::kernel::Element;
    /// use tilewright::mesh::{Machine, Mesh, Reduction, ShardedLayout, reduce};
    /// use tilewright::sharded::{WorkPlan, WorkStep};
    ///
    /// let h200 = tilewright::kernel::machine::Machine::named("H200").unwrap();
    /// let mesh: Mesh = "x=2".parse().unwrap();
    /// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    /// let (matrix, all) = (parse("(128,(64,2)):(1,(128,1@x))"), parse("128:1 copied 2:1@x"));
    /// let plan = reduce(&matrix, &[1], Reduction::Max, &all, 2, &Machine::HGX_H200).unwrap();
    /// let work = WorkPlan::reduce(&h200, &plan, Element::Bf16).unwrap();
    /// assert!(matches!(work.steps(), [WorkStep::Launch { .. }, WorkStep::Move { .. }]));
    /// ```
    pub fn reduce(planner: &dyn Planner, plan: &ReducePlan, element: Element) -> Result<WorkPlan, ShardedError> {
        let is_mean = plan.by() == Reduction::Mean;
        reducible(element, is_mean.then_some("a mean"))?;
        let to = plan.result().map_or(plan.parts().to(), Plan::to);
        let mut work = WorkPlan::without_steps([plan.operand().from()], to, [element; 2]);
        let (statistic, combine) = match plan.by() {
            Reduction::Max => (Statistic::Maximum, Combine::Max),
            _ => (Statistic::Sum, Combine::Sum),
        };
        let x = work.moved(plan.operand(), element, Combine::Sum, Tensor::Operand(0));
        let at = Local::of(plan.operand().to())?;
        let after: Vec<&Plan> = plan.result().into_iter().collect();
        let all: Vec<&Plan> = [plan.parts()].into_iter().chain(after.iter().copied()).collect();
        let (from, to) = (plan.parts().from(), plan.parts().to());
        let partial = if is_mean { work.add_tensor(from, element) } else { work.target_before(&all, from, element) };
        work.push_reduction(planner, (statistic, element), &at, plan.over(), x, partial)?;
        let mut combined = partial;
        if moves(plan.parts()) {
            combined = if is_mean { work.add_tensor(to, element) } else { work.target_before(&after, to, element) };
            work.push_move(plan.parts(), element, combine, partial, combined);
        }
        if is_mean {
            let at = Local::of(to)?;
            let (layout, target) = (at.flat(|leaf| leaf.stride)?, work.target_before(&after, to, element));
            let mean = Expression::input(0) / plan.count() as f64;
            let planned = map(
                planner.machine(),
                &mean,
                &[(&layout, element, at.start)],
                (&layout, element, at.start),
                MapOptions { name: "mean" },
            )?;
            work.push_launch(planned, &[combined], target);
            combined = target;
        }
        if let Some(result) = plan.result() {
            work.move_to_result(result, element, combined);
        }
        Ok(work)
    }

    /// Argmax along modes, as i64. Of equal elements, the first counts, and NaN is greater than
    /// every number. The maxima over all devices are computed first. Then each device that has a
    /// maximum gives its index, and the smallest index counts.
    ///
    /// Errors: as [`fn@tilewright_planners::reduce`]; integers of less than 32 bits.
    ///
    /// ```
    /// use tilewright::kernel::Element;
    /// use tilewright::mesh::{Machine, Mesh, ShardedLayout, argmax};
    /// use tilewright::sharded::{WorkPlan, WorkStep};
    ///
    /// let h200 = tilewright::kernel::machine::Machine::named("H200").unwrap();
    /// let mesh: Mesh = "x=2".parse().unwrap();
    /// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    /// let (matrix, all) = (parse("(128,(64,2)):(1,(128,1@x))"), parse("128:1 copied 2:1@x"));
    /// let plan = argmax(&matrix, &[1], &all, 4, &Machine::HGX_H200).unwrap();
    /// let work = WorkPlan::argmax(&h200, &plan, Element::F32).unwrap();
    /// // Two move: greatest elements, and indices.
    /// assert_eq!(work.steps().iter().filter(|step| matches!(step, WorkStep::Move { .. })).count(), 2);
    /// ```
    pub fn argmax(planner: &dyn Planner, plan: &ArgmaxPlan, element: Element) -> Result<WorkPlan, ShardedError> {
        const INDEX: Element = Element::I64;
        reducible(element, None)?;
        let [operand, parts] = plan.moves();
        let to = plan.result().map_or(parts.to(), Plan::to);
        let mut work = WorkPlan::without_steps([operand.from()], to, [element, INDEX]);
        let x = work.moved(operand, element, Combine::Sum, Tensor::Operand(0));
        let at = Local::of(operand.to())?;
        let own = work.add_tensor(parts.from(), element);
        work.push_reduction(planner, (Statistic::Maximum, element), &at, plan.over(), x, own)?;
        let place = work.add_tensor(parts.from(), Element::I32);
        work.push_reduction(planner, (Statistic::ArgMaximum, element), &at, plan.over(), x, place)?;
        let greatest = work.moved(plan.greatest(), element, Combine::Max, own);
        let after: Vec<&Plan> = plan.result().into_iter().collect();
        let all: Vec<&Plan> = [parts].into_iter().chain(after.iter().copied()).collect();
        let partial = work.target_before(&all, parts.from(), INDEX);
        let results = parts.from().local_size();
        let of_device = |rank: usize| {
            let indices = indices_of(operand.to(), plan.over(), rank);
            Ok::<_, ShardedError>(indices_of_greatest(element, results, &indices)?)
        };
        let planned = (0..work.devices()).map(of_device).collect::<Result<_, _>>()?;
        work.push(WorkStep::LaunchEach { planned, inputs: vec![own, greatest, place], to: partial });
        let mut combined = partial;
        if moves(parts) {
            combined = work.target_before(&after, parts.to(), INDEX);
            work.push_move(parts, INDEX, Combine::Min, partial, combined);
        }
        if let Some(result) = plan.result() {
            work.move_to_result(result, INDEX, combined);
        }
        Ok(work)
    }

    /// Softmax along modes of f16, bf16 or f32, computed in f32. The maxima over all devices are
    /// computed first, then the sums of exponentials relative to them. Only these numbers are
    /// exchanged, besides reshards of the operand and the result. Exponentials and their sums are
    /// f32.
    ///
    /// Errors: as [`fn@tilewright_planners::reduce`]; elements of another type.
    ///
    /// ```
    /// use tilewright::kernel::Element;
    /// use tilewright::mesh::{Machine, Mesh, ShardedLayout, softmax};
    /// use tilewright::sharded::{WorkPlan, WorkStep};
    ///
    /// let h200 = tilewright::kernel::machine::Machine::named("H200").unwrap();
    /// let mesh: Mesh = "x=2".parse().unwrap();
    /// let matrix = ShardedLayout::parse(&mesh, "(128,(64,2)):(1,(128,1@x))").unwrap();
    /// let plan = softmax(&matrix, &[1], &matrix, 4, &Machine::HGX_H200).unwrap();
    /// let work = WorkPlan::softmax(&h200, &plan, Element::F32).unwrap();
    /// assert_eq!(work.steps().iter().filter(|step| matches!(step, WorkStep::Move { .. })).count(), 2);
    /// ```
    pub fn softmax(planner: &dyn Planner, plan: &SoftmaxPlan, element: Element) -> Result<WorkPlan, ShardedError> {
        if !matches!(element, Element::F16 | Element::Bf16 | REAL) {
            return Err(not_computed("a softmax", element));
        }
        let [operand, pairs, result] = plan.moves();
        let mut work = WorkPlan::without_steps([operand.from()], result.to(), [element; 2]);
        let x = work.moved(operand, element, Combine::Sum, Tensor::Operand(0));
        let at = Local::of(operand.to())?;
        let (layout, rows) = (at.flat(|leaf| leaf.stride)?, at.kept(plan.over())?);
        let greatest = work.add_tensor(pairs.from(), element);
        work.push_reduction(planner, (Statistic::Maximum, element), &at, plan.over(), x, greatest)?;
        let greatest = work.moved(pairs, element, Combine::Max, greatest);
        let exponential = (Expression::input(0) - Expression::input(1)).exp();
        let operands = [(&layout, element, at.start), (&rows, element, 0)];
        let planned = map(
            planner.machine(),
            &exponential,
            &operands,
            (&layout, REAL, at.start),
            MapOptions { name: "exponentials" },
        )?;
        let exponentials = work.add_tensor(operand.to(), REAL);
        work.push_launch(planned, &[x, greatest], exponentials);
        let sums = work.add_tensor(pairs.from(), REAL);
        work.push_reduction(planner, (Statistic::Sum, REAL), &at, plan.over(), exponentials, sums)?;
        let sums = work.moved(pairs, REAL, Combine::Sum, sums);
        let share = Expression::input(0) / Expression::input(1);
        let operands = [(&layout, REAL, at.start), (&rows, REAL, 0)];
        let planned =
            map(planner.machine(), &share, &operands, (&layout, element, at.start), MapOptions { name: "shares" })?;
        let shares = work.target_before(&[result], result.from(), element);
        work.push_launch(planned, &[exponentials, sums], shares);
        work.move_to_result(result, element, shares);
        Ok(work)
    }

    /// GEMM with any layouts. Operands are resharded, each device multiplies its local parts, and
    /// the result is resharded; partial sums have the type `sums`. If everything can be divided
    /// into blocks, a [`super::ShardedPlan`] overlaps transfers and multiplication.
    ///
    /// Errors: as [`Planner::gemm`].
    ///
    /// ```
    /// use tilewright::kernel::Element;
    /// use tilewright::mesh::{Machine, Mesh, ShardedLayout, multiply};
    /// use tilewright::sharded::{ShardedPlan, WorkPlan};
    ///
    /// let h200 = tilewright::kernel::machine::Machine::named("H200").unwrap();
    /// let mesh: Mesh = "x=2".parse().unwrap();
    /// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    /// let (a, b) = (parse("(512,(128,2)):(128,(1,1@x))"), parse("((128,2),512):((1,1@x),128)"));
    /// // Both devices want all sums.
    /// let d = parse("(512,512):(512,1) copied 2:1@x");
    /// let plan = multiply(&a, &b, &d, 2, 7e14, &Machine::HGX_H200).unwrap();
    /// assert!(ShardedPlan::new(&h200, &plan, Element::Bf16, Element::F32).unwrap().is_none());
    /// assert!(WorkPlan::product(&h200, &plan, Element::Bf16, Element::F32).unwrap().steps().len() > 1);
    /// ```
    pub fn product(
        planner: &dyn Planner,
        plan: &ProductPlan,
        element: Element,
        sums: Element,
    ) -> Result<WorkPlan, ShardedError> {
        let [a, b, d] = plan.moves();
        let mut work = WorkPlan::without_steps([a.from(), b.from()], d.to(), [element; 2]);
        let operands = [
            work.moved(a, element, Combine::Sum, Tensor::Operand(0)),
            work.moved(b, element, Combine::Sum, Tensor::Operand(1)),
        ];
        let product_type = if d.from().sums() > 1 { sums } else { element };
        let matrix = |of: &ShardedLayout, element: Element, order: [usize; 2]| {
            let at = Local::of(of)?;
            Ok::<_, ShardedError>(Matrix::new(element, &at.modes()?.select(&order)?)?.at(at.start)?)
        };
        let problem = Problem::of(
            matrix(a.to(), element, [0, 1])?,
            matrix(b.to(), element, [1, 0])?,
            matrix(d.from(), product_type, [0, 1])?,
        )?;
        let narrows = product_type != element;
        let target = if narrows {
            work.add_tensor(d.from(), product_type)
        } else {
            work.target_before(&[d], d.from(), product_type)
        };
        work.push(WorkStep::Multiply { product: Box::new(planner.gemm(&problem)?), operands, to: target });
        if !narrows {
            work.move_to_result(d, element, target);
            return Ok(work);
        }
        let wide = work.moved(d, product_type, Combine::Sum, target);
        let at = Local::of(d.to())?;
        let layout = at.flat(|leaf| leaf.stride)?;
        let planned = map(
            planner.machine(),
            &Expression::input(0),
            &[(&layout, product_type, at.start)],
            (&layout, element, at.start),
            MapOptions { name: "narrow" },
        )?;
        work.push_launch(planned, &[wide], Tensor::Result);
        Ok(work)
    }
}

/// Refuses an element type that kernels cannot reduce, or of which they compute no mean.
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

/// The local part of a device's indices along the reduced modes.
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
