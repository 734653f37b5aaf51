//! What text for a target says, and where it runs.
//!
//! Law: the latest target of a card has every feature of all targets whose text runs there, but for
//! clusters, which no document promises for 12.0. Its text is that of the card's family alone where
//! an instruction asks for it.

use tilewright_kernel::ptx::{self, Feature, Target};
use tilewright_kernel::{Build, Kernel, KernelError};

const FEATURES: [Feature; 10] = [
    Feature::Float8,
    Feature::WideAtomics,
    Feature::BulkCopies,
    Feature::StoreMatrix,
    Feature::TallDoubles,
    Feature::DependentLaunches,
    Feature::Clusters,
    Feature::RegisterReallocation,
    Feature::Wgmma,
    Feature::BlockScaledMma,
];

/// A kernel with an instruction that a feature names, if there is one.
fn with(feature: Option<Feature>) -> Result<Kernel, KernelError> {
    Kernel::build("kernel", |k: &Build| {
        k.threads(256)?;
        match feature {
            Some(Feature::DependentLaunches) => k.wait_launches(),
            Some(Feature::Clusters) => k.cluster([2, 1, 1])?,
            Some(Feature::RegisterReallocation) => {
                k.role(0..4, || k.registers(40))?;
                k.role(4..8, || k.registers(208))?;
            }
            _ => {}
        }
        Ok(())
    })
}

#[test]
fn the_latest_target_has_what_all_earlier_ones_have() {
    for major in 8..16 {
        for minor in 0..10 {
            let capability = (major, minor);
            let latest = Target::latest(capability).unwrap();
            assert!(latest.runs_on(capability));
            for other in Target::ALL.into_iter().filter(|other| other.runs_on(capability)) {
                for feature in FEATURES.into_iter().filter(|feature| other.has(*feature)) {
                    let promised = feature != Feature::Clusters || major != 12;
                    assert!(latest.has(feature) || !promised, "{capability:?}: {} lacks {feature:?}", latest.name());
                }
            }
        }
    }
    assert!((0..8).all(|major| Target::latest((major, 9)).is_none()));
}

/// The directives of PTX ISA, "Release Notes": which version brought a target.
#[test]
fn text_names_its_target_and_a_version_that_has_it() {
    let plain = with(None).unwrap();
    for (name, version) in [
        ("sm_80", "7.0"),
        ("sm_86", "7.1"),
        ("sm_87", "7.4"),
        ("sm_89", "8.1"),
        ("sm_90", "8.0"),
        ("sm_90a", "8.0"),
        ("sm_100", "8.6"),
        ("sm_120", "8.7"),
        ("sm_121", "8.8"),
    ] {
        let text = ptx::write(plain.program(), Target::named(name).unwrap()).unwrap();
        assert!(text.starts_with(&format!(".version {version}\n.target {name}\n")), "{text}");
    }
}

#[test]
fn instructions_are_those_of_the_target() {
    use Feature::{Clusters, DependentLaunches, RegisterReallocation};
    for (feature, has) in [
        (DependentLaunches, &["sm_90", "sm_90a", "sm_100", "sm_120", "sm_121"][..]),
        (Clusters, &["sm_90", "sm_90a", "sm_100"]),
        (RegisterReallocation, &["sm_90a", "sm_120", "sm_121"]),
    ] {
        let kernel = with(Some(feature)).unwrap();
        assert!(kernel.program().features().into_iter().eq([feature]));
        for target in Target::ALL {
            let runs = has.contains(&target.name());
            assert_eq!(kernel.program().runs_on(target), runs, "{feature:?} of {}", target.name());
            match ptx::write(kernel.program(), target) {
                Ok(text) => {
                    assert!(runs, "{feature:?} of {}", target.name());
                    let of_family = feature == RegisterReallocation && target != Target::Sm90a;
                    let name = if of_family { format!("{}f", target.name()) } else { target.name().to_owned() };
                    assert!(text.contains(&format!("\n.target {name}\n")), "{text}");
                    assert!(!of_family || text.starts_with(".version 8.8\n"), "{text}");
                }
                Err(error) => {
                    assert!(!runs, "{error}");
                    assert_eq!(error.code(), "E0921");
                    let (said, help) = (error.to_string(), error.help());
                    assert!(has.iter().all(|name| said.contains(name) && help.contains(name)), "{said}; {help}");
                }
            }
        }
    }
}
