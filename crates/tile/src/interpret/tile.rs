//! What each operation makes of tiles.

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

pub(super) fn made(operation: &Operation, given: &[(&[f64], &Type)], ty: &Type) -> Vec<f64> {
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
        Operation::Reshape(_) | Operation::Held(_) => given[0].0.to_vec(),
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
        Operation::Scan(reduction, mode) => {
            let (tile, shape) = (given[0].0, &given[0].1.shape);
            let mut found = tile.to_vec();
            let step: i64 = shape[..*mode].iter().product();
            for place in 0..found.len() {
                if coordinate(shape, place as i64)[*mode] > 0 {
                    let before = found[place - step as usize];
                    found[place] = number::binary(reduction.binary(), before, found[place], element);
                }
            }
            found
        }
        Operation::Dot => {
            let (a, b, c) = (given[0], given[1], given[2]);
            let (m, k) = (a.1.shape[0], a.1.shape[1]);
            each(&|place| {
                let (row, column) = (place as i64 % m, place as i64 / m);
                let term = |depth: i64| a.0[(row + depth * m) as usize] * b.0[(depth + column * k) as usize];
                (0..k).fold(c.0[place], |sum, depth| number::rounded(sum + term(depth), element))
            })
        }
        // These hang on the block, and are made there.
        Operation::Number(_) | Operation::Load { .. } | Operation::Stage { .. } => Vec::new(),
    }
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
