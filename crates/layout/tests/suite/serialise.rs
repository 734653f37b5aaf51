//! Serialised values are their text, and reading one is parsing it.
#![cfg(feature = "serde")]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tilewright_layout::{Composed, Coord, Layout, LayoutError, MAX_DEPTH, MAX_NODES, Profile, Swizzle, Tiler, Tree};

/// The text is the JSON string, and comes back as the same value: from a string, from bytes, and
/// within a structure.
#[track_caller]
fn round_trip<T>(text: &str)
where
    T: Serialize + DeserializeOwned + FromStr<Err = LayoutError> + Display + Debug + PartialEq,
{
    let value: T = text.parse().unwrap();
    let json = serde_json::to_string(&value).unwrap();
    assert_eq!(json, format!("\"{value}\""));
    assert_eq!(serde_json::from_str::<T>(&json).unwrap(), value);
    assert_eq!(serde_json::from_slice::<T>(json.as_bytes()).unwrap(), value);
    assert_eq!(serde_json::from_value::<Vec<T>>(serde_json::to_value([&value]).unwrap()).unwrap(), [value]);
}

#[track_caller]
fn refused<T: DeserializeOwned + Debug>(json: &str, says: &str) {
    let error = serde_json::from_str::<T>(json).unwrap_err().to_string();
    assert!(error.contains(says), "{error}");
}

#[test]
fn every_kind_of_value_comes_back() {
    for text in
        ["():()", "4:1", "1:0", "(4,8):(8,1)", "((2,2),3):((24,2),8)", "(3,(),1):(-2,(),7)", "2:-9223372036854775808"]
    {
        round_trip::<Layout>(text);
    }
    for text in ["()", "4", "(4,(2,3))", "(-1,(0,()))", "9223372036854775807"] {
        round_trip::<Tree<i64>>(text);
    }
    for text in ["_", "3", "(1,_)", "((_,2),-1)", "()"] {
        round_trip::<Coord>(text);
    }
    for text in ["*", "()", "(*)", "((*,*),*)", "(*,(),((*)))"] {
        round_trip::<Profile>(text);
    }
    for text in ["_", "4:2", "[_;4:2]", "[4:2;[2:1;_]]", "[]", "[(2,2):(1,8)]"] {
        round_trip::<Tiler>(text);
    }
    for text in ["S<3,4,3>", "S<0,0,0>", "S<2,1,-3>"] {
        round_trip::<Swizzle>(text);
    }
    for text in ["S<3,3,3> o 0 o (8,64):(64,1)", "(6,2):(1,7) o -3 o (4,2):(1,4)"] {
        round_trip::<Composed>(text);
    }
}

#[test]
fn other_spellings_are_read() {
    assert_eq!(serde_json::from_str::<Layout>(r#"" ( 4, _8 ) ""#).unwrap().to_string(), "(4,8):(1,4)");
    assert_eq!(serde_json::from_str::<Tiler>(r#""<2,3>""#).unwrap().to_string(), "[2:1;3:1]");
    // An escape means that the string cannot be borrowed from the input.
    assert_eq!(serde_json::from_str::<Layout>(r#""\u0034:1""#).unwrap().to_string(), "4:1");
}

#[test]
fn invariants_cannot_be_bypassed() {
    refused::<Layout>(r#""(4,8):1""#, "the shape nests as (*,*) but the strides as *");
    refused::<Layout>(r#""(4,0):(1,4)""#, "not positive");
    refused::<Layout>(r#""-4:1""#, "not positive");
    refused::<Layout>(r#""(4294967296,4294967296):(1,1)""#, "does not fit in 64 bits");
    refused::<Swizzle>(r#""S<3,4,1>""#, "the shift");
    refused::<Composed>(r#""S<1,0,1> o 9223372036854775807 o 2:1""#, "does not fit in 64 bits");
    let (open, close) = ("(".repeat(MAX_DEPTH + 1), ")".repeat(MAX_DEPTH + 1));
    refused::<Tree<i64>>(&format!("\"{open}1{close}\""), "deeper than the limit");
    refused::<Profile>(&format!("\"{open}*{close}\""), "deeper than the limit");
    refused::<Profile>(&format!("\"({})\"", vec!["*"; MAX_NODES].join(",")), "larger than the limit");
    refused::<Tree<i64>>(&format!("\"({})\"", vec!["1"; MAX_NODES].join(",")), "larger than the limit");
}

#[test]
fn what_is_no_text_of_a_value_is_refused() {
    refused::<Layout>(r#""(4,8""#, "expected ',' or ')' at byte 4");
    refused::<Layout>("4", "expected the text of a layout");
    refused::<Layout>("[4,1]", "expected the text of a layout");
    refused::<Profile>(r#""(*,4)""#, "expected '*' or '(' at byte 3");
    refused::<Profile>(r#""(*,*)*""#, "expected the end of the text at byte 5");
    refused::<Coord>(r#""(1,?)""#, "at byte 3");
    refused::<Tiler>(r#""[4:2""#, "at byte 4");
    refused::<Swizzle>(r#""S<3,4>""#, "at byte");
}
