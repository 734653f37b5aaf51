//! Tensors and views: elements, parts, files.

mod elements;
mod instruction;
mod npy;
mod numpy;
mod tilings;
mod views;
mod walks;
