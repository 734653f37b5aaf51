//! Programs of the language: values, refusals, derivations and texts.

mod advice;
mod answers;
mod derivations;
mod descriptors;
mod explanations;
mod foreign;
mod language;
mod morphisms;
mod names;
mod notes;
mod partitions;
mod robustness;
mod round_trip;
