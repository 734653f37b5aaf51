//! Serialisation with `serde` (feature `serde`): a value is serialised as its text.
//!
//! Law: values are written as `Display` prints them, and parsed by `FromStr`. So the text is
//! readable and the same in every format, and deserialisation accepts only what the parser accepts:
//! extents are positive, sizes fit in 64 bits, trees are within [`crate::limits::MAX_NODES`] and
//! [`crate::limits::MAX_DEPTH`].
//!
//! Serialised as a string: `Layout`, `Tree<i64>`, [`crate::Coord`], [`crate::Profile`],
//! [`crate::Tiler`], [`crate::Swizzle`] and [`crate::Composed`].
//!
//! ```
//! use tilewright_layout::{Layout, Tiler};
//!
//! let layout: Layout = "((2,2),3):((24,2),8)".parse().unwrap();
//! assert_eq!(serde_json::to_string(&layout).unwrap(), r#""((2,2),3):((24,2),8)""#);
//! assert_eq!(serde_json::from_str::<Layout>(r#""(4,8):(8,1)""#).unwrap().to_string(), "(4,8):(8,1)");
//! assert_eq!(serde_json::from_str::<Tiler>(r#""[_;4:2]""#).unwrap().to_string(), "[_;4:2]");
//!
//! let error = serde_json::from_str::<Layout>(r#""(4,0):(1,4)""#).unwrap_err();
//! assert!(error.to_string().starts_with("the extent of mode 1 is 0"));
//! ```

use core::fmt::{self, Display};
use core::marker::PhantomData;
use core::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::refusal::error::LayoutError;
use crate::{Composed, Coord, Layout, Profile, Swizzle, Tiler, Tree};

/// A visitor that parses a string as a value.
struct Text<T> {
    what: &'static str,
    value: PhantomData<T>,
}

impl<T: FromStr<Err = LayoutError>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the text of {}", self.what)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

fn read<'de, T, D>(deserializer: D, what: &'static str) -> Result<T, D::Error>
where
    T: FromStr<Err = LayoutError>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_str(Text { what, value: PhantomData })
}

fn write<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

macro_rules! as_text {
    ($($kind:ty, $what:literal;)*) => {
        $(
            /// With the feature `serde`: serialised as its text.
            impl Serialize for $kind {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    write(self, serializer)
                }
            }

            /// With the feature `serde`: deserialised from its text.
            impl<'de> Deserialize<'de> for $kind {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$kind, D::Error> {
                    read(deserializer, $what)
                }
            }
        )*
    };
}

as_text! {
    Layout, "a layout, such as (4,8):(8,1)";
    Tree<i64>, "a nested tuple of integers, such as (4,(2,3))";
    Coord, "a coordinate, such as (1,_)";
    Profile, "a profile, such as ((*,*),*)";
    Tiler, "a tiler, such as [4:2;_]";
    Swizzle, "a swizzle, such as S<3,4,3>";
    Composed, "a composed layout, such as S<3,4,3> o 0 o (8,64):(64,1)";
}
