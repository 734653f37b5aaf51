//! Random programs: what tilings are written with, and wilder ones.

use tilewright_layout::Tiler;
use tilewright_layout::symbolic::{Declarations, Expr, Facts, Parameter};

use super::Program;
use crate::random::Random;

/// The parameters of the programs, and the values that are tried of each.
pub fn parameters() -> Vec<(Parameter, Vec<i64>)> {
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

/// Writes programs.
pub struct Generator {
    pub random: Random,
    /// Whether operations take whatever comes, instead of what tilings are written with.
    pub wild: bool,
    pub names: Declarations,
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

    /// A program of up to this many operations.
    pub fn program(&mut self, depth: u32) -> Box<Program> {
        if self.wild { self.any(depth) } else { self.tiling(depth) }
    }

    /// What kernels are written with: tensors are tiled, and tiles again; tiles are composed with
    /// layouts of threads; blocks are repeated; compact layouts are inverted.
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
