//! Pipelines of bulk copies between roles: what arrives is what was there, in every swizzle and
//! past every edge, and a step that is missing is found.

use tilewright_kernel::interpret::{CheckError, Interpreter, check};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Element, Kernel, KernelError, Stage, ptx};
use tilewright_layout::atoms::{CopyAtom, TiledCopy};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Slot, Tree};

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
        let iterations = || k.size(&format!("ceil(K/{columns})"));
        k.role(2..3, || {
            k.single(|| {
                let cursor = pipeline.cursor()?;
                k.range(iterations()?, |iteration| {
                    let stage = cursor.stage()?;
                    if defect != Defect::Acquire {
                        stage.acquire()?;
                    }
                    if defect == Defect::Bytes {
                        stage.publish()?;
                    }
                    stage.load(&from.slice((.., .., &iteration))?, &ring.slice((.., .., stage.index()))?)?;
                    if !matches!(defect, Defect::Publish | Defect::Bytes) {
                        stage.publish()?;
                    }
                    if defect == Defect::Twice {
                        stage.publish()?;
                    }
                    cursor.advance()
                })
            })
        })?;
        k.role(0..2, || {
            let chunks = columns / 8;
            let threads = format!("({},{chunks}):({chunks},1)", 64 / chunks).parse()?;
            let copy = TiledCopy::new(CopyAtom::named("UniversalCopy<uint128_t>")?, 16, &threads, &"(1,8)".parse()?)?;
            let cursor = pipeline.cursor()?;
            k.range(iterations()?, |iteration| {
                let stage: Stage<'_> = cursor.stage()?;
                if defect != Defect::Wait {
                    stage.wait()?;
                }
                if defect == Defect::Early {
                    stage.release()?;
                }
                k.copy_predicated(&copy, &ring.slice((.., .., stage.index()))?, &to.slice((.., .., &iteration))?)?;
                if !matches!(defect, Defect::Early | Defect::Release) {
                    stage.release()?;
                }
                cursor.advance()
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
            // A tile is one box.
            let text = ptx::write(kernel.program(), ptx::Target::Sm90a).unwrap();
            assert_eq!(text.matches("cp.async.bulk.tensor.2d").count(), 1, "{text}");
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

/// The step that a kernel with bulk stores leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Nothing,
    /// The fence of those who wrote shared memory.
    Fence,
    /// The barrier before the copy is set off.
    Barrier,
    /// The wait before shared memory is written anew.
    Wait,
    /// The wait before the kernel ends.
    Last,
    /// The stores are not a group, so that no wait is for them.
    Commit,
}

/// Doubles a matrix, a tile an iteration: threads write shared memory, one of them stores it.
fn stored(rows: i64, columns: i64, swizzle: &str, missing: Missing) -> Result<Kernel, KernelError> {
    Kernel::build("stored", |k: &Build| {
        let source = k.input::<u16>("source", "(M,K{div=8}):(K,1)")?;
        let target = k.output::<u16>("target", "(M,K):(K,1)")?;
        k.threads(64)?;
        let tile = format!("({rows},{columns})");
        let from = source.local_tile(&tile, k.block("(x,_)")?)?;
        let to = target.local_tile(&tile, k.block("(x,_)")?)?;
        let staged = k.shared::<u16>(&format!("{swizzle} o 0 o ({rows},{columns}):({columns},1)"))?;
        let chunks = columns / 8;
        let threads = format!("({},{chunks}):({chunks},1)", 64 / chunks).parse()?;
        let copy = TiledCopy::new(CopyAtom::named("UniversalCopy<uint128_t>")?, 16, &threads, &"(1,8)".parse()?)?;
        k.range(k.size(&format!("ceil(K/{columns})"))?, |iteration| {
            if missing != Missing::Wait {
                k.single(|| {
                    k.wait_bulk(0);
                    Ok(())
                })?;
            }
            k.barrier();
            k.copy_predicated(&copy, &from.slice((.., .., &iteration))?, &staged)?;
            if missing != Missing::Fence {
                k.fence_async();
            }
            if missing != Missing::Barrier {
                k.barrier();
            }
            k.single(|| {
                k.store_bulk(&staged, &to.slice((.., .., &iteration))?)?;
                if missing != Missing::Commit {
                    k.commit_bulk();
                }
                Ok(())
            })
        })?;
        if missing == Missing::Last {
            return Ok(());
        }
        k.single(|| {
            k.wait_bulk(0);
            Ok(())
        })
    })
}

const STORED: [(i64, i64, &str); 3] = [(16, 64, "S<3,3,3>"), (32, 32, "S<2,3,3>"), (32, 16, "S<0,3,3>")];

#[test]
fn what_is_stored_by_the_copy_engine_is_what_was_written() {
    for (rows, columns, swizzle) in STORED {
        let kernel = stored(rows, columns, swizzle, Missing::Nothing).unwrap();
        for (m, n) in [(rows, columns), (2 * rows, 5 * columns), (rows + 3, 4 * columns + 8), (1, 8)] {
            let mut interpreter = Interpreter::new(kernel.program(), &[("M", m), ("K", n)]).unwrap();
            let elements: Vec<u16> = (0..m * n).map(|element| element as u16).collect();
            interpreter.tensor(0, &elements).unwrap();
            let checked = interpreter.check().unwrap_or_else(|findings| panic!("{swizzle} {m} {n}: {}", findings[0]));
            assert_eq!(checked.run.tensor::<u16>(1).unwrap(), elements, "{swizzle} {m} {n}");
        }
    }
}

#[test]
fn a_missing_step_of_a_bulk_store_is_found() {
    let expected: &[(Missing, &[&str])] = &[
        (Missing::Fence, &["E1019"]),
        (Missing::Barrier, &["E1016", "E1018", "E1019", "E1012"]),
        (Missing::Wait, &["E1018"]),
        (Missing::Last, &["E1020"]),
        (Missing::Commit, &["E1018", "E1020"]),
    ];
    for (missing, codes) in expected {
        for (rows, columns, swizzle) in STORED {
            let kernel = stored(rows, columns, swizzle, *missing).unwrap();
            let found = check(kernel.program(), &[("M", 40), ("K", 3 * columns)]);
            let Err(CheckError::Findings(findings)) = found else { panic!("{missing:?} is not found in {swizzle}") };
            for finding in findings.iter() {
                assert!(codes.contains(&finding.code()), "{missing:?}: {finding}");
            }
        }
    }
}

/// What cannot be a bulk copy, a role or a wgmma is refused at its line.
#[test]
fn what_cannot_be_is_refused() {
    let refused = |columns: i64, tensor: &str, shared: &str| {
        let kernel = Kernel::build("refused", |k: &Build| {
            let source = k.input::<u16>("source", tensor)?;
            k.threads(32)?;
            let tile = source.local_tile((16, columns), k.block("(x,y)")?)?;
            let stage = k.shared::<u16>(shared)?;
            let pipeline = k.pipeline(1, 1)?;
            pipeline.cursor()?.stage()?.load(&tile, &stage)
        });
        let error = kernel.unwrap_err();
        assert_eq!(error.source().statement, "load", "{error}");
        error.to_string()
    };
    // Rows that are not shown to begin at multiples of 16 bytes, a swizzle with other lines, a
    // layout in shared memory that no box has, and one with gaps.
    assert!(refused(64, "(M,K):(K,1)", "S<3,3,3> o 0 o (16,64):(64,1)").contains("multiples of 16 bytes"));
    assert!(refused(32, "(M,K{div=8}):(K,1)", "S<3,3,3> o 0 o (16,32):(32,1)").contains("line of the swizzle"));
    assert!(refused(64, "(M,K{div=8}):(K,1)", "(16,64):(1,16)").contains("none in the tensor"));
    assert!(refused(64, "(M,K{div=8}):(K,1)", "(16,64):(72,1)").contains("not compact in shared memory"));

    // A second stage that begins in the middle of a line.
    let apart = Kernel::build("apart", |k: &Build| {
        let source = k.input::<u16>("source", "(M,K{div=8}):(K,1)")?;
        k.threads(32)?;
        let tile = source.local_tile((16, 64), k.block("(x,y)")?)?;
        let ring = k.shared::<u16>("S<3,3,3> o 0 o (16,64,2):(64,1,1056)")?;
        let stage = k.pipeline(2, 1)?.cursor()?.stage()?;
        stage.load(&tile, &ring.slice((.., .., 1))?)
    });
    assert!(apart.unwrap_err().to_string().contains("at a multiple of 128 bytes"));

    let of_roles = |threads: i64, warps: std::ops::Range<u32>| {
        Kernel::build("roles", |k: &Build| {
            k.threads(threads)?;
            k.role(warps, || Ok(()))
        })
    };
    assert_eq!(of_roles(64, 0..2).map(drop), Ok(()));
    assert_eq!(of_roles(64, 1..3).unwrap_err().code(), "E0911");
    assert_eq!(of_roles(64, 1..1).unwrap_err().code(), "E0911");
    assert_eq!(of_roles(48, 0..1).unwrap_err().code(), "E0910");
    let nested = Kernel::build("nested", |k: &Build| {
        k.threads(64)?;
        k.role(0..1, || k.role(1..2, || Ok(())))
    });
    assert_eq!(nested.unwrap_err().code(), "E0910");
}

/// A tensor of one layer, read from a layer on that is a number of another tensor: what lies past
/// the one layer is zeros, and is left out where it is stored.
#[test]
fn layers_past_the_only_one_are_outside() {
    let moved = |from: i32| {
        let kernel = Kernel::build("moved", |k: &Build| {
            let x = k.input::<f32>("x", "(4,8,1):(8,1,32)")?;
            let at = k.input::<i32>("at", "2:1")?;
            let y = k.tensor_of(Element::F32, "y", "(4,8,1):(8,1,32)", Role::Both)?;
            k.threads(32)?;
            let tile = k.shared::<f32>("(4,8):(8,1)")?;
            let held = k.shared::<f32>("(4,8):(8,1)")?;
            let index = |number: i64| {
                let own = at.slice(Tree::leaf(Slot::At(Expr::from(number))))?;
                k.index_up_to(own.load()?.numbers()?[0], 1)
            };
            let zero = || Expr::from(0);
            let of = Tree::flat([Slot::All, Slot::All, Slot::At(zero())])?;
            let source = x.domain_offset(&[zero(), zero(), index(0)?])?.slice(of.clone())?;
            let target = y.domain_offset(&[zero(), zero(), index(1)?])?.slice(of)?;
            let stage = k.pipeline(1, 1)?.cursor()?.stage()?;
            k.single(|| {
                stage.acquire()?;
                stage.load(&source, &tile)?;
                stage.publish()
            })?;
            stage.wait()?;
            let each = "(32,1):(1,32)";
            held.compose(each)?.thread_part()?.store(&tile.compose(each)?.thread_part()?.load()?)?;
            k.fence_async();
            k.barrier();
            k.single(|| {
                k.store_bulk(&held, &target)?;
                k.commit_bulk();
                k.wait_bulk(0);
                Ok(())
            })?;
            stage.release()
        })
        .unwrap();
        let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
        let numbers: Vec<f32> = (1..=32).map(|number| number as f32).collect();
        interpreter.tensor(0, &numbers).unwrap().tensor(1, &[from & 1, from >> 1]).unwrap();
        interpreter.tensor(2, &[-1.0_f32; 32]).unwrap();
        let run = interpreter.check().unwrap().run;
        (numbers, run.tensor::<f32>("y").unwrap())
    };
    let (numbers, inside) = moved(0);
    assert_eq!(inside, numbers);
    assert_eq!(moved(1).1, [0.0; 32], "a box past the only layer is zeros");
    assert_eq!(moved(2).1, [-1.0; 32], "what is stored past the only layer is left out");
}

/// Whether a load from the ring may be in flight when a thread arrives at an mbarrier, on some path
/// through the text: a load that no `fence.proxy.async` follows before the arrival.
fn arrives_before_reads_end(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let place = |label: &str| lines.iter().position(|line| line.strip_suffix(':') == Some(label)).unwrap();
    let mut seen = std::collections::HashSet::new();
    let mut next = vec![(0, false)];
    while let Some((at, in_flight)) = next.pop() {
        if at >= lines.len() || !seen.insert((at, in_flight)) {
            continue;
        }
        let line = lines[at];
        if let Some((_, label)) = line.trim_end_matches(';').split_once("bra").filter(|_| !line.contains("WAIT")) {
            next.push((place(label.trim_start_matches(".uni").trim()), in_flight));
            if !line.starts_with('@') {
                continue;
            }
        }
        if line.contains("mbarrier.arrive") && in_flight {
            return true;
        }
        let fenced = line.starts_with("fence.proxy.async");
        let reads = line.contains("ld.shared") || line.contains("ldmatrix");
        next.push((at + 1, !fenced && (in_flight || reads)));
    }
    false
}

#[test]
fn reads_of_a_stage_end_before_it_is_released() {
    let text = |kernel: &Kernel| ptx::write(kernel.program(), ptx::Target::Sm90a).unwrap();
    let written = text(&copied(16, 64, "S<3,3,3>", 2, Defect::None).unwrap());
    assert!(!arrives_before_reads_end(&written), "{written}");
    let without: String =
        written.lines().filter(|line| !line.contains("fence.proxy.async")).map(|x| x.to_owned() + "\n").collect();
    assert!(arrives_before_reads_end(&without));
    // Each iteration releases the stage that the one before it has read.
    let carried = Kernel::build("carried", |k| {
        let x = k.input::<f32>("x", "(4,32,K):(32,1,128)")?;
        let y = k.output::<f32>("y", "(4,32):(32,1)")?;
        k.threads(64)?;
        let ring = k.shared::<f32>("(4,32,2):(32,1,128)")?;
        let pipeline = k.pipeline(2, 1)?;
        k.role(1..2, || {
            k.single(|| {
                let cursor = pipeline.cursor()?;
                k.range(k.size("K")?, |iteration| {
                    let stage = cursor.stage()?;
                    stage.acquire()?;
                    stage.load(&x.slice((.., .., &iteration))?, &ring.slice((.., .., stage.index()))?)?;
                    stage.publish()?;
                    cursor.advance()
                })
            })
        })?;
        k.role(0..1, || {
            let cursor = pipeline.cursor()?;
            let each = "(32,4):(4,1)";
            let read = |stage: &Stage<'_>| {
                stage.wait()?;
                ring.slice((.., .., stage.index()))?.compose(each)?.thread_part()?.load()
            };
            let sum = read(&cursor.stage()?)?;
            k.range(k.size("K-1")?, |_| {
                cursor.stage()?.release()?;
                cursor.advance()?;
                let other = read(&cursor.stage()?)?;
                sum.assign(&sum.zip(&other, |a, b| Ok(a + b))?)
            })?;
            y.compose(each)?.thread_part()?.store(&sum)
        })
    })
    .unwrap();
    assert!(!arrives_before_reads_end(&text(&carried)), "{}", text(&carried));
}
