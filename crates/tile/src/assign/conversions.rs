//! The cost of converting a tile from one layout to another.
//!
//! Law: conversions are those of the kernel language between the two distributions, and so are
//! their instruction counts; through shared memory these are approximate.

use std::collections::HashMap;

use tilewright_kernel::{Element, Route};

use crate::error::Reason;
use crate::held::Held;
use crate::weights;

/// The costs of conversions; each pair of layouts is computed once.
pub(crate) struct Conversions {
    known: HashMap<(Held, Held, u32), (Route, u32)>,
    pub(super) warps: u64,
}

impl Conversions {
    pub(crate) fn new(warps: i64) -> Conversions {
        Conversions { known: HashMap::new(), warps: warps.unsigned_abs() }
    }

    /// How threads convert a tile from one layout to another, and about how many instructions of a
    /// warp that takes.
    pub(crate) fn route(&mut self, from: &Held, to: &Held, element: Element) -> Result<(Route, u32), Reason> {
        if from == to {
            return Ok((Route::Registers, 0));
        }
        let lanes = from.threads.len().min(5);
        if from.threads[lanes..] != to.threads[lanes..] {
            // Some warp needs elements that it does not hold. Values that stay adjacent are moved
            // together.
            let most = (32 / element.bits()).max(1).trailing_zeros() as usize;
            let alike =
                |count: &usize| from.values.get(..*count).is_some_and(|own| to.values.get(..*count) == Some(own));
            let beside = (0..=most).rev().find(alike).unwrap_or(0);
            let words = |held: &Held| (held.values() >> beside) as u32;
            return Ok((Route::Shared, Route::through_shared(words(from), words(to))));
        }
        // The conversion stays within warps. Its cost depends neither on the warp nor on the
        // numbering of the bits, so both are normalized to form the key.
        let kept = lanes;
        let mut order: Vec<u8> = from.values.iter().chain(from.threads[..kept].iter().flatten()).copied().collect();
        order.sort_by_key(|bit| from.values.iter().position(|own| own == bit).unwrap_or(usize::MAX));
        let place = |bit: u8| order.iter().position(|own| *own == bit).map(|at| at as u8);
        let part = |held: &Held| Held {
            threads: held.threads[..kept].iter().map(|bit| bit.and_then(place)).collect(),
            values: held.values.iter().filter_map(|bit| place(*bit)).collect(),
        };
        let key = (part(from), part(to), element.bits());
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let shape = [from.size() >> (from.threads[kept..].iter().flatten().count())];
        let found = key.0.distribution(&shape)?.route(&key.1.distribution(&shape)?, element)?;
        self.known.insert(key, found);
        Ok(found)
    }

    pub(crate) fn cost(&mut self, from: &Held, to: &Held, element: Element) -> Result<u64, Reason> {
        let (route, instructions) = self.route(from, to, element)?;
        Ok(weights::conversion(instructions, route == Route::Shared, self.warps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: for random layouts, of which many differ within warps alone, the route and its
    /// instruction count are those that the kernel language computes for the whole layouts.
    #[test]
    fn conversions_go_as_the_kernel_language_says() {
        let mut state = 17_u64;
        let mut below = |end: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % end
        };
        let mut seen = [0; 3];
        for round in 0..600 {
            let bits = 7 + below(3);
            // In two of three cases, the bits of the warp stay the same; in one of three, the bits
            // of the lane.
            let fixed = [0, 1, 6][below(3)];
            let mut held = || {
                let mut order: Vec<u8> = (0..bits as u8).collect();
                for at in (1..bits - fixed).rev() {
                    order.swap(at, below(at + 1));
                }
                order.reverse();
                let (threads, values) = order.split_at(6);
                let mut threads: Vec<Option<u8>> = threads.iter().map(|bit| Some(*bit)).collect();
                threads.reverse();
                Held { threads, values: values.to_vec() }
            };
            let (from, to) = (held(), held());
            let element = [Element::F32, Element::Bf16][round % 2];
            let (found, instructions) = Conversions::new(2).route(&from, &to, element).unwrap();
            let shape = [1 << bits];
            let whole = from.distribution(&shape).unwrap();
            let wanted = whole.route(&to.distribution(&shape).unwrap(), element).unwrap();
            assert_eq!(found, wanted.0, "{round}: {from} to {to}");
            if found != Route::Shared {
                assert_eq!(instructions, wanted.1, "{round}: {from} to {to}");
            }
            seen[match found {
                Route::Registers => 0,
                Route::Shared => 2,
                _ => 1,
            }] += 1;
        }
        assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
    }
}
