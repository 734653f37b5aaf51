//! The forms of a division and of a product.
//!
//! Law: all forms have the same leaves; they differ in the nesting. The table in [`DivideForm`]
//! lists them for pairs `(t, r)` and `(u, s)` from modes 0 and 1, and a mode `m` that the tiler
//! does not name.

use crate::ground::words::words;

words! {
    /// How the pairs of a division, (tile, rest), or of a product, (block, copies), are arranged.
    ///
    /// | form | result |
    /// |---|---|
    /// | logical | `((t,r),(u,s),m)`: each mode keeps its position |
    /// | zipped | `((t,u),(r,s,m))`: all first parts, then all second parts |
    /// | tiled | `((t,u),r,s,m)` |
    /// | flat | `(t,u,r,s,m)` |
    ///
    /// ```
    /// use tilewright_layout::{DivideForm, Layout, Tiler};
    ///
    /// let layout: Layout = "(4,6):(1,4)".parse().unwrap();
    /// let tiler: Tiler = "(2,3)".parse().unwrap();
    /// let zipped = layout.divide(DivideForm::Zipped, &tiler).unwrap();
    /// assert_eq!(zipped, layout.zipped_divide(&tiler).unwrap());
    /// assert_eq!(DivideForm::Zipped.to_string(), "zipped");
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum DivideForm {
        /// Each mode keeps its position: `((t,r),(u,s),m)`.
        Logical = "logical",
        /// The tiles as one mode, then the rests as one mode: `((t,u),(r,s,m))`.
        Zipped = "zipped",
        /// The tiles as one mode, then each rest as a mode: `((t,u),r,s,m)`.
        Tiled = "tiled",
        /// Each tile and each rest as a mode: `(t,u,r,s,m)`.
        Flat = "flat",
    }
}

impl DivideForm {
    /// The name of the division in this form: `zipped_divide`.
    pub fn division(self) -> &'static str {
        match self {
            DivideForm::Logical => "logical_divide",
            DivideForm::Zipped => "zipped_divide",
            DivideForm::Tiled => "tiled_divide",
            DivideForm::Flat => "flat_divide",
        }
    }

    /// The name of the product in this form: `zipped_product`.
    pub fn product(self) -> &'static str {
        match self {
            DivideForm::Logical => "logical_product",
            DivideForm::Zipped => "zipped_product",
            DivideForm::Tiled => "tiled_product",
            DivideForm::Flat => "flat_product",
        }
    }
}
