//! Pages about error codes.

/// The page about an error code of this crate: the condition, an example, and what to do. None for a code that is not one of
/// [`crate::AtomError`]'s own.
///
/// ```
/// assert!(tilewright_atoms::explanation("E0315").is_some_and(|page| page.contains("bijection")));
/// assert!(tilewright_atoms::explanation("E0101").is_none());
/// ```
pub fn explanation(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(known, _)| *known == code).map(|(_, page)| *page)
}

const PAGES: &[(&str, &str)] = &[
    ("E0311", include_str!("explanations/E0311.md")),
    ("E0312", include_str!("explanations/E0312.md")),
    ("E0313", include_str!("explanations/E0313.md")),
    ("E0314", include_str!("explanations/E0314.md")),
    ("E0315", include_str!("explanations/E0315.md")),
    ("E0316", include_str!("explanations/E0316.md")),
    ("E0317", include_str!("explanations/E0317.md")),
    ("E0318", include_str!("explanations/E0318.md")),
    ("E0319", include_str!("explanations/E0319.md")),
    ("E0320", include_str!("explanations/E0320.md")),
    ("E0321", include_str!("explanations/E0321.md")),
    ("E0322", include_str!("explanations/E0322.md")),
    ("E0323", include_str!("explanations/E0323.md")),
    ("E0324", include_str!("explanations/E0324.md")),
    ("E0325", include_str!("explanations/E0325.md")),
    ("E0326", include_str!("explanations/E0326.md")),
    ("E0327", include_str!("explanations/E0327.md")),
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
            assert!(page.starts_with(&alloc::format!("# {code}: ")), "{code}");
            assert!(page.lines().all(|line| line.len() <= 140), "{code}");
        });
        assert_eq!(pages.count(), super::PAGES.len());
    }
}
