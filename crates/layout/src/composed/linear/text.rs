//! Linear layouts as text.
//!
//! Law: the printed text parses to the same linear layout.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::LinearLayout;
use crate::ground::words::debug_as_text;
use crate::refusal::error::LayoutError;
use crate::value::tree::Tree;

impl fmt::Display for LinearLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, _) in &self.inputs {
            write!(f, "{name}=[")?;
            for (position, image) in self.bases(name).unwrap_or_default().iter().enumerate() {
                f.write_str(if position > 0 { ",(" } else { "(" })?;
                for (position, index) in image.iter().enumerate() {
                    f.write_str(if position > 0 { "," } else { "" })?;
                    write!(f, "{index}")?;
                }
                f.write_str(")")?;
            }
            f.write_str("] ")?;
        }
        f.write_str("->")?;
        self.outputs.iter().try_for_each(|(name, bits)| write!(f, " {name}:{}", 1_u64 << bits))
    }
}

debug_as_text!(LinearLayout);

impl FromStr for LinearLayout {
    type Err = LayoutError;

    /// Parses `input=[(index,..),..] .. -> output:size ..`: for each input the images of its powers
    /// of two, and for each output its size, a power of two.
    fn from_str(text: &str) -> Result<LinearLayout, LayoutError> {
        let fail = |at, expected| Err(LayoutError::Syntax { at, expected });
        let Some((left, right)) = text.split_once("->") else { return fail(text.len(), "'->' before the outputs") };
        let mut outputs: Vec<(&str, usize)> = Vec::new();
        for word in right.split_whitespace() {
            let size = word.split_once(':').and_then(|(name, size)| Some((name, size.parse::<u64>().ok()?)));
            match size.filter(|(_, size)| size.is_power_of_two()) {
                Some((name, size)) => outputs.push((name, size.trailing_zeros() as usize)),
                None => return fail(left.len() + 2, "outputs name:size, each size a power of two"),
            }
        }
        let mut inputs: Vec<(&str, Vec<Vec<u64>>)> = Vec::new();
        let mut rest = left.trim_start();
        while !rest.is_empty() {
            let at = left.len() - rest.len();
            let Some((name, after)) = rest.split_once('=') else { return fail(at, "an input name=[images]") };
            let images = after.trim_start().strip_prefix('[').and_then(|after| after.split_once(']'));
            let Some((images, after)) = images else { return fail(at, "an input name=[images]") };
            // It is parsed as a tuple of tuples, with one more pair of parentheses.
            let mut tuple = String::from("(");
            tuple.push_str(images);
            tuple.push(')');
            let Ok(tree) = tuple.parse::<Tree<i64>>() else { return fail(at, "images, each a tuple of indices") };
            let mut bases = Vec::new();
            for image in tree.modes() {
                let indices = image.leaves().iter().map(|index| u64::try_from(*index).ok());
                match indices.collect::<Option<Vec<u64>>>().filter(|_| image.depth() <= 1) {
                    Some(indices) => bases.push(indices),
                    None => return fail(at, "images, each a tuple of indices"),
                }
            }
            inputs.push((name.trim(), bases));
            rest = after.trim_start();
        }
        LinearLayout::new(inputs, outputs)
    }
}
