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
    fn choices(&mut self) -> [(&'static str, &mut bool); 3] {
        [("swapped", &mut self.swapped), ("overlaps", &mut self.overlaps), ("alternates", &mut self.alternates)]
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
        let [down, across] = if self.swapped { ["N", "M"] } else { ["M", "N"] };
        writeln!(
            f,
            "tiles of {rows} along {down} x {columns} along {across}, {LINE_BYTES} bytes along K at a time, {stages} stages"
        )?;
        let clusters = if self.cluster > 1 { format!(" in clusters of {}", self.cluster) } else { String::new() };
        let resident = if self.resident > 1 { format!(", {} on a processor,", self.resident) } else { String::new() };
        let order = match group {
            1 => format!("along {across}, then along {down}"),
            _ => format!("{group} along {down}, then the {group} beside them along {across}"),
        };
        match blocks {
            1 => writeln!(f, "one block takes tiles in turn: {order}")?,
            _ => writeln!(f, "{blocks} blocks{clusters}{resident} take tiles in turn: {order}")?,
        }
        if self.cluster > 1 {
            let along = if self.side_by_side() { across } else { down };
            writeln!(
                f,
                "the tiles of a cluster are neighbours along {along}; each block loads half of what both read"
            )?;
        }
        if self.tail > 0 {
            writeln!(
                f,
                "{} blocks share the steps along K of each of the last {} tiles; a second kernel adds their sums, in the order of the steps",
                self.splits, self.tail
            )?;
        } else if self.splits > 1 {
            writeln!(
                f,
                "{} blocks share the steps along K of each tile; a second kernel adds their sums, in the order of the steps",
                self.splits
            )?;
        }
        if self.alternates {
            writeln!(f, "two groups of four warps take tiles in turn: one multiplies while the other one writes D")?;
        }
        if self.overlaps {
            writeln!(f, "blocks begin while the launch before still runs, and wait for it before they read")?;
        }
        Ok(())
    }
}
