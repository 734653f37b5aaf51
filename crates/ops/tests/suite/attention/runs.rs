//! Kernels of attention on the interpreter of kernels, one after another.

use tilewright_kernel::interpret::Interpreter;
use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::memory::Role;
use tilewright_ops::Operator;
use tilewright_tile::Element;

use super::Case;

/// Numbers as the bytes of a tensor.
pub fn bytes_of(element: Element, all: &[f64]) -> Vec<u8> {
    match element {
        Element::F32 => all.iter().flat_map(|own| (*own as f32).to_le_bytes()).collect(),
        // Rounded to nearest; ties away from zero do not occur in what the test draws.
        _ => all
            .iter()
            .flat_map(|own| (((*own as f32).to_bits().wrapping_add(0x8000) >> 16) as u16).to_le_bytes())
            .collect(),
    }
}

/// The numbers of bytes of bf16.
pub fn of_bf16(bytes: &[u8]) -> Vec<f64> {
    let number = |pair: &[u8]| f64::from(f32::from_bits(u32::from(u16::from_le_bytes([pair[0], pair[1]])) << 16));
    bytes.chunks_exact(2).map(number).collect()
}

/// The bytes of tensors by their names.
pub type Known = Vec<(String, Vec<u8>)>;

impl Case {
    /// Runs kernels one after another on the interpreter of kernels, and adds what they leave to
    /// what is known. Returns the names of the kernels.
    pub fn run_kernels(&self, is_backward: bool, machine: &Machine, known: &mut Known) -> Vec<String> {
        let sizes = self.sizes();
        let about = format!("{:?} of {} queries and {} keys", self.options, self.queries, self.keys);
        let kernels = self.options.kernels(is_backward, machine).unwrap_or_else(|error| panic!("{error}: {about}"));
        let mut names = Vec::new();
        for kernel in &kernels.kernels {
            let program = kernel.program();
            let of_program: Vec<&str> = program.sizes.iter().filter_map(|size| size.name()).collect();
            let own: Vec<(&str, i64)> = sizes
                .iter()
                .map(|(name, size)| (name.as_str(), *size))
                .filter(|(name, _)| of_program.contains(name))
                .collect();
            let mut interpreter =
                Interpreter::new(program, &own).unwrap_or_else(|error| panic!("{}: {error}", program.name));
            for tensor in program.tensors().filter(|own| own.role != Role::Output) {
                let found = known.iter().find(|(name, _)| *name == tensor.name);
                let (name, bytes) = found.unwrap_or_else(|| panic!("nothing gives `{}`", tensor.name));
                interpreter.bytes(name.as_str(), bytes).unwrap_or_else(|error| panic!("{}: {error}", program.name));
            }
            let checked = interpreter.check().unwrap_or_else(|error| panic!("{}: {error}\n{about}", program.name));
            for tensor in program.tensors().filter(|own| own.role != Role::Input) {
                let bytes = checked.run.bytes(tensor.name.as_str()).unwrap_or_else(|error| panic!("{error}")).to_vec();
                known.retain(|(name, _)| *name != tensor.name);
                known.push((tensor.name.clone(), bytes));
            }
            names.push(program.name.clone());
        }
        names
    }
}
