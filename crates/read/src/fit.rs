//! Finds the layout of a table of values.
//!
//! Law: a function of several indices is a layout exactly if it is a sum of functions of one index
//! each, and each of these breaks into equal runs: with `p` the first index at which `h(p)` is not
//! `p * h(1)`, `p` divides the extent, and `h(i) = h(i mod p) + h(p * (i div p))`. The runs give
//! the modes, the first the fastest. If that fails and all extents are powers of two, the table may
//! be a linear map over bits, which is a composed layout. The layout found is compared with the
//! table at every index.

use std::collections::HashMap;

use tilewright_layout::{AnyLayout, BitMatrix, Layout, Tree};

/// The layout with these modes whose values, the first mode fastest, are those of the table; None
/// if there is none.
pub(crate) fn fit(extents: &[i64], table: &[i64]) -> Option<AnyLayout> {
    if extents.iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent))? != table.len() as i64 {
        return None;
    }
    if let Some(layout) = strided(extents, table) {
        return Some(AnyLayout::from(layout));
    }
    linear(extents, table)
}

/// The number of threads and values that hold a tile, and the layout from (thread, value) to the
/// elements.
pub(crate) struct Held {
    pub threads: i64,
    pub layout: AnyLayout,
}

/// The layout (thread, value) to elements, given pairs of a (thread, value) and an element.
///
/// Errors: a thread and value with two elements, threads with fewer values than others, or elements
/// that no layout has; each as a clause.
pub(crate) fn fit_held(places: impl IntoIterator<Item = ((i64, i64), i64)>) -> Result<Held, String> {
    let mut held: HashMap<(i64, i64), i64> = HashMap::new();
    let (mut threads, mut values) = (0_i64, 0_i64);
    for ((thread, value), element) in places {
        if thread < 0 || value < 0 {
            return Err("a thread or a value has a negative number".into());
        }
        if held.insert((thread, value), element).is_some() {
            return Err(format!("two elements are value {value} of thread {thread}"));
        }
        threads = threads.max(thread.saturating_add(1));
        values = values.max(value.saturating_add(1));
    }
    if threads.checked_mul(values).and_then(|count| usize::try_from(count).ok()) != Some(held.len()) {
        return Err(format!("not each of {threads} threads has {values} values"));
    }
    let order = (0..values).flat_map(|value| (0..threads).map(move |thread| (thread, value)));
    let table: Vec<i64> = order.filter_map(|place| held.get(&place).copied()).collect();
    match fit(&[threads, values], &table) {
        Some(layout) => Ok(Held { threads, layout }),
        None => Err("no layout of threads and values has these elements".into()),
    }
}

fn strided(extents: &[i64], table: &[i64]) -> Option<Layout> {
    if *table.first()? != 0 {
        return None;
    }
    let mut below = 1;
    let mut modes = Vec::new();
    for extent in extents {
        let row: Vec<i64> = (0..*extent).filter_map(|at| table.get((at * below) as usize).copied()).collect();
        modes.push(mode(&row)?);
        below *= extent;
    }
    let layout = match modes.as_slice() {
        [only] => only.clone(),
        modes => Layout::tuple(modes).ok()?,
    };
    let agrees = |(index, value): (usize, &i64)| layout.eval(&(index as i64)).is_ok_and(|own| own == *value);
    table.iter().enumerate().all(agrees).then_some(layout)
}

/// The layout of a function of one index.
fn mode(row: &[i64]) -> Option<Layout> {
    let mut leaves = Vec::new();
    let mut row = row.to_vec();
    while row.len() > 1 {
        let step = *row.get(1)?;
        let run = row.iter().zip(0..).position(|(value, at): (&i64, i64)| step.checked_mul(at) != Some(*value));
        let run = run.unwrap_or(row.len());
        if !row.len().is_multiple_of(run) {
            return None;
        }
        let starts: Vec<i64> = row.iter().step_by(run).copied().collect();
        let regular = row.iter().enumerate().all(|(at, value)| {
            let (start, own) = (starts.get(at / run), row.get(at % run));
            start.zip(own).and_then(|(start, own)| start.checked_add(*own)) == Some(*value)
        });
        if !regular {
            return None;
        }
        leaves.push((run as i64, step));
        row = starts;
    }
    let leaf = |(extent, stride): &(i64, i64)| Layout::mode_of(*extent, *stride).ok();
    match leaves.as_slice() {
        [] => Layout::mode_of(1, 0).ok(),
        [only] => leaf(only),
        leaves => Layout::tuple(&leaves.iter().map(leaf).collect::<Option<Vec<Layout>>>()?).ok(),
    }
}

fn linear(extents: &[i64], table: &[i64]) -> Option<AnyLayout> {
    if extents.iter().any(|extent| !(*extent > 0 && extent & (extent - 1) == 0)) {
        return None;
    }
    let bits = table.len().trailing_zeros() as usize;
    let columns: Vec<u64> =
        (0..bits).map(|bit| table.get(1 << bit).and_then(|value| u64::try_from(*value).ok())).collect::<Option<_>>()?;
    let matrix = BitMatrix::of_columns(columns).ok()?;
    let agrees =
        |(index, value): (usize, &i64)| u64::try_from(*value).is_ok_and(|own| matrix.apply(index as u64) == own);
    if !table.iter().enumerate().all(agrees) {
        return None;
    }
    let shape = match extents {
        [only] => Tree::leaf(*only),
        extents => Tree::flat(extents.iter().copied()).ok()?,
    };
    matrix.to_composed(&shape).ok().map(AnyLayout::from)
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn tables_are_read_as_the_layouts_that_have_them() {
        for text in ["(4,8):(8,1)", "((2,2),(2,4)):((1,4),(2,8))", "(3,5):(7,2)", "(4,8):(0,3)", "6:5", "(1,4):(0,1)"] {
            let layout: tilewright_layout::Layout = text.parse().unwrap();
            let shape: Vec<i64> = (0..layout.rank()).map(|mode| layout.mode(mode).unwrap().size()).collect();
            let table: Vec<i64> = (0..layout.size()).map(|index| layout.eval(&index).unwrap()).collect();
            assert_eq!(fit(&shape, &table).unwrap().to_string(), text);
        }
        // Rows of four, each permuted by an XOR with the row number.
        let table: Vec<i64> = (0..16).map(|index| (index % 4) * 4 + ((index / 4) ^ (index % 4))).collect();
        assert_eq!(fit(&[4, 4], &table).unwrap().to_string(), "S<2,0,2> o 0 o (4,4):(4,1)");
        assert!(fit(&[4, 3], &(0..12).map(|index| index * index).collect::<Vec<_>>()).is_none());
    }
}
