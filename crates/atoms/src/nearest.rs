//! The names nearest to one that does not exist.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// How many names are worth showing.
const MOST: usize = 3;

/// Those of `names` that differ in the fewest letters, nearest first, where few enough differ.
pub(crate) fn nearest<S: AsRef<str>>(word: &str, names: impl IntoIterator<Item = S>) -> Vec<Box<str>> {
    // No name is so long.
    if word.len() > 256 {
        return Vec::new();
    }
    let allowed = (word.len() / 3).max(1);
    let mut near: Vec<(usize, Box<str>)> = Vec::new();
    for name in names {
        let name = name.as_ref();
        if name.len().abs_diff(word.len()) > allowed {
            continue;
        }
        let distance = edits(word, name);
        if distance <= allowed {
            let at = near.partition_point(|(known, _)| *known <= distance);
            near.insert(at, (distance, name.to_owned().into_boxed_str()));
            near.truncate(MOST);
        }
    }
    near.into_iter().map(|(_, name)| name).collect()
}

/// How many letters must be inserted, removed or changed to make one word from another, in upper or lower case.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let (mut corner, mut left) = (i, i + 1);
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let above = *cell;
            left = (corner + usize::from(!x.eq_ignore_ascii_case(&y))).min(above + 1).min(left + 1);
            (corner, *cell) = (above, left);
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(a.len())
}
