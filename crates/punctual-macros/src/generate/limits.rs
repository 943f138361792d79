//! Limits of durations that only the compiler can evaluate, as constants; the checks of the macro
//! cover the others.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::{duration, names};
use crate::model::{Duration, Task, TaskKind};

/// Compile-time checks of the durations of a task.
pub(super) fn checks(task: &Task) -> TokenStream {
    let name = names::plain(&task.handler.ident);
    let (period, waits) = match &task.kind {
        TaskKind::Periodic { period, on_overrun, .. } => (Some(period), on_overrun.queues()),
        _ => (None, false),
    };
    let deadline = task.deadline.as_ref();
    let budget = task.budget.as_ref().map(|budget| &budget.length);
    let interval = task.interval.as_ref().map(|interval| &interval.length);
    let mut checks = TokenStream::new();
    for (key, value) in
        [("period", period), ("deadline", deadline), ("budget", budget), ("min_interval", interval)]
    {
        checks.extend(value.and_then(|value| not_zero(value, key)));
    }
    let next = "; lower it to the period, or let releases wait with `on_overrun = queue`";
    let pairs = [
        (
            deadline,
            period.filter(|_| !waits),
            format!("the deadline of `{name}` is beyond its next release{next}"),
        ),
        (budget, period, above(&name, "period")),
        (budget, deadline, above(&name, "deadline")),
    ];
    for (value, limit, message) in pairs {
        checks.extend(value.zip(limit).and_then(|(value, limit)| at_most(value, limit, &message)));
    }
    checks
}

fn above(name: &str, key: &str) -> String {
    format!("the budget of `{name}` exceeds its {key}; lower the budget, or raise the {key}")
}

fn not_zero(value: &Duration, key: &str) -> Option<TokenStream> {
    let message = format!("`{key}` cannot be zero; write a duration such as `10.millis()`");
    value.nanos.is_none().then(|| {
        check(value, &quote!(::punctual::export::Duration::from_ticks(1)), &duration(value), &message)
    })
}

/// The check that `value` is not above `limit`, unless the macro has evaluated both.
fn at_most(value: &Duration, limit: &Duration, message: &str) -> Option<TokenStream> {
    let is_known = value.nanos.is_some() && limit.nanos.is_some();
    (!is_known).then(|| check(value, &duration(value), &duration(limit), message))
}

/// The check that `low` is not above `high`, reported at `place`.
fn check(place: &Duration, low: &TokenStream, high: &TokenStream, message: &str) -> TokenStream {
    let at = names::at(place.source.span());
    let call = quote_spanned!(at=> ::punctual::export::assert_in_order(#low, #high, #message));
    quote!(const _: () = #call;)
}
