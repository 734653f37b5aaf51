//! The parts of a text: inputs, named values, results.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::emit::integer::Integer;
use crate::{Profile, Tree};

/// A function in a language, its expressions already written.
pub(crate) struct Function<'a> {
    pub(crate) name: &'a String,
    pub(crate) integer: Integer,
    /// The coordinate, then the parameters.
    pub(crate) inputs: Vec<String>,
    /// The inputs that occur.
    pub(crate) used: Vec<String>,
    /// Whether 32 bits hold every number on the way.
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

/// The results, and how they nest.
pub(crate) struct Results {
    pub(crate) values: Vec<Value>,
    pub(crate) profile: Profile,
}

impl Results {
    /// A text for each result: as a tuple of tuples, or all in one tuple. One result is no tuple.
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
            // A tuple of one has a comma.
            format!("({}{})", modes.join(", "), if modes.len() == 1 { "," } else { "" })
        }
    }
}
