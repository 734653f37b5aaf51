//! Calls in Python whose arguments are literals: `Layout((4, 8), stride=(8, 1))`.
//!
//! Law: arguments are integers, nested tuples of integers, and `None`, positional or by keyword, on
//! one line or several, with comments. A call with any other argument (a name, a call, an f-string,
//! an operator) is not recognized. No value is computed, so nothing can be executed.

/// The longest comment that is skipped, in bytes.
const MAX_COMMENT: usize = 1 << 12;
/// The deepest nesting of tuples.
const MAX_DEPTH: usize = 24;

/// The arguments of a call: keywords, and values in the notation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// The byte after the closing parenthesis.
    pub end: usize,
    /// Keyword, if any, and value of each argument; a value is None for Python's `None`.
    pub arguments: Vec<(Option<String>, Option<String>)>,
}

impl Call {
    /// Reads the call whose opening parenthesis is just before this byte; None if an argument is
    /// not a literal, or if a positional argument follows a keyword argument.
    pub(crate) fn read(source: &str, from: usize) -> Option<Call> {
        let mut reader = Reader { source, at: from };
        let mut arguments: Vec<(Option<String>, Option<String>)> = Vec::new();
        loop {
            reader.blanks();
            if reader.take(')') {
                return Some(Call { end: reader.at, arguments });
            }
            let name = reader.keyword();
            if name.is_none() && arguments.iter().any(|(name, _)| name.is_some()) {
                return None;
            }
            reader.blanks();
            let start = reader.at;
            let value = if reader.word() == Some("None") {
                None
            } else {
                reader.at = start;
                Some(reader.value(0)?)
            };
            arguments.push((name, value));
            reader.blanks();
            if !reader.take(',') && reader.peek() != Some(')') {
                return None;
            }
        }
    }

    /// The notation `shape:stride`, or `shape`, if the arguments have this form.
    pub(crate) fn layout(&self) -> Option<String> {
        let [mut shape, mut stride] = [None, None];
        for (place, (name, value)) in self.arguments.iter().enumerate() {
            let own = match (name.as_deref(), place) {
                (Some("shape"), _) | (None, 0) => &mut shape,
                (Some("stride"), _) | (None, 1) => &mut stride,
                _ => return None,
            };
            if own.replace(value.clone()).is_some() {
                return None;
            }
        }
        let shape = shape??;
        Some(stride.flatten().map_or(shape.clone(), |stride| format!("{shape}:{stride}")))
    }
}

struct Reader<'a> {
    source: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(sign);
        self.at += if found { sign.len_utf8() } else { 0 };
        found
    }

    /// Skips blanks, line ends, `\` before a line end, and comments.
    fn blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            let length = match rest.get(blank..).unwrap_or("") {
                // A longer comment ends the search.
                comment if comment.starts_with('#') => {
                    let bytes = comment.as_bytes();
                    let window = bytes.get(..MAX_COMMENT).unwrap_or(bytes);
                    window.iter().position(|byte| *byte == b'\n').unwrap_or(0)
                }
                joined if joined.starts_with("\\\n") => 1,
                joined if joined.starts_with("\\\r\n") => 1,
                _ => 0,
            };
            self.at += blank + length;
            if length == 0 {
                return;
            }
        }
    }

    /// Reads the word that begins here.
    fn word(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let word = rest.get(..length).filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))?;
        self.at += length;
        Some(word)
    }

    /// Reads the keyword of an argument and its `=`.
    fn keyword(&mut self) -> Option<String> {
        let start = self.at;
        let name = self.word();
        self.blanks();
        if let Some(name) = name
            && !self.rest().starts_with("==")
            && self.take('=')
        {
            return Some(name.to_owned());
        }
        self.at = start;
        None
    }

    /// Reads an integer, a tuple or a list. A list counts as a tuple, as in the constructors of
    /// layouts.
    fn value(&mut self, depth: usize) -> Option<String> {
        self.blanks();
        let close = match self.peek()? {
            '(' => ')',
            '[' => ']',
            _ => return self.number(),
        };
        if depth > MAX_DEPTH {
            return None;
        }
        self.at += 1;
        let mut items = Vec::new();
        let mut is_tuple = close == ']';
        loop {
            self.blanks();
            if self.take(close) {
                break;
            }
            items.push(self.value(depth + 1)?);
            self.blanks();
            if self.take(',') {
                is_tuple = true;
            } else if self.peek() != Some(close) {
                return None;
            }
        }
        match items.as_slice() {
            [] => None,
            // `(4)` is an integer in parentheses, not a tuple.
            [only] if !is_tuple => Some(only.clone()),
            [only] => Some(format!("({only},)")),
            items => Some(format!("({})", items.join(","))),
        }
    }

    fn number(&mut self) -> Option<String> {
        let sign = if self.take('-') { "-" } else { "" };
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.')).unwrap_or(rest.len());
        let text = rest.get(..length)?;
        let digits = text.replace('_', "");
        let fits = text.starts_with(|c: char| c.is_ascii_digit()) && !text.ends_with('_') && !text.contains("__");
        // Python allows a leading 0 only in zero itself and in prefixes such as `0x10`.
        if !fits || !digits.bytes().all(|byte| byte.is_ascii_digit()) || (digits.len() > 1 && digits.starts_with('0')) {
            return None;
        }
        self.at += length;
        Some(format!("{sign}{digits}"))
    }
}

#[cfg(test)]
mod tests {
    use super::Call;

    fn layout(arguments: &str) -> Option<String> {
        let call = Call::read(arguments, 0)?;
        assert_eq!(call.end, arguments.rfind(')').unwrap() + 1);
        call.layout()
    }

    #[test]
    fn literals_are_read() {
        for (arguments, wanted) in [
            ("(4, 8), (8, 1))", "(4,8):(8,1)"),
            ("(4, (2, 4)), stride=(1, (16, 4)))", "(4,(2,4)):(1,(16,4))"),
            ("stride = (8, 1), shape = (4, 8))", "(4,8):(8,1)"),
            ("(\n    4,  # rows, not (5\n    8,\n), (8, 1),\n)", "(4,8):(8,1)"),
            ("[4, 8], [8, -1])", "(4,8):(8,-1)"),
            ("1_024, 2)", "1024:2"),
            ("(4,), (1,))", "(4,):(1,)"),
            ("((4)), (1))", "4:1"),
            ("(4, 8), None)", "(4,8)"),
            ("(4, \\\n 8))", "(4,8)"),
        ] {
            assert_eq!(layout(arguments).as_deref(), Some(wanted), "{arguments}");
        }
    }

    #[test]
    fn what_is_no_literal_says_nothing() {
        for arguments in [
            "",
            ")",
            "shape, stride)",
            "(M, 8))",
            "(4 * 2, 8))",
            "(4, 8), f\"{x}\")",
            "f'{(4, 8)}')",
            "\"(4, 8)\")",
            "make_shape(4, 8))",
            "Layout((4, 8)), 2)",
            "(4, 8), stride=lambda i: i)",
            "*shape)",
            "**options)",
            "(4, 8) if x else 2)",
            "(4.0, 8))",
            "0x10)",
            "(04, 8))",
            "4_)",
            "(4, 8), (8, 1), 3)",
            "(4, 8), shape=(4, 8))",
            "stride=(8, 1), (4, 8))",
            "(4, 8), order=(1, 0))",
            "(4; 8))",
            "(4, 8",
            "(4, 8 # )",
            "())",
            "(4,, 8))",
        ] {
            assert_eq!(Call::read(arguments, 0).and_then(|call| call.layout()), None, "{arguments}");
        }
        assert_eq!(Call::read(&"(".repeat(100_000), 0), None);
    }
}
