//! Kernels that are written in Python.
//!
//! Law: Python builds the same program as Rust, with the same builder. A traced function runs once;
//! its operations on tensors of the kernel become statements of the builder, with the line and
//! columns of the Python expression.
//!
//! * `trace`: the kernel that a thread is tracing, and its statements
//! * `traced`: the base class of traced values
//! * `place`: locations in Python source
//! * `operand`: arguments of statements: types of elements, coordinates, numbers
//! * `coordinates`, `predicates`: identity tensors, and predicates of copies
//! * `view`, `fragment`, `number`, `tile`, `pipeline`, `tiled`: the classes
//! * `captured`: globals and closures of a traced function
//! * `statement`, `body`: statements that are functions, and bodies of loops and conditions
//! * `program`: finished kernels
//! * `arrays`: arrays as their tensors
//! * `drawing`: pictures of their memory accesses
//! * `library`: kernels planned from layouts
//! * `operator`: operators of models, as tile programs
//! * `named`: kernels and tile programs of the libraries, by their names
//! * `bench`: measurements of them on a device
//! * `tiles`: tile programs, whose layouts are assigned
//! * `tuning`: plans measured on a device

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
pub mod operator;
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
pub mod tuning;
pub mod view;
