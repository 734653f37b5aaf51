//! One kernel with everything that Hopper has, and the same with one classic defect each.
//!
//! Law: the kernel is right, and nothing is reported. Each change of one kind of instruction breaks
//! it in one way, which is found under a code that names it.

use tilewright_kernel::interpret::{CheckError, Finding, Interpreter, check};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::{Axis, Fence, Operation};
use tilewright_kernel::program::{Instruction, Step};
use tilewright_kernel::{Build, Element, Kernel, KernelError, Program, ptx};
use tilewright_layout::atoms::{MmaAtom, Operand, SwizzleMode, TiledMma};
use tilewright_layout::{Slot, Tree};

/// `C = A B^T` for tiles of 64 x 64: two blocks of a cluster, four warps that multiply and four of
/// which one thread loads, the rows of B a half each for both blocks, C by bulk stores.
fn product() -> Result<Kernel, Box<dyn std::error::Error>> {
    let atom = MmaAtom::named("SM90_64x64x16_F32BF16BF16_SS")?;
    let mma = TiledMma::new(atom, &"(1,1,1)".parse()?, &"[64:1;64:1;16:1]".parse()?)?;
    let stages = 2;
    Ok(Kernel::build("product", |k: &Build| -> Result<(), KernelError> {
        let a = k.tensor_of(Element::Bf16, "a", "(M{div=128},K{div=8}):(K,1)", Role::Input)?;
        let b = k.tensor_of(Element::Bf16, "b", "(64,K):(K,1)", Role::Input)?;
        let c = k.output::<f32>("c", "(M,64):(64,1)")?;
        k.threads(256)?;
        k.resident(2)?;
        k.grid(Axis::X, "M/64")?;
        k.cluster(2)?;
        let block = k.block_number(Axis::X);
        let whole = Tree::flat([Slot::At(block.clone()), Slot::All])?;
        let tiles_a = a.local_tile((64, 64), whole)?;
        let tiles_b = b.local_tile((32, 64), Tree::flat([Slot::At(k.rank()), Slot::All])?)?;
        let tile_c = c.local_tile((64, 64), (block, 0))?;
        let ring = format!("S<3,3,3> o 0 o (64,64,{stages}):(64,1,4096)");
        let (left, right) = (k.shared_of(Element::Bf16, &ring)?, k.shared_of(Element::Bf16, &ring)?);
        let result = k.shared::<f32>("(64,64):(64,1)")?;
        // Four warps of each block read what both blocks load.
        let pipeline = k.pipeline(stages, 8)?;
        k.wait_launches();
        let iterations = k.size("ceil(K/64)")?;
        k.role(4..8, || {
            k.registers(40)?;
            k.single(|| {
                let cursor = pipeline.cursor()?;
                k.range(iterations.clone(), |iteration| {
                    let stage = cursor.stage()?;
                    stage.acquire()?;
                    stage.load(&tiles_a.slice((.., .., &iteration))?, &left.slice((.., .., stage.index()))?)?;
                    let half = right.slice((.., .., stage.index()))?.local_tile((32, 64), (k.rank(), 0))?;
                    stage.load_multicast(&tiles_b.slice((.., .., &iteration))?, &half, 0..2)?;
                    stage.publish()?;
                    cursor.advance()
                })
            })
        })?;
        k.role(0..4, || {
            k.registers(216)?;
            let part = result.partition_mma(&mma, Operand::C)?;
            let sums = part.fragment_of(Element::F32)?;
            sums.clear();
            let cursor = pipeline.cursor()?;
            k.range(iterations.clone(), |_| {
                let stage = cursor.stage()?;
                stage.wait()?;
                k.mma(
                    &mma,
                    &sums,
                    &left.slice((.., .., stage.index()))?,
                    &right.slice((.., .., stage.index()))?,
                    &sums,
                )?;
                k.wait_mma(0);
                stage.release_to(0..2)?;
                cursor.advance()
            })?;
            k.launch_next();
            part.store(&sums)?;
            k.fence_async();
            k.barrier();
            k.single(|| {
                k.store_bulk(&result, &tile_c)?;
                k.commit_bulk();
                k.wait_bulk(0);
                Ok(())
            })
        })?;
        k.cluster_barrier();
        Ok(())
    })?)
}

const SIZES: [(&str, i64); 2] = [("M", 256), ("K", 328)];

#[test]
fn the_kernel_without_a_defect_is_right() {
    let kernel = product().unwrap();
    let mut interpreter = Interpreter::new(kernel.program(), &SIZES).unwrap();
    let [(_, m), (_, k)] = SIZES;
    let number = |at: i64| f64::from((at * 37 % 17 - 8) as i32);
    for (tensor, count) in [(0, m * k), (1, 64 * k)] {
        let bytes: Vec<u8> = (0..count)
            .flat_map(|at| ((number(at + tensor as i64) as f32).to_bits() >> 16).to_le_bytes().into_iter().take(2))
            .collect();
        interpreter.bytes(tensor, &bytes).unwrap();
    }
    let checked = interpreter.check().unwrap_or_else(|findings| panic!("{}", findings[0]));
    for (place, sum) in checked.run.tensor::<f32>(2).unwrap().iter().enumerate() {
        let (row, column) = (place as i64 / 64, place as i64 % 64);
        let wanted: f64 = (0..k).map(|step| number(row * k + step) * number(column * k + step + 1)).sum();
        assert_eq!(f64::from(*sum), wanted, "{row} {column}");
    }
    let text = ptx::write(kernel.program(), ptx::Target::Sm90a).unwrap();
    for instruction in [".multicast::cluster", "setmaxnreg.inc", "wgmma.mma_async", "griddepcontrol.wait"] {
        assert!(text.contains(instruction), "{instruction}");
    }
}

/// The change of an instruction.
enum Now {
    Stays,
    Goes,
    /// It moves before the step that stands this many before it.
    Before(usize),
}

/// Changes all instructions of a program for which a change says something else than that they
/// stay.
fn change(steps: &mut Vec<Step>, how: &mut dyn FnMut(&mut Instruction) -> Now) {
    let mut number = 0;
    while number < steps.len() {
        let mut now = Now::Stays;
        match &mut steps[number] {
            Step::Instruction(instruction) => now = how(instruction),
            Step::Loop(looped) => change(&mut looped.body, how),
            Step::Branch(branch) => {
                change(&mut branch.then, how);
                change(&mut branch.otherwise, how);
            }
        }
        match now {
            Now::Stays => number += 1,
            Now::Goes => drop(steps.remove(number)),
            Now::Before(by) => {
                let step = steps.remove(number);
                steps.insert(number.saturating_sub(by), step);
                number += 1;
            }
        }
    }
}

fn defective(how: &mut dyn FnMut(&mut Instruction) -> Now) -> Program {
    let mut program = product().unwrap().program().clone();
    change(&mut program.body, how);
    program
}

/// The findings, one of each kind.
fn found(program: &Program) -> Vec<Finding> {
    match check(program, &SIZES) {
        Err(CheckError::Findings(findings)) => findings.to_vec(),
        Err(other) => panic!("{other}"),
        Ok(_) => Vec::new(),
    }
}

type Change = Box<dyn FnMut(&mut Instruction) -> Now>;

fn without(kind: fn(&Operation) -> bool) -> Change {
    Box::new(move |instruction| if kind(&instruction.operation) { Now::Goes } else { Now::Stays })
}

#[test]
fn each_classic_defect_is_found_and_named() {
    let is_full = |program: &Program, operation: &Operation| match operation {
        // The first array of barriers is that of full stages.
        Operation::BarrierWait { access } => program.buffer(access.buffer).name == "barriers6",
        _ => false,
    };
    let names: Vec<String> = product().unwrap().program().buffers.iter().map(|buffer| buffer.name.clone()).collect();
    assert!(names.iter().any(|name| name == "barriers6"), "{names:?}");
    let program = product().unwrap().program().clone();
    let again = program.clone();
    let table: Vec<(&str, &[&str], &str, Change)> = vec![
        (
            "no proxy fence before the bulk store",
            &["E1019"],
            "fence for asynchronous accesses",
            without(|operation| matches!(operation, Operation::Fence(Fence::AsyncShared))),
        ),
        (
            "users release before they have read",
            &["E1018", "E1033"],
            "asynchronous access",
            Box::new(|instruction| match instruction.operation {
                Operation::RemoteArrive { .. } => Now::Before(3),
                _ => Now::Stays,
            }),
        ),
        (
            "a stage expects too many bytes",
            &["E1024"],
            "bytes never arrive",
            Box::new(|instruction| {
                if let Operation::BarrierArrive { expect, .. } = &mut instruction.operation {
                    *expect += 16;
                }
                Now::Stays
            }),
        ),
        (
            "a stage expects too few bytes",
            &["E1018", "E1024"],
            "bytes more than were expected",
            Box::new(|instruction| {
                if let Operation::BarrierArrive { expect, .. } = &mut instruction.operation {
                    *expect -= 4096;
                }
                Now::Stays
            }),
        ),
        (
            "a descriptor of another swizzle",
            &["E1039"],
            "the swizzle of 64 bytes, and they were written with the swizzle of 128 bytes",
            Box::new(|instruction| {
                if let Operation::Wgmma { b, .. } = &mut instruction.operation {
                    b.mode = SwizzleMode::Bytes64;
                }
                Now::Stays
            }),
        ),
        (
            "a descriptor without a swizzle",
            &["E1039"],
            "no swizzle, and they were written with the swizzle of 128 bytes",
            Box::new(|instruction| {
                if let Operation::Wgmma { b, .. } = &mut instruction.operation {
                    b.mode = SwizzleMode::None;
                }
                Now::Stays
            }),
        ),
        (
            "both descriptors of another swizzle",
            &["E1039"],
            "the swizzle of 32 bytes, and they were written with the swizzle of 128 bytes",
            Box::new(|instruction| {
                if let Operation::Wgmma { a: Some(a), b, .. } = &mut instruction.operation {
                    (a.mode, b.mode) = (SwizzleMode::Bytes32, SwizzleMode::Bytes32);
                }
                Now::Stays
            }),
        ),
        (
            "a stage is read before it is full",
            &["E1012", "E1018", "E1020", "E1023"],
            "may be in flight, that of load",
            Box::new(move |instruction| if is_full(&program, &instruction.operation) { Now::Goes } else { Now::Stays }),
        ),
        (
            "no barrier of the cluster at the end",
            &["E1035"],
            "may have ended",
            Box::new({
                let mut seen = 0;
                move |instruction| {
                    let of_cluster = matches!(instruction.operation, Operation::ClusterArrive | Operation::ClusterWait);
                    seen += usize::from(of_cluster);
                    if of_cluster && seen > 2 { Now::Goes } else { Now::Stays }
                }
            }),
        ),
        (
            "rows of B go to one block, and both wait",
            &["E1024"],
            "4096 bytes never arrive",
            Box::new(|instruction| {
                if let Operation::BulkLoad { multicast, .. } = &mut instruction.operation
                    && *multicast
                {
                    *multicast = false;
                    instruction.inputs.pop();
                }
                Now::Stays
            }),
        ),
        (
            "more registers than there are",
            &["E1037"],
            "registers for each thread are not available",
            without(|operation| matches!(operation, Operation::SetRegisters { more: false, .. })),
        ),
        (
            "sums are read before the products are over",
            &["E1018", "E1020", "E1033"],
            "an accumulator is read while the wgmma that writes it may be in flight",
            without(|operation| matches!(operation, Operation::WaitMultiply(_))),
        ),
        (
            "a bulk store is no group, so nobody waits for it",
            &["E1020"],
            "bulk stores of it still read shared memory",
            without(|operation| matches!(operation, Operation::CommitBulk)),
        ),
        (
            "the kernel ends before its bulk store",
            &["E1020"],
            "wait for it",
            without(|operation| matches!(operation, Operation::WaitBulk { .. })),
        ),
        (
            "the parity of a phase is wrong",
            &["E1012", "E1018", "E1020", "E1023", "E1024"],
            "may be in flight",
            Box::new(move |instruction| {
                if is_full(&again, &instruction.operation) {
                    // The address of the barrier, which is even, in the place of the parity.
                    let address = instruction.inputs[0];
                    *instruction.inputs.last_mut().unwrap() = address;
                }
                Now::Stays
            }),
        ),
        (
            "a named barrier of too many threads",
            &["E1022"],
            "at barrier",
            Box::new(|instruction| {
                if let Operation::NamedBarrier { threads, .. } = &mut instruction.operation {
                    *threads += 32;
                }
                Now::Stays
            }),
        ),
        (
            "a named barrier of too few threads",
            &["E1018", "E1019"],
            "a barrier before it is issued would",
            Box::new(|instruction| {
                if let Operation::NamedBarrier { threads, .. } = &mut instruction.operation {
                    *threads -= 64;
                }
                Now::Stays
            }),
        ),
        (
            "memory is touched before earlier launches are over",
            &["E1038"],
            "previous launches",
            Box::new({
                let mut gone = false;
                move |instruction| {
                    // One thread waits, and tells nobody.
                    match instruction.operation {
                        Operation::WaitLaunches if !gone => {
                            gone = true;
                            Now::Goes
                        }
                        Operation::LaunchNext => {
                            instruction.operation = Operation::WaitLaunches;
                            Now::Stays
                        }
                        _ => Now::Stays,
                    }
                }
            }),
        ),
        (
            "products without a fence for registers",
            &["E1033"],
            "fence between",
            without(|operation| matches!(operation, Operation::FenceRegisters)),
        ),
        (
            "barriers that are not published to the copy engine",
            &["E1025"],
            "publish it",
            without(|operation| matches!(operation, Operation::Fence(Fence::BarrierInit))),
        ),
    ];
    for (name, codes, words, mut how) in table {
        let findings = found(&defective(&mut *how));
        assert!(!findings.is_empty(), "{name}: nothing is found");
        for finding in &findings {
            assert!(codes.contains(&finding.code()), "{name}: {finding}");
            assert!(finding.source.is_some() || finding.code() == "E1022", "{name}: {finding}");
        }
        assert!(findings.iter().any(|finding| finding.to_string().contains(words)), "{name}: {}", findings[0]);
    }
}
