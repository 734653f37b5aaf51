//! A product of matrices, tiled over blocks and threads: `C(m,n) = sum over k of A(m,k) * B(n,k)`
//! in f32, for any M and K, and N a multiple of 4.
//!
//! A block computes a tile of C. In each iteration along K, `cp.async` copies a tile of A and one
//! of B to shared memory, and every thread multiplies its part of them. A is row-major, and its
//! elements are copied one by one. B is contiguous along N, and is copied four at once. Past the
//! edges, zeros are copied, which change no sum, and nothing is stored.
//!
//! ```text
//! cargo run --release --example tiled_gemm -- 300 200 100
//! ```

use std::error::Error;

use tilewright::atoms::{CopyAtom, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright::kernel::interpret::Interpreter;
use tilewright::kernel::{Kernel, KernelError};
use tilewright::layout::symbolic::Expr;
use tilewright::layout::{Coord, Layout, Slot, Tiler, Tree};

/// Threads of a block.
const THREADS: i64 = 256;

fn tiled_gemm() -> Result<Kernel, Box<dyn Error>> {
    // 32 x 8 threads copy A, neighbours along K. 32 x 8 threads copy B, four elements along N each.
    let single = CopyAtom::named("SM80_CP_ASYNC_CACHEALWAYS<uint32_t>")?;
    let copy_a = TiledCopy::new(single, 32, &"(32,8):(8,1)".parse()?, &"(1,1)".parse()?)?;
    let vector = CopyAtom::named("SM80_CP_ASYNC_CACHEALWAYS<uint128_t>")?;
    let copy_b = TiledCopy::new(vector, 32, &"(32,8):(1,32)".parse()?, &"(4,1)".parse()?)?;
    // 16 x 16 threads multiply, each its elements of C.
    let atoms = Layout::strided((THREADS / 16, 16, 1), (16, 1, 0))?;
    let mma = TiledMma::new(MmaAtom::named("UniversalFMA<F32,F32,F32,F32>")?, &atoms, &Tiler::Keep)?;

    let kernel = Kernel::build("tiled_gemm", |k| {
        let a = k.input::<f32>("a", "(M,K):(K,1)")?;
        let b = k.input::<f32>("b", "(N{div=4},K):(1,N)")?;
        let c = k.output::<f32>("c", "(M,N):(N,1)")?;
        // Block (x,y) has these tiles of A and B, one for each step along K, and this one of C.
        let tiles_a = a.local_tile((128, 8), k.block("(x,_)")?)?;
        let tiles_b = b.local_tile((128, 8), k.block("(y,_)")?)?;
        let tile_c = c.local_tile((128, 128), k.block("(x,y)")?)?;
        let shared_a = k.shared::<f32>("(128,8):(1,128)")?;
        let shared_b = k.shared::<f32>("(128,8):(1,128)")?;

        let part_a = shared_a.partition_mma(&mma, Operand::A)?;
        let part_b = shared_b.partition_mma(&mma, Operand::B)?;
        let part_c = tile_c.partition_mma(&mma, Operand::C)?;
        let sums = part_c.fragment()?;
        sums.clear();
        k.range(k.size("ceil(K/8)")?, |step| {
            k.copy_predicated(&copy_a, &tiles_a.slice(tile_at(&step)?)?, &shared_a)?;
            k.copy_predicated(&copy_b, &tiles_b.slice(tile_at(&step)?)?, &shared_b)?;
            k.commit_async();
            k.wait_async(0);
            k.barrier();
            let (factor_a, factor_b) = (part_a.load()?, part_b.load()?);
            k.mma(&mma, &sums, &factor_a, &factor_b, &sums)?;
            // Nobody overwrites a tile that another thread still reads.
            k.barrier();
            Ok(())
        })?;
        part_c.store_predicated(&sums)
    })?;
    Ok(kernel)
}

/// `(_,_,step)`: all of the tile of this step.
fn tile_at(step: &Expr) -> Result<Coord<Expr>, KernelError> {
    Ok(Tree::flat([Slot::All, Slot::All, Slot::At(step.clone())])?)
}

/// Multiplies matrices of small integers on the interpreter, which checks every access, and
/// compares with a plain loop.
fn check(kernel: &Kernel, [m, n, k]: [usize; 3]) -> Result<(), Box<dyn Error>> {
    let sizes = [("M", m as i64), ("N", n as i64), ("K", k as i64)];
    // A(m,k) is at m * K + k, B(n,k) at n + k * N. Sums of small integers are exact.
    let a: Vec<f32> = (0..m * k).map(|at| (at * 7 % 11) as f32 - 5.0).collect();
    let b: Vec<f32> = (0..n * k).map(|at| (at * 5 % 13) as f32 - 6.0).collect();
    let mut run = Interpreter::new(kernel.program(), &sizes)?;
    run.tensor("a", &a)?;
    run.tensor("b", &b)?;
    let checked = run.check()?;
    let c = checked.run.tensor::<f32>("c")?;
    for row in 0..m {
        for column in 0..n {
            let sum: f32 = (0..k).map(|at| a[row * k + at] * b[column + at * n]).sum();
            if c[row * n + column] != sum {
                return Err(format!("C({row},{column}) is {}, and should be {sum}", c[row * n + column]).into());
            }
        }
    }
    println!("{m} x {k} times {k} x {n}: every access checked, {} elements equal", c.len());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut sizes = [150, 140, 37];
    for (size, given) in sizes.iter_mut().zip(std::env::args().skip(1)) {
        *size = given.parse()?;
    }
    check(&tiled_gemm()?, sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ragged_sizes_are_multiplied() {
        let kernel = tiled_gemm().unwrap();
        for sizes in [[150, 140, 37], [128, 128, 8], [1, 4, 1], [129, 132, 9]] {
            check(&kernel, sizes).unwrap();
        }
    }
}
