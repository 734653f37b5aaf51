//! The devices on which a PTX text runs.
//!
//! Law: PTX for `sm_XY` runs on compute capability X.Y and above; PTX for `sm_XYf` on X.Y and above
//! with the same X; PTX for `sm_XYa` on X.Y only. The target follows the first `.target` that is
//! not in a comment.
//!
//! (PTX ISA, `.target`.)

use crate::device::Device;
use crate::error::GpuError;

/// The target of a PTX text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    name: &'a str,
    capability: (u32, u32),
    kind: PtxParameterKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PtxParameterKind {
    AndAbove,
    SameMajor,
    Exactly,
}

impl<'a> Target<'a> {
    /// The target of a text; None if it has no known target.
    pub(crate) fn of(text: &'a str) -> Option<Target<'a>> {
        let mut rest = text;
        loop {
            let at = rest.find(['.', '/'])?;
            let (_, found) = rest.split_at_checked(at)?;
            rest = if let Some(comment) = found.strip_prefix("//") {
                comment.split_once('\n')?.1
            } else if let Some(comment) = found.strip_prefix("/*") {
                comment.split_once("*/")?.1
            } else if let Some(list) = found.strip_prefix(".target") {
                let name = list.trim_start().split([',', ' ', '\t', '\r', '\n', '/']).next()?;
                return Target::named(name);
            } else {
                found.get(1..)?
            };
        }
    }

    fn named(name: &'a str) -> Option<Target<'a>> {
        let number = name.strip_prefix("sm_")?;
        let (digits, kind) = match number.strip_suffix('a') {
            Some(digits) => (digits, PtxParameterKind::Exactly),
            None => match number.strip_suffix('f') {
                Some(digits) => (digits, PtxParameterKind::SameMajor),
                None => (number, PtxParameterKind::AndAbove),
            },
        };
        if digits.len() > 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number: u32 = digits.parse().ok()?;
        Some(Target { name, capability: (number / 10, number % 10), kind })
    }

    /// The name, such as `sm_90a`.
    pub(crate) fn name(&self) -> &'a str {
        self.name
    }

    /// Whether it runs on this compute capability.
    pub(crate) fn runs_on(&self, capability: (u32, u32)) -> bool {
        match self.kind {
            PtxParameterKind::AndAbove => self.capability <= capability,
            PtxParameterKind::SameMajor => self.capability <= capability && self.capability.0 == capability.0,
            PtxParameterKind::Exactly => self.capability == capability,
        }
    }

    /// Refuses a device on which it does not run.
    pub(crate) fn check(&self, device: &Device) -> Result<(), GpuError> {
        if self.runs_on(device.capability()) {
            return Ok(());
        }
        Err(GpuError::Architecture {
            target: Some(self.name.into()),
            device: device.name().into(),
            capability: device.capability(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Option<&str> {
        Target::of(text).map(|target| target.name)
    }

    #[test]
    fn the_target_is_the_first_outside_comments() {
        assert_eq!(target(".version 8.0\n.target sm_90a\n.target sm_80"), Some("sm_90a"));
        assert_eq!(target("// .target sm_70\n/* .target sm_75 */ .version 8.0 .target sm_80, debug"), Some("sm_80"));
        for none in
            ["", ".version 8.0", "// .target sm_80", "/* .target sm_80", ".target", ".target texmode", ".target sm_"]
        {
            assert_eq!(target(none), None, "{none}");
        }
        assert_eq!(target(".target sm_999999999999"), None);
        assert_eq!(target("é.target sm_80"), Some("sm_80"));
    }

    /// Law: a card loads the PTX that is written for it.
    #[test]
    fn the_text_for_a_card_runs_there() {
        use tilewright_kernel::{Kernel, ptx};
        let kernels = [false, true].map(|moves| {
            Kernel::build("kernel", |k| {
                k.threads(256)?;
                if moves {
                    k.role(0..4, || k.registers(40))?;
                    k.role(4..8, || k.registers(208))?;
                }
                Ok(())
            })
            .unwrap()
        });
        for capability in (8..15).flat_map(|major| (0..10).map(move |minor| (major, minor))) {
            let latest = ptx::Target::latest(capability).unwrap();
            for kernel in &kernels {
                if let Ok(text) = ptx::write(kernel.program(), latest) {
                    assert!(Target::of(&text).unwrap().runs_on(capability), "{capability:?}: {text}");
                }
            }
        }
    }

    /// Law: `runs_on` agrees with the definition for every possible target and device.
    #[test]
    fn targets_run_where_they_say() {
        for number in [50, 75, 80, 86, 89, 90, 100, 103, 120] {
            for device in [50, 75, 80, 86, 89, 90, 100, 103, 120_u32] {
                let capability = (device / 10, device % 10);
                let runs = |suffix: &str| {
                    let text = format!(".target sm_{number}{suffix}");
                    Target::of(&text).unwrap().runs_on(capability)
                };
                assert_eq!(runs(""), number <= device);
                assert_eq!(runs("f"), number <= device && number / 10 == device / 10);
                assert_eq!(runs("a"), number == device);
            }
        }
    }
}
