//! Failures of commands, and the output of pictures.
//!
//! Law: every command prints a failure in the same form as text, and in the same form as JSON; the
//! kind of the failure determines the exit status. A file is written completely or not at all.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tilewright::Diagnostic;
use tilewright::draw::{Figure, Format, Medium, Style, Theme};
use tilewright::layout::Refusal;
use tilewright::tensor::npy::{self, NpyError};

use crate::json::{self, Json};
use crate::picture;
use crate::terminal::Terminal;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// A refusal of the library.
    Refused(Box<Refused>),
    /// A value has the wrong kind.
    Value(String),
    /// The answer is no, and has been printed: a check that fails, or a layout that is not
    /// tractable.
    No,
    /// A check found no error but was not complete, which has been printed.
    Partly,
    /// A file cannot be read or written: its path, and the reason.
    File(PathBuf, String),
    /// A process of this command failed, or a signal ended it: the exit status to return, and a
    /// description.
    Process(u8, String),
    /// Wrong usage of the command.
    Usage(String),
    /// A standard stream cannot be read or written.
    Io(io::Error),
}

/// A refusal of the library: its code, a sentence, a hint, and its location in an expression.
#[derive(Debug)]
pub struct Refused {
    code: &'static str,
    message: String,
    help: Option<String>,
    place: Option<(String, Diagnostic)>,
}

impl Failure {
    /// A refusal as a failure.
    pub fn refused(refusal: &(impl Refusal + ?Sized)) -> Failure {
        let (code, message, help) = (refusal.code(), refusal.to_string(), refusal.help());
        Failure::Refused(Box::new(Refused { code, message, help, place: None }))
    }

    /// A refusal of a text of another system. For a damaged text it says where reading stopped.
    pub fn of_text(refused: &tilewright::read::Refused, source: &str) -> Failure {
        let failure = Failure::refused(refused);
        let is_damaged = refused.code() == "E1302" && refused.help().is_none();
        let Some(span) = refused.span().filter(|_| is_damaged) else { return failure };
        let (Some(before), Some(after)) = (source.get(..span.start), source.get(span.start..)) else { return failure };
        let place = before.chars().count();
        let next: String = after.chars().take(24).take_while(|c| *c != '\n').collect();
        failure.with_help(match next.as_str() {
            "" => format!("reading stopped at the end, after {place} characters"),
            next => format!("reading stopped after {place} characters, before `{next}`"),
        })
    }

    /// A refusal as a failure, with a prefix that says what it is about.
    pub fn refused_about(what: impl Display, refusal: &(impl Refusal + ?Sized)) -> Failure {
        let (code, message, help) = (refusal.code(), format!("{what}: {refusal}"), refusal.help());
        Failure::Refused(Box::new(Refused { code, message, help, place: None }))
    }

    /// The failure without its hint, which is for programmers.
    #[must_use]
    pub fn without_help(mut self) -> Failure {
        if let Failure::Refused(refused) = &mut self {
            refused.help = None;
        }
        self
    }

    /// The failure with another hint.
    #[must_use]
    pub fn with_help(mut self, help: String) -> Failure {
        if let Failure::Refused(refused) = &mut self {
            refused.help = Some(help);
        }
        self
    }

    /// The failure, naming the one of several requests that failed.
    pub fn about(self, what: &str) -> Failure {
        match self {
            Failure::Refused(mut own) => {
                own.message = format!("{what}: {}", own.message);
                Failure::Refused(own)
            }
            Failure::Value(text) => Failure::Value(format!("{what}: {text}")),
            Failure::Usage(text) => Failure::Usage(format!("{what}: {text}")),
            other => other,
        }
    }

    /// An error in an expression as a failure.
    pub fn of_expression(diagnostic: Diagnostic, source: &str) -> Failure {
        let (code, message, help) = (diagnostic.code, diagnostic.message.clone(), diagnostic.help.clone());
        let place = Some((source.to_owned(), diagnostic));
        Failure::Refused(Box::new(Refused { code, message, help, place }))
    }

    /// The failure for the value of an expression with the wrong kind; `wanted` is the expected
    /// kind with its article.
    pub fn not(source: &str, value: &tilewright::Value, wanted: &str) -> Failure {
        Failure::Value(format!("expected {wanted}, but the value of `{}` is of kind {}", brief(source), value.kind()))
    }

    /// The failure for a file that the system refuses to read or write.
    pub fn file(path: &Path, error: impl Display) -> Failure {
        Failure::File(path.to_owned(), error.to_string())
    }

    /// An error in a NumPy file as a failure.
    pub fn of_npy(path: &Path, error: &NpyError) -> Failure {
        match error {
            NpyError::Io(error) => Failure::file(path, error),
            error => Failure::refused_about(path.display(), error),
        }
    }

    /// The exit status: 1 for no, or an error; 2 for wrong usage; 3 for a partial check. That of a
    /// process is passed on.
    pub fn status(&self) -> u8 {
        match self {
            // A reader that closes the pipe is not an error.
            Failure::Io(error) if error.kind() == ErrorKind::BrokenPipe => 0,
            Failure::Usage(_) => 2,
            Failure::Partly => 3,
            Failure::Process(status, _) => *status,
            _ => 1,
        }
    }

    /// The text for standard error; empty if the answer has been printed already.
    pub fn text(&self, colour: bool) -> String {
        match self {
            Failure::No | Failure::Partly => String::new(),
            Failure::Io(error) if error.kind() == ErrorKind::BrokenPipe => String::new(),
            Failure::Refused(refused) => match &refused.place {
                Some((source, diagnostic)) => diagnostic.render(source, colour),
                None => {
                    let help = refused.help.as_ref().map_or(String::new(), |help| format!("  help: {help}\n"));
                    format!("error[{}]: {}\n{help}", refused.code, refused.message)
                }
            },
            Failure::Value(message) | Failure::Usage(message) | Failure::Process(_, message) => {
                format!("error: {message}\n")
            }
            Failure::File(path, why) => format!("error: {}: {why}\n", path.display()),
            Failure::Io(error) => format!("error: {error}\n"),
        }
    }

    /// The JSON object; None if the answer has been printed already.
    pub fn json(&self) -> Option<Json> {
        let plain = |code: &str, message: String| json::failure(code, &message, None, None);
        Some(match self {
            Failure::No | Failure::Partly => return None,
            Failure::Io(error) if error.kind() == ErrorKind::BrokenPipe => return None,
            Failure::Refused(refused) => {
                let place =
                    refused.place.as_ref().map(|(source, diagnostic)| (source.as_str(), diagnostic.span.clone()));
                json::failure(refused.code, &refused.message, refused.help.as_deref(), place)
            }
            Failure::Value(message) => plain("value", message.clone()),
            Failure::Usage(message) => plain("usage", message.clone()),
            Failure::Process(_, message) => plain("process", message.clone()),
            Failure::File(path, why) => plain("file", format!("{}: {why}", path.display())),
            Failure::Io(error) => plain("stream", error.to_string()),
        })
    }
}

/// An expression, shortened to fit a message.
fn brief(source: &str) -> String {
    match source.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", source.get(..end).unwrap_or_default()),
        None => source.to_owned(),
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

macro_rules! refusals {
    ($($error:ty),* $(,)?) => {
        $(
            impl From<$error> for Failure {
                fn from(error: $error) -> Failure {
                    Failure::refused(&error)
                }
            }
        )*
    };
}

refusals!(
    tilewright::LayoutError,
    tilewright::analysis::AnalysisError,
    tilewright::atoms::AtomError,
    tilewright::draw::DrawError,
    tilewright::emit::EmitError,
    tilewright::gpu::GpuError,
    tilewright::kernel::ptx::PtxError,
    tilewright::planners::PlanError,
    tilewright::mesh::MeshError,
    tilewright::morphism::MorphismError,
    tilewright::tensor::TensorError,
    tilewright::tile::TileError,
);

/// Light, dark, or what the reader prefers.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ThemeName {
    Auto,
    Light,
    Dark,
}

impl From<ThemeName> for Theme {
    fn from(name: ThemeName) -> Theme {
        match name {
            ThemeName::Auto => Theme::Auto,
            ThemeName::Light => Theme::Light,
            ThemeName::Dark => Theme::Dark,
        }
    }
}

/// Where a picture goes, and how light it is.
#[derive(Debug, Args)]
pub struct Saving {
    /// Write the picture to a file: .svg, .html, .png, .pdf, .tex or .txt.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Light, dark, or the reader's preference, if the format supports it.
    #[arg(long, value_enum, default_value = "auto")]
    theme: ThemeName,
}

/// The default number of PNG pixels for each CSS pixel.
pub const SCALE: f64 = 2.0;

impl Saving {
    /// The theme that was chosen.
    pub fn theme(&self) -> Theme {
        self.theme.into()
    }

    /// The file to write. A name without a known format is refused here, before anything is
    /// computed.
    pub fn file(&self) -> Result<Option<&Path>, Failure> {
        let Some(file) = self.output.as_deref() else { return Ok(None) };
        Format::of_file(file)?;
        Ok(Some(file))
    }

    /// The medium of a picture: a page for a file, otherwise a terminal.
    pub fn medium(&self) -> Medium {
        let text = self.output.as_ref().is_none_or(|file| Format::of_file(file) == Ok(Format::Text));
        if text { Medium::Terminal } else { Medium::Page }
    }

    /// The default style of pictures.
    pub fn style(&self) -> Style {
        Style { medium: self.medium(), ..Style::default() }
    }

    /// Writes a picture to a file, in the format of its extension.
    pub fn save(&self, figure: &Figure<'_>, file: &Path, scale: f64, terminal: &mut Terminal) -> Result<(), Failure> {
        let bytes = figure.file(Format::of_file(file)?, self.theme(), scale)?;
        write_file(file, &bytes, terminal)
    }

    /// Outputs a picture: to a file, or to the terminal.
    pub fn show(&self, figure: &Figure<'_>, scale: f64, terminal: &mut Terminal) -> Result<(), Failure> {
        match self.file()? {
            Some(file) => self.save(figure, file, scale, terminal),
            None => {
                let colours = picture::colours(terminal.colour);
                let text = figure.picture(terminal.window(), colours).text(0, colours, self.theme().mode());
                Ok(terminal.text(&text)?)
            }
        }
    }
}

/// Checks that a NumPy file can be written to a path: its name, and its directory.
pub fn check_npy(path: &Path) -> Result<(), Failure> {
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        // Pipes and similar files are written to directly.
        return Ok(());
    }
    if path.extension().is_none_or(|extension| extension != "npy") {
        let shown = path.display();
        return Err(Failure::Usage(format!("-o {shown}: what is written is a NumPy file; end the name with .npy")));
    }
    check_directory(path)
}

/// Checks that the directory of a file to write exists.
pub fn check_directory(path: &Path) -> Result<(), Failure> {
    match has_directory(path) {
        true => Ok(()),
        false => Err(Failure::file(path, NO_DIRECTORY)),
    }
}

const NO_DIRECTORY: &str = "there is no such directory";

/// Whether the directory of a file exists.
fn has_directory(path: &Path) -> bool {
    path.parent().is_none_or(|directory| directory.as_os_str().is_empty() || directory.is_dir())
}

/// Writes a file completely, or keeps the old one.
pub fn write_file(file: &Path, bytes: &[u8], terminal: &mut Terminal) -> Result<(), Failure> {
    npy::replace(file, |out| out.write_all(bytes)).map_err(|error| match has_directory(file) {
        true => Failure::file(file, error),
        false => Failure::file(file, NO_DIRECTORY),
    })?;
    if std::fs::symlink_metadata(file).is_ok_and(|about| about.is_symlink())
        && let Ok(target) = npy::target(file)
    {
        terminal.note(&format!("{} is a link, and what it names was written: {}", file.display(), target.display()));
    }
    terminal.wrote(file)
}

impl Terminal {
    /// Reports that a file was written, if the output is JSON.
    pub fn wrote(&mut self, file: &Path) -> Result<(), Failure> {
        if self.json {
            self.object(&serde_json::json!({ "file": file.display().to_string() }))?;
        }
        Ok(())
    }

    /// Reports a failure: an object on standard output with `--json`, else text on standard error.
    pub fn tell(&mut self, failure: &Failure) {
        // If nobody reads the other end, the failure cannot be reported.
        if self.json {
            let _ = self.end_text();
            if let Some(object) = failure.json() {
                let _ = self.object(&object);
            }
        } else {
            self.message(&failure.text(self.message_colour));
        }
    }
}
