//! Pages about error codes.

tilewright_layout::error_pages! {
    /// The page about an error code of this crate: the condition, an example, and what to do. None
    /// for a code that is not one of [`crate::MeshError`]'s own.
    ///
    /// ```
    /// assert!(tilewright_mesh::explanation("E1104").is_some_and(|page| page.contains("place")));
    /// assert!(tilewright_mesh::explanation("E0101").is_none());
    /// ```
    pub fn explanation in "error.rs":
        "E1101" "E1102" "E1103" "E1104" "E1105" "E1106" "E1107" "E1108"
        "E1109" "E1110" "E1111" "E1112"
        "E1113" "E1114" "E1115" "E1116"
}
