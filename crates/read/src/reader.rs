//! The reader of one system, and its input.
//!
//! Law of every reader: it is called at a position where one of its signs occurs. It either returns
//! that nothing of its system begins there, in time that does not depend on the rest of the text;
//! or it returns the end of the text that it read, with its meaning in the algebra or the reason
//! why it has none. A reader guesses no unit, no shape and no name: missing information is a
//! [`crate::Question`].

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::collections::HashSet;
use std::ops::Range;

use crate::options::Options;
use crate::reading::Reading;
use crate::refused::Refused;
use crate::system::System;

/// The largest number of definitions that are followed for a name.
pub const MAX_ALIASES: usize = 32;

/// A reader: a row of [`crate::readers()`].
pub struct Reader {
    /// The system that it reads.
    pub system: System,
    /// The texts with which something of the system begins. A sign that begins with a letter, a
    /// digit or `_` counts only if no such character precedes it.
    pub signs: &'static [&'static str],
    /// Reads the text at a position where one of the signs occurs.
    pub read: fn(&Context<'_>, usize) -> Option<Found>,
}

/// The result of a reader.
#[derive(Debug, Clone)]
pub struct Found {
    /// The bytes that it read. They begin at the position of the call.
    pub span: Range<usize>,
    /// Their meaning, or the reason why they have none.
    pub answer: Result<Reading, Refused>,
}

/// The text around a position, and further information.
pub struct Context<'a> {
    /// The whole text.
    pub source: &'a str,
    /// The options of the user.
    pub options: &'a Options,
    /// The definitions in the text.
    pub definitions: &'a Definitions<'a>,
    /// The position before which no layout begins.
    passed: Cell<usize>,
    /// The names after `#` that the text uses without defining them; computed on demand.
    used: OnceCell<HashSet<String>>,
}

impl<'a> Context<'a> {
    /// The context of a text.
    pub fn new(source: &'a str, options: &'a Options, definitions: &'a Definitions<'a>) -> Context<'a> {
        Context { source, options, definitions, passed: Cell::new(0), used: OnceCell::new() }
    }

    /// Whether the text uses a name outside its definition, as `tensor<64x64xf16, #mma>` uses
    /// `mma`.
    pub fn uses(&self, name: &str) -> bool {
        self.used.get_or_init(|| used_names(self.source)).contains(name)
    }

    /// Declares that no layout of any system begins before a position. So if a reader goes far and
    /// finds nothing, the text is not searched again at each of its brackets.
    pub fn pass(&self, to: usize) {
        self.passed.set(self.passed.get().max(to));
    }

    /// The position before which no layout begins.
    pub(crate) fn passed(&self) -> usize {
        self.passed.get()
    }
}

/// The names after `#` that are not followed by `=`.
fn used_names(source: &str) -> HashSet<String> {
    let names = source.match_indices('#').filter_map(|(at, _)| {
        let rest = source.get(at + 1..)?;
        let end = rest.bytes().position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'.'));
        let (name, behind) = rest.split_at(end.unwrap_or(rest.len()));
        (!name.is_empty() && !behind.trim_start_matches([' ', '\t']).starts_with('=')).then(|| name.to_owned())
    });
    names.collect()
}

/// The names that a text defines: `#mma = #ttg.nvidia_mma<..>` and `!t = ..` of MLIR, `using T =
/// ..;` of C++, and under `@mesh` the meshes of Shardy, `sdy.mesh @mesh = <..>`. If a name has
/// several definitions, the last one before its use counts.
#[derive(Debug, Default)]
pub struct Definitions<'a> {
    texts: HashMap<&'a str, Vec<(usize, &'a str)>>,
    meshes: HashMap<&'a str, Vec<(usize, &'a str)>>,
}

impl<'a> Definitions<'a> {
    /// The definitions of a text, found in one pass over its lines.
    pub fn of(source: &'a str) -> Definitions<'a> {
        let mut texts: HashMap<&str, Vec<(usize, &str)>> = HashMap::new();
        let mut meshes_of_text: HashMap<&str, Vec<(usize, &str)>> = HashMap::new();
        let mut start = 0;
        for line in source.split_inclusive('\n') {
            if let Some((name, at)) = defined(line) {
                let text = line.get(at..).unwrap_or("").trim();
                texts.entry(name).or_default().push((start + at, text));
            }
            if line.contains("sdy.mesh") {
                for (name, at) in meshes(line) {
                    let text = line.get(at..).unwrap_or("").trim();
                    meshes_of_text.entry(name).or_default().push((start + at, text));
                }
            }
            start += line.len();
        }
        Definitions { texts, meshes: meshes_of_text }
    }

    /// The definition of a name at a position, up to the end of its line, and the beginning of that
    /// text.
    pub fn get(&self, name: &str, at: usize) -> Option<(&'a str, usize)> {
        let texts = match name.strip_prefix('@') {
            Some(mesh) => self.meshes.get(mesh)?,
            None => self.texts.get(name)?,
        };
        let before = texts.partition_point(|(start, _)| *start <= at);
        let (start, text) = texts.get(before.saturating_sub(1))?;
        Some((text, *start))
    }
}

/// The names of the meshes that a line defines, and the beginnings of their axes: `sdy.mesh @mesh =
/// <[..]>`, `"sdy.mesh"() <{mesh = #sdy.mesh<[..]>, sym_name = "mesh"}>`, and `mesh =
/// #sdy.mesh<[..]>` among the attributes of a module.
/// #sdy.mesh<[..]>` among the attributes of a module.
fn meshes(line: &str) -> Vec<(&str, usize)> {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '-');
    let named = line.match_indices("sdy.mesh @").filter_map(|(at, sign)| {
        let begin = at + sign.len();
        let rest = line.get(begin..)?;
        let (name, behind) = rest.split_at(rest.find(|c| !word(c))?);
        let axes = behind.trim_start().strip_prefix('=')?.trim_start();
        axes.starts_with('<').then(|| (name, line.len() - axes.len()))
    });
    let symbol = line.split_once("sym_name = \"").and_then(|(_, rest)| Some(rest.split_once('"')?.0));
    let listed = line.match_indices("#sdy.mesh<").filter_map(|(at, sign)| {
        let label = line.get(..at)?.trim_end().strip_suffix('=')?.trim_end();
        let start = label.char_indices().rev().find(|(_, c)| !word(*c)).map_or(0, |(at, c)| at + c.len_utf8());
        Some((symbol.or(label.get(start..))?, at + sign.len() - 1))
    });
    named.chain(listed).filter(|(name, _)| !name.is_empty()).collect()
}

/// The name that a line defines, and the beginning of its text.
fn defined(line: &str) -> Option<(&str, usize)> {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let (marked, rest) = match text.strip_prefix("using ") {
        Some(rest) => (false, rest),
        None if text.starts_with(['#', '!']) => (true, text),
        None => return None,
    };
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
    let length = usize::from(marked) + rest.get(usize::from(marked)..)?.find(|c| !word(c))?;
    let name = rest.get(..length).filter(|name| name.len() > usize::from(marked))?;
    let after = rest.get(length..)?.trim_start().strip_prefix('=')?.trim_start();
    // `==` is a comparison.
    (!after.starts_with('=')).then(|| (name, indent + text.len() - after.len()))
}

#[cfg(test)]
mod tests {
    use super::Definitions;

    #[test]
    fn the_last_definition_before_a_place_counts() {
        let text = "#a = #x.one<>\n  using L = Layout<_4>;\n#a = #x.two<>\n#a == 3\n";
        let definitions = Definitions::of(text);
        assert_eq!(definitions.get("#a", 20).unwrap().0, "#x.one<>");
        assert_eq!(definitions.get("#a", text.len()).unwrap().0, "#x.two<>");
        assert_eq!(definitions.get("L", text.len()).unwrap().0, "Layout<_4>;");
        assert!(definitions.get("#b", 0).is_none());
    }
}
