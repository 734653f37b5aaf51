//! A macro for enums whose variants wrap other types.

/// Implements the conversion into an enum from the content of each of these variants, boxed or not.
#[doc(hidden)]
#[macro_export]
macro_rules! from_variants {
    ($Enum:ident: $($Variant:ident($Held:ty)),+ $(,)?) => {
        $(
            impl From<$Held> for $Enum {
                #[inline]
                fn from(held: $Held) -> $Enum {
                    $Enum::$Variant(held.into())
                }
            }
        )+
    };
}
