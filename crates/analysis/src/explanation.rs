//! Pages about error codes.

/// The page about an error code of this crate: the condition, an example, and what to do. None for a code that is not one of
/// [`crate::AnalysisError`]'s own.
///
/// ```
/// assert!(tilewright_analysis::explanation("E0602").is_some_and(|page| page.contains("side by side")));
/// assert!(tilewright_analysis::explanation("E0101").is_none());
/// ```
pub fn explanation(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(known, _)| *known == code).map(|(_, page)| *page)
}

const PAGES: &[(&str, &str)] = &[
    ("E0601", include_str!("explanations/E0601.md")),
    ("E0602", include_str!("explanations/E0602.md")),
    ("E0603", include_str!("explanations/E0603.md")),
    ("E0604", include_str!("explanations/E0604.md")),
    ("E0605", include_str!("explanations/E0605.md")),
    ("E0606", include_str!("explanations/E0606.md")),
    ("E0607", include_str!("explanations/E0607.md")),
    ("E0608", include_str!("explanations/E0608.md")),
    ("E0609", include_str!("explanations/E0609.md")),
];

#[cfg(test)]
mod tests {
    use super::explanation;

    #[test]
    fn every_code_in_use_has_a_page() {
        let source = include_str!("error.rs");
        let codes = source.match_indices("\"E0").filter_map(|(at, _)| source.get(at + 1..at + 6));
        let pages = codes.map(|code| {
            let page = explanation(code).unwrap_or_default();
            assert!(page.starts_with(&format!("# {code}: ")), "{code}");
            assert!(page.lines().all(|line| line.len() <= 140), "{code}");
        });
        assert_eq!(pages.count(), super::PAGES.len());
    }
}
