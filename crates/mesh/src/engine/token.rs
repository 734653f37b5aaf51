//! The secret that the processes of one job share.
//!
//! Law: a process takes part in a job only if it knows the job's token. The token is compared in
//! constant time and is never printed. It is sent in plain text: it excludes strangers and other
//! jobs that connect by mistake or guess, but it hides nothing from a reader of the network.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;

use crate::error::MeshError;

/// The fewest and the most characters of a token. Eight random characters cannot be guessed within
/// the seconds for which a job listens.
const LENGTHS: std::ops::RangeInclusive<usize> = 8..=256;

/// The secret that the processes of one job share: 8 to 256 visible ASCII characters.
///
/// ```
/// use tilewright_mesh::Token;
///
/// let token = Token::new("fb0c44e1a9d27765").unwrap();
/// assert!(token.is("fb0c44e1a9d27765") && !token.is("fb0c44e1a9d27766"));
/// assert_eq!(format!("{token:?}"), "Token(..)");
/// assert_eq!(Token::new("short").unwrap_err().code(), "E1112");
/// assert_ne!(Token::random().reveal(), Token::random().reveal());
/// ```
#[derive(Clone)]
pub struct Token(Box<str>);

impl Token {
    /// The variable of the environment that holds the token; `tilewright launch` sets it.
    pub const VARIABLE: &str = "TILEWRIGHT_TOKEN";

    /// Parses a token.
    ///
    /// Errors: fewer than 8 or more than 256 characters, or one that is not visible ASCII
    /// ([`MeshError::Token`]).
    pub fn new(text: &str) -> Result<Token, MeshError> {
        let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        match is_visible && LENGTHS.contains(&text.len()) {
            true => Ok(Token(text.into())),
            false => Err(MeshError::Token {
                what: format!(
                    "a job token has {} to {} visible ASCII characters, and this one has {}{}",
                    LENGTHS.start(),
                    LENGTHS.end(),
                    text.chars().count(),
                    if is_visible { "" } else { ", of which some are not visible ASCII" }
                )
                .into(),
            }),
        }
    }

    /// A token of 32 hexadecimal digits from the system's source of randomness.
    pub fn random() -> Token {
        let mut bytes = [0_u8; 16];
        if !fill(&mut bytes) {
            // The keys of a `RandomState` are random, and cannot be derived from the output of its
            // hash.
            let keys = RandomState::new();
            for (at, half) in bytes.chunks_exact_mut(8).enumerate() {
                half.copy_from_slice(&keys.hash_one(at).to_le_bytes());
            }
        }
        Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
    }

    /// Whether a text equals this token. The time depends on the length of the text alone.
    pub fn is(&self, other: &str) -> bool {
        let own = self.0.as_bytes();
        let differences = own
            .iter()
            .chain(std::iter::repeat(&0))
            .zip(other.bytes())
            .fold(0, |all, (own, other)| black_box(all | (own ^ other)));
        (own.len() == other.len()) & (differences == 0)
    }

    /// The text of the token, to be passed to a process of the job.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Fills bytes from the system's source of randomness; false if that is not available as a file.
fn fill(bytes: &mut [u8]) -> bool {
    use std::io::Read;
    cfg!(unix) && std::fs::File::open("/dev/urandom").is_ok_and(|mut source| source.read_exact(bytes).is_ok())
}

/// Does not print the token, which is a secret.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Token) -> bool {
        self.is(&other.0)
    }
}

impl Eq for Token {}
