//! `tilewright repl`: an expression at a time, with names that last.
//!
//! An expression that is not finished goes on in the next line. The history lives in the user's data directory if there is
//! one; where it cannot be read or written the session goes on without it.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Editor, Helper};
use tilewright::notation::{functions, is_incomplete};
use tilewright::{Environment, evaluate};

use crate::explain;
use crate::show;
use crate::terminal::{Failure, Terminal};

const HELP: &str = "\
An expression prints its value; NAME = EXPRESSION keeps it.
  :help              this text            :functions    all functions
  :help FUNCTION     one function         :names        the names in use
  :show EXPRESSION   draw a layout        :explain X    an error code or a derivation
  :quit              leave (also Ctrl-D)
";

/// What a line asks for.
enum Request<'a> {
    Nothing,
    Quit,
    Help(&'a str),
    Functions,
    Names,
    Show(&'a str),
    Explain(&'a str),
    Unknown(&'a str),
    Program(&'a str),
}

impl Request<'_> {
    fn of(line: &str) -> Request<'_> {
        let line = line.trim();
        let Some(command) = line.strip_prefix(':') else {
            return if line.is_empty() { Request::Nothing } else { Request::Program(line) };
        };
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match name {
            "q" | "quit" | "exit" => Request::Quit,
            "h" | "help" | "?" => Request::Help(rest.trim()),
            "functions" => Request::Functions,
            "names" => Request::Names,
            "show" => Request::Show(rest.trim()),
            "explain" => Request::Explain(rest.trim()),
            _ => Request::Unknown(name),
        }
    }
}

pub fn run(terminal: &mut Terminal) -> Result<(), Failure> {
    let mut session = Session { environment: Environment::new() };
    if !io::stdin().is_terminal() {
        return piped(&mut session, terminal);
    }
    writeln!(terminal.out, "tilewright {}. :help shows what can be typed, :quit leaves.", env!("CARGO_PKG_VERSION"))?;
    terminal.out.flush()?;
    let mut editor: Editor<Assistant, DefaultHistory> =
        Editor::new().map_err(|error| Failure::Usage(format!("the terminal cannot be used: {error}")))?;
    editor.set_helper(Some(Assistant::new(&session.environment)));
    let history = history_file();
    if let Some(path) = &history {
        // A first session has no history yet.
        let _ = editor.load_history(path);
    }
    loop {
        match editor.readline("> ") {
            Ok(line) => {
                let _ = editor.add_history_entry(line.as_str());
                if !session.answer(&line, terminal)? {
                    break;
                }
                terminal.out.flush()?;
                if let Some(assistant) = editor.helper_mut() {
                    *assistant = Assistant::new(&session.environment);
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(Failure::Usage(format!("the terminal cannot be read: {error}"))),
        }
    }
    if let Some(path) = &history {
        // A session without a place for its history is still a session.
        let _ = path.parent().map(std::fs::create_dir_all);
        let _ = editor.append_history(path);
    }
    Ok(())
}

/// Lines from a file or a pipe: the same answers, without prompt and history.
fn piped(session: &mut Session, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut pending = String::new();
    for line in io::stdin().lines() {
        pending.push_str(&line?);
        if is_incomplete(&pending) {
            pending.push('\n');
            continue;
        }
        if !session.answer(&std::mem::take(&mut pending), terminal)? {
            return Ok(());
        }
    }
    if !pending.is_empty() {
        session.answer(&pending, terminal)?;
    }
    Ok(())
}

/// The file of earlier lines: `tilewright/history` in the XDG data directory.
fn history_file() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")))?;
    Some(data.join("tilewright").join("history"))
}

struct Session {
    environment: Environment,
}

impl Session {
    /// Answers a line; `false` ends the session. An error in an expression is shown and does not end it.
    fn answer(&mut self, line: &str, terminal: &mut Terminal) -> Result<bool, Failure> {
        match Request::of(line) {
            Request::Nothing => {}
            Request::Quit => return Ok(false),
            Request::Help("") => terminal.out.write_all(HELP.as_bytes())?,
            Request::Help(name) => match explain::describe(name, terminal.colour) {
                Some(text) => terminal.out.write_all(text.as_bytes())?,
                None => terminal.message(&format!("{}\n", explain::unknown(name))),
            },
            Request::Functions => terminal.out.write_all(explain::list(terminal.colour).as_bytes())?,
            Request::Names => {
                for name in names(&self.environment) {
                    writeln!(terminal.out, "{name}")?;
                }
            }
            Request::Show(source) => match evaluate(source, &mut self.environment) {
                Ok(value) => show::write_value(&show::drawable(value), false, terminal.window(), terminal)?,
                Err(diagnostic) => {
                    terminal.report(&diagnostic, source);
                }
            },
            Request::Explain(subject) => match explain::tell(subject, false, &mut self.environment, terminal) {
                Err(Failure::Usage(message)) => terminal.message(&format!("{message}\n")),
                Err(Failure::Io(error)) => return Err(Failure::Io(error)),
                Err(Failure::Refused) | Ok(()) => {}
            },
            Request::Unknown(name) => terminal.message(&format!("there is no command :{name}; :help lists them\n")),
            Request::Program(source) => match evaluate(source, &mut self.environment) {
                Ok(value) => writeln!(terminal.out, "{value}")?,
                Err(diagnostic) => {
                    terminal.report(&diagnostic, source);
                }
            },
        }
        Ok(true)
    }
}

fn names(environment: &Environment) -> Vec<String> {
    environment.names().map(|name| name.to_string()).collect()
}

/// Completion of names, functions and commands, and the test for unfinished expressions.
struct Assistant {
    words: Vec<String>,
}

impl Assistant {
    fn new(environment: &Environment) -> Assistant {
        const COMMANDS: [&str; 6] = [":help", ":functions", ":names", ":show", ":explain", ":quit"];
        let mut words = names(environment);
        words.extend(functions().iter().map(|function| function.name.to_owned()));
        words.extend(COMMANDS.map(str::to_owned));
        words.sort();
        words.dedup();
        Assistant { words }
    }

    /// The words that begin as the one before the cursor does, and where that one starts.
    fn candidates(&self, line: &str, cursor: usize) -> (usize, Vec<&str>) {
        let before = line.get(..cursor).unwrap_or(line);
        let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut start = before.rfind(|c| !part_of_word(c)).map_or(0, |at| at + 1);
        if before.get(..start) == Some(":") {
            start = 0;
        }
        let typed = before.get(start..).unwrap_or("");
        let matching = |word: &&String| !typed.is_empty() && word.starts_with(typed);
        (start, self.words.iter().filter(matching).map(String::as_str).collect())
    }
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, cursor: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, words) = self.candidates(line, cursor);
        let pair = |word: &str| Pair { display: word.to_owned(), replacement: word.to_owned() };
        Ok((start, words.into_iter().map(pair).collect()))
    }
}

impl Hinter for Assistant {
    type Hint = String;
}

impl Highlighter for Assistant {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Borrowed(prompt)
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let input = context.input();
        let open = !input.trim_start().starts_with(':') && is_incomplete(input);
        Ok(if open { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Helper for Assistant {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_completed_where_it_stands() {
        let assistant = Assistant { words: [":help", "complement", "composition", "tile"].map(str::to_owned).into() };
        assert_eq!(assistant.candidates("comp", 4), (0, vec!["complement", "composition"]));
        assert_eq!(assistant.candidates("size(compl", 10), (5, vec!["complement"]));
        assert_eq!(assistant.candidates("a.til + 1", 5), (2, vec!["tile"]));
        assert_eq!(assistant.candidates(":he", 3), (0, vec![":help"]));
        assert_eq!(assistant.candidates("(4,", 3).1, Vec::<&str>::new());
    }

    #[test]
    fn lines_are_commands_or_programs() {
        assert!(matches!(Request::of("  :help  coalesce "), Request::Help("coalesce")));
        assert!(matches!(Request::of(":q"), Request::Quit));
        assert!(matches!(Request::of("  "), Request::Nothing));
        assert!(matches!(Request::of(" a = 4:2 "), Request::Program("a = 4:2")));
    }
}
