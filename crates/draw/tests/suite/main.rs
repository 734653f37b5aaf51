//! Pictures: what they say, how they fit, and the files that they become.

mod algebra;
mod data;
mod explain;
mod formats;
mod morphisms;
mod page;
