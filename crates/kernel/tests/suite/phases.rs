//! Waits for phases of barriers in memory: each sees its phase in every execution, or is found,
//! whatever the timing of the run is.
//!
//! Law: a wait for a phase comes before the next phase is over, and after the one before is.
//! Kernels in which something orders it so are right at every size; kernels in which timing alone
//! does are found under every schedule.

use tilewright_kernel::interpret::{Interpreter, Schedule};
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Kernel, KernelError, Stage};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, Slot, Tree};

/// The defect of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ring {
    Right,
    /// The second warp waits for each stage, and never releases.
    Silent,
    /// The second warp releases before it waits.
    Early,
    /// The second warp waits again after it has released.
    Again,
    /// The second warp waits for every other stage only, and releases nothing.
    Skips,
    /// A second thread looks whether stages are free, and fills none.
    Watches,
    /// The second warp waits for the first stage of each round, and never releases.
    First,
}

/// One thread fills a ring, one warp uses it and releases; and a second warp does what is said.
fn ring(stages: i64, what: Ring, work: usize) -> Result<Kernel, KernelError> {
    Kernel::build("ring", |k: &Build| {
        let x = k.input::<f32>("x", "(32,K):(1,32)")?;
        let (y, z) = (k.output::<f32>("y", "(32,K):(1,32)")?, k.output::<f32>("z", "(32,1):(1,32)")?);
        k.threads(128)?;
        let array = k.shared::<f32>(Layout::strided((32, stages), (1, 32)))?;
        let releases = if matches!(what, Ring::Right | Ring::Early | Ring::Again) { 2 } else { 1 };
        let pipeline = k.pipeline(stages, releases)?;
        let iterations = || k.size("K");
        k.role(2..3, || {
            k.single(|| {
                let cursor = pipeline.cursor()?;
                k.range(iterations()?, |iteration| {
                    let stage = cursor.stage()?;
                    stage.acquire()?;
                    stage.load(&x.slice((.., &iteration))?, &array.slice((.., stage.index()))?)?;
                    stage.publish()?;
                    cursor.advance()
                })
            })
        })?;
        k.role(0..1, || {
            let cursor = pipeline.cursor()?;
            k.range(iterations()?, |iteration| {
                let stage = cursor.stage()?;
                stage.wait()?;
                y.slice((.., &iteration))?
                    .thread_part()?
                    .store(&array.slice((.., stage.index()))?.thread_part()?.load()?)?;
                stage.release()?;
                cursor.advance()
            })
        })?;
        if what == Ring::Watches {
            k.role(3..4, || {
                k.single(|| {
                    let cursor = pipeline.cursor()?;
                    k.range(iterations()?, |_| {
                        cursor.stage()?.acquire()?;
                        cursor.advance()
                    })
                })
            })?;
        }
        k.role(1..2, || {
            let cursor = pipeline.cursor()?;
            let sum = z.thread_part()?.fragment()?;
            sum.clear();
            let own = |stage: &Stage<'_>| {
                for _ in 0..work {
                    let number = sum.numbers()?[0];
                    sum.set(&[number * number + number])?;
                }
                match what {
                    Ring::Right => {
                        stage.wait()?;
                        stage.release()
                    }
                    Ring::Early => {
                        stage.release()?;
                        stage.wait()
                    }
                    Ring::Again => {
                        stage.wait()?;
                        stage.release()?;
                        stage.wait()
                    }
                    _ => stage.wait(),
                }
            };
            match what {
                Ring::Skips => k.range(k.size("K/2")?, |_| {
                    own(&cursor.stage()?)?;
                    cursor.advance_by(2)
                })?,
                Ring::First => k.range(k.size(&format!("K/{stages}"))?, |_| {
                    own(&cursor.stage()?)?;
                    cursor.advance_by(stages)
                })?,
                Ring::Watches => {}
                _ => k.range(iterations()?, |_| {
                    own(&cursor.stage()?)?;
                    cursor.advance()
                })?,
            }
            z.thread_part()?.store(&sum)
        })
    })
}

/// The findings of each schedule.
fn found(kernel: &Kernel, iterations: i64) -> Vec<Vec<&'static str>> {
    let mut interpreter = Interpreter::new(kernel.program(), &[("K", iterations)]).unwrap();
    interpreter.fill(1);
    let codes = |schedule| match interpreter.run(schedule) {
        Ok(_) => Vec::new(),
        Err(findings) => findings.iter().map(|finding| finding.code()).collect(),
    };
    Schedule::ALL.map(codes).to_vec()
}

#[test]
fn a_wait_that_nothing_orders_before_the_next_phase_is_found_under_every_schedule() {
    use Ring::*;
    for stages in [1, 2, 3] {
        for iterations in [3, 5, 9] {
            for work in [0, 2, 7] {
                let right = found(&ring(stages, Right, work).unwrap(), iterations);
                assert!(right.iter().all(Vec::is_empty), "{stages} {iterations} {work}: {right:?}");
                for what in [Silent, Early, Again, Skips, Watches, First] {
                    // Without a second phase of a stage there is nothing to miss.
                    let waits = if what == Watches { iterations } else { iterations - 1 };
                    if waits < stages || (what == Skips && stages == 3) || (what == First && iterations < 2 * stages) {
                        continue;
                    }
                    let kernel = ring(stages, what, work).unwrap();
                    let all = found(&kernel, iterations);
                    // Bytes that are met on the way say more than the phase does.
                    let races = |codes: &Vec<&str>| what == Early && codes.contains(&"E1018");
                    assert!(
                        all.iter().all(|codes| codes.contains(&"E1042") || races(codes)),
                        "{what:?}, {stages} stages, {iterations} iterations, {work}: {all:?}"
                    );
                    let allowed = ["E1042", "E1022", "E1018"];
                    assert!(all.iter().flatten().all(|code| allowed.contains(code)), "{what:?}: {all:?}");
                }
            }
        }
    }
}

#[test]
fn fewer_iterations_than_stages_miss_nothing() {
    for what in [Ring::Silent, Ring::First] {
        let all = found(&ring(3, what, 0).unwrap(), 3);
        assert!(all.iter().all(Vec::is_empty), "{what:?}: {all:?}");
    }
}

/// Two warps use the stages of a ring in turn: with an even number of stages each has its own, with
/// an odd one each skips a phase of every stage, and nothing tells it that this phase is over.
fn iterations(stages: i64) -> Kernel {
    Kernel::build("iterations", |k: &Build| -> Result<(), KernelError> {
        let x = k.input::<f32>("x", "(32,2,K):(1,32,64)")?;
        let y = k.output::<f32>("y", "(32,2,K):(1,32,64)")?;
        k.threads(96)?;
        let array = k.shared::<f32>(Layout::strided((32, stages), (1, 32)))?;
        let pipeline = k.pipeline(stages, 1)?;
        k.role(2..3, || {
            k.single(|| {
                let cursor = pipeline.cursor()?;
                k.range(k.size("K")?, |iteration| {
                    for half in 0..2 {
                        let stage = cursor.stage()?;
                        stage.acquire()?;
                        let from = Tree::flat([Slot::All, Slot::At(half.into()), Slot::At(iteration.clone())])?;
                        stage.load(&x.slice(from)?, &array.slice((.., stage.index()))?)?;
                        stage.publish()?;
                        cursor.advance()?;
                    }
                    Ok(())
                })
            })
        })?;
        for warp in 0..2 {
            k.role(warp..warp + 1, || {
                let cursor = pipeline.cursor()?;
                cursor.advance_by(warp.into())?;
                k.range(k.size("K")?, |iteration| {
                    let stage = cursor.stage()?;
                    stage.wait()?;
                    let to = Tree::flat([Slot::All, Slot::At(i64::from(warp).into()), Slot::At(iteration)])?;
                    y.slice(to)?.thread_part()?.store(&array.slice((.., stage.index()))?.thread_part()?.load()?)?;
                    stage.release()?;
                    cursor.advance_by(2)
                })
            })?;
        }
        Ok(())
    })
    .unwrap()
}

#[test]
fn a_wait_that_may_take_an_older_phase_for_its_own_is_found() {
    for stages in [2, 4] {
        for count in [1, 4, 9] {
            let all = found(&iterations(stages), count);
            assert!(all.iter().all(Vec::is_empty), "{stages} {count}: {all:?}");
        }
    }
    for stages in [1, 3] {
        for count in [4, 9] {
            let all = found(&iterations(stages), count);
            assert!(all.iter().all(|codes| !codes.is_empty()), "{stages} {count}: {all:?}");
        }
    }
    let all = found(&iterations(3), 9);
    assert!(all.iter().any(|codes| codes.contains(&"E1042")), "{all:?}");
}

/// Blocks of a cluster that load for each other release to each other, or only to themselves.
fn spread(tells: bool) -> Kernel {
    Kernel::build("spread", |k: &Build| -> Result<(), KernelError> {
        let x = k.input::<u16>("x", "(64,32,K):(32,1,2048)")?;
        let y = k.output::<u16>("y", "(64,32,K,2):(32,1,2048,2048*K)")?;
        k.threads(64)?;
        k.grid(Axis::X, 2)?;
        k.cluster(2)?;
        let all = |index: &Expr| Tree::flat([Slot::All, Slot::All, Slot::At(index.clone())]).unwrap();
        let half = |k: &Build| Tree::flat([Slot::At(k.rank()), Slot::At(Expr::from(0))]).unwrap();
        let ring = k.shared::<u16>("(64,32,2):(32,1,2048)")?;
        let pipeline = k.pipeline(2, if tells { 2 } else { 1 })?;
        k.role(1..2, || {
            k.single(|| {
                let cursor = pipeline.cursor()?;
                k.range(k.size("K")?, |iteration| {
                    let stage = cursor.stage()?;
                    stage.acquire()?;
                    let from = x.slice(all(&iteration))?.local_tile((32, 32), half(k))?;
                    let to = ring.slice(all(stage.index()))?.local_tile((32, 32), half(k))?;
                    stage.load_multicast(&from, &to, 0..2)?;
                    stage.publish()?;
                    cursor.advance()
                })
            })
        })?;
        k.role(0..1, || {
            let cursor = pipeline.cursor()?;
            k.range(k.size("K")?, |iteration| {
                let stage = cursor.stage()?;
                stage.wait()?;
                let to = y.slice(Tree::flat([
                    Slot::All,
                    Slot::All,
                    Slot::At(iteration),
                    Slot::At(k.block_number(Axis::X)),
                ])?)?;
                for rows in 0..2 {
                    let tile = Tree::flat([Slot::At(rows.into()), Slot::At(0.into())])?;
                    let part = ring.slice(all(stage.index()))?.local_tile((32, 32), tile.clone())?;
                    to.local_tile((32, 32), tile)?.thread_part()?.store(&part.thread_part()?.load()?)?;
                }
                match tells {
                    true => stage.release_to(0..2)?,
                    false => stage.release()?,
                }
                cursor.advance()
            })
        })?;
        k.cluster_barrier();
        Ok(())
    })
    .unwrap()
}

#[test]
fn arrivals_that_pass_on_no_data_order_phases() {
    for count in [1, 2, 3, 7] {
        let all = found(&spread(true), count);
        assert!(all.iter().all(Vec::is_empty), "{count}: {all:?}");
    }
    for count in [3, 7] {
        let all = found(&spread(false), count);
        assert!(all.iter().all(|codes| !codes.is_empty()), "{count}: {all:?}");
    }
}
