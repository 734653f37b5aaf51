//! PTX as text, read into a module.
