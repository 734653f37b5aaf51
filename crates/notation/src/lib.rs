//! The expression language of layouts.
//!
//! One language serves the command line, the prompt, the tests and the documentation. [`evaluate`]
//! runs a program. It returns a [`Value`], whose text evaluates to the same value, or a
//! [`Diagnostic`], which shows the text with the faulty part underlined:
//!
//! ```
//! use tilewright_notation::{Environment, evaluate};
//!
//! let source = "(6,2):(1,7) o (3,2):(2,3)";
//! let error = evaluate(source, &mut Environment::new()).unwrap_err();
//! assert_eq!(error.code, "E0107");
//! assert_eq!(&source[error.span.clone()], "2"); // the stride of mode 0 of B
//! println!("{}", error.render(source, false));
//! ```
//!
//! [`functions()`] lists the functions, and [`Function::call`] calls one on values.
//! [`explanation()`] explains an error code, and [`derive()`] shows the steps to a result.

mod arguments;
mod ast;
mod batch;
mod blame;
mod derive;
mod diagnostic;
mod eval;
mod explanation;
mod functions;
mod lex;
mod notes;
mod parse;
mod reading;
mod spellings;
mod substitute;
mod value;

pub use batch::{Answer, Batch, run_batch};
pub use derive::{About, Call, Derivation, Step, call, derive};
pub use diagnostic::Diagnostic;
pub use eval::invoke::{Refused, apply};
pub use eval::pair::{Pair, evaluate_pair};
pub use eval::{Environment, evaluate};
pub use explanation::explanation;
pub use functions::{Function, find as function, functions};
pub use notes::{Note, remarks};
pub use parse::{MAX_NESTING, MAX_PROGRAM, MAX_TEXT, is_incomplete};
pub use spellings::ours as spelling;
pub use value::Value;
