//! Pages about error codes.

/// The page about an error code of this crate: the condition, an example, and what to do. None for a code that is not one of
/// [`crate::MorphismError`]'s own.
///
/// ```
/// assert!(tilewright_morphism::explanation("E0707").is_some_and(|page| page.contains("tractable")));
/// assert!(tilewright_morphism::explanation("E0101").is_none());
/// ```
pub fn explanation(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(known, _)| *known == code).map(|(_, page)| *page)
}

const PAGES: &[(&str, &str)] = &[
    ("E0701", include_str!("explanations/E0701.md")),
    ("E0702", include_str!("explanations/E0702.md")),
    ("E0703", include_str!("explanations/E0703.md")),
    ("E0704", include_str!("explanations/E0704.md")),
    ("E0705", include_str!("explanations/E0705.md")),
    ("E0706", include_str!("explanations/E0706.md")),
    ("E0707", include_str!("explanations/E0707.md")),
    ("E0708", include_str!("explanations/E0708.md")),
    ("E0709", include_str!("explanations/E0709.md")),
    ("E0710", include_str!("explanations/E0710.md")),
    ("E0711", include_str!("explanations/E0711.md")),
    ("E0712", include_str!("explanations/E0712.md")),
    ("E0713", include_str!("explanations/E0713.md")),
    ("E0714", include_str!("explanations/E0714.md")),
    ("E0715", include_str!("explanations/E0715.md")),
    ("E0716", include_str!("explanations/E0716.md")),
    ("E0717", include_str!("explanations/E0717.md")),
];

#[cfg(test)]
mod tests {
    use super::{PAGES, explanation};

    #[test]
    fn every_code_in_use_has_a_page() {
        let source = include_str!("error.rs");
        let codes: Vec<&str> = source.match_indices("\"E0").filter_map(|(at, _)| source.get(at + 1..at + 6)).collect();
        assert_eq!(codes.len(), PAGES.len());
        for code in codes {
            assert!(explanation(code).is_some_and(|page| page.starts_with(&format!("# {code}: "))), "{code}");
        }
    }
}
