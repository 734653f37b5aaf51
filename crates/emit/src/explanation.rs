//! Pages about error codes.

/// The page about an error code of this crate: the condition, an example, and what to do. None for a code that is not one of
/// [`crate::EmitError`]'s own.
///
/// ```
/// assert!(tilewright_emit::explanation("E0304").is_some_and(|page| page.contains("32 bits")));
/// assert!(tilewright_emit::explanation("E0101").is_none());
/// ```
pub fn explanation(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(known, _)| *known == code).map(|(_, page)| *page)
}

const PAGES: &[(&str, &str)] = &[
    ("E0301", include_str!("explanations/E0301.md")),
    ("E0302", include_str!("explanations/E0302.md")),
    ("E0303", include_str!("explanations/E0303.md")),
    ("E0304", include_str!("explanations/E0304.md")),
    ("E0305", include_str!("explanations/E0305.md")),
    ("E0306", include_str!("explanations/E0306.md")),
    ("E0307", include_str!("explanations/E0307.md")),
];

#[cfg(test)]
mod tests {
    use super::explanation;

    #[test]
    fn every_code_in_use_has_a_page() {
        let source = include_str!("error.rs");
        let codes: Vec<&str> = source.match_indices("\"E0").filter_map(|(at, _)| source.get(at + 1..at + 6)).collect();
        assert!(codes.len() >= 7);
        for code in codes {
            assert!(explanation(code).is_some_and(|page| page.starts_with(&format!("# {code}: "))), "{code}");
        }
    }
}
