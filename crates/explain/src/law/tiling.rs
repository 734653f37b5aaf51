//! The laws of what fills and repeats: complement, division, product.

use std::collections::HashMap;

use tilewright_layout::{Composed, Layout, Tiler, Tree};

use super::points::{Key, key};
use super::{MOST, PART, Verdict, at, offset as at_offset, plus, test, test_first};
use crate::map::Map;

/// The sums `A(i) + R(j)` do not collide and `R` increases; the strict complement also leaves no
/// hole.
pub fn complement(a: &Map, result: &Map, whole: bool) -> Verdict {
    let law = if whole {
        "R increases, and (i,j) -> A(i) + R(j) hits each offset from 0 exactly once"
    } else {
        "R increases, and the offsets A(i) + R(j) differ"
    };
    let (inner, total) = (a.size(), a.size().saturating_mul(result.size()));
    let place = |index: i64| (index % inner, index / inner);
    let mut sums: Vec<i64> = Vec::new();
    let verdict = test_first(if total > MOST { PART } else { total }, law, total, |index| {
        let (i, j) = place(index);
        if i == 0 && j > 0 && at_offset(result, j)? <= at_offset(result, j - 1)? {
            return Err(format!("R({j}) = {} does not come after R({})", at_offset(result, j)?, j - 1));
        }
        let offset = plus(a, &at(a, i)?, &at(result, j)?)?.offset().unwrap_or(0);
        if whole && (offset < 0 || offset >= total) {
            return Err(format!("A({i}) + R({j}) = {offset} is outside [0, {total}), so some offset in it is missed"));
        }
        sums.push(offset);
        Ok(())
    });
    if verdict.failure.is_some() {
        return verdict;
    }
    // Sorting millions of offsets takes a tenth of the time of a table of them.
    let mut sorted = sums.clone();
    sorted.sort_unstable();
    let Some([offset, ..]) = sorted.windows(2).find(|pair| pair.first() == pair.last()) else { return verdict };
    let mut both = (0..).zip(&sums).filter(|(_, sum)| *sum == offset).map(|(index, _)| place(index));
    let ((i0, j0), (i, j)) = (both.next().unwrap_or_default(), both.next().unwrap_or_default());
    let failure = format!("offset {offset} is both A({i0}) + R({j0}) and A({i}) + R({j})");
    Verdict { failure: Some(failure), ..verdict }
}

/// The law of a division by tiles that divide.
pub const DIVIDED: &str = "R takes the offsets of A, each as often";

/// Whether two layouts surely take the same offsets, each as often: modes that change places, split
/// or merge change nothing about that, so it is shown where the modes in the order of their strides
/// coalesce to the same.
pub fn same_offsets_as_often(a: &Layout, b: &Layout) -> bool {
    let sorted = |layout: &Layout| {
        let mut leaves = layout.leaves().to_vec();
        leaves.sort_by_key(|leaf| (leaf.stride.unsigned_abs(), leaf.stride, leaf.extent));
        Layout::from_tree(Tree::flat(leaves).ok()?).ok()?.coalesce().ok()
    };
    sorted(a).zip(sorted(b)).is_some_and(|(a, b)| a == b)
}

/// No element is lost: `R` takes each offset of `A` at least as often as `A` does, and as often if
/// the tile divides.
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

/// `R` consists of copies of `A`, one for each index of the other operand, that do not meet.
pub fn product(a: &Map, copies: i64, result: &Map) -> Verdict {
    let law = "R is copies of A, one for each index of B, none meeting another";
    let total = a.size().saturating_mul(copies);
    if result.size() != total {
        let failure = Some(format!("the size is {}, not {} times {}", result.size(), a.size(), copies));
        return Verdict { law: law.into(), tested: 0, total, failure };
    }
    if total > MOST {
        return Verdict { law: law.into(), tested: 0, total, failure: None };
    }
    let mut left: HashMap<i64, i64> = HashMap::new();
    let mut offsets = Vec::new();
    for index in 0..total {
        match at_offset(result, index) {
            Ok(offset) => offsets.push(offset),
            Err(error) => return Verdict { law: law.into(), tested: index, total, failure: Some(error) },
        }
    }
    for offset in &offsets {
        *left.entry(*offset).or_default() += 1;
    }
    // How often A takes each of its offsets: a copy repeats exactly that.
    let mut pattern: HashMap<i64, i64> = HashMap::new();
    for index in 0..a.size() {
        match at_offset(a, index) {
            Ok(offset) => *pattern.entry(offset).or_default() += 1,
            Err(error) => return Verdict { law: law.into(), tested: index, total, failure: Some(error) },
        }
    }
    // The least offset left is the least of some copy: take that copy away, until nothing is left.
    offsets.sort_unstable();
    let least = pattern.keys().copied().min().unwrap_or(0);
    let mut tested = 0;
    for offset in &offsets {
        if left.get(offset).copied().unwrap_or(0) == 0 {
            continue;
        }
        for (step, times) in &pattern {
            let place = offset - least + step;
            let count = left.entry(place).or_default();
            *count -= times;
            tested += times;
            if *count != 0 {
                let failure = Some(format!(
                    "the copy of A that starts at {} does not have offset {place} to itself",
                    offset - least
                ));
                return Verdict { law: law.into(), tested, total, failure };
            }
        }
    }
    Verdict { law: law.into(), tested, total, failure: None }
}

/// Copies of a block that is seen through an outer map: the inner layouts are copies of that of the
/// block, through the same map, and values of different copies differ. `first` says that the block
/// is mode 0, so that `R(i,0) = A(i)`.
pub fn product_of_composed(a: &Composed, made: &Composed, copies: i64, first: bool) -> Option<Verdict> {
    let law = if first {
        "R(i,0) = A(i), and R is copies of the inner layout of A through the same map, none meeting another"
    } else {
        "R is copies of the inner layout of A through the same map, none meeting another"
    };
    let inner = product(&Map::from(a.inner()), copies, &Map::from(made.inner()));
    let failed =
        |tested, failure: String| Verdict { law: law.into(), tested, total: made.size(), failure: Some(failure) };
    if a.outer() != made.outer() || a.offset() != made.offset() {
        return Some(failed(0, "the map after the inner layout, or the offset, is not that of A".to_owned()));
    }
    if inner.failure.is_some() || inner.tested == 0 || !first {
        return Some(Verdict { law: law.into(), ..inner });
    }
    let (block, result) = (Map::from(a), Map::from(made));
    // Which copy has a value.
    let mut owner: HashMap<i64, i64> = HashMap::new();
    Some(test(law, made.size(), |index| {
        let (place, copy) = (index % a.size(), index / a.size());
        let value = at_offset(&result, index)?;
        if copy == 0 && value != at_offset(&block, place)? {
            return Err(format!("R({place},0) = {value}, but A({place}) = {}", at_offset(&block, place)?));
        }
        match owner.insert(value, copy) {
            Some(other) if other != copy => Err(format!("copies {other} and {copy} both have the value {value}")),
            _ => Ok(()),
        }
    }))
}

/// The product by mode: each mode of `R` is the product of a mode of `A`.
pub fn product_by_mode(a: &Layout, tiler: &Tiler, result: &Layout) -> Option<Verdict> {
    let law = "each mode of R is copies of that mode of A, none meeting another";
    let Tiler::Modes(tiles) = tiler else {
        return match tiler {
            Tiler::Layout(tile) => Some(product(&Map::from(a), tile.size(), &Map::from(result))),
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
