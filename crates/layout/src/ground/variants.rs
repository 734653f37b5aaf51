//! Enums that are made of what their variants hold.

/// The conversion into an enum from what each of these variants holds, boxed or not.
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
