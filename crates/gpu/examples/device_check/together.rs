//! Threads, blocks and engines that work together on Hopper: the interpreter and the device, side
//! by side.
//!
//! Law: a kernel in which blocks of a cluster, roles of a block, TMA and wgmma wait for each other
//! produces the same bits on both. Operands are small integers, so that sums are exact in every
//! order.

use std::error::Error;

use tilewright_gpu::{Device, DeviceTensor, ModuleOptions};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Kernel, KernelError, Reduction};
use tilewright_layout::atoms::{CopyAtom, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Layout, Slot, Swizzle, Tree};

use crate::agreement::both;
use crate::{Outcome, ensure, neighbours};

/// Blocks of clusters take numbers from the next block, and give them to the one after that.
fn exchanged(blocks: u32, clusters: u32) -> Result<Kernel, KernelError> {
    let all = blocks * clusters;
    Kernel::build("exchanged", |k: &Build| {
        let x = k.input::<f32>("x", Layout::strided((64, 1, all), (1, 1, 64)))?;
        let y = k.output::<f32>("y", Layout::strided((64, 1, all), (1, 1, 64)))?;
        k.threads(64)?;
        k.grid(Axis::X, all)?;
        k.cluster(blocks)?;
        let (own, given) = (k.shared::<f32>("(64,1):(1,1)")?, k.shared::<f32>("(64,1):(1,1)")?);
        let block = k.block_number(Axis::X);
        own.thread_part()?.store(&x.slice((.., .., &block))?.thread_part()?.load()?)?;
        k.cluster_barrier();
        let taken = own.of_block(k.rank_after(1)?)?.thread_part()?.load()?;
        let negated = taken.map(|value| Ok(value * -1.0))?;
        given.of_block(k.rank_after(2 % blocks)?)?.thread_part()?.store(&negated)?;
        k.cluster_barrier();
        y.slice((.., .., &block))?.thread_part()?.store(&given.thread_part()?.load()?)
    })
}

/// Each block of a cluster stores all of a matrix; each loads a part of it by multicast.
fn spread(blocks: u32, stages: i64) -> Result<Kernel, KernelError> {
    let (rows, iterations) = (64 / i64::from(blocks), 9);
    Kernel::build("spread", |k: &Build| {
        let source = k.input::<u16>("source", Layout::strided((64, 32, iterations), (32, 1, 2048)))?;
        let target =
            k.output::<u16>("target", Layout::strided((64, 32, iterations, blocks), (32, 1, 2048, 2048 * iterations)))?;
        k.threads(96)?;
        k.grid(Axis::X, blocks)?;
        k.cluster(blocks)?;
        let ring = k.shared::<u16>(Composed::new(
            Swizzle::new(2, 3, 3)?,
            0,
            Layout::strided((64, 32, stages), (32, 1, 2048))?,
        ))?;
        let pipeline = k.pipeline(stages, 2 * blocks)?;
        let part = (rows, 32);
        k.role(2..3, || {
            k.single(|| {
                let cursor = pipeline.cursor()?;
                k.range(iterations, |iteration| {
                    let stage = cursor.stage()?;
                    stage.acquire()?;
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
            k.range(iterations, |iteration| {
                let stage = cursor.stage()?;
                stage.wait()?;
                let values = ring.slice((.., .., stage.index()))?.thread_part()?.load()?;
                own.slice((.., .., &iteration))?.thread_part()?.store(&values)?;
                stage.release_to(0..blocks)?;
                cursor.advance()
            })
        })?;
        k.cluster_barrier();
        Ok(())
    })
}

/// Tiles that go around a cluster by bulk copies between blocks.
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

/// A GEMM with roles that reallocate registers, in clusters that share B, stored by TMA.
fn product(rows: i64, depth: i64) -> Result<Kernel, Box<dyn Error>> {
    let atom = MmaAtom::named("SM90_64x64x16_F32BF16BF16_SS")?;
    let mma = TiledMma::new(atom, &"(1,1,1)".parse()?, &"[64:1;64:1;16:1]".parse()?)?;
    let (stages, iterations) = (3, (depth + 63) / 64);
    Ok(Kernel::build("product", |k: &Build| -> Result<(), KernelError> {
        let a = k.tensor_of(Element::Bf16, "a", Layout::strided((rows, depth), (depth, 1)), Role::Input)?;
        let b = k.tensor_of(Element::Bf16, "b", Layout::strided((64, depth), (depth, 1)), Role::Input)?;
        let c = k.output::<f32>("c", Layout::strided((rows, 64), (64, 1)))?;
        k.threads(256)?;
        k.resident(2)?;
        k.grid(Axis::X, rows / 64)?;
        k.cluster(2)?;
        let block = k.block_number(Axis::X);
        let tiles_a = a.local_tile((64, 64), Tree::flat([Slot::At(block.clone()), Slot::All])?)?;
        let tiles_b = b.local_tile((32, 64), Tree::flat([Slot::At(k.rank()), Slot::All])?)?;
        let tile_c = c.local_tile((64, 64), (block, 0))?;
        let ring = format!("S<3,3,3> o 0 o (64,64,{stages}):(64,1,4096)");
        let (left, right) = (k.shared_of(Element::Bf16, &ring)?, k.shared_of(Element::Bf16, &ring)?);
        let result = k.shared::<f32>("(64,64):(64,1)")?;
        let pipeline = k.pipeline(stages, 8)?;
        k.wait_launches();
        k.role(4..8, || {
            k.registers(40)?;
            k.single(|| {
                let cursor = pipeline.cursor()?;
                k.range(iterations, |iteration| {
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
            k.range(iterations, |_| {
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

/// Sums of iterations whose copies run ahead.
fn summed(stages: i64) -> Result<Kernel, Box<dyn Error>> {
    let atom = CopyAtom::named("SM80_CP_ASYNC_CACHEALWAYS<uint128_t>")?;
    let copy = TiledCopy::new(atom, 32, &"(64,1):(1,1)".parse()?, &"(1,4)".parse()?)?;
    Ok(Kernel::build("summed", |k: &Build| {
        let source = k.input::<f32>("source", "(64,4,11):(4,1,256)")?;
        let target = k.output::<f32>("target", "(64,4):(4,1)")?;
        k.threads(64)?;
        let held = k.shared::<f32>(Layout::strided((64, 4, stages), (4, 1, 256)))?;
        let others = "((2,32),4):((32,1),64)";
        let own = target.compose(others)?.thread_part()?;
        let sums = own.fragment()?;
        sums.clear();
        k.staged(
            stages,
            11,
            |iteration, stage| k.copy(&copy, &source.slice((.., .., iteration))?, &held.slice((.., .., stage))?),
            |_, stage| {
                let values = held.slice((.., .., stage))?.compose(others)?.thread_part()?.load()?;
                sums.set(&sums.zip(&values, |a, b| Ok(a + b))?.numbers()?)
            },
        )?;
        own.store(&sums)
    })?)
}

/// Exchange between warps: some arrive at a named barrier without waiting, one elected lane stores.
fn handed() -> Result<Kernel, KernelError> {
    Kernel::build("handed", |k: &Build| {
        let (x, y) = (k.input::<f32>("x", "(32,1,2):(1,1,32)")?, k.output::<f32>("y", "(32,1,2):(1,1,32)")?);
        k.threads(128)?;
        let held = k.shared::<f32>("(32,1,2):(1,1,32)")?;
        let factors = k.shared::<f32>("(1,1,2):(1,1,1)")?;
        let filled = k.meeting(128)?;
        for half in 0..2_u32 {
            k.role(half..half + 1, || {
                let half = (.., .., i64::from(half));
                held.slice(half)?.thread_part()?.store(&x.slice(half)?.thread_part()?.load()?)?;
                filled.arrive();
                Ok(())
            })?;
        }
        for half in 0..2_u32 {
            k.role(2 + half..3 + half, || {
                filled.wait();
                let other = (.., .., 1 - i64::from(half));
                let factor = factors.slice((.., .., i64::from(half)))?;
                k.elected(|| {
                    let number = factor.fragment()?;
                    number.fill(k.number(2.5_f32))?;
                    factor.store(&number)
                })?;
                k.warp_barrier();
                let by = factor.load()?.numbers()?[0];
                let values = held.slice(other)?.thread_part()?.load()?.map(|value| Ok(value * by))?;
                y.slice((.., .., i64::from(half)))?.thread_part()?.store(&values)
            })?;
        }
        Ok(())
    })
}

/// Bytes of bf16 that are small integers.
fn integers(count: i64, seed: i64) -> Vec<u8> {
    let number = |at: i64| ((at * 7919 + seed * 104_729) % 17 - 8) as f32;
    (0..count).flat_map(|at| (number(at).to_bits() >> 16).to_le_bytes().into_iter().take(2)).collect()
}

fn floats(count: usize) -> Vec<u8> {
    (0..count).flat_map(|at| (at as f32 - 100.0).to_le_bytes()).collect()
}

/// A kernel by its name, with its inputs.
type Case = (String, Kernel, Vec<Vec<u8>>);

fn cases() -> Result<Vec<Case>, Box<dyn Error>> {
    let mut cases: Vec<Case> = Vec::new();
    for blocks in [2_u32, 4, 8] {
        let all = 64 * blocks as usize;
        cases.push((format!("exchanged by {blocks}"), exchanged(blocks, 5)?, vec![floats(5 * all)]));
        cases.push((format!("around {blocks}"), around(blocks)?, vec![floats(all)]));
        for stages in [1, 2, 3] {
            let bytes = (0..64 * 32 * 9_u32).flat_map(|at| (at as u16).to_le_bytes()).collect();
            cases.push((format!("spread by {blocks}, {stages} stages"), spread(blocks, stages)?, vec![bytes]));
        }
    }
    for (rows, depth) in [(128, 64), (256, 328), (512, 1024)] {
        let factors = vec![integers(rows * depth, 1), integers(64 * depth, 2)];
        cases.push((format!("product of {rows} by {depth}"), product(rows, depth)?, factors));
    }
    for stages in [2, 3, 5] {
        cases.push((format!("summed in {stages} stages"), summed(stages)?, vec![floats(64 * 4 * 11)]));
    }
    cases.push(("handed".to_string(), handed()?, vec![floats(64)]));
    for cluster in [[2, 1, 1], [1, 2, 1], [2, 2, 1], [1, 4, 2], [2, 1, 2]] {
        let blocks = 6 * cluster.iter().product::<u32>() as usize;
        cases.push((format!("ranks of {cluster:?}"), neighbours::ranks(cluster)?, vec![floats(blocks)]));
    }
    let ways = [Reduction::Sum, Reduction::Minimum, Reduction::Maximum];
    let kinds = [Element::I32, Element::U32].into_iter().flat_map(|element| ways.map(|way| (element, way)));
    for (element, way) in kinds.chain([Element::I64, Element::U64, Element::F32].map(|element| (element, ways[0]))) {
        for blocks in [2_u32, 8] {
            let name = format!("{way:?} of {element} by {blocks}");
            let numbers = (0..64 * blocks).flat_map(|at| ((at * 7919 % 251) as f32).to_le_bytes()).collect();
            cases.push((name, neighbours::added(blocks, element, way)?, vec![numbers]));
        }
    }
    for iterations in [1, 2, 7, 100] {
        cases.push((
            format!("given in {iterations} iterations"),
            neighbours::given(iterations)?,
            vec![floats(128 * iterations as usize)],
        ));
    }
    Ok(cases)
}

/// Clusters, roles and pipelines leave what the interpreter says.
pub(crate) fn agree(device: &Device) -> Outcome {
    let cases = cases()?;
    let mut bytes = 0;
    for (name, kernel, inputs) in &cases {
        // Several times, as it may be right by chance.
        for _ in 0..3 {
            let [expected, found] = both(device, kernel, inputs).map_err(|error| format!("{name}: {error}"))?;
            let differs = expected.iter().zip(&found).position(|(wanted, got)| wanted != got);
            ensure(differs.is_none(), || format!("{name}: byte {differs:?} differs"))?;
            bytes += expected.len();
        }
    }
    Ok(format!("{} kernels, {bytes} bytes", cases.len()))
}

/// Launches that wait for each other by themselves keep their order.
pub(crate) fn overlapping(device: &Device) -> Outcome {
    let added = Kernel::build("added", |k: &Build| {
        let x = k.tensor::<f32>("x", "M{div=256}:1")?.local_tile(256, k.block("x")?)?;
        k.threads(256)?;
        k.wait_launches();
        let part = x.thread_part()?;
        let value = part.load()?.map(|value| Ok(value * 2.0 + 1.0))?;
        k.launch_next();
        part.store(&value)
    })?;
    ensure(added.program().waits_for_launches(), || "it does not wait".to_string())?;
    let stream = device.stream()?;
    let kernel = device.compile(&added, &ModuleOptions::default())?;
    let elements: Layout = "1048576:1".parse()?;
    let mut x = DeviceTensor::filled(&stream, elements, 0.0_f32)?;
    let sized = kernel.at(&[("M", 1 << 20)])?;
    let text = sized.sizes().to_string();
    let launches = 20;
    for _ in 0..launches {
        sized.launch(&stream, &[(&mut x).into()])?;
    }
    let wanted = ((1_u32 << launches) - 1) as f32;
    let found = x.read(&stream)?;
    ensure(found.as_slice().iter().all(|value| *value == wanted), || format!("not {wanted} everywhere"))?;
    Ok(format!("{launches} launches of {text}"))
}

#[cfg(test)]
mod tests {
    use tilewright_kernel::interpret::Interpreter;

    #[test]
    fn the_kernels_are_right() {
        for (name, kernel, inputs) in super::cases().unwrap() {
            let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
            for (number, input) in inputs.iter().enumerate() {
                interpreter.bytes(number, input).unwrap();
            }
            interpreter.check().unwrap_or_else(|findings| panic!("{name}: {}", findings[0]));
        }
    }
}
