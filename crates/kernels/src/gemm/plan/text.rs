//! A plan as a line, which is kept in a file, and as sentences.
//!
//! Law: [`Plan::from_line`] reads the line of each plan as that plan, and nothing else.

use std::fmt;

use super::Plan;
use crate::gemm::problem::LINE_BYTES;

impl Plan {
    /// The numbers of a plan, by name.
    fn numbers(&mut self) -> [(&'static str, &mut i64); 10] {
        [
            ("rows", &mut self.rows),
            ("columns", &mut self.columns),
            ("groups", &mut self.groups),
            ("stages", &mut self.stages),
            ("splits", &mut self.splits),
            ("tail", &mut self.tail),
            ("cluster", &mut self.cluster),
            ("group", &mut self.group),
            ("resident", &mut self.resident),
            ("blocks", &mut self.blocks),
        ]
    }

    /// The choices of the plan that are yes or no, by name.
    fn choices(&mut self) -> [(&'static str, &mut bool); 4] {
        [
            ("swapped", &mut self.swapped),
            ("overlaps", &mut self.overlaps),
            ("alternates", &mut self.alternates),
            ("stacked", &mut self.stacked),
        ]
    }

    /// The plan as one line, which [`Plan::from_line`] reads.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::cost::Machine;
    /// use tilewright_kernels::gemm::{Plan, Problem};
    ///
    /// let problem = Problem::new(Element::Bf16, [4096, 4096, 4096]).unwrap();
    /// let plan = Plan::of(&problem, &Machine::named("H200").unwrap());
    /// assert!(plan.line().starts_with("rows=128 columns=256 groups=2"));
    /// assert_eq!(Plan::from_line(&plan.line()), Some(plan));
    /// assert_eq!(Plan::from_line("rows=128"), None);
    /// ```
    pub fn line(&self) -> String {
        let mut plan = self.clone();
        let numbers = plan.numbers().map(|(name, number)| format!("{name}={number}")).join(" ");
        let choices = plan.choices().map(|(name, choice)| format!("{name}={choice}")).join(" ");
        format!("{numbers} {choices}")
    }

    /// The plan that a line says, where each of its parts is there once and nothing else.
    pub fn from_line(line: &str) -> Option<Plan> {
        let mut given = std::collections::HashMap::new();
        for part in line.split_whitespace() {
            let (name, value) = part.split_once('=')?;
            if given.insert(name, value).is_some() {
                return None;
            }
        }
        let mut plan = Plan {
            swapped: false,
            rows: 0,
            columns: 0,
            groups: 0,
            stages: 0,
            splits: 0,
            tail: 0,
            cluster: 0,
            group: 0,
            resident: 0,
            blocks: 0,
            overlaps: false,
            alternates: false,
            stacked: false,
        };
        for (name, number) in plan.numbers() {
            *number = given.remove(name)?.parse().ok()?;
        }
        for (name, choice) in plan.choices() {
            *choice = given.remove(name)?.parse().ok()?;
        }
        given.is_empty().then_some(plan)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { rows, columns, stages, group, blocks, .. } = self;
        let of = if self.swapped { ", its columns along the rows of tiles" } else { "" };
        writeln!(f, "tiles of {rows} x {columns} of D{of}, {LINE_BYTES} bytes along K at a time, {stages} stages")?;
        let clusters = match (self.cluster, self.stacked) {
            (1, _) => "",
            (_, true) => " in clusters of 2, one above the other, which load halves for each other",
            _ => " in clusters of 2, which load halves for each other",
        };
        let resident = if self.resident > 1 { format!(", {} on a processor", self.resident) } else { String::new() };
        writeln!(
            f,
            "{blocks} blocks{clusters}{resident}, which take tiles in turn; {group} tiles along the rows one after the other, then along the columns"
        )?;
        if self.tail > 0 {
            writeln!(
                f,
                "of the last {} tiles {} blocks share the steps along K; a second kernel adds their sums, in the order of the steps",
                self.tail, self.splits
            )?;
        } else if self.splits > 1 {
            writeln!(
                f,
                "{} blocks share the steps along K of a tile; a second kernel adds their sums, in the order of the steps",
                self.splits
            )?;
        }
        if self.alternates {
            writeln!(f, "two groups of four warps take tiles in turn: one multiplies while the other one writes")?;
        }
        if self.overlaps {
            writeln!(f, "blocks begin while the launch before still runs, and wait for it before they read")?;
        }
        Ok(())
    }
}
