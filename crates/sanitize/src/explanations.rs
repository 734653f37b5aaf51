//! Pages about the error codes that only this crate has.

/// The page about a code: the condition, an example, and what to do. None for other codes. Codes
/// that the interpreter of kernels shares are explained there.
///
/// ```
/// use tilewright_sanitize::explanation;
///
/// assert!(explanation("E1044").is_some_and(|page| page.contains("ld.global.nc")));
/// assert!(explanation("E0903").is_none());
/// ```
pub fn explanation(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(known, _)| *known == code).map(|(_, page)| *page)
}

const PAGES: [(&str, &str); 3] = [
    ("E1044", include_str!("explanations/E1044.md")),
    ("E1045", include_str!("explanations/E1045.md")),
    ("E1046", include_str!("explanations/E1046.md")),
];

#[cfg(test)]
mod tests {
    #[test]
    fn each_page_begins_with_its_code_and_shows_something() {
        for (code, page) in super::PAGES {
            assert!(page.starts_with(&format!("# {code}: ")), "{code}");
            assert!(page.contains("```"), "{code} shows nothing");
        }
    }
}
