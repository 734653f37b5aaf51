//! Pages about error codes.

tilewright_layout::error_pages! {
    /// The page about an error code of this crate: the condition, an example, and what to do. None for a code that is not
    /// one of its own.
    ///
    /// ```
    /// assert!(tilewright_kernel::explanation("E0903").is_some_and(|page| page.contains("exist")));
    /// assert!(tilewright_kernel::explanation("E0101").is_none());
    /// ```
    pub fn explanation in "error.rs" "ptx.rs":
        "E0901" "E0902" "E0903" "E0904" "E0905" "E0906" "E0907" "E0908"
        "E0909" "E0910" "E0911" "E0912" "E0913" "E0914" "E0921" "E0922"
}
