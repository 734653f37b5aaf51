//! All tests of the crate, in one program: it is linked once.

mod book;
mod book_links;
mod console;
mod draw;
mod json;
mod launch;
mod lsp;
mod machine;
mod mesh;
mod mpi;
mod nccl;
mod pages;
mod playground;
mod streams;
