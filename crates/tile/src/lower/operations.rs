//! Lowering of operations.
//!
//! Law: elementwise operations apply to the numbers of a thread, one by one; operations that only
//! change layouts rename numbers; loads, reductions, scans and conversions are those of distributed
//! tiles, and `dot` is MMA on fragments.

use std::rc::Rc;

use tilewright_kernel::{Element, Fragment, KernelError, Num};
use tilewright_layout::atoms::Operand;
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, Slot, Tree};

use super::functions::{binary, compared, divided_by, reductions, unary};
use super::limits::Limits;
use super::stage::StageRing;
use super::{LINE, Lowering, SECTOR, ThreadValue, smooth, top};
use crate::held::bits;
use crate::program::{Binary, Index, Name, Operation, Program, Unary, ValueId};
use crate::sums::Sums;

impl<'k> Lowering<'k, '_> {
    /// The result of an operation.
    pub(super) fn given(
        &mut self,
        result: ValueId,
        operation: &Operation,
        operands: &[ValueId],
    ) -> Result<ThreadValue<'k>, KernelError> {
        if let (Operation::To(element), Some(ThreadValue::Tile(tile))) =
            (operation, operands.first().and_then(|own| self.values.get(own)))
            && element.bits() > tile.element().bits()
        {
            return Ok(ThreadValue::Widened(tile.clone(), *element));
        }
        if let Operation::Load { tensor, shape, at, other } = operation {
            return self.loaded(result, *tensor, (shape, at), *other);
        }
        if let Operation::Gather { .. } = operation {
            return self.gathered(result, operation, operands);
        }
        // A reshape or a transpose keeps the registers.
        if let (Operation::Reshape(_) | Operation::Transpose(_), Some(ThreadValue::Tile(tile))) =
            (operation, operands.first().and_then(|own| self.values.get(own)))
        {
            return Ok(ThreadValue::Tile(tile.fragment().distributed(&self.distribution(result)?)?));
        }
        if let (Operation::Held(_), Some(ThreadValue::Tile(tile))) =
            (operation, operands.first().and_then(|own| self.values.get(own)))
        {
            return Ok(ThreadValue::Tile(tile.convert(&self.distribution(result)?)?));
        }
        if let (Operation::Unpack { element, signed }, [words]) = (operation, operands) {
            return self.unpacked(result, *words, *element, *signed);
        }
        if let Operation::Dot = operation {
            return Ok(ThreadValue::Numbers(self.multiplied(result, operands)?));
        }
        self.computed(result, operation, operands)
    }

    /// Loads a tile of a tensor; elements past its edge become `other`.
    fn loaded(
        &self,
        result: ValueId,
        tensor: usize,
        (shape, at): (&[i64], &[Index]),
        other: f64,
    ) -> Result<ThreadValue<'k>, KernelError> {
        let program = &self.placed.program;
        let (tile, held) = (self.tile(tensor, shape, at, &[])?, self.distribution(result)?);
        let is_once = held.threads() * held.values() == shape.iter().product::<i64>();
        let tile = match part_of_line(program, tensor, shape, at) {
            Some(bytes) if bytes % SECTOR == 0 && is_once => tile.in_whole_lines_once(),
            Some(_) => tile.in_whole_lines(),
            None => tile,
        };
        if other == 0.0 && other.is_sign_positive() {
            return Ok(ThreadValue::Tile(tile.load_distributed_predicated(&held)?));
        }
        let other = self.k.number_of(program.tensors[tensor].element, other);
        Ok(ThreadValue::Tile(tile.load_distributed_or(&held, other)?))
    }

    /// The result of an operation on numbers.
    fn computed(
        &mut self,
        result: ValueId,
        operation: &Operation,
        operands: &[ValueId],
    ) -> Result<ThreadValue<'k>, KernelError> {
        let k = self.k;
        let given = operands.iter().map(|value| self.numbers(*value)).collect::<Result<Vec<_>, _>>()?;
        let each = |function: &dyn Fn(usize) -> Num<'k>| (0..given[0].len()).map(function).collect::<Vec<_>>();
        Ok(ThreadValue::Numbers(match operation {
            // `given` lowers these.
            Operation::Load { .. } | Operation::Gather { .. } | Operation::Stage { .. } => Vec::new(),
            Operation::Dot | Operation::Unpack { .. } => Vec::new(),
            Operation::Atom(_) => given[0].to_vec(),
            Operation::Recast(element) => each(&|at| given[0][at].recast(*element)),
            Operation::Random(word) => each(&|at| top::random(k, given[0][at], given[1][at], *word)),
            Operation::Constant(element, value) => vec![k.number_of(*element, *value)],
            Operation::Number(index) => vec![k.index(&self.index(index)?)?],
            Operation::Scalar(name, element) => vec![k.scalar_of(*element, name)?],
            Operation::Size(text) => vec![k.index(&k.size(text)?)?],
            Operation::Arange { mode, .. } => {
                k.distributed_index(&self.distribution(result)?, *mode)?.fragment().numbers()?
            }
            Operation::Unary(Unary::Sin) => smooth::sines(k, &given[0], 0)?,
            Operation::Unary(Unary::Cos) => smooth::sines(k, &given[0], 1)?,
            Operation::Unary(function) => each(&|at| unary(*function, given[0][at])),
            Operation::Binary(function @ (Binary::Divide | Binary::Remainder))
                if self.divisor(operands).is_some_and(|by| by > 0) =>
            {
                let (by, at_end) = (self.divisor(operands).unwrap_or(1), usize::from(*function == Binary::Remainder));
                each(&|at| divided_by(given[0][at], by, |word| k.number(word))[at_end])
            }
            Operation::Binary(function) => each(&|at| binary(*function, given[0][at], given[1][at])),
            Operation::MultiplyAdd => each(&|at| given[0][at].multiply_add(given[1][at], given[2][at])),
            Operation::Select(comparison) => match self.limit(result, *comparison, operands)? {
                // Recomputed at each use: a comparison costs less than a register that keeps its
                // result.
                Some(Limits { constants, limit, known }) => k.in_place(|| {
                    Ok(each(&|at| match known[at] {
                        Some(is_first) => given[if is_first { 2 } else { 3 }][at],
                        None => {
                            let constant = k.number_of(Element::I32, constants[at] as f64);
                            constant.le(limit).select(given[2][at], given[3][at])
                        }
                    }))
                })?,
                None => {
                    each(&|at| compared(*comparison, given[0][at], given[1][at]).select(given[2][at], given[3][at]))
                }
            },
            Operation::To(element) => {
                let held = self.distribution(operands[0])?;
                let tile = self.tiled(&given[0], &held)?.to(*element)?;
                if self.groups.is_some() && element.bits() < 32 && element.is_float() {
                    return Ok(ThreadValue::Tile(tile));
                }
                tile.fragment().numbers()?
            }
            Operation::Reshape(_) | Operation::Transpose(_) => given[0].to_vec(),
            Operation::Broadcast(shape) => self.spread(result, operands[0], shape, &given[0])?,
            Operation::Reduce(reduction, modes) => {
                let tile = self.tiled(&given[0], &self.distribution(operands[0])?)?;
                let reduced = tile.reduce(modes, reductions(*reduction))?;
                reduced.convert(&self.distribution(result)?)?.fragment().numbers()?
            }
            Operation::ArgMax(mode) => {
                let tile = self.tiled(&given[0], &self.distribution(operands[0])?)?;
                let (_, places) = tile.argmax(&[*mode])?;
                places.convert(&self.distribution(result)?)?.fragment().numbers()?
            }
            Operation::ArgMin(mode) => {
                // Reverses the order: flips the bits of integers, and negates floating-point
                // numbers.
                let turned = |x: Num<'k>| if x.element().is_float() { -x } else { x.bit_xor(x.like(-1.0)) };
                let turned: Vec<Num<'k>> = given[0].iter().map(|x| turned(*x)).collect();
                let tile = self.tiled(&turned, &self.distribution(operands[0])?)?;
                let (_, places) = tile.argmax(&[*mode])?;
                places.convert(&self.distribution(result)?)?.fragment().numbers()?
            }
            Operation::Top(mode, count) => self.top(result, operands[0], (*mode, *count), false)?,
            Operation::TopPlaces(mode, count) => self.top(result, operands[0], (*mode, *count), true)?,
            Operation::Histogram(_) => {
                let tile = self.tiled(&given[0], &self.distribution(operands[0])?)?;
                tile.histogram(&self.distribution(result)?)?.fragment().numbers()?
            }
            Operation::ScanBefore(reduction, mode) => {
                let tile = self.tiled(&given[0], &self.distribution(operands[0])?)?;
                tile.scan_before(*mode, reductions(*reduction))?.fragment().numbers()?
            }
            Operation::Scan(reduction, mode) => {
                let tile = self.tiled(&given[0], &self.distribution(operands[0])?)?;
                tile.scan(*mode, reductions(*reduction))?.fragment().numbers()?
            }
            Operation::Held(_) => {
                let tile = self.tiled(&given[0], &self.distribution(operands[0])?)?;
                tile.convert(&self.distribution(result)?)?.fragment().numbers()?
            }
        }))
    }

    /// The divisor of an integer division, if it is one known number.
    fn divisor(&self, operands: &[ValueId]) -> Option<i32> {
        let program = &self.placed.program;
        let by = *operands.get(1).filter(|by| !program.type_of(**by).element.is_float())?;
        i32::try_from(Sums::new(program).number(by)?).ok()
    }

    /// The numbers of a broadcast operand, in the order of the result's values.
    fn spread(
        &self,
        result: ValueId,
        operand: ValueId,
        shape: &[i64],
        given: &[Num<'k>],
    ) -> Result<Vec<Num<'k>>, KernelError> {
        let from = &self.placed.program.type_of(operand).shape;
        let onto = bits::without(shape, &bits::broadcast(from, shape));
        let held = self.held(result)?;
        // The bits of a value's index that the operand also has.
        let kept = held.values.iter().enumerate().filter(|(_, bit)| onto[usize::from(**bit)].is_some());
        let kept: Vec<usize> = kept.map(|(at, _)| at).collect();
        let own = |value: usize| kept.iter().enumerate().map(|(to, at)| (value >> at & 1) << to).sum::<usize>();
        Ok((0..held.values() as usize).map(|value| given[own(value)]).collect())
    }

    /// Unpacks 4-bit numbers. The numbers of a word belong to one thread; their bits are bits of
    /// the value's index, in any order.
    fn unpacked(
        &self,
        result: ValueId,
        words: ValueId,
        element: Element,
        signed: bool,
    ) -> Result<ThreadValue<'k>, KernelError> {
        let fragment = self.k.nibbles(&self.numbers(words)?, element, signed)?;
        let mut words = 3;
        let mut modes = Vec::new();
        for bit in &self.held(result)?.values {
            let at = match bit {
                0..3 => *bit,
                _ => {
                    words += 1;
                    words - 1
                }
            };
            modes.push(Layout::mode_of(2, 1 << at)?);
        }
        let fragment = fragment.with_layout(&Layout::tuple(&modes)?)?;
        Ok(ThreadValue::Tile(fragment.distributed(&self.distribution(result)?)?))
    }

    /// The accumulators of `dot`, one k-step at a time.
    fn multiplied(&mut self, result: ValueId, operands: &[ValueId]) -> Result<Vec<Num<'k>>, KernelError> {
        let k = self.k;
        let missing = || KernelError::from(tilewright_layout::LayoutError::Overflow { op: "product" });
        let placed = self.placed;
        let tiling = placed.tilings.get(&result).ok_or_else(missing)?;
        if tiling.by_groups {
            return self.multiplied_by_groups(result, operands);
        }
        let shape = &self.placed.program.type_of(result).shape;
        let rows = shape[0] / (16 * tiling.warps[0]);
        let columns = shape[1] / (8 * tiling.warps[1]);
        let fragment = |numbers: &[Num<'k>], shape: [i64; 3]| {
            let element = numbers.first().map_or(Element::F32, |number| number.element());
            let fragment = k.register(element, (shape[0], shape[1], shape[2]))?;
            fragment.set(numbers)?;
            Ok::<_, KernelError>(fragment)
        };
        let steps = |value: ValueId, [values, count]: [i64; 2]| -> Result<Steps<'k>, KernelError> {
            if let Some(ThreadValue::Operand(parts)) = self.values.get(&value) {
                return Ok(Steps::Held(parts.clone()));
            }
            if let Some(ThreadValue::InStage(ring, stage)) = self.values.get(&value) {
                return Ok(Steps::InStage(value, ring.clone(), stage.clone()));
            }
            if let Some(ThreadValue::Tile(tile)) = self.values.get(&value) {
                let each = values * count;
                let steps = tile.distribution().values() / each;
                let parts = Layout::strided((values, count, 1, steps), (1, values, 0, each))?;
                let fragment = tile.fragment();
                let fragment = fragment.with_layout(&fragment.layout().compose(&parts)?)?;
                let part = |step: i64| fragment.slice(Tree::flat([Slot::All, Slot::All, Slot::All, Slot::At(step)])?);
                return Ok(Steps::Held((0..steps).map(part).collect::<Result<_, _>>()?));
            }
            let numbers = self.numbers(value)?;
            let parts = numbers.chunks((values * count) as usize).map(|part| fragment(part, [values, count, 1]));
            Ok(Steps::Held(parts.collect::<Result<_, _>>()?))
        };
        let depth = crate::matrix::depth(self.placed.program.type_of(operands[0]).element);
        let (a, b) = (steps(operands[0], [depth / 2, rows])?, steps(operands[1], [depth / 4, columns])?);
        let sums = fragment(&self.numbers(operands[2])?, [4, rows, columns])?;
        let read = |lowering: &Self, own: &Steps<'k>, operand: Operand, step: i64| match own {
            Steps::Held(parts) => Ok(parts.get(step as usize).cloned()),
            Steps::InStage(value, ring, stage) => lowering.operand_step(*value, (ring, stage), (tiling, operand), step),
        };
        let both = |lowering: &Self, step: i64| -> Result<Option<(Fragment<'k>, Fragment<'k>)>, KernelError> {
            Ok(read(lowering, &a, Operand::A, step)?.zip(read(lowering, &b, Operand::B, step)?))
        };
        let mut step = 0;
        while let Some((a, b)) = both(self, step)? {
            step += 1;
            k.mma(&tiling.mma, &sums, &a, &b, &sums)?;
            self.begin_copies()?;
        }
        sums.numbers()
    }
}

/// The k-steps of an operand.
enum Steps<'k> {
    /// In registers.
    Held(Vec<Fragment<'k>>),
    /// In a stage of a ring.
    InStage(ValueId, Rc<StageRing<'k>>, Expr),
}

/// The bytes of each cache line that a tile reads, if the tile reads a part of the line and the
/// next iteration reads the next part.
fn part_of_line(program: &Program, tensor: usize, shape: &[i64], at: &[Index]) -> Option<i64> {
    let along = (0..shape.len()).find(|mode| program.is_contiguous(tensor, *mode))?;
    let bytes = shape[along] * i64::from(program.tensors[tensor].element.bytes());
    let is_next = !at[along].by_element && at[along].terms.iter().any(|own| matches!(own, (Name::Iteration(_), 1)));
    (bytes < LINE && is_next).then_some(bytes)
}
