//! Pages about error codes.

tilewright_layout::error_pages! {
    /// The page about an error code of this crate: the condition, an example, and what to do. None
    /// if the code is not one of [`crate::GpuError`]'s own.
    ///
    /// ```
    /// assert!(tilewright_gpu::explanation("E0801").is_some_and(|page| page.contains("driver")));
    /// assert!(tilewright_gpu::explanation("E0101").is_none());
    /// ```
    pub fn explanation in "error.rs":
        "E0801" "E0802" "E0803" "E0804" "E0805" "E0806" "E0807" "E0808"
        "E0809" "E0810" "E0811" "E0812" "E0813" "E0814" "E0815" "E0816"
        "E0817" "E0818" "E0819" "E0820" "E0821" "E0822" "E0823"
}
