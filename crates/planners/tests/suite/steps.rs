//! A block run statement by statement does what a run of the whole grid does.

use tilewright_kernel::interpret::{AccessKind, Class, Completion, Schedule};
use tilewright_kernel::program::memory::{Role, Space};
use tilewright_planners::{Entry, EntryOptions, library};

use crate::h200;

/// Runs each block of a kernel by itself, and compares what all of them execute and write with a
/// run of the grid. Returns how many steps they took.
fn compare(entry: &Entry, completion: Completion) -> usize {
    let name = entry.name;
    let plan = entry.plan(&h200(), EntryOptions::default()).unwrap();
    let program = plan.kernel().program();
    let interpreter = plan.interpreter().unwrap();
    let whole = interpreter.run(Schedule { completion, ..Schedule::ALL[0] }).unwrap();
    let grid = program.launch(plan.sizes()).unwrap().grid;
    let accesses = |class: Class| matches!(class, Class::Load | Class::Store | Class::Atomic | Class::MatrixMove);
    let wanted: Vec<_> = whole.counts.accesses.iter().filter(|count| accesses(count.class)).collect();
    let outputs: Vec<usize> = (0..program.buffers.len())
        .filter(|at| program.buffers[*at].space == Space::Global && program.buffers[*at].role == Role::Output)
        .collect();
    let mut left: Vec<Vec<Option<u8>>> = outputs.iter().map(|at| vec![None; whole.bytes(*at).unwrap().len()]).collect();
    let (mut steps, mut instructions, mut wavefronts, mut bytes) = (0, 0, 0, 0);
    for z in (0..grid[2]).step_by(program.cluster[2] as usize) {
        for y in (0..grid[1]).step_by(program.cluster[1] as usize) {
            // The blocks of a cluster run together.
            for x in (0..grid[0]).step_by(program.cluster[0] as usize) {
                let mut stepper = interpreter.stepper([x, y, z], completion).unwrap();
                while let Some(step) = stepper.step().unwrap() {
                    steps += 1;
                    instructions += step.executed.iter().map(|executed| executed.instructions).sum::<u64>();
                    wavefronts += step.executed.iter().map(|executed| executed.wavefronts).sum::<u64>();
                    let own = step.touched.iter().filter(|touched| !touched.background);
                    bytes += own.map(|touched| touched.bytes).sum::<u64>();
                    for touched in step.touched.iter().filter(|touched| touched.kind == AccessKind::Write) {
                        assert!(stepper.is_written(touched.buffer, touched.block, touched.byte) || touched.background);
                    }
                }
                assert_eq!(stepper.step(), Ok(None), "{name}: after the last step");
                for (output, left) in outputs.iter().zip(&mut left) {
                    let now = stepper.bytes(*output, [x, y, z]).unwrap();
                    for (at, byte) in now.iter().enumerate() {
                        if stepper.is_written(*output, [x, y, z], at as u64) {
                            left[at] = Some(*byte);
                        }
                    }
                }
            }
        }
    }
    // Where blocks are counted, one that is by itself is not the last, and leaves that to others.
    let counted = program.counted.is_some();
    assert!(
        instructions == whole.counts.total() || counted && instructions < whole.counts.total(),
        "{name}: instructions"
    );
    let all =
        |of: fn(&tilewright_kernel::interpret::AccessCount) -> u64| wanted.iter().map(|count| of(count)).sum::<u64>();
    // Copies behind the threads' backs have wavefronts too, by the statement that sets them off.
    let copied: u64 = whole
        .counts
        .accesses
        .iter()
        .filter(|count| count.class == Class::AsyncCopy)
        .map(|count| count.wavefronts)
        .sum();
    let wanted = all(|count| count.wavefronts) + copied;
    assert!(wavefronts == wanted || counted && wavefronts < wanted, "{name}: {wavefronts} wavefronts of {wanted}");
    assert!(bytes >= all(|count| count.bytes) || counted, "{name}: {bytes} bytes touched");
    for (output, left) in outputs.iter().zip(&left) {
        let whole = whole.bytes(*output).unwrap();
        for (at, (byte, wanted)) in left.iter().zip(whole).enumerate() {
            assert!(byte.is_none_or(|byte| byte == *wanted), "{name}: byte {at} of {output}");
        }
        let results = *output == plan.between().end;
        assert!(left.iter().any(Option::is_some) || counted && results, "{name}: nothing written");
    }
    steps
}

#[test]
fn the_blocks_of_every_kernel_leave_what_a_run_leaves() {
    let steps: usize = library().iter().map(|entry| compare(entry, Completion::Late)).sum();
    assert!(steps > 1000, "{steps} steps");
}

#[test]
fn also_where_copies_are_done_at_once() {
    for entry in library().iter().filter(|entry| entry.name.contains("product")) {
        assert!(compare(entry, Completion::Early) > 10);
    }
}
