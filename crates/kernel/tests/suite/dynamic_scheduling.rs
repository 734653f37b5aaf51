//! The dynamic scheduler: each index is claimed once, whichever cluster comes first, and what a
//! kernel may not combine with it is refused.

use tilewright_kernel::cost::Machine;
use tilewright_kernel::program::Step;
use tilewright_kernel::program::operation::{Axis, Operation};
use tilewright_kernel::{Build, DynamicScheduler, Kernel, KernelError, Program, Written, interpret, ptx};
use tilewright_layout::{Slot, Tree};

/// Clusters of blocks of 64 threads add to each row of 64 numbers a block the number of the row;
/// `ahead` numbers are known before.
fn numbered(blocks: u32, clusters: u32, ahead: usize) -> Result<Kernel, KernelError> {
    numbered_by(blocks, clusters, |k| k.dynamic_scheduler(k.size("M")?, ahead), false)
}

/// The same, with the scheduler that the caller makes.
fn numbered_by(
    blocks: u32,
    clusters: u32,
    scheduler: impl for<'k> Fn(&'k Build) -> Result<DynamicScheduler<'k>, KernelError>,
    asks: bool,
) -> Result<Kernel, KernelError> {
    Kernel::build("numbered", |k| {
        let layout = format!("({0},M):(1,{0})", 64 * blocks);
        let (x, y) = (k.input::<i32>("x", &layout)?, k.output::<i32>("y", &layout)?);
        k.threads(64)?;
        k.grid(Axis::X, blocks * clusters)?;
        k.cluster(blocks)?;
        let part = k.coordinate(&k.block_number(Axis::X), &[i64::from(blocks), 1])?[0].clone();
        scheduler(k)?.each(|claim| {
            let row = Tree::flat([Slot::At(part.clone()), Slot::At(claim.now().clone())])?;
            let own = x.local_tile((64, 1), row.clone())?.thread_part()?.load()?;
            if asks {
                claim.ask()?;
            }
            let now = k.index(claim.now())?;
            y.local_tile((64, 1), row)?.thread_part()?.store(&own.map(|x| Ok(x + now))?)
        })
    })
}

#[test]
fn each_number_is_had_once_whoever_comes_first() {
    for (blocks, clusters, ahead) in [(1, 1, 1), (1, 5, 2), (2, 3, 1), (2, 3, 4), (4, 2, 2), (8, 1, 3), (16, 2, 2)] {
        let beforehand = |asks| {
            numbered_by(blocks, clusters, |k| k.prefetching_scheduler(k.size("M")?, ahead.min(3)), asks).unwrap()
        };
        for kernel in [numbered(blocks, clusters, ahead).unwrap(), beforehand(false), beforehand(true)] {
            assert_eq!(kernel.outputs()[0].written, Written::Once);
            for rows in [1, 2, 7, 23] {
                let checked = interpret::check(kernel.program(), &[("M", rows)]);
                let run = checked.unwrap_or_else(|error| panic!("{blocks} {clusters} {ahead} {rows}: {error}")).run;
                let (x, y) = (run.tensor::<i32>("x").unwrap(), run.tensor::<i32>("y").unwrap());
                let columns = 64 * blocks as usize;
                assert!(x.iter().zip(&y).enumerate().all(|(at, (x, y))| x + (at / columns) as i32 == *y));
            }
        }
    }
}

#[test]
fn the_text_has_a_count_for_each_stream() {
    let text = ptx::write(numbered(2, 3, 2).unwrap().program(), ptx::Target::Sm90a).unwrap();
    assert!(text.contains(".global .align 4 .b32 numbered_counts[65536];"), "{text}");
    assert_eq!(text.matches("atom.global.inc.u32").count(), 3);
    assert!(text.contains("// which of the counts"), "{text}");
}

#[test]
fn the_cost_is_that_of_numbers_dealt_in_turn() {
    let sizes = [("M", 1000)];
    let kernel = numbered(2, 3, 2).unwrap();
    let cost = kernel.program().cost(&Machine::named("H200").unwrap(), &sizes).unwrap();
    // Each sector of 32 bytes is read or written once.
    assert_eq!(cost.sectors(), 2 * 1000 * 128 * 4 / 32);
}

/// Changes all instructions and loops of a program.
fn change(steps: &mut Vec<Step>, how: &mut dyn FnMut(&mut Step)) {
    for step in steps {
        how(step);
        match step {
            Step::Instruction(_) => {}
            Step::Loop(looped) => change(&mut looped.body, how),
            Step::Branch(branch) => {
                change(&mut branch.then, how);
                change(&mut branch.otherwise, how);
            }
        }
    }
}

fn found(program: &Program, rows: i64) -> Vec<&'static str> {
    match interpret::check(program, &[("M", rows)]) {
        Err(interpret::CheckError::Findings(findings)) => findings.iter().map(|finding| finding.code()).collect(),
        Err(other) => panic!("{other}"),
        Ok(_) => Vec::new(),
    }
}

#[test]
fn a_count_that_is_not_brought_back_is_found() {
    // A block that was told that no index is left asks again.
    let mut program = numbered(1, 3, 1).unwrap().program().clone();
    change(&mut program.body, &mut |step| match step {
        Step::Instruction(own) if own.operation == Operation::Claim => own.guard = None,
        _ => {}
    });
    assert!(found(&program, 7).is_empty());
    let mut program = numbered(1, 3, 2).unwrap().program().clone();
    change(&mut program.body, &mut |step| match step {
        Step::Instruction(own) if own.operation == Operation::Claim => own.guard = None,
        _ => {}
    });
    assert_eq!(found(&program, 7), ["E1040"]);
}

#[test]
fn clusters_that_are_not_told_write_twice() {
    // All clusters write each row: the number of an iteration is no coordinate.
    let refused = Kernel::build("twice", |k| {
        let y = k.output::<i32>("y", "(M,32):(32,1)")?;
        k.threads(32)?;
        k.grid(Axis::X, 3)?;
        k.dynamic_scheduler(k.size("M")?, 1)?.each(|claim| {
            let row = Tree::flat([Slot::At(claim.iteration().clone()), Slot::All])?;
            let values = y.slice(row.clone())?.thread_part()?;
            let zeros = values.fragment()?;
            zeros.clear();
            values.store_predicated(&zeros)
        })
    });
    match refused {
        Ok(kernel) => assert_ne!(kernel.outputs()[0].written, Written::Once),
        Err(error) => assert_eq!(error.code(), "E0916"),
    }
    // The rank is no coordinate: both blocks of a cluster write a row.
    let refused = Kernel::build("ranks", |k| {
        let y = k.output::<i32>("y", "(M,32):(32,1)")?;
        k.threads(32)?;
        k.grid(Axis::X, 6)?;
        k.cluster(2)?;
        k.dynamic_scheduler(k.size("M")?, 1)?.each(|claim| {
            let values = y.slice(Tree::flat([Slot::At(claim.now().clone()), Slot::All])?)?.thread_part()?;
            let zeros = values.fragment()?;
            zeros.clear();
            values.store(&zeros)
        })
    });
    assert_eq!(refused.unwrap_err().code(), "E0916");
}

#[test]
fn numbers_are_dealt_once_to_all() {
    let build = |write: &dyn Fn(&Build) -> Result<(), KernelError>| {
        let refused = Kernel::build("refused", |k| {
            k.threads(32)?;
            k.grid(Axis::X, 4)?;
            write(k)
        });
        refused.unwrap_err().code()
    };
    let ten = || tilewright_layout::symbolic::Expr::from(10);
    assert_eq!(build(&|k| k.dynamic_scheduler(ten(), 1).map(|_| ())), "E0910");
    assert_eq!(build(&|k| k.dynamic_scheduler(ten(), 0)?.each(|_| Ok(()))), "E0910");
    assert_eq!(build(&|k| k.dynamic_scheduler(ten(), 5)?.each(|_| Ok(()))), "E0910");
    assert_eq!(build(&|k| k.prefetching_scheduler(ten(), 0)?.each(|_| Ok(()))), "E0910");
    assert_eq!(build(&|k| k.prefetching_scheduler(ten(), 4)?.each(|_| Ok(()))), "E0910");
    assert_eq!(
        build(&|k| {
            let scheduler = k.dynamic_scheduler(ten(), 1)?;
            scheduler.each(|_| Ok(()))?;
            scheduler.each(|_| Ok(()))
        }),
        "E0910"
    );
    assert_eq!(
        build(&|k| {
            k.dynamic_scheduler(ten(), 1)?.each(|_| Ok(()))?;
            k.dynamic_scheduler(ten(), 1)?.each(|_| Ok(()))
        }),
        "E0910"
    );
    assert_eq!(build(&|k| k.range(3, |_| k.dynamic_scheduler(ten(), 1)?.each(|_| Ok(())))), "E0910");
    assert_eq!(
        build(&|k| {
            let scheduler = k.dynamic_scheduler(ten(), 1)?;
            k.range(3, |_| scheduler.each(|_| Ok(())))
        }),
        "E0910"
    );
    assert_eq!(
        build(&|k| {
            k.grid(Axis::Y, 2)?;
            k.dynamic_scheduler(ten(), 1)?.each(|_| Ok(()))
        }),
        "E0910"
    );
    assert_eq!(
        build(&|k| {
            k.wait_launches();
            k.dynamic_scheduler(ten(), 1)?.each(|_| Ok(()))
        }),
        "E0910"
    );
    assert_eq!(
        build(&|k| { k.dynamic_scheduler(ten(), 1)?.each(|claim| k.range(2, |_| claim.ahead().map(|_| ()))) }),
        "E0910"
    );
    // Asked for in a loop, twice, and when it has been asked for at the beginning.
    let asks =
        |times| build(&|k| k.prefetching_scheduler(ten(), 1)?.each(|claim| (0..times).try_for_each(|_| claim.ask())));
    assert_eq!(asks(2), "E0910");
    assert_eq!(build(&|k| k.prefetching_scheduler(ten(), 1)?.each(|claim| k.range(2, |_| claim.ask()))), "E0910");
    assert_eq!(build(&|k| k.dynamic_scheduler(ten(), 1)?.each(|claim| claim.ask())), "E0910");
    assert_eq!(
        Kernel::build("unsaid", |k| k.dynamic_scheduler(ten(), 1).map(|_| ())).unwrap_err().code(),
        "E0909",
        "the number of blocks is said first"
    );
}
