//! Roles share registers and barriers, and producers run ahead of consumers.

use tilewright_kernel::interpret::{Interpreter, check};
use tilewright_kernel::{Build, Kernel, KernelError, ptx};
use tilewright_layout::Layout;
use tilewright_layout::atoms::{CopyAtom, TiledCopy};

/// Roles of a warpgroup with this many registers each; 0 says nothing.
fn shares(threads: i64, resident: u32, counts: &[u32]) -> Result<Kernel, KernelError> {
    Kernel::build("shares", |k: &Build| {
        k.threads(threads)?;
        k.resident(resident)?;
        for (group, count) in counts.iter().enumerate() {
            let first = 4 * group as u32;
            k.role(first..first + 4, || if *count > 0 { k.registers(*count) } else { Ok(()) })?;
        }
        Ok(())
    })
}

#[test]
fn roles_share_the_registers_of_a_block() {
    for (threads, resident, counts, entry) in [
        (384, 1, &[40, 232, 232][..], 168),
        (384, 1, &[24, 240, 240], 168),
        (512, 1, &[32, 160, 160, 160], 128),
        (384, 1, &[0, 168, 168], 168),
        (256, 2, &[24, 232], 128),
        (416, 1, &[40, 216, 200], 152),
    ] {
        let kernel = shares(threads, resident, counts).unwrap();
        check(kernel.program(), &[]).unwrap_or_else(|error| panic!("{counts:?}: {error}"));
        let text = ptx::write(kernel.program(), ptx::Target::Sm90a).unwrap();
        assert!(text.contains(&format!(".maxnreg {entry}\n")), "{text}");
        for count in counts.iter().filter(|count| **count > 0) {
            let way = if *count > entry { "inc" } else { "dec" };
            assert!(text.contains(&format!("setmaxnreg.{way}.sync.aligned.u32 {count};")), "{text}");
        }
        assert_eq!(ptx::write(kernel.program(), ptx::Target::Sm89).unwrap_err().code(), "E0921");
    }
    for (threads, counts, code) in [
        // 8 for each of 128 threads more than there are.
        (384, &[40, 232, 240][..], "E0911"),
        (384, &[0, 176, 168], "E0911"),
        (384, &[16, 232, 232], "E0910"),
        (384, &[36, 232, 232], "E0910"),
        (384, &[40, 256, 200], "E0910"),
    ] {
        assert_eq!(shares(threads, 1, counts).unwrap_err().code(), code, "{counts:?}");
    }
    let refused = |write: &dyn Fn(&Build) -> Result<(), KernelError>| {
        Kernel::build("refused", |k| k.threads(288).and(write(k))).unwrap_err().code()
    };
    assert_eq!(refused(&|k| k.registers(40)), "E0910");
    assert_eq!(refused(&|k| k.role(0..3, || k.registers(40))), "E0910");
    assert_eq!(refused(&|k| k.role(2..6, || k.registers(40))), "E0910");
    assert_eq!(refused(&|k| k.role(0..4, || k.registers(40).and(k.registers(48)))), "E0910");
    let waits = |k: &Build| {
        k.wait_launches();
        Ok(())
    };
    assert_eq!(refused(&|k| k.role(0..4, || waits(k))), "E0910");
    assert_eq!(refused(&|k| k.meeting(40).map(|_| ())), "E0910");
    assert_eq!(refused(&|k| (0..16).try_for_each(|_| k.meeting(64).map(|_| ()))), "E0911");
}

/// Adds what iterations bring, of which copies run ahead.
fn summed(stages: i64) -> Result<Kernel, KernelError> {
    Kernel::build("summed", |k: &Build| {
        let source = k.input::<f32>("source", "(64,4,K):(4,1,256)")?;
        let target = k.output::<f32>("target", "(64,4):(4,1)")?;
        k.threads(64)?;
        let held = k.shared::<f32>(Layout::strided((64, 4, stages), (4, 1, 256)))?;
        let atom = CopyAtom::named("SM80_CP_ASYNC_CACHEALWAYS<uint128_t>")?;
        let copy = TiledCopy::new(atom, 32, &"(64,1):(1,1)".parse()?, &"(1,4)".parse()?)?;
        // Rows of other threads than those that copied them.
        let others = "((2,32),4):((32,1),64)";
        let own = target.compose(others)?.thread_part()?;
        let sums = own.fragment()?;
        sums.clear();
        k.staged(
            stages,
            k.size("K")?,
            |iteration, stage| k.copy(&copy, &source.slice((.., .., iteration))?, &held.slice((.., .., stage))?),
            |_, stage| {
                let values = held.slice((.., .., stage))?.compose(others)?.thread_part()?.load()?;
                let sum = sums.zip(&values, |a, b| Ok(a + b))?;
                sums.set(&sum.numbers()?)
            },
        )?;
        own.store(&sums)
    })
}

#[test]
fn copies_run_ahead_of_those_who_use_them() {
    for stages in [2, 3, 5] {
        let kernel = summed(stages).unwrap();
        for iterations in [1, 2, 3, 4, 9] {
            let mut interpreter = Interpreter::new(kernel.program(), &[("K", iterations)]).unwrap();
            let elements: Vec<f32> = (0..256 * iterations).map(|element| element as f32).collect();
            interpreter.tensor(0, &elements).unwrap();
            let checked =
                interpreter.check().unwrap_or_else(|findings| panic!("{stages} {iterations}: {}", findings[0]));
            let found = checked.run.tensor::<f32>(1).unwrap();
            for (place, sum) in found.iter().enumerate() {
                let wanted: f32 = elements.iter().skip(place).step_by(256).sum();
                assert_eq!(*sum, wanted, "{stages} {iterations} {place}");
            }
        }
        let text = ptx::write(kernel.program(), ptx::Target::Sm80).unwrap();
        assert!(text.contains(&format!("cp.async.wait_group {};", stages - 2)), "{text}");
    }
    assert_eq!(summed(1).unwrap_err().code(), "E0910");
}
