//! A limit on spinning by looks, where the clock must not decide.

/// Lets a thread look so many times.
pub(crate) fn looks(mut left: u32) -> impl FnMut() -> bool {
    move || {
        let go_on = left > 0;
        left = left.saturating_sub(1);
        go_on
    }
}
