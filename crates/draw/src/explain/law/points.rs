//! Comparison of values of maps, which are offsets or coordinates.
//!
//! Law: two values are equal exactly when their numbers other than 0 are, at the same paths. A
//! coordinate is 0 in the modes that it does not name, so `(3)` and `(3,0)` are one value, and
//! `(0)` and the offset 0 are.

use tilewright_layout::Tree;

use crate::explain::map::Point;

/// A key of a value: equal for equal values.
#[derive(PartialEq, Eq, Hash)]
pub enum Key {
    /// An offset, or a coordinate that is one, such as 0.
    Offset(i64),
    /// The numbers other than 0, each with its path.
    Numbers(Vec<(Vec<usize>, i64)>),
}

/// The key of a value.
pub fn key(point: &Point) -> Key {
    let tree = match point {
        Point::Offset(offset) => return Key::Offset(*offset),
        Point::Coordinate(tree) => tree,
    };
    let mut found = Vec::new();
    numbers(tree, &mut Vec::new(), &mut found);
    match found.as_slice() {
        [] => Key::Offset(0),
        [(path, number)] if path.is_empty() => Key::Offset(*number),
        _ => Key::Numbers(found),
    }
}

fn numbers(tree: &Tree<i64>, path: &mut Vec<usize>, found: &mut Vec<(Vec<usize>, i64)>) {
    if tree.is_leaf() {
        found.extend(tree.leaves().iter().filter(|number| **number != 0).map(|number| (path.clone(), *number)));
        return;
    }
    for (position, mode) in tree.modes().enumerate() {
        path.push(position);
        numbers(&mode, path, found);
        path.pop();
    }
}

/// A coordinate completed to a shape: modes that it does not name are 0.
pub fn within(point: &Point, shape: &Tree<i64>) -> Point {
    match point {
        Point::Coordinate(tree) => Point::Coordinate(filled(tree, shape)),
        offset => offset.clone(),
    }
}

fn filled(tree: &Tree<i64>, shape: &Tree<i64>) -> Tree<i64> {
    if tree.is_leaf() {
        return tree.clone();
    }
    if shape.is_leaf() {
        // A number is a coordinate with one mode.
        return tree.mode(0).filter(|_| tree.rank() == 1).map_or_else(|| tree.clone(), |own| filled(&own, shape));
    }
    let mut named = tree.modes();
    let modes: Vec<Tree<i64>> =
        shape.modes().map(|mode| named.next().map_or(Tree::leaf(0), |tree| filled(&tree, &mode))).collect();
    // Modes that the shape does not have are kept, and refused where the coordinate is used.
    Tree::tuple(modes.iter().chain(&named.collect::<Vec<_>>())).unwrap_or_else(|_| tree.clone())
}

/// A coordinate of `shape` with the nesting of `like`: where `like` has a number, the coordinate
/// within the mode becomes its index.
pub fn counted(tree: &Tree<i64>, shape: &Tree<i64>, like: &Tree<i64>) -> Tree<i64> {
    if like.is_leaf() {
        let (mut sum, mut step) = (0_i64, 1_i64);
        for (index, extent) in tree.leaves().iter().zip(shape.leaves()) {
            sum = sum.saturating_add(index.saturating_mul(step));
            step = step.saturating_mul(*extent);
        }
        return Tree::leaf(sum);
    }
    if tree.is_leaf() {
        return tree.clone();
    }
    let modes: Vec<Tree<i64>> = tree
        .modes()
        .zip(shape.modes())
        .zip(like.modes())
        .map(|((tree, shape), like)| counted(&tree, &shape, &like))
        .collect();
    Tree::tuple(&modes).unwrap_or_else(|_| tree.clone())
}
