//! Indices claimed from a counter: launches at the same time, one after another, and in graphs.

use tilewright_gpu::{Argument, Device, DeviceTensor, Graph, ModuleOptions};
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Kernel, KernelError};
use tilewright_layout::{Layout, Slot, Tree};

use crate::{Outcome, ensure};

/// Numbers of a row, and rows.
const COLUMNS: i64 = 512;
const ROWS: i64 = 20_000;

/// Clusters of four blocks claim rows; each block has 128 numbers of a row. y = x + m in row m, so
/// a row that is left out, or is written twice, shows.
fn numbered(k: &Build) -> Result<(), KernelError> {
    let layout = format!("({COLUMNS},M):(1,{COLUMNS})");
    let (x, y) = (k.input::<u32>("x", &layout)?, k.output::<u32>("y", &layout)?);
    k.threads(128)?;
    k.grid(Axis::X, 132)?;
    k.cluster(4)?;
    let part = k.coordinate(&k.block_number(Axis::X), &[4, 1])?[0].clone();
    k.dynamic_scheduler(k.size("M")?, 2)?.each(|claim| {
        let row = Tree::flat([Slot::At(part.clone()), Slot::At(claim.now().clone())])?;
        let own = x.local_tile((128, 1), row.clone())?.thread_part()?.load()?;
        let now = k.index(claim.now())?.to(tilewright_kernel::Element::U32);
        y.local_tile((128, 1), row)?.thread_part()?.store(&own.map(|x| Ok(x + now))?)
    })
}

pub fn claimed(device: &Device) -> Outcome {
    let kernel = device.compile(&Kernel::build("numbered", numbered)?, &ModuleOptions::default())?;
    let layout = Layout::strided((COLUMNS, ROWS), (1, COLUMNS))?;
    let streams = [device.stream()?, device.stream()?, device.stream()?];
    let x = DeviceTensor::filled(&streams[0], layout.clone(), 5_u32)?;
    let blank = || DeviceTensor::filled(&streams[0], layout.clone(), u32::MAX);
    let mut results = [blank()?, blank()?, blank()?];
    streams[0].synchronize()?;
    let (all, few) = (kernel.at(&[("M", ROWS)])?, kernel.at(&[("M", 7)])?);
    let right = |y: &DeviceTensor<u32>, rows: i64| -> Outcome {
        let found = y.read(&streams[0])?;
        let expected = |at: i64| if at / COLUMNS < rows { 5 + (at / COLUMNS) as u32 } else { u32::MAX };
        let wrong = found.as_slice().iter().zip(0..).position(|(y, at)| *y != expected(at));
        ensure(wrong.is_none(), || format!("element {wrong:?}"))?;
        Ok(String::new())
    };
    // On three streams at once, many times one after another on each.
    for _ in 0..50 {
        for (stream, y) in streams.iter().zip(&mut results) {
            all.launch(stream, &[(&x).into(), y.into()])?;
        }
    }
    streams.iter().try_for_each(|stream| stream.synchronize())?;
    results.iter().try_for_each(|y| right(y, ROWS).map(drop))?;
    // Two graphs beside launches.
    let mut others = [blank()?, blank()?];
    streams[0].synchronize()?;
    let [first, second] = &mut others;
    {
        let record = |y: &mut DeviceTensor<u32>| {
            let arguments = [Argument::from(&x), Argument::from(y)];
            Graph::capture(&streams[0], |_| (0..5).try_for_each(|_| all.launch(&streams[0], &arguments)))
        };
        let graphs = [record(first)?, record(second)?];
        for _ in 0..10 {
            graphs[0].launch(&streams[0])?;
            graphs[1].launch(&streams[1])?;
            all.launch(&streams[2], &[(&x).into(), (&mut results[2]).into()])?;
        }
        streams.iter().try_for_each(|stream| stream.synchronize())?;
    }
    others.iter().chain([&results[2]]).try_for_each(|y| right(y, ROWS).map(drop))?;
    // Fewer numbers than clusters.
    let mut short = blank()?;
    few.launch(&streams[0], &[x.memory().into(), short.memory_mut().into()])?;
    right(&short, 7)?;
    Ok(format!("150 launches on three streams, 100 in two graphs, {ROWS} numbers each"))
}
