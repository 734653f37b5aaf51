//! Tests whether a text is only the beginning of a program.

use crate::lex::{Kind, Lexer};

/// Whether `source` ends inside a bracket, or after an operator or `=`, so that more text is needed
/// to complete it.
///
/// An interactive prompt calls this before it evaluates. A text with an error counts as complete.
///
/// ```
/// use tilewright_notation::is_incomplete;
///
/// assert!(is_incomplete("logical_divide((4,8):(8,1),"));
/// assert!(is_incomplete("A ="));
/// assert!(!is_incomplete("(4,8):(8,1)"));
/// assert!(!is_incomplete("(4,8)):(8,1)"));
/// ```
pub fn is_incomplete(source: &str) -> bool {
    let mut lexer = Lexer::new(source);
    let mut depth = 0_i64;
    let mut last = None;
    loop {
        match lexer.next() {
            Ok(token) => match token.kind {
                Kind::End => break,
                // A line that continues must show it before it ends.
                Kind::Newline => {}
                kind => {
                    depth += i64::from(crate::ast::bracket(kind));
                    if depth < 0 {
                        return false;
                    }
                    last = Some((kind, source.get(token.span()).unwrap_or("")));
                }
            },
            Err(_) => return false,
        }
    }
    let goes_on = matches!(
        last,
        Some((Kind::Equals | Kind::Circle | Kind::Colon | Kind::Dot | Kind::Arrow, _)) | Some((Kind::Name, "o"))
    );
    depth > 0 || goes_on
}
