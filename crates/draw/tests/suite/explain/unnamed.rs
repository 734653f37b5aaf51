//! What `check` says of two layouts with `?`: each `?` is one number on both sides.
//!
//! The oracle puts numbers in place of `?` and walks through both layouts with loops of its own.

use tilewright_draw::explain::check::{Answer, equal};
use tilewright_notation::{Environment, evaluate_pair};

/// The numbers that stand in place of each `?`.
const NUMBERS: [i64; 6] = [1, 2, 3, 4, 6, 9];

/// A flat layout as (extent, stride) pairs, each `?` replaced by the next of the numbers.
fn modes(text: &str, numbers: &[i64]) -> Vec<(i64, i64)> {
    let mut numbers = numbers.iter();
    let mut side = |text: &str| -> Vec<i64> {
        let number = |word: &str| if word == "?" { *numbers.next().unwrap() } else { word.parse().unwrap() };
        text.trim_matches(['(', ')']).split(',').map(number).collect()
    };
    let (shape, strides) = text.split_once(':').unwrap();
    let (shape, strides) = (side(shape), side(strides));
    shape.into_iter().zip(strides).collect()
}

/// The offsets of a layout, in the order of indices.
fn offsets(modes: &[(i64, i64)]) -> Vec<i64> {
    modes.iter().fold(vec![0], |inner, (extent, stride)| {
        (0..*extent).flat_map(|at| inner.iter().map(move |offset| offset + at * stride)).collect()
    })
}

/// Whether the layouts are the same function for all choices of numbers.
fn same(left: &str, right: &str) -> bool {
    let count = left.matches('?').count();
    let choices = NUMBERS.len().pow(u32::try_from(count).unwrap());
    (0..choices).all(|choice| {
        let place = |at: usize| NUMBERS[choice / NUMBERS.len().pow(u32::try_from(at).unwrap()) % NUMBERS.len()];
        let numbers: Vec<i64> = (0..count).map(place).collect();
        offsets(&modes(left, &numbers)) == offsets(&modes(right, &numbers))
    })
}

#[test]
fn each_number_is_the_one_in_its_place_on_the_other_side() {
    let layouts = [
        "(8,?):(1,8)",
        "(2,4,?):(1,2,8)",
        "(8,1,?):(1,5,8)",
        "(8,?):(1,9)",
        "(?,8):(8,1)",
        "(?,8):(1,8)",
        "(?,2,4):(8,1,2)",
        "(?):(3)",
        "(?,1):(3,7)",
        "(4,3):(?,1)",
        "(2,2,3):(?,4,1)",
        "(3,4):(1,?)",
        "(4):(?)",
        "(4,1):(?,2)",
        "(?,?):(1,3)",
        "(?,?):(3,1)",
        "(?,?,1):(1,3,4)",
        "(4,?):(?,1)",
        "(?,4):(1,?)",
        "(?,2,2):(1,3,6)",
    ];
    let (mut holding, mut failing) = (0, 0);
    for left in layouts {
        for right in layouts {
            let pair = evaluate_pair(left, right, &Environment::new());
            if left.matches('?').count() != right.matches('?').count() {
                let (side, error) = *pair.expect_err("they have other numbers");
                assert_eq!((side, error.code), (1, "E0215"), "{left} and {right}");
                continue;
            }
            let pair = pair.unwrap_or_else(|failed| panic!("{left} and {right}: {}", failed.1.message));
            assert_eq!(pair.unnamed, left.matches('?').count());
            let [a, b] = &pair.values;
            match (equal(a, b).answer, same(left, right)) {
                (Answer::Holds(_), true) => holding += 1,
                (Answer::Fails(_), false) => failing += 1,
                (answer, same) => panic!("{left} and {right}: {answer:?}, and they are the same: {same}"),
            }
        }
    }
    assert!(holding >= 30 && failing >= 150, "{holding} hold and {failing} fail");
}
