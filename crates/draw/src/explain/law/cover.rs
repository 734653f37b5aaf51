//! The laws of `local_tile` and `tile_to_shape`.
//!
//! Laws: `local_tile` gives `R(i, k) = A(t*k + i)`, mode by mode, at every coordinate inside A.
//! `tile_to_shape` gives disjoint copies of the block, `R(i, j) = A(i) + d(j)`, and the smallest
//! number of whole blocks that covers each mode of the shape.

use tilewright_layout::Tree;
use tilewright_notation::Value;

use super::{Verdict, agree, at, offset, test};
use crate::explain::map::{self, Map, Point};

fn digits(mut index: i64, extents: &[i64]) -> Vec<i64> {
    let digit = |extent: &i64| {
        let digit = index % extent.max(&1);
        index /= extent.max(&1);
        digit
    };
    extents.iter().map(digit).collect()
}

/// The sizes of the modes.
fn modes(shape: &Tree<i64>) -> Vec<i64> {
    if shape.is_leaf() { shape.leaves().to_vec() } else { shape.modes().map(|mode| map::size(&mode)).collect() }
}

/// The numbers of a flat tuple; None for `_`.
fn entries(value: &Value) -> Option<Vec<Option<i64>>> {
    match value {
        Value::Int(number) => Some(vec![Some(*number)]),
        Value::Tree(tree) => Some(tree.integer()?.leaves().iter().copied().map(Some).collect()),
        Value::Coord(coord) => {
            let text = coord.to_string();
            let inner = text.trim_start_matches('(').trim_end_matches(')');
            let number = |entry: &str| if entry == "_" { Some(None) } else { entry.parse().ok().map(Some) };
            if inner.contains('(') {
                None
            } else {
                inner.split(',').filter(|entry| !entry.is_empty()).map(number).collect()
            }
        }
        _ => None,
    }
}

/// The law of `R = local_tile(A, tiler, coordinate)`, with a tile for each mode of A.
pub fn local_tile(a: &Map, tiler: &Value, coordinate: &Value, result: &Map) -> Option<Verdict> {
    let law = "R(i, k) = A(t*k + i), mode by mode, where that is inside A";
    let extents = modes(a.shape());
    let tiles: Vec<i64> = entries(tiler)?.into_iter().collect::<Option<_>>()?;
    let mut wanted = entries(coordinate)?;
    if tiles.len() != extents.len() || wanted.len() > tiles.len() {
        return None;
    }
    wanted.resize(tiles.len(), None);
    let counts: Vec<i64> = extents
        .iter()
        .zip(&tiles)
        .map(|(extent, tile)| extent.div_euclid(*tile) + i64::from(extent % tile != 0))
        .collect();
    let fails =
        |failure: String| Some(Verdict { law: law.into(), tested: 0, total: result.size(), failure: Some(failure) });
    for (mode, (index, count)) in wanted.iter().zip(&counts).enumerate() {
        if let Some(index) = index.filter(|index| !(0..*count).contains(index)) {
            return fails(format!("tile {index} of mode {mode} does not exist: there are {count}"));
        }
    }
    let open: Vec<usize> = (0..tiles.len()).filter(|mode| wanted.get(*mode) == Some(&None)).collect();
    let shape: Vec<i64> =
        tiles.iter().copied().chain(open.iter().filter_map(|mode| counts.get(*mode).copied())).collect();
    if shape.iter().product::<i64>() != result.size() {
        return fails(format!(
            "R has {} elements, and the tiles have {}",
            result.size(),
            shape.iter().product::<i64>()
        ));
    }
    Some(test(law, result.size(), |index| {
        let place = digits(index, &shape);
        let (inner, outer) = place.split_at(tiles.len());
        let (mut outer, mut target) = (outer.iter(), Vec::new());
        for ((tile, i), (wanted, extent)) in tiles.iter().zip(inner).zip(wanted.iter().zip(&extents)) {
            let k = match wanted {
                Some(k) => *k,
                None => *outer.next().ok_or("R has another rank")?,
            };
            let reached = tile * k + i;
            if reached >= *extent {
                // The last tile may extend past the end.
                return Ok(());
            }
            target.push(reached);
        }
        let target = Tree::flat(target).map_err(|error| error.to_string())?;
        let point = if a.shape().is_leaf() {
            Point::Offset(*target.leaves().first().unwrap_or(&0))
        } else {
            Point::Coordinate(target)
        };
        let value = a.value_at(&point).map_err(|error| error.to_string())?;
        agree(result, index, ("A(t*k + i)", value), ("R(i, k)", at(result, index)?))
    }))
}

/// The law of `R = tile_to_shape(A, shape)`.
pub fn tile_to_shape(a: &Map, shape: &Tree<i64>, result: &Map) -> Option<Verdict> {
    if a.has_coordinates() || a.adds_by_xor() {
        return None;
    }
    let (mut block, mut asked, covered) = (modes(a.shape()), modes(shape), modes(result.shape()));
    let rank = block.len().max(asked.len());
    block.resize(rank, 1);
    asked.resize(rank, 1);
    let mut law = "R(i, j) = A(i) + d(j), the copies do not meet, and cover the shape".to_owned();
    let total = result.size();
    let fails =
        |law: &str, failure: String| Some(Verdict { law: law.to_owned(), tested: 0, total, failure: Some(failure) });
    if covered.len() != rank {
        return fails(&law, format!("R has {} modes, and {rank} are asked for", covered.len()));
    }
    for (mode, ((block, asked), covered)) in block.iter().zip(&asked).zip(&covered).enumerate() {
        let least = asked.div_euclid(*block) * block + if asked % block == 0 { 0 } else { *block };
        if *covered != least {
            return fails(
                &law,
                format!("mode {mode} has {covered} indices, and the blocks that cover {asked} have {least}"),
            );
        }
        if covered > asked {
            law.push_str(&format!(" (mode {mode} has {covered} indices, and {asked} are asked for)"));
        }
    }
    let copies: Vec<i64> = covered.iter().zip(&block).map(|(covered, block)| covered / block).collect();
    let mut seen = std::collections::HashMap::new();
    let verdict = test("", total, |index| {
        let (mut inner, mut first, mut copy) = (0, 0, 0);
        let (mut step, mut below, mut number) = (1, 1, 1);
        for ((x, block), (extent, count)) in digits(index, &covered).iter().zip(&block).zip(covered.iter().zip(&copies))
        {
            inner += x % block * step;
            first += (x - x % block) * below;
            copy += x / block * number;
            (step, below, number) = (step * block, below * extent, number * count);
        }
        let place = offset(result, index)?;
        let moved =
            offset(result, first)?.checked_add(offset(a, inner)?).and_then(|sum| sum.checked_sub(offset(a, 0).ok()?));
        // With a swizzle the copies are not translates; only their disjointness is tested.
        let plain = a.layout().is_some();
        if plain && moved != Some(place) {
            return Err(format!(
                "at coordinate {}: R = {place}, and the copy of A has {moved:?}",
                result.coordinate(index)
            ));
        }
        match seen.insert(place, copy) {
            Some(other) if other != copy => Err(format!("offset {place} is in copies {other} and {copy}")),
            _ => Ok(()),
        }
    });
    Some(Verdict { law, ..verdict })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        tilewright_notation::evaluate(text, &mut tilewright_notation::Environment::new()).unwrap()
    }

    fn map(text: &str) -> Map {
        map::of_operand(&value(text)).unwrap()
    }

    #[test]
    fn the_laws_can_fail() {
        let tiles = [
            ("(32,64):(64,1)", "(16,32)", "(1,_)", "local_tile((32,64):(64,1), (16,32), (1,_))", true),
            ("(10,64):(64,1)", "(16,32)", "(0,_)", "local_tile((10,64):(64,1), (16,32), (0,_))", true),
            ("(10,64):(64,1)", "(16,32)", "(7,_)", "local_tile((10,64):(64,1), (16,32), (7,_))", false),
            ("(32,64):(64,1)", "(16,32)", "(1,_)", "local_tile((32,64):(64,1), (16,32), (0,_))", false),
            ("(32,64):(1@0,1@1)", "(16,32)", "(1,1)", "(16,32):(1@0,1@1)", false),
        ];
        for (a, tiler, coordinate, result, holds) in tiles {
            let verdict = local_tile(&map(a), &value(tiler), &value(coordinate), &map(result)).unwrap();
            assert_eq!(verdict.failure.is_none(), holds, "{result}: {:?}", verdict.failure);
        }
        let shapes = [
            ("(8,8):(1,8)", "(16,64)", "tile_to_shape((8,8):(1,8), (16,64))", true),
            ("(8,8):(1,8)", "(4,64)", "tile_to_shape((8,8):(1,8), (4,64))", true),
            ("(3,2):(1,3)", "(6,8)", "tile_to_shape((3,2):(1,3), (6,8), (1,0))", true),
            ("S<3,3,3> o 0 o (8,64):(64,1)", "(16,128)", "tile_to_shape(S<3,3,3> o 0 o (8,64):(64,1), (16,128))", true),
            ("(2,2):(1,2)", "(4,4)", "((2,2),(2,2)):((1,4),(2,4))", false),
            ("(2,2):(1,2)", "(4,4)", "((2,2),(2,1)):((1,4),(2,0))", false),
            ("(2,2):(1,2)", "(4,4)", "((2,2),(2,2)):((1,4),(1,8))", false),
        ];
        for (a, shape, result, holds) in shapes {
            let verdict = tile_to_shape(&map(a), &value(shape).integer_tree().unwrap(), &map(result)).unwrap();
            assert_eq!(verdict.failure.is_none(), holds, "{result}: {:?}", verdict.failure);
        }
        let covering =
            tile_to_shape(&map("(8,8):(1,8)"), &"(4,64)".parse().unwrap(), &map("tile_to_shape((8,8):(1,8), (4,64))"));
        assert!(covering.unwrap().law.ends_with("(mode 0 has 8 indices, and 4 are asked for)"));
    }
}
