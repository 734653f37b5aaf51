//! Tries the advice of a refusal before it is given.
//!
//! Law: a declaration that a refusal proposes is added to the program, which is evaluated again.
//! The proposal stays in the message in two cases. First, the program then has a value. Second, it
//! is refused because another fact is missing; then that refusal names the fact. Otherwise the
//! message says what happens under the declaration, and proposes nothing.

use tilewright_layout::symbolic::Parameter;

use super::{Environment, evaluate_prepared, gather};
use crate::ast::Program;
use crate::diagnostic::Diagnostic;
use crate::parse::parse;

/// A refusal after the declaration that it proposes was tried; `unnamed` are the parameters without
/// a name of the refused program.
#[cold]
pub(super) fn tried(
    source: &str,
    unnamed: &[Option<Parameter>],
    env: &Environment,
    mut refusal: Diagnostic,
) -> Diagnostic {
    let Some(declaration) = refusal.declaration.take() else { return refusal };
    let Some(under) = evaluated_under(source, unnamed, env, &declaration) else { return refusal };
    let (Err(next), Some(at)) = (&under, refusal.message.find("; declare `")) else { return refusal };
    // Asking the same question again is not an answer, and a refusal of another kind is final.
    let asks = next.code == refusal.code && next.message.get(..at) != refusal.message.get(..at);
    if !asks {
        refusal.message.truncate(at);
        let declared = format!("{declaration:#}");
        refusal.help = Some(match next.code == refusal.code {
            true => format!("`{declared}` would settle that alone, and does not: the numbers depend on each other"),
            false => format!(
                "no declaration settles it: under `{declared}`, {} [{}]",
                first_sentence(&next.message),
                next.code
            ),
        });
    }
    refusal
}

/// A sentence up to its semicolon.
fn first_sentence(message: &str) -> &str {
    message.split(';').next().unwrap_or(message)
}

/// The program evaluated under a declaration; None if there is no such program.
fn evaluated_under(
    source: &str,
    unnamed: &[Option<Parameter>],
    env: &Environment,
    declaration: &Parameter,
) -> Option<Result<(), Diagnostic>> {
    let (mut program, mut env) = (Program::default(), env.clone());
    parse(source, &mut program).ok()?;
    if let Some(name) = declaration.name() {
        // The facts of the program about the name are merged.
        env.parameters.insert(name.to_owned(), declaration.clone());
    }
    gather(source, &mut program, &mut env).ok()?;
    if declaration.name().is_none() {
        let place = unnamed.iter().position(|own| own.as_ref().is_some_and(|own| own.stands_for(declaration)))?;
        *program.unnamed.get_mut(place)? = Some(declaration.clone());
    }
    let answer = evaluate_prepared(source, &program, &mut env).map(|_| ());
    Some(answer)
}
