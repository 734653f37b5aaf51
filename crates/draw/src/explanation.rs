//! The explanation pages of error codes.

tilewright_layout::error_pages! {
    /// The page about an error code of this crate: the condition, an example, and what to do. None
    /// for a code that is not one of [`crate::DrawError`]'s own.
    ///
    /// ```
    /// assert!(tilewright_draw::explanation("E0501").is_some_and(|page| page.contains("tile")));
    /// assert!(tilewright_draw::explanation("E0101").is_none());
    /// ```
    pub fn explanation in "error.rs":
        "E0501" "E0502" "E0503" "E0504" "E0505" "E0506" "E0507" "E0508" "E0509"
}
