//! Operations on the elements along a mode, or on all of them.

use tilewright_tile::{Element, Reduction};

use super::{Body, LARGE, One, WHOLE};
use crate::random::chance::Chance;

impl<'t> Body<'t> {
    pub(super) fn wholes(&mut self, one: &One<'t>, chance: &mut Chance) {
        if one.modes() == 0 {
            return;
        }
        let (mode, most) = (chance.below(one.modes()), one.known.most);
        let extent = one.ty.shape[mode];
        match chance.below(9) {
            0 | 1 => {
                let along: Vec<usize> = (0..one.modes()).filter(|_| chance.below(2) == 0).collect();
                let most = most * along.iter().map(|mode| one.ty.shape[*mode] as f64).product::<f64>();
                if !along.is_empty() && one.fits(most) {
                    let reduction = self.reduction(one, chance);
                    self.add(one.value.reduce(reduction, &along), most);
                }
            }
            2 | 3 => {
                let most = most * extent as f64;
                if !one.fits(most) {
                    return;
                }
                let reduction = self.reduction(one, chance);
                match chance.below(2) {
                    0 => self.add(one.value.scan(reduction, mode), most),
                    // The first of f32 would be infinite.
                    _ if one.integer => self.add(one.value.scan_before(reduction, mode), WHOLE),
                    _ => self.add(one.value.scan_before(Reduction::Sum, mode), most),
                }
            }
            4 => self.add(one.value.argmax(mode), extent as f64),
            5 | 6 => {
                let count = 1 << chance.below(extent.trailing_zeros() as usize + 1);
                self.add(one.value.top(mode, count), most);
            }
            7 if one.integer => self.add(one.value.histogram(chance.one(&[1, 8, 32])), one.size() as f64),
            _ => self.by_itself(one),
        }
    }

    /// Products of integers wrap around; those of f32 would not be exact.
    fn reduction(&self, one: &One<'t>, chance: &mut Chance) -> Reduction {
        let of_all = [Reduction::Sum, Reduction::Maximum, Reduction::Minimum, Reduction::Product];
        chance.one(if one.integer { &of_all } else { &of_all[..3] })
    }

    /// The product of a tile by its own transpose.
    fn by_itself(&mut self, one: &One<'t>) {
        let [m, k] = one.ty.shape[..] else { return };
        if one.integer || one.known.most > 128.0 || m < 16 || k < 16 {
            return;
        }
        let most = one.known.most * one.known.most * k as f64;
        if one.fits(most) && m * m <= LARGE && m / 16 * (m / 8) >= i64::from(self.warps) {
            let a = one.value.to(Element::Bf16);
            let b = a.transpose(&[1, 0]);
            self.add(a.dot(b, self.build.full(&[m, m], 1.0)), most + 1.0);
        }
    }
}
