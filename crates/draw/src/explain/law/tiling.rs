//! The laws of complement, division and product.

use std::collections::HashMap;

use tilewright_layout::{Composed, Layout, Tiler, Tree};

use super::points::{Key, key};
use super::{MOST, PART, Verdict, after, agree, at, offset as at_offset, plus, test, test_first};
use crate::explain::map::{self, Map, Point};

/// The law of a complement: the sums `A(i) + R(j)` are distinct and `R` increases. The strict
/// complement also leaves no gap.
pub fn complement(a: &Map, result: &Map, whole: bool) -> Verdict {
    filled(a, (a.size(), &|i| at(a, i)), result, whole)
}

/// As [`complement`], for a map with an outer map: each value counts once.
pub fn complement_of_values(a: &Map, result: &Map, whole: bool) -> Verdict {
    let values: Result<Vec<i64>, String> = (0..a.size().min(MOST)).map(|index| at_offset(a, index)).collect();
    let mut values = values.unwrap_or_default();
    values.sort_unstable();
    values.dedup();
    let value = |i: i64| {
        usize::try_from(i)
            .ok()
            .and_then(|i| values.get(i))
            .map_or(Err("A has no such value".to_owned()), |at| Ok((*at).into()))
    };
    let count = i64::try_from(values.len()).unwrap_or(i64::MAX);
    let verdict = filled(a, (count, &value), result, whole);
    let law = verdict.law + ", the values of A each once";
    // With more indices only a part of the values is known, which proves nothing about the rest.
    let known = a.size() <= MOST && count > 0;
    if known { Verdict { law, ..verdict } } else { Verdict { law, tested: 0, total: a.size(), failure: None } }
}

/// Checks a complement of these values; sums are those of `a`.
fn filled(a: &Map, (inner, value): (i64, &dyn Fn(i64) -> Result<Point, String>), result: &Map, whole: bool) -> Verdict {
    let law = if whole {
        "R increases, and (i,j) -> A(i) + R(j) hits each offset from 0 exactly once"
    } else {
        "R increases, and the offsets A(i) + R(j) differ"
    };
    let total = inner.saturating_mul(result.size());
    let place = |index: i64| (index % inner, index / inner);
    let mut sums: Vec<i64> = Vec::new();
    let verdict = test_first(if total > MOST { PART } else { total }, law, total, |index| {
        let (i, j) = place(index);
        if i == 0 && j > 0 && at_offset(result, j)? <= at_offset(result, j - 1)? {
            return Err(format!("R({j}) = {} does not come after R({})", at_offset(result, j)?, j - 1));
        }
        let offset = plus(a.adds_by_xor(), &value(i)?, &at(result, j)?)?.offset().unwrap_or(0);
        if whole && (offset < 0 || offset >= total) {
            return Err(format!("A({i}) + R({j}) = {offset} is outside [0, {total}), so some offset in it is missed"));
        }
        sums.push(offset);
        Ok(())
    });
    if verdict.failure.is_some() {
        return verdict;
    }
    // Sorting millions of offsets takes a tenth of the time of a hash table.
    let mut sorted = sums.clone();
    sorted.sort_unstable();
    let Some([offset, ..]) = sorted.windows(2).find(|pair| pair.first() == pair.last()) else { return verdict };
    let mut both = (0..).zip(&sums).filter(|(_, sum)| *sum == offset).map(|(index, _)| place(index));
    let ((i0, j0), (i, j)) = (both.next().unwrap_or_default(), both.next().unwrap_or_default());
    let failure = format!("offset {offset} is both A({i0}) + R({j0}) and A({i}) + R({j})");
    Verdict { failure: Some(failure), ..verdict }
}

/// The law of a division by tiles that divide evenly.
pub const DIVIDED: &str = "R takes the offsets of A, each as often";

/// Whether two layouts are known to have the same offsets equally often. Permuting, splitting or
/// merging modes changes nothing about that. So it is shown if the modes, sorted by their strides,
/// coalesce to the same layout.
pub fn same_offsets_as_often(a: &Layout, b: &Layout) -> bool {
    let sorted = |layout: &Layout| {
        let mut leaves = layout.leaves().to_vec();
        leaves.sort_by_key(|leaf| (leaf.stride.unsigned_abs(), leaf.stride, leaf.extent));
        Layout::from_tree(Tree::flat(leaves).ok()?).ok()?.coalesce().ok()
    };
    sorted(a).zip(sorted(b)).is_some_and(|(a, b)| a == b)
}

/// The law of a division: `R` has each offset of `A` at least as often as `A` does, and exactly as
/// often if the tile divides evenly.
pub fn divide(a: &Map, result: &Map) -> Verdict {
    let exact = a.size() == result.size();
    let law = if exact { DIVIDED } else { "R takes every offset of A (the tiles cover more)" };
    if result.size() > MOST {
        // A part of the offsets proves nothing about the whole.
        return Verdict { law: law.into(), tested: 0, total: result.size(), failure: None };
    }
    let mut counts: HashMap<Key, i64> = HashMap::new();
    for index in 0..result.size() {
        match result.value(index) {
            Ok(offset) => *counts.entry(key(&offset)).or_default() += 1,
            Err(error) => {
                return Verdict {
                    law: law.into(),
                    tested: index,
                    total: result.size(),
                    failure: Some(error.to_string()),
                };
            }
        }
    }
    test(law, a.size(), |index| {
        let offset = at(a, index)?;
        let left = counts.entry(key(&offset)).or_default();
        *left -= 1;
        if *left >= 0 {
            return Ok(());
        }
        Err(format!("at coordinate {} (index {index}): the offset {offset} of A is missing in R", a.coordinate(index)))
    })
}

/// The correspondence between element `i` of copy `j` of a product and an index of the result.
pub struct Pairing {
    /// The extents of the block, paired with those of the arrangement mode by mode.
    blocks: Vec<i64>,
    copies: Vec<i64>,
    /// Whether the copies come first in each mode.
    raked: bool,
}

impl Pairing {
    /// The block as the first mode, and the copies as the second.
    fn whole(block: &Map, arrangement: &Map) -> Pairing {
        Pairing { blocks: vec![block.size()], copies: vec![arrangement.size()], raked: false }
    }

    /// The pairing mode by mode. A number as the arrangement is one mode. If the block is a number,
    /// an arrangement of one mode is treated like a number.
    pub fn by_mode(block: &Map, arrangement: &Map, raked: bool) -> Pairing {
        let sizes = |map: &Map| match map.shape().is_leaf() {
            true => vec![map.size()],
            false => map.shape().modes().map(|mode| map::size(&mode)).collect(),
        };
        let (mut blocks, mut copies) = (sizes(block), sizes(arrangement));
        let rank = blocks.len().max(copies.len());
        blocks.resize(rank, 1);
        copies.resize(rank, 1);
        Pairing { blocks, copies, raked }
    }

    fn index(&self, mut block: i64, mut copy: i64) -> i64 {
        let (mut index, mut step) = (0, 1);
        for (own, other) in self.blocks.iter().zip(&self.copies) {
            let (i, j) = (block % own, copy % other);
            index += step * if self.raked { j + other * i } else { i + own * j };
            (block, copy, step) = (block / own, copy / other, step * own * other);
        }
        index
    }
}

/// As [`product_of`], with the block as the first mode.
pub fn product(a: &Map, b: &Map, result: &Map) -> Option<Verdict> {
    product_of(a, b, result, &Pairing::whole(a, b))
}

/// `R` consists of copies of `A`, one for each index of `B`, at positions given by the values of
/// `B`.
pub fn product_of(a: &Map, b: &Map, result: &Map, pairing: &Pairing) -> Option<Verdict> {
    if [a, b].iter().any(|map| map.has_coordinates()) || [a, result].iter().any(|map| map.adds_by_xor()) {
        return None;
    }
    let law = "R(i,j) = A(i) + t(B(j)), where t increases, and copies at different values of B do not meet";
    let shift = |j: i64| {
        let first = at_offset(result, pairing.index(0, j))?;
        first.checked_sub(at_offset(a, 0)?).ok_or_else(|| "a shift does not fit in 64 bits".to_owned())
    };
    let value = |index: i64, place: i64| {
        let expected = ("A(i) + t(B(j))", place.into());
        agree(result, index, expected, ("R(i,j)", at(result, index)?))
    };
    Some(copies(law, [a, b], result.size(), pairing, shift, value))
}

/// As [`product`], for a block with an outer map: the copies are those of its inner layout, through
/// the same outer map. Values of two copies may coincide, if the outer map sends two offsets to
/// one.
pub fn product_of_composed(a: &Composed, b: &Map, result: &Map) -> Option<Verdict> {
    composed_product_of(a, b, result, &Pairing::whole(&Map::from(a), b))
}

/// As [`product_of_composed`], with this pairing of block and copies.
pub fn composed_product_of(a: &Composed, b: &Map, result: &Map, pairing: &Pairing) -> Option<Verdict> {
    if b.has_coordinates() {
        return None;
    }
    let law = "R(i,j) = M(I(i) + t(B(j))), where A(i) = M(I(i)) and t increases, and copies of I at different values of \
               B do not meet";
    let inner = Map::from(a.inner());
    // The outer map may hide the positions of the copies. So the positions are computed from the
    // definition, and their values are tested like any others.
    let places = Map::from(&a.inner().weak_complement_open().ok()?);
    let shift = |j: i64| after(&places, &at(b, j)?).map(|place| place.offset().unwrap_or(0));
    let value = |index: i64, place: i64| {
        let through = a.offset().checked_add(place).map(|place| a.outer().eval(&place));
        let through = through.ok_or("an offset does not fit in 64 bits")?.map_err(|error| error.to_string())?;
        agree(result, index, ("M(I(i) + t(B(j)))", through.into()), ("R(i,j)", at(result, index)?))
    };
    Some(copies(law, [&inner, b], result.size(), pairing, shift, value))
}

/// Copies `block(i) + shift(j)`, each tested by `value` at its index and position. Shifts increase
/// with the values of the arrangement. A value that two copies have in common must come from the
/// same value of the arrangement.
fn copies(
    law: &str,
    [block, arrangement]: [&Map; 2],
    found: i64,
    pairing: &Pairing,
    shift: impl Fn(i64) -> Result<i64, String>,
    value: impl Fn(i64, i64) -> Result<(), String>,
) -> Verdict {
    let total = block.size().saturating_mul(arrangement.size());
    let verdict = |tested, failure| Verdict { law: law.into(), tested, total, failure };
    if found != total {
        let failure = format!("the size is {found}, not {} times {}", block.size(), arrangement.size());
        return verdict(0, Some(failure));
    }
    if total > MOST {
        return verdict(0, None);
    }
    let mut tested = 0;
    let mut test = || -> Result<(), String> {
        let mut shifts = Vec::new();
        for j in 0..arrangement.size() {
            shifts.push((at_offset(arrangement, j)?, shift(j)?, j));
        }
        shifts.sort_unstable();
        for pair in shifts.windows(2) {
            let [(value, shift, j), (other, next, k)] = pair else { continue };
            if value == other && shift != next || value < other && shift >= next {
                return Err(format!(
                    "B({j}) = {value} and B({k}) = {other}, but the copies are moved by {shift} and {next}"
                ));
            }
        }
        // Equal values of the arrangement give one copy. This maps each offset to that value.
        let mut owner: HashMap<i64, i64> = HashMap::new();
        for (at, shift, j) in shifts {
            for i in 0..block.size() {
                let place = at_offset(block, i)?.checked_add(shift).ok_or("an offset does not fit in 64 bits")?;
                value(pairing.index(i, j), place)?;
                if let Some(other) = owner.insert(place, at).filter(|other| *other != at) {
                    return Err(format!("the copies at the values {other} and {at} of B both have the offset {place}"));
                }
                tested += 1;
            }
        }
        Ok(())
    };
    let failure = test().err();
    verdict(tested, failure)
}

/// The law of the product by mode: each mode of `R` is the product of a mode of `A` and a tile.
pub fn product_by_mode(a: &Layout, tiler: &Tiler, result: &Layout) -> Option<Verdict> {
    let law = "each mode of R is copies of that mode of A, none meeting another";
    let Tiler::Modes(tiles) = tiler else {
        return match tiler {
            Tiler::Layout(tile) => product(&Map::from(a), &Map::from(tile), &Map::from(result)),
            _ => None,
        };
    };
    let mut whole = Verdict { law: law.into(), tested: 0, total: 0, failure: None };
    for (position, ((mode, tile), made)) in a.modes().zip(tiles.items()).zip(result.modes()).enumerate() {
        if matches!(tile, Tiler::Keep) {
            continue;
        }
        let verdict = product_by_mode(&mode, tile, &made)?;
        whole.tested += verdict.tested;
        whole.total += verdict.total;
        if let Some(failure) = verdict.failure {
            whole.failure = Some(format!("in mode {position}: {failure}"));
            break;
        }
    }
    Some(whole)
}
