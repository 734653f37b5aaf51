//! `tilewright mesh run`: a plan between processes.
//!
//! Law: every process knows what the memory of all devices holds at first, and carries out the plan
//! in its own memory beside them. What comes out between processes has to be the same, bit by bit,
//! and where elements are whole, their values are those of the tensor.

use std::time::Duration;

use clap::{Args, ValueEnum};
use tilewright::mesh::{Engine, Machine, Mesh, MeshError, Place, Processes, ShardedLayout, reshard};

use crate::output::Failure;
use crate::terminal::Terminal;

/// The most elements of memory, of all devices together.
const MAX_MEMORY: i64 = 1 << 24;

#[derive(Debug, Args)]
pub struct Options {
    /// The type of the elements.
    #[arg(long = "type", default_value = "i64", value_parser = ["i32", "i64", "f32", "f64"])]
    element: String,
    /// How many seconds a process is waited for that does not answer.
    #[arg(long, default_value = "30", value_parser = clap::value_parser!(u64).range(1..=3600))]
    patience: u64,
    /// How often the plan is carried out.
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u64).range(1..))]
    turns: u64,
    /// What carries bytes between the processes: sockets, or Open MPI.
    #[arg(long, value_enum, default_value = "sockets")]
    through: Through,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Through {
    Sockets,
    Mpi,
}

pub fn run(mesh: &str, layouts: [&String; 2], options: &Options, terminal: &mut Terminal) -> Result<(), Failure> {
    let mesh: Mesh = mesh.parse()?;
    let [from, to] = layouts.map(|text| ShardedLayout::parse(&mesh, text));
    let (from, to) = (from?, to?);
    let patience = Duration::from_secs(options.patience);
    // Ctrl-C ends the call that goes on, so that every process learns of it. Where no handler can
    // be set, this process ends, and the others learn that.
    match options.through {
        Through::Sockets => {
            let mut engine = Processes::connect(&Place::of_environment()?, patience)?;
            let interrupter = engine.interrupter();
            let _ = ctrlc::set_handler(move || interrupter.interrupt());
            between(&from, &to, options, &mut engine, terminal)
        }
        #[cfg(unix)]
        Through::Mpi => {
            let mut engine = tilewright::mesh::Mpi::open(patience)?;
            let interrupter = engine.interrupter();
            let _ = ctrlc::set_handler(move || interrupter.interrupt());
            between(&from, &to, options, &mut engine, terminal)
        }
        #[cfg(not(unix))]
        Through::Mpi => Err(MeshError::Engine { what: "there is no Open MPI on this system".into() }.into()),
    }
}

fn between(
    from: &ShardedLayout,
    to: &ShardedLayout,
    options: &Options,
    engine: &mut impl Engine,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let done = match options.element.as_str() {
        "i32" => carry_out(from, to, options.turns, engine, |value| value as i32),
        "f32" => carry_out(from, to, options.turns, engine, |value| value as f32),
        "f64" => carry_out(from, to, options.turns, engine, |value| value as f64),
        _ => carry_out(from, to, options.turns, engine, |value| value),
    };
    let checked = done?;
    if engine.rank() == 0 {
        let told =
            format!("{} processes: what each of them holds after the plan is right, bit by bit\n", engine.ranks());
        let words = format!("{told}  rank 0 holds {checked} elements in memory\n");
        terminal.prose(&words)?;
    }
    Ok(())
}

/// Carries out the plan, and gives how much memory this process has after it.
fn carry_out<T>(
    from: &ShardedLayout,
    to: &ShardedLayout,
    turns: u64,
    engine: &mut impl Engine,
    number: impl Fn(i64) -> T,
) -> Result<usize, Failure>
where
    T: bytemuck::Pod + Default + PartialEq + std::ops::AddAssign,
{
    let devices = from.mesh().size();
    let all = from.reach().max(to.reach()).saturating_mul(devices as i64);
    if all > MAX_MEMORY {
        return Err(MeshError::TooLarge { what: "elements of memory on all devices", limit: MAX_MEMORY }.into());
    }
    let plan = reshard(from, to, size_of::<T>() as i64, &Machine::HGX_H200)?;
    let mut memory = vec![vec![T::default(); usize::try_from(from.reach()).unwrap_or(0)]; devices];
    let copies = usize::try_from(from.copies()).unwrap_or(1);
    for element in 0..from.size() {
        for (at, (rank, offset)) in from.places(element)?.into_iter().enumerate() {
            let place = usize::try_from(offset).ok().and_then(|offset| memory.get_mut(rank)?.get_mut(offset));
            if let Some(place) = place {
                *place = number(element % 1009 + (at / copies) as i64);
            }
        }
    }
    let rank = engine.rank();
    let own = memory.get(rank).cloned().unwrap_or_default();
    let right = plan.simulate(&memory)?;
    let mut after = Vec::new();
    for _ in 0..turns {
        after = plan.run(engine, &own)?;
        if right.get(rank) != Some(&after) {
            return Err(Failure::Value(format!("rank {rank} does not hold what the plan says")));
        }
    }
    engine.agree("after all turns", "right: yes")?;
    Ok(after.len())
}
