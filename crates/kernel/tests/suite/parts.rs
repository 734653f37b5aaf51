//! Copies and products of parts: what `partition` gave a thread is moved and multiplied as it is.
//!
//! The oracles are written from the definitions: a tiled copy of threads `(TM,TN)` with values
//! `(VM,VN)` gives element `(m,n)` of a tile to thread `thr(m / VM, n / VN)`, and tiles follow one
//! another. They share no code with the library.

mod kernels;
mod refused;

use tilewright_kernel::interpret::Interpreter;
use tilewright_kernel::{ElementType, Kernel};
use tilewright_layout::atoms::{CopyAtom, MmaAtom, TiledCopy, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Slot, Tree};

fn tiled(atom: &str, bits: i64, threads: &str, values: &str) -> TiledCopy {
    TiledCopy::new(CopyAtom::named(atom).unwrap(), bits, &threads.parse().unwrap(), &values.parse().unwrap()).unwrap()
}

fn product(atom: &str, atoms: &str) -> TiledMma {
    TiledMma::new(MmaAtom::named(atom).unwrap(), &atoms.parse().unwrap(), &tilewright_layout::Tiler::Keep).unwrap()
}

/// The last mode of this many at an index, the others left.
fn last(rank: usize, index: &Expr) -> Coord<Expr> {
    Tree::flat((0..rank).map(|mode| if mode + 1 == rank { Slot::At(index.clone()) } else { Slot::All })).unwrap()
}

/// Runs a kernel on its inputs and returns the last tensor; every schedule is checked.
fn run<I: ElementType, O: ElementType>(kernel: &Kernel, sizes: &[(&str, i64)], inputs: &[Vec<I>]) -> Vec<O> {
    let mut interpreter = Interpreter::new(kernel.program(), sizes).expect("the sizes are admitted");
    for (index, input) in inputs.iter().enumerate() {
        interpreter.tensor(index, input).expect("the input fits");
    }
    let checked = interpreter.check().unwrap_or_else(|found| panic!("{found}"));
    checked.run.tensor(inputs.len()).expect("the output has this type")
}

fn floats(count: usize) -> Vec<f32> {
    (0..count).map(|at| (at * 37 % 101) as f32 - 50.0).collect()
}
