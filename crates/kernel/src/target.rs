//! The compilation targets, and the features of each.
//!
//! Law: one table in this file says which features a target has;
//! [`Multiprocessor::of`](crate::machine::Multiprocessor::of) has its limits. Nothing else compares
//! targets: code asks for a [`Feature`]. [`Target::runs_on`] says where PTX for a target runs.
//!
//! | target | cards | PTX | 8-bit floats | bulk copies, TMA | clusters | `setmaxnreg` | wgmma | block scales |
//! |---|---|---|---|---|---|---|---|---|
//! | sm_80 | A100, and all later cards | 7.0 | | | | | | |
//! | sm_86 | RTX 3060 to 3090, A10 | 7.1 | | | | | | |
//! | sm_87 | Jetson Orin | 7.4 | | | | | | |
//! | sm_89 | RTX 4060 to 4090, L4, L40 | 8.1 | yes | | | | | |
//! | sm_90 | H100, H200, and all later cards | 8.0 | yes | yes | yes | | | |
//! | sm_90a | H100 and H200 only | 8.0 | yes | yes | yes | yes | yes | |
//! | sm_100 | B200, B300 | 8.6 | yes | yes | yes | | | |
//! | sm_120 | RTX 5060 to 5090 | 8.7 | yes | yes | | yes | | yes |
//! | sm_121 | GB10 | 8.8 | yes | yes | | yes | | yes |
//!
//! (PTX ISA: the notes on targets of each instruction.) The table claims clusters only if a
//! document gives the sizes that run. No document does for 12.0 and 12.1, so kernels for them have
//! no clusters.

/// A compilation target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// Ampere; its code runs on all later cards.
    Sm80,
    /// Ampere for desktops: less shared memory.
    Sm86,
    /// Ampere of Jetson Orin.
    Sm87,
    /// Ada: 8-bit floats.
    Sm89,
    /// What Hopper and all later cards have: TMA and clusters, but not wgmma.
    Sm90,
    /// Hopper only, with its architecture-specific features.
    Sm90a,
    /// Blackwell for servers; its code runs on all later cards.
    Sm100,
    /// Blackwell for desktops.
    Sm120,
    /// Blackwell of GB10.
    Sm121,
}

/// A feature that some targets have and others lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Feature {
    /// `mma.sync` on 8-bit floats, and conversions of these.
    Float8,
    /// Atomic additions of bf16, and of vectors of 8 and 16 bytes.
    WideAtomics,
    /// Bulk copies, with tensor maps (TMA) and without; mbarriers that count their bytes; proxy
    /// fences; and an elected lane.
    BulkCopies,
    /// `stmatrix`.
    StoreMatrix,
    /// `mma.sync` with 16 rows on f64. All targets have that with 8 rows.
    TallDoubles,
    /// Waiting for the previous launch, and starting the next one (programmatic dependent launch).
    DependentLaunches,
    /// Clusters of blocks, and shared memory of other blocks of the cluster.
    Clusters,
    /// Register reallocation between the warps of a block (`setmaxnreg`).
    RegisterReallocation,
    /// `wgmma`.
    Wgmma,
    /// `mma.sync` with block scales.
    BlockScaledMma,
}

impl Feature {
    /// Whether PTX with it runs only on one family of cards, and has a target such as `sm_120f`.
    pub(crate) fn is_of_family(self) -> bool {
        matches!(self, Feature::RegisterReallocation | Feature::BlockScaledMma)
    }

    /// The names of the targets that have it, such as `sm_100, sm_120 or sm_121`.
    pub(crate) fn target_names(self) -> String {
        // If several targets are for the same cards, the latest represents them.
        let is_most = |target: &Target| Target::latest(target.capability()) == Some(*target);
        let names: Vec<&str> = self.targets().filter(is_most).map(Target::name).collect();
        match names.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => "a later target".to_owned(),
        }
    }

    /// The targets that have it.
    ///
    /// ```
    /// use tilewright_kernel::ptx::{Feature, Target};
    ///
    /// assert_eq!(Feature::Wgmma.targets().collect::<Vec<_>>(), [Target::Sm90a]);
    /// ```
    pub fn targets(self) -> impl Iterator<Item = Target> {
        Target::ALL.into_iter().filter(move |target| target.has(self))
    }
}

/// The compute capabilities on which PTX for a target runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// Its own and all later ones.
    AndLater,
    /// Its own and later ones with the same major number.
    InFamily,
    /// Only its own.
    Alone,
}

/// The row of a target in the table.
struct TargetRow {
    name: &'static str,
    capability: (u32, u32),
    runs: Runs,
    /// The lowest version of PTX that has the target.
    version: (u32, u32),
    features: Features,
}

/// A set of features, as a bit mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Features(u32);

impl Features {
    const NONE: Features = Features(0);

    const fn with(self, feature: Feature) -> Features {
        Features(self.0 | 1 << feature as u32)
    }
}

/// The features that every target from 9.0 on has.
const SINCE_90: Features = Features::NONE
    .with(Feature::Float8)
    .with(Feature::WideAtomics)
    .with(Feature::BulkCopies)
    .with(Feature::StoreMatrix)
    .with(Feature::TallDoubles)
    .with(Feature::DependentLaunches);

impl Target {
    /// All targets. Among those for the same cards, the one for which plans are made by default
    /// comes first: plans for Hopper are for `sm_90a`.
    pub const ALL: [Target; 9] = [
        Target::Sm80,
        Target::Sm86,
        Target::Sm87,
        Target::Sm89,
        Target::Sm90a,
        Target::Sm100,
        Target::Sm120,
        Target::Sm121,
        Target::Sm90,
    ];

    const fn row(self) -> TargetRow {
        use Feature::{BlockScaledMma, Clusters, Float8, RegisterReallocation, Wgmma};
        use Runs::{Alone, AndLater, InFamily};
        let blackwell = SINCE_90.with(RegisterReallocation).with(BlockScaledMma);
        let (name, capability, runs, version, features) = match self {
            Target::Sm80 => ("sm_80", (8, 0), AndLater, (7, 0), Features::NONE),
            Target::Sm86 => ("sm_86", (8, 6), AndLater, (7, 1), Features::NONE),
            Target::Sm87 => ("sm_87", (8, 7), AndLater, (7, 4), Features::NONE),
            Target::Sm89 => ("sm_89", (8, 9), AndLater, (8, 1), Features::NONE.with(Float8)),
            Target::Sm90 => ("sm_90", (9, 0), AndLater, (8, 0), SINCE_90.with(Clusters)),
            Target::Sm90a => {
                ("sm_90a", (9, 0), Alone, (8, 0), SINCE_90.with(Clusters).with(RegisterReallocation).with(Wgmma))
            }
            Target::Sm100 => ("sm_100", (10, 0), AndLater, (8, 6), SINCE_90.with(Clusters)),
            Target::Sm120 => ("sm_120", (12, 0), InFamily, (8, 7), blackwell),
            Target::Sm121 => ("sm_121", (12, 1), InFamily, (8, 8), blackwell),
        };
        TargetRow { name, capability, runs, version, features }
    }

    /// The name, such as `sm_80`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The target with this name.
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

    /// All names, separated by commas.
    ///
    /// ```
    /// use tilewright_kernel::ptx::Target;
    ///
    /// assert!(Target::names().starts_with("sm_80, sm_86, "));
    /// ```
    pub fn names() -> String {
        Target::ALL.map(Target::name).join(", ")
    }

    /// The latest target that runs on a compute capability; None if the capability is older than
    /// every target.
    ///
    /// ```
    /// use tilewright_kernel::ptx::Target;
    ///
    /// assert_eq!(Target::latest((8, 6)), Some(Target::Sm86));
    /// assert_eq!(Target::latest((9, 0)), Some(Target::Sm90a));
    /// assert_eq!(Target::latest((12, 0)), Some(Target::Sm120));
    /// // An unknown later capability runs the latest target that runs on all later cards.
    /// assert_eq!(Target::latest((14, 0)), Some(Target::Sm100));
    /// assert_eq!(Target::latest((7, 5)), None);
    /// ```
    pub fn latest(capability: (u32, u32)) -> Option<Target> {
        Target::ALL.into_iter().filter(|target| target.runs_on(capability)).max()
    }

    /// Whether PTX for this target runs on a compute capability.
    ///
    /// ```
    /// use tilewright_kernel::ptx::Target;
    ///
    /// assert!(Target::Sm80.runs_on((12, 0)));
    /// // A target that ends in `a` runs on its own capability alone.
    /// assert!(!Target::Sm90a.runs_on((10, 0)));
    /// // Some instructions of 12.0 run on 12.0 and 12.1 alone.
    /// assert!(Target::Sm120.runs_on((12, 1)) && !Target::Sm120.runs_on((14, 0)));
    /// ```
    pub fn runs_on(self, capability: (u32, u32)) -> bool {
        let own = self.capability();
        match self.row().runs {
            Runs::AndLater => own <= capability,
            Runs::InFamily => own <= capability && own.0 == capability.0,
            Runs::Alone => own == capability,
        }
    }

    /// The compute capability, as major and minor number.
    pub fn capability(self) -> (u32, u32) {
        self.row().capability
    }

    /// The lowest version of PTX that has the target, as major and minor number.
    pub(crate) fn version(self) -> (u32, u32) {
        self.row().version
    }

    /// The `.target` for features of the family, and the lowest version of PTX that has it; None if
    /// the name itself is enough.
    pub(crate) fn of_family(self) -> Option<(&'static str, (u32, u32))> {
        match self {
            Target::Sm120 => Some(("sm_120f", (8, 8))),
            Target::Sm121 => Some(("sm_121f", (8, 8))),
            _ => None,
        }
    }

    /// Whether it has a feature.
    ///
    /// ```
    /// use tilewright_kernel::ptx::{Feature, Target};
    ///
    /// assert!(Target::Sm120.has(Feature::BulkCopies) && !Target::Sm120.has(Feature::Wgmma));
    /// ```
    pub fn has(self, feature: Feature) -> bool {
        let own = self.row().features;
        own == own.with(feature)
    }

    /// Whether it has `wgmma`.
    pub fn has_wgmma(self) -> bool {
        self.has(Feature::Wgmma)
    }

    /// Whether it has bulk copies, with tensor maps (TMA) and without, and mbarriers that count
    /// their bytes.
    pub fn has_tma(self) -> bool {
        self.has(Feature::BulkCopies)
    }

    /// Whether it has clusters of blocks.
    pub fn has_clusters(self) -> bool {
        self.has(Feature::Clusters)
    }

    /// Whether it has `mma.sync` on 8-bit floats.
    pub fn has_float8(self) -> bool {
        self.has(Feature::Float8)
    }

    /// Whether it has `mma.sync` with block scales.
    pub fn has_block_scaled_mma(self) -> bool {
        self.has(Feature::BlockScaledMma)
    }
}
