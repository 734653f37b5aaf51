//! Patterns that stand for many names.
//!
//! Law: a pattern is text with choices in braces. `{F16,BF16}` means one of the two, `{,_SATURATE}`
//! means nothing or `_SATURATE`, and `{8,16,..,256}` means one number of the arithmetic
//! progression. The names of a pattern are all combinations of choices, the first choice varying
//! slowest; a name matches exactly if it is one of them.
//!
//! A name with arguments in angle brackets, or in a namespace, has a second spelling as a word,
//! with `_` for `<`, `,` and `::`. The expression language uses this spelling:
//! `UniversalFMA_F32_F32_F32_F32`.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A text with choices in braces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pattern(pub(crate) &'static str);

/// A literal text, and the choices in braces after it.
type PatternPart = (&'static str, Option<Vec<Cow<'static, str>>>);

impl Pattern {
    fn parts(self) -> impl Iterator<Item = PatternPart> {
        self.0.split('}').filter(|part| !part.is_empty()).map(|part| match part.split_once('{') {
            Some((plain, choices)) => (plain, Some(alternatives(choices))),
            None => (part, None),
        })
    }

    /// Whether a name matches the pattern.
    pub(crate) fn matches(self, name: &str) -> bool {
        let parts: Vec<PatternPart> = self.parts().collect();
        matches(name, &parts)
    }

    /// The name that a word spells, if it matches the pattern.
    pub(crate) fn spelt(self, word: &str) -> Option<String> {
        let parts: Vec<PatternPart> = self.parts().collect();
        spelt(word, &parts)
    }

    /// All names that match.
    pub(crate) fn names(self) -> Vec<String> {
        let mut names = Vec::from([String::new()]);
        for (plain, choices) in self.parts() {
            let choices = choices.unwrap_or_else(|| Vec::from(["".into()]));
            let each = |name: &String| -> Vec<String> {
                choices.iter().map(|choice| alloc::format!("{name}{plain}{choice}")).collect()
            };
            names = names.iter().flat_map(each).collect();
        }
        names
    }
}

/// Parses the alternatives of a choice: `F16,BF16`, or `8,16,..,256`.
fn alternatives(text: &'static str) -> Vec<Cow<'static, str>> {
    let words: Vec<&str> = text.split(',').collect();
    if let [first, second, "..", last] = *words.as_slice()
        && let (Ok(first), Ok(second), Ok(last)) = (first.parse::<u32>(), second.parse::<u32>(), last.parse::<u32>())
    {
        let step = second.saturating_sub(first).max(1) as usize;
        return (first..=last).step_by(step).map(|number| Cow::Owned(number.to_string())).collect();
    }
    words.into_iter().map(Cow::Borrowed).collect()
}

/// Whether a name matches the parts.
fn matches(name: &str, parts: &[PatternPart]) -> bool {
    let Some(((plain, choices), others)) = parts.split_first() else { return name.is_empty() };
    let Some(rest) = name.strip_prefix(plain) else { return false };
    match choices {
        None => matches(rest, others),
        Some(choices) => {
            choices.iter().any(|choice| rest.strip_prefix(&**choice).is_some_and(|rest| matches(rest, others)))
        }
    }
}

/// The spelling of a name as a word: underscores replace `<`, `,` and `::`.
///
/// ```
/// use tilewright_layout::atoms::{CopyAtom, word};
///
/// assert_eq!(word("SM80_CP_ASYNC_CACHEALWAYS<uint32_t>"), "SM80_CP_ASYNC_CACHEALWAYS_uint32_t");
/// let atom = CopyAtom::named("SM80_CP_ASYNC_CACHEALWAYS_uint32_t")?;
/// assert_eq!(atom.name(), "SM80_CP_ASYNC_CACHEALWAYS<uint32_t>");
/// # Ok::<(), tilewright_layout::atoms::AtomError>(())
/// ```
pub fn word(name: &str) -> String {
    let joined = name.replace("::", "_");
    let letters = joined.chars().filter(|letter| *letter != '>');
    letters.map(|letter| if matches!(letter, '<' | ',') { '_' } else { letter }).collect()
}

/// The name that a word spells, if it matches the parts.
fn spelt(text: &str, parts: &[PatternPart]) -> Option<String> {
    let Some(((plain, choices), others)) = parts.split_first() else {
        return text.is_empty().then(String::new);
    };
    let rest = text.strip_prefix(word(plain).as_str())?;
    let none = [Cow::Borrowed("")];
    choices.as_deref().unwrap_or(&none).iter().find_map(|choice| {
        let behind = spelt(rest.strip_prefix(word(choice).as_str())?, others)?;
        Some(alloc::format!("{plain}{choice}{behind}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_pattern_matches_it_and_no_other() {
        let pattern = Pattern("A_{8,16,..,32}x{S8,U8}{,_SAT}_B");
        let names = pattern.names();
        assert_eq!(names.len(), 16);
        assert_eq!(names.first().map(String::as_str), Some("A_8xS8_B"));
        assert!(names.iter().all(|name| pattern.matches(name)));
        assert_eq!(names.get(3).map(String::as_str), Some("A_8xU8_SAT_B"));
        for other in ["A_12xS8_B", "A_8xS8", "A_8xS8_BB", "A_40xS8_B", ""] {
            assert!(!pattern.matches(other), "{other}");
        }
        assert_eq!(Pattern("PLAIN").names(), ["PLAIN"]);
        assert!(Pattern("X{1,12}{2,}").matches("X12") && Pattern("X{1,12}{2,}").matches("X122"));
    }
}
