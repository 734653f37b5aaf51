//! What is checked while a kernel runs: who wrote each byte, what happened before what, findings.
//!
//! * [`checker`]: what an engine tells: accesses and synchronisation, of whole warps at once.
//! * [`finding`]: what is answered: defects, with the threads and the statements that take part.

pub mod checker;
pub mod finding;
