//! Plans of products, executed by the interpreter under every schedule, and compared with plain
//! loops.

use half::bf16;
use tilewright_kernel::interpret::{Checked, Interpreter};
use tilewright_kernel::machine::Machine;
use tilewright_kernel::{Element, ptx};
use tilewright_planners::gemm::{Matrix, Plan, Problem, Product, TileChoice};

use crate::gemm::{checked, h200};

/// Runs a kernel on bytes for its inputs, and gives what it leaves in its last tensor.
fn run(product: &Product, number: usize, given: &[Vec<u8>]) -> Vec<u8> {
    let kernel = &product.kernels()[number];
    let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap_or_else(|error| panic!("{error}"));
    for (tensor, bytes) in given.iter().enumerate() {
        interpreter.bytes(tensor, bytes).unwrap_or_else(|error| panic!("{error}"));
    }
    let checked: Checked = interpreter.check().unwrap_or_else(|findings| panic!("{}: {}", kernel.name(), findings[0]));
    checked.run.bytes(given.len()).unwrap().to_vec()
}

/// Small numbers of which no row is like another.
fn numbers(count: usize, step: usize) -> Vec<bf16> {
    (0..count).map(|at| bf16::from_f32(((at * step) % 251) as f32 / 64.0 - 1.9)).collect()
}

fn bytes(numbers: &[bf16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_bits().to_le_bytes()).collect()
}

/// Runs a plan at the sizes of its problem, and compares it with the definition.
fn multiplied(problem: &Problem, plan: &Plan) {
    let product = Product::planned(problem, plan, &h200()).unwrap_or_else(|error| panic!("{error}"));
    let [m, n, k] = problem.sizes().map(|size| size as usize);
    let batch = problem.batch() as usize;
    let (a, b) = (numbers(m * k * batch, 37), numbers(n * k * batch, 101));
    let mut left = run(&product, 0, &[bytes(&a), bytes(&b)]);
    assert_eq!(product.kernels().len(), 1 + usize::from(plan.split_k > 1));
    assert_eq!(product.workspace(), if plan.split_k > 1 { left.len() as i64 } else { 0 });
    if plan.split_k > 1 {
        left = run(&product, 1, &[left]);
    }
    let d: Vec<f64> =
        left.chunks(2).map(|two| f64::from(bf16::from_bits(u16::from_le_bytes([two[0], two[1]])))).collect();
    assert_eq!(d.len(), m * n * batch);
    for (index, found) in d.into_iter().enumerate() {
        let (matrix, row, column) = (index / (m * n), index / n % m, index % n);
        let terms =
            (0..k).map(|at| f64::from(a[(matrix * m + row) * k + at]) * f64::from(b[(matrix * n + column) * k + at]));
        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size): (f64, f64), x| (sum + x, size + x.abs()));
        let bound = size * (k as f64 + 2.0) * 2_f64.powi(-24) + sum.abs() * 2_f64.powi(-8);
        let error = (found - sum).abs();
        assert!(error <= bound, "{problem}, {plan}({matrix},{row},{column}): {found} is not {sum}");
    }
}

/// As [`crate::gemm::plan`], with two tiles along the rows one after the other.
fn plan(rows: i64, columns: i64, warpgroups: i64) -> Plan {
    Plan { raster_band: 2, ..crate::gemm::plan(rows, columns, warpgroups) }
}

fn problem(sizes: [i64; 3]) -> Problem {
    Problem::new(Element::Bf16, sizes).unwrap()
}

#[test]
fn tiles_of_every_kind_are_right() {
    let product = problem([200, 264, 136]);
    for (rows, columns, groups) in [(64, 64, 1), (64, 136, 1), (128, 96, 2), (128, 208, 2), (192, 64, 1), (128, 72, 1)]
    {
        multiplied(&product, &Plan { raster_band: 200 / rows.min(200), ..plan(rows, columns, groups) });
    }
}

/// Stages that are filled and released in pairs, with one row of tiles and with tiles at both
/// edges.
#[test]
fn stages_in_pairs_are_right() {
    for sizes in [[1, 40, 1024], [70, 40, 1152]] {
        let product = problem(sizes);
        for stages in [16, 22] {
            multiplied(&product, &Plan { raster_band: 1, stages, ..plan(64, 16, 1) });
        }
    }
    // An odd number of stages, or of k-tiles.
    for (sizes, stages) in [([64, 40, 1024], 17), ([64, 40, 1088], 18)] {
        let plan = Plan { raster_band: 1, stages, ..plan(64, 16, 1) };
        assert!(Product::planned(&problem(sizes), &plan, &h200()).is_err(), "{plan}");
    }
}

/// Tiles whose accumulators need more registers than an even split gives, stored in parts.
#[test]
fn the_widest_tiles_are_right() {
    let wide = Plan { raster_band: 1, ..plan(256, 160, 2) };
    let product = Product::planned(&problem([264, 328, 136]), &wide, &h200()).unwrap();
    assert_eq!(product.kernels()[0].program().threads, 384);
    multiplied(&problem([264, 328, 136]), &wide);
    multiplied(&problem([168, 264, 136]), &Plan { swapped: true, ..wide });
}

#[test]
fn operands_change_places() {
    for (sizes, columns) in [([1, 200, 72], 8), ([17, 264, 136], 24), ([129, 136, 64], 136), ([64, 72, 200], 32)] {
        multiplied(&problem(sizes), &Plan { swapped: true, ..plan(64, columns, 1) });
    }
    multiplied(&problem([72, 200, 72]), &Plan { swapped: true, raster_band: 1, ..plan(256, 40, 2) });
    multiplied(&problem([40, 200, 72]), &Plan { swapped: true, ..plan(128, 40, 2) });
}

#[test]
fn blocks_share_the_steps_of_a_tile() {
    for splits in [2, 3, 5] {
        multiplied(&problem([72, 136, 320]), &Plan { split_k: splits, ..plan(64, 64, 1) });
    }
    // D begins a row at any element, since it is not stored by bulk copies.
    multiplied(&problem([70, 136, 200]), &Plan { split_k: 4, raster_band: 1, ..plan(128, 128, 2) });
    multiplied(&problem([3, 200, 200]), &Plan { split_k: 2, swapped: true, ..plan(64, 8, 1) });
}

#[test]
fn clusters_load_the_factor_of_the_columns_together() {
    let cluster = |rows, columns, groups| Plan { cluster: 2, blocks: 4, ..plan(rows, columns, groups) };
    multiplied(&problem([200, 264, 200]), &cluster(64, 64, 1));
    multiplied(&problem([136, 72, 136]), &Plan { stages: 2, ..cluster(64, 48, 1) });
    // The rows are what both read, so the columns need not have halves.
    multiplied(&problem([136, 80, 136]), &cluster(64, 40, 1));
    multiplied(&problem([200, 264, 136]), &cluster(128, 128, 2));
    multiplied(&problem([100, 264, 200]), &Plan { swapped: true, ..cluster(64, 64, 1) });
    // Operand A, for horizontally adjacent tiles.
    multiplied(&problem([264, 200, 136]), &Plan { raster_band: 1, ..cluster(128, 64, 2) });
    multiplied(&problem([136, 72, 200]), &Plan { swapped: true, raster_band: 1, ..cluster(64, 48, 1) });
    multiplied(&problem([200, 136, 328]), &Plan { split_k: 3, blocks: 6, ..cluster(64, 64, 1) });
    multiplied(&problem([136, 72, 72]).batched(3).unwrap(), &cluster(64, 64, 1));
    // Halves that begin in the middle of the pattern of the swizzle.
    multiplied(&problem([136, 144, 136]), &cluster(64, 72, 1));
}

/// Of an odd number of columns of tiles that clusters have side by side, the last one has its tiles
/// one above the other: with tiles outside, with tails of either kind of cluster, with fewer steps
/// than stages, of blocks with one tile and with several.
#[test]
fn the_last_of_an_odd_number_of_columns_is_taken_in_pairs() {
    let beside = |blocks, group| Plan { cluster: 2, blocks, raster_band: group, ..plan(128, 64, 2) };
    for (sizes, blocks, group) in
        [([264, 136, 328], 4, 2), ([200, 136, 328], 2, 1), ([456, 184, 136], 4, 4), ([200, 264, 264], 6, 2)]
    {
        let (plan, [m, n, k]) = (beside(blocks, group), sizes);
        let product = Product::planned(&problem(sizes), &plan, &h200()).unwrap();
        assert!(product.lines().iter().any(|line| line.contains("the number of tiles along N is odd")), "{plan}");
        multiplied(&problem(sizes), &plan);
        multiplied(&problem([n, m, k]), &Plan { swapped: true, ..plan });
    }
    // Of each matrix of a batch, and of each range of steps.
    multiplied(&problem([200, 136, 136]).batched(3).unwrap(), &beside(4, 2));
    multiplied(&problem([200, 136, 328]), &Plan { split_k: 3, ..beside(6, 2) });
    // Rows that make no pairs have a column outside instead.
    multiplied(&problem([264, 136, 136]), &beside(4, 1));
}

/// Blocks with an odd and an even number of tiles, with one, and with none; D in parts, along its
/// rows and along its columns; fewer steps than stages, as many, and more.
#[test]
fn groups_take_tiles_in_turn() {
    let turns = |rows, columns| Plan { ping_pong: true, stages: 4, ..plan(rows, columns, 2) };
    for (sizes, blocks) in [([200, 136, 200], 1), ([136, 136, 256], 2), ([136, 72, 328], 4), ([72, 136, 600], 9)] {
        multiplied(&problem(sizes), &Plan { blocks, ..turns(64, 64) });
    }
    multiplied(&problem([264, 264, 72]), &turns(128, 192));
    multiplied(&problem([264, 264, 328]), &Plan { swapped: true, stages: 5, ..turns(128, 208) });
    multiplied(&problem([72, 72, 72]).batched(3).unwrap(), &Plan { raster_band: 1, ..turns(64, 96) });
}

/// After all stages were filled once, only the elements inside of the matrices are loaded for the
/// last tiles: along the rows, along the columns, along both, for loads without multicast, and with
/// ping-pong.
#[test]
fn tails_are_loaded_alone() {
    let long = |rows, columns| Plan { blocks: 2, ..plan(rows, columns, 1) };
    for (sizes, swapped) in [([136, 136, 520], false), ([72, 128, 520], false), ([50, 136, 520], true)] {
        multiplied(&problem(sizes), &Plan { swapped, raster_band: 1, ..long(64, 64) });
    }
    multiplied(&problem([136, 136, 328]), &Plan { cluster: 2, blocks: 4, ..long(64, 64) });
    multiplied(&problem([136, 136, 328]), &Plan { cluster: 2, blocks: 4, raster_band: 1, ..plan(128, 64, 2) });
    multiplied(&problem([136, 136, 520]), &Plan { ping_pong: true, stages: 4, ..plan(64, 64, 2) });
    multiplied(&problem([72, 72, 328]).batched(3).unwrap(), &long(64, 64));
    // Of each range of steps, where blocks share those of a tile.
    multiplied(&problem([136, 136, 840]), &Plan { split_k: 2, blocks: 4, ..long(64, 64) });
    multiplied(&problem([136, 136, 840]), &Plan { split_k: 3, cluster: 2, blocks: 4, ..long(64, 64) });
    multiplied(&problem([136, 72, 584]), &Plan { split_k: 2, swapped: true, raster_band: 1, ..long(64, 64) });
}

#[test]
fn batches_are_right() {
    let batch = problem([72, 72, 72]).batched(3).unwrap();
    multiplied(&batch, &plan(64, 64, 1));
    multiplied(&batch, &Plan { swapped: true, ..plan(64, 64, 1) });
    multiplied(&batch, &Plan { split_k: 2, ..plan(64, 64, 1) });
}

/// What cannot be carried out says why.
#[test]
fn plans_are_refused() {
    let product = problem([256, 256, 128]);
    let wrong = [
        (Plan { rows: 96, ..plan(64, 64, 1) }, "multiple of 64 rows"),
        (Plan { columns: 264, ..plan(64, 64, 1) }, "at most 256"),
        (Plan { columns: 208, ..plan(256, 64, 2) }, "registers"),
        (Plan { stages: 2, ..plan(192, 200, 3) }, "by halves"),
        (Plan { stages: 1, ..plan(64, 64, 1) }, "two stages"),
        (Plan { split_k: 3, ..plan(64, 64, 1) }, "number of k-tiles"),
        (Plan { raster_band: 5, ..plan(64, 64, 1) }, "tiles along the rows"),
        (Plan { cluster: 3, ..plan(64, 64, 1) }, "one block or two"),
        (Plan { cluster: 2, blocks: 3, ..plan(64, 64, 1) }, "even number of blocks"),
        (Plan { blocks: 0, ..plan(64, 64, 1) }, "blocks"),
        (Plan { ping_pong: true, stages: 4, ..plan(64, 64, 1) }, "two consumer warpgroups"),
        (Plan { ping_pong: true, ..plan(64, 64, 2) }, "four stages"),
        (Plan { ping_pong: true, stages: 4, ..plan(128, 256, 2) }, "registers"),
    ];
    for (plan, because) in wrong {
        let error = Product::planned(&product, &plan, &h200()).unwrap_err();
        assert!(error.code() == "E0940" && error.to_string().contains(because), "{error}");
    }
}

/// 12 tiles of 256 rows by 33 of 152 columns make three waves on 132 multiprocessors, in clusters
/// of horizontally adjacent tiles, except for the last column, because 33 is odd.
#[test]
fn an_odd_number_of_tiles_fills_the_turns() {
    let problem = problem([3000, 5000, 7000]);
    let plan = Plan::of(&problem, &Machine::named("H200").unwrap());
    assert_eq!((plan.rows, plan.columns, plan.cluster), (256, 152, 2), "{plan}");
    assert_eq!((plan.blocks, plan.stages), (132, 4), "{plan}");
    let lines = Product::planned(&problem, &plan, &h200()).unwrap().lines().join("\n");
    assert!(lines.contains("the last 12 are neighbours along M"), "{lines}");
}

/// Where blocks of a cluster wait for each other, D goes in parts through shared memory that leaves
/// room for a fourth stage; else as a whole.
#[test]
fn clusters_have_four_stages() {
    let machine = Machine::named("H200").unwrap();
    let plan = |sizes| Plan::of(&problem(sizes), &machine);
    for (sizes, columns) in [([1928, 1784, 7752], 224), ([2000, 2000, 2000], 256)] {
        let plan = plan(sizes);
        assert_eq!((plan.rows, plan.columns, plan.cluster, plan.stages), (128, columns, 2, 4), "{plan}");
    }
    let alone = plan([4096, 4096, 2048]);
    assert_eq!((alone.rows, alone.columns, alone.cluster, alone.stages), (128, 256, 1, 3), "{alone}");
}

/// Of long work several tiles along the rows are taken one after the other, though fewer would
/// leave none outside: eight of the 47 that 6016 rows make, not one.
#[test]
fn long_work_reads_little_again() {
    let plan = Plan::of(&problem([7808, 6016, 4096]), &Machine::named("H200").unwrap());
    assert_eq!((plan.rows, plan.columns, plan.raster_band, plan.ping_pong), (128, 192, 8, true), "{plan}");
}

/// Where N is contiguous in B, columns of tiles that are of B are loaded in panels of 64 bytes at
/// least: narrower ones take several requests for as many bytes.
#[test]
fn panels_are_wide() {
    let machine = Machine::named("H200").unwrap();
    for [m, n, k] in [[4224, 1624, 5592], [968, 5288, 1448], [3000, 696, 4424]] {
        let [a, d] = [[m, k], [m, n]].map(|extents| Matrix::rows(Element::Bf16, extents).unwrap());
        let product = Problem::of(a, Matrix::columns(Element::Bf16, [n, k]).unwrap(), d).unwrap();
        let plan = Plan::of(&product, &machine);
        assert!(plan.swapped || plan.columns % 32 == 0, "{plan}");
    }
}

/// How often a kernel multiplies, as it is written.
fn products(product: &Product) -> usize {
    let text = ptx::write(product.kernels()[0].program(), ptx::Target::Sm90a).unwrap();
    text.matches("wgmma.mma_async").count()
}

/// Of the last step, instructions that have nothing of K are left out, where stages are released at
/// once: in a loop of all four along K, and behind it.
#[test]
fn what_lies_past_k_is_not_multiplied() {
    let plan = plan(128, 64, 2);
    for (k, expected) in [(328, 4 + 1), (344, 4 + 2), (360, 4 + 3), (376, 4), (40, 4)] {
        let problem = problem([136, 72, k]);
        assert_eq!(products(&Product::planned(&problem, &plan, &h200()).unwrap()), expected, "{k}");
        multiplied(&problem, &plan);
        multiplied(&problem, &Plan { swapped: true, cluster: 2, blocks: 4, raster_band: 1, ..plan.clone() });
    }
    multiplied(&problem([136, 72, 72]), &plan);
    multiplied(&problem([136, 72, 200]).batched(2).unwrap(), &plan);
    multiplied(&problem([136, 72, 200]), &Plan { split_k: 3, ..plan.clone() });
}

/// Three stages of the largest tiles are released as soon as they are multiplied, from 16 steps on:
/// then no products are set off before the loop.
#[test]
fn few_stages_are_released_at_once() {
    let of = |steps: i64, columns| {
        products(&Product::planned(&problem([256, 512, 64 * steps]), &plan(128, columns, 2), &h200()).unwrap())
    };
    assert_eq!((of(16, 256), of(64, 256)), (4, 4));
    assert_eq!((of(15, 256), of(16, 240)), (8, 8));
}

/// 26 tiles of 192 rows by 15 of 208 columns make three waves on 130 multiprocessors; 20 of 256
/// rows by 19 of 168 would make three waves on 128, each a fourteenth longer.
#[test]
fn three_groups_fill_the_turns() {
    let problem = problem([4902, 3112, 7152]);
    let plan = Plan::of(&problem, &Machine::named("H200").unwrap());
    assert_eq!((plan.rows, plan.columns, plan.warpgroups, plan.cluster), (192, 208, 3, 2), "{plan}");
    // Instructions of 104 columns, and registers that those who copy leave.
    let lines = Product::planned(&problem, &plan, &h200()).unwrap().lines().join("\n");
    assert!(lines.contains("SM90_64x104x16") && lines.contains("160 registers for each consumer"), "{lines}");
}

/// Three groups, by whole instructions and by halves, in clusters and with B along the rows.
#[test]
fn three_groups_are_right() {
    let wide = Plan { stages: 2, ..plan(192, 208, 3) };
    multiplied(&problem([200, 216, 264]), &wide);
    multiplied(&problem([136, 400, 200]), &Plan { swapped: true, raster_band: 1, ..wide.clone() });
    // D goes in parts of 56 columns, or of 64, of which the last one has fewer.
    multiplied(&problem([400, 216, 328]), &Plan { cluster: 2, ..wide.clone() });
    multiplied(&problem([216, 400, 328]), &Plan { swapped: true, cluster: 2, ..wide.clone() });
    multiplied(&problem([200, 200, 200]), &Plan { cluster: 2, raster_band: 1, blocks: 2, ..plan(192, 112, 3) });
    // With one k-tile all rows are written together, in parts of equally many columns.
    multiplied(&problem([216, 400, 24]), &Plan { swapped: true, cluster: 2, ..wide });
}

/// The raster band of tiles along the rows: about eight; all, if rows of the operands begin within
/// cache lines and the work is long.
#[test]
fn rasters_follow_lines() {
    let machine = Machine::named("H200").unwrap();
    let group = |sizes, rows, columns| {
        let Plan { swapped, warpgroups, split_k, cluster, blocks_per_sm, ping_pong, warps, producer, .. } =
            plan(rows, columns, 2);
        let tile = TileChoice {
            swapped,
            rows,
            columns,
            warpgroups,
            split_k,
            cluster,
            blocks_per_sm,
            ping_pong,
            warps,
            producer,
        };
        Plan::tiled(&problem(sizes), &machine, tile).raster_band
    };
    assert_eq!(group([3072, 5120, 7168], 256, 160), 6);
    assert_eq!(group([3000, 5000, 7000], 256, 160), 12);
    assert_eq!(group([3000, 500, 700], 256, 160), 6);
}

/// Few stages where small matrices stream through, and as many as fit where they are larger or have
/// several steps.
#[test]
fn small_matrices_have_few_stages() {
    let machine = Machine::named("H200").unwrap();
    let stages = |sizes, batch| Plan::of(&problem(sizes).batched(batch).unwrap(), &machine).stages;
    assert_eq!(stages([128, 64, 64], 4096), 2);
    assert!(stages([128, 64, 128], 4096) > 2 && stages([128, 128, 64], 2048) > 2);
    // Nor where a side is narrow.
    assert!(stages([128, 32, 64], 4096) > 2);
}

/// The plan of the model can be carried out, fits into a processor, and is the first of its
/// candidates.
#[test]
fn the_model_plans_what_fits() {
    let machine = Machine::named("H200").unwrap();
    let mut state = 1_u64;
    let mut chance = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % most) as i64
    };
    for _ in 0..40 {
        let long = 1 << (4 + chance(10));
        let sizes = [1 + chance(5000), 8 * (1 + chance(625)), 8 * (1 + chance(long))];
        let problem = problem(sizes).batched(1 + chance(3)).unwrap();
        let plan = Plan::of(&problem, &machine);
        let product = Product::planned(&problem, &plan, &h200()).unwrap_or_else(|error| panic!("{problem}: {error}"));
        let program = product.kernels()[0].program();
        let room =
            machine.multiprocessor.shared_bytes / plan.blocks_per_sm as u32 - machine.multiprocessor.reserved_bytes;
        assert!(program.shared_bytes <= room.min(machine.multiprocessor.block_shared_bytes), "{problem}: {plan}");
        assert!(plan.blocks <= 132 * plan.blocks_per_sm && plan.blocks % plan.cluster == 0, "{problem}: {plan}");
        assert_eq!(plan, Plan::candidates(&problem, &machine)[0].1, "{problem}");
    }
}

/// The model uses split-K for the last tiles if few are left after many waves.
#[test]
fn few_last_tiles_are_shared_after_many_turns() {
    let machine = Machine::named("H200").unwrap();
    let plan = |element, sizes| Plan::of(&Problem::new(element, sizes).unwrap(), &machine);
    let long = plan(Element::Bf16, [8192, 28672, 8192]);
    assert!(long.tail == 48 && long.split_k == 2 && long.blocks == 132, "{long}");
    // Few waves; most of the blocks; no tile left; and promoted accumulators.
    for (element, sizes) in [
        (Element::Bf16, [5120, 5120, 8192]),
        (Element::Bf16, [5120, 27648, 5120]),
        (Element::Bf16, [8192, 8192, 8192]),
        (Element::E4M3, [8192, 28672, 8192]),
    ] {
        let plan = plan(element, sizes);
        assert_eq!(plan.tail, 0, "{sizes:?}: {plan}");
    }
}

#[test]
fn blocks_share_the_last_tiles() {
    // Tiles of full waves have one block each; the remaining ones are split along K, in the order
    // of the k-tiles.
    let plan = crate::gemm::plan;
    let right = |problem: &Problem, plan: &Plan| {
        let (product, compared) = checked(problem, plan);
        assert_eq!(product.kernels().len(), 2);
        assert_eq!(product.workspace(), plan.tail * plan.split_k * plan.rows * plan.columns * 4);
        let [m, n, _] = problem.sizes();
        assert_eq!(compared, m * n);
    };
    let own = Problem::new(Element::Bf16, [180, 72, 328]).unwrap();
    right(&own, &Plan { split_k: 3, tail: 1, blocks: 4, ..plan(64, 32, 1) });
    right(&own, &Plan { split_k: 2, tail: 3, blocks: 3, raster_band: 3, ..plan(64, 32, 1) });
    right(&own, &Plan { split_k: 6, tail: 1, blocks: 1, ..plan(128, 40, 2) });
    right(
        &Problem::new(Element::E4M3, [100, 96, 272]).unwrap(),
        &Plan { split_k: 2, tail: 2, blocks: 2, ..plan(64, 48, 1) },
    );
    for refused in [
        Plan { split_k: 1, tail: 1, blocks: 4, ..plan(64, 32, 1) },
        Plan { split_k: 2, tail: 2, blocks: 4, ..plan(64, 32, 1) },
        Plan { split_k: 2, tail: 9, blocks: 4, ..plan(64, 32, 1) },
        Plan { split_k: 2, tail: -1, blocks: 5, ..plan(64, 32, 1) },
        Plan { split_k: 2, tail: 1, blocks: 4, swapped: true, ..plan(64, 32, 1) },
    ] {
        assert_eq!(Product::planned(&own, &refused, &h200()).unwrap_err().code(), "E0940", "{refused}");
    }
    assert_eq!(Plan::from_line(&plan(64, 32, 1).line()), Some(plan(64, 32, 1)));
}
