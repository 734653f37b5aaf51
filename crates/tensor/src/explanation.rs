//! Pages about error codes.

/// The page about an error code of this crate: the condition, an example, and what to do. None for a code that is not one of
/// [`crate::TensorError`]'s own.
///
/// ```
/// assert!(tilewright_tensor::explanation("E0402").is_some_and(|page| page.contains("mutable")));
/// assert!(tilewright_tensor::explanation("E0101").is_none());
/// ```
pub fn explanation(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(known, _)| *known == code).map(|(_, page)| *page)
}

/// One line for each page, whose Rust code is a test besides.
macro_rules! pages {
    ($($page:ident $code:literal;)*) => {
        const PAGES: &[(&str, &str)] =
            &[$(($code, include_str!(concat!("explanations/", $code, ".md")))),*];
        $(
            #[cfg(doctest)]
            #[doc = include_str!(concat!("explanations/", $code, ".md"))]
            pub struct $page;
        )*
    };
}

pages! {
    E0401 "E0401";
    E0402 "E0402";
    E0403 "E0403";
    E0404 "E0404";
    E0405 "E0405";
    E0406 "E0406";
    E0407 "E0407";
    E0408 "E0408";
    E0409 "E0409";
    E0410 "E0410";
    E0411 "E0411";
    E0412 "E0412";
    E0420 "E0420";
    E0421 "E0421";
    E0422 "E0422";
    E0440 "E0440";
    E0441 "E0441";
    E0442 "E0442";
    E0443 "E0443";
    E0444 "E0444";
}

#[cfg(test)]
mod tests {
    use super::explanation;

    #[test]
    fn every_code_in_use_has_a_page() {
        let sources = concat!(include_str!("error.rs"), include_str!("npy.rs"));
        let codes: Vec<&str> =
            sources.match_indices("\"E0").filter_map(|(at, _)| sources.get(at + 1..at + 6)).collect();
        assert!(codes.len() >= 12);
        for code in codes {
            let page = explanation(code).unwrap_or_default();
            assert!(page.starts_with(&format!("# {code}: ")), "{code}");
            assert!(page.contains(&format!("\"{code}\"")), "{code} is not shown");
        }
    }
}
