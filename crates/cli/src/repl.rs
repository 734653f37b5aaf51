//! `tilewright repl`: evaluates one expression at a time, and keeps the names.
//!
//! An unfinished expression continues on the next line. The history is in the user's data directory
//! if there is one; if it cannot be read or written, the session continues without it.

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
use tilewright::layout::interrupt;
use tilewright::notation::{functions, is_incomplete};
use tilewright::{Environment, Value};

use crate::explain;
use crate::json;
use crate::output::Failure;
use crate::reader;
use crate::show;
use crate::terminal::Terminal;

const HELP: &str = "\
An expression prints its value; NAME = EXPRESSION keeps it.
  :help              this text            :functions    all functions
  :help FUNCTION     one function         :names        the names in use
  :show EXPRESSION   draw a layout        :explain X    an error code or a derivation
  :quit              leave (also Ctrl-D)
Ctrl-C stops a computation.
";

/// The request in a line.
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
    /// Parses a line. `quit`, `exit` and `help` need no colon, unless they are bound names.
    fn of<'a>(line: &'a str, environment: &Environment) -> Request<'a> {
        let line = line.trim();
        let first = line.split(char::is_whitespace).next().unwrap_or_default();
        let bare = match first {
            "quit" | "exit" => line == first,
            "help" => line.split_whitespace().count() <= 2 && !line.contains(['=', ';']),
            _ => false,
        };
        let command = match line.strip_prefix(':') {
            Some(command) => command,
            None if bare && environment.get(first).is_none() => line,
            None if line.is_empty() || line.starts_with('#') => return Request::Nothing,
            None => return Request::Program(line),
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
    let mut session = Session { environment: reader::environment(), failed: 0 };
    if !io::stdin().is_terminal() {
        return piped(&mut session, terminal);
    }
    writeln!(terminal.out, "tilewright {}. :help shows what can be typed, :quit leaves.", env!("CARGO_PKG_VERSION"))?;
    terminal.out.flush()?;
    let mut editor: Editor<Assistant, DefaultHistory> =
        Editor::new().map_err(|error| Failure::Usage(format!("the terminal cannot be used: {error}")))?;
    editor.set_helper(Some(Assistant::new(&session.environment)));
    if let Err(error) = stop_on_interrupt() {
        terminal.message(&format!("Ctrl-C ends the session: {error}\n"));
    }
    let history = history_file();
    if let Some(path) = &history {
        // The first session has no history yet.
        let _ = editor.load_history(path);
    }
    loop {
        match editor.readline("> ") {
            Ok(line) => {
                let _ = editor.add_history_entry(line.as_str());
                // A Ctrl-C that was pressed at the prompt does not apply to this line.
                interrupt::clear();
                if !session.answer(&line, terminal)? {
                    break;
                }
                interrupt::clear();
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
        // The session works without a history file.
        let _ = path.parent().map(std::fs::create_dir_all);
        let _ = editor.append_history(path);
    }
    Ok(())
}

/// Lets Ctrl-C end a search instead of the session; the line is then refused. If the work is not a
/// search and continues, a second Ctrl-C ends the program.
fn stop_on_interrupt() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        if interrupt::is_requested() {
            // The exit status that shells use for a program that Ctrl-C ended.
            std::process::exit(130);
        }
        interrupt::request();
    })
}

/// Answers lines from a file or a pipe: the same answers, without prompt and history. An error does
/// not end the session, but sets its exit status.
fn piped(session: &mut Session, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut pending = String::new();
    for line in io::stdin().lines() {
        pending.push_str(&line?);
        if is_incomplete(&pending) {
            pending.push('\n');
            continue;
        }
        if !session.answer(&std::mem::take(&mut pending), terminal)? {
            return session.ended();
        }
        // The other end may wait for this answer before it sends the next line.
        terminal.out.flush()?;
    }
    if !pending.is_empty() {
        session.answer(&pending, terminal)?;
    }
    session.ended()
}

/// The history file: `tilewright/history` in the XDG data directory.
fn history_file() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")))?;
    Some(data.join("tilewright").join("history"))
}

struct Session {
    environment: Environment,
    /// The number of refused lines.
    failed: usize,
}

impl Session {
    /// Answers a line; `false` ends the session. A refusal is printed, and does not end the
    /// session.
    fn answer(&mut self, line: &str, terminal: &mut Terminal) -> Result<bool, Failure> {
        let request = Request::of(line, &self.environment);
        if matches!(request, Request::Quit) {
            return Ok(false);
        }
        match self.answered(&request, terminal) {
            Ok(()) => {}
            Err(Failure::Io(error)) => return Err(Failure::Io(error)),
            Err(failure) => {
                self.failed += 1;
                terminal.tell(&failure);
            }
        }
        reader::note(&mut self.environment);
        for note in reader::notes() {
            terminal.note(&note);
        }
        terminal.end_text()?;
        Ok(true)
    }

    fn answered(&mut self, request: &Request<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
        match request {
            Request::Nothing | Request::Quit => Ok(()),
            Request::Help("") => Ok(terminal.prose(HELP)?),
            Request::Help(name) => match explain::describe(name, terminal.colour) {
                Some(text) => Ok(terminal.prose(&text)?),
                None => Err(Failure::Usage(explain::unknown(name))),
            },
            Request::Functions => Ok(terminal.prose(&explain::list(terminal.colour))?),
            Request::Names => {
                let names: String = names(&self.environment).iter().map(|name| format!("{name}\n")).collect();
                Ok(terminal.text(&names)?)
            }
            Request::Show(source) => {
                let value = show::drawable(self.value(source)?);
                show::write_value(source, &value, false, terminal.window(), terminal)
            }
            Request::Explain(subject) => explain::tell(subject, false, &mut self.environment, terminal),
            Request::Unknown(name) => Err(Failure::Usage(format!("there is no command :{name}; :help lists them"))),
            Request::Program(source) => {
                let value = self.value(source)?;
                if terminal.json {
                    return Ok(terminal.object(&json::value(&value))?);
                }
                Ok(writeln!(terminal.out, "{value}")?)
            }
        }
    }

    fn value(&mut self, source: &str) -> Result<Value, Failure> {
        reader::evaluate(source, &mut self.environment)
    }

    /// The end of a session that reads a pipe.
    fn ended(&self) -> Result<(), Failure> {
        if self.failed > 0 { Err(Failure::No) } else { Ok(()) }
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

    /// The completions of the word before the cursor, and the start of that word.
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
        let mut names = Environment::new();
        let of = |line: &str, names: &Environment| match Request::of(line, names) {
            Request::Nothing => "nothing".to_owned(),
            Request::Quit => "quit".to_owned(),
            Request::Help(name) => format!("help {name}"),
            Request::Program(text) => text.to_owned(),
            _ => "other".to_owned(),
        };
        for (line, wanted) in [
            ("  :help  coalesce ", "help coalesce"),
            (":q", "quit"),
            ("quit", "quit"),
            (" exit ", "quit"),
            ("help", "help "),
            ("help size", "help size"),
            ("  ", "nothing"),
            ("# a comment", "nothing"),
            (" a = 4:2 ", "a = 4:2"),
            ("quit = 4:2", "quit = 4:2"),
            ("help = 4:2", "help = 4:2"),
        ] {
            assert_eq!(of(line, &names), wanted, "{line}");
        }
        names.bind("quit", Value::from(4));
        assert_eq!(of("quit", &names), "quit");
        assert!(matches!(Request::of("quit", &names), Request::Program(_)));
        assert!(matches!(Request::of(":quit", &names), Request::Quit));
    }
}
