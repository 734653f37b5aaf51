//! The messages of errors: the failed condition, its position and numbers, and a remedy.

use alloc::format;
use alloc::string::String;
use core::fmt;

use crate::morphism::error::{
    Apart, CompositionSide, Misfit, MorphismError, NoMutualRefinement, NotARefinement, NotTractable, Side,
};

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Domain => "domain",
            Side::Codomain => "codomain",
        })
    }
}

/// A path of modes in the notation of the algebra: `mode 0`, `mode [1,0]`.
fn mode(path: &[usize]) -> String {
    match path {
        [] => String::from("the mode"),
        [mode] => format!("mode {mode}"),
        [first, rest @ ..] => {
            let mut text = format!("mode [{first}");
            for mode in rest {
                text.push_str(&format!(",{mode}"));
            }
            text.push(']');
            text
        }
    }
}

impl fmt::Display for NotTractable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.part {
            CompositionSide::Alone => "",
            CompositionSide::Inner => "the inner layout, ",
            CompositionSide::Outer => "the outer layout, ",
        })?;
        let comma = if self.part == CompositionSide::Alone { "" } else { "," };
        let (extent, stride) = self.leaf;
        write!(f, "{}{comma} is not tractable: ", self.layout)?;
        match &self.next {
            None => write!(f, "the stride {stride} of {} is negative", mode(&self.mode)),
            Some((next, step)) => {
                let reach = i128::from(extent) * i128::from(stride);
                write!(
                    f,
                    "{extent} * {stride} = {reach} of {} does not divide {step}, the next stride, of {}",
                    mode(&self.mode),
                    mode(next)
                )
            }
        }
    }
}

impl fmt::Display for NotARefinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} does not refine {}: ", self.fine, self.coarse)?;
        let place = if self.path.is_empty() { String::new() } else { format!(" in {}", mode(&self.path)) };
        match self.found {
            Misfit::Size { wanted, found } => write!(f, "the size{place} is {found} and not {wanted}"),
            Misfit::Rank { wanted, found: Some(found) } => {
                write!(f, "the number of modes{place} is {found} and not {wanted}")
            }
            Misfit::Rank { wanted, found: None } => {
                write!(f, "a number stands{place} where there are {wanted} modes")
            }
        }
    }
}

impl fmt::Display for NoMutualRefinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (entry, left) = self.left;
        let number = entry + 1;
        write!(f, "{} and {} have no mutual refinement: ", self.first, self.second)?;
        let before = |f: &mut fmt::Formatter<'_>| match self.before {
            1 => Ok(()),
            before => write!(f, ", {before} positions from the start,"),
        };
        match self.right {
            None => {
                write!(f, "the second ends where {left} of entry {number} of the first is left")
            }
            Some((other, right)) => {
                write!(
                    f,
                    "{left} of entry {number} of the first and {right} of entry {} of the second meet",
                    other + 1
                )?;
                before(f)?;
                f.write_str(" and neither divides the other")
            }
        }
    }
}

impl fmt::Display for MorphismError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MorphismError::MapLength { domain, map } => {
                write!(f, "the map sends {map} {}, and there are {domain} to be sent", entries(*map))
            }
            MorphismError::Target { entry, target, entries: count } => {
                write!(
                    f,
                    "entry {} is sent to {}, and the codomain has {count} {}",
                    entry + 1,
                    target + 1,
                    entries(*count)
                )
            }
            MorphismError::SentTwice { first, second, target } => {
                write!(f, "entries {} and {} are both sent to {}", first + 1, second + 1, target + 1)
            }
            MorphismError::Unequal { entry, extent, target, found } => {
                write!(
                    f,
                    "entry {} is {extent}, and entry {} of the codomain, where it is sent, is {found}",
                    entry + 1,
                    target + 1
                )
            }
            MorphismError::NotPositive { what, entry, value } => {
                write!(f, "entry {} of {what} is {value}, and entries are positive", entry + 1)
            }
            MorphismError::NotComposable { op, ends, begins, .. } => {
                write!(f, "{op}: the first morphism ends at {ends}, and the next would begin at {begins}")
            }
            MorphismError::NotTractable(found) => found.fmt(f),
            MorphismError::Dropped { op, entry } => {
                write!(f, "{op}: entry {} of the domain is sent to the base point", entry + 1)
            }
            MorphismError::ImagesMeet { first, second, target } => {
                let (first, second, target) = (first + 1, second + 1, target + 1);
                write!(
                    f,
                    "entry {first} of the first and entry {second} of the second morphism are both sent to {target}"
                )
            }
            MorphismError::NotARefinement(found) => found.fmt(f),
            MorphismError::NoMutualRefinement(found) => found.fmt(f),
            MorphismError::NoSuchEntry { op, side, entry, entries: count } if entry < count => {
                write!(f, "{op}: entry {} of the {side} is named out of order", entry + 1)
            }
            MorphismError::NoSuchEntry { op, side, entry, entries: count } => {
                write!(f, "{op}: the {side} has {count} {}, and no entry {}", entries(*count), entry + 1)
            }
            MorphismError::Lost { entry, target } => {
                write!(f, "entry {} is sent to {}, which is left out", entry + 1, target + 1)
            }
            MorphismError::NotIsomorphism { entry, side: Side::Domain } => {
                write!(f, "entry {} of the domain is sent to the base point, so there is no inverse", entry + 1)
            }
            MorphismError::NotIsomorphism { entry, side: Side::Codomain } => {
                write!(f, "entry {} of the codomain is not hit, so there is no inverse", entry + 1)
            }
            MorphismError::Undivided { target, entry, product } => {
                write!(
                    f,
                    "the product {product} of what is sent to entry {} does not divide it: it is {entry}",
                    target + 1
                )
            }
            MorphismError::Arity { op, places, parts } => write!(f, "{op}: {parts} parts for {places} places"),
            MorphismError::Syntax { at, expected } => write!(f, "at byte {at}: expected {expected}"),
            MorphismError::Table { size, limit } => {
                write!(f, "a table of {size} values, and at most {limit} are listed")
            }
            MorphismError::Layout(error) => error.fmt(f),
        }
    }
}

fn entries(count: usize) -> &'static str {
    if count == 1 { "entry" } else { "entries" }
}

impl MorphismError {
    /// The remedy, if there is one.
    pub fn help(&self) -> Option<String> {
        Some(String::from(match self {
            MorphismError::MapLength { .. } => "name one place for each entry; `*` is the base point",
            MorphismError::Target { .. } => "entries are counted from 1; `*` is the base point",
            MorphismError::SentTwice { .. } => "send one of them elsewhere, or to the base point, `*`",
            MorphismError::Unequal { .. } => {
                "an entry is sent to an equal one; refine one side first where they are not"
            }
            MorphismError::NotPositive { .. } => "give a positive number",
            MorphismError::NotComposable { apart, .. } => match apart {
                Apart::Nesting => "the entries are the same and nest differently: flatten both",
                Apart::Beginning => {
                    "the first ends at the beginning of where the next begins: `inclusion(S, T)` leads from one to the other, and \
                     `weak_composite(g, f)` does it all"
                }
                Apart::Entries => {
                    "refine both by the mutual refinement of where they meet, as `weak_composite(g, f)` does"
                }
            },
            MorphismError::NotTractable(_) => {
                "the algebra composes, divides and inverts it all the same; it only has no diagram"
            }
            MorphismError::Dropped { .. } => "leave out such entries first; a broadcast has no complement",
            MorphismError::ImagesMeet { .. } => "concatenate morphisms whose images are disjoint",
            MorphismError::NotARefinement(_) => "replace each entry by a tuple of the same size",
            MorphismError::NoMutualRefinement(_) => "the composite may still exist: ask `composition`",
            MorphismError::NoSuchEntry { .. } => "name entries that exist, in increasing order",
            MorphismError::Lost { .. } => "keep every entry of the codomain that is hit",
            MorphismError::NotIsomorphism { .. } => "only a permutation of the entries has an inverse",
            MorphismError::Undivided { .. } => "send one of them elsewhere, or to the base point",
            MorphismError::Arity { .. } => "give one part for each place",
            MorphismError::Syntax { .. } => "a morphism is written `(4,5) -> (4,16,5) : (1,3)`",
            MorphismError::Table { .. } => "evaluate single indices",
            MorphismError::Layout(error) => return error.help(),
        }))
    }
}
