//! Text that reads as a value prints as text that reads as the same value, and other text is
//! refused with a position in it.
#![no_main]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use libfuzzer_sys::fuzz_target;
use tilewright_layout::symbolic::{Expr, Facts, Symbolic};
use tilewright_layout::{
    BitMatrix, BitXor, Composed, Coord, Coordinate, Descriptor, Layout, LayoutError, LinearLayout, OuterMap, Profile,
    Swizzle, Tiler, Tree, Xor,
};

/// The value, and the one that the text of it reads as, which has the same text.
fn round_trip<T>(text: &str, print: impl Fn(&T) -> String) -> Option<(T, T)>
where
    T: FromStr<Err = LayoutError>,
{
    match text.parse::<T>() {
        Ok(value) => {
            let canonical = print(&value);
            let again: T = canonical.parse().unwrap_or_else(|error| panic!("{canonical:?} prints: {error}"));
            assert_eq!(print(&again), canonical);
            Some((value, again))
        }
        Err(error) => {
            if let LayoutError::Syntax { at, .. } = &error {
                assert!(*at <= text.len(), "{error}: {text:?}");
            }
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

fn equal<T>(text: &str)
where
    T: FromStr<Err = LayoutError> + Display + PartialEq + Debug,
{
    if let Some((value, again)) = round_trip(text, T::to_string) {
        assert_eq!(value, again);
    }
}

/// As `equal`, with the facts about names in the text; every `?` is a number of its own.
fn equal_names<T>(text: &str)
where
    T: FromStr<Err = LayoutError> + Symbolic + PartialEq + Debug,
{
    match round_trip(text, T::with_facts) {
        Some((value, again)) if !value.with_facts().contains('?') => assert_eq!(value, again),
        _ => {}
    }
}

fuzz_target!(|text: &str| {
    equal::<Layout>(text);
    equal::<Layout<Coordinate>>(text);
    equal::<Layout<Xor>>(text);
    equal_names::<Layout<Expr>>(text);
    equal::<Tree<i64>>(text);
    equal::<Tree<Coordinate>>(text);
    equal::<Tree<Xor>>(text);
    equal_names::<Tree<Expr>>(text);
    equal_names::<Coord<Expr>>(text);
    equal::<Profile>(text);
    equal::<Tiler>(text);
    equal::<Tiler<Coordinate>>(text);
    equal::<Tiler<Xor>>(text);
    equal_names::<Tiler<Expr>>(text);
    equal::<Swizzle>(text);
    equal::<Xor>(text);
    equal::<Coordinate>(text);
    equal::<Descriptor>(text);
    equal::<BitMatrix>(text);
    equal::<BitXor>(text);
    equal::<LinearLayout>(text);
    equal_names::<Expr>(text);
    let _ = text.parse::<Facts>();
    equal::<OuterMap>(text);
    equal::<Composed>(text);
    equal::<Composed<Coordinate>>(text);
    // Their text has no facts.
    if !text.contains('{') {
        round_trip(text, OuterMap::<Expr>::to_string);
        round_trip(text, Composed::<Expr>::to_string);
    }
});
