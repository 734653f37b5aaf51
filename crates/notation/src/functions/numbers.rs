//! Arithmetic on nested tuples of numbers, and common domains of shapes.

use tilewright_layout::{
    LayoutError, Tree, common_coarsening, common_refinement, domain_distribute, greatest_common_domain,
};

use super::{Function, MANY};
use crate::arguments::{Arguments, Fault};
use crate::value::Value;

const NUMBERS: &str = "Numbers in tuples";
const SHAPES: &str = "Common shapes";

/// All arguments as one tuple.
fn all(a: &Arguments<'_>) -> Result<Tree<i64>, Fault> {
    let trees: Vec<Tree<i64>> = (0..a.len()).map(|argument| a.tree(argument)).collect::<Result<_, _>>()?;
    Ok(Tree::tuple(trees.iter())?)
}

/// The largest or the least of all numbers; of none there is none.
fn extreme(a: &Arguments<'_>, of: fn(&Tree<i64>) -> Option<i64>) -> Result<Value, Fault> {
    let numbers = all(a)?;
    let none = LayoutError::Argument { op: a.function, what: "the number of numbers", value: 0, wanted: "at least 1" };
    Ok(of(&numbers).ok_or(none)?.into())
}

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "product",
        signature: "product(t)",
        summary: "the product of all numbers of a tuple",
        example: "product((4,(2,3)))",
        result: "24",
        section: NUMBERS,
        least: 1,
        most: 1,
        run: |a| Ok(a.shape(0)?.product()?.into()),
    },
    Function {
        name: "product_each",
        signature: "product_each(t)",
        summary: "the product of each mode",
        example: "product_each((2,(3,4)))",
        result: "(2,12)",
        section: NUMBERS,
        least: 1,
        most: 1,
        run: |a| Ok(a.shape(0)?.product_each()?.into()),
    },
    Function {
        name: "product_like",
        signature: "product_like(t, guide)",
        summary: "the product of what lies at each leaf of the guide",
        example: "product_like((2,(3,4)), (1,1))",
        result: "(2,12)",
        section: NUMBERS,
        least: 2,
        most: 2,
        run: |a| Ok(a.shape(0)?.product_like(a.shape(1)?.profile())?.into()),
    },
    Function {
        name: "inner_product",
        signature: "inner_product(a, b)",
        summary: "the sum of the products of partners",
        example: "inner_product((2,(3,4)), (1,(10,100)))",
        result: "432",
        section: NUMBERS,
        least: 2,
        most: 2,
        run: |a| Ok(a.tree(0)?.inner_product(&a.tree(1)?)?.into()),
    },
    Function {
        name: "elem_scale",
        signature: "elem_scale(a, b)",
        summary: "each number of a times the product of its partner in b",
        example: "elem_scale((2,(3,4)), (10,(1,(2,3))))",
        result: "(20,(3,24))",
        section: NUMBERS,
        least: 2,
        most: 2,
        run: |a| Ok(a.tree(0)?.elem_scale(&a.tree(1)?)?.into()),
    },
    Function {
        name: "tuple_add",
        signature: "tuple_add(a, b)",
        summary: "the sum, number by number; missing modes count as 0",
        example: "tuple_add((1,2,3), (4,5))",
        result: "(5,7,3)",
        section: NUMBERS,
        least: 2,
        most: 2,
        run: |a| Ok(a.tree(0)?.tuple_add(&a.tree(1)?)?.into()),
    },
    Function {
        name: "tuple_sub",
        signature: "tuple_sub(a, b)",
        summary: "the difference, number by number; missing modes count as 0",
        example: "tuple_sub((5,8,3), (1,2))",
        result: "(4,6,3)",
        section: NUMBERS,
        least: 2,
        most: 2,
        run: |a| Ok(a.tree(0)?.tuple_sub(&a.tree(1)?)?.into()),
    },
    Function {
        name: "ceil_div",
        signature: "ceil_div(a, b)",
        summary: "a divided by b, rounded up; for a tiler b, how many tiles cover the shape a",
        example: "ceil_div((5,6,7), (4,4))",
        result: "(2,2,7)",
        section: NUMBERS,
        least: 2,
        most: 2,
        run: |a| match a.get(1) {
            Some(Value::Layout(_) | Value::Tiler(_)) => Ok(a.tiler(1)?.tiles_of(&a.shape(0)?)?.into()),
            _ => Ok(a.shape(0)?.ceil_div(&a.tree(1)?)?.into()),
        },
    },
    Function {
        name: "shape_div",
        signature: "shape_div(a, b)",
        summary: "a divided by b, where one divides the other",
        example: "shape_div(((8,10),(6,4)), ((2,5),(3,2)))",
        result: "((4,2),(2,2))",
        section: NUMBERS,
        least: 2,
        most: 2,
        run: |a| Ok(a.shape(0)?.shape_div(&a.tree(1)?)?.into()),
    },
    Function {
        name: "round_up",
        signature: "round_up(a, b)",
        summary: "the least multiple of b that is at least a",
        example: "round_up((5,9), (4,8))",
        result: "(8,16)",
        section: NUMBERS,
        least: 2,
        most: 2,
        run: |a| Ok(a.tree(0)?.round_up(&a.tree(1)?)?.into()),
    },
    Function {
        name: "max",
        signature: "max(a, ...)",
        summary: "the largest of all numbers",
        example: "max((4,(2,9)), 3)",
        result: "9",
        section: NUMBERS,
        least: 1,
        most: MANY,
        run: |a| extreme(&a, Tree::max),
    },
    Function {
        name: "min",
        signature: "min(a, ...)",
        summary: "the least of all numbers",
        example: "min((4,(2,9)), 3)",
        result: "2",
        section: NUMBERS,
        least: 1,
        most: MANY,
        run: |a| extreme(&a, Tree::min),
    },
    Function {
        name: "gcd",
        signature: "gcd(a, ...)",
        summary: "the greatest common divisor of all numbers",
        example: "gcd((12,(18,30)))",
        result: "6",
        section: NUMBERS,
        least: 1,
        most: MANY,
        run: |a| Ok(all(&a)?.gcd()?.into()),
    },
    Function {
        name: "sum",
        signature: "sum(a, ...)",
        summary: "the sum of all numbers",
        example: "sum((1,(2,3)))",
        result: "6",
        section: NUMBERS,
        least: 1,
        most: MANY,
        run: |a| Ok(all(&a)?.sum()?.into()),
    },
    Function {
        name: "greatest_common_domain",
        signature: "greatest_common_domain(a, b)",
        summary: "the greatest layout of indices whose modes lie within one mode of both shapes",
        example: "greatest_common_domain((5,3,4), (10,6))",
        result: "(5,2):(1,30)",
        section: SHAPES,
        least: 2,
        most: 2,
        run: |a| Ok(greatest_common_domain(&a.shape(0)?, &a.shape(1)?)?.into()),
    },
    Function {
        name: "common_refinement",
        signature: "common_refinement(a, b)",
        summary: "the coarsest flat shape that refines both",
        example: "common_refinement((4,6), (2,12))",
        result: "(2,2,6)",
        section: SHAPES,
        least: 2,
        most: 2,
        run: |a| Ok(common_refinement(&a.shape(0)?, &a.shape(1)?)?.into()),
    },
    Function {
        name: "common_coarsening",
        signature: "common_coarsening(a, b)",
        summary: "the finest flat shape that both refine",
        example: "common_coarsening((2,3,4), (3,2,2,2))",
        result: "(6,4)",
        section: SHAPES,
        least: 2,
        most: 2,
        run: |a| Ok(common_coarsening(&a.shape(0)?, &a.shape(1)?)?.into()),
    },
    Function {
        name: "domain_distribute",
        signature: "domain_distribute(a, b)",
        summary: "how size(b) workers share the coordinates of a shape evenly",
        example: "domain_distribute((15,14), 6)",
        result: "(3,2):(1,15)",
        section: SHAPES,
        least: 2,
        most: 2,
        run: |a| Ok(domain_distribute(&a.shape(0)?, &a.shape(1)?)?.into()),
    },
];
