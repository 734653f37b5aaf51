//! Programs of the library compared with plain loops in f64: the result of the tile interpreter,
//! that of the program with conversions, and that of the kernel, for the same inputs.

mod by_hand;
mod coordinates;
mod elements;
mod experts;
mod extents;
mod functions;
mod halos;
mod in_place;
mod integers;
mod own_rings;
mod parts;
mod places;
mod roles;
mod rounded;
pub mod run;
mod scalars;
mod searches;
mod stages;
mod together;
mod wide;

use half::bf16;
use run::{Case, kernel};
use tilewright_tile::{LIBRARY, Program, interpret};

/// Random numbers between `-scale` and `scale`, each one of bf16.
fn numbers(seed: u64, count: usize, scale: f64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (state >> 40) as f64 / f64::from(1 << 23) - 1.0;
        bf16::from_f64(unit * scale).to_f64()
    };
    (0..count).map(next).collect()
}

/// Every element is within `near` of the expected one, relative to its magnitude or 1.
fn compare(who: &str, found: &[Option<f64>], wanted: &[f64], near: f64) {
    assert_eq!(found.len(), wanted.len());
    for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let found = found.unwrap_or_else(|| panic!("{who}: element {at} was never written"));
        let off = (found - wanted).abs();
        assert!(
            found == *wanted || off <= near * wanted.abs().max(1.0),
            "{who}: element {at} is {found}, not {wanted}"
        );
    }
}

fn program(name: &str) -> Program {
    let entry = LIBRARY.iter().find(|own| own.name == name).unwrap();
    Program::read(name, entry.text).unwrap_or_else(|error| panic!("{error}"))
}

/// The same program for another row length.
fn with_rows(name: &str, columns: i64, tile: i64, rows: i64) -> Program {
    let entry = LIBRARY.iter().find(|own| own.name == name).unwrap();
    let text = entry
        .text
        .replace("(1,4096), (", &format!("({rows},{tile}), ("))
        .replace(&format!("({rows},{tile}), (0"), &format!("(1,{tile}), (0"))
        .replace("4096", &columns.to_string())
        .replace(&format!("({rows},{columns}), ("), &format!("({rows},{tile}), ("))
        .replace("grid M", &format!("grid ceil(M/{rows})"));
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The results of the tile interpreter, the placed program and the kernel are within `near`.
fn agrees(program: &Program, case: &Case<'_>, wanted: &[f64], near: f64) {
    let (sizes, inputs) = (&case.sizes, &case.inputs);
    let meant = interpret::run(program, sizes, inputs).unwrap_or_else(|error| panic!("{error}"));
    compare("the interpreter", &meant[0].1, wanted, near);
    let compiled = program.compile(None).unwrap_or_else(|error| panic!("{error}"));
    compiled.placed().verify().unwrap_or_else(|error| panic!("{error}"));
    let placed = interpret::run(compiled.placed(), sizes, inputs).unwrap();
    assert_eq!(placed, meant, "conversions change {}", program.name());
    let found = kernel(&compiled, case, &meant[0].0);
    let found: Vec<Option<f64>> = found.into_iter().map(Some).collect();
    compare("the kernel", &found, wanted, near);
}

fn rows(x: &[f64], columns: usize) -> impl Iterator<Item = &[f64]> {
    x.chunks(columns)
}

#[test]
fn softmax_is_that_of_rows() {
    for (columns, tile, block, count) in [(256, 256, 4, 6), (200, 256, 2, 3), (33, 64, 1, 2)] {
        let x = numbers(1, count * columns, 4.0);
        let wanted: Vec<f64> = rows(&x, columns)
            .flat_map(|row| {
                let greatest = row.iter().copied().fold(f64::MIN, f64::max);
                let sum: f64 = row.iter().map(|x| (x - greatest).exp()).sum();
                row.iter().map(|x| (x - greatest).exp() / sum).collect::<Vec<_>>()
            })
            .collect();
        let program = with_rows("softmax", columns as i64, tile, block);
        agrees(&program, &Case::new(&[("M", count as i64)], &[("x", x)]), &wanted, 1.0 / 128.0);
    }
}

#[test]
fn layer_norm_is_that_of_rows() {
    let (columns, count) = (256, 5);
    let [x, residual, weight, bias] =
        [(1, count), (2, count), (3, 1), (4, 1)].map(|(seed, rows)| numbers(seed, rows * columns, 1.0));
    let wanted: Vec<f64> = rows(&x, columns)
        .zip(rows(&residual, columns))
        .flat_map(|(x, residual)| {
            let a: Vec<f64> = x.iter().zip(residual).map(|(x, r)| x + r).collect();
            let mean = a.iter().sum::<f64>() / columns as f64;
            let variance = a.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / columns as f64;
            let factor = 1.0 / (variance + 1e-5).sqrt();
            (0..columns).map(|at| (a[at] - mean) * factor * weight[at] + bias[at]).collect::<Vec<_>>()
        })
        .collect();
    let inputs = [("x", x), ("residual", residual), ("weight", weight), ("bias", bias)];
    let program = with_rows("layer_norm_residual", columns as i64, 256, 2);
    agrees(&program, &Case::new(&[("M", count as i64)], &inputs), &wanted, 1.0 / 64.0);
}

#[test]
fn rms_norm_is_that_of_rows() {
    let (columns, count) = (128, 7);
    let [x, gate, weight] = [(1, count), (2, count), (3, 1)].map(|(seed, rows)| numbers(seed, rows * columns, 2.0));
    let wanted: Vec<f64> = rows(&x, columns)
        .zip(rows(&gate, columns))
        .flat_map(|(x, gate)| {
            let mean = x.iter().map(|x| x * x).sum::<f64>() / columns as f64;
            let factor = 1.0 / (mean + 1e-5).sqrt();
            let silu = |g: f64| g / (1.0 + (-g).exp());
            (0..columns).map(|at| x[at] * factor * weight[at] * silu(gate[at])).collect::<Vec<_>>()
        })
        .collect();
    let program = with_rows("rms_norm_gate", columns as i64, 128, 4);
    agrees(
        &program,
        &Case::new(&[("M", count as i64)], &[("x", x), ("gate", gate), ("weight", weight)]),
        &wanted,
        1.0 / 32.0,
    );
}

#[test]
fn a_product_is_that_of_matrices() {
    let (m, n, k) = (150, 136, 72);
    let [a, b, bias] = [(1, m * k), (2, k * n), (3, n)].map(|(seed, count)| numbers(seed, count, 1.0));
    let mut wanted = Vec::new();
    for row in 0..m {
        for column in 0..n {
            let sum: f64 = (0..k).map(|at| a[row * k + at] * b[at * n + column]).sum();
            let x = sum + bias[column];
            wanted.push(x * 0.5 * (1.0 + (x * 0.797_884_560_8 * (1.0 + x * x * 0.044_715)).tanh()));
        }
    }
    let sizes = [("M", m as i64), ("N", n as i64), ("K", k as i64)];
    agrees(&program("product"), &Case::new(&sizes, &[("a", a), ("b", b), ("bias", bias)]), &wanted, 1.0 / 16.0);
}

#[test]
fn attention_is_that_of_heads() {
    // Two heads with the same keys and values.
    let (length, group, heads) = (100, 2, 1);
    let q = numbers(1, length * 64 * group * heads, 1.0);
    let [k, v] = [2, 3].map(|seed| numbers(seed, length * 64 * heads, 1.0));
    let mut wanted = vec![0.0; q.len()];
    for (head, which) in (0..heads).flat_map(|head| (0..group).map(move |which| (head, which))) {
        let of_query = |row: usize, column: usize| ((head * group + which) * length + row) * 64 + column;
        let at = |row: usize, column: usize| (head * length + row) * 64 + column;
        for row in 0..length {
            let score = |key: usize| (0..64).map(|d| q[of_query(row, d)] * k[at(key, d)]).sum::<f64>() / 8.0;
            let powers: Vec<f64> = (0..=row).map(|key| score(key).exp()).collect();
            let sum: f64 = powers.iter().sum();
            for d in 0..64 {
                wanted[of_query(row, d)] =
                    powers.iter().enumerate().map(|(key, power)| power * v[at(key, d)]).sum::<f64>() / sum;
            }
        }
    }
    let sizes = [("S", length as i64), ("G", group as i64), ("H", heads as i64)];
    agrees(&program("attention"), &Case::new(&sizes, &[("q", q), ("k", k), ("v", v)]), &wanted, 1.0 / 64.0);
}

#[test]
fn programs_of_the_library_are_what_they_mean_at_their_own_sizes() {
    for entry in &LIBRARY {
        let compiled = program(entry.name).compile(None).unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        let report = compiled.check(entry.sizes).unwrap_or_else(|wrong| panic!("{}: {wrong}", entry.name));
        assert!(report.outputs.iter().all(|own| own.compared > 0), "{}: {:?}", entry.name, report.outputs);
    }
}

#[test]
fn programs_of_several_inputs_are_checked() {
    for (name, sizes) in [("rms_norm_gate", &[("M", 2)][..]), ("int4_product", &[("M", 3), ("N", 128)])] {
        let report = program(name).compile(None).unwrap().check(sizes);
        let report = report.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(report.outputs.iter().all(|own| own.compared > 0 && own.farthest <= own.rounding), "{report:?}");
    }
}
