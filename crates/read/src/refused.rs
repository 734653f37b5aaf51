//! Why a text gives no layout: a question, or an error with its location.
//!
//! Law: a question can be answered by one of [`crate::Options`]; an error cannot. Neither is ever
//! replaced by a guess.

use std::error::Error;
use std::fmt;
use std::ops::Range;

use tilewright_layout::Refusal;

use crate::system::System;

/// Why a text gives no layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The text lacks information, which an option can provide.
    Question(Question),
    /// The text is not a layout.
    Error(ReadError),
}

/// Missing information.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The option that would answer it.
    pub missing: Missing,
    /// The question, as a sentence without a full stop that says why it is asked.
    pub message: String,
}

/// The kinds of missing information.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missing {
    /// The width of an element in bits: [`crate::Options::element_bits`].
    Width,
    /// The shape of the tensor: [`crate::Options::shape`].
    Shape,
    /// The mesh of devices: [`crate::Options::mesh`].
    Mesh,
    /// Which of these systems wrote it: [`crate::Options::system`].
    System(Vec<System>),
    /// The definition of a name, such as `#mma`, which this text lacks.
    Definition(String),
}

/// An error in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// The stable code.
    pub code: &'static str,
    /// The error, as a sentence without a full stop.
    pub message: String,
    /// Its location, in bytes of the text.
    pub span: Range<usize>,
    /// A hint on how to fix it.
    pub help: Option<String>,
}

impl Refused {
    /// The question for missing information.
    pub fn ask(missing: Missing, message: impl Into<String>) -> Refused {
        Refused::Question(Question { missing, message: message.into() })
    }

    /// E1301: a text that no reader recognises.
    pub fn unknown(span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Refused {
        Refused::Error(ReadError { code: "E1301", message: message.into(), span, help: Some(help.into()) })
    }

    /// E1302: the text is damaged or ends too early.
    pub fn damaged(span: Range<usize>, message: impl Into<String>) -> Refused {
        Refused::Error(ReadError { code: "E1302", message: message.into(), span, help: None })
    }

    /// E1303: the parts of the text contradict each other: a shape and strides with different
    /// nestings, or a swizzle that would cut an element.
    pub fn contradiction(span: Range<usize>, message: impl Into<String>) -> Refused {
        Refused::Error(ReadError { code: "E1303", message: message.into(), span, help: None })
    }

    /// E1304: the text has a meaning, but no layout of this library has it.
    pub fn unsupported(span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Refused {
        Refused::Error(ReadError { code: "E1304", message: message.into(), span, help: Some(help.into()) })
    }

    /// The same error with another hint; a question is unchanged.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Refused {
        if let Refused::Error(error) = &mut self {
            error.help = Some(help.into());
        }
        self
    }

    /// The location of the error, in bytes of the text; None for a question.
    pub fn span(&self) -> Option<Range<usize>> {
        match self {
            Refused::Question(_) => None,
            Refused::Error(error) => Some(error.span.clone()),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Question(question) => f.write_str(&question.message),
            Refused::Error(error) => f.write_str(&error.message),
        }
    }
}

impl Error for Refused {}

impl Refusal for Refused {
    fn code(&self) -> &'static str {
        match self {
            Refused::Question(_) => "E1305",
            Refused::Error(error) => error.code,
        }
    }

    fn help(&self) -> Option<String> {
        match self {
            Refused::Question(question) => Some(match &question.missing {
                Missing::Width => "say the width of an element: --bits 16".to_owned(),
                Missing::Shape => "say the shape of the tensor: --shape '(128,64)'".to_owned(),
                Missing::Mesh => {
                    "say the mesh, as JAX and PyTorch number its devices: --mesh 'dp=2:4,tp=4:1'".to_owned()
                }
                Missing::System(systems) => {
                    let names: Vec<&str> = systems.iter().map(|system| system.name()).collect();
                    format!("say which system wrote it: --system {}", names.join(" or --system "))
                }
                Missing::Definition(name) => format!("give the text that defines it as well: {name} = ..."),
            }),
            Refused::Error(error) => error.help.clone(),
        }
    }
}
