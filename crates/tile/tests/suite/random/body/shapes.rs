//! Other shapes and other layouts of the same elements.

use tilewright_tile::Element;

use super::{Body, LARGE, One};
use crate::random::chance::Chance;
use crate::random::layout::held;

impl<'t> Body<'t> {
    pub(super) fn shapes(&mut self, one: &One<'t>, chance: &mut Chance) {
        let (shape, most) = (&one.ty.shape, one.known.most);
        match chance.below(5) {
            0 if one.modes() > 1 => self.add(one.value.transpose(&chance.order(one.modes())), most),
            1 if one.modes() > 0 => {
                let mut left = one.size();
                let mut shape = Vec::new();
                for _ in 1..chance.one(&[1, 2, 2, 2, 3, 5]) {
                    let extent = 1 << chance.below(left.trailing_zeros() as usize + 1);
                    shape.push(extent);
                    left /= extent;
                }
                shape.push(left);
                self.add(one.value.reshape(&shape), most);
            }
            2 => {
                let shape: Vec<i64> = match shape[..] {
                    [] => vec![chance.one(&[4, 16]), chance.one(&[8, 32])],
                    _ => shape
                        .iter()
                        .map(|extent| if *extent == 1 { chance.one(&[1, 4, 16]) } else { *extent })
                        .collect(),
                };
                if shape.iter().product::<i64>() <= LARGE {
                    self.add(one.value.broadcast(&shape), most);
                }
            }
            3 if one.modes() > 0 => {
                let index = self.build.arange(shape, chance.below(one.modes()));
                self.add(if one.integer { index } else { index.to(Element::F32) }, LARGE as f64);
            }
            _ if one.modes() > 0 => {
                if let Some(held) = held(shape, self.warps, chance) {
                    self.add(one.value.held(&held), most);
                }
            }
            _ => {}
        }
    }
}
