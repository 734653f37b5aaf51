//! What the last block of a launch sees: with concurrent launches, consecutive ones, and in graphs.

use tilewright_gpu::{Argument, Device, DeviceTensor, Graph, ModuleOptions};
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Distribution, Kernel, KernelError, Reduction};
use tilewright_layout::Layout;

use crate::{Outcome, ensure};

/// Blocks, and numbers of each.
const BLOCKS: i64 = 1000;
const EACH: i64 = 256;

/// The sum of all numbers: each block leaves that of its own, and the last one adds these. Whatever
/// one block has left too late, or the last one has read too early, is missing in it.
fn total(k: &Build) -> Result<(), KernelError> {
    let own = Distribution::new(&EACH.to_string(), Layout::strided((EACH, 1), (1, 0)))?;
    let all = Distribution::new(1024, Layout::strided((EACH, 4), (1, EACH)))?;
    let x = k.input::<u32>("x", Layout::strided(BLOCKS * EACH, 1))?;
    let (parts, y) = (k.output::<u32>("parts", Layout::strided(BLOCKS, 1))?, k.output::<u32>("y", "1:1")?);
    k.grid(Axis::X, BLOCKS)?;
    let block = k.block("x")?;
    let sum = x.local_tile(&EACH.to_string(), block.clone())?.load_distributed(&own)?.reduce(&[0], Reduction::Sum)?;
    parts.local_tile(1, block)?.store_distributed(&sum)?;
    k.when_last(|| {
        let first = tilewright_layout::Tree::flat([tilewright_layout::Slot::At(0.into())])?;
        let sums = parts.local_tile(1024, first)?.load_distributed_predicated(&all)?;
        y.store_distributed(&sums.reduce(&[0], Reduction::Sum)?)
    })
}

pub fn summed(device: &Device) -> Outcome {
    let kernel = device.compile(&Kernel::build("total", total)?, &ModuleOptions::default())?.at(&[])?;
    let streams = [device.stream()?, device.stream()?, device.stream()?];
    let vector = |count: i64| Layout::mode_of(count, 1);
    // Other numbers in each launch, so that stale data would show.
    let given: Vec<DeviceTensor<u32>> = (1..=3)
        .map(|number| DeviceTensor::filled(&streams[0], vector(BLOCKS * EACH)?, number))
        .collect::<Result<_, _>>()?;
    let blank = |count: i64| DeviceTensor::filled(&streams[0], vector(count)?, u32::MAX);
    const TURNS: usize = 40;
    let mut parts = [blank(BLOCKS)?, blank(BLOCKS)?, blank(BLOCKS)?];
    let mut results: Vec<DeviceTensor<u32>> = (0..3 * TURNS).map(|_| blank(1)).collect::<Result<_, _>>()?;
    streams[0].synchronize()?;
    for (iteration, y) in results.iter_mut().enumerate() {
        let on = iteration % 3;
        let x = &given[(iteration + iteration / 3) % 3];
        kernel.launch(&streams[on], &[x.into(), (&mut parts[on]).into(), y.into()])?;
    }
    streams.iter().try_for_each(|stream| stream.synchronize())?;
    let right = |y: &DeviceTensor<u32>, number: usize| -> Result<(), Box<dyn std::error::Error>> {
        let (found, wanted) = (y.read(&streams[0])?.as_slice()[0], (BLOCKS * EACH) as u32 * number as u32);
        ensure(found == wanted, || format!("{found} instead of {wanted}"))
    };
    results.iter().enumerate().try_for_each(|(iteration, y)| right(y, (iteration + iteration / 3) % 3 + 1))?;
    // In graphs, beside launches.
    let mut others = [blank(1)?, blank(1)?];
    streams[0].synchronize()?;
    {
        let [first, second] = &mut others;
        let [own, other, beside] = &mut parts;
        let record = |x: &DeviceTensor<u32>, parts: &mut DeviceTensor<u32>, y: &mut DeviceTensor<u32>| {
            let arguments = [Argument::from(x), Argument::from(parts), Argument::from(y)];
            Graph::capture(&streams[0], |_| (0..20).try_for_each(|_| kernel.launch(&streams[0], &arguments)))
        };
        let graphs = [record(&given[0], own, first)?, record(&given[1], other, second)?];
        for _ in 0..10 {
            graphs[0].launch(&streams[0])?;
            graphs[1].launch(&streams[1])?;
            kernel.launch(&streams[2], &[(&given[2]).into(), (&mut *beside).into(), (&mut results[0]).into()])?;
        }
        streams.iter().try_for_each(|stream| stream.synchronize())?;
    }
    right(&others[0], 1)?;
    right(&others[1], 2)?;
    right(&results[0], 3)?;
    Ok(format!("{} launches on three streams, 400 in two graphs beside 10, {BLOCKS} blocks each", 3 * TURNS))
}
