//! `tilewright mesh run`: executes a plan between processes.
//!
//! Law: every process computes the initial memory of all devices, and executes the plan in its own
//! memory together with the others. The results must be the same, bit by bit. If elements are not
//! sums, their values must be those of the tensor.

use std::time::Duration;

use clap::{Args, ValueEnum};
use tilewright::between::NcclProcesses;
use tilewright::gpu::Device;
use tilewright::mesh::{Engine, Machine, Mesh, MeshError, Place, Processes, ShardedLayout, reshard};

use crate::output::Failure;
use crate::terminal::Terminal;

/// The largest number of elements in the memory of all devices together.
const MAX_MEMORY: i64 = 1 << 24;

#[derive(Debug, Args)]
pub struct RunOptions {
    /// The type of the elements.
    #[arg(long = "type", default_value = "i64", value_parser = ["i32", "i64", "f32", "f64"])]
    element: String,
    #[command(flatten)]
    beside: Beside,
}

/// The connection of processes, and the number of repetitions.
#[derive(Debug, Args)]
pub struct Beside {
    /// How many seconds a process is waited for that does not answer.
    #[arg(long, default_value = "30", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=3600))]
    patience: u64,
    /// How often the plan is carried out.
    #[arg(long, default_value = "1", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Transport between the processes: sockets, Open MPI, or NCCL, with a GPU for each process of
    /// a machine.
    #[arg(long, value_enum, default_value = "sockets")]
    through: RunTransport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RunTransport {
    Sockets,
    Mpi,
    Nccl,
}

/// The work of each of several processes.
pub trait Job {
    /// Does the work once. Returns the size of this process's memory afterwards. A wrong result is
    /// a failure.
    fn once<E: Engine>(&self, engine: &mut E) -> Result<usize, Failure>;
}

impl Beside {
    /// Connects this process with the others and does the job for the given number of rounds. The
    /// first process prints `plan` before, and that the result is right after.
    pub fn carry_out(&self, job: &impl Job, plan: &str, terminal: &mut Terminal) -> Result<(), Failure> {
        let patience = Duration::from_secs(self.patience);
        // Ctrl-C ends the current call, so that every process learns of it. If no handler can be
        // set, this process ends, which the others learn.
        match self.through {
            RunTransport::Sockets => {
                let mut engine = Processes::connect(&Place::of_environment()?, patience)?;
                note(engine.ignored(), terminal);
                let interrupter = engine.interrupter();
                let _ = ctrlc::set_handler(move || interrupter.interrupt());
                self.rounds(job, plan, &mut engine, terminal)
            }
            RunTransport::Nccl => {
                let place = Place::of_environment()?;
                let device = Device::open(device_of(&place)?)?;
                let mut engine = NcclProcesses::join(&place, &device, patience)?;
                note(engine.ignored(), terminal);
                let interrupter = engine.interrupter();
                let _ = ctrlc::set_handler(move || interrupter.interrupt());
                self.rounds(job, plan, &mut engine, terminal)
            }
            #[cfg(unix)]
            RunTransport::Mpi => {
                let mut engine = tilewright::mesh::Mpi::open(patience)?;
                let interrupter = engine.interrupter();
                let _ = ctrlc::set_handler(move || interrupter.interrupt());
                self.rounds(job, plan, &mut engine, terminal)
            }
            #[cfg(not(unix))]
            RunTransport::Mpi => Err(MeshError::Engine { what: "there is no Open MPI on this system".into() }.into()),
        }
    }

    fn rounds(
        &self,
        job: &impl Job,
        plan: &str,
        engine: &mut impl Engine,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        let mut held = 0;
        for _ in 0..self.rounds {
            held = job.once(engine)?;
        }
        engine.agree("after all rounds", "right: yes")?;
        if engine.rank() == 0 {
            let right = format!("{} processes: the memory of each after the plan is right", engine.ranks());
            terminal.prose(&format!("{plan}{right}, bit by bit\n  rank 0 holds {held} elements in memory\n"))?;
        }
        Ok(())
    }
}

/// Names the connections that were not from processes of this job.
fn note(ignored: &[String], terminal: &mut Terminal) {
    for who in ignored {
        terminal.message(&format!("note: ignored a connection from {who}\n"));
    }
}

/// The index of this process's device: that of the process on its machine, if the launcher gives
/// it.
fn device_of(place: &Place) -> Result<usize, MeshError> {
    let names = ["LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"];
    let Some((name, text)) = names.iter().find_map(|name| Some((name, std::env::var(name).ok()?))) else {
        return Ok(place.rank);
    };
    let wrong = |_| MeshError::Environment { what: format!("{name} is `{text}`, which is not a number").into() };
    text.trim().parse().map_err(wrong)
}

/// A plan, with the memory of all devices before and after it.
struct ProcessMoves<T> {
    plan: tilewright::mesh::Plan,
    before: Vec<Vec<T>>,
    after: Vec<Vec<T>>,
}

impl<T: bytemuck::Pod + PartialEq + std::ops::AddAssign> Job for ProcessMoves<T> {
    fn once<E: Engine>(&self, engine: &mut E) -> Result<usize, Failure> {
        let rank = engine.rank();
        let before = self.before.get(rank).map_or(&[][..], Vec::as_slice);
        right(rank, &self.plan.run(engine, before)?, &self.after)
    }
}

/// Checks the memory of a process; returns its size.
pub fn right<T: PartialEq>(rank: usize, own: &[T], all: &[Vec<T>]) -> Result<usize, Failure> {
    match all.get(rank).map(Vec::as_slice) == Some(own) {
        true => Ok(own.len()),
        false => Err(Failure::Value(format!("rank {rank} has other memory than the plan says"))),
    }
}

pub fn run(mesh: &str, layouts: [&String; 2], options: &RunOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let mesh: Mesh = mesh.parse()?;
    let [from, to] = layouts.map(|text| ShardedLayout::parse(&mesh, text));
    let (from, to, beside) = (from?, to?, &options.beside);
    match options.element.as_str() {
        "i32" => beside.carry_out(&moving(&from, &to, |value| value as i32)?, "", terminal),
        "f32" => beside.carry_out(&moving(&from, &to, |value| value as f32)?, "", terminal),
        "f64" => beside.carry_out(&moving(&from, &to, |value| value as f64)?, "", terminal),
        _ => beside.carry_out(&moving(&from, &to, |value| value)?, "", terminal),
    }
}

fn moving<T>(from: &ShardedLayout, to: &ShardedLayout, number: impl Fn(i64) -> T) -> Result<ProcessMoves<T>, Failure>
where
    T: bytemuck::Pod + Default + PartialEq + std::ops::AddAssign,
{
    fits(&[from, to])?;
    let plan = reshard(from, to, size_of::<T>() as i64, &Machine::HGX_H200)?;
    let before = filled(from, |element, summand| number(element % 1009 + summand))?;
    let after = plan.simulate(&before)?;
    Ok(ProcessMoves { plan, before, after })
}

/// Checks that the memory of all devices with each of these layouts fits in one process.
pub fn fits(layouts: &[&ShardedLayout]) -> Result<(), MeshError> {
    fits_in(layouts, MAX_MEMORY)
}

/// Checks that all devices together have at most this many elements with each of these layouts.
pub fn fits_in(layouts: &[&ShardedLayout], limit: i64) -> Result<(), MeshError> {
    let all = |layout: &&ShardedLayout| layout.reach().saturating_mul(layout.mesh().size() as i64);
    match layouts.iter().map(all).max() > Some(limit) {
        true => Err(MeshError::TooLarge { what: "elements of memory on all devices", limit }),
        false => Ok(()),
    }
}

/// The memory of all devices; `value` gives the value of a summand of the element with an index.
pub fn filled<T: Copy + Default>(
    layout: &ShardedLayout,
    value: impl Fn(i64, i64) -> T,
) -> Result<Vec<Vec<T>>, MeshError> {
    let reach = usize::try_from(layout.reach()).unwrap_or(0);
    let mut memory = vec![vec![T::default(); reach]; layout.mesh().size()];
    let copies = usize::try_from(layout.copies()).unwrap_or(1);
    for element in 0..layout.size() {
        for (at, (rank, offset)) in layout.places(element)?.into_iter().enumerate() {
            let place = usize::try_from(offset).ok().and_then(|offset| memory.get_mut(rank)?.get_mut(offset));
            place.into_iter().for_each(|place| *place = value(element, (at / copies) as i64));
        }
    }
    Ok(memory)
}
