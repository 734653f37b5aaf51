//! The tensors of a GEMM on a device: they are filled, multiplied, and compared.
//!
//! Law: inputs repeat a block of numbers that the host knows, and outputs are poisoned before the
//! kernels run.

use tilewright_kernel::machine::Machine;
use tilewright_planners::gemm::{Each, Expected, Matrix, Problem, ProductTensor, Step};
use tilewright_planners::{any_numbers, bits_at};

use crate::devices::bench::BenchError;
use crate::{Argument, Device, GpuError, Memory, ModuleOptions, SizedKernel, Stream};

/// The approximate number of multiplications for checking a GEMM.
pub const CHECKED: i64 = 1 << 25;
/// Inputs repeat after this many elements. It is a prime, so that rows differ.
const PERIOD: usize = 1_048_573;

/// A kernel at its sizes, and its step of the plan.
pub type Ready = (SizedKernel, Step);

/// The memory of the tensors of a GEMM.
pub struct Tensors {
    /// Each tensor and its memory, in no particular order.
    pub memory: Vec<(ProductTensor, Memory)>,
}

/// The repeating numbers of an input: the bytes of an element, and the bytes of the block.
pub type Block = (ProductTensor, usize, Vec<u8>);

impl Tensors {
    /// Inputs that repeat a block of numbers, and poisoned memory for the other tensors. Row groups
    /// end at `ends`, or at random rows. `place` is the position of the problem in a list; problems
    /// at different positions have different numbers.
    pub fn filled(
        device: &Device,
        stream: &Stream,
        (problem, place): (&Problem, usize),
        ends: Option<&[u8]>,
        workspaces: &[i64],
    ) -> Result<(Tensors, Vec<Block>), BenchError> {
        let mut tensors = Tensors { memory: Vec::new() };
        let mut blocks = Vec::new();
        let bytes_of = |matrix: &Matrix| matrix.reach().map(|reach| reach as u64 * u64::from(matrix.element().bytes()));
        for (number, operand) in problem.given().into_iter().enumerate() {
            let Some(matrix) = problem.matrix(operand) else { continue };
            let block = match operand {
                ProductTensor::Ends => ends.map_or_else(|| problem.any_ends(number as u64), <[u8]>::to_vec),
                _ => {
                    let element = problem.random_type(operand, matrix.element());
                    any_numbers(element, PERIOD, number as u64 + 1 + 1000 * place as u64)
                }
            };
            let bytes = bytes_of(matrix)?;
            // Kernels may load up to a cache line beyond the last element.
            let mut memory = device.allocate(bytes + 256)?;
            memory.repeat(stream, bytes, &block)?;
            blocks.push((operand, matrix.element().bytes() as usize, block));
            tensors.memory.push((operand, memory));
        }
        for (number, bytes) in workspaces.iter().enumerate() {
            let mut memory = device.allocate(*bytes as u64)?;
            memory.fill_bytes(stream, 0xa5)?;
            tensors.memory.push((ProductTensor::Workspace(number), memory));
        }
        for operand in problem.outputs() {
            let Some(matrix) = problem.matrix(operand) else { continue };
            let mut memory = device.allocate(bytes_of(matrix)?)?;
            memory.fill_bytes(stream, 0xa5)?;
            tensors.memory.push((operand, memory));
        }
        Ok((tensors, blocks))
    }

    /// Poisons the outputs.
    pub fn poison(&mut self, stream: &Stream, problem: &Problem) -> Result<(), GpuError> {
        let written = problem.outputs();
        for (_, memory) in self.memory.iter_mut().filter(|(operand, _)| written.contains(operand)) {
            memory.fill_bytes(stream, 0xa5)?;
        }
        Ok(())
    }

    /// Launches the kernels of one GEMM in order, and returns at once.
    pub fn launch(&mut self, stream: &Stream, kernels: &[Ready]) -> Result<(), GpuError> {
        Tensors::launch_all(std::slice::from_mut(self), stream, kernels)
    }

    /// Launches kernels on the tensors of a list of problems. The tensors of the first problem
    /// include the workspace of all.
    pub fn launch_all(all: &mut [Tensors], stream: &Stream, kernels: &[Ready]) -> Result<(), GpuError> {
        for (kernel, step) in kernels {
            let own = |(problem, operand): (usize, &ProductTensor)| match operand {
                ProductTensor::Workspace(_) => (0, *operand),
                operand => (problem, *operand),
            };
            let operands: Vec<(usize, ProductTensor)> = step.problems().zip(step.operands()).map(own).collect();
            let (from, to) = operands.split_at(step.read_and_written().0.len());
            // Outputs are removed from the list, so that the others can be borrowed.
            let mut written = Vec::new();
            for (problem, operand) in to {
                let memory = &mut all[*problem].memory;
                if let Some(at) = memory.iter().position(|(known, _)| known == operand) {
                    written.push((*problem, memory.swap_remove(at)));
                }
            }
            let read = from.iter().filter_map(|(problem, operand)| all[*problem].of(*operand));
            let mut arguments: Vec<Argument<'_>> = read.map(Argument::from).collect();
            arguments.extend(written.iter_mut().map(|(_, (_, memory))| Argument::from(memory)));
            let launched = kernel.launch(stream, &arguments);
            drop(arguments);
            written.into_iter().for_each(|(problem, memory)| all[problem].memory.push(memory));
            launched?;
        }
        Ok(())
    }

    /// The memory of a tensor; None if the GEMM has no such tensor.
    pub fn of(&self, operand: ProductTensor) -> Option<&Memory> {
        self.memory.iter().find(|(known, _)| *known == operand).map(|(_, memory)| memory)
    }
}

/// The compiled kernels of a GEMM or of a list, planned for a machine. If the machine has an
/// earlier target than the device, the device runs the PTX for that target.
pub fn ready(device: &Device, steps: &[Step], machine: &Machine) -> Result<Vec<Ready>, BenchError> {
    let runs = machine.target.runs_on(device.capability());
    let target = if runs { machine.target } else { device.target()? };
    let compiled = steps.iter().map(|step| {
        let compiled = device.compile_for(step.kernel(), target, &ModuleOptions::default())?;
        Ok((compiled.at(step.sizes())?, step.clone()))
    });
    compiled.collect()
}

/// Expected elements of D, spread over the whole matrix: as many as this number of multiplications
/// can compute, except rows that are in no group.
pub fn wanted(problem: &Problem, blocks: &[Block], multiplications: i64) -> Result<Vec<Expected>, BenchError> {
    let [m, n, k] = problem.sizes();
    let all = m * n * problem.batch();
    let taken = (multiplications / k).clamp(64, all.max(64)).min(all);
    let input = |operand: ProductTensor, at: i64| of_block(blocks, operand, at);
    let of = |number: i64| {
        // The first, the last, and others at equal distances; all of them, if there are few.
        let index =
            if taken < 2 { 0 } else { (i128::from(number) * i128::from(all - 1) / i128::from(taken - 1)) as i64 };
        let (row, column, matrix) = (index / n % m, index % n, index / (n * m));
        let own = if problem.row_groups().is_some() { group_of(problem, &input, row) } else { Some(matrix) };
        own.map(|matrix| Ok(problem.expected(&input, [row, column, matrix])?)).transpose()
    };
    (0..taken).filter_map(|number| of(number).transpose()).collect()
}

/// The group of a row; None if it is in no group.
pub fn group_of(problem: &Problem, input: &dyn Fn(ProductTensor, i64) -> u64, row: i64) -> Option<i64> {
    problem.row_group_of(row, |group| i64::from(input(ProductTensor::Ends, group) as u32 as i32))
}

/// The bits of an element of an input.
pub fn of_block(blocks: &[Block], operand: ProductTensor, at: i64) -> u64 {
    let found = blocks.iter().find(|(known, ..)| *known == operand);
    found.map_or(0, |(_, width, block)| bits_at(block, *width, at as usize % PERIOD))
}

/// Compares elements of D with expected ones. Returns the greatest error and its bound, and the
/// greatest error in units of its bound.
pub fn compare(
    problem: &Problem,
    stream: &Stream,
    wanted: &[Expected],
    tensors: &Tensors,
) -> Result<[f64; 3], BenchError> {
    let Some(d) = tensors.of(ProductTensor::D) else { return Ok([0.0; 3]) };
    let mut left = vec![0; usize::try_from(d.bytes()).unwrap_or(0)];
    d.read(stream, 0, &mut left)?;
    let width = problem.result_type().bytes() as usize;
    let (mut greatest, mut bound, mut worst) = (0.0_f64, 0.0_f64, 0.0_f64);
    for wanted in wanted {
        let found = bits_at(&left, width, wanted.place as usize);
        let distance = wanted.distance(found)?;
        worst = worst.max(distance);
        let error = distance * wanted.bound;
        if error >= greatest {
            (greatest, bound) = (error, wanted.bound);
        }
    }
    Ok([greatest, bound, worst])
}

/// Compares some elements of each epilogue reduction with the definition. Returns their number.
pub fn compare_kept(
    problem: &Problem,
    stream: &Stream,
    input: &dyn Fn(ProductTensor, i64) -> u64,
    tensors: &Tensors,
    worst: &mut f64,
) -> Result<usize, BenchError> {
    let [m, n, k] = problem.sizes();
    let mut compared = 0;
    for (number, by) in problem.reductions().enumerate() {
        let Some(memory) = tensors.of(ProductTensor::Reduction(number)) else { continue };
        let mut left = vec![0; usize::try_from(memory.bytes()).unwrap_or(0)];
        memory.read(stream, 0, &mut left)?;
        let (extent, along) = if by.each == Each::Row { (m, n) } else { (n, m) };
        // With row groups, a column has a separate result for each group.
        let matrices = if by.each == Each::Column { problem.row_groups() } else { None };
        let all = extent * matrices.unwrap_or(problem.batch());
        let taken = (CHECKED / (k * along).max(1)).clamp(2, 64).min(all);
        for at in 0..taken {
            // The first, the last, and some between.
            let index = if taken < 2 { 0 } else { at * (all - 1) / (taken - 1) };
            let Some(wanted) = problem.expected_reduction(input, number, [index % extent, index / extent])? else {
                continue;
            };
            *worst = worst.max(wanted.distance(bits_at(&left, 4, wanted.place as usize))?);
            compared += 1;
        }
    }
    Ok(compared)
}
