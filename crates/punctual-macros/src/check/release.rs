//! Releases of tasks: deadlines compared with periods, capacities of queues, and event sources.

use quote::ToTokens;
use syn::{Ident, Path};

use crate::errors::Errors;
use crate::model::{App, Budget, Duration, Task, TaskKind};
use crate::suggest;

pub(super) fn check(app: &App, errors: &mut Errors) {
    above_kernel_maximum(app, errors);
    for task in &app.tasks {
        deadline_above_period(task, errors);
        budget_above_deadline(task, errors);
        useless_capacity(task, errors);
        useless_waits(task, errors);
    }
}

/// Highest real-time priority of the kernel.
const HIGHEST: u8 = 99;

/// Without a base here, `Config::priority_base` may still set one.
fn above_kernel_maximum(app: &App, errors: &mut Errors) {
    let Some(base) = app.args.priority_base else { return };
    for task in app.tasks.iter().filter(|task| base + task.priority > HIGHEST) {
        let (name, level, given) = (&task.handler.ident, task.priority, base + task.priority);
        errors.at(
            name,
            format_args!(
                "`{name}` would run at the kernel's priority {given}, which ends at {HIGHEST}: `priority_base = {base}` \
                 and `priority = {level}`; lower one of them"
            ),
        );
    }
}

/// Returns the shortest distance between two releases of a periodic task, in ns, and how to write
/// it. The limit for a grid that follows an external clock is `MAX_ADJUSTMENT` of the runtime.
fn shortest_distance(period: &Duration, clock: Option<&Path>) -> Option<(u64, String)> {
    let (nanos, source) = (period.nanos?, period.source.to_token_stream().to_string());
    match clock {
        None => Some((nanos, source)),
        Some(_) => Some((nanos - nanos / 1_000, format!("99.9 % of {source}"))),
    }
}

fn deadline_above_period(task: &Task, errors: &mut Errors) {
    let TaskKind::Periodic { period, clock, on_overrun, .. } = &task.kind else { return };
    let (Some(deadline), false) = (&task.deadline, on_overrun.queues()) else { return };
    let Some((distance, longest)) = shortest_distance(period, clock.as_ref()) else { return };
    if deadline.nanos.is_some_and(|deadline| deadline > distance) {
        let name = &task.handler.ident;
        errors.at(
            &deadline.source,
            format_args!(
                "the deadline of `{name}` is beyond its next release; make it at most {longest}, \
                 or queue releases with `on_overrun = queue`"
            ),
        );
    }
}

/// A job within such a budget could miss its deadline.
fn budget_above_deadline(task: &Task, errors: &mut Errors) {
    let Some(Budget { length, .. }) = &task.budget else { return };
    let period = match &task.kind {
        TaskKind::Periodic { period, clock, .. } => shortest_distance(period, clock.as_ref()),
        _ => None,
    };
    let deadline = task.deadline.as_ref();
    let deadline = deadline.and_then(|it| Some((it.nanos?, it.source.to_token_stream().to_string())));
    let limits = [(period, "period"), (deadline, "deadline")];
    let limits = limits.into_iter().filter_map(|(limit, key)| Some((limit?, key)));
    let Some(((nanos, limit), key)) = limits.min_by_key(|((nanos, _), _)| *nanos) else { return };
    if length.nanos.is_some_and(|budget| budget > nanos) {
        let name = &task.handler.ident;
        errors.at(
            &length.source,
            format_args!(
                "the budget of `{name}` exceeds its {key}; make it at most {limit}, or raise the {key}"
            ),
        );
    }
}

fn useless_waits(task: &Task, errors: &mut Errors) {
    if let (Some(key), false) = (&task.waits_key, task.is_async()) {
        errors.at(
            key,
            "only an async task waits for times and descriptors; remove `waits`, or make it an `async fn`",
        );
    }
}

fn useless_capacity(task: &Task, errors: &mut Errors) {
    let Some(key) = &task.capacity_key else { return };
    match &task.kind {
        TaskKind::Message => {}
        TaskKind::Periodic { on_overrun, .. } if on_overrun.queues() => {}
        TaskKind::Periodic { .. } => errors.at(
            key,
            "releases of this task never wait; remove `capacity`, or queue them with `on_overrun = queue`",
        ),
        TaskKind::Bound { .. } => {
            errors.at(key, "events wait in their source; remove `capacity`");
        }
        TaskKind::Async => {
            errors.at(key, "an async task is spawned again when it has completed; remove `capacity`");
        }
    }
}

/// Checks event sources: a task that `binds` one owns it.
pub(super) fn by_event_source(app: &App, errors: &mut Errors) {
    for task in &app.tasks {
        if let TaskKind::Bound { source, .. } = &task.kind {
            owned_source(app, task, source, errors);
        }
    }
}

fn owned_source(app: &App, task: &Task, source: &Ident, errors: &mut Errors) {
    let name = &task.handler.ident;
    match task.handler.locals.iter().find(|local| local.ident == *source) {
        Some(local) if local.is_field() => {}
        Some(_) => errors.at(
            source,
            format_args!(
                "`{source}` is declared in place, but an event source comes from `init`; \
                 make it a field of the `#[local]` struct"
            ),
        ),
        None if app.local_field(source).is_none() => {
            let fields: Vec<String> = app.local.fields.iter().map(|field| field.ident.to_string()).collect();
            if let Some(meant) = suggest::nearest(&source.to_string(), fields.iter().map(String::as_str)) {
                let message = format!("no local resource is named `{source}`; did you mean `{meant}`?");
                errors.at(source, message);
                return;
            }
            let field = source.to_string().to_lowercase();
            errors.at(
                source,
                format_args!(
                    "there are no interrupts here, and no local resource `{source}`: `binds` names a field of the \
                     `#[local]` struct that is a file descriptor, which the task has: \
                     `binds = {field}, local = [{field}]`"
                ),
            );
        }
        None => errors.at(
            source,
            format_args!("`{name}` binds `{source}`, which is not local to it; add it: `local = [{source}]`"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use crate::testing::errors;

    #[test]
    fn valid_deadline() {
        let errors = errors(quote! {
            #[task(period = 10.millis(), deadline = 10.millis())] fn t(cx: t::Context) {}
            #[task(period = 10.millis(), deadline = 30.millis(), on_overrun = queue, capacity = 4)]
            fn u(cx: u::Context) {}
            #[task(period = PERIOD, deadline = 30.millis())] fn v(cx: v::Context) {}
        });
        assert!(errors.is_empty(), "{errors:#?}");
    }

    /// Its releases may be closer than a period.
    #[test]
    fn task_with_external_clock() {
        let errors = errors(quote! {
            #[task(period = 1.millis(), clock = C, deadline = 999.micros(), budget = 999.micros())]
            fn t(cx: t::Context) {}
            #[task(period = 1.millis(), clock = C, deadline = 1.millis())] fn u(cx: u::Context) {}
            #[task(period = 1.millis(), clock = C, budget = 1.millis())] fn v(cx: v::Context) {}
        });
        assert_eq!(errors.len(), 2, "{errors:#?}");
        assert!(errors[0].contains("the deadline of `u` is beyond its next release"), "{errors:#?}");
        assert!(errors[0].contains("at most 99.9 % of 1 . millis ()"), "{errors:#?}");
        assert!(errors[1].contains("the budget of `v` exceeds its period"), "{errors:#?}");
    }

    #[test]
    fn budget_above_deadline() {
        let errors = errors(quote! {
            #[task(period = 10.millis(), budget = 11.millis())] fn t(cx: t::Context) {}
            #[task(period = 10.millis(), deadline = 5.millis(), budget = 6.millis())] fn u(cx: u::Context) {}
            #[task(deadline = 5.millis(), budget = 6.millis())] fn v(cx: v::Context) {}
            #[task(period = 10.millis(), deadline = 5.millis(), budget = 5.millis())] fn w(cx: w::Context) {}
            #[task(period = 5.millis(), deadline = 9.millis(), budget = 6.millis(), on_overrun = queue)]
            fn x(cx: x::Context) {}
        });
        assert_eq!(errors.len(), 4, "{errors:#?}");
        for (error, part) in errors.iter().zip([
            "the budget of `t` exceeds its period; make it at most 10 . millis ()",
            "the budget of `u` exceeds its deadline; make it at most 5 . millis ()",
            "the budget of `v` exceeds its deadline",
            "the budget of `x` exceeds its period",
        ]) {
            assert!(error.contains(part), "{part} is not in {error}");
        }
    }
}
