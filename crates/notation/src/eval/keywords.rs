//! Arguments that are given by name: `make_ordered_layout((4,64), order=(1,0))`.
//!
//! Law: a call with names is the call without them, with each argument at the position that the
//! signature in the table of functions gives to its name. So no function handles names itself, and
//! every function accepts them.

use super::Evaluator;
use crate::ast::NodeId;
use crate::diagnostic::{Diagnostic, excerpt};
use crate::functions::Function;

impl Evaluator<'_> {
    /// For each position of the signature, in order, the index of the argument that belongs there.
    ///
    /// Errors: no form of the function has an argument of that name; a position has two arguments;
    /// a position before the last one has none.
    pub(super) fn placed(&self, function: &Function, operands: &[NodeId]) -> Result<Vec<usize>, Diagnostic> {
        let names: Vec<&str> = operands
            .iter()
            .filter_map(|operand| self.program.keyword(*operand))
            .map(|name| self.text(name.span()))
            .collect();
        let mut pair = operands.iter().filter_map(|operand| self.program.keyword(*operand));
        if let Some(name) = pair.find(|name| self.text(name.span()) != "A")
            && function.name == "substitute"
        {
            let text = excerpt(self.text(name.span()));
            let message = "substitute: a name and its number are two arguments";
            return Err(Diagnostic::new("E0207", name.span(), message)
                .label(name.span(), "a name of the layout, not of an argument")
                .help(format!("write a comma in place of `=`: substitute(A, {text}, number)")));
        }
        // The forms that have the names come first, so that their refusal is reported.
        let (knowing, others): (Vec<_>, Vec<_>) = ways(function.signature)
            .partition(|parameters: &Vec<&str>| names.iter().all(|name| parameters.contains(name)));
        let mut refusal = None;
        for parameters in knowing.into_iter().chain(others) {
            match self.placed_in(function, &parameters, operands) {
                Ok(places) => return Ok(places),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        Err(refusal.unwrap_or_else(|| Diagnostic::new("E0207", 0..0, "this function has no arguments")))
    }

    fn placed_in(
        &self,
        function: &Function,
        parameters: &[&str],
        operands: &[NodeId],
    ) -> Result<Vec<usize>, Diagnostic> {
        let mut places: Vec<Option<usize>> = vec![None; parameters.len().max(operands.len())];
        for (argument, operand) in operands.iter().enumerate() {
            let name = self.program.keyword(*operand);
            let text = name.map(|name| self.text(name.span()));
            let span = name.map_or_else(|| self.program.span(*operand), |name| name.span());
            let refuse = |message: String, label: &str| {
                Diagnostic::new("E0207", span.clone(), message)
                    .label(span.clone(), label)
                    .help(format!("{}: {}", function.signature, function.summary))
            };
            let place = match text {
                None if operands.iter().take(argument).any(|before| self.program.keyword(*before).is_some()) => {
                    let message = format!("{}: an argument without a name stands after one with a name", function.name);
                    return Err(refuse(message, "give it a name, or let it stand before"));
                }
                None => argument,
                Some(text) => match parameters.iter().position(|parameter| *parameter == text) {
                    Some(place) => place,
                    None => {
                        let message = format!("{} has no argument named '{}'", function.name, excerpt(text));
                        return Err(refuse(message, "not an argument"));
                    }
                },
            };
            match places.get_mut(place) {
                Some(free @ None) => *free = Some(argument),
                _ => {
                    let name = parameters.get(place).copied().unwrap_or("argument");
                    return Err(refuse(format!("{}: '{name}' is given twice", function.name), "given again"));
                }
            }
        }
        let given: Vec<usize> = places.iter().copied().flatten().collect();
        match places.iter().take(given.len()).position(Option::is_none) {
            None => Ok(given),
            Some(missing) => {
                let span = operands.first().map_or(0..0, |first| {
                    self.program.span(*first).start..operands.last().map_or(0, |last| self.program.span(*last).end)
                });
                let name = parameters.get(missing).copied().unwrap_or("an argument");
                let message = format!("{}: '{name}' is not given, and an argument after it is", function.name);
                Err(Diagnostic::new("E0207", span.clone(), message)
                    .label(span, format!("without '{name}'"))
                    .help(format!("{}: {}", function.signature, function.summary)))
            }
        }
    }
}

/// For each position of a form, in order, the index of its argument, if `count` positional
/// arguments come before the named ones.
///
/// None if a name is not an argument, or a position has two arguments or none.
pub(super) fn in_place(parameters: &[&str], count: usize, names: &[&str]) -> Option<Vec<usize>> {
    let mut places: Vec<Option<usize>> = (0..count).map(Some).collect();
    for (number, name) in names.iter().enumerate() {
        let place = parameters.iter().position(|parameter| parameter == name)?;
        places.resize(places.len().max(place + 1), None);
        match places.get_mut(place) {
            Some(free @ None) => *free = Some(count + number),
            _ => return None,
        }
    }
    places.into_iter().collect()
}

/// The names of the arguments in each form of a signature.
pub(super) fn ways(signature: &str) -> impl Iterator<Item = Vec<&str>> {
    signature.split(" or ").map(|way| {
        let inner = way.split_once('(').map_or("", |(_, rest)| rest.strip_suffix(')').unwrap_or(rest));
        let names = inner.split(',').map(|name| name.split('=').next().unwrap_or("").trim());
        names.map(|name| name.trim_end_matches('.')).filter(|name| !name.is_empty()).collect()
    })
}
