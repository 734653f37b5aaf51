//! Clusters in the language: tiles that one block loads for several, and shared memory of another
//! block as a tensor. What arrives is what was there, and a step that is missing is found.

use tilewright_kernel::interpret::{CheckError, Interpreter, check};
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, IntoRanks, Kernel, KernelError, Ranks, Reduction, View, ptx};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Coord, Layout, Slot, Stride, Swizzle, Tree};

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

/// Each block of a cluster stores the whole of a matrix (64, 32 K); each loads a part of the rows
/// of each step for all.
fn spread(blocks: u32, stages: i64, defect: Defect) -> Result<Kernel, KernelError> {
    let rows = 64 / i64::from(blocks);
    Kernel::build("spread", |k: &Build| {
        let source = k.input::<u16>("source", "(64,32,K):(32,1,2048)")?;
        let target = k.output::<u16>("target", &format!("(64,32,K,{blocks}):(32,1,2048,2048*K)"))?;
        k.threads(96)?;
        k.grid(Axis::X, blocks)?;
        k.cluster(blocks)?;
        let ring = k.shared::<u16>(Composed::new(
            Swizzle::new(2, 3, 3)?,
            0,
            Layout::strided((64, 32, stages), (32, 1, 2048))?,
        ))?;
        let users = if defect == Defect::Count { 2 } else { 2 * blocks };
        let pipeline = k.pipeline(stages, users)?;
        let part = (rows, 32);
        k.role(2..3, || {
            k.single(|| {
                let cursor = pipeline.cursor()?;
                k.range(k.size("K")?, |iteration| {
                    let stage = cursor.stage()?;
                    if defect != Defect::Acquire {
                        stage.acquire()?;
                    }
                    let from = source.slice((.., .., &iteration))?.local_tile(part, (k.rank(), 0))?;
                    let to = ring.slice((.., .., stage.index()))?.local_tile(part, (k.rank(), 0))?;
                    stage.load_multicast(&from, &to, 0..blocks)?;
                    stage.publish()?;
                    cursor.advance()
                })
            })
        })?;
        k.role(0..2, || {
            let cursor = pipeline.cursor()?;
            let own =
                target.slice(Tree::flat([Slot::All, Slot::All, Slot::All, Slot::At(k.block_number(Axis::X))])?)?;
            k.range(k.size("K")?, |iteration| {
                let stage = cursor.stage()?;
                let hears = || stage.wait();
                match defect {
                    Defect::Deaf => match k.unless_less(&k.rank(), &Expr::from(1))? {
                        Some(first) => k.when(first, hears)?,
                        None => hears()?,
                    },
                    _ => hears()?,
                }
                let read: View<'_> = ring.slice((.., .., stage.index()))?;
                let release =
                    || if defect == Defect::OwnRelease { stage.release() } else { stage.release_to(0..blocks) };
                if defect == Defect::Early {
                    release()?;
                }
                let values = read.thread_part()?.load()?;
                if defect == Defect::Written {
                    read.thread_part()?.store(&values)?;
                }
                own.slice((.., .., &iteration))?.thread_part()?.store(&values)?;
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
            for iterations in [1, 2, 5] {
                let mut interpreter = Interpreter::new(kernel.program(), &[("K", iterations)]).unwrap();
                let elements: Vec<u16> = (0..2048 * iterations).map(|element| element as u16).collect();
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
        let source = k.input::<f32>("source", Layout::strided((64, 1, blocks), (1, 64, 64)))?;
        let target = k.output::<f32>("target", Layout::strided((64, 1, blocks, blocks), (1, 64, 64, 64 * blocks)))?;
        k.threads(64)?;
        k.grid(Axis::X, blocks)?;
        k.cluster(blocks)?;
        let own = k.shared::<f32>("(64,1):(1,64)")?;
        let gets = k.shared::<f32>(Layout::strided((64, 1, blocks - 1), (1, 64, 64)))?;
        let pipeline = k.pipeline(i64::from(blocks) - 1, 2)?;
        let block = k.block_number(Axis::X);
        let values = source.slice((.., .., &block))?.thread_part()?.load()?;
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
            let place = gets.slice((.., .., i64::from(step) - 1))?;
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
    assert_eq!(code(&|k| k.cluster(17)), "E0911");
    assert_eq!(code(&|k| k.cluster(2).and(k.cluster(4))), "E0908");
    // The number was relied on before it was said.
    assert_eq!(code(&|k| k.pipeline(1, 1).and(k.cluster(2))), "E0908");
    assert_eq!(code(&|k| k.cluster(2).and(k.rank_after(2).map(|_| ()))), "E0911");
    let shared = |k: &Build, rank: i64| k.shared::<f32>("32:1")?.of_block(rank).map(|_| ());
    assert_eq!(code(&|k| k.cluster(2).and(shared(k, 1))), "");
    assert_eq!(code(&|k| k.cluster(2).and(shared(k, 2))), "E0910");
    assert_eq!(code(&|k| k.input::<f32>("x", "32:1")?.of_block(0).map(|_| ())), "E0910");
    fn release_to(k: &Build, ranks: impl IntoRanks) -> Result<(), KernelError> {
        k.cluster(4)?;
        k.pipeline(1, 1)?.cursor()?.stage()?.release_to(ranks)
    }
    for (text, wanted) in
        [("4:1", ""), ("2:2", ""), ("(2,2):(1,2)", ""), ("5:1", "E0910"), ("2:0", "E0910"), ("2:4", "E0910")]
    {
        let layout: Layout = text.parse().unwrap();
        assert_eq!(code(&|k| release_to(k, &layout)), wanted, "{text}");
    }
    assert_eq!(code(&|k| release_to(k, 3)), "");
    assert_eq!(code(&|k| release_to(k, 4)), "E0910");
    assert_eq!(code(&|k| release_to(k, -1)), "E0910");
    assert_eq!(code(&|k| release_to(k, 1..4)), "");
    assert_eq!(code(&|k| release_to(k, 1..5)), "E0910");
    assert_ne!(code(&|k| release_to(k, 2..2)), "");
    let two = || Layout::strided(2, 2).unwrap();
    assert_eq!(code(&|k| release_to(k, Ranks::new(two(), 1))), "");
    assert_eq!(code(&|k| release_to(k, Ranks::new(two(), 2))), "E0910");
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

/// Blocks of a cluster along several axes: each leaves its own number with the block of each rank,
/// which writes what it was given.
fn everybody_to_everybody(cluster: [u32; 3]) -> Kernel {
    let size = cluster.iter().product::<u32>();
    let grid = [2, 3, 1].map(i64::from);
    let blocks: [i64; 3] = std::array::from_fn(|axis| grid[axis] * i64::from(cluster[axis]));
    let all: i64 = blocks.iter().product();
    Kernel::build("everybody", |k| {
        let y = k.output::<i32>("y", Layout::strided((size, all), (1, size)))?;
        k.threads(32)?;
        for (axis, count) in Axis::ALL.into_iter().zip(blocks) {
            k.grid(axis, count)?;
        }
        k.cluster(cluster)?;
        let given = k.shared::<i32>(Layout::strided(size, 1))?;
        k.cluster_barrier();
        // The number of this block in the grid, from its coordinates.
        let [x, y_, z] = Axis::ALL.map(|axis| k.block_number(axis));
        let times = |a: &Expr, by: i64| Stride::times(a, &Expr::from(by)).unwrap();
        let plus = |a: &Expr, b: &Expr| Stride::plus(a, b).unwrap();
        let number = plus(&x, &times(&plus(&y_, &times(&z, blocks[1])), blocks[0]));
        let own = k.register(Element::I32, 1)?;
        own.fill(k.index(&number)?)?;
        let first = k.index(&k.thread()?)?;
        k.when(first.eq(first.like(0.0)), || {
            for by in 0..size {
                let there = k.rank_after(by)?;
                given.local_tile(1, Tree::leaf(Slot::At(k.rank())))?.of_block(there)?.store(&own)?;
            }
            Ok(())
        })?;
        k.cluster_barrier();
        let column = Tree::flat([Slot::All, Slot::At(number)])?;
        k.when(first.eq(first.like(0.0)), || y.slice(column)?.store(&given.load()?))
    })
    .unwrap()
}

#[test]
fn ranks_count_a_cluster_along_its_axes() {
    for cluster in [[1, 1, 1], [2, 1, 1], [1, 2, 1], [1, 4, 1], [2, 2, 1], [2, 1, 2], [1, 2, 4]] {
        let kernel = everybody_to_everybody(cluster);
        let text = ptx::write(kernel.program(), ptx::Target::Sm90a).unwrap();
        let [x, y, z] = cluster;
        assert_eq!(text.contains(&format!(".reqnctapercluster {x}, {y}, {z}")), cluster != [1, 1, 1]);
        let run = check(kernel.program(), &[]).unwrap_or_else(|error| panic!("{cluster:?}: {error}")).run;
        let found = run.tensor::<i32>("y").unwrap();
        let [x, y, z] = cluster.map(|extent| extent as i32);
        let blocks = [2 * x, 3 * y, z];
        let size = (x * y * z) as usize;
        for (number, given) in found.chunks(size).enumerate() {
            let number = number as i32;
            let at = [number % blocks[0], number / blocks[0] % blocks[1], number / blocks[0] / blocks[1]];
            for (rank, found) in given.iter().enumerate() {
                let rank = rank as i32;
                let within = [rank % x, rank / x % y, rank / x / y];
                let first = [at[0] / x * x, at[1] / y * y, at[2] / z * z];
                let [a, b, c] = [first[0] + within[0], first[1] + within[1], first[2] + within[2]];
                assert_eq!(*found, a + blocks[0] * (b + blocks[1] * c), "{cluster:?}, block {at:?}, rank {rank}");
            }
        }
    }
    let ragged = Kernel::build("ragged", |k| {
        k.threads(32)?;
        k.grid(Axis::Y, 3)?;
        k.cluster([1, 2, 1])
    })
    .unwrap();
    let error = check(ragged.program(), &[]).unwrap_err().to_string();
    assert!(error.contains("3 blocks along y, in clusters of 2"), "{error}");
    assert!(ragged.program().launch(&[]).is_err());
    let code = |shape: [u32; 3]| Kernel::build("k", |k| k.threads(32).and(k.cluster(shape))).unwrap_err().code();
    assert_eq!([code([2, 0, 1]), code([4, 2, 4]), code([u32::MAX; 3])], ["E0911"; 3]);
    let twice = Kernel::build("k", |k| k.cluster(2).and(k.cluster([1, 2, 1]))).unwrap_err();
    assert!(twice.to_string().contains("2 here and 1 x 2 x 1 there"), "{twice}");
}

/// Threads of all blocks of a cluster add to one array of the first one, and the greatest goes to
/// another one; without the barrier behind it, or with it.
fn counted(blocks: u32, waits: bool) -> Kernel {
    Kernel::build("counted", |k| {
        let x = k.input::<i32>("x", Layout::strided((64, blocks), (1, 64)))?;
        let y = k.output::<i32>("y", "(8,2):(1,8)")?;
        k.threads(64)?;
        k.grid(Axis::X, blocks)?;
        k.cluster(blocks)?;
        let [sums, most] = [k.shared::<i32>("8:1")?, k.shared::<i32>("8:1")?];
        let own = k.index(&k.thread()?)?;
        let zero = k.register(Element::I32, 8)?;
        zero.fill(k.number(-1000_i32))?;
        k.when(own.eq(own.like(0.0)), || sums.store(&zero).and(most.store(&zero)))?;
        k.cluster_barrier();
        let column = x.slice(Tree::flat([Slot::All, Slot::At(k.block_number(Axis::X))])?)?;
        let value = column.thread_part()?.load()?;
        let bin = k.coordinate(&k.thread()?, &[8, 8])?.swap_remove(0);
        let at: tilewright_layout::Coord<Expr> = Tree::leaf(Slot::At(bin));
        for (array, how) in [(&sums, Reduction::Sum), (&most, Reduction::Maximum)] {
            array.local_tile(1, at.clone())?.of_block(Expr::from(0))?.accumulate(&value, how)?;
        }
        if waits {
            k.cluster_barrier();
        }
        let first = k.index(&k.rank())?.eq(k.number(0)).and(own.eq(own.like(0.0)));
        k.when(first, || {
            for (number, array) in [&sums, &most].into_iter().enumerate() {
                let column = Tree::flat([Slot::All, Slot::At(Expr::from(number as i64))])?;
                y.slice(column)?.store(&array.load()?)?;
            }
            Ok(())
        })
    })
    .unwrap()
}

#[test]
fn threads_add_to_shared_memory_of_another_block() {
    for blocks in [1, 2, 4] {
        let kernel = counted(blocks, true);
        let text = ptx::write(kernel.program(), ptx::Target::Sm90a).unwrap();
        assert_eq!(text.matches("red.relaxed.cluster.shared::cluster.add.s32").count(), 1, "{text}");
        assert_eq!(text.matches("red.relaxed.cluster.shared::cluster.max.s32").count(), 1);
        let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
        let x: Vec<i32> = (0..64 * blocks as i32).map(|at| at * 7919 % 1013).collect();
        interpreter.tensor("x", &x).unwrap();
        let checked = interpreter.check().unwrap_or_else(|error| panic!("{error}"));
        let found = checked.run.tensor::<i32>("y").unwrap();
        for bin in 0..8 {
            let own = || x.iter().skip(bin as usize).step_by(8);
            assert_eq!(found[bin as usize], own().sum::<i32>() - 1000, "{blocks}, {bin}");
            assert_eq!(found[8 + bin as usize], own().max().copied().unwrap_or(-1000), "{blocks}, {bin}");
        }
        if blocks > 1 {
            let error = check(counted(blocks, false).program(), &[]).unwrap_err();
            assert!(error.to_string().contains("E1016"), "{error}");
        }
    }
}

#[test]
fn what_the_hardware_does_not_do_in_one_step_is_refused() {
    let code = |element: Element, reduction: Reduction| {
        let kernel = Kernel::build("k", |k| {
            k.threads(32)?;
            k.cluster(2)?;
            let array = k.shared_of(element, "(32,1):(1,1)")?;
            let value = k.register(element, 1)?;
            value.fill(k.number_of(element, 1.0))?;
            array.thread_part()?.of_block(Expr::from(1))?.accumulate(&value, reduction)
        });
        kernel.err().map(|error| error.code())
    };
    let ways = [Reduction::Sum, Reduction::Minimum, Reduction::Maximum];
    for element in [Element::I32, Element::U32] {
        assert_eq!(ways.map(|way| code(element, way)), [None; 3], "{element}");
    }
    for element in [Element::I64, Element::U64, Element::F32] {
        assert_eq!(ways.map(|way| code(element, way)), [None, Some("E0914"), Some("E0914")], "{element}");
    }
    for element in [Element::F64, Element::F16, Element::Bf16] {
        assert_eq!(ways.map(|way| code(element, way)), [Some("E0914"); 3], "{element}");
    }
}

/// Two blocks that give each other numbers through shared memory, iteration by iteration, behind
/// arrivals that pass on what was written, or that do not.
fn given(iterations: i64, passes: bool) -> Kernel {
    Kernel::build("given", |k| {
        let layout = format!("(64,1,({iterations},2)):(1,1,(64,{}))", 64 * iterations);
        let (x, y) = (k.input::<f32>("x", &layout)?, k.output::<f32>("y", &layout)?);
        k.threads(64)?;
        k.grid(Axis::X, 2)?;
        k.cluster(2)?;
        let taken = k.shared::<f32>("(64,1,2):(1,1,64)")?;
        // In each iteration both warps arrive once. With two stages, no phase of a barrier ends
        // before every warp has seen the end of the phase before it; a warp that is a round ahead
        // finds its stage free once it was given.
        let ring = k.pipeline(2, 2)?;
        let (gives, ahead) = (ring.cursor()?, ring.cursor()?);
        ahead.advance()?;
        ahead.advance()?;
        let other = k.rank_after(1)?;
        k.range(iterations, |iteration| {
            let place = Tree::flat([Slot::At(iteration.clone()), Slot::At(k.block_number(Axis::X))])?;
            let all = Tree::leaf(Slot::All);
            let own: Coord<Expr> = Tree::tuple([&all, &all, &place])?;
            let slot = (.., .., &k.coordinate(&iteration, &[2, iterations])?[0]);
            let given = x.slice(own.clone())?.thread_part()?.load()?;
            taken.slice(slot)?.of_block(other.clone())?.thread_part()?.store(&given)?;
            let stage = gives.stage()?;
            if passes {
                stage.give_to(other.clone())?
            } else {
                stage.release_to(other.clone())?
            }
            ahead.stage()?.acquire()?;
            gives.advance()?;
            ahead.advance()?;
            y.slice(own)?.thread_part()?.store(&taken.slice(slot)?.thread_part()?.load()?)
        })
    })
    .unwrap()
}

#[test]
fn arrivals_pass_on_what_was_given() {
    for iterations in [1, 2, 5] {
        let kernel = given(iterations, true);
        let text = ptx::write(kernel.program(), ptx::Target::Sm90a).unwrap();
        assert!(text.contains("mbarrier.arrive.release.cluster.shared::cluster.b64"), "{text}");
        assert!(text.contains("mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"), "{text}");
        let run = check(kernel.program(), &[]).unwrap_or_else(|error| panic!("{iterations}: {error}")).run;
        let (x, y) = (run.tensor::<f32>("x").unwrap(), run.tensor::<f32>("y").unwrap());
        let (first, second) = x.split_at(x.len() / 2);
        assert_eq!(y, [second, first].concat());
        let error = check(given(iterations, false).program(), &[]).unwrap_err();
        assert!(error.to_string().contains("E1016"), "{error}");
        let text = ptx::write(given(iterations, false).program(), ptx::Target::Sm90a).unwrap();
        assert!(!text.contains("arrive.release") && !text.contains(".acquire.cluster"));
    }
}
