//! Pages about error codes.

crate::error_pages! {
    /// The page about an error code of this crate: the condition, an example, and what to do. None
    /// for a code that is not one of [`crate::LayoutError`]'s own.
    ///
    /// ```
    /// assert!(tilewright_layout::explanation("E0107").is_some_and(|page| page.contains("carries")));
    /// assert!(tilewright_layout::explanation("E0205").is_none());
    /// ```
    pub fn explanation in "refusal/questions.rs":
        "E0101" "E0102" "E0103" "E0104" "E0105" "E0106" "E0107" "E0108" "E0109" "E0110"
        "E0111" "E0112" "E0113" "E0114" "E0115" "E0116" "E0117" "E0118" "E0119" "E0120"
        "E0121" "E0122" "E0123" "E0124" "E0125" "E0126" "E0127" "E0128" "E0129" "E0130"
}
