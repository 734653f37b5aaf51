//! The expected output of a kernel, element by element.

use std::collections::HashMap;

use tilewright_kernel::Element;
use tilewright_layout::{Layout, LayoutError};

use super::Unchecked;
use super::number::{distance, step, value};
use super::rows::{Many, Row};
use crate::planned::Planned;
use crate::terms::{Meaning, Norm, RowPlaces};

/// The most elements of an operand of a GEMM that are cached: 64 MiB.
const KEPT: usize = 1 << 23;

/// The value that one output element should have.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The index of the element in the output.
    pub at: usize,
    /// The type of the output.
    pub element: Element,
    /// The exact bits, if no rounding is allowed.
    bits: Option<u64>,
    value: f64,
    bound: f64,
}

impl Wanted {
    /// The distance of the bits that were found from the value, in units of the rounding bound; 0
    /// if they are equal.
    ///
    /// Errors: the distance is larger than 1 ([`Unchecked::Wrong`]).
    pub fn distance(&self, found: u64) -> Result<f64, Unchecked> {
        let off = match self.bits {
            Some(bits) => (bits == found).then_some(0.0),
            None => distance(self.element, found, self.value, self.bound),
        };
        let wrong = || Unchecked::Wrong { element: self.at, found: value(self.element, found), wanted: self.value };
        off.ok_or_else(wrong)
    }
}

impl Wanted {
    /// A number with a rounding bound. An integer is truncated toward zero, so a small error may
    /// change it by 1.
    pub(super) fn rounded(at: usize, element: Element, value: f64, bound: f64) -> Wanted {
        match element.is_float() {
            true => Wanted { at, element, bits: None, value, bound },
            false if bound == 0.0 => Wanted { at, element, bits: None, value: value.trunc(), bound },
            false => Wanted { at, element, bits: None, value: value.trunc(), bound: bound.max(1.0) },
        }
    }
}

/// The bits of a number converted to another type without rounding: unchanged for the same type,
/// truncated or extended for integers.
fn converted(source: Element, bits: u64, destination: Element) -> Option<u64> {
    if source == destination {
        return Some(bits);
    }
    if source.is_float() || destination.is_float() {
        return None;
    }
    let above = 64 - source.bits();
    let wide = if source.is_signed_integer() { ((bits << above) as i64 >> above) as u64 } else { bits };
    Some(wide & u64::MAX >> (64 - destination.bits()))
}

/// The offset of an element of a layout that begins inside its tensor.
fn placed((layout, offset): &(Layout, i64), index: usize) -> Result<usize, LayoutError> {
    Ok((offset + layout.eval(&(index as i64))?) as usize)
}

/// The definition of a kernel for given inputs.
pub struct Definition<'a> {
    planned: &'a Planned,
    input: &'a dyn Fn(usize, usize) -> u64,
    types: Vec<Element>,
    output: Element,
    /// The row that was evaluated last, and its index.
    row: Option<(usize, Row)>,
    /// Cached rows of the operands of a GEMM, by index: each is needed for many elements.
    operands: [HashMap<usize, Vec<f64>>; 2],
}

impl std::fmt::Debug for Definition<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Definition({:?})", self.planned.meaning())
    }
}

impl<'a> Definition<'a> {
    pub(super) fn new(planned: &'a Planned, input: &'a dyn Fn(usize, usize) -> u64) -> Definition<'a> {
        let last = planned.launches().last().unwrap_or(planned.kernel());
        let output = last.program().tensors().last().map_or(Element::U8, |buffer| buffer.element);
        Definition { planned, input, types: planned.inputs(), output, row: None, operands: Default::default() }
    }

    fn value(&self, tensor: usize, at: usize) -> f64 {
        value(self.types[tensor], (self.input)(tensor, at))
    }

    /// The value that output element `index` should have.
    ///
    /// Errors: an offset does not fit in 64 bits.
    pub fn wanted(&mut self, index: usize) -> Result<Wanted, LayoutError> {
        let planned = self.planned;
        Ok(match planned.meaning() {
            Meaning::Relayout { from, source, to, destination } => {
                let (at, place) = (from.offset(index as i64)? as usize, to.offset(index as i64)? as usize);
                let bits = (self.input)(0, at);
                let value = value(*source, bits);
                match converted(*source, bits, *destination) {
                    Some(bits) => Wanted { at: place, element: *destination, bits: Some(bits), value, bound: 0.0 },
                    None => Wanted::rounded(place, *destination, value, step(*destination, value)),
                }
            }
            Meaning::Map { expression, inputs, output } => {
                let elements =
                    inputs.iter().enumerate().map(|(tensor, from)| Ok(self.value(tensor, placed(from, index)?)));
                let (value, bound) = expression.value(&elements.collect::<Result<Vec<f64>, LayoutError>>()?);
                let place = placed(output, index)?;
                Wanted::rounded(place, self.output, value, bound + step(self.output, value))
            }
            Meaning::Gather { rows, columns, .. } => {
                let (row, column) = (index / *columns as usize, index % *columns as usize);
                let from = self.value(1, row) as i64;
                let bits = if (0..*rows).contains(&from) {
                    (self.input)(0, from as usize * *columns as usize + column)
                } else {
                    0
                };
                let value = value(self.output, bits);
                Wanted { at: index, element: self.output, bits: Some(bits), value, bound: 0.0 }
            }
            Meaning::Scatter { columns, .. } => {
                let (row, column) = (index / *columns as usize, index % *columns as usize);
                let at = self.value(1, row) as usize * *columns as usize + column;
                let bits = (self.input)(0, index);
                Wanted { at, element: self.output, bits: Some(bits), value: value(self.output, bits), bound: 0.0 }
            }
            Meaning::Sum => {
                let value = self.value(0, index) + self.value(1, index);
                Wanted::rounded(index, self.output, value, step(self.output, value))
            }
            Meaning::Product => {
                let [m, n, k] = ["M", "N", "K"].map(|name| planned.size(name));
                // The rows of all matrices of a batch are consecutive.
                let (row, column) = (index / n, index % n + index / (m * n) * n);
                self.read_row(0, row, k);
                self.read_row(1, column, k);
                let [a, b] = [&self.operands[0][&row], &self.operands[1][&column]];
                let terms = a.iter().zip(b).map(|(a, b)| a * b);
                let (sum, whole) = terms.fold((0.0, 0.0), |(sum, whole), term| (sum + term, whole + f64::abs(term)));
                // Each of k additions rounds the running sum, which the sum of magnitudes bounds.
                let bound = (k as f64) * step(Element::F32, whole) + step(self.output, sum);
                Wanted::rounded(index, self.output, sum, bound)
            }
            Meaning::Reduce { statistic, from, to, along } => {
                let (first, place) = (from.eval(&(index as i64))?, to.eval(&(index as i64))?);
                let mut numbers = Many::new();
                match along.leaves() {
                    // Usually there is one mode.
                    [leaf] => {
                        (0..leaf.extent).for_each(|at| numbers.add(self.value(0, (first + at * leaf.stride) as usize)))
                    }
                    _ => {
                        for at in 0..along.size() {
                            numbers.add(self.value(0, (first + along.eval(&at)?) as usize));
                        }
                    }
                }
                let (value, bound) = numbers.statistic(*statistic);
                Wanted::rounded(place as usize, self.output, value, bound + step(self.output, value))
            }
            Meaning::Indices { indices, .. } => {
                let (own, greatest) = (self.value(0, index), self.value(1, index));
                let place = self.value(2, index) as i64;
                let found = if own == greatest || own.is_nan() { indices.at(place) } else { i64::MAX };
                let (bits, value) = (Some(found as u64), found as f64);
                Wanted { at: index, element: self.output, bits, value, bound: 0.0 }
            }
            Meaning::Softmax { places } => {
                let column = index % places.columns as usize;
                let (value, bound) = self.row(index, *places)?.softmax(column);
                self.of_row(index, *places, (value, bound))
            }
            Meaning::RmsNorm { places, norm } => {
                let column = index % places.columns as usize;
                let [weight, _] = self.beside(*norm, column);
                let (value, bound) = self.row(index, *places)?.rms_norm(column, weight, norm.epsilon);
                self.of_row(index, *places, (value, bound))
            }
            Meaning::LayerNorm { places, norm } => {
                let column = index % places.columns as usize;
                let [weight, bias] = self.beside(*norm, column);
                let (value, bound) = self.row(index, *places)?.layer_norm(column, weight, bias, norm.epsilon);
                self.of_row(index, *places, (value, bound))
            }
        })
    }

    /// The expected element of a row of the result.
    fn of_row(&self, index: usize, places: RowPlaces, (value, bound): (f64, f64)) -> Wanted {
        let (row, column) = (index / places.columns as usize, index % places.columns as usize);
        let at = row * places.y as usize + column;
        Wanted::rounded(at, self.output, value, bound + step(self.output, value))
    }

    /// The weight and the bias of a column, from the tensors after the rows.
    fn beside(&self, norm: Norm, column: usize) -> [f64; 2] {
        let weight = if norm.weights { self.value(1, column) } else { 1.0 };
        let bias = if norm.bias { self.value(1 + usize::from(norm.weights), column) } else { 0.0 };
        [weight, bias]
    }

    /// Reads a row of an operand of a GEMM, unless it is cached.
    fn read_row(&mut self, operand: usize, row: usize, k: usize) {
        if self.operands[operand].contains_key(&row) {
            return;
        }
        let numbers = (0..k).map(|at| self.value(operand, row * k + at)).collect();
        if (self.operands[operand].len() + 1) * k > KEPT {
            self.operands[operand].clear();
        }
        self.operands[operand].insert(row, numbers);
    }

    /// The row of the first input that contains an element.
    fn row(&mut self, index: usize, places: RowPlaces) -> Result<&Row, LayoutError> {
        let (row, columns) = (index / places.columns as usize, places.columns as usize);
        if self.row.as_ref().is_none_or(|(known, _)| *known != row) {
            let numbers = (0..columns).map(|column| self.value(0, row * places.x as usize + column)).collect();
            self.row = Some((row, Row::new(numbers)));
        }
        match &self.row {
            Some((_, row)) => Ok(row),
            None => Err(LayoutError::Overflow { op: "row" }),
        }
    }
}
