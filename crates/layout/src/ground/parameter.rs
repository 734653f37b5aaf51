//! Parameters, and what is known about their values.
//!
//! Law: a fact narrows the allowed values of a parameter, and every conclusion holds for all
//! remaining values. The values of [`Facts`] are the multiples of `divisor` between `least` and
//! `greatest`; there is always at least one.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::ground::bounds::Bounds;

/// The known facts about the value of a parameter: a divisor, a least and a greatest value.
///
/// ```
/// use tilewright_layout::symbolic::Facts;
///
/// let rows = Facts::positive().multiple_of(128).unwrap().at_most(4096).unwrap();
/// assert!(rows.admits(256) && !rows.admits(100) && !rows.admits(0));
/// assert_eq!(rows.to_string(), "div=128,max=4096");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Facts {
    pub(crate) divisor: i64,
    /// `i64::MIN` means no bound.
    pub(crate) least: i64,
    /// `i64::MAX` means no bound.
    pub(crate) greatest: i64,
}

impl Facts {
    /// At least 1: the facts about an extent.
    pub const fn positive() -> Facts {
        Facts { divisor: 1, least: 1, greatest: i64::MAX }
    }

    /// Any integer: the facts about a stride.
    pub const fn integer() -> Facts {
        Facts { divisor: 1, least: i64::MIN, greatest: i64::MAX }
    }

    /// Whether the facts admit a value.
    pub fn admits(&self, value: i64) -> bool {
        self.least <= value && value <= self.greatest && value % self.divisor == 0
    }

    /// The number that divides every value; 1 if no other is known.
    pub fn divisor(&self) -> i64 {
        self.divisor
    }

    /// The least value, if there is a bound.
    pub fn least(&self) -> Option<i64> {
        Some(self.least).filter(|least| *least > i64::MIN)
    }

    /// The greatest value, if there is a bound.
    pub fn greatest(&self) -> Option<i64> {
        Some(self.greatest).filter(|greatest| *greatest < i64::MAX)
    }

    /// The bounds of `value / divisor`.
    fn unit_bounds(&self) -> Bounds {
        let bound = |bound: Option<i64>, none| bound.map_or(none, |bound| bound / self.divisor);
        Bounds { least: bound(self.least(), i64::MIN), greatest: bound(self.greatest(), i64::MAX) }
    }
}

impl Default for Facts {
    fn default() -> Facts {
        Facts::positive()
    }
}

impl fmt::Display for Facts {
    /// The facts besides positivity, as they are declared: `div=128,max=4096`. Empty for
    /// [`Facts::positive`].
    ///
    /// `int` means that there is no lower bound; `i32` means at most `2^31 - 1`, and so on.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = WIDTHS.iter().find(|(_, _, greatest)| *greatest == self.greatest);
        let below = width.map_or(i64::MIN, |(_, least, _)| *least);
        let mut separator = "";
        if self.least == i64::MIN || self.least == below {
            f.write_str("int")?;
            separator = ",";
        }
        if self.divisor != 1 {
            write!(f, "{separator}div={}", self.divisor)?;
            separator = ",";
        }
        // The least positive multiple of the divisor is implied.
        if self.least != self.divisor && self.least != i64::MIN && self.least != below {
            write!(f, "{separator}min={}", self.least)?;
            separator = ",";
        }
        match (width, self.greatest()) {
            (Some((name, ..)), _) => write!(f, "{separator}{name}"),
            (None, Some(greatest)) => write!(f, "{separator}max={greatest}"),
            (None, None) => Ok(()),
        }
    }
}

/// The names of integer types, and their least and greatest numbers. A 64-bit type adds no bound.
pub(crate) const WIDTHS: [(&str, i64, i64); 3] = [
    ("i8", i8::MIN as i64, i8::MAX as i64),
    ("i16", i16::MIN as i64, i16::MAX as i64),
    ("i32", i32::MIN as i64, i32::MAX as i64),
];

/// A number that becomes known at launch: a name, or `?`, and the facts about its value.
///
/// Two parameters are the same when they have the same name *and* the same facts. The same name
/// with other facts is a different parameter for the algebra: nothing is concluded from the equal
/// names, so no conclusion is wrong. To use a name for the same value throughout, gather its facts
/// first: [`crate::symbolic::Declarations`].
///
/// Every [`Parameter::anonymous`] is a different parameter; only its clones are the same.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Parameter(Arc<Declared>);

impl Ord for Parameter {
    #[inline]
    fn cmp(&self, other: &Parameter) -> core::cmp::Ordering {
        // Most comparisons are between clones; comparing names takes longer.
        if Arc::ptr_eq(&self.0, &other.0) { core::cmp::Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl PartialOrd for Parameter {
    #[inline]
    fn partial_cmp(&self, other: &Parameter) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Declared {
    name: Name,
    facts: Facts,
    /// The cached result of [`Facts::unit_bounds`], which every sum needs.
    unit_bounds: Bounds,
}

impl Declared {
    fn new(name: Name, facts: Facts) -> Declared {
        Declared { name, facts, unit_bounds: facts.unit_bounds() }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Name {
    Given(Box<str>),
    /// The number in the order of creation, and the word that messages use for the parameter, if
    /// any.
    Anonymous(usize, Option<Arc<str>>),
}

/// The number of anonymous parameters created so far.
///
/// This is the one piece of global state: an anonymous parameter must differ from every other one
/// in the process, also across threads, and no value of a caller could ensure this. The order of
/// creation, unlike an address, keeps the order of terms the same from run to run.
static CREATED: AtomicUsize = AtomicUsize::new(0);

impl Parameter {
    /// A new parameter without a name, which prints as `?`.
    pub fn anonymous(facts: Facts) -> Parameter {
        Parameter::created(None, facts)
    }

    /// A new parameter that prints as the given word, which need not be a valid name: `block.x`.
    ///
    /// ```
    /// use tilewright_layout::symbolic::{Expr, Facts, Parameter};
    ///
    /// let [block, other] = ["block.x"; 2].map(|word| Parameter::labelled(word, Facts::positive()));
    /// assert_eq!(Expr::from(block.clone()).to_string(), "block.x");
    /// assert!(block.name().is_none() && !block.stands_for(&other));
    /// ```
    pub fn labelled(word: &str, facts: Facts) -> Parameter {
        Parameter::created(Some(word.into()), facts)
    }

    /// The parameter with this name, which must be valid.
    pub(crate) fn given(name: &str, facts: Facts) -> Parameter {
        Parameter(Arc::new(Declared::new(Name::Given(name.into()), facts)))
    }

    fn created(word: Option<Arc<str>>, facts: Facts) -> Parameter {
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        Parameter(Arc::new(Declared::new(Name::Anonymous(number, word), facts)))
    }

    /// The name; None for `?`.
    pub fn name(&self) -> Option<&str> {
        match &self.0.name {
            Name::Given(name) => Some(name),
            Name::Anonymous(..) => None,
        }
    }

    /// The known facts about the value.
    pub fn facts(&self) -> Facts {
        self.0.facts
    }

    /// The bounds of the value divided by the known divisor.
    #[inline]
    pub(crate) fn unit_bounds(&self) -> Bounds {
        self.0.unit_bounds
    }

    /// Whether both represent the same value: they have the same name, or are the same anonymous
    /// parameter. The facts may differ.
    pub fn stands_for(&self, other: &Parameter) -> bool {
        self.0.name == other.0.name
    }

    /// The parameter with other facts.
    pub(crate) fn with_facts(&self, facts: Facts) -> Parameter {
        let name = match &self.0.name {
            Name::Given(name) => Name::Given(name.clone()),
            Name::Anonymous(number, word) => Name::Anonymous(*number, word.clone()),
        };
        Parameter(Arc::new(Declared::new(name, facts)))
    }
}

impl fmt::Display for Parameter {
    /// The name, or `?` with its facts. The alternate form `{:#}` also prints the facts of a name,
    /// `M{div=128}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = alloc::format!("{}", self.facts());
        let shown = match self.name() {
            Some(name) => {
                f.write_str(name)?;
                if f.alternate() { facts.as_str() } else { "" }
            }
            None => {
                if let Name::Anonymous(_, Some(word)) = &self.0.name {
                    return f.write_str(word);
                }
                f.write_str("?")?;
                // The position of a `?` in the text implies whether it may be any integer.
                facts.strip_prefix("int").map_or(facts.as_str(), |others| others.trim_start_matches(','))
            }
        };
        if shown.is_empty() { Ok(()) } else { write!(f, "{{{shown}}}") }
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#}")
    }
}
