//! Layouts of wider and of narrower elements.

use tilewright_layout::Layout;

use super::{layout, values};

/// Every wide element of `wide` covers `n` narrow ones, and together those of `narrow`, each once.
#[track_caller]
fn covers_the_same_elements(wide: &Layout, n: i64, narrow: &Layout) {
    let mut covered: Vec<i64> = values(wide).iter().flat_map(|v| (0..n).map(move |j| v * n + j)).collect();
    let mut elements = values(narrow);
    covered.sort_unstable();
    elements.sort_unstable();
    assert_eq!(covered, elements, "{wide} and {narrow}");
}

#[test]
fn widening_rounds_only_where_it_says_so() {
    // Elsewhere: upcast<4>(6:1) is 2:1 and the two elements that do not exist go unmentioned. Here
    // upcast is documented to cover, and recast refuses.
    let l = layout("6:1");
    assert_eq!(l.upcast(4).unwrap().to_string(), "2:1");
    assert_eq!(l.recast(32, 8).unwrap_err().code(), "E0115");
    // A box over two modes is exact: (1,4):(1,1) elsewhere; an extent of 1 has stride 0 here.
    let l = layout("(2,8):(1,2)");
    assert_eq!(l.upcast(4).unwrap().to_string(), "(1,4):(0,1)");
    let wide = l.recast(32, 8).unwrap();
    assert_eq!(wide.to_string(), "(1,4):(0,1)");
    covers_the_same_elements(&wide, 4, &l);
}

#[test]
fn widening_across_a_stride_that_does_not_divide_is_refused() {
    // Elsewhere: dynamic strides are truncated; another implementation gives upcast(4, 4:6) = 4:2,
    // which is wrong memory.
    assert_eq!(layout("4:6").recast(32, 8).unwrap_err().code(), "E0115");
    assert_eq!(layout("(4,6):(1,6)").recast(32, 8).unwrap_err().code(), "E0115");
    assert_eq!(layout("4:6").upcast(4).unwrap().to_string(), "4:2");
}

#[test]
fn narrowing_a_reversed_mode_is_exact_in_recast() {
    // Elsewhere: stride -1 is refused. The parts of each element run forward, so downcast, leaf by
    // leaf, cannot say it; recast can, with a mode for the parts.
    let l = layout("4:-1");
    assert_eq!(l.downcast(2).unwrap_err().code(), "E0113");
    let narrow = l.recast(8, 16).unwrap();
    covers_the_same_elements(&l, 2, &narrow);
}

#[test]
fn narrowing_expands_one_mode_only() {
    // Elsewhere: every mode of stride 1 is expanded: (4,4):(1,1), which has 16 parts for 4 elements
    // of 2.
    let l = layout("(2,2):(1,1)");
    let narrow = l.recast(8, 16).unwrap();
    assert_eq!(narrow.size(), 2 * l.size());
    covers_the_same_elements(&l, 2, &narrow);
    assert_eq!(l.downcast(2).unwrap().to_string(), "(4,4):(1,1)");
}

#[test]
fn narrowing_a_strided_mode_keeps_every_part() {
    // Elsewhere: downcast(2, 4:2) is 4:4, the first half of each element.
    let l = layout("4:2");
    let narrow = l.recast(8, 16).unwrap();
    covers_the_same_elements(&l, 2, &narrow);
    assert_eq!(l.downcast(2).unwrap().to_string(), "4:4");
}
