//! Conversions from one type to another.

use tilewright_tile::{Element, Reduction};

use super::{Body, EXACT, One, WHOLE};
use crate::random::chance::Chance;

/// Numbers of four bits become eight times as many.
const WORDS: i64 = 256;

impl<'t> Body<'t> {
    pub(super) fn types(&mut self, one: &One<'t>, chance: &mut Chance) {
        let most = one.known.most;
        match chance.below(4) {
            0 if most <= EXACT => {
                let to = if one.integer { Element::F32 } else { Element::I32 };
                self.add(one.value.to(to), most);
            }
            1 if !one.integer => {
                let bits = one.value.recast(Element::I32);
                match chance.below(2) {
                    0 => self.add(bits, WHOLE),
                    _ => self.add(bits.recast(Element::F32), most),
                }
            }
            2 if one.integer && one.modes() > 0 => {
                let element = chance.one(&[Element::F32, Element::I32, Element::Bf16, Element::F16]);
                let last = one.modes() - 1;
                let words = if one.size() > WORDS { one.value.reduce(Reduction::Maximum, &[last]) } else { one.value };
                if words.type_of().size() > WORDS {
                    return;
                }
                let found = words.unpack(element, chance.below(2) == 0);
                let narrow = matches!(element, Element::Bf16 | Element::F16);
                self.add(if narrow { found.to(Element::F32) } else { found }, 15.0);
            }
            _ if !one.integer => {
                use Element::{Bf16, E4M3, E5M2, F16, I8, U8};
                let narrow = chance.one(&[E4M3, E5M2, Bf16, F16, I8, U8]);
                // f16 ends at 65504.
                if most > 60_000.0 && narrow == F16 {
                    return;
                }
                let mut wide = one.value.to(narrow);
                let floats = matches!(narrow, Bf16 | F16);
                // Converts one narrow type to another, which may be narrower.
                if floats && chance.below(2) == 0 {
                    wide = wide.to(chance.one(&[E4M3, E5M2]));
                }
                // e5m2 is off by one in eight at most.
                self.add(wide.to(Element::F32), most.max(1.0) * 1.5);
            }
            _ => {}
        }
    }
}
