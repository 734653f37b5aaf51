//! Predicates against their definitions, by listing the values.

use std::collections::BTreeSet;

use crate::random::Random;
use tilewright_layout::{Layout, LayoutError, MAX_CASES, MAX_IMAGE};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

/// Values by the definition, from plain numbers.
fn values(flat: &[(i64, i64)]) -> Vec<i64> {
    let mut all = vec![0];
    for (extent, stride) in flat {
        all = (0..*extent).flat_map(|index| all.iter().map(move |value| value + index * stride)).collect();
    }
    all
}

/// Tractable, by the definition: squeeze, sort, and look at the chain.
fn tractable(flat: &[(i64, i64)]) -> bool {
    let mut modes: Vec<(i64, i64)> = flat.iter().filter(|(s, _)| *s > 1).map(|(s, d)| (*d, *s)).collect();
    modes.sort_unstable();
    modes.iter().all(|(d, _)| *d >= 0)
        && modes.windows(2).all(|pair| pair[0].0 == 0 || pair[1].0 % (pair[0].0 * pair[0].1) == 0)
}

fn check(flat: &[(i64, i64)], given: &Layout) {
    let values = values(flat);
    let image: BTreeSet<i64> = values.iter().copied().collect();
    let (least, greatest) = (*image.first().unwrap(), *image.last().unwrap());
    let injective = image.len() == values.len();
    assert_eq!(given.is_injective().unwrap(), injective, "{given}");
    match given.collision().unwrap() {
        Some((i, j)) => {
            assert!(!injective && i < j && values[i as usize] == values[j as usize], "{given} at {i} and {j}")
        }
        None => assert!(injective, "{given}"),
    }
    let surjective = image.iter().copied().eq(0..greatest + 1);
    assert_eq!(given.is_surjective(), surjective, "{given}");
    assert_eq!(given.is_bijective(), injective && surjective, "{given}");
    assert_eq!(given.is_compact(), image.iter().copied().eq(0..values.len() as i64), "{given}");
    assert_eq!(given.is_contiguous(), image.len() as i64 == greatest - least + 1, "{given}");
    assert_eq!(given.is_ordered(), values.windows(2).all(|pair| pair[0] < pair[1]), "{given}");
    assert_eq!(given.is_tractable(), tractable(flat), "{given}");
    assert!(given.image().unwrap().iter().eq(image.iter()), "{given}");
}

fn build(flat: &[(i64, i64)]) -> Layout {
    let column =
        |f: &dyn Fn(&(i64, i64)) -> i64| flat.iter().map(|leaf| f(leaf).to_string()).collect::<Vec<_>>().join(",");
    layout(&format!("({}):({})", column(&|leaf| leaf.0), column(&|leaf| leaf.1)))
}

/// Every layout of rank at most 3, extents 1..4, strides -4..8: 143,364 of them.
#[test]
fn exhaustive() {
    let leaves: Vec<(i64, i64)> = (1..=4).flat_map(|s| (-4..=8).map(move |d| (s, d))).collect();
    let mut checked = 0;
    for a in &leaves {
        check(&[*a], &build(&[*a]));
        for b in &leaves {
            check(&[*a, *b], &build(&[*a, *b]));
            for c in &leaves {
                check(&[*a, *b, *c], &build(&[*a, *b, *c]));
            }
            checked += leaves.len() + 1;
        }
        checked += 1;
    }
    assert_eq!(checked, 143_364);
}

/// Larger layouts, strides chosen so that overlaps are rare and both answers occur.
#[test]
fn random_larger() {
    let mut random = Random(11);
    let mut injective = 0;
    let cases = 4_000;
    for case in 0..cases {
        let rank = 2 + case % 4;
        let flat: Vec<(i64, i64)> = (0..rank)
            .map(|_| (1 + random.below(7), (random.below(601) - 300) * if case % 3 == 0 { 6 } else { 1 }))
            .collect();
        let given = build(&flat);
        injective += i64::from(given.is_injective().unwrap());
        check(&flat, &given);
    }
    assert!(injective > cases / 10 && injective < cases - cases / 10, "{injective}");
}

#[test]
fn named_facts() {
    let injective = |text: &str| layout(text).is_injective().unwrap();
    assert!(injective("(2,2):(2,3)"));
    assert!(!injective("(4,4):(1,2)"));
    assert!(injective("(3,3):(2,3)")); // 0,2,4,3,5,7,6,8,10
    assert!(!injective("(4,3):(2,3)")); // 6 twice
    assert!(injective("(8,4,2):(13,2,1)"));
    assert!(!injective("(2,2):(0,1)") && injective("(1,2):(0,1)"));
    assert!(injective("():()") && injective("1:0"));
    // Prime strides in their thousands: only 999983 steps of one make steps of the other.
    assert!(injective("(999983,999983):(999983,1000003)"));
    assert_eq!(
        layout("(1000004,1000004):(999983,1000003)").collision().unwrap(),
        Some((1_000_003, 999_983 * 1_000_004))
    );

    assert!(layout("():()").is_compact() && layout("():()").is_ordered() && layout("():()").is_tractable());
    assert!(layout("(1,1):(22,23)").is_tractable() && layout("(1,2):(3,4)").is_tractable());
    assert!(layout("(2,2,2,2):(24,0,3,480)").is_tractable());
    assert!(!layout("((8,8),(5,5)):((8,1),(10,2))").is_tractable());
    assert!(layout("(4,2):(-1,4)").is_contiguous() && !layout("(4,2):(-1,4)").is_surjective());
    assert_eq!(layout("(4,2):(-1,8)").image().unwrap(), [-3, -2, -1, 0, 5, 6, 7, 8]);
}

#[test]
fn limits_are_errors() {
    // No answer is guessed where the search would be too long.
    let dense =
        layout("(16384,16384,16384,16384):(922337203685477,31234567890123457,31234567890123511,51234567890123519)");
    assert_eq!(dense.is_injective().unwrap_err(), LayoutError::Undecided { op: "is_injective", limit: MAX_CASES });
    assert!(matches!(layout("(1048577):(1)").image(), Err(LayoutError::Argument { value: 1_048_577, .. })));
    assert_eq!(layout("(4,1048576):(0,2)").image().unwrap().len() as i64, MAX_IMAGE);
    // Offsets beyond 64 bits do not disturb the answer.
    let far = layout("(3,3):(9223372036854775807,-9223372036854775808)");
    assert!(far.is_injective().unwrap() && !far.is_surjective() && !far.is_contiguous() && !far.is_ordered());
    assert!(matches!(far.image(), Err(LayoutError::Overflow { .. })));
    assert!(!layout("(2,2):(-9223372036854775808,-9223372036854775808)").is_injective().unwrap());
}

/// Twenty modes of two with strides of forty bits: too many differences to search, few enough
/// values to list.
#[test]
fn listing_decides_what_the_search_does_not() {
    let mut random = Random(3);
    let mut flat: Vec<(i64, i64)> = (0..20).map(|_| (2, 1 + random.below(1 << 40))).collect();
    for planted in [false, true] {
        if planted {
            // Three of them make the same sum as three others.
            flat[19].1 = flat[2].1 + flat[7].1 + flat[11].1 - flat[5].1 - flat[13].1;
        }
        let all = values(&flat);
        let distinct = all.iter().collect::<BTreeSet<_>>().len() == all.len();
        assert_eq!(distinct, !planted);
        let given = build(&flat);
        assert_eq!(given.is_injective().unwrap(), distinct);
        assert_eq!(
            given.collision().unwrap().map(|(i, j)| (i < j, all[i as usize] == all[j as usize])),
            planted.then_some((true, true))
        );
    }
}
