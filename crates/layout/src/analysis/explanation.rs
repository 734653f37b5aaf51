//! Pages about error codes.

crate::error_pages! {
    /// The page about an error code of this crate: the condition, an example, and what to do. None
    /// for a code that is not one of [`crate::analysis::AnalysisError`]'s own.
    ///
    /// ```
    /// assert!(tilewright_layout::analysis::explanation("E0602").is_some_and(|page| page.contains("side by side")));
    /// assert!(tilewright_layout::analysis::explanation("E0101").is_none());
    /// ```
    pub fn explanation in "error.rs":
        "E0601" "E0602" "E0603" "E0604" "E0605" "E0606" "E0607" "E0608"
        "E0609"
}
