//! The sum of two row-major matrices of any sizes, partitioned by threads and values.
//!
//! A layout of threads and one of values make the tile of a block and the layout `(thread, value)`
//! within it. Each block takes a tile, and each thread composes the tile with that layout to see
//! its own part.
//!
//! ```text
//! cargo run --release --example tiled_add -- 300 512
//! ```

use std::error::Error;

use tilewright::kernel::interpret::Interpreter;
use tilewright::kernel::{Build, Kernel, KernelError, View};
use tilewright::layout::{Coord, Layout, Slot, Tree, make_layout_tv};

fn tiled_add() -> Result<Kernel, Box<dyn Error>> {
    // 256 threads, 4 x 64, each with 4 x 4 values; rows vary fastest in both.
    let threads: Layout = "(4,64):(64,1)".parse()?;
    let values: Layout = "(4,4):(4,1)".parse()?;
    let (tile, held) = make_layout_tv(&threads, &values)?;
    println!("tile {tile}, thread and value to tile {held}");
    let tile = tile.to_string();
    Ok(Kernel::build("tiled_add", |k| {
        // N is a multiple of 4, so that a row of four values is one access of 16 bytes.
        let a = k.input::<f32>("a", "(M,N{div=4}):(N,1)")?;
        let b = k.input::<f32>("b", "(M,N):(N,1)")?;
        let c = k.output::<f32>("c", "(M,N):(N,1)")?;
        let (a, b, c) = (part(k, &a, &tile, &held)?, part(k, &b, &tile, &held)?, part(k, &c, &tile, &held)?);
        let sum = a.load_predicated()?.zip(&b.load_predicated()?, |a, b| Ok(a + b))?;
        c.store_predicated(&sum)
    })?)
}

/// What this thread has of the tile of this block.
fn part<'k>(k: &'k Build, tensor: &View<'k>, tile: &str, held: &Layout) -> Result<View<'k>, KernelError> {
    let tiles = tensor.zipped_divide(tile)?;
    // ((_,_), block)
    let whole: Coord<_> = Tree::flat([Slot::All, Slot::All])?;
    let own = tiles.slice(Tree::tuple([&whole, &k.block("(x,y)")?])?)?;
    // (thread, _)
    own.compose(held)?.thread_part()
}

/// Runs the kernel on the interpreter, which checks every access, and compares with a plain loop.
fn check(kernel: &Kernel, [m, n]: [usize; 2]) -> Result<(), Box<dyn Error>> {
    let mut run = Interpreter::new(kernel.program(), &[("M", m as i64), ("N", n as i64)])?;
    let a: Vec<f32> = (0..m * n).map(|at| at as f32).collect();
    let b: Vec<f32> = a.iter().map(|at| 0.5 - at).collect();
    run.tensor("a", &a)?.tensor("b", &b)?;
    let checked = run.check()?;
    let c = checked.run.tensor::<f32>("c")?;
    if let Some(at) = (0..m * n).find(|at| c[*at] != a[*at] + b[*at]) {
        return Err(format!("element {at} is {}, and should be {}", c[at], a[at] + b[at]).into());
    }
    println!("{m} x {n}: every access checked, {} elements equal", c.len());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut sizes = [50, 260];
    for (size, given) in sizes.iter_mut().zip(std::env::args().skip(1)) {
        *size = given.parse()?;
    }
    check(&tiled_add()?, sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ragged_sizes_are_added() {
        let kernel = tiled_add().unwrap();
        for sizes in [[50, 260], [1, 4], [16, 256], [17, 252]] {
            check(&kernel, sizes).unwrap();
        }
    }
}
