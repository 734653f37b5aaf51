//! How long analyses of a tile take.

use tilewright_layout::Composed;
use tilewright_layout::analysis::{Access, Banks, Storage, bank_conflicts, global_access};

fn main() {
    divan::main();
}

fn tile() -> Option<(Storage, Access, Access)> {
    let tile: Composed = "S<3,3,3> o 0 o (128,64):(64,1)".parse().ok()?;
    let rows = Access::rows(&tile.shape(), 16, 8).ok()?;
    let matrices = Access::matrices(&tile.shape(), 16, 4, false).ok()?;
    Some((Storage::from(&tile), rows, matrices))
}

#[divan::bench]
fn banks_of_ldmatrix_over_128_by_64_halves(bencher: divan::Bencher<'_, '_>) {
    let Some((storage, _, matrices)) = tile() else { return };
    bencher.bench(|| bank_conflicts(&storage, &matrices, Banks::NVIDIA));
}

#[divan::bench]
fn sectors_of_rows_of_128_by_64_halves(bencher: divan::Bencher<'_, '_>) {
    let Some((storage, rows, _)) = tile() else { return };
    bencher.bench(|| global_access(&storage, &rows));
}
