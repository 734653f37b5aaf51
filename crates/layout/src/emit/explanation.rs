//! Pages about error codes.

crate::error_pages! {
    /// The page about an error code of this crate: the condition, an example, and what to do. None
    /// for a code that is not one of [`crate::emit::EmitError`]'s own.
    ///
    /// ```
    /// assert!(tilewright_layout::emit::explanation("E0304").is_some_and(|page| page.contains("32 bits")));
    /// assert!(tilewright_layout::emit::explanation("E0101").is_none());
    /// ```
    pub fn explanation in "error.rs":
        "E0301" "E0302" "E0303" "E0304" "E0305" "E0306" "E0307"
}
