//! Pages about error codes, for the crates that are built on this one.
//!
//! Law: every code in the named files of a crate has a page `explanations/CODE.md` next to them,
//! every page is about such a code, and its Rust code runs.

/// Defines `explanation`, which returns the page about an error code. Its arguments are the files
/// that contain the codes, and the list of the codes.
#[doc(hidden)]
#[macro_export]
macro_rules! error_pages {
    ($(#[$about:meta])* pub fn explanation in $($file:literal)+: $($code:literal)+) => {
        $(#[$about])*
        pub fn explanation(code: &str) -> Option<&'static str> {
            PAGES.iter().find(|(known, _)| *known == code).map(|(_, page)| *page)
        }

        const PAGES: &[(&str, &str)] = &[$(($code, include_str!(concat!("explanations/", $code, ".md")))),+];

        #[cfg(doctest)]
        $(#[doc = include_str!(concat!("explanations/", $code, ".md"))])+
        pub struct Examples;

        #[cfg(test)]
        mod tests {
            extern crate alloc;

            use alloc::collections::BTreeSet;
            use alloc::format;

            #[test]
            fn codes_in_use_and_pages_are_the_same() {
                let source = concat!($(include_str!($file)),+);
                let known = BTreeSet::from([$($code),+]);
                // The codes of a crate have a common prefix; a page may also mention codes of
                // another crate.
                let own = &super::PAGES[0].0[..3];
                let used = source.match_indices("\"E").filter_map(|(at, _)| source.get(at + 1..at + 6));
                let used: BTreeSet<_> = used.filter(|code| code.starts_with(own)).collect();
                assert_eq!(used, known);
                for (code, page) in super::PAGES {
                    assert!(page.starts_with(&format!("# {code}: ")), "{code}");
                    assert!(page.contains("```"), "{code} shows nothing");
                }
            }
        }
    };
}
