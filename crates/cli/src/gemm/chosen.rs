//! A GEMM and its plan, as text and as JSON.

use std::fmt::Write as _;

use serde_json::json;
use tilewright::measured::MeasuredPlan;
use tilewright::planners::gemm::{Product, ProductTensor, Step};

use super::task::Task;
use crate::json::Json;

/// A GEMM with the plan that was chosen for it.
pub(super) struct Chosen {
    pub(super) task: Task,
    pub(super) product: Product,
    /// The measured time of the plan; None if it was not measured.
    pub(super) tuned: Option<MeasuredPlan>,
    /// If the GEMM is batch-invariant: the modelled times, in microseconds, of this plan and of the
    /// plan without batch invariance.
    pub(super) modelled: Option<[f64; 2]>,
}

impl Chosen {
    /// The name of an operand.
    fn named(&self, operand: ProductTensor) -> String {
        match operand {
            ProductTensor::A => "A".to_owned(),
            ProductTensor::B => "B".to_owned(),
            ProductTensor::Ends => "ends of groups".to_owned(),
            ProductTensor::D => "D".to_owned(),
            ProductTensor::Input(number) => {
                self.task.inputs.get(number).map_or_else(|| format!("x{number}"), |name| (*name).to_owned())
            }
            ProductTensor::ScalesA => "scales of A".to_owned(),
            ProductTensor::ScalesB => "scales of B".to_owned(),
            ProductTensor::Reduction(number) => format!("kept {number}"),
            ProductTensor::Workspace(number) => format!("workspace {number}"),
        }
    }

    /// The sizes, types, layouts and plan.
    pub(super) fn json(&self) -> Json {
        let (product, problem) = (&self.product, &self.task.problem);
        let [m, n, k] = problem.sizes();
        let mut layouts = serde_json::Map::new();
        for operand in problem.given().into_iter().chain(problem.outputs()) {
            if let Some(matrix) = problem.matrix(operand) {
                let (element, layout) = (matrix.element().name(), matrix.layout().to_string());
                let described = json!({ "type": element, "layout": layout, "offset": matrix.offset() });
                layouts.insert(self.named(operand), described);
            }
        }
        let tuned = self.tuned.as_ref();
        json!({
            "m": m, "n": n, "k": k,
            "batch": problem.batch(),
            "groups": problem.row_groups(),
            "types": {
                "operands": problem.operand_type().name(),
                "tf32": problem.is_tf32(),
                "accumulator": problem.accumulator_type().name(),
                "result": problem.result_type().name(),
            },
            "layouts": layouts,
            "epilogue": problem.epilogue().map(|fused| fused.expression.named(&self.task.names())),
            "kept": problem.reductions().map(|by| by.to_string()).collect::<Vec<_>>(),
            "plan": product.lines(),
            "kernels": product.steps().iter().map(|step| step.kernel().name()).collect::<Vec<_>>(),
            "workspace": product.workspace(),
            "batch_invariant": problem.is_batch_invariant(),
            "model_us": self.modelled.map(|[own, _]| own),
            "free_model_us": self.modelled.map(|[_, free]| free),
            "tuned": tuned.map(|tuned| json!({ "median_us": tuned.microseconds, "plans": tuned.candidates })),
        })
    }

    /// The GEMM as text; with the kernels, if the plan was requested.
    pub(super) fn text(&self, with_kernels: bool) -> String {
        let (product, problem) = (&self.product, &self.task.problem);
        let mut text = format!("{}\n", self.task.text());
        for operand in problem.given().into_iter().chain(problem.outputs()) {
            if let Some(matrix) = problem.matrix(operand) {
                let turned = if operand == ProductTensor::B { ", as (N,K)" } else { "" };
                let _ = writeln!(text, "  {} {matrix}{turned}", self.named(operand));
            }
        }
        for line in product.lines() {
            let _ = writeln!(text, "  {line}");
        }
        if let Some(MeasuredPlan { microseconds, candidates, .. }) = &self.tuned {
            let _ = writeln!(
                text,
                "  the fastest of {candidates} plans that were measured on this device: {microseconds:.1} us then"
            );
        }
        if let Some([own, free]) = self.modelled {
            let _ = writeln!(text, "  by the model {own:.1} us, and {free:.1} us for the plan without --invariant");
        }
        if with_kernels || product.workspace() > 0 {
            let _ = writeln!(text, "  {} bytes of workspace", product.workspace());
        }
        if with_kernels {
            product.steps().iter().for_each(|step| text += &self.step(step));
        }
        text
    }

    /// A kernel as text: its operands, and its launch parameters.
    fn step(&self, step: &Step) -> String {
        let operands: Vec<String> = step.operands().iter().map(|operand| self.named(*operand)).collect();
        let program = step.kernel().program();
        let grid: Vec<String> = program.grid.iter().map(ToString::to_string).collect();
        format!(
            "  {} ({}): ({}) blocks of {} threads, {} bytes of shared memory\n",
            step.kernel().name(),
            operands.join(", "),
            grid.join(","),
            program.threads,
            program.shared_bytes
        )
    }
}
