//! Addresses of a loop: what a thread keeps for them in registers from iteration to iteration.
//!
//! Law: accesses whose offsets differ by numbers that are known, or that the launch passes, share
//! what is computed before the loop.

use std::collections::{HashMap, HashSet};

use tilewright_kernel::program::operation::Operation;
use tilewright_kernel::program::{Program, Step};
use tilewright_kernel::{Build, Element, Kernel, KernelError, interpret};
use tilewright_layout::coord;
use tilewright_layout::symbolic::Expr;

/// How many registers that instructions before the loops of a program compute are read in them:
/// constants and numbers of the launch are in no register of a thread.
fn kept(program: &Program) -> usize {
    let mut before: HashMap<usize, bool> = HashMap::new();
    let mut within = HashSet::new();
    for step in &program.body {
        match step {
            Step::Instruction(own) => {
                let is_free = matches!(own.operation, Operation::Constant(_) | Operation::Scalar(_));
                before.extend(own.outputs.iter().map(|output| (output.index(), is_free)));
            }
            Step::Loop(own) => {
                for step in &own.body {
                    let Step::Instruction(own) = step else { panic!("the bodies of these loops are flat") };
                    within.extend(own.inputs.iter().map(|input| input.index()));
                }
            }
            Step::Branch(_) => panic!("these kernels have no conditions"),
        }
    }
    within.iter().filter(|register| before.get(register) == Some(&false)).count()
}

/// A thread sums elements of `rows` rows, each iteration those 32 columns further on.
fn rows_of_a_tensor(rows: i64) -> Kernel {
    let kernel = |k: &Build| -> Result<(), KernelError> {
        let x = k.input::<f32>("x", &format!("({rows},(32,T)):(N,(1,32))"))?;
        let y = k.output::<f32>("y", "32:1")?;
        k.threads(32)?;
        let thread = k.thread()?;
        let sum = k.register(Element::F32, 1)?;
        sum.clear();
        k.range(k.size("T")?, |tile| {
            let own = x.slice(coord!(_, (thread.clone(), tile))?)?.load()?;
            for number in own.numbers()? {
                sum.fill(sum.numbers()?[0] + number)?;
            }
            Ok(())
        })?;
        y.slice(thread)?.store(&sum)
    };
    Kernel::build("rows", kernel).unwrap()
}

#[test]
fn rows_whose_step_the_launch_passes_share_an_address() {
    let [few, many] = [rows_of_a_tensor(2), rows_of_a_tensor(16)];
    assert_eq!(kept(few.program()), kept(many.program()));
    let mut interpreter = interpret::Interpreter::new(many.program(), &[("N", 100), ("T", 3)]).unwrap();
    let x: Vec<f32> = (0..1596).map(|at| (at % 97) as f32).collect();
    let y = interpreter.tensor(0, &x).unwrap().check().unwrap().run.tensor::<f32>(1).unwrap();
    for (thread, sum) in y.iter().enumerate() {
        let own = |row: usize| (0..3).map(|tile| x[row * 100 + tile * 32 + thread]).sum::<f32>();
        assert_eq!(*sum, (0..16).map(own).sum::<f32>());
    }
}

/// Threads write a ring of stages, whose lines are swizzled; then each reads `columns` elements of
/// its row, four apart, of the stage of an iteration, and writes their sum.
fn elements_of_a_ring(columns: i64) -> Kernel {
    let kernel = |k: &Build| -> Result<(), KernelError> {
        let (x, y) = (k.input::<f32>("x", "(32,64,2):(64,1,2048)")?, k.output::<f32>("y", "(32,2):(1,32)")?);
        let ring = k.shared::<f32>("S<3,2,4> o 0 o (32,64,2):(64,1,2048)")?;
        k.threads(32)?;
        let thread = k.thread()?;
        for stage in 0..2 {
            let own = x.slice(coord!(thread.clone(), _, Expr::from(stage))?)?.load()?;
            ring.slice(coord!(thread.clone(), _, Expr::from(stage))?)?.store(&own)?;
        }
        k.barrier();
        k.range(2, |stage| {
            let sum = k.register(Element::F32, 1)?;
            sum.clear();
            for column in 0..columns {
                let own = ring.slice(coord!(thread.clone(), Expr::from(column * 4), stage.clone())?)?;
                sum.fill(sum.numbers()?[0] + own.load()?.numbers()?[0])?;
            }
            y.slice(coord!(thread.clone(), stage)?)?.store(&sum)
        })
    };
    Kernel::build("ring", kernel).unwrap()
}

#[test]
fn elements_of_a_swizzled_stage_share_an_address() {
    let [one, many] = [elements_of_a_ring(1), elements_of_a_ring(16)];
    assert_eq!(kept(one.program()), kept(many.program()));
    let mut interpreter = interpret::Interpreter::new(many.program(), &[]).unwrap();
    let x: Vec<f32> = (0..4096).map(|at| (at % 509) as f32).collect();
    let y = interpreter.tensor(0, &x).unwrap().check().unwrap().run.tensor::<f32>(1).unwrap();
    for (place, sum) in y.iter().enumerate() {
        let (row, stage) = (place % 32, place / 32);
        assert_eq!(*sum, (0..16).map(|column| x[stage * 2048 + row * 64 + column * 4]).sum::<f32>());
    }
}
