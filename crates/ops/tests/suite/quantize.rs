//! Numbers of e4m3 and their scales beside plain loops.

use tilewright_ops::{Dequantize, Operator, Quantize};
use tilewright_tile::Element;

use crate::oracle::{check_kernels, close, numbers, run};

/// The nearest number of e4m3, ties to even: three bits behind the first one, and none below 2^-9.
fn e4m3(value: f64) -> f64 {
    let exponent = value.abs().max(2.0_f64.powi(-6)).log2().floor();
    let step = 2.0_f64.powf(exponent - 3.0);
    ((value / step).round_ties_even() * step).clamp(-448.0, 448.0)
}

/// The block of an element, by its row and column.
fn block(square: bool, blocks: usize, row: usize, column: usize) -> usize {
    let row = if square { row / 128 } else { row };
    row * blocks + column / 128
}

#[test]
fn blocks_have_scales_and_their_elements_are_rounded() {
    for (rows, columns, square, power_of_two, element) in [
        (1_usize, 1_usize, false, false, Element::F32),
        (5, 300, false, false, Element::Bf16),
        (3, 1200, false, true, Element::F32),
        (130, 200, true, false, Element::F32),
        (128, 128, true, true, Element::F16),
    ] {
        // Some blocks are 0, and some have a greatest magnitude that is 448 times a power of two.
        let value = |(at, own): (usize, f64)| match at / columns % 3 {
            0 if at % columns < 128 => 0.0,
            1 if at % columns == 7 => 7.0,
            _ => own * 4.0,
        };
        let x: Vec<f64> = numbers(rows * columns, 9).into_iter().enumerate().map(value).collect();
        let blocks = columns.div_ceil(128);
        let count = if square { rows.div_ceil(128) } else { rows } * blocks;
        let mut most = vec![0.0_f64; count];
        for (at, own) in x.iter().enumerate() {
            let block = block(square, blocks, at / columns, at % columns);
            most[block] = most[block].max(own.abs());
        }
        let scale = |most: &f64| match most {
            0.0 => 1.0,
            most if power_of_two => 2.0_f64.powf((most / 448.0).log2().ceil()),
            most => f64::from((*most as f32) / 448.0),
        };
        let scales: Vec<f64> = most.iter().map(scale).collect();
        let own = |at: usize| scales[block(square, blocks, at / columns, at % columns)];
        let q: Vec<f64> = x.iter().enumerate().map(|(at, x)| e4m3(f64::from((*x as f32) / own(at) as f32))).collect();
        let sizes = [("M", rows as i64), ("K", columns as i64)];
        let quantize = Quantize { element, square, power_of_two, alignment: 1 };
        let found = run(quantize.forward(), &sizes, &[("x", x.clone())]);
        close("scales", found.of("scales"), &scales, 0.0);
        close("q", found.of("q"), &q, 0.0);

        let y: Vec<f64> = q.iter().enumerate().map(|(at, q)| q * own(at)).collect();
        let dequantize = Dequantize { element: Element::F32, square, alignment: 1 };
        let found = run(dequantize.forward(), &sizes, &[("q", q), ("scales", scales.clone())]);
        close("y", found.of("y"), &y, 1e-7);
        // Within a sixteenth of the number, or half of the least step.
        for (at, x) in x.iter().enumerate() {
            assert!((y[at] - x).abs() <= (x.abs() / 16.0).max(own(at) * 2.0_f64.powi(-10)) * 1.0001, "{x}: {}", y[at]);
        }
    }
}

#[test]
fn kernels_compute_what_their_programs_mean() {
    for (square, power_of_two, alignment) in [(false, false, 8), (false, true, 1), (true, false, 8)] {
        let sizes = [("M", 130), ("K", 200)];
        let element = Element::Bf16;
        check_kernels(Quantize { element, square, power_of_two, alignment }.forward(), &sizes);
        check_kernels(Dequantize { element, square, alignment }.forward(), &sizes);
    }
}

#[test]
fn options_that_no_kernel_has_are_refused() {
    let error = Quantize { element: Element::E5M2, ..Quantize::default() }.forward().unwrap_err().to_string();
    assert!(error.contains("`element` is e5m2"), "{error}");
    let error = Dequantize { alignment: 6, ..Dequantize::default() }.forward().unwrap_err().to_string();
    assert!(error.contains("`alignment` is 6"), "{error}");
    assert!(Quantize::default().backward().is_err() && Dequantize::default().backward().is_err());
}

#[test]
fn the_scale_of_a_block_is_never_zero() {
    // The smallest f32 over 448 is 0.
    let x = vec![1e-45, 0.0, -1e-45, 0.0];
    for (square, power_of_two) in [(false, false), (true, false), (false, true)] {
        let quantize = Quantize { element: Element::F32, square, power_of_two, alignment: 1 };
        let found = run(quantize.forward(), &[("M", 1), ("K", 4)], &[("x", x.clone())]);
        close("scales", found.of("scales"), &[1.0], 0.0);
        close("q", found.of("q"), &[0.0; 4], 0.0);
    }
}
