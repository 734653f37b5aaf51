//! Clusters in the language: tiles that one block loads for several, and shared memory of another
//! block as a tensor. What arrives is what was there, and a step that is missing is found.

use tilewright_kernel::interpret::{CheckError, Interpreter, check};
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Kernel, KernelError, View, ptx};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Slot, Tree};

/// What one of the kernels below leaves out or does wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    /// Users release a stage to their own block alone.
    OwnRelease,
    /// No barrier of the cluster at the end.
    Exit,
    /// The second block never waits for what it is sent.
    Deaf,
    /// Those who fill a stage do not wait until it is free.
    Acquire,
    /// Users release a stage before they have read it.
    Early,
    /// Users change the stage before they release it.
    Written,
    /// Stages count the releases of one block.
    Count,
}

fn at(index: &Expr) -> Coord<Expr> {
    Tree::flat([Slot::All, Slot::All, Slot::At(index.clone())]).unwrap()
}

fn tile(row: impl Into<Expr>) -> Coord<Expr> {
    Tree::flat([Slot::At(row.into()), Slot::At(Expr::from(0))]).unwrap()
}

/// Each block of a cluster stores the whole of a matrix (64, 32 K); each loads a part of the rows
/// of each step for all.
fn spread(blocks: u32, stages: i64, defect: Defect) -> Result<Kernel, KernelError> {
    let rows = 64 / i64::from(blocks);
    Kernel::build("spread", |k: &Build| {
        let source = k.input::<u16>("source", "(64,32,K):(32,1,2048)")?;
        let target = k.output::<u16>("target", &format!("(64,32,K,{blocks}):(32,1,2048,2048*K)"))?;
        k.threads(96)?;
        k.grid(Axis::X, &blocks.to_string())?;
        k.cluster(blocks)?;
        let ring = k.shared::<u16>(&format!("S<2,3,3> o 0 o (64,32,{stages}):(32,1,2048)"))?;
        let users = if defect == Defect::Count { 2 } else { 2 * blocks };
        let pipeline = k.pipeline(stages, users)?;
        let all = format!("{blocks}:1");
        let part = format!("({rows},32)");
        k.role(2..3, || {
            k.single(|| {
                let cursor = pipeline.cursor()?;
                k.range(k.size("K")?, |turn| {
                    let stage = cursor.stage()?;
                    if defect != Defect::Acquire {
                        stage.acquire()?;
                    }
                    let from = source.slice(at(&turn))?.local_tile(&part, tile(k.rank()))?;
                    let to = ring.slice(at(stage.index()))?.local_tile(&part, tile(k.rank()))?;
                    stage.load_multicast(&from, &to, &all, 0)?;
                    stage.publish()?;
                    cursor.advance()
                })
            })
        })?;
        k.role(0..2, || {
            let cursor = pipeline.cursor()?;
            let own =
                target.slice(Tree::flat([Slot::All, Slot::All, Slot::All, Slot::At(k.block_number(Axis::X))])?)?;
            k.range(k.size("K")?, |turn| {
                let stage = cursor.stage()?;
                let hears = || stage.wait();
                match defect {
                    Defect::Deaf => match k.unless_less(&k.rank(), &Expr::from(1))? {
                        Some(first) => k.when(first, hears)?,
                        None => hears()?,
                    },
                    _ => hears()?,
                }
                let read: View<'_> = ring.slice(at(stage.index()))?;
                let release = || if defect == Defect::OwnRelease { stage.release() } else { stage.release_to(&all, 0) };
                if defect == Defect::Early {
                    release()?;
                }
                let values = read.thread_part()?.load()?;
                if defect == Defect::Written {
                    read.thread_part()?.store(&values)?;
                }
                own.slice(at(&turn))?.thread_part()?.store(&values)?;
                if defect != Defect::Early {
                    release()?;
                }
                cursor.advance()
            })
        })?;
        if defect != Defect::Exit {
            k.cluster_barrier();
        }
        Ok(())
    })
}

#[test]
fn every_block_gets_what_each_has_loaded() {
    for blocks in [1, 2, 4, 8] {
        for stages in [1, 2, 3] {
            let kernel = spread(blocks, stages, Defect::None).unwrap();
            for turns in [1, 2, 5] {
                let mut interpreter = Interpreter::new(kernel.program(), &[("K", turns)]).unwrap();
                let elements: Vec<u16> = (0..2048 * turns).map(|element| element as u16).collect();
                interpreter.tensor(0, &elements).unwrap();
                let checked =
                    interpreter.check().unwrap_or_else(|findings| panic!("{blocks} {stages}: {}", findings[0]));
                for copy in checked.run.tensor::<u16>(1).unwrap().chunks(elements.len()) {
                    assert_eq!(copy, elements);
                }
            }
            let text = ptx::write(kernel.program(), ptx::Target::Sm90a).unwrap();
            assert_eq!(text.contains(&format!(".reqnctapercluster {blocks}, 1, 1")), blocks > 1);
            assert_eq!(text.matches(".multicast::cluster").count(), 1);
            let error = ptx::write(kernel.program(), ptx::Target::Sm80).unwrap_err();
            assert_eq!(error.code(), "E0921");
        }
    }
}

/// Each defect is found, under one of these codes and no other.
#[test]
fn a_step_that_is_missing_between_blocks_is_found() {
    let expected: &[(Defect, &[&str])] = &[
        (Defect::OwnRelease, &["E1022", "E1023"]),
        (Defect::Exit, &["E1035"]),
        (Defect::Deaf, &["E1012", "E1018", "E1020", "E1023"]),
        (Defect::Acquire, &["E1018", "E1023", "E1024"]),
        (Defect::Early, &["E1018"]),
        (Defect::Written, &["E1018", "E1019"]),
        (Defect::Count, &["E1018", "E1023"]),
    ];
    for (defect, codes) in expected {
        for (blocks, stages) in [(2, 1), (2, 2), (4, 3)] {
            let kernel = spread(blocks, stages, *defect).unwrap();
            let Err(CheckError::Findings(findings)) = check(kernel.program(), &[("K", 7)]) else {
                panic!("{defect:?} of {stages} stages is not found")
            };
            for finding in findings.iter() {
                assert!(codes.contains(&finding.code()), "{defect:?}: {finding}");
            }
        }
    }
}

/// Each block sends its tile around the cluster, step by step.
fn around(blocks: u32) -> Result<Kernel, KernelError> {
    Kernel::build("around", |k: &Build| {
        let source = k.input::<f32>("source", &format!("(64,1,{blocks}):(1,64,64)"))?;
        let target = k.output::<f32>("target", &format!("(64,1,{blocks},{blocks}):(1,64,64,{})", 64 * blocks))?;
        k.threads(64)?;
        k.grid(Axis::X, &blocks.to_string())?;
        k.cluster(blocks)?;
        let own = k.shared::<f32>("(64,1):(1,64)")?;
        let gets = k.shared::<f32>(&format!("(64,1,{}):(1,64,64)", blocks - 1))?;
        let pipeline = k.pipeline(i64::from(blocks) - 1, 2)?;
        let block = k.block_number(Axis::X);
        let values = source.slice(at(&block))?.thread_part()?.load()?;
        own.thread_part()?.store(&values)?;
        k.fence_async();
        k.cluster_barrier();
        let cursor = pipeline.cursor()?;
        let to = |step: u32| {
            let step = Slot::At(Expr::from(i64::from(step)));
            target.slice(Tree::flat([Slot::All, Slot::All, step, Slot::At(block.clone())])?)?.thread_part()
        };
        to(0)?.store(&values)?;
        for step in 1..blocks {
            let stage = cursor.stage()?;
            let place = gets.slice(at(&Expr::from(i64::from(step) - 1)))?;
            k.single(|| {
                stage.send(&own, &place, k.rank_after(step)?)?;
                stage.publish()
            })?;
            stage.wait()?;
            to(step)?.store(&place.thread_part()?.load()?)?;
            stage.release()?;
            cursor.advance()?;
        }
        k.cluster_barrier();
        Ok(())
    })
}

#[test]
fn tiles_are_sent_around_a_cluster() {
    for blocks in [2_u32, 4, 8] {
        let kernel = around(blocks).unwrap();
        let checked = check(kernel.program(), &[]).unwrap_or_else(|error| panic!("{error}"));
        let (source, target) = (checked.run.tensor::<f32>(0).unwrap(), checked.run.tensor::<f32>(1).unwrap());
        for block in 0..blocks as usize {
            for step in 0..blocks as usize {
                let from = (block + blocks as usize - step) % blocks as usize;
                let got = &target[64 * (step + blocks as usize * block)..][..64];
                assert_eq!(got, &source[64 * from..][..64], "{blocks} {block} {step}");
            }
        }
        let text = ptx::write(kernel.program(), ptx::Target::Sm90a).unwrap();
        assert!(text.contains("cp.async.bulk.shared::cluster.shared::cta"), "{text}");
    }
}

#[test]
fn what_is_no_rank_is_refused() {
    let code = |write: &dyn Fn(&Build) -> Result<(), KernelError>| {
        Kernel::build("refused", |k| {
            k.threads(32)?;
            write(k)
        })
        .map(|_| "")
        .unwrap_or_else(|error| error.code())
    };
    assert_eq!(code(&|k| k.cluster(2)), "");
    assert_eq!(code(&|k| k.cluster(9)), "E0911");
    assert_eq!(code(&|k| k.cluster(2).and(k.cluster(4))), "E0908");
    // The number was relied on before it was said.
    assert_eq!(code(&|k| k.pipeline(1, 1).and(k.cluster(2))), "E0908");
    assert_eq!(code(&|k| k.cluster(2).and(k.rank_after(2).map(|_| ()))), "E0911");
    let shared = |k: &Build, rank: i64| k.shared::<f32>("32:1")?.of_block(rank).map(|_| ());
    assert_eq!(code(&|k| k.cluster(2).and(shared(k, 1))), "");
    assert_eq!(code(&|k| k.cluster(2).and(shared(k, 2))), "E0910");
    assert_eq!(code(&|k| k.input::<f32>("x", "32:1")?.of_block(0).map(|_| ())), "E0910");
    let ranks = |k: &Build, text: &str| {
        k.cluster(4)?;
        let pipeline = k.pipeline(1, 1)?;
        pipeline.cursor()?.stage()?.release_to(text, 0)
    };
    for (text, wanted) in
        [("4:1", ""), ("2:2", ""), ("(2,2):(1,2)", ""), ("5:1", "E0910"), ("2:0", "E0910"), ("2:4", "E0910")]
    {
        assert_eq!(code(&|k| ranks(k, text)), wanted, "{text}");
    }
    // Four does not divide six.
    let kernel = Kernel::build("uneven", |k| {
        k.input::<f32>("x", "N:1")?;
        k.threads(32)?;
        k.grid(Axis::X, "N")?;
        k.cluster(4)
    })
    .unwrap();
    assert_eq!(kernel.program().launch(&[("N", 8)]).map(|launch| launch.grid), Ok([8, 1, 1]));
    assert_eq!(kernel.program().launch(&[("N", 6)]).unwrap_err().code(), "E1002");
    assert!(Interpreter::new(kernel.program(), &[("N", 6)]).is_err());
}
