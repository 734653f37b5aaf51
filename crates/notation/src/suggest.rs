//! The nearest name: what a misspelt word was meant to be.

/// The candidate with the fewest edits (insertions, deletions, substitutions, swaps of neighbours), when they are few.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Of one or two letters everything is near everything.
    if word.len() < 3 || word.len() > 64 {
        return None;
    }
    let allowed = (word.len() / 3).max(1);
    let lower = word.to_ascii_lowercase();
    candidates
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= allowed)
        .map(|candidate| (edits(lower.as_bytes(), candidate.to_ascii_lowercase().as_bytes()), candidate))
        .filter(|(edits, _)| *edits <= allowed)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// The edit distance in which a swap of two neighbours counts as one edit.
fn edits(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
            let mut best = at(&above, j) + usize::from(x != y);
            best = best.min(at(&above, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        for (a, b, count) in [("", "abc", 3), ("size", "szie", 1), ("coalesc", "coalesce", 1), ("rank", "tank", 1)] {
            assert_eq!(edits(a.as_bytes(), b.as_bytes()), count, "{a} {b}");
            assert_eq!(edits(b.as_bytes(), a.as_bytes()), count, "{b} {a}");
        }
    }

    #[test]
    fn far_words_are_not_suggested() {
        assert_eq!(nearest("zzzz", ["size", "rank"].into_iter()), None);
        assert_eq!(nearest("compositon", ["complement", "composition"].into_iter()), Some("composition"));
    }
}
