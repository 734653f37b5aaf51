//! What the block does that comes last: it sees what all others have left, it is one, and what a
//! kernel may not say of it is refused.

use tilewright_kernel::cost::Machine;
use tilewright_kernel::program::Step;
use tilewright_kernel::program::operation::{Axis, Operation};
use tilewright_kernel::{Build, Distribution, Kernel, KernelError, Program, Reduction, Written, interpret, ptx};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, Slot, Tree};

/// Blocks of 64 threads add up their parts of columns of a matrix (COLUMNS,M), as many rows each as
/// `blocks` leaves; the last block adds what they have left.
fn columns(blocks: i64) -> Result<Kernel, KernelError> {
    Kernel::build("columns", |k| {
        let x = k.input::<i32>("x", "(64,M):(1,64)")?;
        let parts = k.output::<i32>("parts", Layout::strided((64, blocks), (1, 64)))?;
        let y = k.output::<i32>("y", "(64,1):(1,64)")?;
        k.threads(64)?;
        k.grid(Axis::X, blocks)?;
        let (block, thread) = (k.block_number(Axis::X), k.thread()?);
        let sum = k.register(tilewright_kernel::Element::I32, 1)?;
        sum.clear();
        k.range(k.size(&format!("ceil(M/{blocks})"))?, |iteration| {
            let row = Tree::flat([Slot::At(Expr::from(0)), Slot::At(iteration)])?;
            // Row `block + blocks * iteration`, where there is one.
            let rows = x.local_tile((64, blocks), row)?;
            let own = rows.slice(Tree::flat([Slot::At(thread.clone()), Slot::At(block.clone())])?)?;
            let number = own.load_predicated()?.numbers()?[0];
            sum.set(&[sum.numbers()?[0] + number])
        })?;
        parts.slice(Tree::flat([Slot::At(thread.clone()), Slot::At(block)])?)?.store(&sum)?;
        k.when_last(|| {
            let all = parts.slice(Tree::flat([Slot::At(thread.clone()), Slot::All])?)?.load()?.numbers()?;
            let total = all[1..].iter().fold(all[0], |sum, part| sum + *part);
            let result = k.register(tilewright_kernel::Element::I32, 1)?;
            result.set(&[total])?;
            y.slice(Tree::flat([Slot::At(thread.clone()), Slot::All])?)?.store(&result)
        })
    })
}

#[test]
fn the_last_block_adds_what_all_have_left() {
    for blocks in [1, 2, 5, 16] {
        let kernel = columns(blocks).unwrap();
        for output in kernel.outputs() {
            assert_eq!(output.written, Written::Once, "{}: {}", output.tensor, output.written);
        }
        for rows in [1, 4, 5, 33] {
            let checked = interpret::check(kernel.program(), &[("M", rows)]);
            let run = checked.unwrap_or_else(|error| panic!("{blocks} {rows}: {error}")).run;
            let (x, y) = (run.tensor::<i32>("x").unwrap(), run.tensor::<i32>("y").unwrap());
            let sum = |column: usize| x.iter().skip(column).step_by(64).sum::<i32>();
            assert!(y.iter().enumerate().all(|(column, y)| *y == sum(column)));
        }
    }
}

#[test]
fn the_text_counts_with_release_and_acquire() {
    let kernel = columns(5).unwrap();
    for target in [ptx::Target::Sm80, ptx::Target::Sm90a] {
        let text = ptx::write(kernel.program(), target).unwrap();
        assert!(text.contains(".global .align 4 .b32 columns_counts[65536];"), "{text}");
        assert_eq!(text.matches("atom.acq_rel.gpu.global.inc.u32").count(), 1);
        // What another block has written is read by no path that sees no stores.
        let parts = text.split("atom.acq_rel").nth(1).unwrap();
        assert!(parts.contains("ld.global.") && !parts.contains(".nc."), "{parts}");
    }
}

#[test]
fn the_cost_has_what_one_block_does() {
    let machine = Machine::named("H200").unwrap();
    for (blocks, rows) in [(5, 33), (400, 4000)] {
        let kernel = columns(blocks).unwrap();
        let cost = kernel.program().cost(&machine, &[("M", rows)]).unwrap();
        // Each sector of the matrix is read, and of the parts written and read, once; and one row
        // is written.
        assert_eq!(cost.sectors() as i64, (rows + 2 * blocks + 1) * 64 * 4 / 32);
    }
}

/// Changes all instructions and bodies of a program.
fn change(steps: &mut Vec<Step>, how: &mut dyn FnMut(&mut Vec<Step>)) {
    how(steps);
    for step in steps {
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

fn found(program: &Program) -> Vec<&'static str> {
    match interpret::check(program, &[("M", 20)]) {
        Err(interpret::CheckError::Findings(findings)) => findings.iter().map(|finding| finding.code()).collect(),
        Err(other) => panic!("{other}"),
        Ok(_) => Vec::new(),
    }
}

#[test]
fn a_count_without_its_barriers_is_found() {
    let kernel = columns(5).unwrap();
    assert!(found(kernel.program()).is_empty());
    let barriers = |steps: &[Step]| -> Vec<usize> {
        let is = |step: &Step| matches!(step, Step::Instruction(own) if own.operation == Operation::Barrier);
        (0..steps.len()).filter(|at| is(&steps[*at])).collect()
    };
    // Without the barrier before the count, and without that behind it.
    for (which, code) in [(0, "E1017"), (1, "E1016")] {
        let mut program = kernel.program().clone();
        let at = barriers(&program.body)[which];
        program.body.remove(at);
        let codes = found(&program);
        // Who was not told of the others may not read what they have left.
        assert!(codes.contains(&code) && codes.iter().all(|found| [code, "E1015"].contains(found)), "{codes:?}");
    }
    // Without the count there is no order, and nobody is the last.
    let mut program = kernel.program().clone();
    change(&mut program.body, &mut |steps| {
        for step in steps {
            if let Step::Instruction(own) = step
                && own.operation == Operation::CountBlock
            {
                own.operation = Operation::Claim;
            }
        }
    });
    assert!(!found(&program).is_empty());
}

#[test]
fn what_hangs_on_which_block_is_last_is_not_shown() {
    let kernel = Kernel::build("place", |k| {
        let y = k.output::<i32>("y", "(4,32):(32,1)")?;
        k.threads(32)?;
        k.grid(Axis::X, 4)?;
        let row = Tree::flat([Slot::At(k.block_number(Axis::X)), Slot::All])?;
        k.when_last(|| {
            let own = y.slice(row)?.thread_part()?;
            let zeros = own.fragment()?;
            zeros.clear();
            own.store(&zeros)
        })
    })
    .unwrap();
    assert_ne!(kernel.outputs()[0].written, Written::Once);
    assert_eq!(found_without_sizes(kernel.program()), ["E1014"]);
    // All blocks write, and the last one again.
    let twice = Kernel::build("twice", |k| {
        let y = k.output::<i32>("y", "(4,32):(32,1)")?;
        k.threads(32)?;
        k.grid(Axis::X, 4)?;
        let own = y.slice(Tree::flat([Slot::At(k.block_number(Axis::X)), Slot::All])?)?.thread_part()?;
        let zeros = own.fragment()?;
        zeros.clear();
        own.store(&zeros)?;
        k.when_last(|| {
            let first = y.slice(Tree::flat([Slot::At(Expr::from(0)), Slot::All])?)?.thread_part()?;
            first.store(&zeros)
        })
    })
    .unwrap();
    assert_ne!(twice.outputs()[0].written, Written::Once);
    assert!(found_without_sizes(twice.program()).contains(&"E1013"));
}

fn found_without_sizes(program: &Program) -> Vec<&'static str> {
    match interpret::check(program, &[]) {
        Err(interpret::CheckError::Findings(findings)) => findings.iter().map(|finding| finding.code()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_of_a_grid_of_three_axes_are_counted() {
    let parts = Distribution::new(12, "((4,8),3):((3,0),1)").unwrap();
    let kernel = Kernel::build("axes", |k| {
        let (left, y) = (k.output::<i32>("left", "(3,2,2):(1,3,6)")?, k.output::<i32>("y", "1:1")?);
        k.threads(32)?;
        let [x, y_, z] = [(Axis::X, 3), (Axis::Y, 2), (Axis::Z, 2)].map(|(axis, count)| {
            k.grid(axis, count).unwrap();
            k.block_number(axis)
        });
        let own = left.slice(Tree::flat([Slot::At(x.clone()), Slot::At(y_), Slot::At(z)])?)?;
        let number = k.register(tilewright_kernel::Element::I32, 1)?;
        number.set(&[k.index(&x)? + k.number(1_i32)])?;
        k.single(|| own.store(&number))?;
        k.when_last(|| {
            let all = left.compose("12:1")?.load_distributed_predicated(&parts)?;
            y.store_distributed(&all.reduce(&[0], Reduction::Sum)?)
        })
    })
    .unwrap();
    let run = interpret::check(kernel.program(), &[]).unwrap_or_else(|error| panic!("{error}")).run;
    assert_eq!(run.tensor::<i32>("y").unwrap(), [4 * (1 + 2 + 3)]);
}

#[test]
fn the_last_block_is_said_once_by_all() {
    let refused = |write: &dyn Fn(&Build) -> Result<(), KernelError>| {
        let refused = Kernel::build("refused", |k| {
            k.threads(32)?;
            k.grid(Axis::X, 4)?;
            write(k)
        });
        refused.unwrap_err().code()
    };
    let nothing = || Ok(());
    assert_eq!(refused(&|k| k.when_last(nothing).and_then(|()| k.when_last(nothing))), "E0910");
    assert_eq!(refused(&|k| k.range(3, |_| k.when_last(nothing))), "E0910");
    assert_eq!(refused(&|k| k.single(|| k.when_last(nothing))), "E0910");
    assert_eq!(refused(&|k| k.when_last(|| k.when_last(nothing))), "E0910");
    assert_eq!(refused(&|k| k.role(0..1, || k.when_last(nothing))), "E0910");
    assert_eq!(refused(&|k| k.when_last(nothing).and_then(|()| k.grid(Axis::Y, 2))), "E0910");
    assert_eq!(
        refused(&|k| {
            k.wait_launches();
            k.when_last(nothing)
        }),
        "E0910"
    );
    assert_eq!(
        refused(&|k| {
            k.dynamic_scheduler(Expr::from(10), 1)?.each(|_| Ok(()))?;
            k.when_last(nothing)
        }),
        "E0910"
    );
    assert_eq!(Kernel::build("unsaid", |k| k.when_last(|| Ok(()))).unwrap_err().code(), "E0909");
    // An output is read by the last block alone.
    assert_eq!(
        refused(&|k| {
            let y = k.output::<i32>("y", "(32,1):(1,32)")?;
            k.when_last(nothing)?;
            y.thread_part()?.load().map(drop)
        }),
        "E0912"
    );
}
