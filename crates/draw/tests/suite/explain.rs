//! Explanations of values and calls: whether laws hold, and whether two layouts are one function.

mod laws;
mod unnamed;
