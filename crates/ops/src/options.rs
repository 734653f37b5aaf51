//! Options by name, for callers in other languages.
//!
//! Law: [`Options::read`] returns the struct whose fields have the values given for their names,
//! and the default values otherwise. It refuses a name that is no field, and a value of another
//! type.

use std::fmt;

use tilewright_tile::Element;

use crate::error::OperatorError;

/// The value of an option.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    /// A boolean.
    Switch(bool),
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Number(f64),
    /// A text, such as the name of a type.
    Text(String),
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Switch(value) => write!(f, "{value}"),
            OptionValue::Integer(value) => write!(f, "{value}"),
            OptionValue::Number(value) => write!(f, "{value}"),
            OptionValue::Text(value) => write!(f, "'{value}'"),
        }
    }
}

/// The options of an operator, by name.
///
/// ```
/// use tilewright_ops::{OptionValue, Options, Softmax};
///
/// let options = Options::from([("length", OptionValue::Integer(4096))]);
/// assert_eq!(options.read::<Softmax>()?, Softmax { length: 4096, ..Softmax::default() });
/// let error = Options::from([("long", OptionValue::Integer(4096))]).read::<Softmax>().unwrap_err();
/// assert!(error.to_string().starts_with("softmax has no option `long`: it has length, element"));
/// # Ok::<(), tilewright_ops::OperatorError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    values: Vec<(String, OptionValue)>,
}

impl<const N: usize> From<[(&str, OptionValue); N]> for Options {
    fn from(values: [(&str, OptionValue); N]) -> Options {
        Options { values: values.map(|(name, value)| (name.to_string(), value)).to_vec() }
    }
}

impl FromIterator<(String, OptionValue)> for Options {
    fn from_iter<I: IntoIterator<Item = (String, OptionValue)>>(values: I) -> Options {
        Options { values: values.into_iter().collect() }
    }
}

impl Options {
    /// The struct of an operator with these options.
    ///
    /// Errors: an unknown name; a value of another type.
    pub fn read<T: FromOptions>(&self) -> Result<T, OperatorError> {
        for (name, _) in &self.values {
            if !T::NAMES.contains(&name.as_str()) {
                let known = T::NAMES.to_vec();
                return Err(OperatorError::UnknownOption { operator: T::OPERATOR, name: name.clone(), known });
            }
        }
        T::from_options(self)
    }

    /// The value given for a name, or the default.
    pub(crate) fn take<V: OptionType>(
        &self,
        operator: &'static str,
        name: &'static str,
        default: V,
    ) -> Result<V, OperatorError> {
        match self.values.iter().find(|(own, _)| own == name) {
            None => Ok(default),
            Some((_, value)) => V::from_value(value).ok_or_else(|| OperatorError::Type {
                operator,
                name,
                value: value.to_string(),
                wanted: V::WANTED,
            }),
        }
    }
}

/// A struct of options. The macro `options!` implements this trait.
pub trait FromOptions: Sized {
    /// The name of the operator.
    const OPERATOR: &'static str;
    /// The names of the options.
    const NAMES: &'static [&'static str];

    /// The struct of these options.
    ///
    /// Errors: a value of another type.
    fn from_options(options: &Options) -> Result<Self, OperatorError>;
}

/// A type that an option may have.
pub trait OptionType: Sized {
    /// The name of the type, for error messages.
    const WANTED: &'static str;

    /// The value, if it is of this type.
    fn from_value(value: &OptionValue) -> Option<Self>;
}

impl OptionType for bool {
    const WANTED: &'static str = "true or false";

    fn from_value(value: &OptionValue) -> Option<bool> {
        match value {
            OptionValue::Switch(value) => Some(*value),
            _ => None,
        }
    }
}

impl OptionType for i64 {
    const WANTED: &'static str = "an integer";

    fn from_value(value: &OptionValue) -> Option<i64> {
        match value {
            OptionValue::Integer(value) => Some(*value),
            _ => None,
        }
    }
}

impl OptionType for f64 {
    const WANTED: &'static str = "a number";

    fn from_value(value: &OptionValue) -> Option<f64> {
        match value {
            OptionValue::Number(value) => Some(*value),
            OptionValue::Integer(value) => Some(*value as f64),
            _ => None,
        }
    }
}

impl OptionType for String {
    const WANTED: &'static str = "a text";

    fn from_value(value: &OptionValue) -> Option<String> {
        match value {
            OptionValue::Text(value) => Some(value.clone()),
            _ => None,
        }
    }
}

impl OptionType for Element {
    const WANTED: &'static str = "the name of a type of elements, such as 'bf16'";

    fn from_value(value: &OptionValue) -> Option<Element> {
        match value {
            OptionValue::Text(name) => Element::named(name),
            _ => None,
        }
    }
}

/// Declares the options of an operator: a struct with a default for each field, and how it is read
/// from names and values.
macro_rules! options {
    (
        $(#[$about:meta])*
        pub struct $name:ident($operator:literal) of rows { $($fields:tt)* }
    ) => {
        $crate::options::options! {
            $(#[$about])*
            pub struct $name($operator) {
                /// The elements of a row.
                length: i64 = 0,
                /// The type of the elements.
                element: tilewright_tile::Element = tilewright_tile::Element::F32,
                /// A power of two that divides the pitches of all tensors, in elements.
                alignment: i64 = 1,
                $($fields)*
                /// The rows of a tile of the backward: a power of two. 0 derives it from the length
                /// of a row.
                backward_rows: i64 = 0,
                /// The warps of a block of the backward: a power of two up to 16. 0 derives it from
                /// the length of a row.
                backward_warps: i64 = 0,
            }
        }
    };
    (
        $(#[$about:meta])*
        pub struct $name:ident($operator:literal) {
            $($(#[$of_field:meta])* $field:ident: $type:ty = $default:expr,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[$of_field])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* }
            }
        }

        impl $crate::options::FromOptions for $name {
            const OPERATOR: &'static str = $operator;
            const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

            fn from_options(options: &$crate::options::Options) -> Result<$name, $crate::OperatorError> {
                Ok($name { $($field: options.take($operator, stringify!($field), $default)?,)* })
            }
        }
    };
}

pub(crate) use options;
