//! Pipelines of bulk copies between roles: what arrives is what was there, in every swizzle and past
//! every edge, and a step that is missing is found.

use tilewright_atoms::{CopyAtom, TiledCopy};
use tilewright_kernel::interpret::{CheckError, Interpreter, check};
use tilewright_kernel::{Build, Kernel, KernelError, Stage, ptx};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Slot, Tree};

/// What one of the kernels below leaves out or does too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    /// Users do not wait until the stage is full.
    Wait,
    /// Users release the stage before they have read it.
    Early,
    /// Users never release it.
    Release,
    /// The first copies of a stage do not wait until it is free.
    Acquire,
    /// The stage is published twice.
    Twice,
    /// The stage is never published.
    Publish,
    /// The stage is published before the copies are set off, so that it expects no bytes.
    Bytes,
    /// Stages count a release more than there is.
    Count,
}

/// `(_,_,index)`.
fn at(index: &Expr) -> Coord<Expr> {
    Tree::flat([Slot::All, Slot::All, Slot::At(index.clone())]).unwrap()
}

/// Copies a matrix of 16-bit elements: a warp loads tiles of `rows` x `columns`, two others store.
fn copied(rows: i64, columns: i64, swizzle: &str, stages: i64, defect: Defect) -> Result<Kernel, KernelError> {
    Kernel::build("copied", |k: &Build| {
        let source = k.input::<u16>("source", "(M,K{div=8}):(K,1)")?;
        let target = k.output::<u16>("target", "(M,K):(K,1)")?;
        k.threads(96)?;
        let tile = format!("({rows},{columns})");
        let from = source.local_tile(&tile, k.block("(x,_)")?)?;
        let to = target.local_tile(&tile, k.block("(x,_)")?)?;
        let ring =
            k.shared::<u16>(&format!("{swizzle} o 0 o ({rows},{columns},{stages}):({columns},1,{})", rows * columns))?;
        let pipeline = k.pipeline(stages, if defect == Defect::Count { 3 } else { 2 })?;
        let turns = || k.size(&format!("ceil(K/{columns})"));
        k.role(2..3, || {
            k.single(|| {
                k.range(turns()?, |turn| {
                    let stage = pipeline.stage(&turn)?;
                    if defect != Defect::Acquire {
                        stage.acquire()?;
                    }
                    if defect == Defect::Bytes {
                        stage.publish()?;
                    }
                    stage.load(&from.slice(at(&turn))?, &ring.slice(at(stage.index()))?)?;
                    if !matches!(defect, Defect::Publish | Defect::Bytes) {
                        stage.publish()?;
                    }
                    if defect == Defect::Twice {
                        stage.publish()?;
                    }
                    Ok(())
                })
            })
        })?;
        k.role(0..2, || {
            let chunks = columns / 8;
            let threads = format!("({},{chunks}):({chunks},1)", 64 / chunks).parse()?;
            let copy = TiledCopy::new(CopyAtom::named("UniversalCopy<uint128_t>")?, 16, &threads, &"(1,8)".parse()?)?;
            k.range(turns()?, |turn| {
                let stage: Stage<'_> = pipeline.stage(&turn)?;
                if defect != Defect::Wait {
                    stage.wait()?;
                }
                if defect == Defect::Early {
                    stage.release()?;
                }
                k.copy_predicated(&copy, &ring.slice(at(stage.index()))?, &to.slice(at(&turn))?)?;
                if !matches!(defect, Defect::Early | Defect::Release) {
                    stage.release()?;
                }
                Ok(())
            })
        })
    })
}

#[test]
fn what_arrives_is_what_was_there() {
    for (rows, columns, swizzle) in
        [(16, 64, "S<3,3,3>"), (32, 32, "S<2,3,3>"), (64, 16, "S<1,3,3>"), (32, 16, "S<0,3,3>")]
    {
        for stages in [1, 2, 3] {
            let kernel = copied(rows, columns, swizzle, stages, Defect::None).unwrap();
            for (m, n) in [(rows, columns), (2 * rows, 5 * columns), (rows + 3, 4 * columns + 8), (1, 8)] {
                let mut interpreter = Interpreter::new(kernel.program(), &[("M", m), ("K", n)]).unwrap();
                let elements: Vec<u16> = (0..m * n).map(|element| element as u16).collect();
                interpreter.tensor(0, &elements).unwrap();
                let checked =
                    interpreter.check().unwrap_or_else(|findings| panic!("{swizzle} {m} {n}: {}", findings[0]));
                assert_eq!(checked.run.tensor::<u16>(1).unwrap(), elements, "{swizzle} {stages} {m} {n}");
            }
            assert!(ptx::write(kernel.program(), ptx::Target::Sm90a).unwrap().contains("cp.async.bulk.tensor.2d"));
            assert_eq!(ptx::write(kernel.program(), ptx::Target::Sm80).unwrap_err().code(), "E0921");
        }
    }
}

/// Each defect is found, under one of these codes and no other, in three kernels.
#[test]
fn a_step_that_is_missing_is_found() {
    let expected: &[(Defect, &[&str])] = &[
        (Defect::Wait, &["E1012", "E1018", "E1020", "E1023"]),
        (Defect::Early, &["E1018"]),
        (Defect::Release, &["E1022"]),
        (Defect::Acquire, &["E1018", "E1023", "E1024"]),
        (Defect::Twice, &["E1018", "E1022", "E1023", "E1024"]),
        (Defect::Publish, &["E1022", "E1024"]),
        (Defect::Bytes, &["E1018", "E1024", "E1020"]),
        (Defect::Count, &["E1022", "E1023"]),
    ];
    for (defect, codes) in expected {
        for (rows, columns, swizzle, stages) in
            [(16, 64, "S<3,3,3>", 2), (32, 32, "S<2,3,3>", 3), (32, 16, "S<0,3,3>", 1)]
        {
            let kernel = copied(rows, columns, swizzle, stages, *defect).unwrap();
            let found = check(kernel.program(), &[("M", 40), ("K", 7 * columns)]);
            let Err(CheckError::Findings(findings)) = found else {
                panic!("{defect:?} of {stages} stages is not found")
            };
            for finding in findings.iter() {
                assert!(codes.contains(&finding.code()), "{defect:?}: {finding}");
            }
        }
    }
}
