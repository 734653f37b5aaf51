//! Linear layers with weights of four bits beside plain loops.

use tilewright_ops::{Int4Linear, Int4Weights, Operator};
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

/// Weights from -8 to 7.
fn weights(count: usize) -> Vec<i64> {
    numbers(count, 3).into_iter().map(|own| (own * 8.0).floor() as i64).collect()
}

#[test]
fn layers_are_those_of_plain_loops() {
    for (rows, columns, length, splits, bias, tile) in [
        (1_usize, 1_usize, 128_usize, 1, false, 8),
        (3, 40, 256, 1, true, 8),
        (19, 17, 512, 2, true, 16),
        (70, 16, 384, 3, false, 64),
    ] {
        let w = weights(columns * length);
        let x = numbers(rows * length, 4);
        let scales: Vec<f64> = numbers(columns * length / 128, 5).iter().map(|own| own.abs() + 0.125).collect();
        let given = numbers(columns, 6);
        let mut y = vec![0.0; rows * columns];
        let mut whole = vec![0.0; columns * length];
        for n in 0..columns {
            for k in 0..length {
                whole[n * length + k] = w[n * length + k] as f64 * scales[k / 128 * columns + n];
            }
            for m in 0..rows {
                let terms = (0..length).map(|k| x[m * length + k] * whole[n * length + k]);
                y[m * columns + n] = terms.sum::<f64>() + if bias { given[n] } else { 0.0 };
            }
        }
        let layer = Int4Linear {
            length: length as i64,
            rows: tile,
            splits,
            bias,
            alignment: if columns % 8 == 0 { 8 } else { 1 },
            ..Int4Linear::default()
        };
        let mut inputs = vec![("x", x), ("w", packed(&w)), ("scales", scales.clone())];
        if bias {
            inputs.push(("bias", given));
        }
        let sizes = [("M", rows as i64), ("N", columns as i64)];
        let found = run(layer.forward(), &sizes, &inputs);
        close("y", found.of("y"), &y, 2e-3);
        let layer = Int4Weights { length: length as i64, ..Int4Weights::default() };
        let found = run(layer.forward(), &sizes[1..], &[("w", packed(&w)), ("scales", scales)]);
        close("weights", found.of("y"), &whole, 1e-3);
    }
}

#[test]
fn kernels_compute_what_their_programs_mean() {
    for (element, rows, splits, bias, columns) in
        [(Element::Bf16, 8, 1, true, 40), (Element::F16, 16, 2, true, 17), (Element::Bf16, 64, 2, false, 32)]
    {
        let alignment = if columns % 8 == 0 { 8 } else { 1 };
        let sizes = [("M", 19), ("N", columns)];
        check_kernels(Int4Linear { length: 256, element, rows, splits, bias, alignment }.forward(), &sizes);
        check_kernels(Int4Weights { length: 256, element, alignment }.forward(), &sizes);
    }
}

#[test]
fn options_that_no_kernel_has_are_refused() {
    let layer = Int4Linear { length: 256, ..Int4Linear::default() };
    for (other, because) in [
        (Int4Linear { length: 200, ..layer.clone() }, "`length` is 200"),
        (Int4Linear { element: Element::F32, ..layer.clone() }, "`element` is f32"),
        (Int4Linear { rows: 24, ..layer.clone() }, "`rows` is 24"),
        (Int4Linear { splits: 3, ..layer.clone() }, "`splits` is 3"),
        (Int4Linear { alignment: 3, ..layer.clone() }, "`alignment` is 3"),
    ] {
        let error = other.forward().unwrap_err().to_string();
        assert!(error.contains(because), "{error}");
    }
    assert!(layer.backward().is_err() && Int4Weights::default().forward().is_err());
    assert!(Int4Weights { length: 128, ..Int4Weights::default() }.backward().is_err());
}
