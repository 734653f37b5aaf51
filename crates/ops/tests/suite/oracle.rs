//! What the tests share: numbers, results by name, and comparisons.

use tilewright_kernel::machine::Machine;
use tilewright_ops::{Operator, OperatorError};
use tilewright_tile::{CheckOptions, Role, Sequence};

/// Numbers between -1 and 1 that no type of 16 bits rounds, the same at each run.
pub fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from((state >> 40) as i32 % 256 - 128) / 128.0
    };
    (0..count).map(next).collect()
}

/// Draws of options and sizes, the same at each run.
pub struct Chance(u64);

impl Chance {
    /// Draws that a number begins.
    pub fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number less than `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// One of several.
    pub fn one<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// The results of a sequence by name; an element that is not written is NaN.
pub struct Results(Vec<(String, Vec<f64>)>);

impl Results {
    /// The elements of a result.
    pub fn of(&self, name: &str) -> &[f64] {
        let found = self.0.iter().find(|(own, _)| own == name);
        &found.unwrap_or_else(|| panic!("there is no result `{name}`")).1
    }
}

/// Runs the programs of an operator.
pub fn run(sequence: Result<Sequence, OperatorError>, sizes: &[(&str, i64)], inputs: &[(&str, Vec<f64>)]) -> Results {
    let sequence = sequence.unwrap_or_else(|error| panic!("{error}"));
    let results = sequence.run(sizes, inputs).unwrap_or_else(|error| panic!("{error}\n{sequence}"));
    let numbers = |all: Vec<Option<f64>>| all.into_iter().map(|own| own.unwrap_or(f64::NAN)).collect();
    Results(results.into_iter().map(|(name, all)| (name, numbers(all))).collect())
}

/// Requires that numbers are equal but for a share of the greatest of them; NaN equals NaN.
pub fn close(what: &str, found: &[f64], exact: &[f64], share: f64) {
    assert_eq!(found.len(), exact.len(), "{what}");
    let most = exact.iter().filter(|own| own.is_finite()).fold(1e-3_f64, |most, own| most.max(own.abs()));
    for (at, (found, exact)) in found.iter().zip(exact).enumerate() {
        let same = found == exact || (found.is_nan() && exact.is_nan()) || (found - exact).abs() <= share * most;
        assert!(same, "{what}[{at}] is {found}, not {exact}");
    }
}

/// Compiles every program of an operator and compares its kernel with its meaning, at these sizes.
pub fn check_kernels(sequence: Result<Sequence, OperatorError>, sizes: &[(&str, i64)]) {
    let sequence = sequence.unwrap_or_else(|error| panic!("{error}"));
    for program in sequence.programs() {
        let compiled = program.compile(None).unwrap_or_else(|error| panic!("{error}\n{program}"));
        let names: Vec<&str> = compiled.kernel().program().sizes.iter().filter_map(|size| size.name()).collect();
        let own: Vec<(&str, i64)> = sizes.iter().filter(|(name, _)| names.contains(name)).copied().collect();
        let options = CheckOptions { sizes: &own, contents: &[] };
        compiled.check(options).unwrap_or_else(|error| panic!("{error}\n{program}"));
    }
}

/// The derivative of a weighted sum of the results of a function of f64, by central differences.
pub fn differences(function: impl Fn(&[f64]) -> Vec<f64>, at: &[f64], weights: &[f64]) -> Vec<f64> {
    let step = 1e-5;
    let weighted = |at: &[f64]| function(at).iter().zip(weights).map(|(y, d)| y * d).sum::<f64>();
    let mut moved = at.to_vec();
    (0..at.len())
        .map(|number| {
            moved[number] = at[number] + step;
            let above = weighted(&moved);
            moved[number] = at[number] - step;
            let below = weighted(&moved);
            moved[number] = at[number];
            (above - below) / (2.0 * step)
        })
        .collect()
}

/// An operator of the test, forward and backward, compiled and compared at these sizes.
pub fn check_both(operator: &dyn Operator, sizes: &[(&str, i64)]) {
    check_kernels(operator.forward(), sizes);
    check_kernels(operator.backward(), sizes);
}

/// As [`check_kernels`], with these integers as the contents of some tensors; what a program writes
/// is what the later ones read.
pub fn check_kernels_of(sequence: Result<Sequence, OperatorError>, sizes: &[(&str, i64)], given: &[(&str, Vec<i32>)]) {
    check_kernels_on(sequence, None, sizes, given);
}

/// As [`check_kernels_of`], with kernels for a machine.
pub fn check_kernels_on(
    sequence: Result<Sequence, OperatorError>,
    machine: Option<&Machine>,
    sizes: &[(&str, i64)],
    given: &[(&str, Vec<i32>)],
) {
    let sequence = sequence.unwrap_or_else(|error| panic!("{error}"));
    let bytes = |all: &[i32]| all.iter().flat_map(|own| own.to_le_bytes()).collect::<Vec<u8>>();
    let mut known: Vec<(String, Vec<u8>)> = given.iter().map(|(name, all)| ((*name).to_string(), bytes(all))).collect();
    for program in sequence.programs() {
        let compiled = program.compile(machine).unwrap_or_else(|error| panic!("{error}\n{program}"));
        let names: Vec<&str> = compiled.kernel().program().sizes.iter().filter_map(|size| size.name()).collect();
        let sizes: Vec<(&str, i64)> = sizes.iter().filter(|(name, _)| names.contains(name)).copied().collect();
        let has = |name: &str| program.tensors().iter().any(|own| own.name == name && own.role != Role::Output);
        let contents: Vec<(&str, &[u8])> =
            known.iter().filter(|(name, _)| has(name)).map(|(name, all)| (name.as_str(), all.as_slice())).collect();
        let options = CheckOptions { sizes: &sizes, contents: &contents };
        let report = compiled.check(options).unwrap_or_else(|error| panic!("{error}\n{program}"));
        let written = program.tensors().iter().filter(|own| own.role != Role::Input);
        for tensor in written {
            let bytes =
                report.checked.run.bytes(tensor.name.as_str()).unwrap_or_else(|error| panic!("{error}")).to_vec();
            known.retain(|(name, _)| *name != tensor.name);
            known.push((tensor.name.clone(), bytes));
        }
    }
}
