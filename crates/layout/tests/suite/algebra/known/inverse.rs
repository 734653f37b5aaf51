//! Inverses.

use tilewright_layout::Layout;

use super::{layout, plain, values};
use crate::oracle::value;

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
