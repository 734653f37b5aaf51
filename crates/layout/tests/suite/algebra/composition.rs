//! Composition against its definition.
//!
//! The oracle knows nothing of the criterion: it evaluates `A(B(c))` index by index and decides by
//! brute force whether a layout over B's modes has that function. `exhaustive` walks every pair of
//! two bounded sets; a tenth of it runs by default, the whole with `TILEWRIGHT_EXHAUSTIVE=1` (see
//! CONTRIBUTING).

use crate::oracle::{Flat, composite_exists, value};
use crate::random::Random;
use tilewright_layout::{Layout, LayoutError};

fn text(flat: &[(i64, i64)]) -> String {
    let column =
        |f: &dyn Fn(&(i64, i64)) -> i64| flat.iter().map(|leaf| f(leaf).to_string()).collect::<Vec<_>>().join(",");
    format!("({}):({})", column(&|leaf| leaf.0), column(&|leaf| leaf.1))
}

fn parse(flat: &[(i64, i64)]) -> Layout {
    text(flat).parse().unwrap()
}

/// Compares one composition with the definition; panics with the case where they differ.
fn check(a: &[(i64, i64)], b: &[(i64, i64)], la: &Layout, lb: &Layout) -> bool {
    let exists = composite_exists(a, b);
    match la.compose(lb) {
        Ok(r) => {
            assert!(exists, "{} o {} = {r}, but none exists", text(a), text(b));
            assert_eq!(r.size(), lb.size(), "{} o {}", text(a), text(b));
            for index in 0..lb.size() {
                let expected = value(a, value(b, index));
                assert_eq!(r.eval(&index).unwrap(), expected, "{} o {} = {r} at {index}", text(a), text(b));
            }
            assert_shape_refines(&r, lb);
        }
        Err(error) => {
            assert!(!exists, "{} o {} refused: {error}", text(a), text(b));
            if let LayoutError::Carry(carry) = &error {
                let offset: i64 = b.iter().zip(carry.coordinate()).map(|((_, d), c)| d * c).sum();
                assert_eq!(carry.value.to_string(), value(a, offset).to_string(), "{error}");
                assert_ne!(carry.value, carry.sum, "{error}");
            }
        }
    }
    exists
}

/// The result has one mode for each leaf of B, of the same size, coalesced.
fn assert_shape_refines(r: &Layout, b: &Layout) {
    assert_eq!(r.rank(), b.rank());
    for (part, mode) in r.modes().zip(b.modes()) {
        assert_eq!(part.size(), mode.size());
        assert_eq!(part.coalesce().unwrap(), if part.size() == 1 { Layout::unit() } else { part });
    }
}

fn flats(extents: std::ops::RangeInclusive<i64>, strides: &[i64]) -> Vec<Flat> {
    let leaves: Vec<(i64, i64)> = extents.flat_map(|s| strides.iter().map(move |d| (s, *d))).collect();
    let singles = leaves.iter().map(|leaf| vec![*leaf]);
    let pairs = leaves.iter().flat_map(|first| leaves.iter().map(|second| vec![*first, *second]));
    singles.chain(pairs).collect()
}

/// Every A of rank at most 2 with extents 1..6 and strides 0..8 and 12, after every B of rank at
/// most 2 with extents 1..6 and strides 0..8: about eleven million pairs.
#[test]
fn exhaustive() {
    let whole = std::env::var_os("TILEWRIGHT_EXHAUSTIVE").is_some();
    let outer = flats(1..=6, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 12]);
    let inner = flats(1..=6, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let parsed: Vec<Layout> = inner.iter().map(|flat| parse(flat)).collect();
    let (mut pairs, mut exist) = (0_u64, 0_u64);
    for (position, a) in outer.iter().enumerate() {
        let la = parse(a);
        for (number, (b, lb)) in inner.iter().zip(&parsed).enumerate() {
            if whole || (position + number) % 10 == 0 {
                pairs += 1;
                exist += u64::from(check(a, b, &la, lb));
            }
        }
    }
    println!("{pairs} pairs, {exist} composites");
    assert!(pairs > 1_000_000 && exist > 100_000);
}

/// The tree above the leaves of B stays, whatever its leaves split into.
#[test]
fn split_leaves_keep_the_tree() {
    let a: Layout = "(6,2,5):(8,2,100)".parse().unwrap();
    let mut split = 0;
    for text in [
        "4:3",
        "(4,3):(3,1)",
        "((4),3):((3),1)",
        "(((),(4,(1,3))),()):(((),(3,(7,1))),())",
        "(3,(((4))),2):(1,(((3))),60)",
    ] {
        let b: Layout = text.parse().unwrap();
        let parts: Vec<Layout> = b
            .leaves()
            .iter()
            .map(|leaf| a.compose(&Layout::mode_of(leaf.extent, leaf.stride).unwrap()).unwrap())
            .collect();
        split += parts.iter().filter(|part| !part.profile().is_leaf()).count();
        let r = a.compose(&b).unwrap();
        assert_eq!(r.profile(), &b.profile().substitute(|leaf| parts[leaf].profile()).unwrap(), "{text}");
        assert_eq!(r.leaves(), parts.iter().flat_map(|part| part.leaves().to_vec()).collect::<Vec<_>>(), "{text}");
    }
    assert_eq!(split, 5);
}

/// A refusal shows a small coordinate, and the modes by how far they go.
#[test]
fn refusals_show_the_carry() {
    let refusal =
        |a: &str, b: &str| a.parse::<Layout>().unwrap().compose(&b.parse::<Layout>().unwrap()).unwrap_err().to_string();
    assert_eq!(
        refusal("(6,2):(1,7)", "(3,2):(2,3)"),
        "composition: mode 0 of B, 3:2, walks past mode 0 of A (which ends every 6 indices) while mode 1 of B, 2:3, starts \
         inside it; at coordinate (2,1) the sum carries. A(B(2,1)) = 8, but the modes alone give 7"
    );
    assert_eq!(
        refusal("(6,2):(1,7)", "(3,2):(-2,-3)"),
        "composition: mode 0 of B, 3:-2, walks past mode 0 of A (which ends every 6 indices) while mode 1 of B, 2:-3, starts \
         inside it; at coordinate (2,1) the sum carries. A(B(2,1)) = -8, but the modes alone give -7"
    );
    // A run of a mode that has split counts in steps of the mode.
    assert!(refusal("(6,5):(1,7)", "(6,3):(2,1)").contains("at coordinate (2,2) the sum carries"));
}

/// A of rank 3 with strides -8..8 and 12, after B of rank up to 3 with strides -8..8: ten million
/// with `TILEWRIGHT_EXHAUSTIVE=1`, a tenth of them by default.
#[test]
fn sampled_rank_three_and_negative() {
    let whole = std::env::var_os("TILEWRIGHT_EXHAUSTIVE").is_some();
    let cases = if whole { 10_000_000 } else { 1_000_000 };
    let mut random = Random(7);
    let mut exist = 0_u64;
    for case in 0..cases {
        let signed = case % 2 == 0;
        let mut leaf = |most: i64| {
            let stride = random.below(if signed { 17 } else { 10 });
            let stride = if signed {
                stride - 8
            } else if stride == 9 {
                12
            } else {
                stride
            };
            (1 + random.below(most), stride)
        };
        let a = [leaf(6), leaf(6), leaf(6)];
        let b: Flat = (0..1 + case % 3).map(|_| leaf(if case % 3 == 2 { 4 } else { 6 })).collect();
        exist += u64::from(check(&a, &b, &parse(&a), &parse(&b)));
    }
    println!("{cases} pairs, {exist} composites");
    assert!(exist > cases / 100);
}
