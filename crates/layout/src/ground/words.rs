//! Macros for enums whose variants are words of a text, and for types whose debug output is their
//! text.

/// Defines an enum in which each variant has a word: the list of all variants, the word of each,
/// and its text.
macro_rules! words {
    (
        $(#[$about:meta])*
        pub enum $Words:ident {
            $($(#[$doc:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$about])*
        pub enum $Words {
            $($(#[$doc])* $variant,)+
        }

        impl $Words {
            /// All variants, in the order of their definition.
            pub const ALL: [$Words; [$($word),+].len()] = [$($Words::$variant),+];

            /// The word of the variant.
            pub const fn name(self) -> &'static str {
                match self {
                    $($Words::$variant => $word,)+
                }
            }
        }

        impl core::fmt::Display for $Words {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
pub(crate) use words;

/// Implements `Debug` as the name of the type around its text: `Swizzle(S<3,4,3>)`.
macro_rules! debug_as_text {
    ($Type:ident $(<$parameter:ident: $bound:path>)?) => {
        impl $(<$parameter: $bound>)? core::fmt::Debug for $Type $(<$parameter>)? {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, concat!(stringify!($Type), "({})"), self)
            }
        }
    };
}
pub(crate) use debug_as_text;
