//! Softmax and norms beside their formulas in f64.

use tilewright_kernel::machine::Machine;
use tilewright_ops::{LayerNorm, LogSoftmax, Operator, RmsNorm, Softmax};
use tilewright_tile::Element;

use crate::oracle::{check_both, close, differences, numbers, run};

/// Takes the rows of a matrix with a pitch together, without what is between them.
fn packed(all: &[f64], rows: usize, length: usize, pitch: usize) -> Vec<f64> {
    (0..rows).flat_map(|row| all[row * pitch..row * pitch + length].to_vec()).collect()
}

/// The elements of a matrix of this pitch up to its last element.
fn reach(rows: usize, length: usize, pitch: usize) -> usize {
    (rows - 1) * pitch + length
}

fn softmax(x: &[f64], length: usize) -> Vec<f64> {
    let row = |row: &[f64]| {
        let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let powers: Vec<f64> = row.iter().map(|own| (own - greatest).exp()).collect();
        let total: f64 = powers.iter().sum();
        powers.into_iter().map(|own| own / total).collect::<Vec<f64>>()
    };
    x.chunks(length).flat_map(row).collect()
}

fn rms_norm(x: &[f64], weight: &[f64], bias: &[f64], epsilon: f64, centred: bool) -> Vec<f64> {
    let length = weight.len();
    let row = |row: &[f64]| {
        let mean = if centred { row.iter().sum::<f64>() / length as f64 } else { 0.0 };
        let square = row.iter().map(|own| (own - mean).powi(2)).sum::<f64>() / length as f64;
        let scale = 1.0 / (square + epsilon).sqrt();
        row.iter().zip(weight).zip(bias).map(|((x, w), b)| (x - mean) * scale * w + b).collect::<Vec<f64>>()
    };
    x.chunks(length).flat_map(row).collect()
}

/// How far results of a type may be off.
fn share(element: Element) -> f64 {
    if element == Element::F32 { 2e-5 } else { 8e-3 }
}

#[test]
fn softmax_and_its_logarithm_have_the_values_and_gradients_of_their_formulas() {
    let cases = [
        (1_i64, 3_usize, Element::F32),
        (5, 9, Element::Bf16),
        (768, 5, Element::F16),
        (1000, 2, Element::F32),
        // Longer than a tile.
        (20_000, 2, Element::F32),
    ];
    for (length, rows, element) in cases {
        let wide = length as usize;
        let pitch = wide + 3;
        let x: Vec<f64> = numbers(reach(rows, wide, pitch), length as u64).iter().map(|own| own * 4.0).collect();
        let d = numbers(rows * wide, 5);
        let own = packed(&x, rows, wide, pitch);
        let y = softmax(&own, wide);
        let sizes = [("M", rows as i64), ("x_pitch", pitch as i64), ("y_pitch", wide as i64)];
        let operator = Softmax { length, element, ..Softmax::default() };
        let found = run(operator.forward(), &sizes, &[("x", x.clone())]);
        close("softmax", found.of("y"), &y, share(element));
        let inner: Vec<f64> =
            y.chunks(wide).zip(d.chunks(wide)).map(|(y, d)| y.iter().zip(d).map(|(y, d)| y * d).sum()).collect();
        let exact: Vec<f64> = (0..y.len()).map(|at| y[at] * (d[at] - inner[at / wide])).collect();
        let found = run(operator.backward(), &sizes, &[("x", x.clone()), ("d_y", d.clone())]);
        close("d_x of softmax", &packed(found.of("d_x"), rows, wide, pitch), &exact, share(element));

        let operator = LogSoftmax { length, element, ..LogSoftmax::default() };
        let logarithms: Vec<f64> = y.iter().map(|own| own.ln()).collect();
        let found = run(operator.forward(), &sizes, &[("x", x.clone())]);
        close("log_softmax", found.of("y"), &logarithms, share(element));
        let sums: Vec<f64> = d.chunks(wide).map(|row| row.iter().sum()).collect();
        let exact: Vec<f64> = (0..y.len()).map(|at| d[at] - y[at] * sums[at / wide]).collect();
        let found = run(operator.backward(), &sizes, &[("x", x.clone()), ("d_y", d.clone())]);
        // An error of the softmax counts as often as the sum of the row of `d_y` says.
        close("d_x of log_softmax", &packed(found.of("d_x"), rows, wide, pitch), &exact, 10.0 * share(element));
    }
}

#[test]
fn norms_have_the_values_and_gradients_of_their_formulas() {
    let cases = [(4_i64, 3_usize, false), (48, 70, true), (768, 3, false), (4096, 2, true)];
    for (number, (length, rows, residual)) in cases.into_iter().enumerate() {
        for centred in [false, true] {
            let wide = length as usize;
            let element = [Element::F32, Element::Bf16][number % 2];
            let weight_element = Element::F32;
            let (x, r) = (numbers(rows * wide, 1), numbers(rows * wide, 2));
            let (weight, bias) = (numbers(wide, 3), numbers(wide, 4));
            let (d_y, d_same) = (numbers(rows * wide, 5), numbers(rows * wide, 6));
            let operator: Box<dyn Operator> = match centred {
                false => {
                    let norm =
                        RmsNorm { length, element, weight: true, weight_element, residual, ..RmsNorm::default() };
                    Box::new(norm)
                }
                true => Box::new(LayerNorm {
                    length,
                    element,
                    weight: true,
                    bias: true,
                    weight_element,
                    residual,
                    ..LayerNorm::default()
                }),
            };
            let pitches = ["x", "residual", "sum", "y", "d_y", "d_x", "d_sum", "d_same", "same"]
                .map(|name| format!("{name}_pitch"));
            let mut sizes: Vec<(&str, i64)> = pitches.iter().map(|name| (name.as_str(), length)).collect();
            sizes.push(("M", rows as i64));
            let zeros = vec![0.0; wide];
            let shift = if centred { &bias } else { &zeros };
            let sum: Vec<f64> = match residual {
                true => x.iter().zip(&r).map(|(x, r)| x + r).collect(),
                false => x.clone(),
            };
            let mut inputs = vec![("x", x.clone()), ("weight", weight.clone())];
            inputs.extend(residual.then(|| ("residual", r.clone())));
            inputs.extend(centred.then(|| ("bias", bias.clone())));
            let found = run(operator.forward(), &sizes, &inputs);
            close("y", found.of("y"), &rms_norm(&sum, &weight, shift, 1e-5, centred), share(element));
            if residual {
                close("sum", found.of("sum"), &sum, 4e-3);
            }

            let name = if residual { "sum" } else { "x" };
            let mut inputs = vec![(name, sum.clone()), ("weight", weight.clone()), ("d_y", d_y.clone())];
            inputs.extend(residual.then(|| ("d_same", d_same.clone())));
            inputs.extend(centred.then(|| ("bias", bias.clone())));
            let found = run(operator.backward(), &sizes, &inputs);
            let of_row = |row: usize| {
                let at = row * wide..(row + 1) * wide;
                differences(|x| rms_norm(x, &weight, shift, 1e-5, centred), &sum[at.clone()], &d_y[at])
            };
            let mut exact: Vec<f64> = (0..rows.min(4)).flat_map(of_row).collect();
            if residual {
                exact.iter_mut().zip(&d_same).for_each(|(exact, d)| *exact += d);
            }
            let derivative = if residual { "d_sum" } else { "d_x" };
            close(derivative, &found.of(derivative)[..exact.len()], &exact, 2e-2_f64.min(share(element) * 4.0));
            let normed = rms_norm(&sum, &vec![1.0; wide], &zeros, 1e-5, centred);
            let column = |values: &dyn Fn(usize) -> f64| -> Vec<f64> {
                (0..wide).map(|at| (0..rows).map(|row| values(row * wide + at)).sum()).collect()
            };
            close("d_weight", found.of("d_weight"), &column(&|at| normed[at] * d_y[at]), 1e-4);
            if centred {
                close("d_bias", found.of("d_bias"), &column(&|at| d_y[at]), 1e-4);
            }
        }
    }
}

#[test]
fn rows_of_infinities_and_nan_are_nan() {
    let operator = Softmax { length: 3, ..Softmax::default() };
    let sizes = [("M", 3), ("x_pitch", 3), ("y_pitch", 3)];
    let (low, nan) = (f64::NEG_INFINITY, f64::NAN);
    let x = vec![low, low, low, low, 0.0, 0.0, nan, 0.0, 0.0];
    let found = run(operator.forward(), &sizes, &[("x", x)]);
    close("y", found.of("y"), &[nan, nan, nan, 0.0, 0.5, 0.5, nan, nan, nan], 0.0);
}

#[test]
fn kernels_compute_what_their_programs_mean() {
    let pitches = ["x", "residual", "sum", "y", "same"].map(|name| format!("{name}_pitch"));
    for (length, rows) in [(40_i64, 5), (768, 3), (4096, 2)] {
        let mut sizes: Vec<(&str, i64)> = pitches.iter().map(|name| (name.as_str(), length)).collect();
        sizes.push(("M", rows));
        let element = Element::Bf16;
        check_both(&Softmax { length, element, alignment: 8, ..Softmax::default() }, &sizes);
        check_both(&LogSoftmax { length, element, alignment: 8, ..LogSoftmax::default() }, &sizes);
        let norm =
            RmsNorm { length, element, alignment: 8, weight: true, residual: length == 768, ..RmsNorm::default() };
        check_both(&norm, &sizes);
        let norm = LayerNorm { length, element, alignment: 8, weight: true, bias: true, ..LayerNorm::default() };
        check_both(&norm, &sizes);
    }
}

/// The ways to cut rows of the backward into tiles: warps that meet, and warps that have whole
/// rows, whose last quarter is past the end in every thread.
#[test]
fn kernels_of_every_way_compute_what_their_programs_mean() {
    let pitches = ["x", "y"].map(|name| format!("{name}_pitch"));
    for (length, rows, ways) in [
        (96_i64, 9, [(1, 2, 4), (4, 4, 2), (2, 1, 8)]),
        (768, 7, [(1, 4, 2), (2, 2, 4), (4, 4, 1)]),
        (768, 11, [(1, 1, 8), (2, 4, 4), (1, 2, 16)]),
    ] {
        let mut sizes: Vec<(&str, i64)> = pitches.iter().map(|name| (name.as_str(), length)).collect();
        sizes.push(("M", rows));
        for (backward_rows, backward_warps, backward_tiles) in ways {
            let (element, alignment) = (Element::Bf16, 8);
            let softmax = Softmax { length, element, alignment, backward_rows, backward_warps };
            check_both(&softmax, &sizes);
            check_both(&LogSoftmax { length, element, alignment, backward_rows, backward_warps }, &sizes);
            let norm = RmsNorm { length, element, alignment, weight: true, ..RmsNorm::default() };
            check_both(&RmsNorm { backward_rows, backward_warps, backward_tiles, ..norm }, &sizes);
            let norm = LayerNorm { length, element, alignment, weight: true, bias: true, ..LayerNorm::default() };
            check_both(&LayerNorm { backward_rows, backward_warps, backward_tiles, ..norm }, &sizes);
        }
    }
}

#[test]
fn a_way_that_no_kernel_has_is_refused() {
    let refused = |norm: RmsNorm| norm.backward().unwrap_err().to_string();
    let norm = RmsNorm { length: 64, ..RmsNorm::default() };
    for (norm, name) in [
        (RmsNorm { backward_rows: 3, ..norm.clone() }, "backward_rows"),
        (RmsNorm { backward_warps: 32, ..norm.clone() }, "backward_warps"),
        (RmsNorm { backward_tiles: -2, ..norm }, "backward_tiles"),
    ] {
        assert!(refused(norm).contains(name), "{name}");
    }
}

/// The backward of norms fills the multiprocessors of a machine with equally many warps.
#[test]
fn the_backward_of_a_norm_has_blocks_for_each_multiprocessor() {
    for machine in ["Orin", "A100", "H200"].map(|name| Machine::named(name).expect("a card of the table")) {
        for (length, warps_of_each) in [(768, 12), (1024, 16), (4096, 16)] {
            let rows = 1 << 14;
            let norm = RmsNorm { length, weight: true, about_rows: rows, ..RmsNorm::default() };
            let text = norm.kernels(true, &machine).unwrap().text;
            let number = |before: &str| -> i64 {
                let (_, behind) = text.split_once(before).expect(before);
                behind.split(|own: char| !own.is_ascii_digit()).next().and_then(|own| own.parse().ok()).expect(before)
            };
            let warps = (rows / number("grid ceil(M/")) * number("warps ");
            let most = warps_of_each * i64::from(machine.multiprocessors);
            assert!(warps <= most && 2 * warps > most, "{} {length}: {warps} of {most}", machine.name);
        }
    }
    // Without a machine, it is that of an H200.
    let norm = RmsNorm { length: 1024, weight: true, about_rows: 1 << 14, ..RmsNorm::default() };
    let h200 = norm.kernels(true, &Machine::named("H200").expect("an H200")).unwrap();
    assert_eq!(norm.backward().unwrap().to_string(), h200.text);
}
