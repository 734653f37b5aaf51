//! XOR strides, against the definition.
//!
//! What is compared shares no code with the library: values are computed bit by bit, and whether a
//! function is that of a layout is decided by trying every first extent that divides its size.

use std::collections::HashMap;

use tilewright_layout::{Layout, Leaf, Tree, Xor};

/// `i * d`: the XOR of `d` shifted by each bit of `i`.
fn steps(i: u64, d: u64) -> u64 {
    (0..32).filter(|bit| i >> bit & 1 == 1).fold(0, |value, bit| value ^ (d << bit))
}

/// The value of a flat layout at an index, the last mode endless, mirrored below zero.
fn value(layout: &[(i64, u64)], index: i64) -> u64 {
    let (mut rest, mut sum) = (index.unsigned_abs(), 0);
    for (position, (extent, stride)) in layout.iter().enumerate() {
        let last = position + 1 == layout.len();
        sum ^= steps(if last { rest } else { rest % extent.unsigned_abs() }, *stride);
        rest /= extent.unsigned_abs();
    }
    sum
}

/// The coalesced layouts that have these values: every first extent is tried.
fn layouts_of(h: &[u64]) -> Vec<Vec<(i64, u64)>> {
    let n = h.len();
    if n == 1 {
        return if h[0] == 0 { vec![vec![]] } else { vec![] };
    }
    let mut found = Vec::new();
    for t in (2..=n).filter(|t| n.is_multiple_of(*t)) {
        let fits = (0..n).all(|i| h[i] == steps((i % t) as u64, h[1]) ^ h[i - i % t]);
        if !fits {
            continue;
        }
        let outer: Vec<u64> = h.iter().copied().step_by(t).collect();
        for rest in layouts_of(&outer) {
            // Coalesced: the first mode does not go on in the next.
            let goes_on = rest.first().is_some_and(|(_, e)| {
                (h[1] == 0 && *e == 0) || (h[1] != 0 && t.is_power_of_two() && *e == h[1] * t as u64)
            });
            if !goes_on {
                found.push([vec![(t as i64, h[1])], rest].concat());
            }
        }
    }
    found
}

fn flat(leaves: &[(i64, u64)]) -> Layout<Xor> {
    let leaves = leaves.iter().map(|(extent, stride)| Leaf { extent: *extent, stride: Xor::new(*stride).unwrap() });
    Layout::from_tree(Tree::flat(leaves).unwrap()).unwrap()
}

fn plain(layout: &Layout<Xor>) -> Vec<(i64, u64)> {
    layout.leaves().iter().map(|leaf| (leaf.extent, leaf.stride.bits())).collect()
}

fn values(layout: &Layout<Xor>) -> Vec<u64> {
    (0..layout.size()).map(|i| layout.eval(&i).unwrap().bits()).collect()
}

/// All layouts of rank 1 and 2 with these extents and strides.
fn layouts(extents: &[i64], strides: &[u64]) -> Vec<Vec<(i64, u64)>> {
    let leaves: Vec<(i64, u64)> = extents.iter().flat_map(|s| strides.iter().map(|d| (*s, *d))).collect();
    let pairs = leaves.iter().flat_map(|a| leaves.iter().map(|b| vec![*a, *b]));
    leaves.iter().map(|leaf| vec![*leaf]).chain(pairs).collect()
}

#[test]
fn values_are_carry_less_products() {
    for plain in layouts(&[1, 2, 3, 4, 6], &[0, 1, 2, 3, 5, 9, 12]) {
        let layout = flat(&plain);
        for i in -40..40 {
            assert_eq!(layout.eval(&i).unwrap().bits(), value(&plain, i), "{layout} at {i}");
        }
    }
    let swizzled: Layout<Xor> = "(8,8):(^1,^9)".parse().unwrap();
    for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
        assert_eq!(swizzled.eval(&(row + 8 * column)).unwrap().bits() as i64, (row ^ column) + 8 * column);
    }
}

#[test]
fn coalesced_forms_are_unique() {
    let mut by_values: HashMap<Vec<u64>, Layout<Xor>> = HashMap::new();
    let (mut shared, mut merged) = (0, 0);
    for plain_layout in layouts(&[1, 2, 3, 4, 5, 6, 7, 8], &(0..16).collect::<Vec<_>>()) {
        let layout = flat(&plain_layout);
        let coalesced = layout.coalesce().unwrap();
        let h = values(&layout);
        assert_eq!(values(&coalesced), h);
        let all = layouts_of(&h);
        assert_eq!(all.len(), 1, "{layout}: {all:?}");
        let modes = if h.len() == 1 { vec![(1, 0)] } else { all[0].clone() };
        assert_eq!(plain(&coalesced), modes, "{layout}");
        let endless = layout.coalesce_z().unwrap();
        for i in -70..70 {
            assert_eq!(endless.eval(&i).unwrap(), layout.eval(&i).unwrap(), "{layout}: {endless} at {i}");
        }
        merged += usize::from(coalesced.leaves().len() < plain_layout.len());
        if let Some(other) = by_values.insert(h, layout.clone()) {
            assert!(other.equivalent(&layout), "{other} and {layout}");
            shared += 1;
        }
    }
    let distinct: Vec<_> = by_values.into_values().collect();
    assert!(distinct.windows(2).all(|pair| !pair[0].equivalent(&pair[1])));
    assert!(shared > 3_000 && merged > 3_000, "{shared} {merged}");
}

/// Compares a composite, or the refusal of one, with the definition.
fn check_composition(a: &[(i64, u64)], b: &[(i64, i64)]) -> bool {
    let (outer, inner) = (flat(a), integers(b));
    let size: i64 = b.iter().map(|(s, _)| s).product();
    let h = |index: i64| {
        let (mut rest, mut offset) = (index, 0);
        for (s, d) in b {
            offset += rest % s * d;
            rest /= s;
        }
        value(a, offset)
    };
    let mut begin = 1;
    let mut parts = Vec::new();
    for (s, _) in b {
        parts.push((0..*s).map(|x| h(x * begin)).collect::<Vec<_>>());
        begin *= s;
    }
    let adds_up = (0..size).all(|index| {
        let mut rest = index;
        let sum = b.iter().zip(&parts).fold(0, |sum, ((s, _), part)| {
            let value = part[(rest % s) as usize];
            rest /= s;
            sum ^ value
        });
        sum == h(index)
    });
    let modes: Vec<_> = parts.iter().map(|part| layouts_of(part)).collect();
    let exists = adds_up && modes.iter().all(|modes| !modes.is_empty());
    match outer.compose(&inner) {
        Ok(composite) => {
            assert!(exists, "{outer} o {inner} = {composite}");
            for index in 0..size {
                assert_eq!(
                    composite.eval(&index).unwrap().bits(),
                    h(index),
                    "{outer} o {inner} = {composite} at {index}"
                );
            }
            // Each leaf of B has become its coalesced modes.
            for (number, (modes, (extent, _))) in modes.iter().zip(b).enumerate() {
                let mode = composite.mode(number).unwrap();
                let expected = match modes[0].as_slice() {
                    [] => vec![(*extent, 0)],
                    modes => modes.to_vec(),
                };
                assert_eq!(plain(&mode), expected, "{outer} o {inner} = {composite}");
                assert_eq!(mode.profile().is_leaf(), expected.len() == 1);
            }
            true
        }
        Err(error) => {
            assert!(!exists, "{outer} o {inner}: {error}");
            assert_eq!(error.code(), "E0124", "{outer} o {inner}: {error}");
            false
        }
    }
}

fn integers(leaves: &[(i64, i64)]) -> Layout {
    let leaves = leaves.iter().map(|(extent, stride)| Leaf { extent: *extent, stride: *stride });
    Layout::from_tree(Tree::flat(leaves).unwrap()).unwrap()
}

#[test]
fn composition_is_the_definition() {
    let outer = layouts(&[1, 2, 3, 4, 6], &[0, 1, 2, 3, 4, 5, 6, 9, 12, 15]);
    let leaves: Vec<(i64, i64)> =
        [1, 2, 3, 4, 6].iter().flat_map(|s| [0, 1, 2, 3, 4, 5, 6, 8, -1, -2].map(|d| (*s, d))).collect();
    let mut inner: Vec<Vec<(i64, i64)>> = leaves.iter().map(|leaf| vec![*leaf]).collect();
    inner.extend(leaves.iter().flat_map(|a| leaves.iter().map(|b| vec![*a, *b])));
    let (mut exist, mut refused) = (0, 0);
    for (position, a) in outer.iter().enumerate() {
        for b in inner.iter().skip(position % 13).step_by(13) {
            match check_composition(a, b) {
                true => exist += 1,
                false => refused += 1,
            }
        }
    }
    println!("{exist} composites, {refused} refused");
    assert!(exist > 100_000 && refused > 100_000, "{exist} {refused}");
}

#[test]
fn known_compositions() {
    let xor = |text: &str| text.parse::<Layout<Xor>>().unwrap();
    for (a, b) in [("16:^1", "4:3"), ("16:^1", "(3,2):(1,3)")] {
        let error = xor(a).compose(&b.parse::<Layout>().unwrap()).unwrap_err();
        assert_eq!(error.code(), "E0124", "{a} o {b}: {error}");
    }
    let tile = xor("(8,8):(^1,^9)");
    assert_eq!(tile.compose(&"(8,8):(8,1)".parse::<Layout>().unwrap()).unwrap().to_string(), "(8,8):(^9,^1)");
    assert_eq!(
        tile.compose(&"(4,4,4)".parse::<Layout>().unwrap()).unwrap().to_string(),
        "(4,(2,2),4):(^1,(^4,^9),^18)"
    );
}

#[test]
fn what_is_printed_reads_back() {
    for text in ["(8,8):(^1,^9)", "((2,2),3):((^24,^2),^0)", "4:^9223372036854775807", "():()", "(4):(^0)"] {
        let layout: Layout<Xor> = text.parse().unwrap();
        assert_eq!(layout.to_string(), text);
    }
    let read = |text: &str| text.parse::<Layout<Xor>>();
    assert_eq!(read("(8, 8) : (F1, F0x9)").unwrap(), read("(8,8):(^1,^9)").unwrap());
    assert_eq!(read("(8,8):(0,F9)").unwrap().to_string(), "(8,8):(^0,^9)");
    for (text, at) in
        [("(8,8):(1,^9)", 7), ("8:^-1", 2), ("8:^", 3), ("8:", 2), ("8:^9223372036854775808", 3), ("8", 1)]
    {
        match read(text).unwrap_err() {
            tilewright_layout::LayoutError::Syntax { at: found, .. } => assert_eq!(found, at, "{text}"),
            other => panic!("{text}: {other}"),
        }
    }
    assert_eq!(read("(8,8):^1").unwrap_err().code(), "E0101");
    assert_eq!("(^1,(F2,0))".parse::<Tree<Xor>>().unwrap().to_string(), "(^1,(^2,^0))");
    assert_eq!(Xor::new(1 << 63).unwrap_err().code(), "E0103");
}

#[test]
fn slices_and_offsets_add_up() {
    let (mut cut, mut moved, mut refused) = (0, 0, 0);
    for plain in layouts(&[2, 3, 4, 8], &[0, 1, 3, 9]).iter().filter(|plain| plain.len() == 2) {
        let layout = flat(plain);
        let at = |row: i64, column: i64| steps(row as u64, plain[0].1) ^ steps(column as u64, plain[1].1);
        for (row, column) in (0..2 * plain[0].0).flat_map(|row| (0..2 * plain[1].0).map(move |column| (row, column))) {
            let coord = format!("({row},_)");
            let (slice, offset) = layout.slice_and_offset(&coord.parse().unwrap()).unwrap();
            assert_eq!(offset.bits() ^ slice.eval(&column).unwrap().bits(), at(row, column), "{layout} at {coord}");
            cut += 1;
            let same = |i: i64, j: i64| at(row, column) ^ at(i, j) == at(i + row, j + column);
            let exists = (0..plain[0].0).all(|i| (0..plain[1].0).all(|j| same(i, j)));
            match layout.domain_offset(&Tree::flat([row, column]).unwrap()) {
                Ok((shifted, offset)) => {
                    assert!(
                        exists && shifted == layout && offset.bits() == at(row, column),
                        "{layout}: {row} {column}"
                    );
                    moved += 1;
                }
                Err(error) => {
                    assert!(!exists && error.code() == "E0116", "{layout}: {row} {column}");
                    refused += 1;
                }
            }
        }
    }
    assert!(cut > 10_000 && moved > 1_000 && refused > 1_000, "{cut} {moved} {refused}");
}

#[test]
fn sums_are_the_definition() {
    let mut by_size: HashMap<i64, Vec<Vec<(i64, u64)>>> = HashMap::new();
    for plain in layouts(&[1, 2, 3, 4, 5, 6, 8], &[0, 1, 2, 3, 4, 6, 9]) {
        by_size.entry(plain.iter().map(|(extent, _)| extent).product()).or_default().push(plain);
    }
    by_size.entry(24).or_default().extend([vec![(2, 1), (3, 2), (4, 6)], vec![(4, 1), (3, 4), (2, 3)]]);
    let (mut exist, mut refused) = (0, 0);
    for (size, all) in by_size {
        for (position, a) in all.iter().enumerate() {
            for b in all.iter().skip(position % 5).step_by(5) {
                let h: Vec<u64> = (0..size).map(|i| value(a, i) ^ value(b, i)).collect();
                let found = layouts_of(&h);
                match flat(a).add(&flat(b)) {
                    Ok(sum) => {
                        assert_eq!(values(&sum), h, "{a:?} + {b:?} = {sum}");
                        let modes = if size == 1 { vec![(1, 0)] } else { found[0].clone() };
                        assert_eq!(plain(&sum), modes, "{a:?} + {b:?} = {sum}");
                        exist += 1;
                    }
                    Err(error) => {
                        assert!(found.is_empty() && error.code() == "E0124", "{a:?} + {b:?}: {error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    println!("{exist} sums, {refused} refused");
    assert!(exist > 20_000 && refused > 1_000, "{exist} {refused}");
}

#[test]
fn known_sums() {
    let xor = |text: &str| text.parse::<Layout<Xor>>().unwrap();
    // 0, 1, 2, 3 ^ 16, ..: at index 4 the sum is 4 ^ 17, and no modes have that.
    assert_eq!(xor("12:^1").add(&xor("(3,4):(^16,^32)")).unwrap_err().code(), "E0124");
    assert_eq!(xor("(4,3):(^1,^4)").add(&xor("(2,6):(^8,^16)")).unwrap().to_string(), "12:^9");
    assert_eq!(xor("12:^1").add(&xor("12:^1")).unwrap().to_string(), "12:^0");
    assert_eq!(xor("12:^1").add(&xor("8:^1")).unwrap_err().code(), "E0117");
}
