//! A GEMM in six steps, from one thread per element to a warp-specialized kernel with TMA and
//! wgmma: `D(m,n) = sum over k of A(m,k) * B(n,k)`, bf16 with f32 accumulators, for any M, and for
//! K and N that are multiples of 8. The book's chapter "A GEMM, step by step" explains it.
//!
//! The interpreter checks every step. On a machine with a Hopper GPU the program also times each
//! step at the given size, and compares elements of D with sums in f64.
//!
//! ```text
//! cargo run --release --example product_steps            # checks, at 150 x 136 x 72
//! cargo run --release --example product_steps -- 4096    # times, at 4096 cubed, on a GPU
//! ```

use std::error::Error;

use half::bf16;
use tilewright::atoms::{CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright::gpu::{Device, Memory, ModuleOptions, Stream};
use tilewright::kernel::interpret::Interpreter;
use tilewright::kernel::machine::Machine;
use tilewright::kernel::program::memory::Role;
use tilewright::kernel::ptx::Target;
use tilewright::kernel::{Build, Element, Kernel, KernelError, View};
use tilewright::layout::Tiler;
use tilewright::planners::gemm::{Problem, Product};

type Built = Result<Kernel, Box<dyn Error>>;

/// A, B and D: K is contiguous in A and B, N in D.
fn tensors(k: &Build) -> Result<[View<'_>; 3], KernelError> {
    Ok([
        k.tensor_of(Element::Bf16, "a", "(M,K{div=8}):(K,1)", Role::Input)?,
        k.tensor_of(Element::Bf16, "b", "(N{div=8},K):(K,1)", Role::Input)?,
        k.tensor_of(Element::Bf16, "d", "(M,N):(N,1)", Role::Output)?,
    ])
}

// step 1
fn elements() -> Built {
    // 16 x 16 threads, each with one element of D; neighbouring threads write neighbours of a row.
    let fma = MmaAtom::named("UniversalFMA<F32,F32,F32,F32>")?;
    let mma = TiledMma::new(fma, &"(16,16,1):(16,1,0)".parse()?, &Tiler::Keep)?;
    Ok(Kernel::build("elements", |k| {
        let [a, b, d] = tensors(k)?;
        let tiles_a = a.local_tile((16, 1), k.block("(y,_)")?)?;
        let tiles_b = b.local_tile((16, 1), k.block("(x,_)")?)?;
        let part = d.local_tile((16, 16), k.block("(y,x)")?)?.partition_mma(&mma, Operand::C)?;
        let accumulator = part.fragment_of(Element::F32)?;
        accumulator.clear();
        k.range(k.size("K")?, |k_tile| {
            let x = tiles_a.slice((.., .., &k_tile))?.partition_mma(&mma, Operand::A)?.load_predicated()?;
            let y = tiles_b.slice((.., .., &k_tile))?.partition_mma(&mma, Operand::B)?.load_predicated()?;
            k.mma(&mma, &accumulator, &x.to(Element::F32)?, &y.to(Element::F32)?, &accumulator)
        })?;
        part.store_predicated(&accumulator.to(Element::Bf16)?)
    })?)
}

// step 2
fn shared() -> Built {
    // 16 x 16 threads, each with 8 x 8 elements of a tile of 128 x 128.
    let fma = MmaAtom::named("UniversalFMA<F32,F32,F32,F32>")?;
    let mma = TiledMma::new(fma, &"(16,16,1):(16,1,0)".parse()?, &Tiler::Keep)?;
    // 128 rows of 16 elements; two threads copy a row, 16 bytes each.
    let vectors = CopyAtom::named("UniversalCopy<uint128_t>")?;
    let copy = TiledCopy::new(vectors, 16, &"(128,2):(2,1)".parse()?, &"(1,8)".parse()?)?;
    Ok(Kernel::build("shared", |k| {
        let [a, b, d] = tensors(k)?;
        let tiles_a = a.local_tile((128, 16), k.block("(y,_)")?)?;
        let tiles_b = b.local_tile((128, 16), k.block("(x,_)")?)?;
        let part = d.local_tile((128, 128), k.block("(y,x)")?)?.partition_mma(&mma, Operand::C)?;
        let tile = "(128,16):(16,1)";
        let (shared_a, shared_b) = (k.shared_of(Element::Bf16, tile)?, k.shared_of(Element::Bf16, tile)?);
        let accumulator = part.fragment_of(Element::F32)?;
        accumulator.clear();
        k.range(k.size("ceil(K/16)")?, |k_tile| {
            k.copy_predicated(&copy, &tiles_a.slice((.., .., &k_tile))?, &shared_a)?;
            k.copy_predicated(&copy, &tiles_b.slice((.., .., &k_tile))?, &shared_b)?;
            k.barrier();
            let (x, y) =
                (shared_a.partition_mma(&mma, Operand::A)?.load()?, shared_b.partition_mma(&mma, Operand::B)?.load()?);
            k.mma(&mma, &accumulator, &x.to(Element::F32)?, &y.to(Element::F32)?, &accumulator)?;
            // No thread overwrites a tile that another thread still reads.
            k.barrier();
            Ok(())
        })?;
        part.store_predicated(&accumulator.to(Element::Bf16)?)
    })?)
}

/// Four warps, 2 x 2, and the `ldmatrix` copies of their operands from shared memory to registers.
struct Warps {
    mma: TiledMma,
    loads: [TiledCopy; 2],
}

impl Warps {
    fn new() -> Result<Warps, Box<dyn Error>> {
        let atom = MmaAtom::named("SM80_16x8x16_F32BF16BF16F32_TN")?;
        let mma = TiledMma::new(atom, &"(2,2,1)".parse()?, &"[32:1;32:1;16:1]".parse()?)?;
        let matrices = || CopyAtom::named("SM75_U32x4_LDSM_N");
        let of = |operand| Ok::<_, Box<dyn Error>>(TiledCopy::of_operand(matrices()?, &mma, operand)?);
        let loads = [of(Operand::A)?, of(Operand::B)?];
        Ok(Warps { mma, loads })
    }

    /// Multiplies tiles of 128 x 32 in shared memory.
    fn multiply<'k>(
        &self,
        k: &'k Build,
        [shared_a, shared_b]: [&View<'k>; 2],
        accumulator: &tilewright::kernel::Fragment<'k>,
    ) -> Result<(), KernelError> {
        let operand_of = |tile: &View<'k>, operand, load: &TiledCopy| {
            let fragment = tile.partition_mma(&self.mma, operand)?.fragment()?;
            k.copy(load, tile, &fragment.retile(load, CopyEnd::Destination)?)?;
            Ok::<_, KernelError>(fragment)
        };
        let x = operand_of(shared_a, Operand::A, &self.loads[0])?;
        let y = operand_of(shared_b, Operand::B, &self.loads[1])?;
        k.mma(&self.mma, accumulator, &x, &y, accumulator)
    }
}

// step 3
fn warps() -> Built {
    let warps = Warps::new()?;
    let vectors = CopyAtom::named("UniversalCopy<uint128_t>")?;
    let copy = TiledCopy::new(vectors, 16, &"(32,4):(4,1)".parse()?, &"(1,8)".parse()?)?;
    Ok(Kernel::build("warps", |k| {
        let [a, b, d] = tensors(k)?;
        let tiles_a = a.local_tile((128, 32), k.block("(y,_)")?)?;
        let tiles_b = b.local_tile((128, 32), k.block("(x,_)")?)?;
        let part = d.local_tile((128, 128), k.block("(y,x)")?)?.partition_mma(&warps.mma, Operand::C)?;
        // The swizzle permutes chunks of 16 bytes: eight rows are then in different banks.
        let tile = "S<2,3,3> o 0 o (128,32):(32,1)";
        let (shared_a, shared_b) = (k.shared_of(Element::Bf16, tile)?, k.shared_of(Element::Bf16, tile)?);
        let accumulator = part.fragment_of(Element::F32)?;
        accumulator.clear();
        k.range(k.size("ceil(K/32)")?, |k_tile| {
            k.copy_predicated(&copy, &tiles_a.slice((.., .., &k_tile))?, &shared_a)?;
            k.copy_predicated(&copy, &tiles_b.slice((.., .., &k_tile))?, &shared_b)?;
            k.barrier();
            warps.multiply(k, [&shared_a, &shared_b], &accumulator)?;
            k.barrier();
            Ok(())
        })?;
        part.store_predicated(&accumulator.to(Element::Bf16)?)
    })?)
}

// step 4
fn ahead() -> Built {
    let warps = Warps::new()?;
    let vectors = CopyAtom::named("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>")?;
    let copy = TiledCopy::new(vectors, 16, &"(32,4):(4,1)".parse()?, &"(1,8)".parse()?)?;
    Ok(Kernel::build("ahead", |k| {
        let [a, b, d] = tensors(k)?;
        let tiles_a = a.local_tile((128, 32), k.block("(y,_)")?)?;
        let tiles_b = b.local_tile((128, 32), k.block("(x,_)")?)?;
        let part = d.local_tile((128, 128), k.block("(y,x)")?)?.partition_mma(&warps.mma, Operand::C)?;
        let ring = "S<2,3,3> o 0 o (128,32,4):(32,1,4096)";
        let (shared_a, shared_b) = (k.shared_of(Element::Bf16, ring)?, k.shared_of(Element::Bf16, ring)?);
        let accumulator = part.fragment_of(Element::F32)?;
        accumulator.clear();
        // Four stages: the copies of three k-tiles are in flight while one is multiplied.
        k.staged(
            4,
            k.size("ceil(K/32)")?,
            |k_tile, stage| {
                k.copy_predicated(&copy, &tiles_a.slice((.., .., k_tile))?, &shared_a.slice((.., .., stage))?)?;
                k.copy_predicated(&copy, &tiles_b.slice((.., .., k_tile))?, &shared_b.slice((.., .., stage))?)
            },
            |_, stage| {
                warps.multiply(k, [&shared_a.slice((.., .., stage))?, &shared_b.slice((.., .., stage))?], &accumulator)
            },
        )?;
        part.store_predicated(&accumulator.to(Element::Bf16)?)
    })?)
}

// step 5
fn roles() -> Built {
    // Two consumer warpgroups with 64 rows each of a tile of 128 x 256, and one producer warp.
    let atom = MmaAtom::named("SM90_64x256x16_F32BF16BF16_SS")?;
    let mma = TiledMma::new(atom, &"(2,1,1)".parse()?, &"[128:1;256:1;16:1]".parse()?)?;
    Ok(Kernel::build("roles", |k| {
        let [a, b, d] = tensors(k)?;
        k.threads(288)?;
        let tiles_a = a.local_tile((128, 64), k.block("(y,_)")?)?;
        let tiles_b = b.local_tile((256, 64), k.block("(x,_)")?)?;
        let tile = d.local_tile((128, 256), k.block("(y,x)")?)?;
        let shared_a = k.shared_of(Element::Bf16, "S<3,3,3> o 0 o (128,64,4):(64,1,8192)")?;
        let shared_b = k.shared_of(Element::Bf16, "S<3,3,3> o 0 o (256,64,4):(64,1,16384)")?;
        let pipeline = k.pipeline(4, 8)?;
        let k_tiles = k.size("ceil(K/64)")?;
        k.role(8..9, || {
            k.single(|| {
                let cursor = pipeline.cursor()?;
                k.range(k_tiles.clone(), |k_tile| {
                    let stage = cursor.stage()?;
                    stage.acquire()?;
                    stage.load(&tiles_a.slice((.., .., &k_tile))?, &shared_a.slice((.., .., stage.index()))?)?;
                    stage.load(&tiles_b.slice((.., .., &k_tile))?, &shared_b.slice((.., .., stage.index()))?)?;
                    stage.publish()?;
                    cursor.advance()
                })
            })
        })?;
        k.role(0..8, || {
            let part = tile.partition_mma(&mma, Operand::C)?;
            let accumulator = part.fragment_of(Element::F32)?;
            accumulator.clear();
            let cursor = pipeline.cursor()?;
            k.range(k_tiles.clone(), |_| {
                let stage = cursor.stage()?;
                stage.wait()?;
                let here = (.., .., stage.index());
                k.mma(&mma, &accumulator, &shared_a.slice(here)?, &shared_b.slice(here)?, &accumulator)?;
                k.wait_mma(0);
                stage.release()?;
                cursor.advance()
            })?;
            part.store_predicated(&accumulator.to(Element::Bf16)?)
        })
    })?)
}

// step 6
fn planned([m, n, k]: [i64; 3]) -> Built {
    let product = Product::new(&Problem::new(Element::Bf16, [m, n, k])?, &Machine::of_target(Target::Sm90a))?;
    let kernels = product.kernels();
    match kernels[..] {
        [kernel] => Ok(kernel.clone()),
        _ => Err("this problem takes several kernels".into()),
    }
}

/// A kernel, and the sizes of its launch by name; none if the plan fixes them.
type Step = (Kernel, Vec<(&'static str, i64)>);

/// The steps in their order, at some sizes.
fn steps([m, n, k]: [i64; 3]) -> Result<Vec<Step>, Box<dyn Error>> {
    let any = [elements()?, shared()?, warps()?, ahead()?, roles()?];
    let named = any.into_iter().map(|kernel| (kernel, vec![("M", m), ("N", n), ("K", k)]));
    Ok(named.chain([(planned([m, n, k])?, Vec::new())]).collect())
}

/// Integers that differ from row to row; their sums are exact in f32.
fn number(at: usize, by: usize) -> bf16 {
    bf16::from_f32((at * by % 13) as f32 - 6.0)
}

/// What the element of D at a place should be.
fn wanted([row, column]: [usize; 2], k: usize) -> f64 {
    (0..k).map(|at| number(row * k + at, 7).to_f64() * number(column * k + at, 5).to_f64()).sum()
}

/// Runs a kernel in the interpreter, which checks every access, and compares all of D.
fn check((kernel, named): &Step, sizes: [i64; 3]) -> Result<(), Box<dyn Error>> {
    let [m, n, k] = sizes.map(|size| size as usize);
    let mut interpreter = Interpreter::new(kernel.program(), named)?;
    for (tensor, count, by) in [(0, m * k, 7), (1, n * k, 5)] {
        interpreter.tensor(tensor, &(0..count).map(|at| number(at, by)).collect::<Vec<_>>())?;
    }
    let run = interpreter.check()?.run;
    for (at, found) in run.tensor::<bf16>(2)?.into_iter().enumerate() {
        compare(found, [at / n, at % n], k)?;
    }
    Ok(())
}

/// Compares an element of D with what it should be, rounded to its type.
fn compare(found: bf16, place: [usize; 2], k: usize) -> Result<(), Box<dyn Error>> {
    let wanted = bf16::from_f64(wanted(place, k));
    if found == wanted { Ok(()) } else { Err(format!("D{place:?} is {found}, and should be {wanted}").into()) }
}

/// Fills device memory with the numbers, which repeat after 13: one block is copied repeatedly.
fn filled(stream: &Stream, count: i64, by: usize) -> Result<Memory, Box<dyn Error>> {
    let block: Vec<u8> = (0..13 << 15).flat_map(|at| number(at, by).to_bits().to_le_bytes()).collect();
    let bytes = 2 * count as u64;
    let mut memory = stream.device().allocate(bytes)?;
    for from in (0..bytes).step_by(block.len()) {
        memory.write(stream, from, &block[..block.len().min((bytes - from) as usize)])?;
    }
    Ok(memory)
}

/// Launches a kernel on a GPU, compares 500 elements of D, and returns the seconds of a launch: the
/// minimum of five repetitions.
fn time(stream: &Stream, (kernel, named): &Step, sizes: [i64; 3]) -> Result<f64, Box<dyn Error>> {
    let (device, [m, n, k]) = (stream.device(), sizes);
    let (a, b) = (filled(stream, m * k, 7)?, filled(stream, n * k, 5)?);
    let mut d = device.allocate(2 * (m * n) as u64)?;
    // NaN, so that an element that is not written is found.
    d.fill_bytes(stream, 0xff)?;
    let ready = device.compile(kernel, &ModuleOptions::default())?.at(named)?;
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let (first, last) = (device.event()?, device.event()?);
        stream.record(&first)?;
        for _ in 0..5 {
            ready.launch(stream, &[(&a).into(), (&b).into(), (&mut d).into()])?;
        }
        stream.record(&last)?;
        last.synchronize()?;
        best = best.min(last.seconds_since(&first)? / 5.0);
    }
    let mut found = vec![0; 2 * (m * n) as usize];
    d.read(stream, 0, &mut found)?;
    for at in 0..500 {
        // Places spread over all of D.
        let [row, column] = [(at * 7919) % m as usize, (at * 104_729) % n as usize];
        let place = 2 * (row * n as usize + column);
        compare(bf16::from_le_bytes([found[place], found[place + 1]]), [row, column], k as usize)?;
    }
    Ok(best)
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(size) = std::env::args().nth(1) else {
        let small = [150, 136, 72];
        for step in steps(small)? {
            check(&step, small)?;
            println!("{:14} {small:?}: every access checked, all elements equal", step.0.name());
        }
        return Ok(());
    };
    let large = [size.parse()?; 3];
    let stream = Device::open(0)?.stream()?;
    for step in steps(large)? {
        let seconds = time(&stream, &step, large)?;
        let rate = 2.0 * large.iter().map(|size| *size as f64).product::<f64>() / seconds;
        println!("{:14} {:10.1} us {:8.2} TFLOP/s", step.0.name(), seconds * 1e6, rate / 1e12);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_multiplies() {
        let sizes = [150, 136, 72];
        for step in steps(sizes).unwrap() {
            check(&step, sizes).unwrap_or_else(|error| panic!("{}: {error}", step.0.name()));
        }
    }

    /// What the chapter shows is what runs.
    #[test]
    fn the_chapter_shows_these_lines() {
        let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let own = plain(include_str!("product_steps.rs"));
        let chapter = include_str!("../../../docs/book/src/product.md");
        let blocks: Vec<&str> =
            chapter.split("```rust,ignore\n").skip(1).filter_map(|part| part.split("```").next()).collect();
        assert!(blocks.len() >= 6);
        for block in blocks {
            assert!(own.contains(&plain(block)), "the chapter shows what is not here:\n{block}");
        }
    }
}
