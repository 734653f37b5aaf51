//! Functions of each element, beside definitions in f64, over dense grids and at the ends.

use super::run::{Case, kernel};
use tilewright_tile::{Program, interpret};

/// The unit in the last place of f32 at a number.
fn unit(at: f64) -> f64 {
    let bits = (at.abs() as f32).max(f32::MIN_POSITIVE).to_bits();
    f64::from(f32::from_bits(bits + 1)) - f64::from(f32::from_bits(bits))
}

/// Twice the integral of `e^(-t^2)` from 0 over the root of pi, by Simpson's rule on 2000 parts.
fn error_function(x: f64) -> f64 {
    let step = x / 2000.0;
    let weight = |at: i32| if at == 0 || at == 2000 { 1.0 } else { f64::from(2 + 2 * (at % 2)) };
    let sum: f64 = (0..=2000).map(|at| weight(at) * (-(step * f64::from(at)).powi(2)).exp()).sum();
    sum * step / 3.0 * 2.0 / std::f64::consts::PI.sqrt()
}

/// Runs numbers through the tile interpreter and the kernel: blocks of 1000 in tiles of 1024.
fn both(function: &str, x: &[f32]) -> [Vec<f64>; 2] {
    let text = format!(
        "tile each {{\n input x: f32 (1000,B):(1,1000)\n output y: f32 (1000,B):(1,1000)\n grid B\n \
         store(y, (0, block.x), {function}(load(x, (1024,1), (0, block.x))))\n}}"
    );
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(program.to_string().parse::<Program>().unwrap().to_string(), program.to_string());
    let blocks = x.len().div_ceil(1000);
    let mut given: Vec<f64> = x.iter().copied().map(f64::from).collect();
    given.resize(1000 * blocks, 1.0);
    let sizes = [("B", blocks as i64)];
    let meant = interpret::run(&program, &sizes, &[("x", given.clone())]).unwrap_or_else(|error| panic!("{error}"));
    let compiled = program.compile(None).unwrap_or_else(|error| panic!("{error}"));
    let found = kernel(&compiled, &Case::new(&sizes, &[("x", given)]), "y");
    let meant = meant[0].1.iter().map(|value| value.unwrap()).collect();
    [meant, found]
}

/// Numbers from `from` to `to` at even distances, those next to zero and to each power of two, and
/// what is no number.
fn grid(from: f32, to: f32, count: u16) -> Vec<f32> {
    let each = |at: u16| from + (to - from) * f32::from(at) / f32::from(count - 1);
    let mut found: Vec<f32> = (0..count).map(each).collect();
    for power in (-140..127).step_by(3).map(|power| 2.0_f64.powi(power) as f32) {
        let near = [power, f32::from_bits(power.to_bits() + 1), f32::from_bits(power.to_bits() - 1)];
        found.extend(near.iter().filter(|own| **own <= to));
        found.extend(near.iter().map(|own| -own).filter(|own| *own >= from));
    }
    found.extend([0.0, -0.0, f32::NAN]);
    found
}

/// Every element of both is within this many units in the last place, or so much, of the
/// definition.
fn near(function: &str, x: &[f32], of: impl Fn(f64) -> f64, units: f64, apart: f64) {
    for (who, found) in ["the interpreter", "the kernel"].into_iter().zip(both(function, x)) {
        for (x, found) in x.iter().zip(found) {
            let wanted = of(f64::from(*x));
            let same = found == wanted || found.is_nan() && wanted.is_nan();
            let within = (found - wanted).abs() <= (units * unit(wanted)).max(apart);
            assert!(same || within, "{who}: {function}({x:e}) is {found:e}, not {wanted:e}");
            let keeps_sign = wanted != 0.0 || found.is_sign_negative() == wanted.is_sign_negative();
            assert!(keeps_sign || !same, "{who}: {function}({x:e}) is {found:e}, not {wanted:e}");
        }
    }
}

#[test]
fn sines_are_within_two_units_for_angles_that_positions_have() {
    let mut x = grid(-131_071.0, 131_071.0, 4000);
    x.extend(grid(-7.0, 7.0, 4000));
    x.extend([f32::INFINITY, f32::NEG_INFINITY]);
    // The numbers of f32 that are nearest to multiples of pi/2, where all digits cancel.
    let multiples = [1, 2, 3, 4, 7, 100, 355, 1000, 12_345, 83_000];
    x.extend(multiples.map(|n| (f64::from(n) * std::f64::consts::FRAC_PI_2) as f32));
    near("sin", &x, f64::sin, 2.0, 0.0);
    near("cos", &x, f64::cos, 2.0, 0.0);
}

#[test]
fn sines_of_large_numbers_are_within_the_stated_bound() {
    let power = |at: u16| f32::from_bits(0x4800_0000 + u32::from(at) * 0x3333) * [1.0, -1.0][usize::from(at % 2)];
    let mut x: Vec<f32> = (0..4000).map(power).collect();
    x.extend([131_072.0, -131_072.0, f32::MAX, f32::MIN, 1e22, 6_381_956_970_095_103.0 * 2.0_f32.powi(60)]);
    near("sin", &x, f64::sin, 0.0, 2.0_f64.powi(-23));
    near("cos", &x, f64::cos, 0.0, 2.0_f64.powi(-23));
}

#[test]
fn the_error_function_is_within_two_units_of_its_integral() {
    let mut x = grid(-6.0, 6.0, 4000);
    x.extend(grid(0.9, 1.1, 1000));
    let ends = [(f32::INFINITY, 1.0), (f32::NEG_INFINITY, -1.0), (40.0, 1.0), (-1e30, -1.0)];
    near("erf", &x, error_function, 2.0, 0.0);
    for (x, wanted) in ends {
        for found in both("erf", &[x]) {
            assert_eq!(found[0], wanted, "erf({x})");
        }
    }
    // A table: Abramowitz and Stegun, 7.1.
    for (x, wanted) in [(0.1, 0.112_462_916), (0.5, 0.520_499_878), (1.0, 0.842_700_793), (2.0, 0.995_322_265)] {
        assert!((error_function(x) - wanted).abs() < 1e-9);
    }
}

#[test]
fn logarithms_are_those_to_base_two_times_a_constant() {
    let mut x = grid(0.001, 50.0, 4000);
    x.extend([1e-40, 1e38, f32::INFINITY, -1.0, -0.0, 1.0]);
    near("log", &x, f64::ln, 4.0, 2.0_f64.powi(-22));
}

#[test]
fn whole_parts_are_exact() {
    let mut x = grid(-9.0, 9.0, 2881);
    x.extend([8_388_607.5, -8_388_607.5, 1e30, f32::INFINITY, f32::NEG_INFINITY]);
    let even = |x: f64| {
        let (below, above) = (x.floor(), x.ceil());
        match (x - below).total_cmp(&(above - x)) {
            std::cmp::Ordering::Equal if below % 2.0 == 0.0 => below,
            std::cmp::Ordering::Less => below,
            _ => above,
        }
    };
    near("floor", &x, f64::floor, 0.0, 0.0);
    near("ceil", &x, f64::ceil, 0.0, 0.0);
    near("round", &x, |x| if x.is_infinite() { x } else { even(x).copysign(x) }, 0.0, 0.0);
}

#[test]
fn integers_have_none_of_these_functions() {
    for function in ["sin", "erf", "floor", "log"] {
        let text = format!("tile t {{\n output y: f32 8:1\n grid 1\n a = {function}(arange((8), 0))\n}}");
        let error = text.parse::<Program>().unwrap_err();
        assert!(error.to_string().contains("f32") && error.place().unwrap().line() == 4, "{error}");
    }
}
