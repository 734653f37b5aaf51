//! Plans between layouts, and the part of each process as numbers: sends, receives, and
//! destinations.

use pyo3::prelude::*;
use tilewright_mesh::{Message, Plan, PlannedStep, ShardedLayout};

use super::{Sharded, refused};

/// The elements of a message as views of memory: the offsets at which runs begin in the source and
/// in the destination memory; and the modes of each run, the outermost first: extent, stride in the
/// source, stride in the destination.
type Views = (Vec<(i64, i64)>, Vec<(i64, i64, i64)>);

/// A step: its name; the size of the memory of this process after it; whether every element is
/// written; the sends with their ranks; the receives with their ranks and destinations; and whether
/// they are added.
type StepParts = (String, i64, bool, Vec<(usize, Views)>, Vec<(usize, bool, Views)>);

/// The local positions of one mode: the first position; and for each loop over positions, the
/// innermost first, the extent, the stride of the position and that of the offset.
pub(super) type Mode = (i64, Vec<(i64, i64, i64)>);

/// The views of a message, in the order of the sender's addresses.
fn views(message: Message) -> Views {
    let mut modes = message.footprint.modes;
    modes.retain(|(extent, ..)| *extent > 1);
    modes.sort_by_key(|(_, read, _)| std::cmp::Reverse(*read));
    (message.footprint.starts, modes)
}

/// The plan from one layout over a mesh to another.
#[pyclass(frozen, module = "tilewright")]
pub struct Resharding {
    pub(super) plan: Plan,
}

#[pymethods]
impl Resharding {
    /// The source layout.
    #[getter]
    fn before(&self) -> Sharded {
        Sharded { layout: self.plan.from().clone() }
    }

    /// The destination layout.
    #[getter]
    fn after(&self) -> Sharded {
        Sharded { layout: self.plan.to().clone() }
    }

    /// The contract on which all processes have to agree before they execute the plan.
    #[getter]
    fn contract(&self) -> String {
        self.plan.contract()
    }

    /// The part of the process of a rank: for each step its name, the size of the memory of the
    /// process after it and whether all of it is written; the messages to send, with their ranks,
    /// and the messages to place, with their ranks, and whether they are added. A message has the
    /// offsets at which runs begin, pairs of source and destination, and the modes of each run,
    /// outermost first: extent, and the strides on both sides.
    fn steps(&self, py: Python<'_>, rank: usize) -> Vec<StepParts> {
        py.detach(|| self.plan.steps().iter().map(|step| of_step(step, rank)).collect())
    }

    /// The name of each step: "all-gather" and so on.
    #[getter]
    fn kinds(&self) -> Vec<String> {
        self.plan.steps().iter().map(|step| step.kind.to_string()).collect()
    }

    /// The time of the links by the model, in seconds.
    #[getter]
    fn seconds(&self) -> f64 {
        self.plan.seconds()
    }

    /// The bytes that a device receives.
    fn received(&self, rank: usize) -> i64 {
        self.plan.received(rank)
    }

    /// The least bytes that a device receives with any plan.
    fn least(&self, rank: usize) -> i64 {
        self.plan.least(rank)
    }

    /// The memory of each device after the plan, from that before, computed in this process in f64.
    fn simulate(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = crate::convert::lists)] memory: Vec<Vec<f64>>,
    ) -> PyResult<Vec<Vec<f64>>> {
        py.detach(|| self.plan.simulate(&memory)).map_err(refused(py))
    }

    fn __str__(&self) -> String {
        self.plan.to_string().trim_end().to_owned()
    }

    fn __repr__(&self) -> String {
        format!("<plan of {}, {} to {}>", self.kinds().join(", "), self.plan.from(), self.plan.to())
    }
}

fn of_step(step: &PlannedStep, rank: usize) -> StepParts {
    let exchange = &step.exchange;
    let own = exchange.messages_to(rank);
    let written: i64 = own.iter().filter(|message| !message.add).map(|message| message.footprint.size()).sum();
    let others = (0..exchange.from().mesh().size()).filter(|other| *other != rank);
    let sent = others.flat_map(|other| exchange.messages_to(other)).filter(|message| message.from == rank);
    let reach = exchange.to().reach();
    (
        step.kind.to_string(),
        reach,
        written == reach,
        sent.map(|message| (message.to, views(message))).collect(),
        own.into_iter().map(|message| (message.from, message.add, views(message))).collect(),
    )
}

/// The local part of a tensor: the offset of its first element, and each mode; None if it is empty.
pub(super) fn part(layout: &ShardedLayout, rank: usize) -> Option<(i64, Vec<Mode>)> {
    let part = layout.part(rank)?;
    let modes = part.modes.into_iter().map(|mode| {
        let runs = mode.runs.iter().map(|run| (run.extent, run.index, run.offset));
        (mode.first, runs.collect())
    });
    Some((part.start, modes.collect()))
}
