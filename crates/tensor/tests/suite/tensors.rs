//! Tensors and views: elements, parts, files.

mod elements;
mod instruction;
mod npy;
mod numpy;
mod partitions;
mod tilings;
mod views;
mod walks;
