//! Profiles as an operad.
//!
//! Law: a profile of `n` leaves is an operation of `n` arguments, and substituting profiles for its
//! leaves composes operations. Substitution is associative, the single leaf is its unit, and the
//! order of leaves does not change: the operad is non-symmetric (Carlisle, Shah, Stern,
//! VanKoughnett, 2.2). A nested tuple is a profile with numbers at its leaves, so a refinement is a
//! substitution.

use crate::Profile;
use crate::morphism::error::MorphismError;

/// Replaces each leaf of a profile by a profile.
///
/// Errors: there is another number of parts than leaves ([`MorphismError::Arity`]); nested too
/// deep, or too large.
///
/// ```
/// use tilewright_layout::Profile;
/// use tilewright_layout::morphism::operad::substitute;
///
/// let profile = |text: &str| text.parse::<Profile>().unwrap();
/// let parts = [profile("(*,*)"), profile("*"), profile("(*,(*,*))")];
/// assert_eq!(substitute(&profile("((*,*),*)"), &parts).unwrap().to_string(), "(((*,*),*),(*,(*,*)))");
/// ```
pub fn substitute(profile: &Profile, parts: &[Profile]) -> Result<Profile, MorphismError> {
    if profile.leaves() != parts.len() {
        return Err(MorphismError::Arity { op: "substitute", places: profile.leaves(), parts: parts.len() });
    }
    let leaf = Profile::leaf();
    Ok(profile.substitute(|place| parts.get(place).unwrap_or(&leaf))?)
}

/// Replaces one leaf of a profile by a profile: the partial composition.
///
/// Errors: there is no such leaf ([`MorphismError::Arity`]); nested too deep, or too large.
///
/// ```
/// use tilewright_layout::Profile;
/// use tilewright_layout::morphism::operad::substitute_at;
///
/// let profile = |text: &str| text.parse::<Profile>().unwrap();
/// assert_eq!(substitute_at(&profile("(*,*)"), 1, &profile("(*,*)")).unwrap().to_string(), "(*,(*,*))");
/// ```
pub fn substitute_at(profile: &Profile, leaf: usize, part: &Profile) -> Result<Profile, MorphismError> {
    if leaf >= profile.leaves() {
        return Err(MorphismError::Arity { op: "substitute_at", places: profile.leaves(), parts: leaf + 1 });
    }
    let other = Profile::leaf();
    Ok(profile.substitute(|place| if place == leaf { part } else { &other })?)
}
