//! Global memory that threads and the copy engine write and read in one launch.
//!
//! Law: after a proxy fence for global memory, a bulk load sees what threads of either block of a
//! cluster stored before, and after a bulk store has completed, threads read what it wrote over
//! their stores, in every iteration. Each iteration has other numbers, so stale data would show.

use tilewright_gpu::{Device, DeviceTensor, ModuleOptions};
use tilewright_kernel::interpret::Interpreter;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Kernel, KernelError};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, Slot, Stride, Tree};

use crate::{Outcome, ensure};

const TURNS: i64 = 200;

/// The number that a block stores in an iteration, before the number of the thread is added.
fn first(block: i64, iteration: i64) -> i64 {
    1000 * iteration + 64 * block
}

fn crossed() -> Result<Kernel, KernelError> {
    Kernel::build("crossed", |k: &Build| {
        let x = k.tensor::<i32>("x", "(64,1,2):(1,64,64)")?;
        let y = k.output::<i32>("y", Layout::strided((64, 1, 2, 2, TURNS), (1, 64, 64, 128, 256)))?;
        k.threads(64)?;
        k.grid(Axis::X, 2)?;
        k.cluster(2)?;
        let (from, to) = (k.shared::<i32>("(64,1):(1,64)")?, k.shared::<i32>("(64,1):(1,64)")?);
        let half = |block: Expr| Tree::flat([Slot::All, Slot::All, Slot::At(block)]);
        let (own, other) = (x.slice(half(k.rank())?)?, x.slice(half(k.rank_after(1)?)?)?);
        let cursor = k.pipeline(1, 2)?.cursor()?;
        k.range(TURNS, |iteration| {
            let result = |which: i64| {
                let block = k.block_number(Axis::X);
                y.slice(Tree::flat([
                    Slot::All,
                    Slot::All,
                    Slot::At(block),
                    Slot::At(which.into()),
                    Slot::At(iteration.clone()),
                ])?)
            };
            let block = Stride::times(&k.rank(), &Expr::from(64));
            let place = block.and_then(|block| Stride::plus(&block, &k.thread().ok()?));
            let place = place.ok_or(tilewright_layout::LayoutError::Overflow { op: "place" })?;
            let number = k.index(&iteration)? * k.number(1000_i32) + k.index(&place)?;
            let numbers = k.register(Element::I32, (1,))?;
            numbers.set(&[number])?;
            // The data that the other block has stored, loaded by TMA.
            own.thread_part()?.store(&numbers)?;
            k.cluster_barrier();
            let stage = cursor.stage()?;
            k.single(|| {
                k.fence_async_global();
                stage.acquire()?;
                stage.load(&other, &to)?;
                stage.publish()
            })?;
            stage.wait()?;
            result(0)?.thread_part()?.store(&to.thread_part()?.load()?)?;
            stage.release()?;
            cursor.advance()?;
            k.cluster_barrier();
            // Negative numbers over the block's own, by the copy engine, and read by threads.
            numbers.set(&[k.number(0_i32) - number])?;
            from.thread_part()?.store(&numbers)?;
            k.fence_async();
            k.barrier();
            k.single(|| {
                k.fence_async_global();
                k.store_bulk(&from, &own)?;
                k.commit_bulk();
                k.wait_bulk_written(0);
                Ok(())
            })?;
            k.barrier();
            result(1)?.thread_part()?.store(&own.thread_part()?.load()?)
        })
    })
}

pub(crate) fn agree(device: &Device) -> Outcome {
    let kernel = crossed()?;
    let mut interpreter = Interpreter::new(kernel.program(), &[])?;
    interpreter.fill(1);
    let checked = interpreter.check().map_err(|found| found.to_string())?;
    let wanted = checked.run.tensor::<i32>("y")?;
    for (at, number) in wanted.iter().enumerate() {
        let at = at as i64;
        let (thread, block, which, iteration) = (at % 64, at / 64 % 2, at / 128 % 2, at / 256);
        let own = if which == 0 { first(1 - block, iteration) + thread } else { -(first(block, iteration) + thread) };
        ensure(i64::from(*number) == own, || format!("the interpreter has {number} at {at}, not {own}"))?;
    }
    let stream = device.stream()?;
    let compiled = device.compile(&kernel, &ModuleOptions::default())?;
    let vector = |count: i64| Layout::mode_of(count, 1);
    let mut x = DeviceTensor::filled(&stream, vector(128)?, 0_i32)?;
    let mut y = DeviceTensor::filled(&stream, vector(256 * TURNS)?, 0_i32)?;
    let launches = 20;
    for _ in 0..launches {
        compiled.at(&[])?.launch(&stream, &[(&mut x).into(), (&mut y).into()])?;
        let found = y.read(&stream)?;
        let differs = found.as_slice().iter().zip(&wanted).position(|(found, wanted)| found != wanted);
        ensure(differs.is_none(), || format!("number {differs:?} differs"))?;
    }
    Ok(format!("{launches} launches of {TURNS} iterations"))
}
