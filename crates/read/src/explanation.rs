//! The explanation pages of error codes.

tilewright_layout::error_pages! {
    /// The page about an error code of this crate: the condition, an example, and what to do. None
    /// for a code that is not one of [`crate::Refused`]'s own.
    ///
    /// ```
    /// assert!(tilewright_read::explanation("E1305").is_some_and(|page| page.contains("width")));
    /// assert!(tilewright_read::explanation("E0101").is_none());
    /// ```
    pub fn explanation in "refused.rs":
        "E1301" "E1302" "E1303" "E1304" "E1305"
}
