//! Weights of four bits beside plain loops.

use tilewright_ops::{Int4Weights, Operator};
use tilewright_tile::Element;

use crate::oracle::{check_kernels, close, numbers, run};

/// The words of weights, by their rows: eight along K of each, those of K 0 2 4 6 1 3 5 7.
fn packed(weights: &[i64]) -> Vec<f64> {
    let word = |eight: &[i64]| {
        let places = [0, 2, 4, 6, 1, 3, 5, 7].into_iter().enumerate();
        places.fold(0_u32, |word, (place, k)| word | ((eight[k] & 15) as u32) << (4 * place))
    };
    weights.chunks(8).map(|eight| f64::from(word(eight) as i32)).collect()
}

#[test]
fn weights_are_those_of_plain_loops() {
    for (rows, length) in [(1, 128), (40, 256), (17, 512)] {
        // Weights from -8 to 7.
        let w: Vec<i64> = numbers(rows * length, 3).into_iter().map(|own| (own * 8.0).floor() as i64).collect();
        let scales: Vec<f64> = numbers(rows * length / 128, 5).iter().map(|own| own.abs() + 0.125).collect();
        let whole = (0..rows * length).map(|at| w[at] as f64 * scales[at % length / 128 * rows + at / length]);
        let alignment = if rows % 8 == 0 { 8 } else { 1 };
        let weights = Int4Weights { length: length as i64, alignment, ..Int4Weights::default() };
        let found = run(weights.forward(), &[("N", rows as i64)], &[("w", packed(&w)), ("scales", scales.clone())]);
        close("weights", found.of("y"), &whole.collect::<Vec<_>>(), 1e-3);
    }
}

#[test]
fn kernels_compute_what_their_programs_mean() {
    for (element, rows, alignment) in [(Element::Bf16, 40, 8), (Element::F16, 17, 1)] {
        check_kernels(Int4Weights { length: 256, element, alignment }.forward(), &[("N", rows)]);
    }
}

#[test]
fn options_that_no_kernel_has_are_refused() {
    let weights = Int4Weights { length: 256, ..Int4Weights::default() };
    for (other, because) in [
        (Int4Weights { length: 200, ..weights.clone() }, "`length` is 200"),
        (Int4Weights { length: 0, ..weights.clone() }, "`length` is 0"),
        (Int4Weights { element: Element::F32, ..weights.clone() }, "`element` is f32"),
        (Int4Weights { alignment: 3, ..weights.clone() }, "`alignment` is 3"),
    ] {
        let error = other.forward().unwrap_err().to_string();
        assert!(error.contains(because), "{error}");
    }
    assert!(weights.backward().is_err());
}
