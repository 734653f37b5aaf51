//! Data under a layout.
