//! Syntax trees.
//!
//! Law: the nodes of a program are stored in one array in postorder, so that each subtree is a
//! contiguous run that ends in its root. A subtree is therefore evaluated by one pass along its run
//! with a stack of values, without recursion. A program is dropped in one step however deep it
//! nests, and a batch of programs reuses the same memory.

use std::ops::Range;

use crate::lex::Kind;

/// The index of a node in its [`Program`].
pub(crate) type NodeId = u32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    Int(i64),
    /// An integer in a tuple of integers. The tuple reads it; it is never evaluated by itself.
    Part(i64),
    Bool(bool),
    Underscore,
    /// A name; its text is the source at the span.
    Name,
    /// A name used as an extent or a stride: a bound value, or else a parameter.
    Unknown,
    /// `M{div=8}`, `?` or `?{div=8}`: the index in [`Program::parameters`].
    Parameter(u32),
    /// `^9`
    Xor(u64),
    /// `F2<outputs>[column,...]`
    Matrix {
        outputs: u8,
        columns: List,
    },
    /// `input=[image,...] -> output:size`; evaluation reads its text.
    Linear,
    /// `scale@mode@mode`
    Step {
        scale: NodeId,
        path: List,
    },
    /// `a+b`
    Arithmetic {
        operator: Operator,
        left: NodeId,
        right: NodeId,
    },
    /// `(a,b)`: a nested tuple of numbers, or a list of other values. `trailing` says that a comma
    /// ends it.
    Tuple {
        items: List,
        trailing: bool,
    },
    /// `(1,2)`: a tuple of nothing but integers.
    Numbers {
        items: List,
    },
    /// `shape:stride`
    Pair {
        shape: NodeId,
        stride: NodeId,
    },
    /// `domain -> codomain : images`; evaluation reads the text of the images.
    Morphism {
        domain: NodeId,
        codomain: NodeId,
        images: Name,
    },
    /// `[a;b]` or `<a,b>`
    Tiler {
        items: List,
    },
    /// `S<bits,base,shift>`
    Swizzle {
        bits: i64,
        base: i64,
        shift: i64,
    },
    /// `name(a, b)`, or `a.name(b)` with the receiver as the first argument.
    Call {
        name: Name,
        arguments: List,
    },
    /// `f(c)` where `f` is not a plain name.
    Apply {
        target: NodeId,
        arguments: List,
    },
    /// `a[k]`
    Index {
        target: NodeId,
        mode: NodeId,
    },
    /// `a o b o c`
    Compose {
        items: List,
    },
}

/// A binary operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Plus,
    Minus,
    Times,
    /// Division that rounds toward zero.
    Over,
    Floor,
    Ceil,
    Modulo,
}

/// A parameter as written: `M{div=8}`, or `?` if it has no name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: Option<Name>,
    /// The facts in braces, with their location.
    pub(crate) facts: Option<Name>,
    /// Whether it is in a stride, so that it may be any integer.
    pub(crate) in_stride: bool,
}

/// A run of children in [`Program::children`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl List {
    fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

impl Node {
    /// The number of values on the stack that the node consumes.
    pub(crate) fn operands(self) -> usize {
        match self {
            Node::Int(_) | Node::Part(_) | Node::Bool(_) | Node::Underscore | Node::Name | Node::Unknown => 0,
            Node::Numbers { .. } | Node::Swizzle { .. } | Node::Parameter(_) | Node::Xor(_) => 0,
            Node::Matrix { .. } | Node::Linear => 0,
            Node::Step { .. } => 1,
            Node::Tuple { items, .. } | Node::Tiler { items } | Node::Compose { items } => items.len(),
            Node::Call { arguments, .. } => arguments.len(),
            Node::Apply { arguments, .. } => arguments.len() + 1,
            Node::Pair { .. } | Node::Index { .. } | Node::Arithmetic { .. } | Node::Morphism { .. } => 2,
        }
    }

    /// Whether the node is written as one number or step.
    pub(crate) fn is_number(self) -> bool {
        matches!(
            self,
            Node::Int(_)
                | Node::Part(_)
                | Node::Unknown
                | Node::Parameter(_)
                | Node::Xor(_)
                | Node::Step { .. }
                | Node::Arithmetic { .. }
        )
    }

    /// The integer that the node is, if it is one.
    pub(crate) fn integer(self) -> Option<i64> {
        match self {
            Node::Int(value) | Node::Part(value) => Some(value),
            _ => None,
        }
    }
}

/// The location of a name, or of its facts, in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Name {
    pub(crate) fn span(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    pub(crate) node: Node,
    start: u32,
    end: u32,
    /// The height of the node: the tallest child plus 1, which bounds the recursion of the
    /// evaluator.
    pub(crate) height: u16,
}

impl Item {
    pub(crate) fn new(node: Node, span: Range<usize>, height: u16) -> Item {
        Item { node, start: span.start as u32, end: span.end as u32, height }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement {
    /// The name that is bound; None for an expression.
    pub(crate) name: Option<Name>,
    pub(crate) value: NodeId,
}

#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) items: Vec<Item>,
    pub(crate) children: Vec<NodeId>,
    pub(crate) statements: Vec<Statement>,
    pub(crate) parameters: Vec<Parameter>,
    /// The parameter of each `?`. It is the same however often the node is evaluated.
    pub(crate) unnamed: Vec<Option<tilewright_layout::symbolic::Parameter>>,
    /// Arguments that are given by name, `mode=[0]`: the root of the value and the name, in
    /// ascending order of the roots.
    pub(crate) keywords: Vec<(NodeId, Name)>,
}

impl Program {
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.children.clear();
        self.statements.clear();
        self.parameters.clear();
        self.unnamed.clear();
        self.keywords.clear();
    }

    pub(crate) fn node(&self, id: NodeId) -> Node {
        // The parser created every id for this program.
        self.items.get(id as usize).map_or(Node::Underscore, |item| item.node)
    }

    pub(crate) fn span(&self, id: NodeId) -> Range<usize> {
        self.items.get(id as usize).map_or(0..0, |item| item.start as usize..item.end as usize)
    }

    /// The first node of a subtree in postorder.
    pub(crate) fn first(&self, id: NodeId) -> NodeId {
        let mut id = id;
        loop {
            let child = match self.node(id) {
                Node::Tuple { items, .. }
                | Node::Numbers { items }
                | Node::Matrix { columns: items, .. }
                | Node::Tiler { items }
                | Node::Compose { items } => self.list(items).first().copied(),
                Node::Call { arguments, .. } => self.list(arguments).first().copied(),
                Node::Apply { target, .. } | Node::Index { target, .. } => Some(target),
                Node::Pair { shape, .. } => Some(shape),
                Node::Morphism { domain, .. } => Some(domain),
                Node::Step { scale, .. } => Some(scale),
                Node::Arithmetic { left, .. } => Some(left),
                _ => None,
            };
            match child {
                Some(child) => id = child,
                None => return id,
            }
        }
    }

    /// The locations of names that are used as numbers.
    pub(crate) fn unknown_names(&self) -> impl Iterator<Item = Range<usize>> {
        let unknown = self.items.iter().filter(|item| item.node == Node::Unknown);
        unknown.map(|item| item.start as usize..item.end as usize)
    }

    /// The name by which an argument is given; None for a positional argument.
    pub(crate) fn keyword(&self, argument: NodeId) -> Option<Name> {
        let at = self.keywords.binary_search_by_key(&argument, |(root, _)| *root).ok()?;
        self.keywords.get(at).map(|(_, name)| *name)
    }

    pub(crate) fn list(&self, list: List) -> &[NodeId] {
        self.children.get(list.start as usize..list.end as usize).unwrap_or(&[])
    }
}

/// Whether a token opens (`+1`) or closes (`-1`) a bracket; inside brackets, newlines are ignored.
pub(crate) fn bracket(kind: Kind) -> i32 {
    match kind {
        Kind::Open | Kind::OpenSquare | Kind::OpenBrace | Kind::Less => 1,
        Kind::Close | Kind::CloseSquare | Kind::CloseBrace | Kind::Greater => -1,
        _ => 0,
    }
}
