//! Two programs that share parameters: the sides of an equation.
//!
//! Law: both sides have the values that they would have in one program. A name that is known only
//! at launch is the same parameter on both sides, and facts given on either side apply to both.
//! Each `?` of the left is identified with the `?` at the same position on the right, in the order
//! in which they are written; so `(8,?):(1,8)` beside the same text is the same layout. If the two
//! sides have different numbers of `?`, there is no rule to identify them, and the pair is refused.

use std::ops::Range;

use tilewright_layout::symbolic::{Facts, Parameter};

use super::{Environment, evaluate_prepared, explained, prepare};
use crate::ast::Program;
use crate::diagnostic::Diagnostic;
use crate::notes::Note;
use crate::value::Value;

/// The values of two programs that share parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// The values, left and right.
    pub values: [Value; 2],
    /// The number of `?` that both sides share.
    pub unnamed: usize,
    /// The notes about both, if the environment keeps them.
    pub notes: Vec<Note>,
}

/// An error of one of two programs: 0 for the left one, 1 for the right one.
type SideError = Box<(usize, Diagnostic)>;

/// Evaluates two programs with shared parameters: the names, and each `?` with the one at the same
/// position on the other side.
///
/// Errors: as [`super::evaluate`], with 0 for the left program and 1 for the right one; both sides
/// have `?`, and not as many.
///
/// ```
/// use tilewright_notation::{Environment, evaluate_pair};
///
/// let pair = |left, right| evaluate_pair(left, right, &Environment::new()).unwrap().values;
/// let [left, right] = pair("coalesce((8,?):(1,8))", "8*?:1");
/// assert_eq!(left, right);
/// let [left, right] = pair("(4,M{div=8}):(1,4)", "(4,M):(1,4)");
/// assert_eq!(left, right);
/// ```
pub fn evaluate_pair(left: &str, right: &str, env: &Environment) -> Result<Pair, SideError> {
    let sources = [left, right];
    let mut programs = [Program::default(), Program::default()];
    let mut environments = [env.clone(), env.clone()];
    for (side, (source, (program, env))) in sources.iter().zip(programs.iter_mut().zip(&mut environments)).enumerate() {
        prepare(source, program, env).map_err(|error| Box::new((side, error)))?;
    }
    share_names(&mut environments, right)?;
    let unnamed = share_unnamed(&mut programs, sources)?;
    let [a, b] = &mut environments;
    let [first, second] = &programs;
    let x = evaluate_prepared(left, first, a).map_err(|error| Box::new((0, explained(left, first, a, error))))?;
    let y = evaluate_prepared(right, second, b).map_err(|error| Box::new((1, explained(right, second, b, error))))?;
    let notes = [a.take_notes(), b.take_notes()].concat();
    Ok(Pair { values: [x, y], unnamed, notes })
}

/// Joins the facts that both sides give for a name.
fn share_names([a, b]: &mut [Environment; 2], right: &str) -> Result<(), SideError> {
    for (name, own) in &mut a.parameters {
        let Some(other) = b.parameters.get_mut(name) else { continue };
        let both = joined(own.facts(), other.facts(), 0..right.len(), name)?;
        let declared = Parameter::named(name, both).map_err(|error| Box::new((1, refused(0..right.len(), &error))))?;
        (*own, *other) = (declared.clone(), declared);
    }
    Ok(())
}

/// Identifies each `?` of the right with the one at the same position on the left. Returns their
/// number.
fn share_unnamed(programs: &mut [Program; 2], sources: [&str; 2]) -> Result<usize, SideError> {
    let [first, second] = programs;
    let count = |program: &Program| program.unnamed.iter().flatten().count();
    let (left, right) = (count(first), count(second));
    let whole = 0..sources[1].len();
    if left != right && left > 0 && right > 0 {
        let message =
            format!("the left has {left} `?` and the right has {right}, so it is not clear which are the same");
        return Err(Box::new((
            1,
            Diagnostic::new("E0215", whole.clone(), message)
                .label(whole, "each `?` is the one in its place on the other side")
                .help("give the numbers names, such as M and N: a name is one number on both sides"),
        )));
    }
    let pairs = first.unnamed.iter_mut().flatten().zip(second.unnamed.iter_mut().flatten());
    for (own, other) in pairs {
        let both = Parameter::anonymous(joined(own.facts(), other.facts(), whole.clone(), "?")?);
        (*own, *other) = (both.clone(), both);
    }
    Ok(left.min(right))
}

/// The union of the facts about a parameter.
fn joined(left: Facts, right: Facts, place: Range<usize>, name: &str) -> Result<Facts, SideError> {
    left.and(right).map_err(|error| {
        let message = format!("no number has the facts that both sides say of {name}: {{{left}}} and {{{right}}}");
        let error = Diagnostic::new(error.code(), place.clone(), message);
        Box::new((1, error.label(place, "the same number as on the left")))
    })
}

fn refused(place: Range<usize>, error: &tilewright_layout::LayoutError) -> Diagnostic {
    Diagnostic::new(error.code(), place.clone(), error.to_string()).label(place, "refused")
}
