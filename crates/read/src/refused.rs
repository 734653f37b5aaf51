//! Why a text gives no layout: a question, or an error with its place.
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
    /// It says too little: the answer is an option.
    Question(Question),
    /// It says nothing that a layout is.
    Error(ReadError),
}

/// What a text leaves open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What is missing.
    pub missing: Missing,
    /// The question, as a sentence without a full stop that says why it is asked.
    pub message: String,
}

/// What a text leaves open.
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
    /// The text that a name stands for, such as `#mma`, which this text does not define.
    Definition(String),
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// The stable code.
    pub code: &'static str,
    /// What is wrong, as a sentence without a full stop.
    pub message: String,
    /// The culprit, in bytes of the text.
    pub span: Range<usize>,
    /// What would help.
    pub help: Option<String>,
}

impl Refused {
    /// That a text says too little.
    pub fn ask(missing: Missing, message: impl Into<String>) -> Refused {
        Refused::Question(Question { missing, message: message.into() })
    }

    /// E1301: nothing that a reader knows.
    pub fn unknown(span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Refused {
        Refused::Error(ReadError { code: "E1301", message: message.into(), span, help: Some(help.into()) })
    }

    /// E1302: the text is damaged or ends too early.
    pub fn damaged(span: Range<usize>, message: impl Into<String>) -> Refused {
        Refused::Error(ReadError { code: "E1302", message: message.into(), span, help: None })
    }

    /// E1303: the parts of the text do not go together: a shape and strides of other nestings, a
    /// swizzle that would cut an element.
    pub fn contradiction(span: Range<usize>, message: impl Into<String>) -> Refused {
        Refused::Error(ReadError { code: "E1303", message: message.into(), span, help: None })
    }

    /// E1304: the text has a meaning, but none that a layout of this library has.
    pub fn unsupported(span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Refused {
        Refused::Error(ReadError { code: "E1304", message: message.into(), span, help: Some(help.into()) })
    }

    /// With other advice, where it is an error.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Refused {
        if let Refused::Error(error) = &mut self {
            error.help = Some(help.into());
        }
        self
    }

    /// The culprit, in bytes of the text; none for a question.
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
