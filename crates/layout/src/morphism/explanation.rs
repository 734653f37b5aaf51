//! Pages about error codes.

crate::error_pages! {
    /// The page about an error code of this crate: the condition, an example, and what to do. None
    /// for a code that is not one of [`crate::morphism::MorphismError`]'s own.
    ///
    /// ```
    /// assert!(tilewright_layout::morphism::explanation("E0707").is_some_and(|page| page.contains("tractable")));
    /// assert!(tilewright_layout::morphism::explanation("E0101").is_none());
    /// ```
    pub fn explanation in "error.rs":
        "E0701" "E0702" "E0703" "E0704" "E0705" "E0706" "E0707" "E0708"
        "E0709" "E0710" "E0711" "E0712" "E0713" "E0714" "E0715" "E0716"
        "E0717" "E0718"
}
