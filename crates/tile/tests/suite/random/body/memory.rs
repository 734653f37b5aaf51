//! What is read by numbers that are known on the device: rows and columns, and one of several
//! matrices.

use tilewright_tile::{Axis, Binary, Element, Index, Value};

use super::{Body, One, WHOLE};
use crate::random::chance::Chance;

/// What lies past the edges.
const PAST: [f64; 3] = [2.0, 0.0, 7.0];

impl<'t> Body<'t> {
    pub(super) fn memory(&mut self, one: &One<'t>, chance: &mut Chance) {
        let block = [Index::block(Axis::X), Index::block(Axis::Y)];
        let [x, y] = block;
        match chance.below(4) {
            // Rows of x by numbers, some of them past its edges.
            0 => {
                let rows = self.numbers(self.known.len(), |shape| matches!(shape, [1..=32, 1]));
                let rows = self.places(&rows, &[8, 1], 0, chance);
                let shape = [rows.type_of().shape[0], 32];
                let read = self.build.gather(self.x, &shape, &[0.into(), y], &[(0, rows)], chance.one(&PAST));
                self.add(read.to(Element::F32), 8.0);
            }
            1 => {
                let columns = self.numbers(self.known.len(), |shape| matches!(shape, [1, 1..=32]));
                let columns = self.places(&columns, &[1, 16], 1, chance);
                let shape = [16, columns.type_of().shape[1]];
                let read = self.build.gather(self.x, &shape, &[x, 0.into()], &[(1, columns)], chance.one(&PAST));
                self.add(read.to(Element::F32), 8.0);
            }
            _ => self.by_one_of_several(one, chance),
        }
    }

    /// Coordinates along a mode.
    fn places(&self, known: &[Value<'t>], shape: &[i64], mode: usize, chance: &mut Chance) -> Value<'t> {
        match chance.below(2) {
            0 if !known.is_empty() => chance.one(known),
            _ => self.build.arange(shape, mode).bits(Binary::Xor, self.build.integer(5)),
        }
    }

    /// The product of a tile by the matrix of `w` that a number says, which there may be or not.
    fn by_one_of_several(&mut self, one: &One<'t>, chance: &mut Chance) {
        let fits = !one.integer && one.ty.shape == [16, 32] && one.known.most <= 16.0;
        if !fits || self.warps > 2 {
            return;
        }
        let moved = Index::block(Axis::X) * chance.one(&[0, 0, 1]) + chance.one(&[0, 0, 1, -1]);
        let (shape, at) = ([1, 32, 16], [moved, 0.into(), 0.into()]);
        // Copies are ahead of their iterations: what says where they read is known before the loop.
        let ahead = self.numbers(self.around, |shape| shape == [1, 1, 1]);
        let right = if !ahead.is_empty() && chance.below(2) == 0 {
            self.build.stage_at(self.w, &shape, &at, (0, chance.one(&ahead)), [1, 2])
        } else {
            let found = self.numbers(self.known.len(), |shape| shape.iter().product::<i64>() == 1);
            let which = match chance.below(3) {
                0 if !found.is_empty() => chance.one(&found),
                _ => self.build.index(Index::block(Axis::X) + chance.one(&[-1, 0, 2])),
            };
            let which = which.reshape(&[1, 1, 1]);
            self.add(which, WHOLE);
            match chance.below(2) {
                0 if self.around == 0 => self.build.stage_at(self.w, &shape, &at, (0, which), [1, 2]),
                _ => self.build.gather(self.w, &shape, &at, &[(0, which)], 0.0).reshape(&[32, 16]),
            }
        };
        let sums = self.build.full(&[16, 16], chance.one(&[0.0, 3.0]));
        self.add(one.value.to(Element::Bf16).dot(right, sums), 16.0 * 6.0 * 32.0 + 3.0);
    }
}
