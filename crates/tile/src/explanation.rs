//! Pages about error codes.

tilewright_layout::error_pages! {
    /// The page about an error code of this crate: the condition, an example, and what to do. None
    /// if the code is not one of [`crate::TileError`]'s own.
    ///
    /// ```
    /// assert!(tilewright_tile::explanation("E1201").is_some_and(|page| page.contains("powers of two")));
    /// assert!(tilewright_tile::explanation("E0101").is_none());
    /// ```
    pub fn explanation in "error.rs":
        "E1201" "E1202" "E1203" "E1204" "E1205" "E1206" "E1207" "E1208" "E1209" "E1210"
        "E1211" "E1212" "E1213" "E1214"
}
