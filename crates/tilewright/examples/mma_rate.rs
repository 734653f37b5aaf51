//! The rate of `mma.sync` on registers alone: what no GEMM without warpgroups exceeds on a device.
//!
//! Each warp multiplies a few fragments again and again into accumulators of its own: one fragment
//! of each operand, and three in turn. Operands that change take more power, and power decides the
//! clock. The kernels are checked by the interpreter first; without a GPU that is all.
//!
//! ```text
//! cargo run --release --example mma_rate
//! ```

use std::error::Error;
use std::time::Instant;

use half::{bf16, f16};
use tilewright::atoms::{MmaAtom, Operand, TiledMma};
use tilewright::gpu::{Argument, Device, ModuleOptions};
use tilewright::kernel::{ElementType, Kernel, KernelError, interpret};
use tilewright::layout::Coord;
use tilewright::layout::symbolic::Expr;

/// Steps of 16 elements along K in a launch for timing: a multiple of [`FRAGMENTS`].
const STEPS: i64 = 6144;
/// Fragments of each operand that are multiplied in turn.
const FRAGMENTS: [i64; 2] = [1, 3];

/// Each block multiplies a tile of 128 x 256 by eight warps, `steps` times, by fragments in turn.
fn kernel<T: ElementType>(atom: &str, steps: i64, fragments: i64) -> Result<Kernel, KernelError> {
    let mma = TiledMma::new(MmaAtom::named(atom)?, &"(2,4,1)".parse()?, &"[128:1;256:1;16:1]".parse()?)?;
    Kernel::build("mma_rate", |k| {
        let a = k.input::<T>("a", format!("(128,16,{fragments}):(16,1,2048)").as_str())?;
        let b = k.input::<T>("b", format!("(256,16,{fragments}):(16,1,4096)").as_str())?;
        let loaded = (0..fragments).map(|number| {
            let at: Coord<Expr> = format!("(_,_,{number})").parse()?;
            let a = a.slice(at.clone())?.partition_mma(&mma, Operand::A)?.load()?;
            Ok((a, b.slice(at)?.partition_mma(&mma, Operand::B)?.load()?))
        });
        let loaded = loaded.collect::<Result<Vec<_>, KernelError>>()?;
        let c = k.output::<f32>("c", "(M{div=128},256):(256,1)")?.local_tile((128, 256), k.block("(x,0)")?)?;
        let c = c.partition_mma(&mma, Operand::C)?;
        let sums = c.fragment()?;
        sums.clear();
        k.range(Expr::from(steps / fragments), |_| {
            loaded.iter().try_for_each(|(a, b)| k.mma(&mma, &sums, a, b, &sums))
        })?;
        c.store(&sums)
    })
}

/// Checks a kernel, and times it where there is a device.
fn rate<T: ElementType>(atom: &str, fragments: i64, device: Option<&Device>) -> Result<(), Box<dyn Error>> {
    interpret::check(kernel::<T>(atom, 2 * fragments, fragments)?.program(), &[("M", 256)])?;
    println!("{atom}, {fragments} of each operand in turn: checked");
    let Some(device) = device else { return Ok(()) };
    let blocks = 4 * i64::from(device.attributes().multiprocessors);
    let loaded = device.compile(&kernel::<T>(atom, STEPS, fragments)?, &ModuleOptions::default())?;
    let launched = loaded.at(&[("M", 128 * blocks)])?;
    let stream = device.stream()?;
    let mut inputs = Vec::new();
    for rows in [128, 256] {
        // Numbers with all bits in use: power decides the clock.
        let bytes = rows * 16 * 2 * fragments as u64;
        let mut memory = device.allocate(bytes)?;
        let numbers = tilewright::planners::any_numbers(T::ELEMENT, 1021, rows);
        memory.repeat(&stream, bytes, &numbers)?;
        inputs.push(memory);
    }
    let mut output = device.allocate(blocks as u64 * 128 * 256 * 4)?;
    let mut launch = || {
        let [a, b] = &inputs[..] else { return Ok(()) };
        launched.launch(&stream, &[Argument::from(a), Argument::from(b), Argument::from(&mut output)])
    };
    let mut times = Vec::new();
    for _ in 0..12 {
        let begin = Instant::now();
        for _ in 0..8 {
            launch()?;
        }
        stream.synchronize()?;
        times.push(begin.elapsed().as_secs_f64() / 8.0);
    }
    times.sort_by(f64::total_cmp);
    let operations = 2.0 * 128.0 * 256.0 * 16.0 * (STEPS * blocks) as f64;
    println!("  {}: {:.1} TFLOP/s, the median of {}", device.name(), operations / times[6] / 1e12, times.len());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::open(0).ok();
    if device.is_none() {
        println!("no GPU is here: the kernels are checked, and not timed");
    }
    for fragments in FRAGMENTS {
        rate::<bf16>("SM80_16x8x16_F32BF16BF16F32_TN", fragments, device.as_ref())?;
        rate::<f16>("SM80_16x8x16_F32F16F16F32_TN", fragments, device.as_ref())?;
    }
    Ok(())
}
