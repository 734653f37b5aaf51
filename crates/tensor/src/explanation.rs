//! The explanation pages of error codes.

tilewright_layout::error_pages! {
    /// The page about an error code of this crate: the condition, an example, and what to do. None
    /// for a code that is not one of [`crate::TensorError`]'s own.
    ///
    /// ```
    /// assert!(tilewright_tensor::explanation("E0402").is_some_and(|page| page.contains("mutable")));
    /// assert!(tilewright_tensor::explanation("E0101").is_none());
    /// ```
    pub fn explanation in "error.rs" "npy.rs":
        "E0401" "E0402" "E0403" "E0404" "E0405" "E0406" "E0407" "E0408"
        "E0409" "E0410" "E0411" "E0412" "E0413" "E0414" "E0420" "E0421"
        "E0422" "E0423" "E0424" "E0425"
        "E0440" "E0441" "E0442" "E0443" "E0444" "E0445"
}
