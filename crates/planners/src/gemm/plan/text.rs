//! A plan as a line for a file, and as sentences.
//!
//! Law: [`Plan::from_line`] reads the line of each plan as that plan, and nothing else.

use crate::gemm::plan::{Plan, TileChoice};
use crate::gemm::problem::LINE_BYTES;
use std::fmt;

impl Plan {
    /// The integer fields of a plan, by name.
    fn numbers(&mut self) -> [(&'static str, &mut i64); 10] {
        [
            ("rows", &mut self.rows),
            ("columns", &mut self.columns),
            ("warpgroups", &mut self.warpgroups),
            ("stages", &mut self.stages),
            ("split_k", &mut self.split_k),
            ("tail", &mut self.tail),
            ("cluster", &mut self.cluster),
            ("raster_band", &mut self.raster_band),
            ("blocks_per_sm", &mut self.blocks_per_sm),
            ("blocks", &mut self.blocks),
        ]
    }

    /// The boolean fields of a plan, by name.
    fn choices(&mut self) -> [(&'static str, &mut bool); 3] {
        [
            ("swapped", &mut self.swapped),
            ("programmatic_launch", &mut self.programmatic_launch),
            ("ping_pong", &mut self.ping_pong),
        ]
    }

    /// The plan as one line, which [`Plan::from_line`] reads.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_planners::gemm::{Plan, Problem};
    ///
    /// let problem = Problem::new(Element::Bf16, [4096, 4096, 4096]).unwrap();
    /// let plan = Plan::of(&problem, &Machine::named("H200").unwrap());
    /// assert!(plan.line().starts_with("rows=128 columns=256 warpgroups=2"));
    /// assert_eq!(Plan::from_line(&plan.line()), Some(plan));
    /// assert_eq!(Plan::from_line("rows=128"), None);
    /// ```
    pub fn line(&self) -> String {
        let mut plan = self.clone();
        let numbers = plan.numbers().map(|(name, number)| format!("{name}={number}")).join(" ");
        let choices = plan.choices().map(|(name, choice)| format!("{name}={choice}")).join(" ");
        let warps = plan.warps.map_or(String::new(), |[rows, columns]| format!(" warps={rows}x{columns}"));
        let producer = if plan.producer { " producer=true" } else { "" };
        format!("{numbers} {choices}{warps}{producer}")
    }

    /// Parses a line in which each field occurs exactly once, and `warps` and `producer` at most
    /// once.
    pub fn from_line(line: &str) -> Option<Plan> {
        let mut given = std::collections::HashMap::new();
        for part in line.split_whitespace() {
            let (name, value) = part.split_once('=')?;
            if given.insert(name, value).is_some() {
                return None;
            }
        }
        let mut plan = Plan::of_tile(TileChoice::of(0, 0));
        for (name, number) in plan.numbers() {
            *number = given.remove(name)?.parse().ok()?;
        }
        for (name, choice) in plan.choices() {
            *choice = given.remove(name)?.parse().ok()?;
        }
        if let Some(warps) = given.remove("warps") {
            let (rows, columns) = warps.split_once('x')?;
            plan.warps = Some([rows.parse().ok()?, columns.parse().ok()?]);
        }
        if let Some(producer) = given.remove("producer") {
            plan.producer = producer.parse().ok()?;
        }
        given.is_empty().then_some(plan)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { rows, columns, stages, raster_band, blocks, .. } = self;
        let [down, across] = if self.swapped { ["N", "M"] } else { ["M", "N"] };
        writeln!(
            f,
            "output tiles of {rows} along {down} x {columns} along {across}, k-tiles of {LINE_BYTES} bytes, {stages} stages"
        )?;
        let clusters = if self.cluster > 1 { format!(" in clusters of {}", self.cluster) } else { String::new() };
        let per_sm = match self.blocks_per_sm {
            1 => String::new(),
            several => format!(", {several} on each multiprocessor"),
        };
        let blocks = if *blocks == 1 { "one block".to_string() } else { format!("{blocks} blocks{clusters}{per_sm}") };
        match raster_band {
            1 => writeln!(f, "persistent grid of {blocks}; raster order along {across}, then along {down}")?,
            band => writeln!(
                f,
                "persistent grid of {blocks}; raster order in bands of {band} tiles along {down}, then along {across}"
            )?,
        }
        if self.cluster > 1 {
            let along = if self.side_by_side() { across } else { down };
            writeln!(
                f,
                "the tiles of a cluster are neighbours along {along}; each block multicasts half of the operand that both read"
            )?;
        }
        let summed = "a second kernel adds the partial accumulators in the order of K";
        match (self.tail, self.split_k) {
            (0, 1) => {}
            (0, split_k) => writeln!(f, "split-K by {split_k}: {summed}")?,
            (tail, split_k) => writeln!(f, "split-K by {split_k} for the last {tail} tiles: {summed}")?,
        }
        if self.ping_pong {
            writeln!(f, "ping-pong: one consumer warpgroup runs its epilogue while the other one multiplies")?;
        }
        if self.programmatic_launch {
            writeln!(
                f,
                "programmatic launch: blocks start before the previous launch ends, and wait for it before they read"
            )?;
        }
        Ok(())
    }
}
