//! GEMM run by the interpreter and compared with its definition in every element.

use tilewright_kernel::Element;
use tilewright_kernel::interpret::{CheckError, Checked, Interpreter, SetupError};

use crate::gemm::definition::Gathered;
use crate::gemm::problem::Problem;
use crate::gemm::problem::reductions::{Each, EpilogueReduction};
use crate::gemm::product::Product;
use crate::gemm::products::Products;
use crate::gemm::step::{ProductTensor, Step};
use crate::meaning::{self, Unchecked, any_numbers, bits_at};

/// The byte that fills D before a grouped GEMM, which leaves some rows unwritten.
const POISON: u8 = 0xa5;

/// What a check of a GEMM found.
#[derive(Debug, Clone)]
pub struct ProductReport {
    /// What the interpreter executed, kernel by kernel.
    pub checked: Vec<Checked>,
    /// The number of elements of D and of reductions of rows or columns that were compared: all of
    /// them.
    pub compared: usize,
    /// The largest difference from the definition, in units of the rounding bound.
    pub worst: f64,
}

impl Product {
    /// Runs the kernels in the interpreter, on random numbers, under every schedule, and compares
    /// the results with the definition.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_planners::gemm::{Matrix, Problem, Product};
    ///
    /// // TMA cannot read rows of 9 elements, so they are copied to longer rows first.
    /// let h200 = Machine::named("H200").unwrap();
    /// let product = Product::new(&Problem::new(Element::Bf16, [10, 16, 9]).unwrap(), &h200).unwrap();
    /// assert_eq!(product.kernels().len(), 3);
    /// assert_eq!(product.check().unwrap().compared, 160);
    /// ```
    ///
    /// Errors: the interpreter finds a defect; D is not what the definition says.
    pub fn check(&self) -> Result<ProductReport, Unchecked> {
        let problem = self.problem();
        let numbers = |operand: ProductTensor, element: Element, count: usize| {
            let seed = match operand {
                ProductTensor::A => 1,
                ProductTensor::B => 2,
                ProductTensor::Input(number) => number as u64 + 3,
                ProductTensor::ScalesA => 101,
                ProductTensor::ScalesB => 102,
                ProductTensor::Ends => return problem.any_ends(5),
                ProductTensor::D | ProductTensor::Reduction(_) | ProductTensor::Workspace(_) => 0,
            };
            problem.any_numbers(operand, problem.random_type(operand, element), count, seed)
        };
        self.check_on(&numbers)
    }

    /// As [`Product::check`], with inputs from `numbers`, which returns the bytes of a given number
    /// of elements of a tensor.
    ///
    /// Errors: as [`Product::check`].
    pub fn check_on(
        &self,
        numbers: &dyn Fn(ProductTensor, Element, usize) -> Vec<u8>,
    ) -> Result<ProductReport, Unchecked> {
        let problem = self.problem();
        let mut memory = Memory::default();
        memory.give(0, problem, numbers)?;
        // A kernel that writes a part of a tensor keeps the rest: rows of no group, tiles of a
        // split tail.
        let checked = memory.run(self.steps(), problem.row_groups().is_some() || self.plan().tail > 0)?;
        let (compared, worst) = memory.compare(0, problem)?;
        Ok(ProductReport { checked, compared, worst })
    }
}

impl Products {
    /// Runs the kernels in the interpreter, on random numbers, under every schedule, and compares
    /// the results of all problems with the definition.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_planners::gemm::{Problem, Problems, Products};
    ///
    /// let problem = |sizes| Problem::new(Element::Bf16, sizes).unwrap();
    /// let list = Problems::new(vec![problem([10, 16, 72]), problem([70, 8, 200])]).unwrap();
    /// let h200 = Machine::named("H200").unwrap();
    /// assert_eq!(Products::new(&list, &h200).unwrap().check().unwrap().compared, 10 * 16 + 70 * 8);
    /// ```
    ///
    /// Errors: the interpreter finds a defect; a D is not what the definition says.
    pub fn check(&self) -> Result<ProductReport, Unchecked> {
        self.check_on(&|problem, operand, element, count| {
            let seed = match operand {
                ProductTensor::A => 1,
                ProductTensor::B => 2,
                ProductTensor::Input(number) => number as u64 + 3,
                _ => 0,
            };
            any_numbers(element, count, 1000 * problem as u64 + seed)
        })
    }

    /// As [`Products::check`], with inputs from `numbers`, which returns the bytes of a given
    /// number of elements of a tensor of a problem.
    ///
    /// Errors: as [`Products::check`].
    pub fn check_on(
        &self,
        numbers: &dyn Fn(usize, ProductTensor, Element, usize) -> Vec<u8>,
    ) -> Result<ProductReport, Unchecked> {
        let mut memory = Memory::default();
        for (at, problem) in self.problems().problems().iter().enumerate() {
            memory.give(at, problem, &|operand, element, count| numbers(at, operand, element, count))?;
        }
        let checked = memory.run(self.steps(), false)?;
        let (mut compared, mut worst) = (0, 0.0_f64);
        for (at, problem) in self.problems().problems().iter().enumerate() {
            let (own, distance) = memory.compare(at, problem)?;
            (compared, worst) = (compared + own, worst.max(distance));
        }
        Ok(ProductReport { checked, compared, worst })
    }
}

/// The tensors of problems, as bytes: the inputs, and what kernels have written.
#[derive(Default)]
struct Memory {
    tensors: Vec<((usize, ProductTensor), Vec<u8>)>,
}

fn setup(error: SetupError) -> Unchecked {
    Unchecked::Interpreter(CheckError::Setup(error))
}

impl Memory {
    /// Fills the input tensors of a problem.
    fn give(
        &mut self,
        at: usize,
        problem: &Problem,
        numbers: &dyn Fn(ProductTensor, Element, usize) -> Vec<u8>,
    ) -> Result<(), Unchecked> {
        for operand in problem.given() {
            let Some(matrix) = problem.matrix(operand) else { continue };
            let count = matrix.reach().map_err(Unchecked::Layout)?;
            self.tensors.push(((at, operand), numbers(operand, matrix.element(), count as usize)));
        }
        Ok(())
    }

    fn of(&self, at: usize, operand: ProductTensor) -> Option<&Vec<u8>> {
        self.tensors.iter().find(|(known, _)| *known == (at, operand)).map(|(_, bytes)| bytes)
    }

    /// Runs kernels in order. `parts`: D keeps the elements that they do not write.
    fn run(&mut self, steps: &[Step], parts: bool) -> Result<Vec<Checked>, Unchecked> {
        let mut checked = Vec::new();
        for step in steps {
            let mut interpreter = Interpreter::new(step.kernel().program(), step.sizes()).map_err(setup)?;
            // A launch passes each tensor of the kernel.
            let (wanted, given) = (step.kernel().program().tensors().count(), step.operands().len());
            if wanted != given {
                let what = format!("{} has {wanted} tensors, and {given} are given", step.kernel().name());
                return Err(setup(SetupError::Argument { what }));
            }
            // A part of the workspace belongs to all problems.
            let all: Vec<(usize, ProductTensor)> = (step.problems().zip(step.operands()))
                .map(
                    |(at, operand)| {
                        if matches!(operand, ProductTensor::Workspace(_)) { (0, *operand) } else { (at, *operand) }
                    },
                )
                .collect();
            let (from, written) = all.split_at(step.read_and_written().0.len());
            for (at, (number, operand)) in written.iter().enumerate().filter(|_| parts) {
                if matches!(operand, ProductTensor::D | ProductTensor::Reduction(_)) {
                    let bytes = interpreter.bytes_of(from.len() + at).map_err(setup)?;
                    let before = self.of(*number, *operand);
                    let before = before.map_or_else(|| vec![POISON; bytes], Vec::clone);
                    interpreter.bytes(from.len() + at, &before).map_err(setup)?;
                }
            }
            for (tensor, (at, operand)) in from.iter().enumerate() {
                let Some(bytes) = self.of(*at, *operand) else { continue };
                let mut bytes = bytes.clone();
                bytes.resize(interpreter.bytes_of(tensor).map_err(setup)?, 0);
                interpreter.bytes(tensor, &bytes).map_err(setup)?;
            }
            let found = interpreter.check();
            let found = found.map_err(|findings| Unchecked::Interpreter(CheckError::Findings(findings)))?;
            for (at, to) in written.iter().enumerate() {
                self.tensors.retain(|(known, _)| known != to);
                self.tensors.push((*to, found.run.bytes(from.len() + at).map_err(setup)?.to_vec()));
            }
            checked.push(found);
        }
        Ok(checked)
    }

    /// Compares D and the reductions of a problem with the definition. Returns the number of
    /// compared elements, and the largest difference in units of its bound.
    fn compare(&self, own: usize, problem: &Problem) -> Result<(usize, f64), Unchecked> {
        let widths: Vec<(ProductTensor, usize)> = problem
            .given()
            .into_iter()
            .map(|operand| (operand, problem.matrix(operand).map_or(1, |matrix| matrix.element().bytes() as usize)))
            .collect();
        let given: Vec<(ProductTensor, usize, &Vec<u8>)> =
            widths.into_iter().filter_map(|(operand, width)| Some((operand, width, self.of(own, operand)?))).collect();
        let input = |operand: ProductTensor, at: i64| {
            let found = given.iter().find(|(known, ..)| *known == operand);
            found.map_or(0, |(_, width, bytes)| bits_at(bytes, *width, at as usize))
        };
        let (mut worst, mut compared) = (0.0_f64, 0);
        let [m, n, _] = problem.sizes();
        let width = problem.result_type().bytes() as usize;
        let Some(left) = self.of(own, ProductTensor::D) else { return Ok((compared, worst)) };
        for matrix in 0..problem.batch() {
            // With row groups, a column has a number for each group.
            let groups = problem.row_groups();
            let extent = |by: &EpilogueReduction| if by.each == Each::Row { m } else { n * groups.unwrap_or(1) };
            let kept = problem.reductions().map(|by| (by, vec![Gathered::default(); extent(by) as usize]));
            let mut kept: Vec<(&EpilogueReduction, Vec<Gathered>)> = kept.collect();
            let end = |group: i64| i64::from(input(ProductTensor::Ends, group) as u32 as i32);
            for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
                let group = if groups.is_some() { problem.row_group_of(row, end) } else { Some(matrix) };
                let Some(matrix) = group else {
                    let place = problem.d().place([row, column, 0]).map_err(Unchecked::Layout)? as usize;
                    let poison = vec![POISON; width];
                    if left.get(place * width..(place + 1) * width) != Some(&poison[..]) {
                        let found = meaning::value(problem.result_type(), bits_at(left, width, place));
                        let wanted = meaning::value(problem.result_type(), bits_at(&poison, width, 0));
                        return Err(Unchecked::Wrong { element: place, found, wanted });
                    }
                    compared += 1;
                    continue;
                };
                let at = [row, column, matrix];
                let number = problem.number(&input, at).map_err(Unchecked::Layout)?;
                for (by, all) in &mut kept {
                    let column = column + groups.map_or(0, |_| n * matrix);
                    all[if by.each == Each::Row { row } else { column } as usize].add(by, number);
                }
                let wanted = problem.rounded(number, at).map_err(Unchecked::Layout)?;
                worst = worst.max(wanted.distance(bits_at(left, width, wanted.place as usize))?);
                compared += 1;
            }
            for (number, (by, all)) in kept.into_iter().enumerate() {
                let Some(left) = self.of(own, ProductTensor::Reduction(number)) else { continue };
                for (at, all) in (0..).zip(all) {
                    let place =
                        if groups.is_some() && by.each == Each::Column { [at % n, at / n] } else { [at, matrix] };
                    let kept = by.each == Each::Row && groups.is_some() && problem.row_group_of(at, end).is_none();
                    let wanted = all.expected(problem, number, place).map_err(Unchecked::Layout)?;
                    let Some(wanted) = wanted else { continue };
                    let found = bits_at(left, 4, wanted.place as usize);
                    // A row of no group keeps what it had.
                    if kept && found != bits_at(&[POISON; 4], 4, 0) {
                        let (found, poison) = (f32::from_bits(found as u32).into(), [POISON; 4]);
                        let wanted_value = f32::from_le_bytes(poison).into();
                        return Err(Unchecked::Wrong { element: wanted.place as usize, found, wanted: wanted_value });
                    }
                    worst = worst.max(if kept { 0.0 } else { wanted.distance(found)? });
                    compared += 1;
                }
            }
        }
        Ok((compared, worst))
    }
}
