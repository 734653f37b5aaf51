//! The formatter of tile programs: indentation and blanks.
//!
//! Law: only blanks and line ends change, so comments stay. That the program means the same is
//! checked: the text before and the text after parse to programs that print alike. Formatting twice
//! gives the same text as formatting once.

use tilewright_tile::Program;

/// Formats a program: four blanks of indentation for each open brace, one blank between words, no
/// two empty lines in a row, and one newline at the end; None if the text is not a program.
///
/// ```
/// use tilewright_lsp::formatted;
///
/// let text = "tile one {\ninput x: f32 8:1 # read\n  output   y: f32 8:1\ngrid 1\n\n\nstore(y, (0), load(x, (8), (0)))  \n}";
/// let neat = formatted(text).unwrap();
/// assert_eq!(
///     neat,
///     "tile one {\n    input x: f32 8:1 # read\n    output y: f32 8:1\n    grid 1\n\n    store(y, (0), load(x, (8), (0)))\n}\n"
/// );
/// assert_eq!(formatted(&neat).unwrap(), neat);
/// assert_eq!(formatted("tile one {"), None);
/// ```
pub fn formatted(text: &str) -> Option<String> {
    let before: Program = text.parse().ok()?;
    let mut out = String::with_capacity(text.len());
    let (mut depth, mut is_quoted, mut is_empty) = (0_usize, false, true);
    for line in text.lines() {
        if is_quoted {
            // A quoted text that spans several lines is left as it is.
            out.push_str(line);
            out.push('\n');
            is_quoted ^= line.matches('"').count() % 2 == 1;
            continue;
        }
        let line = line.trim();
        if line.is_empty() {
            if !is_empty {
                out.push('\n');
            }
            is_empty = true;
            continue;
        }
        is_empty = false;
        let (code, remark) = parts(line);
        let closes = code.bytes().take_while(|byte| *byte == b'}').count();
        for _ in 0..4 * depth.saturating_sub(closes) {
            out.push(' ');
        }
        out.push_str(&spaced(code.trim_end(), depth == 1));
        if !remark.is_empty() {
            // Comments on neighbouring lines may be aligned with each other, so their distance is
            // kept.
            let gap = code.len() - code.trim_end().len();
            out.extend(std::iter::repeat_n(' ', if code.trim().is_empty() { 0 } else { gap.max(1) }));
            out.push_str(remark);
        }
        out.push('\n');
        for (byte, quoted) in quoting(code) {
            match byte {
                b'{' if !quoted && !is_tensor(code) => depth += 1,
                b'}' if !quoted && !is_tensor(code) => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        is_quoted = code.matches('"').count() % 2 == 1;
    }
    let out = format!("{}\n", out.trim_end());
    let after: Program = out.parse().ok()?;
    (after.to_string() == before.to_string()).then_some(out)
}

/// Whether a line declares a tensor; the braces in its layout do not open a block.
fn is_tensor(code: &str) -> bool {
    ["input", "output", "inout"].contains(&code.split_whitespace().next().unwrap_or(""))
}

/// The bytes of a line, each with whether it is within quotes.
fn quoting(code: &str) -> impl Iterator<Item = (u8, bool)> {
    let mut quoted = false;
    code.bytes().map(move |byte| {
        quoted ^= byte == b'"';
        (byte, quoted)
    })
}

/// Splits a line into its code and its comment.
fn parts(line: &str) -> (&str, &str) {
    let at = quoting(line).position(|(byte, quoted)| byte == b'#' && !quoted);
    line.split_at_checked(at.unwrap_or(line.len())).unwrap_or((line, ""))
}

/// Replaces several blanks outside of quotes by one. The aligned names of tensors stay aligned.
fn spaced(code: &str, in_program: bool) -> String {
    let mut out = String::with_capacity(code.len());
    if in_program && is_tensor(code) {
        let word = code.split_whitespace().next().unwrap_or("");
        let rest = code.get(word.len()..).unwrap_or("");
        let gap = rest.len() - rest.trim_start().len();
        out.push_str(word);
        // `input  x` above `output y`.
        let aligned = word.len() + gap == "output ".len();
        out.push_str(if aligned && word != "output" { "  " } else { " " });
        out.push_str(&spaced(rest.trim_start(), false));
        return out;
    }
    let mut last = ' ';
    let mut quoted = false;
    for c in code.chars() {
        quoted ^= c == '"';
        let c = if c == '\t' && !quoted { ' ' } else { c };
        if quoted || c != ' ' || last != ' ' {
            out.push(c);
        }
        last = c;
    }
    out
}
