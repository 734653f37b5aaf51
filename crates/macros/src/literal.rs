//! The value of a string literal.
//!
//! Law: the value is that of the Rust reference: a raw string is taken verbatim; in any other
//! string escapes are replaced, and a `\` at the end of a line removes the white space that
//! follows.

/// The value of a string literal from its source text; None for any other token.
pub(crate) fn value(token: &str) -> Option<String> {
    if let Some(raw) = token.strip_prefix('r') {
        let inner = raw.trim_matches('#');
        let hashes = (raw.len() - inner.len()) / 2;
        let fence = raw.get(..hashes)?;
        let inner = raw.strip_prefix(fence)?.strip_suffix(fence)?;
        return Some(inner.strip_prefix('"')?.strip_suffix('"')?.to_string());
    }
    let mut rest = token.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut value = String::with_capacity(token.len());
    while let Some(character) = rest.next() {
        if character != '\\' {
            value.push(character);
            continue;
        }
        value.push(match rest.next()? {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '0' => '\0',
            'x' => {
                let digits: String = rest.by_ref().take(2).collect();
                u8::from_str_radix(&digits, 16).ok().filter(u8::is_ascii)?.into()
            }
            'u' => {
                let digits: String = rest.by_ref().take_while(|c| *c != '}').filter(char::is_ascii_hexdigit).collect();
                char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
            }
            '\n' => {
                rest = rest.as_str().trim_start_matches([' ', '\t', '\n', '\r']).chars();
                continue;
            }
            quoted @ ('\\' | '"' | '\'') => quoted,
            _ => return None,
        });
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::value;

    /// Compares the value with what the compiler reads from the same token.
    macro_rules! same {
        ($($literal:literal)*) => {
            $(assert_eq!(value(stringify!($literal)).as_deref(), Some($literal), "{}", stringify!($literal));)*
        };
    }

    #[test]
    fn the_value_is_the_compilers() {
        same!("" "4:1" "\"" "a\tb\r\n\0\\\'\x41\u{2218}\u{1_F600}" "∘ é" r"\n" r#"a"b"# r##"a"#b"## r"" r#"#"# r##"###"##);
        same!(
            "(8,16)\
               :(16,1)"
            "one
             two"
        );
    }

    #[test]
    fn other_literals_have_none() {
        for token in ["5", "'a'", "b\"4:1\"", "c\"4:1\"", "br\"4:1\"", "1.5", "4u8"] {
            assert_eq!(value(token), None, "{token}");
        }
    }
}
