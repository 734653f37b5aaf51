//! Enums of words, and types whose text stands for them.

/// An enum each of whose variants is a word of a text: the list of them, the word of each, and its
/// text.
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
            /// All of them, in this order.
            pub const ALL: [$Words; [$($word),+].len()] = [$($Words::$variant),+];

            /// The word that stands for it.
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

/// The text of a type for programmers: its name around what it is printed as, `Swizzle(S<3,4,3>)`.
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
