//! The kernel of a plan: one warp that copies, groups of four that multiply.
//!
//! One warp sets off bulk copies of tiles of both operands into a ring of stages; the others
//! multiply what has arrived, 64 rows of a tile at a time. Blocks take tiles in turn, so that the
//! copies for a tile go on while the one before is written.

use tilewright_atoms::{MmaAtom, TiledMma};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Element, Fragment, Kernel, KernelError, Num};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Extent, Layout, Tiler};

use super::edges::{Edges, Loaded};
use super::epilogue::{Ends, Epilogue, swizzle, width};
use super::factor::{Factor, part_of};
use super::groups::Tiles;
use super::list::{Listed, each};
use super::matrix::Contiguous;
use super::order::Order;
use super::plan::{Plan, WARPS};
use super::problem::{Problem, Written};
use super::scales::{Scaling, promote};
use super::schedule::{Grid, Unit, minus, overflow, plus, times};
use crate::error::PlanError;
use crate::product::{at, count, fact};

/// The instruction of a plan, by name.
pub(super) fn atom(problem: &Problem, columns: i64) -> String {
    let types = match problem.factors() {
        Element::F16 => "16_F32F16F16_SS",
        Element::F32 => "8_F32TF32TF32_SS_TN",
        Element::E4M3 => "32_F32E4M3E4M3_SS_TN",
        Element::E5M2 => "32_F32E5M2E5M2_SS_TN",
        Element::I8 => "32_S32S8S8_SS_TN",
        Element::U8 => "32_S32U8U8_SS_TN",
        _ => "16_F32BF16BF16_SS",
    };
    format!("SM90_64x{columns}x{types}")
}

/// The shared memory of so many stages of a factor: lines of 128 bytes along K, or of up to 128
/// bytes along its rows, which divide the rows that are multiplied together.
fn ring(problem: &Problem, contiguous: Contiguous, [rows, together]: [i64; 2], stages: i64) -> String {
    let depth = problem.depth();
    let stage = rows * depth;
    match (contiguous, problem.factors().bytes()) {
        (Contiguous::Rows, _) => {
            let width = width(together, 2);
            let (swizzle, panels) = (swizzle(width, 2), rows / width);
            format!("{swizzle}(({width},{panels}),{depth},{stages}):((1,{}),{width},{stage})", width * depth)
        }
        (_, bytes) => {
            let base = 4 - bytes.ilog2();
            format!("S<3,{base},3> o 0 o ({rows},{depth},{stages}):({depth},1,{stage})")
        }
    }
}

/// The kernel that multiplies, into D or into the sums of each range of steps: for the sizes of the
/// problem, or for all that are multiples of what it says.
pub(super) fn kernel(name: &str, problem: &Problem, plan: &Plan, exact: bool) -> Result<Kernel, PlanError> {
    kernel_of(name, std::slice::from_ref(problem), plan, exact)
}

/// The kernel that multiplies all problems of a list, of which the first one says types and how
/// tensors lie: one problem, or several for their sizes alone.
pub(super) fn kernel_of(name: &str, problems: &[Problem], plan: &Plan, exact: bool) -> Result<Kernel, PlanError> {
    let Some(problem) = problems.first() else {
        return Err(PlanError::Plan { because: "a list has one problem at least" });
    };
    let factors = problem.factors();
    let Plan { swapped, rows, columns, groups, stages, splits, cluster, group, blocks, .. } = *plan;
    let warps = (WARPS * groups) as u32;
    let neighbours = if plan.side_by_side() { cluster } else { 1 };
    let copiers = if plan.shares(problem).is_some() { WARPS as u32 } else { 1 };
    let depth = problem.depth();
    // Of pairs each half of a tile of B is multiplied by instructions of its own; so are halves of
    // the columns where sums are promoted, or too many for an instruction.
    let paired = problem.pairs().is_some();
    let [own_rows, own_columns] = plan.tile_of_d(problem);
    let promoted = problem.is_promoted();
    let halved = !paired && plan.halves(problem) == 2;
    let together = if halved { own_columns / 2 } else { own_columns };
    let order: Tiler = format!("[{own_rows}:1;{together}:1;{}:1]", depth / 4).parse()?;
    let instruction = MmaAtom::named(&atom(problem, together))?;
    let mma = TiledMma::new(instruction, &format!("({},1,1)", plan.together()).parse::<Layout>()?, &order)?;
    // With names for sizes, K is contiguous in A and B, and N in D.
    let whole = |found: Result<Contiguous, &'static str>| if exact { found } else { Ok(Contiguous::Columns) };
    let because = |because| PlanError::Plan { because };
    let lies_a = whole(problem.readable_a()).map_err(because)?;
    let lies_b = whole(problem.readable_b()).map_err(because)?;
    let batched = [problem.a(), problem.b()].map(|factor| !exact || factor.is_batch());
    let bulk = !exact || problem.stored().is_ok();
    let staged = if exact { problem.staged() } else { Some(Contiguous::Columns) }.map(|contiguous| (contiguous, bulk));
    // Of the last tiles blocks share the steps, where the plan says so: they are written otherwise.
    let (whole_plan, last_plan) = plan.parted();
    let (epilogue, last) = match plan.tail {
        0 => (Epilogue::of(problems, plan, staged)?, None),
        tail => {
            let before = Epilogue::of(problems, &whole_plan, staged)?.before_others();
            (before, Some(Epilogue::of_last(problem, &last_plan, tail)?))
        }
    };
    let facts = (!exact).then(|| facts(problem, plan));
    let mut written = problem.written(facts.as_ref());
    let others: Vec<Written> = problems[1..].iter().map(|other| other.written(None)).collect();
    let listed = (problems.len() > 1).then(|| Listed::of(problems, plan));
    let fold = if exact { problem.fold() } else { None };
    if let Some(fold) = &fold {
        let [a, b] = fold.factors(problem.sizes()[1]);
        let d = fold.beside(problem.d()).ok_or(PlanError::Plan { because: "folded modes of D are moved after" })?;
        written.tensors = [a, b, d];
        written.sizes[0] = fold.padded(rows).to_string();
        written.sizes[2] = (fold.steps(depth) * depth).to_string();
    }
    let [m, n, steps] = &written.sizes;
    let [m, n] = if swapped { [n, m] } else { [m, n] };
    let kernel = Kernel::build(name, |k| {
        // The factors of each problem, that along the rows of tiles first.
        let declare = |(at, written): (usize, &Written)| -> Result<[Factor<'_>; 2], KernelError> {
            let named = |name: &str| if problems.len() > 1 { format!("{name}{at}") } else { name.to_string() };
            let a = k.tensor_of(factors, &named("a"), &written.tensors[0], Role::Input)?;
            let b = k.tensor_of(factors, &named("b"), &written.tensors[1], Role::Input)?;
            let a = Factor {
                view: a,
                lies: lies_a,
                batch: batched[0],
                paired: false,
                halved: false,
                grouped: problem.groups().is_some(),
            };
            let b = Factor { view: b, lies: lies_b, batch: batched[1], paired, halved: paired, grouped: false };
            let (left, mut right) = if swapped { (b, a) } else { (a, b) };
            right.halved |= halved;
            Ok([left, right])
        };
        let all_written: Vec<&Written> = [&written].into_iter().chain(&others).collect();
        let of_problems = all_written.iter().copied().enumerate().map(declare);
        let of_problems = of_problems.collect::<Result<Vec<_>, _>>()?;
        let [left, right] = &of_problems[0];
        k.threads(i64::from(warps + copiers) * 32)?;
        k.resident(plan.resident as u32)?;
        k.grid(Axis::X, &blocks.to_string())?;
        k.cluster(cluster as u32)?;
        let block = k.block_number(Axis::X);
        let ring_left = k.shared_of(factors, &ring(problem, left.lies, [rows, own_rows], stages))?;
        let ring_right = k.shared_of(factors, &ring(problem, right.lies, [columns, own_columns], stages))?;
        let beside = epilogue.inputs(k)?;
        let scaling = Scaling::declare(k, problem, plan)?;
        let step_count = k.size(&format!("ceil({steps}/{depth})"))?;
        let groups = Tiles::declare(k, problem, plan, &step_count)?;
        let ends = epilogue.ends(k, &all_written, beside)?;
        let last_ends = match &last {
            None => None,
            Some(last) => Some(last.ends(k, &all_written, last.inputs(k)?)?),
        };
        let users = (WARPS * plan.together()) as u32;
        let pipeline = k.pipeline(stages, users * cluster as u32)?;
        let all_steps = count(problem.sizes()[2], depth);
        let order = Order::new(k, plan, all_steps)?;
        let lies = [left.lies, right.lies];
        let alone = exact && listed.is_none();
        // The kinds of clusters, by whether their tiles are side by side, and what is loaded of
        // edges by each.
        let ends_above = plan.ends_above(problem);
        let sides = if ends_above { vec![true, false] } else { vec![plan.side_by_side()] };
        let edges = |side| if alone { Edges::of(problem, plan, lies, side) } else { Edges::none() };
        let kinds: Vec<(bool, Edges)> = sides.into_iter().map(|side| (side, edges(side))).collect();
        let [along, across] = plan.tiles(problem);
        let grid = Grid {
            across: match ends_above {
                true => Expr::from(across / neighbours),
                false => k.size(&format!("ceil({n}/{})", columns * neighbours))?,
            },
            beside: neighbours,
            bands: k.size(&format!("ceil({m}/{})", rows * group))?,
            group,
            batch: if problem.batch() > 1 { Some(k.size(&written.batch)?) } else { None },
            steps: step_count,
            splits: if last.is_some() { 1 } else { splits },
            blocks,
            some: None,
            above: ends_above.then_some([along * (across - 1), along]),
        };
        let tiles = along * across;
        let grid = if last.is_some() { Grid { some: Some([0, tiles - plan.tail]), ..grid } } else { grid };
        let last_grid = Grid { splits, some: Some([tiles - plan.tail, plan.tail]), ..grid.clone() };
        let (rank, all) = (if cluster == 1 { Expr::from(0) } else { k.rank() }, format!("{cluster}:1"));

        if plan.overlaps {
            // What stands before this may run while the launch before still does.
            k.wait_launches();
            k.launch_next();
        }
        let groups = groups.map(Tiles::read).transpose()?;
        let own = |grid: &Grid| match (&groups, &listed) {
            (Some(tiles), _) => tiles.own(k, &block),
            (None, Some(listed)) => listed.own(&block),
            (None, None) => grid.own(&block),
        };
        let unit_of = |grid: &Grid, turn: &Expr| -> Result<Unit, KernelError> {
            let mut unit = match (&groups, &listed) {
                (Some(tiles), _) => tiles.unit(k, &block, turn)?,
                (None, Some(listed)) => listed.unit(k, &block, turn)?,
                (None, None) => grid.unit(k, &block, turn)?,
            };
            unit.boxed = fold.as_ref().map(|fold| fold.at(k, rows, &unit.row)).transpose()?;
            Ok(unit)
        };
        k.role(warps..warps + copiers, || {
            if let Some([few, _]) = plan.shares(problem) {
                k.registers(few)?;
            }
            k.single(|| {
                let cursor = pipeline.cursor()?;
                let inputs = epilogue.cursor(&ends, true)?;
                let fill = |grid: &Grid| {
                    k.range(own(grid)?, |turn| {
                        let unit = unit_of(grid, &turn)?;
                        each(k, &unit, problems.len(), &|which| {
                            let [left, right] = &of_problems[which];
                            // Tiles of folded modes are found at each step.
                            let (tiles_left, tiles_right) = match &fold {
                                None => (
                                    left.tiles(&unit, [rows, depth], &unit.row)?,
                                    right.tiles(&unit, [columns, depth], &unit.column)?,
                                ),
                                Some(_) => (Vec::new(), Vec::new()),
                            };
                            let load = |step: Expr, tails: Loaded, side_by_side: bool| -> Result<(), KernelError> {
                                // Each block of a cluster loads a part of the factor that they
                                // share, for all.
                                let shared = |side: bool| cluster > 1 && side == side_by_side;
                                let number = plus(&unit.first, &step)?;
                                let step = at(&number)?;
                                let stage = cursor.stage()?;
                                stage.acquire()?;
                                if let (Some(fold), Some(boxed)) = (&fold, &unit.boxed) {
                                    let here = at(stage.index())?;
                                    let from = fold.of_a(k, &left.view, boxed, (&number, depth))?;
                                    stage.load(&from, &ring_left.slice(here.clone())?)?;
                                    let from = fold.of_b(k, &right.view, (columns, &unit.column), (&number, depth))?;
                                    stage.load(&from, &ring_right.slice(here)?)?;
                                    stage.publish()?;
                                    return cursor.advance();
                                }
                                for (factor, from, ring, lines, shared, tail) in [
                                    (left, &tiles_left, &ring_left, rows, shared(true), tails[0]),
                                    (right, &tiles_right, &ring_right, columns, shared(false), tails[1]),
                                ] {
                                    let to = ring.slice(at(stage.index())?)?;
                                    if shared {
                                        let own = [tail.unwrap_or(lines / cluster), depth];
                                        let (from, to) = (from[0].slice(step.clone())?, part_of(&to, own, &rank)?);
                                        stage.load_multicast(&part_of(&from, own, &rank)?, &to, &all, 0)?;
                                        continue;
                                    }
                                    for (number, from) in (0..).zip(from) {
                                        let to = match factor.paired {
                                            true => factor.part(&to, [lines, depth], depth, number)?,
                                            false => to.clone(),
                                        };
                                        let (from, zero) = (from.slice(step.clone())?, Expr::from(0));
                                        match tail.map(|lines| [lines, depth]) {
                                            None => stage.load(&from, &to)?,
                                            Some(own) => {
                                                stage.load(&part_of(&from, own, &zero)?, &part_of(&to, own, &zero)?)?
                                            }
                                        }
                                    }
                                }
                                stage.publish()?;
                                cursor.advance()
                            };
                            // The steps of a cluster of a kind; none of other kinds.
                            let of_kind = |from: &Expr, to: &Expr, side_by_side: bool| {
                                let all = minus(to, from)?;
                                match &unit.above {
                                    None => Ok(all),
                                    Some(above) if side_by_side => times(&all, &minus(&Expr::from(1), above)?),
                                    Some(above) => times(&all, above),
                                }
                            };
                            let whole = |from: &Expr, to: &Expr| {
                                kinds.iter().try_for_each(|(side, _)| {
                                    let own = of_kind(from, to, *side)?;
                                    k.range(own, |step| load(plus(from, &step)?, [None; 2], *side))
                                })
                            };
                            // From a step on by which all stages have been filled as a whole.
                            let rest = |from: &Expr, to: &Expr| {
                                kinds.iter().try_for_each(|(side, edges)| {
                                    let own = of_kind(from, to, *side)?;
                                    edges.cases(&unit)?.iter().try_for_each(|(tails, is)| {
                                        k.range(times(&own, is)?, |step| load(plus(from, &step)?, *tails, *side))
                                    })
                                })
                            };
                            let no_edges = kinds.iter().all(|(_, edges)| edges.is_none());
                            let (zero, filled) = (Expr::from(0), Expr::from(stages));
                            match &inputs {
                                None if no_edges => whole(&zero, &unit.steps),
                                None => whole(&zero, &filled).and_then(|()| rest(&filled, &unit.steps)),
                                Some(inputs) => epilogue.fetch(&ends, inputs, (&unit, which), |from, to| {
                                    // The first half comes before, of at least so many steps.
                                    let late = from.known() != Some(0) && all_steps >= 2 * stages;
                                    if no_edges || !late { whole(&from, &to) } else { rest(&from, &to) }
                                }),
                            }
                        })
                    })
                };
                fill(&grid)?;
                if last.is_some() { fill(&last_grid) } else { Ok(()) }
            })
        })?;
        let work = |group: usize| -> Result<(), KernelError> {
            if let Some([_, many]) = plan.shares(problem) {
                k.registers(many)?;
            }
            // Sums that are promoted are added to the totals after each step.
            let totals = if promoted { epilogue.sums(k)? } else { Vec::new() };
            let parts = plan.halves(problem) as usize;
            let held = if promoted { plan.at_once(problem) as usize } else { epilogue.each() };
            let sums = match promoted && halved {
                true => (0..held).map(|_| epilogue.half(k)).collect::<Result<Vec<_>, _>>()?,
                false => epilogue.sums(k)?.into_iter().take(held).collect(),
            };
            // A stage is released when the products of the next one are set off: so there are
            // always some under way. Where copies take longer than products, or each stage is needed
            // again soon, it is released as soon as its own are done.
            let at_once = plan.releases_at_once(problem, epilogue.tile_comes());
            let (ahead, behind) = (pipeline.cursor()?, pipeline.cursor()?);
            let inputs = epilogue.cursor(&ends, false)?;
            // Each product of sums that are promoted begins anew, in the same registers.
            sums.iter().for_each(Fragment::clear);
            // Of the last step, the instructions along K of which a part lies inside.
            let inside = count(problem.sizes()[2] - (all_steps - 1) * depth, depth / 4) * (depth / 4);
            let known = alone && at_once && !promoted && plan.splits == 1 && fold.is_none();
            let last_step = (known && all_steps > 1 && inside < depth).then_some(inside);
            let product = |number: usize, here: &Coord<Expr>, along: i64| -> Result<(), KernelError> {
                let (own, at) = (sums[number % held].clone(), number as i64);
                let own = if halved && !promoted { epilogue.half_of(&own, number)? } else { own };
                let of_left = left.part(&ring_left.slice(here.clone())?, [rows, depth], along, at)?;
                let of_right = right.part(&ring_right.slice(here.clone())?, [columns, depth], along, at)?;
                match promoted {
                    true => k.mma_anew(&mma, &own, &of_left, &of_right),
                    false => k.mma(&mma, &own, &of_left, &of_right, &own),
                }
            };
            // What is full next.
            let filled = || -> Result<Coord<Expr>, KernelError> {
                let stage = ahead.stage()?;
                stage.wait()?;
                let here = at(stage.index())?;
                ahead.advance()?;
                Ok(here)
            };
            let multiply = |along: i64| -> Result<(), KernelError> {
                let here = filled()?;
                (0..parts).try_for_each(|number| product(number, &here, along))
            };
            let release = || -> Result<(), KernelError> {
                let stage = behind.stage()?;
                if cluster == 1 { stage.release() } else { stage.release_to(&all, 0) }?;
                behind.advance()
            };
            order.begin(group, [&ahead, &behind])?;
            let consume = |grid: &Grid, epilogue: &Epilogue, ends: &Ends<'_>| {
                k.range(order.own(&own(grid)?, group)?, |turn| {
                    let unit = unit_of(grid, &order.turn(&turn, group)?)?;
                    order.wait(group);
                    if !promoted {
                        sums.iter().for_each(Fragment::clear);
                        // How many steps are set off before the loop, and how many products stay
                        // under way in it.
                        let (first, under_way) = if at_once { (0, 0) } else { (1, parts as u32) };
                        let more = |all: Expr, along: i64| {
                            k.range(all, |_| {
                                multiply(along)?;
                                k.wait_mma(under_way);
                                release()
                            })
                        };
                        let others = |from: i64, to: &Expr| {
                            let all = minus(to, &Expr::from(from))?;
                            let Some(inside) = last_step else { return more(all, depth) };
                            more(minus(&all, &Expr::from(1))?, depth)?;
                            more(Expr::from(1), inside)
                        };
                        (0..first).try_for_each(|_| multiply(depth))?;
                        if inputs.is_none() {
                            others(first, &unit.steps)?;
                        } else {
                            // Inputs are fetched in the middle of a tile: by then the tile before
                            // has left their place in shared memory, so no warp waits for it.
                            let early = unit.steps.divide_up(&Expr::from(4)).ok_or_else(overflow)?;
                            more(minus(&early, &Expr::from(first))?, depth)?;
                            epilogue.let_come(k, inputs.as_ref())?;
                            others(0, &minus(&unit.steps, &early)?)?;
                        }
                        order.pass(group);
                        k.wait_mma(0);
                        (0..first).try_for_each(|_| release())?;
                        order.skip([&ahead, &behind])?;
                        return epilogue.write(k, &sums, (ends, inputs.as_ref()), &unit, group);
                    }
                    let left = minus(&unit.steps, &Expr::from(1))?;
                    // While one half is added to its totals, the other one is multiplied, or
                    // another group multiplies.
                    totals.iter().for_each(Fragment::clear);
                    let add = |number: usize, scales: &[Vec<Num<'_>>]| -> Result<(), KernelError> {
                        let total = match halved {
                            true => epilogue.half_of(&totals[0], number)?,
                            false => totals[number].clone(),
                        };
                        let scales = scaling.as_ref().map(|scaling| scaling.of_part(&mma, scales, number));
                        promote(&total, &sums[number % held], scales.unwrap_or_default())
                    };
                    let block = |scales: &[Vec<Num<'_>>]| -> Result<(), KernelError> {
                        let here = filled()?;
                        (0..held).try_for_each(|number| product(number, &here, depth))?;
                        for number in 0..parts {
                            if number >= held {
                                product(number, &here, depth)?;
                            }
                            let others = if held == parts { parts - 1 - number } else { 0 };
                            k.wait_mma(others as u32);
                            if number + 1 == parts {
                                release()?;
                            }
                            add(number, scales)?;
                        }
                        Ok(())
                    };
                    let scales = |step: &Expr| match &scaling {
                        Some(scaling) => scaling.ask(&mma, &unit, &plus(&unit.first, step)?),
                        None => Ok(Vec::new()),
                    };
                    let come = || epilogue.let_come(k, inputs.as_ref());
                    match scaling.as_ref().and(plan.scales_ahead(problem)) {
                        Some(ahead) => ahead.multiply(k, left, scales, block, come)?,
                        None => {
                            block(&scales(&Expr::from(0))?)?;
                            come()?;
                            k.range(left, |step| block(&scales(&plus(&step, &Expr::from(1))?)?))?;
                        }
                    }
                    epilogue.write(k, &totals, (ends, inputs.as_ref()), &unit, group)
                })
            };
            consume(&grid, &epilogue, &ends)?;
            if let (Some(last), Some(ends)) = (&last, &last_ends) {
                consume(&last_grid, last, ends)?;
            }
            order.end(k, &own(&grid)?, group)?;
            epilogue.end(k)
        };
        for group in 0..plan.tiles_at_once() as u32 {
            k.role(group * users..(group + 1) * users, || work(group as usize))?;
        }
        if cluster > 1 {
            // Nobody ends while the others still arrive at its stages.
            k.cluster_barrier();
        }
        Ok(())
    })?;
    Ok(kernel)
}

/// What M, N and K are multiples of, where that spares a bound or shows an alignment.
fn facts(problem: &Problem, plan: &Plan) -> [String; 3] {
    let [m, n, k] = problem.sizes();
    let (along_m, along_n) = (plan.rows * plan.group, plan.columns);
    let (along_m, along_n) = if plan.swapped { (along_n, along_m) } else { (along_m, along_n) };
    let eight = |size: i64| if size % 8 == 0 { size } else { 8 };
    [fact(m, &[along_m]), fact(eight(n), &[along_n, 8]), fact(eight(k), &[problem.depth(), 8])]
}
