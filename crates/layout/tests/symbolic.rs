//! Programs on layouts whose extents and strides are known at launch.
//!
//! A program is run on expressions, and for many admissible values of its parameters on numbers. Where the expressions give a layout, it has the
//! function of the layout that the numbers give, at every index, and that satisfies the definition of the last operation. Where they
//! refuse although the numbers give a layout for all tried values, the program is counted; the share is printed and limited.

mod oracle;
mod random;

use oracle::{Flat, composite_exists, value};
use random::Random;
use std::collections::BTreeMap;

use tilewright_layout::symbolic::{Declarations, Expr, Facts, Parameter, Symbolic, Values};
use tilewright_layout::{Coord, Extent, Layout, LayoutError, Slot, Tiler, Tree};

/// A program, written down so that it can be run on expressions and on numbers.
#[derive(Clone, Debug)]
enum Program {
    Given(Layout<Expr>),
    Compose(Box<Program>, Box<Program>),
    ComposeTiler(Box<Program>, Tiler<Expr>),
    Complement(Box<Program>, Expr),
    WeakComplement(Box<Program>, Expr),
    Divide(&'static str, Box<Program>, Tiler<Expr>),
    Product(&'static str, Box<Program>, Tiler<Expr>),
    Paired(&'static str, Box<Program>, Box<Program>),
    TileToShape(Box<Program>, Tree<Expr>),
    RightInverse(Box<Program>),
    LeftInverse(Box<Program>),
    Coalesce(Box<Program>),
    Filter(Box<Program>),
    Flatten(Box<Program>),
    Mode(Box<Program>, usize),
    Slice(Box<Program>, Coord<Expr>),
    Add(Box<Program>, Box<Program>),
}

/// How the parts of a program are read as numbers of one kind.
trait Ground<N: Extent> {
    fn number(&self, expr: &Expr) -> Result<N, LayoutError>;

    fn layout(&self, layout: &Layout<Expr>) -> Result<Layout<N>, LayoutError> {
        let shape = layout.shape().try_map(|extent| self.number(extent))?;
        Layout::new(&shape, &layout.stride().try_map(|stride| self.number(stride))?)
    }

    fn tiler(&self, tiler: &Tiler<Expr>) -> Result<Tiler<N>, LayoutError> {
        Ok(match tiler {
            Tiler::Keep => Tiler::Keep,
            Tiler::Layout(layout) => Tiler::Layout(self.layout(layout)?),
            Tiler::Modes(modes) => {
                Tiler::modes(modes.items().iter().map(|item| self.tiler(item)).collect::<Result<Vec<_>, _>>()?)?
            }
        })
    }
}

struct AsIs;

impl Ground<Expr> for AsIs {
    fn number(&self, expr: &Expr) -> Result<Expr, LayoutError> {
        Ok(expr.clone())
    }
}

impl Ground<i64> for Values {
    fn number(&self, expr: &Expr) -> Result<i64, LayoutError> {
        expr.numbers(self)
    }
}

impl Program {
    fn name(&self) -> &'static str {
        match self {
            Program::Given(_) => "given",
            Program::Compose(..) => "compose",
            Program::ComposeTiler(..) => "compose by mode",
            Program::Complement(..) => "complement",
            Program::WeakComplement(..) => "weak_complement",
            Program::Divide(name, ..) | Program::Product(name, ..) | Program::Paired(name, ..) => name,
            Program::TileToShape(..) => "tile_to_shape",
            Program::RightInverse(_) => "right_inverse",
            Program::LeftInverse(_) => "left_inverse",
            Program::Coalesce(_) => "coalesce",
            Program::Filter(_) => "filter",
            Program::Flatten(_) => "flatten",
            Program::Mode(..) => "mode",
            Program::Slice(..) => "slice",
            Program::Add(..) => "add",
        }
    }

    /// The programs whose layouts the last operation takes.
    fn operands(&self) -> Vec<&Program> {
        match self {
            Program::Given(_) => vec![],
            Program::Compose(a, b) | Program::Paired(_, a, b) | Program::Add(a, b) => vec![a, b],
            Program::ComposeTiler(a, _)
            | Program::Complement(a, _)
            | Program::WeakComplement(a, _)
            | Program::Divide(_, a, _)
            | Program::Product(_, a, _)
            | Program::TileToShape(a, _)
            | Program::RightInverse(a)
            | Program::LeftInverse(a)
            | Program::Coalesce(a)
            | Program::Filter(a)
            | Program::Flatten(a)
            | Program::Mode(a, _)
            | Program::Slice(a, _) => vec![a],
        }
    }

    fn run<N: Extent>(&self, ground: &impl Ground<N>) -> Result<Layout<N>, LayoutError> {
        let operands: Result<Vec<Layout<N>>, LayoutError> =
            self.operands().into_iter().map(|operand| operand.run(ground)).collect();
        self.apply(&operands?, ground)
    }

    /// The last operation.
    fn apply<N: Extent>(&self, operands: &[Layout<N>], ground: &impl Ground<N>) -> Result<Layout<N>, LayoutError> {
        if let Program::Given(layout) = self {
            return ground.layout(layout);
        }
        let (a, b) = (&operands[0], operands.last().unwrap());
        match self {
            Program::Given(layout) => ground.layout(layout),
            Program::Compose(..) => a.compose(b),
            Program::ComposeTiler(_, tiler) => a.compose_tiler(&ground.tiler(tiler)?),
            Program::Complement(_, target) => a.complement(&ground.number(target)?),
            Program::WeakComplement(_, target) => a.weak_complement(&ground.number(target)?),
            Program::Divide(name, _, tiler) => {
                let tiler = ground.tiler(tiler)?;
                match *name {
                    "logical_divide" => a.logical_divide(&tiler),
                    "zipped_divide" => a.zipped_divide(&tiler),
                    "tiled_divide" => a.tiled_divide(&tiler),
                    _ => a.flat_divide(&tiler),
                }
            }
            Program::Product(name, _, tiler) => {
                let tiler = ground.tiler(tiler)?;
                match *name {
                    "logical_product" => a.logical_product(&tiler),
                    "zipped_product" => a.zipped_product(&tiler),
                    _ => a.flat_product(&tiler),
                }
            }
            Program::Paired("blocked_product", ..) => a.blocked_product(b),
            Program::Paired(..) => a.raked_product(b),
            Program::TileToShape(_, shape) => a.tile_to_shape(&shape.try_map(|extent| ground.number(extent))?, None),
            Program::RightInverse(_) => a.right_inverse(),
            Program::LeftInverse(_) => a.left_inverse(),
            Program::Coalesce(_) => a.coalesce(),
            Program::Filter(_) => a.filter(),
            Program::Flatten(_) => a.flatten(),
            Program::Mode(_, mode) => {
                a.mode(*mode).ok_or(LayoutError::NoSuchMode { op: "mode", mode: *mode, rank: a.rank() })
            }
            Program::Slice(_, coord) => {
                let coord = coord.try_map(|slot| match slot {
                    Slot::At(index) => Ok(Slot::At(ground.number(index)?)),
                    Slot::All => Ok(Slot::All),
                })?;
                a.slice(&coord)
            }
            Program::Add(..) => a.add(b),
        }
    }
}

/// The parameters of the programs, and the values that are tried of each.
fn parameters() -> Vec<(Parameter, Vec<i64>)> {
    [
        ("M", "div=128", vec![128, 256, 384, 640, 896, 2048, 1536, 16_384]),
        ("N", "div=64,min=128", vec![128, 192, 256, 320, 448, 1024, 4096]),
        ("K", "", vec![1, 2, 3, 4, 7, 8, 16, 24, 37, 64, 100, 129, 512, 1000]),
        ("B", "", vec![1, 2, 3, 7]),
        ("I", "min=0", vec![0, 1, 2, 5]),
    ]
    .map(|(name, facts, values)| (Parameter::named(name, facts.parse::<Facts>().unwrap()).unwrap(), values))
    .into()
}

struct Generator {
    random: Random,
    /// Whether operations take whatever comes, instead of what tilings are written with.
    wild: bool,
    names: Declarations,
}

impl Generator {
    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.random.below(of.len() as i64) as usize].clone()
    }

    fn layout(&mut self, texts: &[&str]) -> Box<Program> {
        let text = self.pick(texts);
        Box::new(Program::Given(self.names.layout(text).unwrap_or_else(|error| panic!("{text}: {error}"))))
    }

    fn expr(&mut self, texts: &[&str]) -> Expr {
        let text = self.pick(texts);
        self.names.expr(text).unwrap()
    }

    fn tiler(&mut self, texts: &[&str]) -> Tiler<Expr> {
        let text = self.pick(texts);
        self.names.tiler(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// A matrix, or a stack of them, in memory.
    fn tensor(&mut self) -> Box<Program> {
        self.layout(&[
            "(M,K):(K,1)",
            "(M,K):(1,M)",
            "(N,K):(K,1)",
            "(K,N):(N,1)",
            "(K,N):(1,K)",
            "(M,N):(N,1)",
            "(M,N):(1,M)",
            "(M,K,B):(K,1,M*K)",
            "(B,M,K):(M*K,K,1)",
            "(M,N):(N+8,1)",
            "(M,N):(1,M+16)",
            "(M,64):(64,1)",
            "(128,K):(K,1)",
            "(128,K):(1,128)",
            "(M,K):(2*K,2)",
            "((16,M/16),N):((1,16*N),16)",
            "((8,M/8),(8,N/8)):((8,8*N),(1,64))",
        ])
    }

    fn tile(&mut self) -> Tiler<Expr> {
        self.tiler(&[
            "[128:1;64:1]",
            "[64:1;8:1]",
            "[16:1;16:1]",
            "[128:1;_]",
            "[32:1]",
            "(64,32)",
            "[64:2;8:1]",
            "[16:8;16:1]",
            "[(8,4):(1,16);16:1]",
            "[128:1;K:1]",
            "[M:1;8:1]",
            "[(16,2):(1,64)]",
            "[64:1;(4,2):(2,1)]",
        ])
    }

    /// A layout of few modes, most of them known.
    fn block(&mut self) -> Box<Program> {
        self.layout(&[
            "(8,4):(4,1)",
            "(32,4):(1,32)",
            "(16,8):(8,1)",
            "128:1",
            "(4,2):(1,16)",
            "(2,2):(4,1)",
            "((2,4),8):((1,16),2)",
            "8:2",
            "(8,K):(K,1)",
            "(8,K):(1,8)",
            "(K,4):(4,1)",
            "(4,8):(1,5)",
            "(64,8):(8,1)",
            "(3,4):(1,3)",
        ])
    }

    fn arrangement(&mut self) -> Box<Program> {
        self.layout(&[
            "(M/128,K):(1,M/128)",
            "(M/128,K):(K,1)",
            "(N/64,M/64):(1,N/64)",
            "(2,3):(1,2)",
            "(4,2):(2,1)",
            "(K,B):(B,1)",
            "K:1",
            "M/128:1",
            "(M/64,N/64):(N/64,1)",
            "(2,K):(K,1)",
        ])
    }

    fn program(&mut self, depth: u32) -> Box<Program> {
        if self.wild { self.any(depth) } else { self.tiling(depth) }
    }

    /// What kernels are written with: tensors are tiled, and tiles again; tiles are composed with layouts of threads; blocks are repeated;
    /// compact layouts are inverted.
    fn tiling(&mut self, depth: u32) -> Box<Program> {
        let divide = |this: &mut Generator, inner| {
            let name = this.pick(&["logical_divide", "zipped_divide", "tiled_divide", "flat_divide"]);
            Program::Divide(name, inner, this.tile())
        };
        let threads =
            ["(8,4):(4,1)", "(32,4):(1,32)", "(16,8):(8,1)", "(4,2):(1,16)", "((2,4),8):((1,16),2)", "128:1", "8:2"];
        let compact = [
            "(M,K):(K,1)",
            "(M,K):(1,M)",
            "(M,K,B):(K,1,M*K)",
            "(B,M,K):(M*K,K,1)",
            "(K,N):(N,1)",
            "M:1",
            "(M/64,N/64):(N/64,1)",
            "((16,M/16),N):((1,16*N),16)",
        ];
        Box::new(match self.random.below(20) {
            0..=4 => {
                let tensor = self.tensor();
                divide(self, tensor)
            }
            5 | 6 => {
                let tensor = self.tensor();
                let tiled = Program::Divide("zipped_divide", tensor, self.tile());
                let tile = Box::new(Program::Mode(Box::new(tiled), 0));
                if self.random.below(2) == 0 {
                    divide(self, tile)
                } else {
                    Program::Compose(tile, self.layout(&threads))
                }
            }
            7 => Program::ComposeTiler(self.tensor(), self.tile()),
            8 => {
                let tensor = self.tensor();
                let tiled = Program::Divide("zipped_divide", tensor, self.tile());
                let coord = self.pick(&["(_,I)", "(_,0)", "(_,(I,0))", "(_,(I,_))"]);
                Program::Slice(Box::new(tiled), self.names.coord(coord).unwrap())
            }
            9 => Program::Slice(
                self.tensor(),
                self.names.coord(["(_,I)", "(I,_)", "(3,_)", "(_,K-1)"][depth as usize % 4]).unwrap(),
            ),
            10 => {
                let tensor = self.tensor();
                let inner = divide(self, tensor);
                Program::Coalesce(Box::new(inner))
            }
            11 => {
                let tiler = self.tiler(&[
                    "M/128:1",
                    "K:1",
                    "(2,3):(1,2)",
                    "(M/64,N/64):(1,M/64)",
                    "(K,B):(B,1)",
                    "(N/64,M/64):(M/64,1)",
                ]);
                let name = self.pick(&["logical_product", "zipped_product", "flat_product"]);
                let block = self.layout(&[
                    "(8,4):(4,1)",
                    "(32,4):(1,32)",
                    "(16,8):(8,1)",
                    "128:1",
                    "(64,8):(8,1)",
                    "(64,K):(K,1)",
                    "(3,4):(1,3)",
                    "(M,8):(8,1)",
                ]);
                Program::Product(name, block, tiler)
            }
            12 | 13 => {
                let name = self.pick(&["blocked_product", "raked_product"]);
                let block = self.layout(&[
                    "(8,4):(4,1)",
                    "(32,4):(1,32)",
                    "(16,8):(8,1)",
                    "(64,8):(8,1)",
                    "(64,K):(1,64)",
                    "(3,4):(1,3)",
                ]);
                Program::Paired(name, block, self.arrangement())
            }
            14 => {
                let shape = self.pick(&["(M,K)", "(M,N)", "(K,N)", "(M,K,B)", "(128,K)"]);
                let block = self.layout(&[
                    "(8,4):(4,1)",
                    "(32,4):(1,32)",
                    "(16,8):(8,1)",
                    "(64,8):(8,1)",
                    "(64,32):(1,64)",
                    "(4,4):(1,4)",
                ]);
                Program::TileToShape(block, self.names.tree(shape).unwrap())
            }
            15 | 16 => {
                let tensor = self.layout(&compact);
                match self.random.below(4) {
                    0 => Program::LeftInverse(tensor),
                    1 => Program::Compose(tensor.clone(), Box::new(Program::RightInverse(tensor))),
                    _ => Program::RightInverse(tensor),
                }
            }
            17 => {
                let target = self.expr(&["M", "N", "M*K", "M*N", "1024", "M*N*K", "K"]);
                let block = self.layout(&[
                    "(8,4):(4,1)",
                    "(32,4):(1,32)",
                    "128:1",
                    "(4,2):(1,16)",
                    "8:2",
                    "(64,8):(8,1)",
                    "M:1",
                    "(M,K):(K,1)",
                    "M:K",
                ]);
                if self.random.below(3) == 0 {
                    Program::WeakComplement(block, target)
                } else {
                    Program::Complement(block, target)
                }
            }
            18 => {
                let a = self.layout(&compact);
                Program::Add(a.clone(), a)
            }
            _ => {
                let (a, b) = self.pick(&[
                    ("(M,K):(K,1)", "(M,K):(1,M)"),
                    ("(M,K):(1,M)", "(M,K):(1,M)"),
                    ("(M,N):(N,1)", "(128,M/128):(1,128)"),
                    ("(M,N):(N,1)", "(16,8,M/128):(1,16,128)"),
                    ("(M,N):(1,M+16)", "(128,M/128,N):(1,128,M)"),
                    ("(M,K,B):(K,1,M*K)", "(M,K):(1,M)"),
                    ("(128,K):(K,1)", "((32,4),K):((1,32),128)"),
                    ("((16,M/16),N):((1,16*N),16)", "(16,M/16):(1,16)"),
                    ("((16,M/16),N):((1,16*N),16)", "(128,M/128):(1,128)"),
                    ("((8,M/8),(8,N/8)):((8,8*N),(1,64))", "(8,M/8):(1,8)"),
                    ("((8,M/8),(8,N/8)):((8,8*N),(1,64))", "((8,M/8),8,N/8):((1,8),M,8*M)"),
                    ("(M,N):(N+8,1)", "(64,N):(1,M)"),
                ]);
                Program::Compose(self.layout(&[a]), self.layout(&[b]))
            }
        })
    }

    fn any(&mut self, depth: u32) -> Box<Program> {
        if depth == 0 {
            return if self.random.below(3) == 0 { self.block() } else { self.tensor() };
        }
        let divides = ["logical_divide", "zipped_divide", "tiled_divide", "flat_divide"];
        let products = ["logical_product", "zipped_product", "flat_product"];
        Box::new(match self.random.below(24) {
            0 | 1 => Program::Compose(self.program(depth - 1), self.block()),
            2 => {
                let a = self.program(depth - 1);
                let indices = self.layout(&[
                    "M*K:1",
                    "N:1",
                    "(M,K):(1,M)",
                    "(K,N):(N,1)",
                    "(128,M/128):(1,128)",
                    "(64,N/64):(1,64)",
                    "(M/128,64):(128,1)",
                    "(16,8,M/128):(1,16,128)",
                    "(K,8):(8,1)",
                ]);
                Program::Compose(a, indices)
            }
            3 => Program::ComposeTiler(self.program(depth - 1), self.tile()),
            4 => {
                let a = self.program(depth - 1);
                Program::Compose(a.clone(), Box::new(Program::RightInverse(a)))
            }
            5 => {
                Program::Complement(self.program(depth - 1), self.expr(&["M", "N", "M*K", "M*N", "1024", "M*N*K", "K"]))
            }
            6 => {
                Program::WeakComplement(self.program(depth - 1), self.expr(&["M", "N", "M*K", "M*N", "1024", "M*N*K"]))
            }
            7..=11 => {
                let name = self.pick(&divides);
                Program::Divide(name, self.program(depth - 1), self.tile())
            }
            12 => {
                let name = self.pick(&products);
                let tiler =
                    self.tiler(&["[M/128:1;K:1]", "(2,3)", "M/128:1", "K:1", "(2,K):(K,1)", "(M/64,N/64):(1,M/64)"]);
                Program::Product(name, self.block(), tiler)
            }
            13 => {
                let name = self.pick(&["blocked_product", "raked_product"]);
                Program::Paired(name, self.block(), self.arrangement())
            }
            14 => {
                let shape = self.pick(&["(M,K)", "(M,N)", "(K,N)", "(M,K,B)", "(128,K)"]);
                Program::TileToShape(self.block(), self.names.tree(shape).unwrap())
            }
            15 | 16 => Program::RightInverse(self.program(depth - 1)),
            17 => Program::LeftInverse(self.program(depth - 1)),
            18 => Program::Coalesce(self.program(depth - 1)),
            19 => Program::Filter(self.program(depth - 1)),
            20 => Program::Flatten(self.program(depth - 1)),
            21 => Program::Mode(self.program(depth - 1), self.random.below(2) as usize),
            22 => {
                let coord = self.pick(&["(_,I)", "(I,_)", "(3,_)", "(_,K-1)", "(_,_,B-1)", "(_,I,B-1)"]);
                Program::Slice(self.program(depth - 1), self.names.coord(coord).unwrap())
            }
            _ => {
                let a = self.program(depth - 1);
                let b = if self.random.below(2) == 0 { a.clone() } else { self.program(depth - 1) };
                Program::Add(a, b)
            }
        })
    }
}

fn plain(layout: &Layout) -> Flat {
    layout.leaves().iter().map(|leaf| (leaf.extent, leaf.stride)).collect()
}

/// The indices that are looked at: all of a small layout, some of a large one.
fn indices(random: &mut Random, size: i64) -> Vec<i64> {
    if size <= 600 {
        return (0..size).collect();
    }
    let mut some: Vec<i64> = (0..120).map(|_| random.below(size)).collect();
    some.extend([0, 1, 2, size / 2, size - 2, size - 1]);
    some
}

/// Asserts that the layout has what the definition of the last operation asks for.
fn satisfies(program: &Program, operands: &[Layout], result: &Layout, values: &Values, random: &mut Random) {
    let size = result.size();
    let got = plain(result);
    match program {
        Program::Compose(..) => {
            let (a, b) = (plain(&operands[0]), &operands[1]);
            assert_eq!(size, b.size());
            assert!(size > 300 || composite_exists(&a, &plain(b)), "{program:?}");
            for i in indices(random, size) {
                assert_eq!(value(&got, i), value(&a, value(&plain(b), i)), "{program:?} at {i}");
            }
        }
        Program::RightInverse(_) => {
            let a = plain(&operands[0]);
            for i in indices(random, size) {
                assert_eq!(value(&a, value(&got, i)), i, "{program:?} at {i}");
            }
        }
        Program::LeftInverse(_) => {
            let a = plain(&operands[0]);
            for k in indices(random, operands[0].size()) {
                let offset = value(&a, k);
                assert_eq!(value(&a, value(&got, offset)), offset, "{program:?} at {k}");
            }
        }
        Program::Complement(_, target) => {
            let a = operands[0].filter().unwrap();
            let (target, covered) = (target.numbers(values).unwrap(), a.size() * size);
            assert!(covered >= target, "{program:?}");
            if covered <= 5_000 {
                let mut seen = vec![false; covered as usize];
                for i in 0..a.size() {
                    for j in 0..size {
                        let offset = value(&plain(&a), i) + value(&got, j);
                        assert!(!std::mem::replace(&mut seen[offset as usize], true), "{program:?}");
                    }
                }
            }
        }
        _ => {}
    }
}

/// Runs programs, and gives how many percent are refused although all tried values have a layout.
fn measure(wild: bool, seed: u64, count: u32) -> f64 {
    let parameters = parameters();
    let mut names = Declarations::new();
    for (parameter, _) in &parameters {
        names.declare(parameter.name().unwrap(), parameter.facts()).unwrap();
    }
    let mut generator = Generator { random: Random(seed), wild, names };
    let mut random = Random(seed + 1);
    let (mut programs, mut answered, mut failing) = (0, 0, 0);
    let mut refused: Vec<(Program, LayoutError)> = Vec::new();
    while programs < count {
        let depth = 1 + generator.random.below(3) as u32;
        let program = generator.program(depth);
        // The least values first: that is where extents are 1.
        let samples: Vec<Values> = (0..24)
            .map(|place| {
                let mut values = Values::new();
                for (parameter, tried) in &parameters {
                    let value = if place == 0 { tried[0] } else { tried[random.below(tried.len() as i64) as usize] };
                    values.set(parameter, value);
                }
                values
            })
            .collect();
        let results: Vec<_> = samples.iter().map(|values| program.run(values)).collect();
        if results.iter().any(|result| result.as_ref().is_err_and(misfit)) {
            continue;
        }
        programs += 1;
        match program.run(&AsIs) {
            Ok(layout) => {
                answered += 1;
                samples.iter().for_each(|values| agrees(&program, &layout, values, &mut random));
            }
            Err(error) if results.iter().all(Result::is_ok) => refused.push((*program, error)),
            Err(_) => failing += 1,
        }
    }
    let share = 100.0 * refused.len() as f64 / f64::from(programs);
    println!(
        "{programs} programs: {answered} answered, {failing} without a layout for some values, {} refused although all \
         tried values have one ({share:.2} %)",
        refused.len()
    );
    let mut by_name = BTreeMap::new();
    for (program, _) in &refused {
        *by_name.entry(program.name()).or_insert(0) += 1;
    }
    println!("refused, by last operation: {by_name:?}");
    for (program, error) in refused.iter().take(SHOWN) {
        println!("  {program:?}\n      {error}");
    }
    share
}

/// How many refused programs are printed.
const SHOWN: usize = 40;

/// Whether a program makes no sense, or leaves what can be represented, rather than that it has no layout.
fn misfit(error: &LayoutError) -> bool {
    matches!(
        error,
        LayoutError::NoSuchMode { .. }
            | LayoutError::Tiler { .. }
            | LayoutError::Coordinate { .. }
            | LayoutError::Rank { .. }
            | LayoutError::Overflow { .. }
            | LayoutError::Undecided { .. }
    )
}

/// Asserts that the layout of a program is, for some values, what the last operation gives on numbers.
///
/// The operation on numbers takes the operands as they are here: a program of several operations on numbers may have others on the way, where an
/// extent is 1 and its stride cannot be observed.
fn agrees(program: &Program, layout: &Layout<Expr>, values: &Values, random: &mut Random) {
    let operands = program.operands().into_iter().map(|operand| operand.run(&AsIs).unwrap().numbers(values).unwrap());
    let operands: Vec<Layout> = operands.collect();
    let result = program.apply(&operands, values);
    let result = result.unwrap_or_else(|error| panic!("{program:?} = {layout}: {error} for {values:?}"));
    let substituted = layout.numbers(values).unwrap();
    // A left inverse is not unique; its law is asked below.
    if !matches!(program, Program::LeftInverse(_)) {
        assert_eq!(substituted.size(), result.size(), "{program:?} = {layout}, {result} for {values:?}");
        let (ours, theirs) = (plain(&substituted), plain(&result));
        for i in indices(random, result.size()) {
            assert_eq!(value(&ours, i), value(&theirs, i), "{program:?} = {layout}, {result} at {i} for {values:?}");
        }
    }
    satisfies(program, &operands, &substituted, values, random);
}

#[test]
fn tilings_are_right_for_every_value_and_rarely_refused() {
    assert!(measure(false, 7, programs(3_000)) < 1.0);
}

#[test]
fn all_programs_are_right_for_every_value() {
    measure(true, 8, programs(2_000));
}

fn programs(usual: u32) -> u32 {
    std::env::var("TILEWRIGHT_PROGRAMS").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}
