//! A reader of expressions: words and operators, and the tree that parentheses and precedence make
//! of them.

/// The words of a text: names, numbers, operators.
pub fn words(text: &str) -> Vec<String> {
    const LONG: [&str; 9] = ["<<", ">>", "//", "&&", ">=", "==", "->", "::", "if"];
    let (mut out, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let length = if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
            continue;
        } else if first.is_ascii_alphanumeric() || first == '_' || first == '#' {
            rest.find(|letter: char| {
                !(letter.is_ascii_alphanumeric() || letter == '_' || letter == '#' || letter == '.')
            })
            .unwrap_or(rest.len())
        } else {
            LONG.iter().find(|long| rest.starts_with(**long)).map_or(first.len_utf8(), |long| long.len())
        };
        out.push(rest[..length].to_string());
        rest = &rest[length..];
    }
    out
}

/// The tree of an expression, written with all parentheses; none if it is not one of the common
/// operators alone.
pub fn tree(words: &[String], bits_above_comparison: bool) -> Option<String> {
    let mut reader = Reader { words, at: 0, bits_above_comparison };
    let tree = reader.expression(0)?;
    (reader.at == words.len()).then_some(tree)
}

struct Reader<'a> {
    words: &'a [String],
    at: usize,
    bits_above_comparison: bool,
}

impl Reader<'_> {
    fn level(&self, word: &str) -> Option<u8> {
        Some(match word {
            "*" | "/" | "//" | "%" => 10,
            "+" | "-" => 9,
            "<<" | ">>" => 8,
            "&" if self.bits_above_comparison => 7,
            "^" if self.bits_above_comparison => 6,
            "<" | ">=" => 5,
            "&" => 4,
            "^" => 3,
            "&&" | "and" => 2,
            _ => return None,
        })
    }

    fn expression(&mut self, least: u8) -> Option<String> {
        let mut left = self.operand()?;
        while let Some(word) = self.words.get(self.at) {
            let Some(level) = self.level(word).filter(|level| *level >= least) else { break };
            self.at += 1;
            let right = self.expression(level + 1)?;
            left = format!("({left} {word} {right})");
        }
        Some(left)
    }

    fn operand(&mut self) -> Option<String> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        match word.as_str() {
            "-" => Some(format!("-{}", self.operand()?)),
            "(" => {
                let inner = self.expression(0)?;
                (self.words.get(self.at)? == ")").then(|| self.at += 1)?;
                Some(inner)
            }
            word if word.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_') => {
                Some(word.to_string())
            }
            _ => None,
        }
    }
}
