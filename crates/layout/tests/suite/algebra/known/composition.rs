//! Composition.

use tilewright_layout::LayoutError;

use super::{layout, plain};
use crate::oracle::{composite_exists, value};

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
    // If the composite exists, it is the mirror image of the one with the positive stride.
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
