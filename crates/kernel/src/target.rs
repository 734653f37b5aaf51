//! The processors that kernels are written for.

/// A processor to write for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// Ampere, and what runs its code: everything since.
    Sm80,
    /// Ada and later: 8-bit floats.
    Sm89,
    /// Hopper, and nothing else: what is particular to it.
    Sm90a,
}

impl Target {
    /// All of them.
    pub const ALL: [Target; 3] = [Target::Sm80, Target::Sm89, Target::Sm90a];

    /// The name: `sm_80`.
    pub fn name(self) -> &'static str {
        match self {
            Target::Sm80 => "sm_80",
            Target::Sm89 => "sm_89",
            Target::Sm90a => "sm_90a",
        }
    }

    /// The target of this name.
    ///
    /// ```
    /// use tilewright_kernel::ptx::Target;
    ///
    /// assert_eq!(Target::named("sm_90a"), Some(Target::Sm90a));
    /// assert_eq!(Target::named("sm_10"), None);
    /// ```
    pub fn named(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|target| target.name() == name)
    }

    /// The latest target that runs on a compute capability; none if it is older than every target.
    ///
    /// ```
    /// use tilewright_kernel::ptx::Target;
    ///
    /// assert_eq!(Target::latest((9, 0)), Some(Target::Sm90a));
    /// // A target that ends in `a` runs on its own capability alone.
    /// assert_eq!(Target::latest((10, 0)), Some(Target::Sm89));
    /// assert_eq!(Target::latest((7, 5)), None);
    /// ```
    pub fn latest(capability: (u32, u32)) -> Option<Target> {
        let runs = |target: &Target| match target {
            Target::Sm90a => capability == target.capability(),
            Target::Sm80 | Target::Sm89 => capability >= target.capability(),
        };
        Target::ALL.into_iter().filter(runs).max()
    }

    /// The compute capability, as major and minor number.
    pub fn capability(self) -> (u32, u32) {
        match self {
            Target::Sm80 => (8, 0),
            Target::Sm89 => (8, 9),
            Target::Sm90a => (9, 0),
        }
    }
}
