//! Parts of one tensor, written by several threads at once, with nothing but the start and the end
//! of the threads between them.
//!
//! ThreadSanitizer judges this file: `scripts/sanitize thread`. (It does not understand the fences
//! that rayon's queues are ordered by.)

use std::thread;

use tilewright_layout::{Composed, Layout, Xor};
use tilewright_tensor::{Offsets, Parts, Tensor, TensorViewMut, Tiling};

/// Each of four threads writes every fourth part, its elements interleaved with those of others,
/// and reads them again.
fn write_and_read<L: Offsets>(parts: Vec<TensorViewMut<'_, i64, L>>) {
    let mut shares: Vec<Vec<(i64, TensorViewMut<'_, i64, L>)>> = (0..4).map(|_| Vec::new()).collect();
    for (number, part) in (0..).zip(parts) {
        shares[(number % 4) as usize].push((number, part));
    }
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for share in shares {
            threads.push(scope.spawn(move || {
                for (number, mut part) in share {
                    part.fill(number);
                    for index in 0..part.size() {
                        *part.get_mut(index).unwrap() += 1;
                    }
                    assert!(part.iter().all(|element| *element == number + 1));
                    assert_eq!(part.view().to_vec().len() as i64, part.size());
                }
            }));
        }
        // Joined one by one: ThreadSanitizer sees a join, but not how a scope waits.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

fn on_threads<L: Offsets>(layout: L) {
    let mut tensor = Tensor::filled(layout, 0_i64).unwrap();
    let size = tensor.size();
    let count = |tensor: &Tensor<i64, L>| tensor.view().iter().filter(|element| **element > 0).count() as i64;
    write_and_read(tensor.view_mut().tiles_mut(&"[4:1;4:1]".parse().unwrap()).unwrap().collect());
    assert_eq!(count(&tensor), size);
    write_and_read(tensor.view_mut().partition_mut(&"(4,4):(4,1)".parse().unwrap()).unwrap().collect());
    write_and_read(tensor.view_mut().split_mode_mut(0).unwrap().collect());
    write_and_read(tensor.view_mut().clipped_tiles_mut(&"(3,5)".parse().unwrap()).unwrap().collect());
    assert_eq!(count(&tensor), size);
    let tv: Layout = "((4,4),(4,4)):((16,1),(64,4))".parse().unwrap();
    write_and_read(tensor.view_mut().composition(&tv).unwrap().split_mode_mut(0).unwrap().collect());
    assert_eq!(count(&tensor), size);
}

#[test]
fn parts_of_every_kind_of_layout() {
    on_threads("(16,16):(16,1)".parse::<Layout>().unwrap());
    on_threads("(16,16):(1,20)".parse::<Layout>().unwrap());
    on_threads("(16,16):(-1,-16)".parse::<Layout>().unwrap());
    on_threads("S<3,0,4> o 0 o (16,16):(16,1)".parse::<Composed>().unwrap());
    on_threads("(16,16):(^1,^17)".parse::<Layout<Xor>>().unwrap());
}

#[test]
fn a_reader_for_each_thread() {
    let tensor = Tensor::from_fn("(16,16):(16,1)".parse::<Layout>().unwrap(), |index| index).unwrap();
    let tiles: Parts<_> = tensor.view().tiles(&"[4:1;16:1]".parse().unwrap()).unwrap();
    let sums: Vec<i64> = thread::scope(|scope| {
        let threads: Vec<_> = tiles.map(|tile| scope.spawn(move || tile.iter().sum::<i64>())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(sums.iter().sum::<i64>(), 255 * 128);
}
