//! All tests of the crate, in one program: it is linked once.

mod addresses;
mod bodies;
mod clusters;
mod coverage;
mod defects;
mod distributions;
mod dynamic_scheduling;
mod grids;
mod group_products;
mod halos;
mod language;
mod last;
mod listed;
mod nibbles;
mod parts;
mod phases;
mod pipelines;
mod products_anew;
mod proxies;
mod random_kernels;
mod recast;
mod refusals;
mod roles;
mod sizes;
mod steps;
mod targets;
