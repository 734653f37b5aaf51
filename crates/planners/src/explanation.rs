//! Pages about error codes.

tilewright_layout::error_pages! {
    /// The page about an error code of this crate: the condition, an example, and what to do. None
    /// for a code that is not one of [`crate::PlanError`]'s own.
    ///
    /// ```
    /// assert!(tilewright_planners::explanation("E0932").is_some_and(|page| page.contains("overlap")));
    /// assert!(tilewright_planners::explanation("E0101").is_none());
    /// ```
    pub fn explanation in "error.rs":
        "E0931" "E0932" "E0933" "E0934" "E0935" "E0936" "E0937" "E0938" "E0939" "E0940"
        "E0941" "E0942" "E0943" "E0944" "E0945"
}
