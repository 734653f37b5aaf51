//! A program as a flat list of nodes, in which loops and conditions are jumps.
//!
//! Law: executing the list from its first node to its end is equivalent to the nested steps.

use crate::program::{Branch, Instruction, Loop, Program, SourceId, Step};

/// One node of the list.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Node<'p> {
    /// An instruction.
    Instruction(&'p Instruction),
    /// Before the first iteration of a loop, given by its number.
    LoopStart(usize),
    /// After an iteration.
    LoopEnd(usize),
    /// Before a condition, given by its number.
    BranchStart(usize),
    /// Between its two bodies.
    BranchMiddle(usize),
    /// After them.
    BranchEnd(usize),
}

/// A loop, and the nodes at which it begins and ends.
#[derive(Debug)]
pub(crate) struct Looped<'p> {
    pub(crate) step: &'p Loop,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A condition, and the nodes at which its bodies begin and end.
#[derive(Debug)]
pub(crate) struct Choice<'p> {
    pub(crate) step: &'p Branch,
    pub(crate) start: usize,
    pub(crate) middle: usize,
    pub(crate) end: usize,
}

/// The list.
#[derive(Debug, Default)]
pub(crate) struct Code<'p> {
    pub(crate) nodes: Vec<Node<'p>>,
    /// The statement of each node.
    pub(crate) sources: Vec<SourceId>,
    pub(crate) loops: Vec<Looped<'p>>,
    pub(crate) choices: Vec<Choice<'p>>,
}

impl<'p> Code<'p> {
    pub(crate) fn new(program: &'p Program) -> Code<'p> {
        let mut code = Code::default();
        code.append(&program.body);
        code
    }

    /// The instructions, in order.
    pub(crate) fn instructions(&self) -> impl Iterator<Item = &'p Instruction> {
        self.nodes.iter().filter_map(|node| match node {
            Node::Instruction(instruction) => Some(*instruction),
            _ => None,
        })
    }

    fn push(&mut self, node: Node<'p>, source: SourceId) -> usize {
        self.nodes.push(node);
        self.sources.push(source);
        self.nodes.len() - 1
    }

    fn append(&mut self, steps: &'p [Step]) {
        for step in steps {
            match step {
                Step::Instruction(instruction) => {
                    self.push(Node::Instruction(instruction), instruction.source);
                }
                Step::Loop(step) => {
                    let number = self.loops.len();
                    let start = self.push(Node::LoopStart(number), step.source);
                    self.loops.push(Looped { step, start, end: 0 });
                    self.append(&step.body);
                    self.loops[number].end = self.push(Node::LoopEnd(number), step.source);
                }
                Step::Branch(step) => {
                    let number = self.choices.len();
                    let start = self.push(Node::BranchStart(number), step.source);
                    self.choices.push(Choice { step, start, middle: 0, end: 0 });
                    self.append(&step.then);
                    self.choices[number].middle = self.push(Node::BranchMiddle(number), step.source);
                    self.append(&step.otherwise);
                    self.choices[number].end = self.push(Node::BranchEnd(number), step.source);
                }
            }
        }
    }
}
