//! Programs that must compile and run: each module is one, named after the feature of `#[app]` that
//! it uses.
#![allow(
    warnings,
    clippy::all,
    clippy::non_minimal_cfg,
    clippy::undocumented_unsafe_blocks,
    reason = "programs are written as users write them"
)]

/// Defines tests that run the apps of these modules, each named after its module.
macro_rules! runs {
    ($($program:ident),*) => {$(
        #[test]
        fn $program() {
            assert_eq!($program::main(), std::process::ExitCode::SUCCESS);
        }
    )*};
}

mod arguments;
mod conditions;
mod extern_functions;
mod global_executor;
mod handlers;
mod hygiene;
mod lints;
mod local_tasks;
mod naming;
mod other_items;
mod partitions;
mod placement;
mod resources;
mod tasks;
mod types;
