//! The tensors of the backward in one kernel, and the tile of keys of a block.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Element, KernelError, View};
use tilewright_layout::symbolic::Expr;

use super::{KEYS_OF_BLOCK, OneKernel};
use crate::attention::place::behind;

/// Tensors in device memory. Those of keys are the tile of the block.
pub(super) struct Tensors<'k> {
    pub(super) q: View<'k>,
    pub(super) d_o: View<'k>,
    rows: View<'k>,
    sums: View<'k>,
    turns: View<'k>,
    pub(super) keys: View<'k>,
    pub(super) values: View<'k>,
    pub(super) d_k: View<'k>,
    pub(super) d_v: View<'k>,
    /// The tile of keys, and the head and the sequence.
    pub(super) block: Expr,
    pub(super) head: Expr,
    /// Queries of a tile, and elements of a row.
    shape: (i64, i64),
}

impl<'k> Tensors<'k> {
    /// Those of a block that has a tile of keys of a head.
    pub(super) fn new(
        form: &OneKernel<'_>,
        k: &'k Build,
        [block, head]: [Expr; 2],
    ) -> Result<Tensors<'k>, KernelError> {
        let OneKernel { dense, wide, queries, .. } = *form;
        let element = dense.heads.element;
        let of_queries = |name: &str| k.tensor_of(element, name, &dense.layout_of_queries(name), Role::Input);
        let of_keys = |name: &str, role: Role| k.tensor_of(element, name, &dense.layout_of_keys(name), role);
        let (q, d_o) = (of_queries("q")?, of_queries("d_o")?);
        let (keys, values) = (of_keys("k", Role::Input)?, of_keys("v", Role::Input)?);
        let rows = k.tensor_of(Element::F32, "rows", &form.layout_of_rows(), Role::Input)?;
        let sums = k.tensor_of(Element::F32, "d_q_sum", &form.layout_of_sums(), Role::Both)?;
        let turns = k.tensor_of(Element::I32, "turns", &form.layout_of_turns(), Role::Both)?;
        let (d_k, d_v) = (of_keys("d_k", Role::Output)?, of_keys("d_v", Role::Output)?);
        let tile = |tensor: &View<'k>| {
            tensor.slice(behind(2, &[&head])?)?.local_tile((KEYS_OF_BLOCK, wide), behind(0, &[&block, &Expr::from(0)])?)
        };
        let (keys, values, d_k, d_v) = (tile(&keys)?, tile(&values)?, tile(&d_k)?, tile(&d_v)?);
        Ok(Tensors { q, d_o, rows, sums, turns, keys, values, d_k, d_v, block, head, shape: (queries, wide) })
    }

    /// A tile of queries of a head of the group, of `q` or `d_o`.
    pub(super) fn of_queries(&self, tensor: &View<'k>, [tile, group]: [&Expr; 2]) -> Result<View<'k>, KernelError> {
        let own = tensor.slice(behind(2, &[group, &self.head])?)?;
        own.local_tile(self.shape, behind(0, &[tile, &Expr::from(0)])?)
    }

    /// The exponents of a tile of queries and then their `delta`.
    pub(super) fn rows_of(&self, [tile, group]: [&Expr; 2]) -> Result<View<'k>, KernelError> {
        self.rows.slice(behind(1, &[tile, group, &self.head])?)
    }

    /// The sums of a tile of queries.
    pub(super) fn sums_of(&self, [tile, group]: [&Expr; 2]) -> Result<View<'k>, KernelError> {
        self.sums.slice(behind(2, &[tile, group, &self.head])?)
    }

    /// The word that counts the turns of a tile of queries.
    pub(super) fn turns_of(&self, [tile, group]: [&Expr; 2]) -> Result<View<'k>, KernelError> {
        self.turns.slice(behind(0, &[tile, group, &self.head])?)
    }
}
