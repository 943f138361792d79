//! Bugs that are put in on purpose, to show that the models find them.

/// Whether the bug of this feature is in the code. A constant, except under loom.
macro_rules! seeded {
    ($feature:tt) => {
        cfg!(feature = $feature) && $crate::seed::is_chosen($feature)
    };
}
pub(crate) use seeded;

/// Under loom one build can have all the bugs: then `PUNCTUAL_SEED` names the one that is in the code.
#[cfg(loom)]
pub(crate) fn is_chosen(feature: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| std::env::var("PUNCTUAL_SEED").ok());
    chosen.as_ref().is_none_or(|chosen| chosen == feature)
}

#[cfg(not(loom))]
pub(crate) const fn is_chosen(_: &str) -> bool {
    true
}
