//! The work of a GPU kernel on the CPU: blocks, threads and the values that each thread holds.
//!
//! A tensor is cut into tiles, one for each block; a thread-value layout says which elements of a
//! tile belong to which thread; and every thread adds its own. The threads of a block have disjoint
//! parts of the result, which the layouts prove, so blocks run on all cores without a lock.
//!
//! ```text
//! cargo run --example thread_values
//! ```

use std::error::Error;

use rayon::prelude::*;
use tilewright_layout::{Layout, Tiler, Tree, coord, make_layout_tv};
use tilewright_tensor::{CoordinateTensor, Tensor, Tiling, Zipped};

fn main() -> Result<(), Box<dyn Error>> {
    // 4 x 64 threads, numbered row by row, each with 4 x 4 values, row by row.
    let (threads, values): (Layout, Layout) = ("(4,64):(64,1)".parse()?, "(4,4):(4,1)".parse()?);
    let (tile, tv) = make_layout_tv(&threads, &values)?;
    println!("tile of a block      {tile}");
    println!("(thread, value)      {tv}");
    whole_tiles(&tile, &tv)?;
    ragged_edge(&tile, &tv)
}

/// `C = A + B` where tiles divide the tensors.
fn whole_tiles(tile: &Tree<i64>, tv: &Layout) -> Result<(), Box<dyn Error>> {
    let rows: Layout = "(256,2048):(2048,1)".parse()?;
    let a = Tensor::from_fn(rows.clone(), |index| index as f32)?;
    let b = Tensor::from_fn(rows.clone(), |index| (index % 17) as f32)?;
    let mut c = Tensor::filled(rows, 0.0_f32)?;

    let tiler = Tiler::from_shape(tile)?;
    let (tiles_a, tiles_b) = (a.view().zipped_divide(&tiler)?, b.view().zipped_divide(&tiler)?);
    println!("tiles of A           {}", tiles_a.layout());

    let blocks = c.view_mut().tiles_mut(&tiler)?;
    println!("blocks               {}", blocks.len());
    blocks.into_par_iter().enumerate().try_for_each(|(block, tile_c)| -> Result<(), String> {
        let run = || -> Result<(), Box<dyn Error>> {
            let block = coord!((_, _), block as i64)?;
            let by_thread_a = tiles_a.slice(&block)?.composition(tv)?;
            let by_thread_b = tiles_b.slice(&block)?.composition(tv)?;
            for (thread, values_c) in tile_c.composition(tv)?.split_mode_mut(0)?.enumerate() {
                let thread = coord!(thread as i64, _)?;
                let (values_a, values_b) = (by_thread_a.slice(&thread)?, by_thread_b.slice(&thread)?);
                Zipped::new((values_c, values_a, values_b))?.for_each(|(c, a, b)| *c = a + b);
            }
            Ok(())
        };
        run().map_err(|error| error.to_string())
    })?;

    for index in 0..c.size() {
        if *c.get(index)? != a.get(index)? + b.get(index)? {
            return Err(format!("wrong at index {index}").into());
        }
    }
    println!("sums                 {} checked", c.size());
    Ok(())
}

/// A tensor that tiles do not divide: a tensor of coordinates, tiled alike, says which values are
/// inside.
fn ragged_edge(tile: &Tree<i64>, tv: &Layout) -> Result<(), Box<dyn Error>> {
    let shape: Tree<i64> = "(250,2000)".parse()?;
    let tensor = Tensor::filled(Layout::row_major(&shape)?, 1_u8)?;
    let tiles = CoordinateTensor::identity(&shape)?.zipped_divide(&Tiler::from_shape(tile)?)?;
    let count = tiles.shape().mode(1).map_or(Ok(1), |rests| rests.product())?;
    let (mut inside, mut outside) = (0_i64, 0_i64);
    for block in 0..count {
        let by_thread = tiles.slice(&coord!((_, _), block)?)?.composition(tv)?;
        for (coord, valid) in by_thread.iter().zip(by_thread.elem_less(&shape)?.as_slice()) {
            if *valid {
                inside += i64::from(*tensor.get(&coord)?);
            } else {
                outside += 1;
            }
        }
    }
    println!("ragged               {inside} elements inside, {outside} places past the edges");
    if inside != tensor.size() {
        return Err("an element has no thread, or two".into());
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
