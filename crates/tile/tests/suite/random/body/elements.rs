//! Operations on elements, each by itself.

use tilewright_tile::{Axis, Binary, Element, Index, Unary};

use super::{Body, LARGE, One, WHOLE};
use crate::random::chance::Chance;

impl<'t> Body<'t> {
    pub(super) fn elements(&mut self, one: &One<'t>, chance: &mut Chance) {
        match chance.below(8) {
            0 | 1 => self.arithmetic(one, chance),
            2 => self.add(one.value.map(chance.one(&[Unary::Negate, Unary::Abs])), one.known.most),
            3 => self.choice(one, chance),
            4 => self.mask(one, chance),
            5 if one.integer => self.bits(one, chance),
            5 => self.rounded(one, chance),
            6 if one.integer => {
                let Some(seed) = self.beside(one, chance) else { return };
                let random = self.build.random(one.value, seed.value, chance.below(4) as u8);
                self.add(random.bits(Binary::ShiftDown, self.build.integer(25)), 127.0);
            }
            6 => self.function(one, chance),
            _ if !one.integer => {
                let (Some(by), Some(more)) = (self.beside(one, chance), self.beside(one, chance)) else { return };
                let most = one.known.most * by.most + more.most;
                // Three shapes that meet two by two may not meet all.
                let meets = [by, more].iter().all(|own| {
                    let shape = own.value.type_of().shape;
                    shape.is_empty() || shape.iter().zip(&one.ty.shape).all(|(a, b)| a == b || *a == 1)
                });
                if one.fits(most) && meets {
                    self.add(one.value.multiply_add(by.value, more.value), most);
                }
            }
            _ => {}
        }
    }

    fn arithmetic(&mut self, one: &One<'t>, chance: &mut Chance) {
        let Some(other) = self.beside(one, chance) else { return };
        let binary = chance.one(&[Binary::Add, Binary::Subtract, Binary::Multiply, Binary::Minimum, Binary::Maximum]);
        let most = match binary {
            Binary::Multiply => one.known.most * other.most,
            _ => one.known.most + other.most,
        };
        if !one.fits(most) {
            return;
        }
        let (a, b) = (one.value, other.value);
        let value = match binary {
            Binary::Add => a + b,
            Binary::Subtract => a - b,
            Binary::Multiply => a * b,
            Binary::Minimum => a.min(b),
            _ => a.max(b),
        };
        self.add(value, most);
    }

    fn choice(&mut self, one: &One<'t>, chance: &mut Chance) {
        let (Some(other), Some(yes), Some(no)) =
            (self.beside(one, chance), self.beside(one, chance), self.beside(one, chance))
        else {
            return;
        };
        let condition = match chance.below(3) {
            0 => one.value.lt(other.value),
            1 => one.value.le(other.value),
            _ => one.value.eq(other.value),
        };
        let shapes = [one.known, other, yes, no].map(|known| known.value.type_of().shape);
        let extent = |mode: usize| shapes.iter().filter_map(|shape| shape.get(mode)).copied().max().unwrap_or(1);
        let meet =
            shapes.iter().all(|shape| shape.iter().enumerate().all(|(mode, own)| *own == 1 || *own == extent(mode)));
        if meet && (0..one.modes()).map(extent).product::<i64>() <= LARGE {
            self.add(condition.select(yes.value, no.value), yes.most.max(no.most));
        }
    }

    /// A choice by sums of coordinates, blocks and sizes.
    fn mask(&mut self, one: &One<'t>, chance: &mut Chance) {
        if one.modes() == 0 {
            return;
        }
        let mut side = || {
            let coordinates = self.build.arange(&one.ty.shape, chance.below(one.modes()));
            let block = Index::block(chance.one(&[Axis::X, Axis::Y])) * chance.one(&[0, 1, 16]);
            let sum = coordinates + self.build.index(block + chance.one(&[-2, 0, 3]));
            if chance.below(3) == 0 { sum + self.build.size(chance.one(&["M", "ceil(M/4)"])) } else { sum }
        };
        let (a, b) = (side(), side());
        let condition = if chance.below(2) == 0 { a.lt(b) } else { a.le(b) };
        let other = self.build.arange(&one.ty.shape, chance.below(one.modes()));
        let other = if one.integer { other } else { other.to(Element::F32) };
        self.add(condition.select(one.value, other), one.known.most.max(64.0));
    }

    fn bits(&mut self, one: &One<'t>, chance: &mut Chance) {
        let Some(other) = self.beside(one, chance) else { return };
        let binary = chance.one(&[
            Binary::And,
            Binary::Or,
            Binary::Xor,
            Binary::ShiftLeft,
            Binary::ShiftRight,
            Binary::ShiftDown,
            Binary::Divide,
            Binary::Remainder,
        ]);
        self.add(one.value.bits(binary, other.value), WHOLE);
    }

    /// A quotient, which is rounded, and then the whole part of it.
    fn rounded(&mut self, one: &One<'t>, chance: &mut Chance) {
        let Some(by) = self.beside(one, chance) else { return };
        let by = by.value.map(Unary::Abs) + 1.0;
        self.add((one.value / by).to(Element::I32).to(Element::F32), one.known.most);
    }

    /// The whole part of a function of what is from 1 to 9.
    fn function(&mut self, one: &One<'t>, chance: &mut Chance) {
        let function =
            chance.one(&[Unary::Exp, Unary::Exp2, Unary::Log2, Unary::Sqrt, Unary::Rsqrt, Unary::Recip, Unary::Tanh]);
        let from = one.value.map(Unary::Abs).min(self.build.number(8.0)) + 1.0;
        self.add((from.map(function) * 8.0).to(Element::I32).to(Element::F32), 65_536.0);
    }
}
