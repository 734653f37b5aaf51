//! Pages about error codes.

/// The page about an error code of this crate: the condition, an example, and what to do. None for a code that is not one of
/// [`crate::DrawError`]'s own.
///
/// ```
/// assert!(tilewright_draw::explanation("E0501").is_some_and(|page| page.contains("tile")));
/// assert!(tilewright_draw::explanation("E0101").is_none());
/// ```
pub fn explanation(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(known, _)| *known == code).map(|(_, page)| *page)
}

const PAGES: &[(&str, &str)] = &[
    ("E0501", include_str!("explanations/E0501.md")),
    ("E0502", include_str!("explanations/E0502.md")),
    ("E0503", include_str!("explanations/E0503.md")),
    ("E0504", include_str!("explanations/E0504.md")),
    ("E0505", include_str!("explanations/E0505.md")),
    ("E0506", include_str!("explanations/E0506.md")),
];

#[cfg(test)]
mod tests {
    use super::explanation;

    #[test]
    fn every_code_in_use_has_a_page() {
        let source = include_str!("error.rs");
        let codes: Vec<&str> = source.match_indices("\"E0").filter_map(|(at, _)| source.get(at + 1..at + 6)).collect();
        assert!(codes.len() >= 6);
        for code in codes {
            assert!(explanation(code).is_some_and(|page| page.starts_with(&format!("# {code}: "))), "{code}");
        }
    }
}
