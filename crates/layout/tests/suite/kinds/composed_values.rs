//! Composed layouts by their definition: the walk over the indices that their operations are
//! compared with.

use tilewright_layout::Composed;

pub fn composed(text: &str) -> Composed {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The values at all indices.
pub fn values(r: &Composed) -> Vec<i64> {
    (0..r.size()).map(|i| r.eval(&i).unwrap()).collect()
}

/// The values, each once.
pub fn image(r: &Composed) -> Vec<i64> {
    let mut all = values(r);
    all.sort_unstable();
    all.dedup();
    all
}

/// How many offsets from 0 on are values without a gap.
pub fn reached(r: &Composed) -> i64 {
    let image = image(r);
    (0..).take_while(|value| image.binary_search(value).is_ok()).count() as i64
}

/// Demands that `back` sends each of these values of `r` to an index that has it.
pub fn assert_sends_back(r: &Composed, back: &Composed, values: impl IntoIterator<Item = i64>) {
    for value in values {
        let index = back.eval(&value).unwrap();
        assert!((0..r.size()).contains(&index) && r.eval(&index) == Ok(value), "{r}: {back} at {value}");
    }
}
