//! Literal arguments of a call in Python: `Layout((4, 8), stride=(8, 1))`.
//!
//! Law: arguments are whole numbers, tuples of them and `None`, with or without names, on one line
//! or several, with comments. Anything else (a name, a call, an f-string, an operator) is no
//! literal, and then the call says nothing. No value is computed, so nothing can be executed.

/// How long a comment is, in bytes.
const MAX_COMMENT: usize = 1 << 12;
/// How deep tuples nest.
const MAX_DEPTH: usize = 24;

/// The arguments of a call: their names where they have one, and their values in the notation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// The byte behind the closing parenthesis.
    pub end: usize,
    /// Names and values; a value is none if it is `None`.
    pub arguments: Vec<(Option<String>, Option<String>)>,
}

impl Call {
    /// The call whose opening parenthesis stands before this byte; none if an argument is no
    /// literal, or where a positional one stands behind one with a name.
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

    /// `shape:stride`, or `shape`, where these are the arguments.
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

    /// Passes blanks, ends of lines, `\` before one, and comments.
    fn blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            let length = match rest.get(blank..).unwrap_or("") {
                // A line that is longer is no comment of a call.
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

    /// The word that begins here; it is passed.
    fn word(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let word = rest.get(..length).filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))?;
        self.at += length;
        Some(word)
    }

    /// The name of an argument, with its `=`.
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

    /// A whole number or a tuple. A list is one, too, as layouts take it.
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
            // `(4)` is a number in parentheses.
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
        // A number of Python begins with 0 only where it is 0, `0x10` or the like.
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
