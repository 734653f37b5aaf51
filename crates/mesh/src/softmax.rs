//! Softmax along modes of a sharded tensor.
//!
//! Law: `D(.., i) = exp(A(.., i) - max) / sum over j of exp(A(.., j) - max)`, where `max` is the
//! maximum of `A(.., j)` over all j. If the modes are cut along the mesh, each device computes the
//! maximum of its part and the sum of exponentials relative to it. To combine two such pairs, the
//! sum with the lesser maximum is rescaled (online softmax). So one all-reduce of pairs suffices,
//! and elements move only if the result has another layout.

use std::fmt;

use crate::devices::{Devices, Simulated, slices};
use crate::engine::beside;
use crate::engine::{Engine, element_line, elements};
use crate::error::MeshError;
use crate::local::{Reduced, whole};
use crate::machine::Machine;
use crate::map::{cheapest, without_sums};
use crate::number::{Number, Real};
use crate::plan::{Plan, micros, reshard};
use crate::reduce::checked;
use crate::sharded::ShardedLayout;

/// A maximum, and a sum of exponentials relative to it.
type Pair = [f64; 2];

/// The pair of an empty set: maximum and sum.
const NONE: Pair = [f64::NEG_INFINITY, 0.0];

/// The plan of a softmax of a sharded tensor: [`softmax()`] makes it.
#[derive(Debug, Clone)]
pub struct SoftmaxPlan {
    over: Vec<usize>,
    operand: Plan,
    pairs: Plan,
    result: Plan,
}

/// Plans the softmax along the modes `over`, numbered from 0, of a tensor with elements of `bytes`
/// bytes.
///
/// Rows of infinities give NaN where the formula does, as in NumPy and PyTorch.
///
/// Errors: no mode, a mode that is named twice, or one that the tensor does not have
/// ([`MeshError::Operation`]); a result of another shape; those of [`reshard`].
///
/// ```
/// use tilewright_mesh::{Machine, Mesh, ShardedLayout, softmax};
///
/// let mesh: Mesh = "x=2".parse().unwrap();
/// let row = ShardedLayout::parse(&mesh, "(2,2):(1,1@x)").unwrap(); // two elements on each device
/// let flat = ShardedLayout::parse(&mesh, "((2,2),):((1,1@x),)").unwrap(); // along one mode
/// let plan = softmax(&flat, &[0], &flat, 8, &Machine::HGX_H200).unwrap();
/// let done = plan.simulate(&[vec![0.0, 0.0], vec![0.0, 0.0]]).unwrap();
/// assert_eq!(done, [[0.25, 0.25], [0.25, 0.25]]);
/// let plan = softmax(&row, &[0], &row, 8, &Machine::HGX_H200).unwrap();
/// assert_eq!(plan.simulate(&[vec![0.0, 0.0], vec![0.0, 0.0]]).unwrap(), [[0.5, 0.5], [0.5, 0.5]]);
/// ```
pub fn softmax(
    from: &ShardedLayout,
    over: &[usize],
    to: &ShardedLayout,
    bytes: i64,
    machine: &Machine,
) -> Result<SoftmaxPlan, MeshError> {
    checked(from, over)?;
    let between = [whole(to)?].into_iter().chain(without_sums(from)?);
    let plans = between.map(|at| {
        let reduced = Reduced::of(&at, over)?;
        Ok(SoftmaxPlan {
            over: over.to_vec(),
            operand: reshard(from, &at, bytes, machine)?,
            pairs: reshard(reduced.layout(), &whole(reduced.layout())?, size_of::<Pair>() as i64, machine)?,
            result: reshard(&at, to, bytes, machine)?,
        })
    });
    let plans = plans.collect::<Result<Vec<_>, MeshError>>()?;
    let least = cheapest(plans, |plan| (plan.seconds(), plan.operand.to().local_size()));
    least.ok_or(MeshError::Operation { what: "there is no layout to compute in".into() })
}

/// Combines two pairs into the first one.
fn combine(one: &mut Pair, other: Pair) {
    let [greatest, sum] = *one;
    if other[0] == f64::NEG_INFINITY {
        return;
    }
    if greatest == f64::NEG_INFINITY {
        *one = other;
        return;
    }
    // A NaN compares as neither greater nor less, and stays in the sum.
    *one = if other[0] > greatest {
        [other[0], sum * (greatest - other[0]).exp() + other[1]]
    } else {
        [greatest, sum + other[1] * (other[0] - greatest).exp()]
    };
}

impl SoftmaxPlan {
    /// The modes along which the softmax is computed, numbered from 0.
    pub fn over(&self) -> &[usize] {
        &self.over
    }

    /// The reshards of the operand, of the pairs of maximum and sum, and of the result.
    pub fn moves(&self) -> [&Plan; 3] {
        [&self.operand, &self.pairs, &self.result]
    }

    /// The time that the links take, in seconds.
    pub fn seconds(&self) -> f64 {
        self.moves().iter().map(|plan| plan.seconds()).sum()
    }

    /// The memory of the result on all devices, computed from that of the operand.
    ///
    /// Errors: memory that is smaller than a layout requires.
    pub fn simulate<T: Real>(&self, memory: &[Vec<T>]) -> Result<Vec<Vec<T>>, MeshError> {
        self.carry(&mut Simulated(self.operand.from().mesh().size()), &slices(memory))
    }

    /// The memory of the result in this process, computed from that of the operand.
    ///
    /// Errors: those of [`SoftmaxPlan::simulate`] and [`Plan::run`].
    pub fn run<T: Real>(&self, engine: &mut impl Engine, memory: &[T]) -> Result<Vec<T>, MeshError> {
        let mut contract = format!("{}operation: softmax over modes {:?}\n", element_line::<T>(), self.over);
        self.moves().iter().for_each(|plan| contract.push_str(&plan.contract()));
        let done = beside(engine, self.operand.from().mesh(), &contract, |own| self.carry(own, &[memory]))?;
        Ok(done.into_iter().next().unwrap_or_default())
    }

    fn carry<T: Real>(&self, devices: &mut impl Devices, memory: &[&[T]]) -> Result<Vec<Vec<T>>, MeshError> {
        let mut held = devices.carry(&self.operand, "the operand", memory, |sum: &mut T, summand| {
            *sum = sum.plus(summand);
        })?;
        let at = Reduced::of(self.operand.to(), &self.over)?;
        let mut pairs = Vec::new();
        for (rank, held) in devices.ranks().zip(&held) {
            let mut own = vec![NONE; elements(at.layout().reach())];
            let mut each = |take: &dyn Fn(&mut Pair, f64)| {
                at.each(rank, |[read, write, _]| {
                    if let (Some(element), Some(pair)) = (held.get(elements(read)), own.get_mut(elements(write))) {
                        take(pair, element.wide());
                    }
                });
            };
            each(&|pair, element| pair[0] = pair[0].larger(element));
            each(&|pair, element| {
                if pair[0] != f64::NEG_INFINITY {
                    pair[1] += (element - pair[0]).exp();
                }
            });
            pairs.push(own);
        }
        let pairs = devices.carry(&self.pairs, "the pairs of maximum and sum", &slices(&pairs), combine)?;
        for ((rank, held), pairs) in devices.ranks().zip(&mut held).zip(&pairs) {
            at.each(rank, |[offset, row, _]| {
                if let (Some(element), Some([greatest, sum])) =
                    (held.get_mut(elements(offset)), pairs.get(elements(row)))
                {
                    *element = T::narrow((element.wide() - greatest).exp() / sum);
                }
            });
        }
        // The computed tensor has no summands.
        devices.carry(&self.result, "the result", &slices(&held), |place, value| *place = value)
    }
}

impl fmt::Display for SoftmaxPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "softmax over modes {:?}, over {}", self.over, self.operand.from().mesh())?;
        writeln!(f, "  operand  {}", self.operand.summary())?;
        writeln!(f, "     computed as {}", self.operand.to())?;
        writeln!(f, "  pairs    {}", self.pairs.summary())?;
        writeln!(f, "  result   {}", self.result.summary())?;
        write!(f, "  {} us one after another", micros(self.seconds()))
    }
}
