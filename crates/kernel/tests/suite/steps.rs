//! A block statement by statement: what is in memory and in registers after each, by arithmetic of
//! its own.

use tilewright_kernel::interpret::{AccessKind, Completion, Interpreter, StepEvents, Stepper, Thread};
use tilewright_kernel::{Element, Kernel};
use tilewright_layout::atoms::{CopyAtom, TiledCopy};
use tilewright_layout::coord;
use tilewright_layout::symbolic::Expr;

/// 32 threads bring a row of 32 words each to shared memory, wait, and take a column each.
fn turned() -> Kernel {
    Kernel::build("turned", |k| {
        let x = k.input::<f32>("x", "(32,32):(32,1)")?;
        let y = k.output::<f32>("y", "(32,32):(32,1)")?;
        let tile = k.shared::<f32>("(32,32):(32,1)")?;
        k.threads(32)?;
        let row = "(32,32):(1,32)";
        let values = x.compose(row)?.thread_part()?.load()?;
        tile.compose(row)?.thread_part()?.store(&values)?;
        k.barrier();
        let column = "(32,32):(32,1)";
        let values = tile.compose(column)?.thread_part()?.load()?;
        y.compose(row)?.thread_part()?.store(&values)
    })
    .unwrap()
}

fn steps(stepper: &mut Stepper<'_>, mut seen: impl FnMut(&Stepper<'_>, &StepEvents)) {
    while let Some(step) = stepper.step().unwrap() {
        seen(stepper, &step);
    }
}

fn thread(thread: u32) -> Thread {
    Thread { block: [0; 3], thread }
}

#[test]
fn memory_and_registers_are_those_of_each_statement() {
    let kernel = turned();
    let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
    let x: Vec<f32> = (0..1024).map(|at| at as f32 / 8.0).collect();
    interpreter.tensor("x", &x).unwrap();
    let mut stepper = interpreter.stepper([0; 3], Completion::Late).unwrap();
    assert!(!stepper.is_written(1, [0; 3], 0) && !stepper.is_written(2, [0; 3], 0) && stepper.is_written(0, [0; 3], 0));
    let mut told = Vec::new();
    steps(&mut stepper, |stepper, step| {
        let [executed] = step.executed.as_slice() else { panic!("one warp executes one statement") };
        assert_eq!(executed.warps, [0]);
        assert!(executed.source.location.file().ends_with("steps.rs"));
        let reads = step.touched.iter().filter(|touched| touched.kind == AccessKind::Read).count();
        let writes = step.touched.iter().filter(|touched| touched.kind == AccessKind::Write).count();
        told.push((executed.source.statement, reads, writes, executed.wavefronts, executed.least_wavefronts));
        for touched in &step.touched {
            let (thread, word) = (u64::from(touched.thread.thread), touched.byte / 4);
            match (touched.buffer, touched.kind) {
                // Rows: thread t has words 32 t and on; columns: t, 32 + t and on.
                (0, AccessKind::Read) | (1, AccessKind::Write) => assert_eq!(word / 32, thread),
                (2, AccessKind::Write) => assert_eq!(word / 32, thread),
                (2, AccessKind::Read) => assert_eq!(word % 32, thread),
                other => panic!("{other:?}"),
            }
        }
        let held = stepper.registers(thread(5));
        let loaded: Vec<String> = held
            .iter()
            .filter(|held| held.reading.element() == Some(Element::F32))
            .map(|held| held.reading.text(held.bits))
            .collect();
        if executed.source.statement == "load" {
            let of_x = step.touched.iter().any(|touched| touched.buffer == 0);
            let wanted = |at: usize| if of_x { x[32 * 5 + at] } else { x[32 * at + 5] };
            assert_eq!(loaded, (0..32).map(|at| wanted(at).to_string()).collect::<Vec<_>>());
        } else {
            assert!(loaded.is_empty(), "{loaded:?}");
        }
    });
    // A row of 32 words is 8 vectors of 4. A lane's row begins in the bank of everybody's: all 8
    // lanes of a phase want the same 4 banks, so 8 wavefronts for 4 phases; columns have none.
    let touching: Vec<_> = told.iter().filter(|(_, reads, writes, ..)| reads + writes > 0).collect();
    let words = touching.iter().map(|told| (told.0, told.1 + told.2, told.3, told.4)).collect::<Vec<_>>();
    assert_eq!(
        words,
        [("load", 32 * 8, 0, 0), ("store", 32 * 8, 8 * 32, 8 * 4), ("load", 32 * 32, 32, 32), ("store", 32 * 8, 0, 0)]
    );
    let y = stepper.bytes(1, [0; 3]).unwrap();
    let y: Vec<f32> = y.chunks(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
    assert!((0..1024).all(|at| y[at] == x[at % 32 * 32 + at / 32]));
    // There is no such thread, block or memory here.
    assert!(stepper.registers(thread(32)).is_empty());
    assert!(stepper.bytes(2, [1, 0, 0]).is_none() && stepper.bytes(3, [0; 3]).is_none());
    assert!(interpreter.stepper([1, 0, 0], Completion::Late).is_err());
}

#[test]
fn what_is_copied_behind_the_threads_comes_when_it_is_waited_for() {
    let kernel = Kernel::build("copied", |k| {
        let x = k.input::<f32>("x", "(32,4):(4,1)")?;
        let y = k.output::<f32>("y", "(32,4):(4,1)")?;
        let tile = k.shared::<f32>("(32,4):(4,1)")?;
        let atom = CopyAtom::named("SM80_CP_ASYNC_CACHEALWAYS<uint128_t>")?;
        let copy = TiledCopy::new(atom, 32, &"32:1".parse()?, &"(1,4)".parse()?)?;
        k.copy(&copy, &x, &tile)?;
        k.commit_async();
        k.wait_async(0);
        k.barrier();
        y.compose("(32,4):(1,32)")?.thread_part()?.store(&tile.compose("(32,4):(1,32)")?.thread_part()?.load()?)
    })
    .unwrap();
    let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
    interpreter.tensor("x", &[2.0_f32; 128]).unwrap();
    for (completion, early) in [(Completion::Late, false), (Completion::Early, true)] {
        let mut stepper = interpreter.stepper([0; 3], completion).unwrap();
        let mut there = Vec::new();
        steps(&mut stepper, |stepper, step| {
            let now = stepper.bytes(2, [0; 3]).unwrap()[..4] == 2.0_f32.to_le_bytes();
            assert_eq!(stepper.is_written(2, [0; 3], 511), now);
            let statement = step.executed[0].source.statement;
            there.push((statement, now));
            if statement == "copy" {
                assert!(step.touched.iter().all(|touched| touched.background && touched.bytes == 16));
                assert_eq!(step.touched.len(), 64);
            }
        });
        assert!(there.contains(&("copy", early)), "{there:?}");
        assert!(there.contains(&("wait_async", true)), "{there:?}");
    }
}

#[test]
fn iterations_of_a_loop_and_warps_are_told_apart() {
    let kernel = Kernel::build("iterations", |k| {
        let y = k.output::<f32>("y", "(64,3)")?;
        k.threads(64)?;
        k.range(3, |iteration| {
            let row = y.local_tile((64, 1), coord!(Expr::from(0), iteration)?)?.thread_part()?;
            let zeros = row.fragment()?;
            zeros.clear();
            row.store(&zeros)
        })
    })
    .unwrap();
    let interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
    let mut stores = Vec::new();
    steps(&mut interpreter.stepper([0; 3], Completion::Late).unwrap(), |_, step| {
        for executed in step.executed.iter().filter(|_| !step.touched.is_empty()) {
            assert_eq!(executed.source.statement, "store");
            let rows: Vec<u64> = step.touched.iter().map(|touched| touched.byte / 256).collect();
            stores.push((executed.warps.clone(), rows[0], rows.len()));
            assert!(rows.iter().all(|row| *row == rows[0]));
        }
    });
    assert_eq!(stores, [(vec![0, 1], 0, 64), (vec![0, 1], 1, 64), (vec![0, 1], 2, 64)]);
}

#[test]
fn iterations_of_one_line_are_steps_of_their_own() {
    let kernel = Kernel::build("iterations", |k| {
        let y = k.output::<f32>("y", "(32,3)")?;
        k.threads(32)?;
        let zeros = y.slice(coord!(_, Expr::from(0))?)?.thread_part()?.fragment()?;
        zeros.clear();
        k.range(3, |iteration| y.slice(coord!(_, iteration)?)?.thread_part()?.store(&zeros))
    })
    .unwrap();
    let interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
    let mut columns = Vec::new();
    steps(&mut interpreter.stepper([0; 3], Completion::Late).unwrap(), |_, step| {
        columns.extend(step.touched.first().map(|touched| (touched.byte / 128, step.touched.len())));
    });
    assert_eq!(columns, [(0, 32), (1, 32), (2, 32)]);
}

#[test]
fn a_defect_ends_the_steps_with_what_a_run_finds() {
    // No barrier between the write of a row and the read of a column.
    let kernel = Kernel::build("hasty", |k| {
        let y = k.output::<f32>("y", "(64,1)")?;
        let tile = k.shared::<f32>("(64,1)")?;
        k.threads(64)?;
        let part = tile.thread_part()?;
        let ones = part.fragment()?;
        ones.clear();
        part.store(&ones)?;
        let turned = tile.compose("((2,32),1):((32,1),64)")?;
        y.thread_part()?.store(&turned.thread_part()?.load()?)
    })
    .unwrap();
    let interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
    let wanted = interpreter.run(tilewright_kernel::interpret::Schedule::ALL[0]).unwrap_err();
    let mut stepper = interpreter.stepper([0; 3], Completion::Late).unwrap();
    let found = loop {
        match stepper.step() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("nothing was found"),
            Err(found) => break found,
        }
    };
    // The run goes on to its end, and may find the same again.
    assert_eq!((found[0].code(), found[0].source), (wanted[0].code(), wanted[0].source));
    assert!(stepper.step().is_err());
}
