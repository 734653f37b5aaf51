//! Explanations of a value or a call of the language: its picture, its derivation in pictures, and
//! whether the law of its operation holds.
//!
//! Law: nothing is computed here but what is shown. A picture is drawn from the values themselves,
//! and a law is tested by evaluating layouts, with no use of the code that it tests.
//!
//! * [`check`]: whether a law holds, or two layouts are one function
//! * [`facts`]: what a layout is and is not, in words
//! * [`figures`]: the picture of a value, of a call, and of each step of a derivation
//! * [`launch`]: numbers to try in place of those that are known only at launch
//! * [`map`]: values of the language as functions
//! * [`requests`]: what the lanes of a request touch of banks and sectors

pub mod check;
pub mod facts;
pub mod figures;
pub mod launch;
mod law;
pub mod map;
pub mod requests;
