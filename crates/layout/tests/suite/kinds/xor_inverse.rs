//! Inverses, complements, conversions and predicates of layouts with XOR strides, against the
//! definition, at every index.

use std::collections::{BTreeSet, HashMap};

use crate::random::Random;
use tilewright_layout::{BitMatrix, Layout, LayoutError, Leaf, Tiler, Tree, Xor};

/// `i * d`: the XOR of `d` shifted by each bit of `i`.
fn steps(i: u64, d: u64) -> u64 {
    (0..32).filter(|bit| i >> bit & 1 == 1).fold(0, |value, bit| value ^ (d << bit))
}

fn value(layout: &[(u64, u64)], index: u64) -> u64 {
    let (mut rest, mut sum) = (index, 0);
    for (position, (extent, stride)) in layout.iter().enumerate() {
        sum ^= steps(if position + 1 == layout.len() { rest } else { rest % extent }, *stride);
        rest /= extent;
    }
    sum
}

fn flat(leaves: &[(u64, u64)]) -> Layout<Xor> {
    let leaf = |(extent, stride): &(u64, u64)| Leaf { extent: *extent as i64, stride: Xor::new(*stride).unwrap() };
    Layout::from_tree(Tree::flat(leaves.iter().map(leaf)).unwrap()).unwrap()
}

fn values(layout: &Layout<Xor>) -> Vec<u64> {
    (0..layout.size()).map(|i| layout.eval(&i).unwrap().bits()).collect()
}

fn layouts(extents: &[u64], strides: &[u64]) -> Vec<Vec<(u64, u64)>> {
    let leaves: Vec<(u64, u64)> = extents.iter().flat_map(|s| strides.iter().map(|d| (*s, *d))).collect();
    let pairs = leaves.iter().flat_map(|a| leaves.iter().map(|b| vec![*a, *b]));
    leaves.iter().map(|leaf| vec![*leaf]).chain(pairs).collect()
}

/// Whether some layout with XOR strides has these values.
fn is_layout_function(h: &[u64]) -> bool {
    let n = h.len();
    n == 1
        || (2..=n).any(|t| {
            n.is_multiple_of(t)
                && (0..n).all(|i| h[i] == steps((i % t) as u64, h[1]) ^ h[i - i % t])
                && is_layout_function(&h.iter().copied().step_by(t).collect::<Vec<_>>())
        })
}

/// The size of the largest right inverse: every choice of indices for the offsets below each size
/// is tried.
fn largest_right_inverse(h: &[u64]) -> usize {
    let mut at: HashMap<u64, Vec<u64>> = HashMap::new();
    for (index, offset) in h.iter().enumerate() {
        at.entry(*offset).or_default().push(index as u64);
    }
    let most = (0..).find(|offset| !at.contains_key(offset)).unwrap() as usize;
    (1..=most)
        .rev()
        .find(|size| {
            let choices: usize = (1..*size).map(|offset| at[&(offset as u64)].len()).product();
            (0..choices).any(|choice| {
                let mut rest = choice;
                let chosen: Vec<u64> = (0..*size)
                    .map(|offset| {
                        let indices = &at[&(offset as u64)];
                        if offset == 0 {
                            return 0;
                        }
                        let index = indices[rest % indices.len()];
                        rest /= indices.len();
                        index
                    })
                    .collect();
                is_layout_function(&chosen)
            })
        })
        .unwrap()
}

#[test]
fn right_inverses_are_the_largest() {
    let (mut compared, mut more) = (0, 0);
    for plain in layouts(&[1, 2, 3, 4, 5, 6, 8], &(0..16).collect::<Vec<_>>()) {
        let layout = flat(&plain);
        let h = values(&layout);
        let right = layout.right_inverse().unwrap();
        for (offset, index) in values(&right).into_iter().enumerate() {
            assert!(h.get(index as usize) == Some(&(offset as u64)), "{layout}: {right} at {offset}");
        }
        // Every choice of indices is too much where offsets come up often.
        let mut counts: HashMap<u64, usize> = HashMap::new();
        h.iter().for_each(|offset| *counts.entry(*offset).or_default() += 1);
        if counts.values().map(|count| count.ilog2() as usize + usize::from(*count > 1)).sum::<usize>() <= 9 {
            assert_eq!(right.size() as usize, largest_right_inverse(&h), "{layout}: {right}");
            compared += 1;
            more += usize::from(right.size() > 1);
        }
    }
    println!("{compared} compared with the largest, {more} of them above 1");
    assert!(compared > 8_000 && more > 1_000, "{compared} {more}");
}

#[test]
fn left_inverses_send_every_offset_back() {
    // Candidates for a left inverse, by brute force: two modes, and three of few strides.
    let mut candidates: Vec<Vec<(u64, u64)>> = Vec::new();
    for t in 2..=9 {
        for v in 0..16 {
            candidates.extend((0..16).map(|w| vec![(t, v), (1, w)]));
            for u in 2..=4 {
                candidates.extend((0..16).map(|w| vec![(t, v), (u, (v * 5 + 3) % 16), (1, w)]));
            }
        }
    }
    let (mut found, mut none, mut undecided) = (0, 0, 0);
    for plain in layouts(&[2, 3, 4, 5, 6], &[0, 1, 2, 3, 4, 5, 6, 8, 12]) {
        let layout = flat(&plain);
        let h = values(&layout);
        match layout.left_inverse() {
            Ok(left) => {
                for offset in &h {
                    let index = left.eval(&(*offset as i64)).unwrap().bits() as usize;
                    assert_eq!(h.get(index), Some(offset), "{layout}: {left} at offset {offset}");
                }
                found += 1;
            }
            Err(error) => {
                let right = |candidate: &&Vec<(u64, u64)>| {
                    h.iter().all(|offset| h.get(value(candidate, *offset) as usize) == Some(offset))
                };
                let missed = candidates.iter().find(right);
                assert_eq!(missed, None, "{layout}: {error}");
                match error.code() {
                    "E0114" => none += 1,
                    "E0110" => undecided += 1,
                    _ => panic!("{layout}: {error}"),
                }
            }
        }
    }
    println!("{found} left inverses, {none} do not exist, {undecided} undecided");
    assert!(found > 500 && none > 100 && undecided == 0, "{found} {none} {undecided}");
}

#[test]
fn powers_of_two_always_have_inverses() {
    let mut random = Random(7);
    for _ in 0..4_000 {
        let leaves: Vec<(u64, u64)> =
            (0..1 + random.below(4)).map(|_| (1 << random.below(7), random.below(1 << 20) as u64)).collect();
        let layout = flat(&leaves);
        let (left, right) = (layout.left_inverse().unwrap(), layout.right_inverse().unwrap());
        for _ in 0..200 {
            let index = random.below(layout.size());
            let offset = layout.eval(&index).unwrap();
            let back = left.eval(&(offset.bits() as i64)).unwrap().bits() as i64;
            assert!(back < layout.size() && layout.eval(&back).unwrap() == offset, "{layout}: {left} at {offset}");
            let offset = random.below(right.size());
            let index = right.eval(&offset).unwrap().bits() as i64;
            assert!(index < layout.size() && layout.eval(&index).unwrap().bits() as i64 == offset, "{layout}: {right}");
        }
        // The next power of two is no offset.
        let matrix = layout.bit_matrix().unwrap();
        assert_eq!(matrix.solve(right.size() as u64), None, "{layout}: {right}");
        assert!(Layout::<Xor>::of_bit_matrix(&matrix).unwrap().equivalent(&layout));
        assert_eq!(layout.is_injective().unwrap(), matrix.is_injective());
    }
}

#[test]
fn known_right_inverses() {
    let right = |text: &str| text.parse::<Layout<Xor>>().unwrap().right_inverse().unwrap().to_string();
    assert_eq!(right("(3,8):(^1,^5)"), "3:^1");
    assert_eq!(right("(8,8):(^9,^1)"), "(8,8):(^8,^9)");
    // The one of integers ends at 8; with XOR strides there is one of every offset.
    assert_eq!(right("(8,8):(^1,^13)"), "(8,2,2,2):(^1,^13,^31,^59)");
    assert_eq!(right("(3,4):(^0,^1)"), "(2,2):(^3,^8)");
}

#[test]
fn right_inverses_of_many_indices_are_the_largest() {
    let cases = [
        ("(3,65536):(^1,^4)", 3),
        ("(2,3,65536):(^1,^2,^8)", 6),
        ("(6,131072):(^1,^8)", 6),
        ("(65536,6):(^1,^65536)", 393_216),
        ("65537:^3", 1),
        ("65537:^1", 65_537),
        ("(4,3,32768):(^8,^1,^32)", 3),
        ("(32768,3,4):(^32,^1,^4)", 3),
    ];
    for (text, size) in cases {
        let layout: Layout<Xor> = text.parse().unwrap();
        let right = layout.right_inverse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(right.size(), size, "{text}: {right}");
        for offset in (0..size).step_by((size / 4096).max(1) as usize).chain([size - 1]) {
            let index = right.eval(&offset).unwrap().bits() as i64;
            assert!(index < layout.size(), "{text}: {right} at {offset}");
            assert_eq!(layout.eval(&index).unwrap().bits() as i64, offset, "{text}: {right}");
        }
        // Nothing is longer: there is no index of the next offset.
        let reached = (0..layout.size()).any(|index| layout.eval(&index).unwrap().bits() as i64 == size);
        assert!(!reached, "{text}");
    }
    // Nothing longer is a layout, though all offsets up to 65536 have indices: the low block is
    // that of `(5,64):(^3,^1)`, of which every choice was tried.
    let short: Layout<Xor> = "(1024,5,64):(^1,^3072,^1024)".parse().unwrap();
    let block: Layout<Xor> = "(5,64):(^3,^1)".parse().unwrap();
    assert_eq!(short.right_inverse().unwrap().size(), 1024 * block.right_inverse().unwrap().size());
    // Where the largest is not found, there is no answer.
    for text in ["(65537,3):(^3,^1)", "(65536,3,2):(^0,^1,^3)"] {
        let too_many: Layout<Xor> = text.parse().unwrap();
        assert_eq!(too_many.right_inverse().unwrap_err().code(), "E0110", "{text}");
    }
}

/// Whether the values of both, all sums, are `0 .. n`, each once.
fn fills(h: &[u64], complement: &[u64]) -> bool {
    let all: BTreeSet<u64> = h.iter().flat_map(|a| complement.iter().map(move |b| a ^ b)).collect();
    all.len() == h.len() * complement.len() && all.last().is_some_and(|last| *last as usize + 1 == all.len())
}

/// Whether a set of offsets and copies of it, moved by XOR, can be laid side by side onto `0 .. n`.
fn can_fill(h: &[u64], n: u64) -> bool {
    let mut taken = vec![false; n as usize];
    let fits = n.is_multiple_of(h.len() as u64) && h.iter().all(|offset| *offset < n);
    // The set itself lies where it is, and no offset of it comes up twice.
    fits && h.iter().all(|offset| !std::mem::replace(&mut taken[*offset as usize], true)) && tiles(h, n, &mut taken)
}

/// Whether the free places can be covered, the least of them first.
fn tiles(h: &[u64], n: u64, taken: &mut Vec<bool>) -> bool {
    let Some(free) = taken.iter().position(|taken| !taken) else { return true };
    h.iter().any(|offset| {
        let by = free as u64 ^ offset;
        if !h.iter().all(|offset| offset ^ by < n && !taken[(offset ^ by) as usize]) {
            return false;
        }
        h.iter().for_each(|offset| taken[(offset ^ by) as usize] = true);
        let done = tiles(h, n, taken);
        h.iter().for_each(|offset| taken[(offset ^ by) as usize] = false);
        done
    })
}

#[test]
fn complements_fill_exactly_where_it_can_be_done() {
    let (mut whole, mut refused) = (0, 0);
    for plain in layouts(&[1, 2, 3, 4, 5, 6], &[0, 1, 2, 3, 4, 5, 6, 8, 10]) {
        let layout = flat(&plain);
        let h = values(&layout.filter_zeros());
        for target in [1, 5, 12, 16, 32] {
            match layout.complement(&target) {
                Ok(complement) => {
                    let c = values(&complement);
                    assert!(fills(&h, &c), "{layout} in {target}: {complement}");
                    let filled = (h.len() * c.len()) as i64;
                    assert!(filled >= target, "{layout} in {target}: {complement}");
                    assert!(c.windows(2).all(|pair| pair[0] < pair[1]) || c.len() == 1, "{layout}: {complement}");
                    assert_eq!(complement.coalesce().unwrap(), complement);
                    // No smaller target would do.
                    let least = (target..filled).find(|n| can_fill(&h, *n as u64));
                    assert_eq!(least, None, "{layout} in {target}: {complement} fills {filled}");
                    whole += 1;
                }
                Err(error) => {
                    assert!(["E0114", "E0116"].contains(&error.code()), "{layout}: {error}");
                    let can = (target..=64).find(|n| can_fill(&h, *n as u64));
                    assert_eq!(can, None, "{layout} in {target}: {error}");
                    refused += 1;
                }
            }
        }
    }
    println!("{whole} complements, {refused} refused");
    assert!(whole > 5_000 && refused > 1_000, "{whole} {refused}");
}

#[test]
fn weak_complements_are_disjoint() {
    for plain in layouts(&[1, 2, 3, 4, 5, 6], &[0, 1, 2, 3, 4, 5, 6, 8, 10]) {
        let layout = flat(&plain);
        let distinct: BTreeSet<u64> = values(&layout).into_iter().collect();
        let complement = layout.weak_complement(&24).unwrap();
        let all: BTreeSet<u64> =
            values(&complement).iter().flat_map(|c| distinct.iter().map(move |offset| c ^ offset)).collect();
        assert_eq!(all.len(), distinct.len() * complement.size() as usize, "{layout}: {complement}");
        if let Ok(whole) = layout.complement(&24) {
            assert!(whole.size() <= complement.size() || plain.iter().any(|(extent, _)| !extent.is_power_of_two()));
        }
        let open = layout.weak_complement_open().unwrap();
        let next = open.leaves().last().unwrap();
        assert!(next.extent == 1 && distinct.iter().all(|offset| *offset < next.stride.bits()), "{layout}: {open}");
    }
}

#[test]
fn predicates_are_the_definition() {
    let mut injective = 0;
    for plain in layouts(&[1, 2, 3, 4, 5, 6, 7, 8], &(0..16).collect::<Vec<_>>()) {
        let layout = flat(&plain);
        let h = values(&layout);
        let distinct: BTreeSet<u64> = h.iter().copied().collect();
        let top = distinct.last().unwrap() + 1;
        assert_eq!(layout.cosize().unwrap() as u64, top, "{layout}");
        assert_eq!(layout.is_injective().unwrap(), distinct.len() == h.len(), "{layout}");
        assert_eq!(layout.is_surjective().unwrap(), distinct.len() as u64 == top, "{layout}");
        assert_eq!(layout.is_bijective().unwrap(), distinct.len() == h.len() && h.len() as u64 == top, "{layout}");
        assert_eq!(layout.image().unwrap().into_iter().map(Xor::bits).collect::<Vec<_>>(), Vec::from_iter(distinct));
        let bits =
            plain.iter().flat_map(|(s, d)| (0..4).filter(move |bit| (s - 1) >> bit != 0).map(move |bit| d << bit));
        assert_eq!(
            layout.coshape().unwrap() as u64,
            bits.fold(0, |all, bit| all | bit).checked_ilog2().map_or(1, |top| 2 << top)
        );
        injective += usize::from(layout.is_injective().unwrap());
    }
    assert!(injective > 1_000);
    assert_eq!("65537:^1".parse::<Layout<Xor>>().unwrap().cosize().unwrap(), 65537);
    assert_eq!("65537:^3".parse::<Layout<Xor>>().unwrap().cosize().unwrap_err().code(), "E0110");
}

/// The layouts of integers with these values.
fn is_integer_function(h: &[u64]) -> bool {
    let n = h.len();
    n == 1
        || (2..=n).any(|t| {
            n.is_multiple_of(t)
                && (0..n).all(|i| h[i] == (i % t) as u64 * h[1] + h[i - i % t])
                && is_integer_function(&h.iter().copied().step_by(t).collect::<Vec<_>>())
        })
}

#[test]
fn conversions_keep_the_function_and_exist_when_they_can() {
    let (mut both, mut neither, mut from, mut not) = (0, 0, 0, 0);
    for plain in layouts(&[1, 2, 3, 4, 5, 6, 9], &(0..16).collect::<Vec<_>>()) {
        let layout = flat(&plain);
        let h = values(&layout);
        // The mode-by-mode sum must be that of integers, too, where the nesting is kept.
        let adds_up = (0..h.len()).all(|index| {
            let first = index % plain[0].0 as usize;
            h[index] == h[first] + h[index - first]
        });
        let modes =
            [&h[..plain[0].0 as usize], &h.iter().copied().step_by(plain[0].0 as usize).collect::<Vec<_>>()[..]];
        let exists = adds_up && modes.iter().all(|mode| is_integer_function(mode));
        match layout.integers() {
            Ok(integers) => {
                let found: Vec<u64> = (0..integers.size()).map(|i| integers.eval(&i).unwrap() as u64).collect();
                assert!(found == h && integers.profile() == layout.profile(), "{layout}: {integers}");
                assert!(Layout::<Xor>::of_integers(&integers).unwrap().equivalent(&layout), "{layout}: {integers}");
                both += 1;
            }
            Err(error) => {
                assert!(!exists && error.code() == "E0124", "{layout}: {error}");
                neither += 1;
            }
        }
        let text = plain.iter().fold((String::new(), String::new()), |(s, d), (extent, stride)| {
            (format!("{s}{extent},"), format!("{d}{stride},"))
        });
        let integers: Layout = format!("({}):({})", text.0, text.1).parse().unwrap();
        let g: Vec<u64> = (0..integers.size()).map(|i| integers.eval(&i).unwrap() as u64).collect();
        let first = plain[0].0 as usize;
        let adds_up = (0..g.len()).all(|index| g[index] == g[index % first] ^ g[index - index % first]);
        let modes = [&g[..first], &g.iter().copied().step_by(first).collect::<Vec<_>>()[..]];
        let exists = adds_up && modes.iter().all(|mode| is_layout_function(mode));
        match Layout::<Xor>::of_integers(&integers) {
            Ok(xor) => {
                assert_eq!(values(&xor), g, "{integers}: {xor}");
                from += 1;
            }
            Err(error) => {
                assert!(!exists && error.code() == "E0124", "{integers}: {error}");
                not += 1;
            }
        }
    }
    println!("{both} are layouts of integers, {neither} not; {from} integer layouts have XOR strides, {not} not");
    assert!(both > 1_000 && neither > 1_000 && from > 1_000 && not > 1_000, "{both} {neither} {from} {not}");
    let negative = Layout::<Xor>::of_integers(&"4:-1".parse().unwrap()).unwrap_err();
    assert!(matches!(negative, LayoutError::Negative { stride: -1, .. }));
    assert_eq!("(3,4):(^1,^4)".parse::<Layout<Xor>>().unwrap().bit_matrix().unwrap_err().code(), "E0116");
    let wide = BitMatrix::new(64, [1 << 63]).unwrap();
    assert_eq!(Layout::<Xor>::of_bit_matrix(&wide).unwrap_err().code(), "E0103");
}

#[test]
fn divisions_and_products_are_the_definition() {
    let (mut divided, mut refused, mut products) = (0, 0, 0);
    let blocks = layouts(&[2, 3, 4, 6, 8], &[0, 1, 2, 3, 5, 8, 9]);
    for plain in &blocks {
        let layout = flat(plain);
        for tile in ["2:1", "2:2", "4:1", "3:1", "(2,2):(1,4)", "(2,2):(4,1)", "4:2"] {
            let tile: Layout = tile.parse().unwrap();
            let rest = tile.complement(&layout.size()).unwrap();
            let order = Layout::tuple([&tile, &rest]).unwrap();
            match layout.logical_divide(&Tiler::from(&tile)) {
                Ok(result) => {
                    for index in 0..order.size() {
                        let expected = value(plain, order.eval(&index).unwrap() as u64);
                        assert_eq!(result.eval(&index).unwrap().bits(), expected, "{layout} by {tile}: {result}");
                    }
                    assert_eq!(result.mode(0).unwrap().size(), tile.size());
                    divided += 1;
                }
                Err(error) => {
                    assert_eq!(layout.compose(&order).unwrap_err().code(), error.code(), "{layout} by {tile}");
                    refused += 1;
                }
            }
            let product = match layout.logical_product(&Tiler::from(&tile)) {
                Ok(product) => product,
                Err(error) => {
                    let open = layout.weak_complement_open().unwrap();
                    assert_eq!(open.compose(&tile).unwrap_err(), error, "{layout} times {tile}");
                    continue;
                }
            };
            assert_eq!(product.mode(0).unwrap(), layout);
            let copies = product.mode(1).unwrap();
            let apart: BTreeSet<u64> = values(&layout).into_iter().collect();
            let places: BTreeSet<u64> = values(&copies).into_iter().collect();
            assert_eq!(places.len() as i64, tile.size(), "{layout} times {tile}: {copies}");
            let all: BTreeSet<u64> = apart.iter().flat_map(|a| places.iter().map(move |b| a ^ b)).collect();
            assert_eq!(all.len(), apart.len() * places.len(), "{layout} times {tile}: {copies}");
            products += 1;
        }
    }
    println!("{divided} divided, {refused} refused, {products} products");
    assert!(divided > 1_500 && refused > 500);
    let tile: Layout<Xor> = "(8,8):(^1,^9)".parse().unwrap();
    let by_mode: Tiler = "[4:1;2:1]".parse().unwrap();
    assert_eq!(tile.zipped_divide(&by_mode).unwrap().to_string(), "((4,2),(2,4)):((^1,^9),(^4,^18))");
    let shape: Tree<i64> = "(16,32)".parse().unwrap();
    assert_eq!(tile.tile_to_shape(&shape, None).unwrap().to_string(), "((8,2),(8,4)):((^1,^64),(^9,^128))");
    assert_eq!(tile.compose_tiler(&by_mode).unwrap().to_string(), "(4,2):(^1,^9)");
    assert_eq!(
        tile.raked_product(&"(2,2):(1,2)".parse::<Layout>().unwrap()).unwrap().to_string(),
        "((2,8),(2,8)):((^64,^1),(^128,^9))"
    );
}
