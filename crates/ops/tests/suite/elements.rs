//! Functions of elements and dropout, beside their formulas in f64.

use tilewright_ops::{Activation, Dropout, Operator};
use tilewright_tile::Element;

use crate::oracle::{check_both, close, differences, numbers, run};

/// The error function, by its Taylor series.
fn erf(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..200 {
        let n = f64::from(n);
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

fn function(name: &str, x: f64) -> f64 {
    match name {
        "identity" => x,
        "relu" => x.max(0.0),
        "relu_squared" => x.max(0.0).powi(2),
        "sigmoid" => 1.0 / (1.0 + (-x).exp()),
        "silu" => x / (1.0 + (-x).exp()),
        "tanh" => x.tanh(),
        "gelu" => x * 0.5 * (1.0 + erf(x / 2.0_f64.sqrt())),
        "gelu_tanh" => x * 0.5 * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh()),
        _ => panic!("{name} is unknown"),
    }
}

const NAMES: [&str; 8] = ["identity", "relu", "relu_squared", "sigmoid", "silu", "tanh", "gelu", "gelu_tanh"];

#[test]
fn functions_have_the_values_and_gradients_of_their_formulas() {
    for (rows, wide) in [(1_usize, 1_usize), (3, 2049)] {
        let sizes = [
            "M",
            "N",
            "x_pitch",
            "gate_pitch",
            "up_pitch",
            "y_pitch",
            "d_y_pitch",
            "d_x_pitch",
            "d_gate_pitch",
            "d_up_pitch",
        ]
        .map(|name| (name, if name == "M" { rows as i64 } else { wide as i64 }));
        let scaled = |seed| -> Vec<f64> { numbers(rows * wide, seed).iter().map(|own| own * 3.0 + 1e-3).collect() };
        let (x, up, d) = (scaled(1), scaled(2), numbers(rows * wide, 3));
        for name in NAMES {
            let operator = Activation { function: name.to_string(), ..Activation::default() };
            let values: Vec<f64> = x.iter().map(|x| function(name, *x)).collect();
            let found = run(operator.forward(), &sizes, &[("x", x.clone())]);
            close(name, found.of("y"), &values, 1e-5);
            let slopes: Vec<f64> =
                x.iter().zip(&d).flat_map(|(x, d)| differences(|x| vec![function(name, x[0])], &[*x], &[*d])).collect();
            let found = run(operator.backward(), &sizes, &[("x", x.clone()), ("d_y", d.clone())]);
            close(name, found.of("d_x"), &slopes, 1e-4);

            let operator = Activation { gated: true, ..operator };
            let products: Vec<f64> = values.iter().zip(&up).map(|(value, up)| value * up).collect();
            let found = run(operator.forward(), &sizes, &[("gate", x.clone()), ("up", up.clone())]);
            close(name, found.of("y"), &products, 1e-5);
            let inputs = [("gate", x.clone()), ("up", up.clone()), ("d_y", d.clone())];
            let found = run(operator.backward(), &sizes, &inputs);
            let by_gate: Vec<f64> = slopes.iter().zip(&up).map(|(slope, up)| slope * up).collect();
            let by_up: Vec<f64> = values.iter().zip(&d).map(|(value, d)| value * d).collect();
            close(name, found.of("d_gate"), &by_gate, 1e-4);
            close(name, found.of("d_up"), &by_up, 1e-5);

            // With the result, everything is what two launches compute.
            let both = run(Activation { with_result: true, ..operator.clone() }.backward(), &sizes, &inputs);
            let alone = run(operator.forward(), &sizes, &inputs[..2]);
            assert_eq!(both.of("y"), alone.of("y"), "{name}");
            assert_eq!((both.of("d_gate"), both.of("d_up")), (found.of("d_gate"), found.of("d_up")), "{name}");
        }
    }
}

/// The slope of a function at 0, and far from 0 on either side.
fn far_slopes(name: &str, x: f64) -> f64 {
    let (at_zero, behind, before) = match name {
        "identity" => (1.0, 1.0, 1.0),
        "relu" => (0.0, 1.0, 0.0),
        "relu_squared" => (0.0, 2.0 * x, 0.0),
        "sigmoid" => (0.25, 0.0, 0.0),
        "tanh" => (1.0, 0.0, 0.0),
        _ => (0.5, 1.0, 0.0),
    };
    if x == 0.0 {
        at_zero
    } else if x > 0.0 {
        behind
    } else {
        before
    }
}

#[test]
fn slopes_at_zero_and_far_from_it_are_numbers() {
    // Powers of the last ones overflow.
    let x = vec![0.0, 45.0, -45.0, 60.0, -60.0, 89.0, -89.0, 120.0, -120.0, 3e3, -3e3];
    let count = x.len();
    let names =
        ["N", "x_pitch", "gate_pitch", "up_pitch", "y_pitch", "d_y_pitch", "d_x_pitch", "d_gate_pitch", "d_up_pitch"];
    let mut sizes = vec![("M", 1)];
    sizes.extend(names.map(|name| (name, count as i64)));
    let ones = || vec![1.0; count];
    for name in NAMES {
        let exact: Vec<f64> = x.iter().map(|x| far_slopes(name, *x)).collect();
        let operator = Activation { function: name.to_string(), ..Activation::default() };
        let found = run(operator.backward(), &sizes, &[("x", x.clone()), ("d_y", ones())]);
        close(name, found.of("d_x"), &exact, 1e-6);
        let inputs = [("gate", x.clone()), ("up", ones()), ("d_y", ones())];
        let found = run(Activation { gated: true, ..operator }.backward(), &sizes, &inputs);
        close(name, found.of("d_gate"), &exact, 1e-6);
    }
}

#[test]
fn dropout_keeps_the_same_elements_forward_and_backward() {
    for (probability, count) in [(0.0, 100_usize), (0.1, 5000), (0.9, 5000)] {
        let operator = Dropout { probability, ..Dropout::default() };
        let (x, d) = (vec![1.0; count], vec![3.0; count]);
        let sizes = [("N", count as i64)];
        let seed = ("seed", vec![12345.0]);
        let forward = run(operator.forward(), &sizes, &[("x", x), seed.clone()]);
        let backward = run(operator.backward(), &sizes, &[("d_y", d), seed]);
        let scale = f64::from((1.0 / (1.0 - probability)) as f32);
        let kept = forward.of("y").iter().filter(|own| **own != 0.0).count() as f64;
        let expected = (1.0 - probability) * count as f64;
        assert!(
            (kept - expected).abs() <= 4.0 * (expected * probability).sqrt(),
            "{kept} of {count} with {probability}"
        );
        for (y, d) in forward.of("y").iter().zip(backward.of("d_x")) {
            assert!(*y == 0.0 || (*y - scale).abs() < 1e-6);
            assert!((3.0 * y - d).abs() < 1e-5);
        }
    }
}

#[test]
fn kernels_compute_what_their_programs_mean() {
    let sizes = [
        "M",
        "N",
        "x_pitch",
        "gate_pitch",
        "up_pitch",
        "y_pitch",
        "d_y_pitch",
        "d_x_pitch",
        "d_gate_pitch",
        "d_up_pitch",
    ]
    .map(|name| (name, if name == "M" { 2 } else { 3000 }));
    for name in NAMES {
        let operator = Activation {
            function: name.to_string(),
            gated: true,
            element: Element::Bf16,
            alignment: 8,
            ..Activation::default()
        };
        check_both(&operator, &sizes);
    }
    check_both(&Dropout { element: Element::Bf16, ..Dropout::default() }, &[("N", 3000)]);
}
