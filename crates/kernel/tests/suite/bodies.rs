//! Bodies that are opened and closed are the bodies that closures write, and they nest.

use tilewright_kernel::ptx::{self, Target};
use tilewright_kernel::{Build, Element, Kernel, KernelError, interpret};

/// Two roles of a warp each: in the first one each thread sums a row of 8 elements, doubled where
/// the sum is negative and halved otherwise; in the second one the first thread writes a constant.
fn by_closures(k: &Build) -> Result<(), KernelError> {
    let (x, y) = (k.input::<f32>("x", "(32,8):(8,1)")?, k.output::<f32>("y", "33:1")?);
    k.threads(64)?;
    let sum = k.register(Element::F32, 1)?;
    k.role(0..1, || {
        sum.clear();
        k.range(8, |column| {
            let value = x.slice((k.thread()?, column))?.load()?.numbers()?[0];
            sum.fill(sum.numbers()?[0] + value)
        })?;
        let value = sum.numbers()?[0];
        k.choose(value.lt(value.like(0.0)), || sum.fill(value * 2.0), || sum.fill(value * 0.5))?;
        y.slice(k.thread()?)?.store(&sum)
    })?;
    k.role(1..2, || {
        let seven = k.register(Element::F32, 1)?;
        seven.clear();
        seven.fill(seven.numbers()?[0] + 7.0)?;
        k.single(|| y.slice(32)?.store(&seven))
    })
}

/// The same kernel with guards: some are closed, and some end with their scope.
fn by_guards(k: &Build) -> Result<(), KernelError> {
    let (x, y) = (k.input::<f32>("x", "(32,8):(8,1)")?, k.output::<f32>("y", "33:1")?);
    k.threads(64)?;
    let sum = k.register(Element::F32, 1)?;
    {
        let _role = k.open_role(0..1)?;
        sum.clear();
        let columns = k.open_loop(8)?;
        let value = x.slice((k.thread()?, columns.index()))?.load()?.numbers()?[0];
        sum.fill(sum.numbers()?[0] + value)?;
        columns.close()?;
        let value = sum.numbers()?[0];
        let negative = k.open_when(value.lt(value.like(0.0)))?;
        sum.fill(value * 2.0)?;
        let others = negative.otherwise()?;
        sum.fill(value * 0.5)?;
        others.close()?;
        y.slice(k.thread()?)?.store(&sum)?;
    }
    let role = k.open_role(1..2)?;
    let seven = k.register(Element::F32, 1)?;
    seven.clear();
    seven.fill(seven.numbers()?[0] + 7.0)?;
    let single = k.open_single()?;
    y.slice(32)?.store(&seven)?;
    single.close()?;
    role.close()
}

/// The instructions, without the lines that say where a statement is written.
fn text(kernel: &Kernel) -> String {
    let text = ptx::write(kernel.program(), Target::Sm80).unwrap();
    let said = |line: &&str| !line.contains(".loc") && !line.contains(".file") && !line.contains("//");
    text.lines().filter(said).collect::<Vec<_>>().join("\n")
}

#[test]
fn guards_write_the_program_that_closures_write() {
    let closures = Kernel::build("sums", by_closures).unwrap();
    let guards = Kernel::build("sums", by_guards).unwrap();
    assert_eq!(text(&guards), text(&closures));
    let run = interpret::check(guards.program(), &[]).unwrap().run;
    let (x, y) = (run.tensor::<f32>("x").unwrap(), run.tensor::<f32>("y").unwrap());
    for (row, y) in x.chunks(8).zip(&y) {
        let sum: f32 = row.iter().sum();
        assert_eq!(*y, if sum < 0.0 { sum * 2.0 } else { sum * 0.5 });
    }
    assert_eq!(y[32], 7.0);
}

#[test]
fn a_kernel_that_is_opened_and_closed_is_the_same() {
    let k = Build::open("sums");
    by_guards(&k).unwrap();
    assert_eq!(text(&k.close().unwrap()), text(&Kernel::build("sums", by_closures).unwrap()));
}

fn refused(write: impl FnOnce(&Build) -> Result<(), KernelError>) -> KernelError {
    Kernel::build("refused", |k| {
        k.threads(32)?;
        write(k)
    })
    .expect_err("it is refused")
}

#[test]
fn bodies_close_innermost_first() {
    let crossed = refused(|k| {
        let (outer, _inner) = (k.open_loop(4)?, k.open_loop(8)?);
        outer.close()
    });
    assert_eq!((crossed.code(), crossed.source().statement), ("E0927", "range"), "{crossed}");
    assert!(tilewright_kernel::explanation("E0927").is_some());
    // Dropped in the wrong order: there is no result to refuse with, so the kernel is refused.
    let dropped = refused(|k| {
        let (outer, _inner) = (k.open_single()?, k.open_loop(8)?);
        drop(outer);
        Ok(())
    });
    assert_eq!((dropped.code(), dropped.source().statement), ("E0927", "single"), "{dropped}");
    // Never closed.
    let open = refused(|k| {
        std::mem::forget(k.open_role(0..1)?);
        Ok(())
    });
    assert_eq!((open.code(), open.source().statement), ("E0927", "kernel"), "{open}");
}

#[test]
fn only_a_condition_has_other_threads_and_once() {
    for twice in [false, true] {
        let error = refused(|k| {
            if twice {
                let thread = k.index(&k.thread()?)?;
                k.open_when(thread.lt(thread.like(1.0)))?.otherwise()?.otherwise().map(drop)
            } else {
                k.open_single()?.otherwise().map(drop)
            }
        });
        assert_eq!(error.code(), "E0910", "{error}");
        assert!(error.to_string().contains("otherwise"), "{error}");
    }
}

#[test]
fn what_a_body_refuses_is_the_error() {
    let error = refused(|k| {
        let _loop = k.open_loop(4)?;
        let _branch = k.open_single()?;
        k.register(Element::F32, 1)?.numbers().map(drop)
    });
    assert_eq!(error.code(), "E0913", "{error}");
}
