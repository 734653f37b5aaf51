//! A program that runs on expressions and on numbers.

use tilewright_layout::symbolic::{Expr, Symbolic, Values};
use tilewright_layout::{Coord, Extent, Layout, LayoutError, Slot, Tiler, Tree};

/// A program, written down so that it can be run on expressions and on numbers.
#[derive(Clone, Debug)]
pub enum Program {
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
pub trait Ground<N: Extent> {
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

/// Expressions as they are.
pub struct AsIs;

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
    pub fn name(&self) -> &'static str {
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
    pub fn operands(&self) -> Vec<&Program> {
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

    pub fn run<N: Extent>(&self, ground: &impl Ground<N>) -> Result<Layout<N>, LayoutError> {
        let operands: Result<Vec<Layout<N>>, LayoutError> =
            self.operands().into_iter().map(|operand| operand.run(ground)).collect();
        self.apply(&operands?, ground)
    }

    /// The last operation.
    pub fn apply<N: Extent>(&self, operands: &[Layout<N>], ground: &impl Ground<N>) -> Result<Layout<N>, LayoutError> {
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
