//! Tracks the use of values that were read, in warp-level matrix instructions.
//!
//! Law: an element of a matrix product depends on its row of A, on its column of B and on its own
//! element of C. Loads and stores of matrices propagate the marks of each byte.

use super::FrameMarks;
use crate::check::checker::{Access, Space};
use crate::engine::cluster::Cluster;
use crate::engine::code::Target;
use crate::engine::execute::Executes;
use crate::engine::marks::{Byte, Mark, Marks};
use crate::engine::matrix::{MatrixOp, Products};
use crate::isa::matrices;
use crate::isa::mma::LaneWords;

impl Cluster<'_> {
    /// Traces a warp-level matrix instruction. The values that `ldmatrix` loads are marked after
    /// it.
    pub(in crate::engine) fn trace_matrix(&mut self, by: &Executes<'_>, op: &MatrixOp) {
        if self.marks.as_ref().is_none_or(|marks| marks.is_empty()) {
            return;
        }
        let mask = by.fragment.mask;
        self.with_marks(by.block, by.warp, by.fragment.frame, |cluster, own| match op {
            MatrixOp::Compute { to, from, products, .. } => {
                let marks: Vec<Marks> = from.iter().map(|source| own.source(*source)).collect();
                if marks.iter().all(|marks| *marks == [0; 32]) {
                    for target in to {
                        let register = own.register(target.slot);
                        own.all.put(register, &[0; 32], mask);
                    }
                    return;
                }
                let results: Vec<Marks> = match products {
                    Some(products) => marks_of_product(own, products, &marks, to.len()),
                    None => {
                        let all = marks.iter().fold(0, |all, marks| {
                            let own_mark = own.of_all(marks, mask);
                            own.all.join(all, own_mark)
                        });
                        vec![[all; 32]; to.len()]
                    }
                };
                for (target, marks) in to.iter().zip(&results) {
                    let register = own.register(target.slot);
                    own.all.put(register, marks, mask);
                }
            }
            MatrixOp::Load { from, .. } => own.spend(&[from.base], mask),
            MatrixOp::Store { to, from, transposed } => {
                own.spend(&[to.base], mask);
                let (rank, row) = cluster.matrix_addresses(by, to);
                let places: LaneWords = std::array::from_fn(|lane| {
                    let first = 4 * lane as u32;
                    u32::from_le_bytes([first, first + 1, first + 2, first + 3].map(|byte| byte as u8))
                });
                for (number, source) in from.iter().enumerate() {
                    let marks = own.source(*source);
                    for (line, bytes) in matrices::store(&places, *transposed).iter().enumerate() {
                        let address = row[matrices::address_lane(number, line)];
                        for (column, place) in bytes.iter().enumerate() {
                            let byte = |at| Byte::Shared(rank, address + column as u64 + at);
                            own.all.put_bytes(1, byte, marks[usize::from(*place) / 4]);
                        }
                    }
                }
            }
        });
    }

    /// Marks the values that `ldmatrix` has loaded. `good` holds the lanes whose rows were
    /// accessible.
    pub(in crate::engine) fn trace_matrix_load(
        &mut self,
        by: &Executes<'_>,
        access: &Access<'_>,
        (to, transposed): (&[Target], bool),
    ) {
        let Space::Shared { rank } = access.space else { return };
        self.with_marks(by.block, by.warp, by.fragment.frame, |cluster, own| {
            let read = cluster.check.watched(access);
            let rows: [Mark; 32] = std::array::from_fn(|lane| {
                read.filter(|_| access.by.mask >> lane & 1 == 1).map_or(0, |read| own.all.read(read, lane as u32))
            });
            let places = std::array::from_fn(|row| std::array::from_fn(|column| (16 * row + column) as u8));
            for (number, target) in to.iter().enumerate() {
                let words = matrices::load(&places, transposed);
                let marks = words.map(|word| {
                    word.to_le_bytes().iter().fold(0, |all, place| {
                        let lane = matrices::address_lane(number, usize::from(place / 16));
                        let address = access.addresses[lane] + u64::from(place % 16);
                        let held = own.all.of_bytes(1, |at| Byte::Shared(rank, address + at));
                        let both = own.all.join(held, rows[lane]);
                        own.all.join(all, both)
                    })
                });
                let register = own.register(target.slot);
                own.all.put(register, &marks, by.fragment.mask);
            }
        });
    }
}

/// The marks of the accumulators of a matrix product. Lane `4g + t` has elements of row `g` of A,
/// or of rows `g` and `g + 8`; elements of column `g` of B; and accumulators in these rows and in
/// columns `2t` and `2t + 1`.
fn marks_of_product(own: &mut FrameMarks<'_>, products: &Products, marks: &[Marks], sums: usize) -> Vec<Marks> {
    let group = |own: &mut FrameMarks<'_>, registers: &[&Marks], group: usize| {
        let all = registers.iter().flat_map(|marks| &marks[4 * group..][..4]);
        all.fold(0, |all, mark| own.all.join(all, *mark))
    };
    let halves = if products.is_tall { 2 } else { 1 };
    let (a, rest) = marks.split_at(products.a);
    let (b, c) = rest.split_at(products.b);
    let rows: Vec<Marks> = (0..halves)
        .map(|half| {
            let registers: Vec<&Marks> = a.iter().skip(half).step_by(halves).collect();
            let mut by_group = [0; 32];
            (0..8).for_each(|number| by_group[number] = group(own, &registers, number));
            by_group
        })
        .collect();
    let registers: Vec<&Marks> = b.iter().collect();
    let columns: [Mark; 8] = std::array::from_fn(|number| group(own, &registers, number));
    let in_a_row = if products.is_packed { 1 } else { 2 };
    (0..sums)
        .map(|sum| {
            std::array::from_fn(|lane| {
                let row = rows[sum / in_a_row % halves][lane / 4];
                let first = 2 * (lane % 4);
                let column = match products.is_packed {
                    true => own.all.join(columns[first], columns[first + 1]),
                    false => columns[first + sum % 2],
                };
                let both = own.all.join(row, column);
                own.all.join(both, c.get(sum).map_or(0, |marks| marks[lane]))
            })
        })
        .collect()
}
