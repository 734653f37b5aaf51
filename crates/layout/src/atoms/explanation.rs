//! Pages about error codes.

crate::error_pages! {
    /// The page about an error code of this crate: the condition, an example, and what to do. None
    /// for a code that is not one of [`crate::atoms::AtomError`]'s own.
    ///
    /// ```
    /// assert!(tilewright_layout::atoms::explanation("E0315").is_some_and(|page| page.contains("bijection")));
    /// assert!(tilewright_layout::atoms::explanation("E0101").is_none());
    /// ```
    pub fn explanation in "error.rs":
        "E0311" "E0312" "E0313" "E0314" "E0315" "E0316" "E0317" "E0318"
        "E0319" "E0320" "E0321" "E0322" "E0323" "E0324" "E0325" "E0326"
        "E0327" "E0328" "E0329"
}
