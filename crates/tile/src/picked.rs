//! Tiles whose coordinates along some modes are in other tiles (gathers and scatters).
//!
//! Law: the values of a thread are divided into groups that share one coordinate along each of
//! these modes. A group is a tile of the tensor like any other, at coordinates that the thread has
//! read.

use crate::held::{Held, bits};

/// The layout that a tile of coordinates of shape `own` should have, if the gathered tile has
/// layout `held`.
pub(crate) fn coordinates(shape: &[i64], own: &[i64], held: &Held) -> Held {
    let onto = bits::without(shape, &others(shape, own));
    held.mapped(|bit| onto[usize::from(bit)])
}

/// The modes on which a tile of coordinates does not depend.
fn others(shape: &[i64], own: &[i64]) -> Vec<usize> {
    (0..shape.len()).filter(|mode| own.get(*mode).is_none_or(|extent| *extent == 1)).collect()
}

/// For each group of a thread, the number of the thread's value that holds its coordinate in a tile
/// of coordinates of shape `own`.
pub(crate) fn values_of_groups(shape: &[i64], (modes, own): (&[usize], &[i64]), held: &Held) -> Vec<usize> {
    let whole = bits::without(shape, modes);
    let kept = bits::without(shape, &others(shape, own));
    // The bits of a value's index that count groups, and whether the tile of coordinates varies
    // along them.
    let along = held.values.iter().map(|bit| usize::from(*bit)).filter(|bit| whole[*bit].is_none());
    let counted: Vec<bool> = along.map(|bit| kept[bit].is_some()).collect();
    let value = |group: usize| {
        let own = counted.iter().enumerate().filter(|(_, counted)| **counted);
        own.enumerate().map(|(to, (at, _))| (group >> at & 1) << to).sum::<usize>()
    };
    (0..1 << counted.len()).map(value).collect()
}

/// The distribution of one group's tile, and for each group the numbers of its values, in order.
pub(crate) fn groups(shape: &[i64], modes: &[usize], held: &Held) -> (Held, Vec<Vec<usize>>) {
    let onto = bits::without(shape, modes);
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

/// The shape of one group's tile.
pub(crate) fn part_shape(shape: &[i64], modes: &[usize]) -> Vec<i64> {
    shape.iter().enumerate().map(|(at, extent)| if modes.contains(&at) { 1 } else { *extent }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_one_coordinate_and_all_values() {
        // A tile (4,16). One bit of the row is a bit of the value, the other a bit of the lane.
        let held: Held = "((2,4,4),(2,2)):((2,4,0),(1,16))".parse().unwrap();
        assert_eq!(coordinates(&[4, 16], &[4, 1], &held).to_string(), "((2,16),2):((2,0),1)");
        let (part, values) = groups(&[4, 16], &[0], &held);
        assert_eq!(part.to_string(), "((2,4,4),2):((0,1,0),4)");
        assert_eq!(values, [vec![0, 2], vec![1, 3]]);
        for thread in 0..32 {
            for (row, group) in values.iter().enumerate() {
                for (column, value) in group.iter().enumerate() {
                    let element = held.element(thread, *value as i64);
                    assert_eq!(element % 4, coordinates(&[4, 16], &[4, 1], &held).element(thread, row as i64));
                    assert_eq!(element / 4, part.element(thread, column as i64));
                }
            }
        }
    }

    #[test]
    fn each_group_takes_its_value_of_each_tile_of_coordinates() {
        // A tile (4,8,2), held with bits of all modes among its values.
        let shape = [4, 8, 2];
        let held: Held = "((2,2,2,4),(2,2,2)):((2,8,16,0),(4,1,32))".parse().unwrap();
        for (modes, own) in [
            (vec![0, 1], [4, 1, 1]),
            (vec![0, 1], [1, 8, 1]),
            (vec![0, 1], [4, 8, 1]),
            (vec![0, 2], [4, 1, 2]),
            (vec![0, 1, 2], [4, 8, 1]),
        ] {
            let (_, groups) = groups(&shape, &modes, &held);
            let (taken, layout) = (values_of_groups(&shape, (&modes, &own), &held), coordinates(&shape, &own, &held));
            assert_eq!(taken.len(), groups.len());
            for thread in 0..32 {
                for (group, taken) in groups.iter().zip(&taken) {
                    for value in group {
                        let element = held.element(thread, *value as i64);
                        let at = [element % 4, element / 4 % 8, element / 32];
                        // The element of the tile of coordinates for this element.
                        let (mut wanted, mut below) = (0, 1);
                        for (at, extent) in at.iter().zip(own) {
                            wanted += at % extent * below;
                            below *= extent;
                        }
                        assert_eq!(layout.element(thread, *taken as i64), wanted, "{modes:?} {own:?}");
                    }
                }
            }
        }
    }
}
