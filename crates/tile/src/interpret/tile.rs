//! The operations on tiles.

use tilewright_kernel::Element;

use super::number::{self, Number};
use crate::program::{Comparison, Operation, Reduction, Type};

/// The coordinate of an index in a shape, first mode fastest.
pub(super) fn coordinate(shape: &[i64], index: i64) -> Vec<i64> {
    let mut rest = index;
    let digit = |extent: &i64| {
        let at = rest % extent;
        rest /= extent;
        at
    };
    shape.iter().map(digit).collect()
}

/// The index of a coordinate in a shape, first mode fastest.
pub(super) fn index(shape: &[i64], at: &[i64]) -> usize {
    let mut below = 1;
    let part = |(at, extent): (&i64, &i64)| {
        let part = at * below;
        below *= extent;
        part
    };
    at.iter().zip(shape).map(part).sum::<i64>() as usize
}

/// A tile whose element at each coordinate is the element of another tile at a mapped coordinate.
fn gathered(tile: &[Number], from: &[i64], to: &[i64], at: impl Fn(Vec<i64>) -> Vec<i64>) -> Vec<Number> {
    let size = to.iter().product::<i64>();
    (0..size).map(|own| tile[index(from, &at(coordinate(to, own)))]).collect()
}

/// Computes the elements of an operation's result from those of its operands.
pub(super) fn evaluate(operation: &Operation, given: &[(&[Number], &Type)], ty: &Type) -> Vec<Number> {
    let element = ty.element;
    let each = |function: &dyn Fn(usize) -> Number| (0..ty.size() as usize).map(function).collect::<Vec<Number>>();
    let at = |operand: usize, place: usize| given[operand].0[place];
    let of = |operand: usize| given[operand].1.element;
    let count = |value: usize| Number::real(value as f64);
    match operation {
        Operation::Constant(_, value) => vec![Number::of(*value, element)],
        Operation::Arange { shape, mode } => each(&|place| count(coordinate(shape, place as i64)[*mode] as usize)),
        Operation::Unary(function) => each(&|place| number::unary(*function, at(0, place), element)),
        Operation::Binary(function) => each(&|place| number::binary(*function, at(0, place), at(1, place), element)),
        Operation::MultiplyAdd => {
            each(&|place| number::multiply_add([at(0, place), at(1, place), at(2, place)], element))
        }
        Operation::Select(comparison) => each(&|place| {
            let yes = number::compares(*comparison, at(0, place), at(1, place), of(0));
            at(if yes { 2 } else { 3 }, place)
        }),
        Operation::To(to) => each(&|place| number::converted(at(0, place), of(0), *to)),
        Operation::Recast(to) => each(&|place| number::recast(at(0, place), *to)),
        Operation::Unpack { signed, .. } => {
            each(&|place| Number::real(number::nibble(at(0, place / 8).to_real(), place % 8, *signed)))
        }
        Operation::Random(word) => {
            each(&|place| Number::real(number::random(at(0, place).to_real(), at(1, place).to_real(), *word)))
        }
        Operation::Reshape(_) | Operation::Held(_) | Operation::Atom(_) => given[0].0.to_vec(),
        Operation::Broadcast(shape) => {
            let from = &given[0].1.shape;
            gathered(given[0].0, from, shape, |own| {
                own.into_iter().zip(from).map(|(at, extent)| if *extent == 1 { 0 } else { at }).collect()
            })
        }
        Operation::Transpose(order) => gathered(given[0].0, &given[0].1.shape, &ty.shape, |own| {
            let mut at = vec![0; own.len()];
            order.iter().zip(own).for_each(|(mode, own)| at[*mode] = own);
            at
        }),
        Operation::Reduce(reduction, modes) => reduced(*reduction, modes, given[0], ty),
        Operation::ArgMax(mode) | Operation::ArgMin(mode) => rows(given[0], *mode, |row| {
            let better = |best: usize, at: usize| {
                let is_nan = |at: usize| of(0).is_float() && row[at].to_real().is_nan();
                let is_greatest = matches!(operation, Operation::ArgMax(_));
                let (less, more) = if is_greatest { (best, at) } else { (at, best) };
                // NaN is greater than every number for argmax, and less for argmin.
                number::compares(Comparison::Less, row[less], row[more], of(0)) || is_nan(at) && !is_nan(best)
            };
            vec![count((0..row.len()).fold(0, |best, at| if better(best, at) { at } else { best }))]
        }),
        Operation::TopPlaces(mode, kept) => rows(given[0], *mode, |row| {
            let mut places: Vec<usize> = (0..row.len()).collect();
            let descending = number::descending(of(0));
            // Equal elements stay in their order.
            places.sort_by(|a, b| descending(&row[*a], &row[*b]));
            places[..*kept as usize].iter().map(|at| count(*at)).collect()
        }),
        Operation::Top(mode, kept) => rows(given[0], *mode, |mut row| {
            row.sort_by(number::descending(of(0)));
            row.truncate(*kept as usize);
            row
        }),
        Operation::Histogram(bins) => {
            let mut found = vec![0.0; *bins as usize];
            for value in given[0].0.iter().map(|value| value.to_real()) {
                if let Some(count) = found.get_mut(value as usize).filter(|_| value >= 0.0) {
                    *count += 1.0;
                }
            }
            found.into_iter().map(Number::real).collect()
        }
        Operation::Scan(reduction, mode) => rows(given[0], *mode, |mut row| {
            for at in 1..row.len() {
                row[at] = number::binary(reduction.binary(), row[at - 1], row[at], element);
            }
            row
        }),
        Operation::ScanBefore(reduction, mode) => rows(given[0], *mode, |row| {
            // Infinity stands for the least or greatest integer.
            let mut before = number::converted(Number::real(reduction.neutral()), Element::F32, element);
            let next = |value: Number| {
                let after = number::binary(reduction.binary(), before, value, element);
                std::mem::replace(&mut before, after)
            };
            row.into_iter().map(next).collect()
        }),
        Operation::Dot => {
            let (a, b, c) = (given[0], given[1], given[2]);
            let (m, k) = (a.1.shape[0], a.1.shape[1]);
            each(&|place| {
                let (row, column) = (place as i64 % m, place as i64 / m);
                let of = |tile: &[Number], at: i64| tile[at as usize].to_real();
                let term = |depth: i64| of(a.0, row + depth * m) * of(b.0, depth + column * k);
                let sum = |sum: f64, depth| number::rounded(sum + term(depth), element);
                Number::real((0..k).fold(c.0[place].to_real(), sum))
            })
        }
        // These results depend on the block. The interpreter computes them where the block is
        // known.
        Operation::Number(_)
        | Operation::Size(_)
        | Operation::Scalar(..)
        | Operation::Load { .. }
        | Operation::Gather { .. }
        | Operation::Stage { .. } => Vec::new(),
    }
}

/// A tile in which each row along a mode is replaced by a row of another length, the same for all.
fn rows((tile, ty): (&[Number], &Type), mode: usize, made: impl Fn(Vec<Number>) -> Vec<Number>) -> Vec<Number> {
    let below: usize = ty.shape[..mode].iter().product::<i64>() as usize;
    let extent = ty.shape[mode] as usize;
    let mut found = Vec::new();
    for block in tile.chunks(below * extent) {
        let rows: Vec<Vec<Number>> =
            (0..below).map(|first| made(block.iter().skip(first).step_by(below).copied().collect())).collect();
        for at in 0..rows.first().map_or(0, Vec::len) {
            found.extend(rows.iter().map(|row| row[at]));
        }
    }
    found
}

fn reduced(reduction: Reduction, modes: &[usize], (tile, from): (&[Number], &Type), ty: &Type) -> Vec<Number> {
    let mut found: Vec<Option<Number>> = vec![None; ty.size() as usize];
    for (place, value) in tile.iter().enumerate() {
        let own = coordinate(&from.shape, place as i64);
        let own: Vec<i64> =
            own.into_iter().enumerate().map(|(mode, at)| if modes.contains(&mode) { 0 } else { at }).collect();
        let sum = &mut found[index(&ty.shape, &own)];
        *sum = Some(match *sum {
            None => *value,
            Some(before) => number::binary(reduction.binary(), before, *value, ty.element),
        });
    }
    found.into_iter().map(|value| value.unwrap_or(Number::real(f64::NAN))).collect()
}
