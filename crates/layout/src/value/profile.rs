//! Construction of profiles from other profiles.
//!
//! Law: profiles form an operad: [`Profile::substitute`] replaces each leaf by a profile, and this
//! is how an operation on leaves returns a tree. A profile that is too large or too deep is
//! refused.

mod write;

pub(crate) use self::write::{ProfileBuilder, ROOM, Splitting, push_flat};
pub use crate::ground::profile::Profile;
pub(crate) use crate::ground::profile::{LEAF, Nodes, ProfileRef};
use crate::refusal::error::LayoutError;

impl Profile {
    /// The profile of a tuple of `leaves` numbers.
    ///
    /// Errors: more than [`MAX_NODES`](crate::limits::MAX_NODES) nodes.
    #[inline]
    pub fn flat(leaves: usize) -> Result<Profile, LayoutError> {
        let mut nodes = Nodes::new();
        push_flat(&mut nodes, leaves)?;
        Ok(Profile { nodes })
    }

    /// Sets this to the profile of a tuple of `leaves` numbers, or of a single number if `leaves`
    /// is 1.
    #[inline(always)]
    pub(crate) fn nest_flat(&mut self, leaves: usize) -> Result<(), LayoutError> {
        self.nodes.clear();
        if leaves == 1 {
            self.nodes.push(LEAF);
            return Ok(());
        }
        push_flat(&mut self.nodes, leaves)
    }

    /// The tuple whose modes are `modes`, in order.
    ///
    /// Errors: more than [`MAX_NODES`](crate::limits::MAX_NODES) nodes or deeper than
    /// [`MAX_DEPTH`](crate::limits::MAX_DEPTH).
    pub fn tuple<'a>(modes: impl IntoIterator<Item = &'a Profile>) -> Result<Profile, LayoutError> {
        let mut builder = ProfileBuilder::new();
        builder.open();
        for mode in modes {
            builder.append(mode.as_ref());
        }
        builder.close();
        builder.finish()
    }

    /// Replaces leaf `i` by `parts(i)`, keeping the tree above it.
    ///
    /// Errors: as [`Profile::tuple`].
    pub fn substitute<'a>(&self, mut parts: impl FnMut(usize) -> &'a Profile) -> Result<Profile, LayoutError> {
        let mut builder = ProfileBuilder::new();
        builder.substitute(self.as_ref(), &mut |leaf, out: &mut ProfileBuilder| out.append(parts(leaf).as_ref()));
        builder.finish()
    }
}
