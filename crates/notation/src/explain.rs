//! Pages about error codes.

/// The page about an error code: the condition, an example that fails, why, and what to do. None for a code that does
/// not exist.
///
/// ```
/// assert!(tilewright_notation::explanation("E0205").is_none_or(|page| page.contains("bound")));
/// assert!(tilewright_notation::explanation("E9999").is_none());
/// ```
pub fn explanation(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(known, _)| *known == code).map(|(_, page)| *page)
}

/// Every error code that has a page, in order.
pub fn codes() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|(code, _)| *code)
}

const PAGES: &[(&str, &str)] = &[];
