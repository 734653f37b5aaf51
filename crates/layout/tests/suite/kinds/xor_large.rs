//! Layouts with XOR strides too large to list: powers of two are never refused, and what no search
//! can decide is an error, not work without end.

use crate::random::Random;
use tilewright_layout::{Layout, Leaf, Tiler, Tree, Xor};

/// `L(i)` for extents that are powers of two, bit by bit.
fn value(layout: &[(u32, u64)], index: u64) -> u64 {
    let (mut rest, mut sum) = (index, 0);
    for (position, (bits, stride)) in layout.iter().enumerate() {
        let digit = if position + 1 == layout.len() { rest } else { rest & ((1 << bits) - 1) };
        sum ^= (0..64).filter(|bit| digit >> bit & 1 == 1).fold(0, |sum, bit| sum ^ (stride << bit));
        rest >>= bits;
    }
    sum
}

fn flat(leaves: &[(u32, u64)]) -> Layout<Xor> {
    let leaf = |(bits, stride): &(u32, u64)| Leaf { extent: 1 << bits, stride: Xor::new(*stride).unwrap() };
    Layout::from_tree(Tree::flat(leaves.iter().map(leaf)).unwrap()).unwrap()
}

/// A layout of up to 30 bits.
fn outer(random: &mut Random) -> Vec<(u32, u64)> {
    (0..1 + random.below(5)).map(|_| (random.below(7) as u32, random.below(1 << 16) as u64)).collect()
}

/// A layout of indices none of whose sums carries: each leaf has runs of bits of its own, up to two
/// for one leaf.
fn inner(random: &mut Random) -> Layout {
    let mut leaves: Vec<Leaf> = Vec::new();
    let mut bit = random.below(3);
    while bit < 30 {
        let width = random.below(6);
        // The second run is as wide, and lies above the first.
        let twice = random.below(3) == 0;
        let apart = width + random.below(3);
        let stride = if twice { 1 | 1 << apart } else { 1_i64 };
        leaves.push(Leaf { extent: 1 << width, stride: stride << bit });
        bit += width + if twice { apart } else { 0 } + random.below(3);
    }
    for position in (1..leaves.len()).rev() {
        leaves.swap(position, random.below(position as i64 + 1) as usize);
    }
    Layout::from_tree(Tree::flat(leaves).unwrap()).unwrap()
}

#[test]
fn composites_of_powers_of_two_exist() {
    let mut random = Random(3);
    let mut large = 0;
    for _ in 0..20_000 {
        let (a, b) = (outer(&mut random), inner(&mut random));
        let composite = flat(&a).compose(&b).unwrap_or_else(|error| panic!("{} o {b}: {error}", flat(&a)));
        for _ in 0..20 {
            let index = random.below(b.size());
            let expected = value(&a, b.eval(&index).unwrap() as u64);
            assert_eq!(composite.eval(&index).unwrap().bits(), expected, "{} o {b} = {composite} at {index}", flat(&a));
        }
        for (mode, leaf) in composite.modes().zip(b.leaves()) {
            assert_eq!(mode.size(), leaf.extent);
            assert!(mode.leaves().len() == mode.coalesce().unwrap().leaves().len(), "{} o {b} = {composite}", flat(&a));
        }
        large += usize::from(b.size() > 1 << 16);
    }
    assert!(large > 5_000, "{large}");
}

#[test]
fn sums_of_powers_of_two_exist() {
    let mut random = Random(5);
    let mut added = 0;
    for _ in 0..20_000 {
        let (a, b) = (outer(&mut random), outer(&mut random));
        let bits = |layout: &[(u32, u64)]| layout.iter().map(|(bits, _)| bits).sum::<u32>();
        let mut b = b;
        // Of one size: a last mode takes up the difference.
        let Some(missing) = bits(&a).checked_sub(bits(&b)) else { continue };
        b.push((missing, random.below(1 << 20) as u64));
        let sum = flat(&a).add(&flat(&b)).unwrap();
        for _ in 0..20 {
            let index = random.below(sum.size());
            let expected = value(&a, index as u64) ^ value(&b, index as u64);
            assert_eq!(sum.eval(&index).unwrap().bits(), expected, "{} + {} = {sum}", flat(&a), flat(&b));
        }
        added += 1;
    }
    assert!(added > 5_000, "{added}");
}

#[test]
fn large_refusals_show_a_value() {
    let xor = |text: &str| text.parse::<Layout<Xor>>().unwrap();
    let compose = |a: &str, b: &str| xor(a).compose(&b.parse::<Layout>().unwrap());
    // 3 ^ 6 is not 9, however long the mode is.
    assert_eq!(compose("4194304:^1", "1048576:3").unwrap_err().code(), "E0124");
    assert_eq!(compose("1073741824:^1", "(65536,65536):(1,1)").unwrap_err().code(), "E0124");
    assert_eq!(xor("1048576:^1").add(&xor("(1024,1024):(^1,^3)")).unwrap().to_string(), "(1024,1024):(^0,^1027)");
    // Five does not divide the modes of two; both are longer than what is listed.
    assert_eq!(xor("1310720:^1").add(&xor("(5,262144):(^1,^8)")).unwrap_err().code(), "E0124");
    assert_eq!(compose("(6,4):(^1,^8)", "24000000:1").unwrap().to_string(), "(6,4000000):(^1,^8)");
    // Stride 0 takes up a carry.
    assert_eq!(compose("(1048576,4):(^0,^1)", "(262144,262144):(1,1)").unwrap().to_string(), "(262144,262144):(^0,^0)");
}

#[test]
fn extremes_are_errors_and_not_panics() {
    let extents = [1, 2, 3, 1 << 20, (1 << 20) + 7, 1 << 31, (1 << 61) + 1, i64::MAX];
    let strides = [0_u64, 1, 3, 5, (1 << 40) + 1, 1 << 61, 1 << 62, (1 << 63) - 1];
    let mut layouts: Vec<Layout<Xor>> = Vec::new();
    for (s, d) in extents.iter().flat_map(|s| strides.iter().map(move |d| (*s, *d))) {
        layouts.push(format!("{s}:^{d}").parse().unwrap());
        layouts.extend(format!("({s},3):(^{d},^6)").parse());
        layouts.extend(format!("(2,{s}):(^9223372036854775807,^{d})").parse());
        layouts.extend(format!("(65537,{s}):(^1,^{d})").parse());
    }
    let inner: Vec<Layout> =
        ["3:1", "(2,3):(1,4611686018427387904)", "9223372036854775807:1", "(3,5):(-7,2)", "65536:65537"]
            .iter()
            .chain(&["4:-9223372036854775807", "(1048576,1048576):(3,5)", "():()"])
            .map(|text| text.parse().unwrap())
            .collect();
    let (mut done, mut refused) = (0, 0);
    let mut count = |is_ok: bool| if is_ok { done += 1 } else { refused += 1 };
    for l in &layouts {
        for index in [0, -1, 5, i64::MAX, i64::MIN] {
            count(l.eval(&index).is_ok());
        }
        for b in &inner {
            if let Ok(composite) = l.compose(b) {
                for index in [0, 1, b.size() / 2, b.size() - 1] {
                    if let (Ok(found), Ok(at)) = (composite.eval(&index), b.eval(&index)) {
                        assert_eq!(Ok(found), l.eval(&at), "{l} o {b} = {composite} at {index}");
                    }
                }
            }
            count(l.logical_divide(&Tiler::<i64>::from(b)).is_ok());
            count(l.logical_product(&Tiler::<i64>::from(b)).is_ok());
        }
        for m in [1, -1, 7, i64::MAX] {
            count(l.complement(&m).is_ok());
            count(l.weak_complement(&m).is_ok());
        }
        for other in layouts.iter().step_by(17) {
            count(l.add(other).is_ok());
        }
        count(l.complement_open().is_ok());
        count(l.right_inverse().is_ok());
        count(l.left_inverse().is_ok());
        count(l.coalesce_z().is_ok());
        count(l.integers().is_ok());
        count(l.bit_matrix().is_ok());
        count(l.cosize().is_ok() && l.coshape().is_ok() && l.is_injective().is_ok() && l.is_surjective().is_ok());
        count(l.image().is_ok());
    }
    assert!(done > 2_500 && refused > 3_000, "{done} {refused}");
}
