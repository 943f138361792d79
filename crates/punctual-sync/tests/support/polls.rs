//! A limit on spinning by number of checks, for tests that must not depend on the clock.

/// Allows a thread this number of checks.
pub(crate) fn polls(mut left: u32) -> impl FnMut() -> bool {
    move || {
        let go_on = left > 0;
        left = left.saturating_sub(1);
        go_on
    }
}
