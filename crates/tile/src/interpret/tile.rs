//! The operations on tiles.

use super::number;
use crate::program::{Operation, Reduction, Type};

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

/// The index of a coordinate.
pub(super) fn index(shape: &[i64], at: &[i64]) -> usize {
    let mut below = 1;
    let part = |(at, extent): (&i64, &i64)| {
        let part = at * below;
        below *= extent;
        part
    };
    at.iter().zip(shape).map(part).sum::<i64>() as usize
}

/// A tile each of whose elements is one of another, at a coordinate made of its own.
fn gathered(tile: &[f64], from: &[i64], to: &[i64], at: impl Fn(Vec<i64>) -> Vec<i64>) -> Vec<f64> {
    let size = to.iter().product::<i64>();
    (0..size).map(|own| tile[index(from, &at(coordinate(to, own)))]).collect()
}

/// The elements that an operation gives, of those of its operands.
pub(super) fn evaluate(operation: &Operation, given: &[(&[f64], &Type)], ty: &Type) -> Vec<f64> {
    let element = ty.element;
    let each = |function: &dyn Fn(usize) -> f64| (0..ty.size() as usize).map(function).collect::<Vec<f64>>();
    let at = |operand: usize, place: usize| given[operand].0[place];
    match operation {
        Operation::Constant(_, value) => vec![number::rounded(*value, element)],
        Operation::Arange { shape, mode } => each(&|place| coordinate(shape, place as i64)[*mode] as f64),
        Operation::Unary(function) => each(&|place| number::unary(*function, at(0, place), element)),
        Operation::Binary(function) => each(&|place| number::binary(*function, at(0, place), at(1, place), element)),
        Operation::MultiplyAdd => each(&|place| number::multiply_add(at(0, place), at(1, place), at(2, place))),
        Operation::Select(comparison) => each(&|place| {
            let yes = number::compares(*comparison, at(0, place), at(1, place));
            at(if yes { 2 } else { 3 }, place)
        }),
        Operation::To(to) => each(&|place| number::converted(at(0, place), *to)),
        Operation::Recast(to) => each(&|place| number::recast(at(0, place), *to)),
        Operation::Unpack { signed, .. } => each(&|place| number::nibble(at(0, place / 8), place % 8, *signed)),
        Operation::Random(word) => each(&|place| number::random(at(0, place), at(1, place), *word)),
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
        Operation::ArgMax(mode) => rows(given[0], *mode, |row| {
            // NaN is greater than every number.
            let better = |best: usize, at: usize| row[at] > row[best] || row[at].is_nan() && !row[best].is_nan();
            vec![(0..row.len()).fold(0, |best, at| if better(best, at) { at } else { best }) as f64]
        }),
        Operation::ArgMin(mode) => rows(given[0], *mode, |row| {
            // NaN is less than every number.
            let better = |best: usize, at: usize| row[at] < row[best] || row[at].is_nan() && !row[best].is_nan();
            vec![(0..row.len()).fold(0, |best, at| if better(best, at) { at } else { best }) as f64]
        }),
        Operation::TopPlaces(mode, count) => rows(given[0], *mode, |row| {
            let mut places: Vec<usize> = (0..row.len()).collect();
            // Equal elements stay in their order.
            places.sort_by(|a, b| number::descending(&row[*a], &row[*b]));
            places[..*count as usize].iter().map(|at| *at as f64).collect()
        }),
        Operation::Top(mode, count) => rows(given[0], *mode, |mut row| {
            row.sort_by(number::descending);
            row.truncate(*count as usize);
            row
        }),
        Operation::Histogram(bins) => {
            let mut found = vec![0.0; *bins as usize];
            for value in given[0].0 {
                if let Some(count) = found.get_mut(*value as usize).filter(|_| *value >= 0.0) {
                    *count += 1.0;
                }
            }
            found
        }
        Operation::Scan(reduction, mode) => rows(given[0], *mode, |mut row| {
            for at in 1..row.len() {
                row[at] = number::binary(reduction.binary(), row[at - 1], row[at], element);
            }
            row
        }),
        Operation::ScanBefore(reduction, mode) => rows(given[0], *mode, |row| {
            let mut before = number::converted(reduction.neutral(), element);
            let next = |value: f64| {
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
                let term = |depth: i64| a.0[(row + depth * m) as usize] * b.0[(depth + column * k) as usize];
                (0..k).fold(c.0[place], |sum, depth| number::rounded(sum + term(depth), element))
            })
        }
        // The result depends on the block, and is computed where the block is known.
        Operation::Number(_)
        | Operation::Size(_)
        | Operation::Scalar(..)
        | Operation::Load { .. }
        | Operation::Gather { .. }
        | Operation::Stage { .. } => Vec::new(),
    }
}

/// A tile with each row along a mode made into another one, all of them as long.
fn rows((tile, ty): (&[f64], &Type), mode: usize, made: impl Fn(Vec<f64>) -> Vec<f64>) -> Vec<f64> {
    let below: usize = ty.shape[..mode].iter().product::<i64>() as usize;
    let extent = ty.shape[mode] as usize;
    let mut found = Vec::new();
    for block in tile.chunks(below * extent) {
        let rows: Vec<Vec<f64>> =
            (0..below).map(|first| made(block.iter().skip(first).step_by(below).copied().collect())).collect();
        for at in 0..rows.first().map_or(0, Vec::len) {
            found.extend(rows.iter().map(|row| row[at]));
        }
    }
    found
}

fn reduced(reduction: Reduction, modes: &[usize], (tile, from): (&[f64], &Type), ty: &Type) -> Vec<f64> {
    let mut found: Vec<Option<f64>> = vec![None; ty.size() as usize];
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
    found.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect()
}
