//! Pages about error codes.

/// The page about an error code: the condition, an example that fails, why, and what to do. None for a code that does
/// not exist.
///
/// ```
/// assert!(tilewright_notation::explanation("E0205").is_some_and(|page| page.contains("not bound")));
/// assert!(tilewright_notation::explanation("E9999").is_none());
/// ```
pub fn explanation(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(known, _)| *known == code).map(|(_, page)| *page)
}

/// Every error code that has a page, in order.
pub fn codes() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|(code, _)| *code)
}

const PAGES: &[(&str, &str)] = &[
    ("E0101", include_str!("explanations/E0101.md")),
    ("E0102", include_str!("explanations/E0102.md")),
    ("E0103", include_str!("explanations/E0103.md")),
    ("E0104", include_str!("explanations/E0104.md")),
    ("E0105", include_str!("explanations/E0105.md")),
    ("E0106", include_str!("explanations/E0106.md")),
    ("E0107", include_str!("explanations/E0107.md")),
    ("E0108", include_str!("explanations/E0108.md")),
    ("E0109", include_str!("explanations/E0109.md")),
    ("E0110", include_str!("explanations/E0110.md")),
    ("E0111", include_str!("explanations/E0111.md")),
    ("E0112", include_str!("explanations/E0112.md")),
    ("E0113", include_str!("explanations/E0113.md")),
    ("E0114", include_str!("explanations/E0114.md")),
    ("E0115", include_str!("explanations/E0115.md")),
    ("E0116", include_str!("explanations/E0116.md")),
    ("E0117", include_str!("explanations/E0117.md")),
    ("E0118", include_str!("explanations/E0118.md")),
    ("E0119", include_str!("explanations/E0119.md")),
    ("E0120", include_str!("explanations/E0120.md")),
    ("E0121", include_str!("explanations/E0121.md")),
    ("E0122", include_str!("explanations/E0122.md")),
    ("E0123", include_str!("explanations/E0123.md")),
    ("E0124", include_str!("explanations/E0124.md")),
    ("E0125", include_str!("explanations/E0125.md")),
    ("E0126", include_str!("explanations/E0126.md")),
    ("E0127", include_str!("explanations/E0127.md")),
    ("E0128", include_str!("explanations/E0128.md")),
    ("E0201", include_str!("explanations/E0201.md")),
    ("E0202", include_str!("explanations/E0202.md")),
    ("E0203", include_str!("explanations/E0203.md")),
    ("E0204", include_str!("explanations/E0204.md")),
    ("E0205", include_str!("explanations/E0205.md")),
    ("E0206", include_str!("explanations/E0206.md")),
    ("E0207", include_str!("explanations/E0207.md")),
    ("E0208", include_str!("explanations/E0208.md")),
    ("E0209", include_str!("explanations/E0209.md")),
    ("E0210", include_str!("explanations/E0210.md")),
    ("E0211", include_str!("explanations/E0211.md")),
    ("E0212", include_str!("explanations/E0212.md")),
    ("E0213", include_str!("explanations/E0213.md")),
];
