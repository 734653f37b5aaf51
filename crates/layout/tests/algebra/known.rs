//! Answers that others get wrong.
//!
//! Each test is one case that a known implementation answers with a layout that is wrong at some
//! index, with a layout of the wrong size, with a crash, or with a refusal of what exists. The
//! answer asserted is the one that the definition gives, checked at every index; where there is
//! none, it is the refusal. What is answered elsewhere stands in a comment: "C++" is CuTe's C++
//! library, with static integers unless run-time ("dynamic") ones are named; "pycute" is the Python
//! reimplementation beside it.

use crate::oracle::{Flat, composite_exists, value};
use tilewright_layout::{
    Layout, LayoutError, Tiler, Tree, compact_order, crd2crd, crd2idx, domain_distribute, idx2crd,
};

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

/// `a o b` is `expected`, and it is `a(b(i))` at every index.
#[track_caller]
fn composes(a: &str, b: &str, expected: &str) {
    let (a, b) = (layout(a), layout(b));
    let r = a.compose(&b).unwrap();
    assert_eq!(r.to_string(), expected);
    assert_eq!(r.size(), b.size());
    for i in 0..b.size() {
        assert_eq!(r.eval(&i).unwrap(), value(&plain(&a), value(&plain(&b), i)), "{a} o {b} at {i}");
    }
}

/// `a o b` is refused with this code, and rightly: no layout over `b`'s modes is `a(b(i))`.
#[track_caller]
fn has_no_composite(a: &str, b: &str, code: &str) -> LayoutError {
    let (a, b) = (layout(a), layout(b));
    assert!(!composite_exists(&plain(&a), &plain(&b)), "{a} o {b} exists");
    let error = a.compose(&b).unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    error
}

// ---- composition

#[test]
fn composition_that_carries_between_modes_is_refused() {
    // Elsewhere: (3,2):(2,3), with R(5) = 7, in C++ and pycute. At coordinate (2,1), index 5, B is
    // 7 and A(7) = 1 + 7.
    let error = has_no_composite("(6,2):(1,7)", "(3,2):(2,3)", "E0107");
    let LayoutError::Carry(carry) = &error else { panic!("{error}") };
    assert_eq!(carry.coordinate(), [2, 1]);
    assert_eq!((carry.value.to_string(), carry.sum.to_string()), ("8".to_string(), "7".to_string()));
    assert_eq!(layout("(6,2):(1,7)").eval(&7).unwrap(), 8);
}

#[test]
fn composition_whose_run_does_not_divide_is_refused() {
    // Elsewhere: C++ gives (2,3):(6,3), wrong at four of six indices.
    has_no_composite("(4,6,8):(2,3,5)", "6:3", "E0108");
}

#[test]
fn composition_that_ends_within_a_mode_is_refused() {
    // Elsewhere: dynamic C++ gives (4,1,1), of size 4 instead of 6; pycute 4:2, of size 4.
    has_no_composite("(4,6,8):(2,3,5)", "6:1", "E0108");
}

#[test]
fn composition_that_never_reaches_the_next_mode_exists() {
    // The step 3 does not divide the extent 4, but 0, 3, 6 meet only modes that go on alike:
    // (4,2):(3,12) is 8:3. Elsewhere: dynamic C++ gives (2,1,1):(9,12,97), of size 2 instead of 3;
    // pycute refuses.
    composes("(4,2,8):(3,12,97)", "3:3", "3:9");
}

#[test]
fn composition_that_stays_inside_one_mode_exists() {
    // Elsewhere: pycute refuses, because 3 does not divide 5.
    composes("(5,3):(7,1)", "2:3", "2:21");
}

#[test]
fn composition_with_a_stride_of_zero_is_constant() {
    // Elsewhere: dynamic C++ divides by zero.
    composes("(4,2):(1,4)", "4:0", "4:0");
    composes("(4,2):(1,4)", "(4,2):(0,4)", "(4,2):(0,4)");
}

#[test]
fn composition_with_a_negative_stride_follows_the_definition() {
    // Elsewhere: C++ gives (2,2):(-3,-10), which is 0,-3,-10,-13. The definition asks for
    // 0,-3,-12,-21, and no layout is that.
    let a = plain(&layout("(4,4):(1,10)"));
    assert_eq!((0..4).map(|i| value(&a, -3 * i)).collect::<Vec<_>>(), [0, -3, -12, -21]);
    has_no_composite("(4,4):(1,10)", "4:-3", "E0107");
    // Where it exists, it is the mirror image of that with the positive stride.
    composes("(4,4):(1,10)", "4:-1", "4:-1");
    composes("(4,4):(1,10)", "8:-2", "(2,4):(-2,-10)");
    composes("(4,4):(1,10)", "(4,2):(-1,-4)", "(4,2):(-1,-10)");
}

#[test]
fn composition_of_a_step_that_meets_a_mode_unevenly_is_refused() {
    // Elsewhere: dynamic C++ gives (2,2):(3,10), wrong at two of four indices.
    has_no_composite("(4,4):(1,10)", "4:3", "E0107");
}

#[test]
fn composition_has_the_size_of_its_second_operand_or_is_refused() {
    // Elsewhere: dynamic C++ gives (3,1):(24,1), of size 3 instead of 4, and (6,1):(1,10), of size
    // 6 instead of 8.
    has_no_composite("(8,8):(8,1)", "4:3", "E0108");
    has_no_composite("(6,4):(1,10)", "8:1", "E0108");
}

#[test]
fn composition_through_several_modes_exists_where_the_strides_align() {
    // 12 = 4 * 3 leaves 2 of the mode of 6. Elsewhere refused where only the divisibility of single
    // strides is looked at.
    composes("(4,6,8,10):(2,3,5,7)", "6:12", "(2,3):(9,5)");
}

#[test]
fn composition_with_layouts_that_are_no_morphisms_exists() {
    // The second operands overlap or leave gaps that do not divide. Elsewhere refused: they have no
    // common refinement.
    composes("12:1", "(2,2):(1,3)", "(2,2):(1,3)");
    composes("(4,6):(1,8)", "(2,2):(8,12)", "(2,2):(16,24)");
    composes("8:1", "(2,2):(1,1)", "(2,2):(1,1)");
}

#[test]
fn composition_of_empty_and_unit_layouts_is_defined() {
    // Elsewhere: pycute crashes on empty layouts.
    assert_eq!(layout("():()").compose(&layout("():()")).unwrap().to_string(), "():()");
    composes("4:1", "():()", "():()");
    composes("1:0", "4:0", "4:0");
    composes("(1,1):(22,23)", "3:1", "3:23");
}

// ---- complement

/// Complement and layout together hit every offset below `size(L) * size(C)` exactly once.
#[track_caller]
fn complements(l: &str, target: i64, expected: &str) {
    let l = layout(l);
    let c = l.complement(&target).unwrap();
    assert_eq!(c.to_string(), expected);
    let mut all: Vec<i64> = values(&c).iter().flat_map(|c| values(&l).into_iter().map(move |v| v + c)).collect();
    all.sort_unstable();
    assert_eq!(all, (0..l.size() * c.size()).collect::<Vec<_>>(), "{l} with {c}");
    assert!(all.len() as i64 >= target);
    let offsets = values(&c);
    assert!(offsets.windows(2).all(|pair| pair[0] < pair[1]), "{c} increases");
}

#[test]
fn complement_of_an_injective_layout_without_one_is_refused() {
    // 0, 2, 3, 5: a complement must hold 1, to reach offset 1, and then has 3 = 0 + 3 = 1 + 2
    // twice. Elsewhere: pycute gives (2,0,4):(1,4,6), with an extent of 0; others (2,4):(1,6); C++
    // calls the layout not injective.
    let l = layout("(2,2):(2,3)");
    assert!(l.is_injective().unwrap());
    let offsets = values(&l);
    assert!(!offsets.contains(&1) && offsets.iter().any(|v| offsets.contains(&(v + 1))));
    assert_eq!(l.complement(&19).unwrap_err().code(), "E0111");
    assert_eq!(l.complement_open().unwrap_err().code(), "E0111");
    assert_eq!(l.weak_complement(&19).unwrap_err().code(), "E0112");
}

#[test]
fn complement_of_several_modes_with_run_time_strides_exists() {
    // Elsewhere: dynamic C++ takes a single mode only.
    complements("(2,2):(4,1)", 24, "(2,3):(2,8)");
    complements("(2,3,2):(2,8,48)", 100, "(2,2,2,2):(1,4,24,96)");
}

#[test]
fn complement_of_a_negative_stride_is_refused() {
    // Elsewhere: C++ gives (-1,-2):(1,-4), with negative extents.
    assert_eq!(layout("4:-1").complement(&16).unwrap_err().code(), "E0113");
    // The weak one asks for disjoint copies alone, and those of a reversed mode are the same.
    let weak = layout("4:-1").weak_complement(&16).unwrap();
    assert_eq!(weak.to_string(), "4:4");
}

#[test]
fn complement_of_a_padded_layout_is_refused_and_the_weak_one_leaves_the_holes() {
    // Offsets 4 and 5 of each six can be reached by no copy that misses the others.
    // Elsewhere: complement((4,6):(1,6)) is 1:0 in C++, silently short.
    let padded = layout("(4,6):(1,6)");
    assert_eq!(padded.complement(&72).unwrap_err().code(), "E0111");
    assert_eq!(padded.weak_complement_open().unwrap().to_string(), "1:36");
    let weak = padded.weak_complement(&72).unwrap();
    assert_eq!(weak.to_string(), "2:36");
    let mut all: Vec<i64> =
        values(&weak).iter().flat_map(|c| values(&padded).into_iter().map(move |v| v + c)).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len() as i64, padded.size() * weak.size());
}

#[test]
fn complement_whose_target_is_not_a_multiple_covers_it_whole() {
    // Elsewhere: over-covering and under-filling depend on the implementation; here it is rounded
    // up to whole copies.
    complements("4:2", 19, "(2,3):(1,8)");
    complements("4:32", 256, "(32,2):(1,128)");
}

#[test]
fn complement_is_in_increasing_order() {
    // Elsewhere: the comment in C++ states the reverse.
    complements("(2,2):(16,4)", 64, "(4,2,2):(1,8,32)");
}

// ---- inverses

/// `L(R(L(k))) = L(k)` at every index.
#[track_caller]
fn is_left_inverse(l: &Layout, r: &Layout) {
    for k in 0..l.size() {
        let offset = l.eval(&k).unwrap();
        let back = value(&plain(r), offset);
        assert_eq!(value(&plain(l), back), offset, "{l}: {r} at {k}");
        if l.is_injective().unwrap() && !plain(l).iter().any(|(_, d)| *d < 0) {
            assert_eq!(back, k, "{l}: {r} at {k}");
        }
    }
}

/// `L(R(i)) = i` at every index. That none is longer is checked for all small layouts elsewhere
/// (`inverse.rs`).
#[track_caller]
fn is_right_inverse(l: &str, expected: &str) {
    let l = layout(l);
    let r = l.right_inverse().unwrap();
    assert_eq!(r.to_string(), expected);
    for i in 0..r.size() {
        let index = r.eval(&i).unwrap();
        assert!((0..l.size()).contains(&index));
        assert_eq!(l.eval(&index).unwrap(), i, "{l}: {r} at {i}");
    }
}

#[test]
fn left_inverse_of_a_layout_with_gaps_satisfies_its_law() {
    // Not unique: pycute gives (2,4):(4,1) and (4,4,2):(1,8,4), C++ the ones here.
    for (l, expected) in [("4:2", "(2,4):(0,1)"), ("(4,2):(1,16)", "(16,2):(1,4)"), ("(4,8):(1,5)", "(5,8):(1,4)")] {
        let r = layout(l).left_inverse().unwrap();
        assert_eq!(r.to_string(), expected);
        is_left_inverse(&layout(l), &r);
    }
}

#[test]
fn left_inverse_of_an_injective_layout_whose_strides_do_not_divide_exists() {
    // Elsewhere: refused as "non-injective", which it is not.
    let l = layout("(2,2):(2,3)");
    let r = l.left_inverse().unwrap();
    assert_eq!(r.to_string(), "(2,3):(1,1)");
    is_left_inverse(&l, &r);
}

#[test]
fn left_inverse_of_a_long_injective_layout_whose_strides_do_not_divide_is_right_or_not_given() {
    // Elsewhere: refused as "non-injective", which it is not.
    let l = layout("(8,4,2):(13,2,1)");
    assert!(l.is_injective().unwrap());
    match l.left_inverse() {
        Ok(r) => is_left_inverse(&l, &r),
        Err(error) => assert!(["E0110", "E0114"].contains(&error.code()), "{error}"),
    }
}

#[test]
fn left_inverse_of_overlapping_modes_satisfies_its_law() {
    // Elsewhere: C++ gives 4:4 for (4,4):(1,1) without a look at the overlap.
    let l = layout("(4,4):(1,1)");
    let r = l.left_inverse().unwrap();
    is_left_inverse(&l, &r);
    for k in 0..l.size() {
        let back = r.eval(&l.eval(&k).unwrap()).unwrap();
        assert!((0..l.size()).contains(&back), "{r}: {back} is no index of {l}");
    }
}

#[test]
fn left_inverse_of_negative_strides_satisfies_its_law() {
    // Elsewhere: C++ gives (-1,4):(0,1) for 4:-1 and (-1,-2,4):(0,1,2) for (2,4):(-1,2), with
    // negative extents.
    for l in ["4:-1", "(2,4):(-1,2)", "(2,4):(-1,-2)", "(3,2):(-2,6)"] {
        let l = layout(l);
        is_left_inverse(&l, &l.left_inverse().unwrap());
    }
    assert_eq!(layout("4:-1").left_inverse().unwrap().to_string(), "4:-1");
}

#[test]
fn right_inverse_sees_negative_strides() {
    // Elsewhere: C++ ignores modes of negative stride and gives 1:0 for both; for the first that is
    // right.
    is_right_inverse("4:-1", "1:0");
    assert!(!values(&layout("4:-1")).contains(&1));
    // 0, 2, 4, 6 and, one back, -1, 1, 3, 5. Seven offsets from 0 on would need one mode of 7 steps
    // of 3, which leaves.
    is_right_inverse("(2,4):(-1,2)", "(2,3):(3,2)");
}

#[test]
fn right_inverse_sees_run_time_strides() {
    // Elsewhere: dynamic C++ gives 1:0.
    is_right_inverse("(2,4):(4,1)", "(4,2):(2,1)");
}

#[test]
fn right_inverse_goes_through_overlapping_modes() {
    // 0..5 are in the image. Elsewhere: the chain of strides breaks at 2 < 4, and the inverse ends
    // at 4:1.
    is_right_inverse("(4,2):(1,2)", "(3,2):(1,5)");
    is_right_inverse("(4,8):(1,5)", "4:1");
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

// ---- recasting

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
