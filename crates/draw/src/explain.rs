//! Explanations of a value or a call of the notation: its picture, its derivation in pictures, and
//! whether the law of its operation holds.
//!
//! Law: only what is shown is computed here. A picture is drawn from the values themselves, and a
//! law is tested by evaluating layouts, without the code that it tests.
//!
//! * [`check`]: whether a law holds, or two layouts are one function
//! * [`facts`]: the properties of a layout, in words
//! * [`figures`]: the picture of a value, of a call, and of each step of a derivation
//! * [`launch`]: numbers that are tried for parameters that are known only at launch
//! * [`map`]: values of the notation as functions
//! * [`requests`]: the banks and sectors that the lanes of a request touch

pub mod check;
pub mod facts;
pub mod figures;
pub mod launch;
mod law;
pub mod map;
pub mod requests;
