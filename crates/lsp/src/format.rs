//! The layout of a program's text: indentation and blanks.
//!
//! Law: only blanks, and the ends of lines, change. So remarks stay, and the program means the
//! same, which is checked: the text before and the text after print alike. Formatting twice is
//! formatting once.

use tilewright_tile::Program;

/// The text with four blanks for each brace around a line, one between words, no empty line twice,
/// and one end of a line at the end; none if the text is no program.
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
            // A text in quotes that goes on over lines is left as it is.
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
            // Remarks of several lines may be aligned with each other: their distance stays.
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

/// Whether a line declares a tensor: the braces in its layout open no body.
fn is_tensor(code: &str) -> bool {
    ["input", "output", "inout"].contains(&code.split_whitespace().next().unwrap_or(""))
}

/// The bytes of a line, and whether each stands in quotes.
fn quoting(code: &str) -> impl Iterator<Item = (u8, bool)> {
    let mut quoted = false;
    code.bytes().map(move |byte| {
        quoted ^= byte == b'"';
        (byte, quoted)
    })
}

/// A line without its remark, and the remark.
fn parts(line: &str) -> (&str, &str) {
    let at = quoting(line).position(|(byte, quoted)| byte == b'#' && !quoted);
    line.split_at_checked(at.unwrap_or(line.len())).unwrap_or((line, ""))
}

/// Code with one blank where it has several, outside of quotes. The names of tensors stay aligned.
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
