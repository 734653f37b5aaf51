//! A matrix product as a GPU kernel has it: blocks, tiled copies to shared memory, a tiled product,
//! and predicates at the edges. Run on the CPU, thread after thread.
//!
//! Nothing here knows of rows and columns, and no index is counted by hand. `local_tile` cuts the
//! blocks out, and `split_mode` goes through them. The partitions of a `TiledCopy` and a `TiledMma`
//! say what each thread moves and multiplies, and a tensor of coordinates, partitioned alike, says
//! what of it lies inside. So the extents need not be multiples of the block.
//!
//! ```text
//! cargo run --release --example block_product
//! ```

use std::error::Error;

use tilewright_layout::atoms::{CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_layout::{Coord, IntoShape, Layout, Tiler, coord};
use tilewright_tensor::{CoordinateTensor, Instructed, Tensor, TensorError, TensorView, Tiling, gemm_partitions};

/// The block of a product, and the threads that compute it.
struct Kernel {
    block: [i64; 3],
    /// Rows of A and of B in shared memory, the first mode fastest.
    shared: [Layout; 2],
    copies: [TiledCopy; 2],
    mma: TiledMma,
}

impl Kernel {
    fn new() -> Result<Kernel, Box<dyn Error>> {
        let (block @ [m, n, k], threads) = ([32, 32, 8], 64);
        // A by single elements, threads along K first. B by four at once along N, where it is
        // contiguous.
        let one = CopyAtom::named("SM80_CP_ASYNC_CACHEALWAYS<uint32_t>")?;
        let along_k = Layout::strided((threads / k, k), (k, 1))?;
        let four = CopyAtom::named("SM80_CP_ASYNC_CACHEALWAYS<uint128_t>")?;
        let along_n = Layout::strided((n / 4, threads / (n / 4)), (1, n / 4))?;
        let fma = MmaAtom::named("UniversalFMA<F32,F32,F32,F32>")?;
        Ok(Kernel {
            block,
            shared: [Layout::strided((m, k), (1, m))?, Layout::strided((n, k), (1, n))?],
            copies: [
                TiledCopy::new(one, 32, &along_k, &"(1,1)".parse()?)?,
                TiledCopy::new(four, 32, &along_n, &"(4,1)".parse()?)?,
            ],
            mma: TiledMma::new(fma, &Layout::strided((threads / 16, 16, 1), (16, 1, 0))?, &Tiler::Keep)?,
        })
    }

    /// `C(i,j) = sum over k of A(i,k) * B(j,k)`, block after block.
    fn run(&self, a: &TensorView<'_, f32>, b: &TensorView<'_, f32>, c: &mut Tensor<f32>) -> Result<(), Box<dyn Error>> {
        let [m, n, k] = self.block;
        let tiler = Tiler::from_shape(&(m, n, k).into_shape()?)?;
        // The tiles of each matrix, as coordinates: (32,8,I,K) of A, (32,8,J,K) of B, (32,32,I,J)
        // of C.
        let [of_a, of_b, of_c] =
            [(a.shape(), coord!(1, _, 1)?), (b.shape(), coord!(_, 1, 1)?), (c.shape(), coord!(1, 1, _)?)].map(
                |(shape, projection): (_, Coord)| {
                    CoordinateTensor::identity(&shape)?.local_tile_projected(&tiler, &coord!(_, _, _)?, &projection)
                },
            );
        let (of_a, of_b, of_c) = (of_a?, of_b?, of_c?);
        for (of_a, of_c) in of_a.split_mode(2)?.zip(of_c.split_mode(2)?) {
            let (of_a, of_c) = (of_a?, of_c?);
            for (of_b, of_c) in of_b.split_mode(2)?.zip(of_c.split_mode(2)?) {
                self.run_block((a, &of_a), (b, &of_b?), (c, &of_c?))?;
            }
        }
        Ok(())
    }

    /// One block: of A and of B what (32,8,K) names, of C (32,32).
    fn run_block(
        &self,
        (a, of_a): (&TensorView<'_, f32>, &CoordinateTensor),
        (b, of_b): (&TensorView<'_, f32>, &CoordinateTensor),
        (c, of_c): (&mut Tensor<f32>, &CoordinateTensor),
    ) -> Result<(), Box<dyn Error>> {
        let mut shared_a = Tensor::filled(self.shared[0].clone(), 0.0)?;
        let mut shared_b = Tensor::filled(self.shared[1].clone(), 0.0)?;
        let threads = (0..self.mma.threads()).map(|thread| self.mma.get_slice(&thread));
        let threads = threads.collect::<Result<Vec<_>, _>>()?;
        let parts = threads.iter().map(|thread| of_c.partition_for(thread, Operand::C));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        // The sums of each thread, in registers.
        let sums = parts.iter().map(|part| Tensor::filled(Layout::compact(&part.shape())?, 0.0_f32));
        let mut sums = sums.collect::<Result<Vec<_>, _>>()?;

        for (tile_a, tile_b) in of_a.split_mode(2)?.zip(of_b.split_mode(2)?) {
            for (copy, view, tile, shared) in
                [(&self.copies[0], a, tile_a?, &mut shared_a), (&self.copies[1], b, tile_b?, &mut shared_b)]
            {
                for number in 0..copy.threads() {
                    let slice = copy.get_slice(&number)?;
                    let from = tile.partition_at(&slice, CopyEnd::Source)?;
                    let mut to = shared.view_mut().partition_at(&slice, CopyEnd::Destination)?;
                    // Past the edges there are zeros.
                    view.gather(&from, &mut to, 0.0)?;
                }
            }
            // Here a GPU would wait for all threads.
            let of_a = threads.iter().map(|thread| shared_a.view().partition_for(thread, Operand::A));
            let of_b = threads.iter().map(|thread| shared_b.view().partition_for(thread, Operand::B));
            let (of_a, of_b) = (of_a.collect::<Result<Vec<_>, _>>()?, of_b.collect::<Result<Vec<_>, _>>()?);
            let mut of_c: Vec<_> = sums.iter_mut().map(|sums| sums.view_mut()).collect();
            gemm_partitions(&self.mma, &of_a, &of_b, &mut of_c)?;
        }
        for (part, sums) in parts.iter().zip(&sums) {
            c.view_mut().scatter(part, &sums.view())?;
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let kernel = Kernel::new()?;
    println!("block       {:?}, by {} threads", kernel.block, kernel.mma.threads());
    println!("copy of A   {}", kernel.copies[0].thread_values(CopyEnd::Source)?);
    println!("copy of B   {}", kernel.copies[1].thread_values(CopyEnd::Source)?);
    println!("sums        {}", kernel.mma.thread_values(Operand::C)?);
    // Multiples of the block, and not.
    for [rows, columns, terms] in [[64, 64, 16], [45, 70, 21]] {
        let small = |index: i64| (index * 7 % 11 - 5) as f32;
        let a = Tensor::from_fn(Layout::strided((rows, terms), (terms, 1))?, small)?;
        let b = Tensor::from_fn(Layout::strided((columns, terms), (1, columns))?, small)?;
        let mut c = Tensor::filled(Layout::strided((rows, columns), (columns, 1))?, f32::NAN)?;
        kernel.run(&a.view(), &b.view(), &mut c)?;
        // Small integers: the sums are exact, whatever their order.
        for at in CoordinateTensor::identity(&c.shape())?.iter() {
            let ([i, j], found) = ([at.leaves()[0], at.leaves()[1]], c.get(&at)?);
            let products = (0..terms).map(|l| Ok(a.get([i, l])? * b.get([j, l])?));
            let sum = products.sum::<Result<f32, TensorError>>()?;
            if *found != sum {
                return Err(format!("C{at} is {found}, but should be {sum}").into());
            }
        }
        println!("product     of {rows} x {terms} and {terms} x {columns} checked");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn runs() {
        super::main().unwrap();
    }
}
