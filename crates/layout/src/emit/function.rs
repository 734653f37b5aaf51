//! The parts of a text: inputs, named values, results.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::emit::integer::Integer;
use crate::{Profile, Tree};

/// The parts of a function; its expressions are already written.
pub(crate) struct Function<'a> {
    pub(crate) name: &'a String,
    pub(crate) integer: Integer,
    /// The arguments: the coordinate, then the parameters.
    pub(crate) inputs: Vec<String>,
    /// The arguments that the body uses.
    pub(crate) used: Vec<String>,
    /// Whether every intermediate value fits in 32 bits.
    pub(crate) small: bool,
    pub(crate) parts: Vec<Value>,
    pub(crate) results: Results,
}

/// A value with a name.
#[derive(Clone)]
pub(crate) struct Value {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) boolean: bool,
}

/// The results, and their nesting.
pub(crate) struct Results {
    pub(crate) values: Vec<Value>,
    pub(crate) profile: Profile,
}

impl Results {
    /// A text for each result, as a tuple of tuples or in one flat tuple. A single result is not a
    /// tuple.
    pub(crate) fn nested(&self, each: &dyn Fn(&Value) -> String, nested: bool) -> String {
        let flat = Profile::flat(self.values.len()).ok();
        let profile = if nested { Some(self.profile.clone()) } else { flat };
        let tree = profile.and_then(|profile| Tree::new(profile, self.values.iter().map(each)).ok());
        match (self.values.as_slice(), tree) {
            ([only], _) => each(only),
            (_, Some(tree)) => tuple(&tree),
            (values, None) => format!("({})", values.iter().map(each).collect::<Vec<_>>().join(", ")),
        }
    }
}

fn tuple(tree: &Tree<String>) -> String {
    match tree.leaves() {
        [only] if tree.is_leaf() => only.clone(),
        _ => {
            let modes: Vec<String> = tree.modes().map(|mode| tuple(&mode)).collect();
            // A tuple of one element needs a comma.
            format!("({}{})", modes.join(", "), if modes.len() == 1 { "," } else { "" })
        }
    }
}
