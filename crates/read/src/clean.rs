//! Replaces by blanks what terminals and loggers add to a text.
//!
//! Law: the text keeps its length, so that every location in it stays valid. These are replaced by
//! blanks: the codes for colours and for erasing (`ESC [ .. m`, `ESC [ K`); spaces that are not
//! ASCII; the prefixes that launchers and loggers write before each line: `[rank0]: `, a date and
//! time, the head of glog, `E   ` of pytest; and a quotation or comment sign with which every line
//! begins. An HTML entity, `&lt;`, becomes its character and blanks.

use std::borrow::Cow;

/// Spaces that editors, chats and web pages use instead of a blank.
const SPACES: [char; 5] = ['\u{a0}', '\u{202f}', '\u{2007}', '\u{200b}', '\u{feff}'];

/// Signs of quotation and of comments.
const QUOTES: [&str; 6] = ["> ", "| ", "# ", "// ", "%% ", "+ "];

/// HTML entities and their characters.
const ENTITIES: [(&str, &str); 5] =
    [("&lt;", "<   "), ("&gt;", ">   "), ("&amp;", "&    "), ("&quot;", "\"     "), ("&#39;", "'    ")];

/// The text without colours, prefixes of log lines, quotation signs and HTML entities.
pub(crate) fn clean(source: &str) -> Cow<'_, str> {
    // A page that escapes one of these signs escapes all of them.
    if source.contains("&lt;") && source.contains("&gt;") {
        let signs = ENTITIES.iter().fold(source.to_owned(), |text, (entity, sign)| text.replace(entity, sign));
        return Cow::Owned(clean(&signs).into_owned());
    }
    let marked = source.contains('\u{1b}') || (!source.is_ascii() && source.contains(SPACES));
    let quoted = quotation(source);
    let headed = || source.split('\n').any(|line| head(line) > 0);
    if !marked && quoted.is_none() && !headed() {
        return Cow::Borrowed(source);
    }
    let mut text = String::with_capacity(source.len());
    for line in source.split_inclusive('\n') {
        let own = match quoted {
            Some(sign) if line.starts_with(sign) => sign.len(),
            _ => 0,
        };
        let rest = line.get(own..).unwrap_or("");
        let coloured = if marked { code(rest) } else { 0 };
        let own = own + coloured + head(rest.get(coloured..).unwrap_or(""));
        text.extend(std::iter::repeat_n(' ', own));
        let rest = line.get(own..).unwrap_or("");
        if marked { without_codes(rest, &mut text) } else { text.push_str(rest) }
    }
    Cow::Owned(text)
}

/// The length in bytes of the terminal code with which a text begins.
fn code(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 0 };
    let length = rest.bytes().take(32).position(|byte| !(byte.is_ascii_digit() || byte == b';'));
    match length.and_then(|length| Some((length, *rest.as_bytes().get(length)?))) {
        Some((length, b'm' | b'K')) => "\u{1b}[".len() + length + 1,
        _ => 0,
    }
}

fn without_codes(line: &str, text: &mut String) {
    let mut rest = line;
    while let Some(next) = rest.chars().next() {
        let length = match next {
            '\u{1b}' => code(rest),
            _ if SPACES.contains(&next) => next.len_utf8(),
            _ => 0,
        };
        if length > 0 {
            text.extend(std::iter::repeat_n(' ', length));
            rest = rest.get(length..).unwrap_or("");
        } else {
            let plain = rest.char_indices().skip(1).find(|(_, c)| *c == '\u{1b}' || SPACES.contains(c));
            let (own, behind) = rest.split_at(plain.map_or(rest.len(), |(at, _)| at));
            text.push_str(own);
            rest = behind;
        }
    }
}

/// The sign with which every line begins that is not empty, if there are several such lines.
fn quotation(source: &str) -> Option<&'static str> {
    let sign = QUOTES.into_iter().find(|sign| source.starts_with(sign))?;
    let mut lines = source.lines().filter(|line| !line.trim().is_empty());
    let alike = lines.by_ref().all(|line| line.starts_with(sign) || line.trim_end() == sign.trim_end());
    (alike && source.trim_end().contains('\n')).then_some(sign)
}

/// The length in bytes of the prefix that a launcher or a logger wrote before the text of a line.
fn head(line: &str) -> usize {
    let mut end = 0;
    // A line such as `[rank0]: W0312 12:30:01.123456 ..` has several prefixes.
    for _ in 0..4 {
        let rest = line.get(end..).unwrap_or("");
        // Two prefixes may be separated by a blank.
        let blank = usize::from(end > 0 && rest.starts_with(' '));
        let rest = rest.get(blank..).unwrap_or("");
        let found = [rank, glog, time, pytest].into_iter().map(|head| head(rest)).find(|length| *length > 0);
        match found {
            Some(length) => end += blank + length,
            None => break,
        }
    }
    end
}

/// `[rank0]: ` of PyTorch, `[default3]:` of torchrun, `(EngineCore_0 pid=123) ` of Ray and vLLM.
fn rank(line: &str) -> usize {
    if line.starts_with("[rank") || line.starts_with("[default") {
        let end = line.bytes().take(24).position(|byte| byte == b']');
        let inner = end.and_then(|end| line.get(1..end)).unwrap_or("");
        let digits = inner.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        return match end.filter(|_| is_number) {
            Some(end) => end + 1 + usize::from(line.as_bytes().get(end + 1) == Some(&b':')),
            None => 0,
        };
    }
    let inner = line.strip_prefix('(').unwrap_or("");
    let end = inner.bytes().take(64).position(|byte| byte == b')');
    match end.and_then(|end| Some((end, inner.get(..end)?))) {
        Some((end, inner)) if inner.contains(" pid=") && inner.bytes().all(|b| b.is_ascii_graphic() || b == b' ') => {
            end + 2
        }
        _ => 0,
    }
}

/// `W0312 12:30:01.123456 139812 torch/_inductor/x.py:123] `
fn glog(line: &str) -> usize {
    let bytes = line.as_bytes();
    let digits = |from: usize, to: usize| bytes.get(from..to).is_some_and(|own| own.iter().all(u8::is_ascii_digit));
    if !matches!(bytes.first(), Some(b'I' | b'W' | b'E' | b'F' | b'V')) || !digits(1, 5) || bytes.get(5) != Some(&b' ')
    {
        return 0;
    }
    let end = bytes.iter().take(160).position(|byte| *byte == b']');
    end.filter(|_| clock(line.get(6..).unwrap_or("")) > 0).map_or(0, |end| end + 1)
}

/// The length in bytes of a time such as `12:30:01.123456`.
fn clock(text: &str) -> usize {
    let bytes = text.as_bytes();
    let fits = bytes.get(..8).is_some_and(|own| {
        own.iter().enumerate().all(|(at, byte)| if at % 3 == 2 { *byte == b':' } else { byte.is_ascii_digit() })
    });
    if !fits {
        return 0;
    }
    let mut end = 8;
    if matches!(bytes.get(end), Some(b'.' | b',')) {
        end += 1 + bytes.iter().skip(end + 1).take_while(|byte| byte.is_ascii_digit()).count();
    }
    end + usize::from(bytes.get(end) == Some(&b'Z'))
}

/// `2026-01-31T12:30:01.123Z `, `2026-01-31 12:30:01,123 `, with or without brackets.
fn time(line: &str) -> usize {
    let open = usize::from(line.starts_with('['));
    let bytes = line.as_bytes();
    let date = bytes.get(open..open + 10).is_some_and(|own| {
        own.iter()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { matches!(byte, b'-' | b'/') } else { byte.is_ascii_digit() })
    });
    if !date || !matches!(bytes.get(open + 10), Some(b' ' | b'T')) {
        return 0;
    }
    let behind = open + 11;
    let length = line.get(behind..).map_or(0, clock);
    let end = behind + length;
    match (length, open) {
        (0, _) => 0,
        (_, 0) => end + usize::from(bytes.get(end) == Some(&b' ')),
        (_, _) if bytes.get(end) == Some(&b']') => end + 1,
        _ => 0,
    }
}

/// `E   ` before the message of a failed assertion.
fn pytest(line: &str) -> usize {
    let blanks = line.strip_prefix('E').map_or(0, |rest| rest.len() - rest.trim_start_matches(' ').len());
    if blanks >= 3 { 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn what_is_added_becomes_blank_and_nothing_moves() {
        for (text, wanted) in [
            ("\u{1b}[01m\u{1b}[Kcute::C<\u{1b}[0;1;36m4\u{1b}[0m>\u{1b}[m", "cute::C<4>"),
            ("[rank0]: sA: (_8,_64):(_64,_1)\n", "sA: (_8,_64):(_64,_1)"),
            ("[rank12]:   ThrID", "ThrID"),
            ("[default3]:x", "x"),
            ("2026-01-31 12:30:01,123 x", "x"),
            ("[2026-01-31 12:30:01,123] x", "x"),
            ("2026-01-31T12:30:01.1234567Z x", "x"),
            ("W0312 12:30:01.123456 139812 torch/x.py:12] x", "x"),
            ("[rank0]: W0312 12:30:01.123456 139812 torch/x.py:12] x", "x"),
            ("[rank0]:W0312 12:30:01.123456 139812 torch/x.py:12] [0/0] x", "[0/0] x"),
            ("(EngineCore_0 pid=12) x", "x"),
            ("E       x", "x"),
            ("> a\n> b\n>\n> c", "a    b     c"),
            ("_8,\u{a0}_64", "_8,_64"),
            ("C&lt;8&gt; &amp;x", "C<8 &x"),
            ("\u{1b}[31mbold", "bold"),
        ] {
            let found = clean(text);
            assert_eq!(found.len(), text.len(), "{text:?}");
            let squeezed: String = found.split_whitespace().collect::<Vec<_>>().join(" ");
            let (left, right) = (squeezed.replace(' ', ""), wanted.replace(' ', ""));
            assert_eq!(left.replace('>', ""), right.replace('>', ""), "{text:?} is {found:?}");
        }
        for text in [
            "(_4,_8):(_8,_1)",
            "[ranks] x",
            "[rank] x",
            "[0, 1]: x",
            "2026-01-31 x",
            "> a\nb",
            "> a",
            "E x",
            "Else   x",
            "\u{1b}]0;title",
            "(pid) x",
            "1:23:45 x",
        ] {
            assert_eq!(clean(text), text);
        }
        // Law: every prefix of any such text keeps its length.
        let all = "\u{1b}[01m[rank0]: E    W0312 12:30:01.1 x] \u{a0}\u{1b}[";
        for end in (0..=all.len()).filter(|end| all.is_char_boundary(*end)) {
            assert_eq!(clean(&all[..end]).len(), end);
        }
    }
}
