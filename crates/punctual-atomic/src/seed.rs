//! Bugs that are put in on purpose, to show that the models find them.
//!
//! ```
//! use punctual_atomic::Ordering;
//! use punctual_atomic::seed::seeded;
//!
//! # #[allow(unexpected_cfgs)]
//! let order = if seeded!("seed-relaxed") { Ordering::Relaxed } else { Ordering::Release };
//! assert_eq!(order, Ordering::Release);
//! ```

/// Whether the bug of this feature of the calling crate is in the code. A constant, except under loom.
#[macro_export]
macro_rules! seeded {
    ($feature:tt) => {
        cfg!(feature = $feature) && $crate::seed::is_chosen($feature)
    };
}
pub use crate::seeded;

/// Under loom one build can have all the bugs: then `PUNCTUAL_SEED` names the one that is in the code.
#[cfg(loom)]
pub fn is_chosen(feature: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| std::env::var("PUNCTUAL_SEED").ok());
    chosen.as_ref().is_none_or(|chosen| chosen == feature)
}

/// There is one bug at most.
#[cfg(not(loom))]
pub const fn is_chosen(_: &str) -> bool {
    true
}
