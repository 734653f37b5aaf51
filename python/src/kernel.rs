//! Kernels that are written in Python.
//!
//! Law: Python writes the same program as Rust, by the same builder. A traced function runs once;
//! what it does with tensors of the kernel are statements of the builder, at the line and the
//! columns of the Python expression.
//!
//! * `trace`: the kernel that a thread is writing, and the statements that it is given
//! * `traced`: the base class of what Python holds of it
//! * `place`: where in the text of Python a statement stands
//! * `operand`: arguments of statements: types of elements, coordinates, numbers
//! * `coordinates`, `predicates`: identity tensors, and what copies take of them
//! * `view`, `fragment`, `number`, `tile`, `pipeline`, `tiled`: the classes
//! * `captured`: what a traced function reads from outside
//! * `statement`, `body`: statements that are functions, and bodies of loops and conditions
//! * `program`: kernels that are written
//! * `arrays`: arrays as their tensors
//! * `drawing`: what their lanes reach, as pictures
//! * `library`: those that are planned from layouts
//! * `named`: kernels and tile programs of the libraries, by their names
//! * `bench`: what is measured of them on a device
//! * `tiles`: tile programs, whose layouts are assigned

pub mod arrays;
pub mod bench;
pub mod body;
pub mod captured;
pub mod coordinates;
pub mod drawing;
pub mod fragment;
pub mod library;
pub mod named;
pub mod number;
pub mod operand;
pub mod pipeline;
pub mod place;
pub mod predicates;
pub mod program;
pub mod statement;
pub mod tile;
pub mod tiled;
pub mod tiles;
pub mod trace;
pub mod traced;
pub mod view;
