//! Complements.

use super::{layout, values};

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
