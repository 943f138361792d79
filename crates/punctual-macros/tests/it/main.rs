//! Programs that must compile and run: each module is one, named after the feature of `#[app]` that
//! it uses.
#![allow(
    warnings,
    clippy::all,
    clippy::non_minimal_cfg,
    clippy::undocumented_unsafe_blocks,
    reason = "programs are written as users write them"
)]

mod another_root;
mod app_arguments;
mod app_from_macro;
mod app_in_a_submodule;
mod argument_forms;
mod async_tasks;
mod bound_task;
mod capacity_from_constants;
mod conditional_tasks;
mod conditions_in_cfg_attr;
mod context_lifetimes;
mod durations;
mod exclusive_conditions;
mod exclusive_items;
mod extern_async_tasks;
mod extern_handlers;
mod generic_helpers;
mod generic_types;
mod global_executor;
mod higher_ranked_types;
mod hygiene;
mod idle_never_returns;
mod local_resources;
mod local_tasks;
mod locals_for_ever;
mod locks_by_reference;
mod many_resources_in_one_lock;
mod message_with_deadline;
mod messages;
mod minimal;
mod names;
mod nested_app;
mod not_send_in_idle_alone;
mod not_sync_at_one_level;
mod other_items;
mod partitions;
mod pended_messages;
mod periodic;
mod priorities_from_constants;
mod private_types;
mod raw_names;
mod roles_under_any_name;
mod run_arguments;
mod shadowed_prelude;
mod shared_resources;
mod shutdown;
mod shutdown_locals;
mod spawn_handles;
mod sporadic;
mod strict_lints;
mod tasks_named_like_types;
mod two_apps;
mod unsafe_lints;
