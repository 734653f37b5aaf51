//! Elementwise functions of tensors with different sharded layouts.
//!
//! Law: `D(e) = f(A(e), B(e), ...)` for each element. All operands are resharded to one layout
//! without summands, each device computes its local part, and the result is resharded. The common
//! layout is that of the result or of an operand, whichever takes the least time.

use std::fmt;

use bytemuck::Pod;

use crate::devices::{Devices, Simulated, slices};
use crate::engine::beside;
use crate::engine::{Engine, element_line, elements};
use crate::error::MeshError;
use crate::local::{Reduced, whole};
use crate::machine::Machine;
use crate::number::Number;
use crate::plan::{Plan, micros, reshard};
use crate::sharded::ShardedLayout;
use crate::way::added;

/// The plan of an elementwise function of sharded tensors: [`map()`] makes it.
#[derive(Debug, Clone)]
pub struct MapPlan {
    operands: Vec<Plan>,
    result: Plan,
}

/// Plans an elementwise function on elements of `bytes` bytes. Operands and result may have any
/// layouts over the same mesh.
///
/// Errors: no operand ([`MeshError::Operation`]); layouts of different tensors or meshes; those of
/// [`reshard`].
///
/// ```
/// use tilewright_mesh::{Machine, Mesh, ShardedLayout, map};
///
/// let mesh: Mesh = "x=2".parse().unwrap();
/// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
/// let (halves, sums) = (parse("(2,2):(1,1@x)"), parse("4:1 summed 2:1@x"));
/// let plan = map(&[&halves, &halves], &halves, 8, &Machine::HGX_H200).unwrap();
/// let memory = [vec![1.0, 2.0], vec![3.0, 4.0]];
/// let products = plan.simulate(&[&memory, &memory], |of| of[0] * of[1]).unwrap();
/// assert_eq!(products, [[1.0, 4.0], [9.0, 16.0]]);
/// // What is a sum of two summands is added up before.
/// let plan = map(&[&sums], &sums, 8, &Machine::HGX_H200).unwrap();
/// let memory = [vec![1, 2, 3, 4], vec![1, 1, 1, 1]];
/// let squares = plan.simulate(&[&memory], |of| of[0] * of[0]).unwrap();
/// assert_eq!(squares, [[4, 9, 16, 25], [0, 0, 0, 0]]);
/// ```
pub fn map(
    operands: &[&ShardedLayout],
    to: &ShardedLayout,
    bytes: i64,
    machine: &Machine,
) -> Result<MapPlan, MeshError> {
    if operands.is_empty() {
        return Err(MeshError::Operation { what: "a function of elements needs an operand".into() });
    }
    let mut between = vec![whole(to)?];
    for operand in operands {
        between.extend(without_sums(operand)?);
    }
    let plans = between.iter().map(|at| {
        let operands = operands.iter().map(|operand| reshard(operand, at, bytes, machine));
        Ok(MapPlan { operands: operands.collect::<Result<_, MeshError>>()?, result: reshard(at, to, bytes, machine)? })
    });
    let plans = plans.collect::<Result<Vec<_>, MeshError>>()?;
    let least = cheapest(plans, |plan| (plan.seconds(), plan.result.from().local_size()));
    least.ok_or(MeshError::Operation { what: "a function of elements needs an operand".into() })
}

/// The layouts without summands that are the closest to a layout: the layout itself if it has no
/// summands. Otherwise there are two: each device that has a summand gets the whole sum, or each of
/// them gets a part of it.
pub(crate) fn without_sums(layout: &ShardedLayout) -> Result<Vec<ShardedLayout>, MeshError> {
    let parts = if layout.sums() > 1 { added(layout)? } else { None };
    Ok([whole(layout)?].into_iter().chain(parts.filter(|parts| parts.sums() == 1)).collect())
}

/// The plan that takes the least time. Among equal ones, the one in which devices compute the
/// least; among these, the first.
pub(crate) fn cheapest<P>(plans: Vec<P>, cost: impl Fn(&P) -> (f64, i64)) -> Option<P> {
    let mut best: Option<(P, (f64, i64))> = None;
    for plan in plans {
        let (seconds, work) = cost(&plan);
        let better = |(_, (least, least_work)): &(P, (f64, i64))| {
            seconds < least * (1.0 - 1e-9) || seconds <= least * (1.0 + 1e-9) && work < *least_work
        };
        if best.as_ref().is_none_or(better) {
            best = Some((plan, (seconds, work)));
        }
    }
    best.map(|(plan, _)| plan)
}

impl MapPlan {
    /// The reshards of the operands, one plan for each.
    pub fn operands(&self) -> &[Plan] {
        &self.operands
    }

    /// The reshard of the result. Its source is the layout in which the function is computed.
    pub fn result(&self) -> &Plan {
        &self.result
    }

    /// The time that the links take, in seconds.
    pub fn seconds(&self) -> f64 {
        self.operands.iter().chain([&self.result]).map(Plan::seconds).sum()
    }

    /// The memory of the result on all devices, computed from that of each operand.
    ///
    /// Errors: another number of operands ([`MeshError::Operation`]); memory that is smaller than a
    /// layout requires.
    pub fn simulate<T: Number, U: Pod>(
        &self,
        operands: &[&[Vec<T>]],
        function: impl Fn(&[T]) -> U,
    ) -> Result<Vec<Vec<U>>, MeshError> {
        let operands: Vec<Vec<&[T]>> = operands.iter().map(|operand| slices(operand)).collect();
        self.carry(&mut Simulated(self.result.from().mesh().size()), &operands, function)
    }

    /// The memory of the result in this process, computed from that of each operand. The function
    /// must be the same in all processes, which cannot be checked.
    ///
    /// Errors: those of [`MapPlan::simulate`] and [`Plan::run`].
    pub fn run<T: Number, U: Pod>(
        &self,
        engine: &mut impl Engine,
        operands: &[&[T]],
        function: impl Fn(&[T]) -> U,
    ) -> Result<Vec<U>, MeshError> {
        let mut contract = format!("{}operation: map\n", element_line::<(T, U)>());
        self.operands.iter().chain([&self.result]).for_each(|plan| contract.push_str(&plan.contract()));
        let operands: Vec<Vec<&[T]>> = operands.iter().map(|operand| vec![*operand]).collect();
        let done = beside(engine, self.result.from().mesh(), &contract, |own| self.carry(own, &operands, function))?;
        Ok(done.into_iter().next().unwrap_or_default())
    }

    fn carry<T: Number, U: Pod>(
        &self,
        devices: &mut impl Devices,
        operands: &[Vec<&[T]>],
        function: impl Fn(&[T]) -> U,
    ) -> Result<Vec<Vec<U>>, MeshError> {
        if operands.len() != self.operands.len() {
            let what = format!("the plan has {} operands, and {} were given", self.operands.len(), operands.len());
            return Err(MeshError::Operation { what: what.into() });
        }
        let mut held = Vec::new();
        for (number, (plan, memory)) in self.operands.iter().zip(operands).enumerate() {
            let name = format!("operand {}", number + 1);
            held.push(devices.carry(plan, &name, memory, |sum: &mut T, summand| *sum = sum.plus(summand))?);
        }
        let at = Reduced::of(self.result.from(), &[])?;
        let mut computed = Vec::new();
        for (place, rank) in devices.ranks().enumerate() {
            let mut own = vec![U::zeroed(); elements(self.result.from().reach())];
            let mut arguments = vec![T::default(); held.len()];
            at.each(rank, |[offset, ..]| {
                let offset = elements(offset);
                for (argument, held) in arguments.iter_mut().zip(&held) {
                    *argument = held.get(place).and_then(|held| held.get(offset)).copied().unwrap_or_default();
                }
                own.iter_mut().skip(offset).take(1).for_each(|own| *own = function(&arguments));
            });
            computed.push(own);
        }
        // The reshard of the result adds nothing, because the computed tensor has no summands.
        devices.carry(&self.result, "the result", &slices(&computed), |place, value| *place = value)
    }
}

impl fmt::Display for MapPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "map over {}", self.result.from().mesh())?;
        for (number, operand) in self.operands.iter().enumerate() {
            writeln!(f, "  operand {}  {}", number + 1, operand.summary())?;
        }
        writeln!(f, "     computed as {}", self.result.from())?;
        writeln!(f, "  result  {}", self.result.summary())?;
        write!(f, "  {} us one after another", micros(self.seconds()))
    }
}
