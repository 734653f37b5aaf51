//! The valid names that are most similar to a misspelt one.
//!
//! Law: the distance of two words is the least number of letters to insert, remove or change, or of
//! adjacent letters to swap, that turns one into the other; no letter is edited twice, and case is
//! ignored.
//!
//! The crate `strsim` is not used, because it needs the standard library.

use alloc::vec::Vec;

/// The longest word that is compared. No name is longer, and the time is the product of both
/// lengths.
const MAX_LENGTH: usize = 256;

/// The `names` that are similar to a misspelt word, the nearest first, at most `most`.
///
/// A name is similar if its distance is at most a third of the letters of the word, or one letter.
/// For words of one or two letters nothing is returned, because every short name would be similar.
///
/// ```
/// use tilewright_layout::nearest;
///
/// let names = ["complement", "composition", "size"];
/// assert_eq!(nearest("complemnet", names, 3), ["complement"]);
/// assert!(nearest("zzzz", names, 3).is_empty());
/// ```
pub fn nearest<S: AsRef<str>>(word: &str, names: impl IntoIterator<Item = S>, most: usize) -> Vec<S> {
    if !(3..=MAX_LENGTH).contains(&word.len()) {
        return Vec::new();
    }
    let allowed = (word.len() / 3).max(1);
    let mut near: Vec<(usize, S)> = Vec::new();
    for name in names {
        let text = name.as_ref();
        if text.len().abs_diff(word.len()) > allowed {
            continue;
        }
        let distance = distance(word.as_bytes(), text.as_bytes());
        if distance <= allowed {
            let at = near.partition_point(|(known, _)| *known <= distance);
            near.insert(at, (distance, name));
            near.truncate(most);
        }
    }
    near.into_iter().map(|(_, name)| name).collect()
}

fn distance(a: &[u8], b: &[u8]) -> usize {
    let same = |x: &u8, y: &u8| x.eq_ignore_ascii_case(y);
    let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
    // Rows of the table of distances of prefixes: that of `a` without its last two letters, and
    // that without its last letter.
    let (mut before, mut above): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=b.len()).collect());
    for (i, x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, y) in b.iter().enumerate() {
            let mut least = at(&above, j) + usize::from(!same(x, y));
            least = least.min(at(&above, j + 1) + 1).min(at(&row, j) + 1);
            let crosswise = |(u, v): (&u8, &u8)| same(u, y) && same(v, x);
            let ends = i.checked_sub(1).and_then(|i| a.get(i)).zip(j.checked_sub(1).and_then(|j| b.get(j)));
            if ends.is_some_and(crosswise) {
                least = least.min(at(&before, j - 1) + 1);
            }
            row.push(least);
        }
        before = core::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distance found by a search over edits, each letter edited once. It shares no code with
    /// the table.
    fn searched(a: &[u8], b: &[u8]) -> usize {
        match (a, b) {
            ([], rest) | (rest, []) => rest.len(),
            ([x, a @ ..], [y, b @ ..]) => {
                let mut least = searched(a, b) + usize::from(x != y);
                least = least.min(searched(a, &[&[*y], b].concat()) + 1).min(searched(&[&[*x], a].concat(), b) + 1);
                match (a, b) {
                    ([u, a @ ..], [v, b @ ..]) if x == v && y == u => least.min(searched(a, b) + 1),
                    _ => least,
                }
            }
        }
    }

    #[test]
    fn distances_are_those_of_a_search() {
        let words: Vec<Vec<u8>> = (0..4_usize)
            .flat_map(|length| (0..3_usize.pow(length as u32)).map(move |code| (length, code)))
            .map(|(length, code)| (0..length).map(|at| b'a' + (code / 3_usize.pow(at as u32) % 3) as u8).collect())
            .collect();
        for a in &words {
            for b in &words {
                assert_eq!(distance(a, b), searched(a, b), "{a:?} {b:?}");
            }
        }
        for (a, b, count) in [("", "abc", 3), ("size", "szie", 1), ("kitten", "sitting", 3), ("Rank", "tanK", 1)] {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), count, "{a} {b}");
        }
    }

    #[test]
    fn the_nearest_come_first() {
        assert_eq!(nearest("compositon", ["complement", "composition"], 2), ["composition"]);
        assert_eq!(nearest("rank", ["tanks", "rank", "bank"], 2), ["rank", "bank"]);
        assert!(nearest("ab", ["ab"], 2).is_empty());
    }
}
