//! Tiles along one of whose modes another tile says the coordinates.
//!
//! Law: the values of a thread are divided into groups with one coordinate along that mode. A group
//! is a tile of the tensor like any other, at a coordinate that the thread has read.

use crate::held::{Held, bits};

/// The layout in which the coordinates along a mode are wanted, where the tile has this one.
pub(crate) fn coordinates(shape: &[i64], mode: usize, held: &Held) -> Held {
    let others: Vec<usize> = (0..shape.len()).filter(|own| *own != mode).collect();
    let onto = bits::without(shape, &others);
    held.mapped(|bit| onto[usize::from(bit)])
}

/// The distribution of the tile of one coordinate in a thread, and for each coordinate, in order,
/// its values.
pub(crate) fn groups(shape: &[i64], mode: usize, held: &Held) -> (Held, Vec<Vec<usize>>) {
    let onto = bits::without(shape, &[mode]);
    let part = held.mapped(|bit| onto[usize::from(bit)]);
    let along: Vec<bool> = held.values.iter().map(|bit| onto[usize::from(*bit)].is_none()).collect();
    let number = |value: usize, counted: bool| {
        let bits = along.iter().enumerate().filter(|(_, along)| **along == counted);
        bits.enumerate().map(|(to, (at, _))| (value >> at & 1) << to).sum::<usize>()
    };
    let count = along.iter().filter(|along| **along).count();
    let mut found = vec![vec![0; 1 << (along.len() - count)]; 1 << count];
    for value in 0..1 << along.len() {
        found[number(value, true)][number(value, false)] = value;
    }
    (part, found)
}

/// The shape of the tile of one coordinate.
pub(crate) fn part_shape(shape: &[i64], mode: usize) -> Vec<i64> {
    shape.iter().enumerate().map(|(at, extent)| if at == mode { 1 } else { *extent }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_one_coordinate_and_all_values() {
        // A tile (4,16): rows by a bit of values and one of lanes.
        let held: Held = "((2,4,4),(2,2)):((2,4,0),(1,16))".parse().unwrap();
        assert_eq!(coordinates(&[4, 16], 0, &held).to_string(), "((2,16),2):((2,0),1)");
        let (part, values) = groups(&[4, 16], 0, &held);
        assert_eq!(part.to_string(), "((2,4,4),2):((0,1,0),4)");
        assert_eq!(values, [vec![0, 2], vec![1, 3]]);
        for thread in 0..32 {
            for (row, group) in values.iter().enumerate() {
                for (column, value) in group.iter().enumerate() {
                    let element = held.element(thread, *value as i64);
                    assert_eq!(element % 4, coordinates(&[4, 16], 0, &held).element(thread, row as i64));
                    assert_eq!(element / 4, part.element(thread, column as i64));
                }
            }
        }
    }
}
