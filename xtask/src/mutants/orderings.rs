//! Which ordering is the next weaker one.

/// What an ordering is said for, which decides what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Load,
    Store,
    ReadModifyWrite,
    Fence,
    /// A variable, or a function of the package.
    Unknown,
}

impl Operation {
    /// Of the argument at this position of `count`, by the name of what is called.
    pub(super) fn of(name: &str, at: usize, count: usize) -> Self {
        match name {
            "load" => Self::Load,
            "store" => Self::Store,
            "fence" => Self::Fence,
            "fetch_update" if at == 1 => Self::Load,
            // With the order of a failure behind that of the success.
            "compare_exchange" | "compare_exchange_weak" if at + 1 == count => Self::Load,
            "swap" | "compare_exchange" | "compare_exchange_weak" => Self::ReadModifyWrite,
            name if name.starts_with("fetch_") => Self::ReadModifyWrite,
            _ => Self::Unknown,
        }
    }
}

/// The orderings one step below `order`. A fence that orders nothing is no fence: that one is dropped as a statement.
pub(super) fn weaker(order: &str, operation: Operation) -> &'static [&'static str] {
    use Operation::{Fence, Load, ReadModifyWrite, Store, Unknown};
    match (order, operation) {
        ("SeqCst", Load) => &["Acquire"],
        ("SeqCst", Store) => &["Release"],
        ("SeqCst", ReadModifyWrite | Fence | Unknown) => &["AcqRel"],
        ("AcqRel", _) => &["Acquire", "Release"],
        ("Acquire" | "Release", Fence) => &[],
        ("Acquire" | "Release", _) => &["Relaxed"],
        _ => &[],
    }
}
