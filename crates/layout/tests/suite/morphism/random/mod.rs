//! Pseudo-random numbers, tuples and morphisms, the same in every run.

use tilewright_layout::morphism::{NestMorphism, TupleMorphism};
use tilewright_layout::{Layout, Leaf, Profile, Tree};

/// A small generator (splitmix64), so that a case can be named by its seed.
pub struct Random(pub u64);

impl Random {
    /// A number from 0 up to `bound`, which is positive.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A tuple of at most `most` entries between `least` and 6, size at most `size`.
    pub fn tuple(&mut self, most: usize, least: i64, size: i64) -> Vec<i64> {
        let count = self.below(most + 1);
        let mut tuple: Vec<i64> = Vec::new();
        for _ in 0..count {
            let extent = least + self.below((7 - least) as usize) as i64;
            if tuple.iter().product::<i64>() * extent <= size {
                tuple.push(extent);
            }
        }
        tuple
    }

    /// The places below `count`, shuffled.
    pub fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for place in (1..count).rev() {
            order.swap(place, self.below(place + 1));
        }
        order
    }

    /// A morphism into `codomain`; entries 1 of the domain are sent nowhere, `extra` entries more
    /// are sent nowhere.
    pub fn morphism(&mut self, codomain: &[i64], extra: usize, injective: bool) -> TupleMorphism {
        let order = self.order(codomain.len());
        let hit = self.below(codomain.len() + 1);
        let mut entries: Vec<(i64, Option<usize>)> = order[..hit]
            .iter()
            .filter(|place| codomain[**place] > 1)
            .map(|place| (codomain[*place], Some(*place)))
            .collect();
        if !injective {
            for _ in 0..extra {
                let at = self.below(entries.len() + 1);
                let extent = 1 + self.below(4) as i64;
                if entries.iter().map(|entry| entry.0).product::<i64>() * extent <= 400 {
                    entries.insert(at, (extent, None));
                }
            }
        }
        let (domain, images): (Vec<i64>, Vec<Option<usize>>) = entries.into_iter().unzip();
        TupleMorphism::new(domain, codomain.iter().copied(), images).unwrap()
    }

    /// A profile of this many leaves, of depth 1 at least.
    pub fn profile(&mut self, leaves: usize, depth: usize) -> Profile {
        let mut modes = Vec::new();
        let mut rest = leaves;
        while rest > 0 {
            let count = 1 + self.below(rest);
            if count == 1 && self.below(3) > 0 || depth == 0 {
                modes.extend((0..count).map(|_| Profile::leaf()));
            } else if count == leaves && self.below(2) == 0 {
                continue;
            } else {
                modes.push(self.profile(count, depth - 1));
            }
            rest -= count;
        }
        Profile::tuple(modes.iter()).unwrap()
    }

    /// The flat morphism with its tuples nested at random.
    pub fn nest(&mut self, flat: &TupleMorphism, codomain: Option<&Tree<i64>>) -> NestMorphism {
        let domain = self.tree(flat.domain());
        let codomain = codomain.cloned().unwrap_or_else(|| self.tree(flat.codomain()));
        NestMorphism::new(&domain, &codomain, flat.map().images()).unwrap()
    }

    pub fn tree(&mut self, leaves: &[i64]) -> Tree<i64> {
        if leaves.len() == 1 && self.below(3) == 0 {
            return Tree::leaf(leaves[0]);
        }
        Tree::new(self.profile(leaves.len(), 3), leaves.iter().copied()).unwrap()
    }

    /// A refinement of an entry.
    pub fn part(&mut self, extent: i64) -> Tree<i64> {
        let mut pieces = Vec::new();
        let mut rest = extent;
        while rest > 1 {
            let divisors: Vec<i64> = (2..=rest).filter(|divisor| rest % divisor == 0).collect();
            let piece = self.pick(&divisors);
            pieces.push(piece);
            rest /= piece;
        }
        if self.below(6) == 0 {
            let at = self.below(pieces.len() + 1);
            pieces.insert(at, 1);
        }
        match pieces[..] {
            [] => Tree::leaf(1),
            [only] => Tree::leaf(only),
            _ => Tree::new(self.profile(pieces.len(), 2), pieces).unwrap(),
        }
    }
}

/// The layout with every stride of an extent 1 set to 0: it cannot be observed.
pub fn observable(layout: &Layout) -> Layout {
    let leaves = layout.tree().map(|leaf| Leaf { stride: if leaf.extent == 1 { 0 } else { leaf.stride }, ..*leaf });
    Layout::from_tree(leaves).unwrap()
}

/// The function of a layout, by the definition: no code of the library.
pub fn value(layout: &Layout, index: i64) -> i64 {
    let mut rest = index;
    let mut value = 0;
    for leaf in layout.leaves() {
        value += rest % leaf.extent * leaf.stride;
        rest /= leaf.extent;
    }
    value
}

/// Whether two layouts have the same function, by the definition.
pub fn same(a: &Layout, b: &Layout) -> bool {
    a.size() == b.size() && (0..a.size()).all(|index| value(a, index) == value(b, index))
}

/// The layouts, without entries 1 and merged: equal exactly when the functions are.
pub fn canonical(layout: &Layout) -> Layout {
    // The algebra keeps `():()` as it is.
    if layout.leaves().is_empty() { Layout::unit() } else { layout.coalesce().unwrap() }
}

/// The layout of a morphism.
pub fn encoded(f: &NestMorphism) -> Layout {
    f.encoded_layout().unwrap()
}
