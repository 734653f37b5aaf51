//! Text that reads as a value prints as text that reads as the same value, and other text is refused with a position in it.
#![no_main]

use std::fmt::Display;
use std::str::FromStr;

use libfuzzer_sys::fuzz_target;
use tilewright_layout::{Composed, Layout, LayoutError, Swizzle, Tiler, Tree};

fn round_trip<T>(text: &str)
where
    T: FromStr<Err = LayoutError> + Display + PartialEq + std::fmt::Debug,
{
    match text.parse::<T>() {
        Ok(value) => {
            let canonical = value.to_string();
            let again: T = canonical.parse().expect("what prints parses");
            assert_eq!(again, value);
            assert_eq!(again.to_string(), canonical);
        }
        Err(error) => {
            if let LayoutError::Syntax { at, .. } = &error {
                assert!(*at <= text.len(), "{error}: {text:?}");
            }
            assert!(!error.to_string().is_empty());
        }
    }
}

fuzz_target!(|text: &str| {
    round_trip::<Layout>(text);
    round_trip::<Tree<i64>>(text);
    round_trip::<Tiler>(text);
    round_trip::<Swizzle>(text);
    round_trip::<Composed>(text);
});
