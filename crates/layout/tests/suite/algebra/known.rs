//! Answers that others get wrong.
//!
//! Each test is one case that a known implementation answers with a layout that is wrong at some
//! index, with a layout of the wrong size, with a crash, or with a refusal of what exists. The
//! answer asserted is the one that the definition gives, checked at every index; where there is
//! none, it is the refusal. What is answered elsewhere stands in a comment: "C++" is CuTe's C++
//! library, with static integers unless run-time ("dynamic") ones are named; "pycute" is the Python
//! reimplementation beside it.

mod complement;
mod composition;
mod inverse;
mod recast;

use crate::oracle::{Flat, value};
use tilewright_layout::{Layout, Tiler, Tree, compact_order, crd2crd, crd2idx, domain_distribute, idx2crd};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn tree(text: &str) -> Tree<i64> {
    text.parse().unwrap()
}

fn plain(layout: &Layout) -> Flat {
    layout.leaves().iter().map(|leaf| (leaf.extent, leaf.stride)).collect()
}

fn values(layout: &Layout) -> Vec<i64> {
    (0..layout.size()).map(|i| layout.eval(&i).unwrap()).collect()
}

// ---- coalescing, kernels, domains

#[test]
fn coalesce_merges_every_adjacent_pair() {
    // Elsewhere: C++ leaves (4,8):(1,4) and (8,4):(1,8) as they are when one of the two extents is
    // dynamic.
    for (l, expected) in [("(4,8):(1,4)", "32:1"), ("(8,4):(1,8)", "32:1"), ("(2,1,6):(1,7,2)", "12:1")] {
        let r = layout(l).coalesce().unwrap();
        assert_eq!(r.to_string(), expected);
        assert_eq!(values(&layout(l)), values(&r));
    }
}

#[test]
fn coalesce_keeps_a_last_mode_that_is_slower_than_the_first() {
    // Elsewhere: merged to 8:1, which is 1 instead of 4 at index 1.
    assert_eq!(layout("(2,4):(4,1)").coalesce().unwrap().to_string(), "(2,4):(4,1)");
}

#[test]
fn coalesce_past_the_end_keeps_what_the_extension_needs() {
    // (4,1):(1,0) is 0 at index 4 and 1 at 5; without its last mode it would be 4 and 5. cutegen
    // keeps it too.
    let l = layout("(4,1):(1,0)");
    let z = l.coalesce_z().unwrap();
    for i in -20..20 {
        assert_eq!(z.eval(&i).unwrap(), value(&plain(&l), i), "{z} at {i}");
    }
    assert_eq!(l.coalesce().unwrap().to_string(), "4:1");
}

/// A layout without leaves has one coalesced form, whatever its nesting.
#[test]
fn coalesce_flattens_what_has_no_leaves() {
    for l in ["():()", "(()):(())", "((),()):((),())", "((()),()):((()),())"] {
        assert_eq!(layout(l).coalesce().unwrap().to_string(), "():()");
        assert_eq!(layout(l).coalesce_z().unwrap().to_string(), "():()");
        assert_eq!(layout(l).filter().unwrap().to_string(), "():()");
    }
}

#[test]
fn nullspace_is_made_of_every_mode_that_stands_still() {
    // Elsewhere: C++ sees static strides of 0 only.
    let l = layout("(2,4,6):(1,2,0)");
    let k = l.nullspace().unwrap();
    assert_eq!(k.to_string(), "6:8");
    assert!(values(&k).iter().all(|index| l.eval(index).unwrap() == 0));
    let l = layout("(3,2,5):(0,1,0)");
    let k = l.nullspace().unwrap();
    assert_eq!(k.to_string(), "(3,5):(1,6)");
    assert!(values(&k).iter().all(|index| l.eval(index).unwrap() == 0));
    assert_eq!(k.size() as usize, values(&l).iter().filter(|offset| **offset == 0).count());
    // Offsets that modes cancel or repeat are not part of it, by definition.
    assert_eq!(layout("(2,2):(1,1)").nullspace().unwrap().to_string(), "1:0");
}

#[test]
fn domain_distribute_of_coprime_sizes_gives_each_worker_one_share() {
    // Elsewhere: C++ "gives up" with 1:0 here; no two workers can share 35 coordinates evenly six
    // ways, so it is the answer.
    assert_eq!(domain_distribute(&tree("(5,7)"), &tree("6")).unwrap().to_string(), "1:0");
    assert_eq!(domain_distribute(&tree("(15,14)"), &tree("6")).unwrap().to_string(), "(3,2):(1,15)");
}

// ---- coordinates

#[test]
fn a_coordinate_past_the_end_keeps_its_index() {
    // The last mode is not reduced, so that nothing is lost: index 7 of (2,3) is (1,3). Elsewhere
    // documented as 7 mod 6.
    let crd = idx2crd(&tree("7"), &tree("(2,3)")).unwrap();
    assert_eq!(crd.to_string(), "(1,3)");
    assert_eq!(crd2idx(&crd, &tree("(2,3)")).unwrap(), 7);
}

#[test]
fn a_coordinate_changes_shape_only_between_equal_sizes() {
    // Elsewhere: sizes are not compared.
    assert_eq!(crd2crd(&tree("5"), &tree("(2,3)"), &tree("(3,2)")).unwrap().to_string(), "(2,1)");
    assert_eq!(crd2crd(&tree("5"), &tree("(2,3)"), &tree("(3,3)")).unwrap_err().code(), "E0117");
}

#[test]
fn a_coordinate_is_read_with_the_shape_whatever_the_strides() {
    // Elsewhere: index to coordinate by strides is wrong for padded ones and divides by a stride of
    // 0.
    let l = layout("(4,3,2):(1,0,7)");
    for i in 0..l.size() {
        let crd = idx2crd(&Tree::from(i), &l.shape()).unwrap();
        assert_eq!(crd.leaves(), [i % 4, i / 4 % 3, i / 12]);
        assert_eq!(l.eval_at(&crd).unwrap(), l.eval(&i).unwrap());
    }
}

#[test]
fn shape_div_that_leaves_a_remainder_is_refused() {
    // Elsewhere: not checked for dynamic extents; the disabled assertion tests a % b twice instead
    // of a % b and b % a.
    assert_eq!(tree("6").shape_div(&tree("4")).unwrap_err().code(), "E0115");
    assert_eq!(tree("12").shape_div(&tree("4")).unwrap().to_string(), "3");
    assert_eq!(tree("4").shape_div(&tree("12")).unwrap().to_string(), "1");
    assert_eq!(tree("(4,6)").shape_div(&tree("8")).unwrap().to_string(), "(1,3)");
    assert_eq!(tree("(4,6)").shape_div(&tree("6")).unwrap_err().code(), "E0115");
}

#[test]
fn a_layout_of_trees_that_nest_differently_is_refused() {
    // Elsewhere: the constructor does not compare them.
    for (shape, stride) in [("(4,8)", "1"), ("(4,8)", "(1,(2,3))"), ("4", "(1,2)"), ("(4,8)", "(1,2,3)")] {
        assert_eq!(Layout::new(&tree(shape), &tree(stride)).unwrap_err().code(), "E0101");
    }
}

#[test]
fn the_empty_tuple_has_a_depth_and_a_size() {
    // Elsewhere: depth(()) does not compile.
    assert_eq!((tree("()").depth(), tree("()").rank(), layout("():()").size()), (1, 0, 1));
    assert_eq!(tree("()").product().unwrap(), 1);
}

// ---- divides, products, orders

#[test]
fn a_divide_that_does_not_come_out_even_covers() {
    // Elsewhere: documented to keep the size; it is 12 there too.
    let tiler: Tiler = "4".parse().unwrap();
    let r = layout("10:1").logical_divide(&tiler).unwrap();
    assert_eq!((r.to_string().as_str(), r.size()), ("(4,3):(1,4)", 12));
    assert_eq!(values(&r), (0..12).collect::<Vec<_>>());
}

#[test]
fn tile_to_shape_covers_the_target() {
    // 5 rows in tiles of 2 are 6. Elsewhere: documented to keep the size.
    let r = layout("(2,4):(1,2)").tile_to_shape(&tree("(5,8)"), None).unwrap();
    assert_eq!(r.size(), 48);
    let shape = r.shape();
    assert_eq!(shape.modes().map(|mode| mode.product().unwrap()).collect::<Vec<_>>(), [6, 8]);
    assert!(r.is_bijective());
}

#[test]
fn an_order_with_a_tie_is_refused() {
    // Elsewhere: order (0,0,1) on (2,3,4) gives the strides (1,1,6), two modes on the same memory.
    let error = compact_order(&tree("(2,3,4)"), &tree("(0,0,1)")).unwrap_err();
    assert_eq!(error.code(), "E0120");
}

#[test]
fn a_layout_like_one_with_tied_strides_does_not_alias() {
    // Elsewhere: tied strides give modes that share memory.
    let r = layout("(2,3,4):(1,1,6)").layout_like().unwrap();
    assert_eq!(r.to_string(), "(2,3,4):(1,2,6)");
    assert!(r.is_bijective());
}

#[test]
fn a_degenerate_layout_is_tractable() {
    // Elsewhere: (1,1):(22,23) and (1,2):(3,4) are not, because modes of one position are looked
    // at.
    assert!(layout("(1,1):(22,23)").is_tractable());
    assert!(layout("(1,2):(3,4)").is_tractable());
}
