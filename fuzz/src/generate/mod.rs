//! Random apps, the same for the same seed.

mod body;
mod choose;
mod model;
mod source;
mod steps;

pub use choose::choose;
pub use model::{Executor, Model};
pub use source::source;

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn is_reproducible_by_seed() {
        for seed in 0..50 {
            assert_eq!(source(&choose(seed, None)), source(&choose(seed, None)));
        }
        assert_ne!(source(&choose(1, None)), source(&choose(2, None)));
    }

    #[test]
    fn covers_every_construct() {
        let all: String = (0..200).map(|seed| source(&choose(seed, None))).collect();
        for part in [
            "executor = \"global\"",
            "(poll)",
            "core = one",
            "monitor = false",
            "#[lock_free]",
            "period = ",
            "on_overrun = queue",
            "on_overrun = stop",
            "on_overrun = t",
            "binds = ",
            "local_task",
            "async fn",
            "b: Token",
            "-> !",
            "wait_for_event",
            "Stubborn",
            "#[shutdown",
            ".await",
            "(cx.shared.r",
            "local_spawner",
            "timeout_after",
            "readable(",
            "Kind::InPlace",
        ] {
            assert!(all.contains(part), "no app has `{part}`");
        }
    }

    #[test]
    fn generates_apps_for_requested_executor() {
        for &executor in Executor::value_variants() {
            assert_eq!(choose(9, Some(executor)).executor, executor);
        }
    }
}
