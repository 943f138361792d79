//! The `#[task(..)]` attribute.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Expr, Ident, Path};

use super::constants::Constants;
use super::duration::{Purpose, duration};
use super::handler::{self, Marked};
use super::keys::{Keys, ungrouped};
use super::table::Value::{Choice, Flag, Int, Other};
use super::table::{DURATION, Key};
use crate::errors::Errors;
use crate::model::{Budget, Interval, OnBudget, OnEarly, OnIdle, OnOverrun, Role, Task, TaskKind};

/// Keys of `#[task]`.
pub(super) const KEYS: &[Key] = &[
    Key::new(
        "priority = L",
        Int(1, 28),
        "1",
        "the level, from 1 to 28; higher preempts lower. Integers, constants of the module, \
         and `+ - * / %` of these",
    ),
    Key::new("core = a", Other("<partition>"), "the first partition", "the partition"),
    Key::new(
        "capacity = N",
        Int(1, 1024),
        "1",
        "the number of jobs that may wait, for their turn or for their time, from 1 to 1024, \
         as a number or of constants of the module; the running one does not count. For \
         messages, and with `on_overrun = queue`",
    ),
    handler::SHARED,
    handler::LOCAL,
    Key::new(
        "period = 10.millis()",
        Other("<duration or rate>"),
        "–",
        "released by the clock, on a grid that does not drift; also as a rate, `100.Hz()`",
    ),
    Key::new(
        "offset = D",
        DURATION,
        "zero",
        "from the origin of all periods, which is the start of the app in virtual time and up \
         to 10 ms later otherwise, to the first release",
    )
    .requires("period", "is for periodic tasks; add a `period`"),
    Key::new(
        "clock = CLOCK",
        Other("<static of type punctual::ExternalClock>"),
        "the machine's",
        "the static `punctual::ExternalClock` that the grid follows",
    )
    .requires("period", "is for periodic tasks; add a `period`"),
    Key::new(
        "deadline = D",
        DURATION,
        "the period",
        "from release to completion; later completions are counted",
    ),
    Key::new(
        "min_interval = D",
        DURATION,
        "–",
        "for messages and bound tasks: at most `burst` releases in any interval of this \
         length",
    ),
    Key::new("burst = N", Int(1, 64), "1", "the number of these releases, from 1 to 64")
        .requires("min_interval", "requires `min_interval`; add it"),
    Key::new(
        "on_early = P",
        Choice(
            &["count", "delay", "reject"],
            "the treatment of a release that comes too soon after the previous ones",
        ),
        "`count`",
        "the treatment of a release that comes too early: `count` it, `delay` it until it is \
         allowed, or `reject` it",
    )
    .requires("min_interval", "requires `min_interval`; add it"),
    Key::new(
        "budget = D",
        DURATION,
        "–",
        "the maximum CPU time of a job, or of a poll of an async task, enforced by [`punctual \
         supervise`](#budgets)",
    ),
    Key::new(
        "on_budget = P",
        Choice(
            &["report", "stop", "kill"],
            "the action of `punctual supervise` on a job that has used more CPU time than its `budget`",
        ),
        "`report`",
        "the supervisor's action on a job beyond its budget: `report` it, `stop` the app, or \
         `kill` the process",
    )
    .requires("budget", "requires `budget`; add it"),
    Key::new(
        "execution = D",
        DURATION,
        "zero",
        "the time that a job, or a poll of an async task, takes in virtual time",
    ),
    Key::new(
        "on_overrun = P",
        Other("<skip, queue, stop or a task>"),
        "`skip`",
        "the treatment of a release when the previous job has not completed: `skip` it, \
         `queue` it, `stop` the app, or spawn the named task",
    )
    .requires("period", "is for periodic tasks; add a `period`"),
    Key::new(
        "binds = source",
        Other("<name in `local`>"),
        "–",
        "released whenever the local resource `source`, an `AsFd`, becomes readable, and by \
         `task::pend()`",
    ),
    Key::new(
        "on_idle_source = P",
        Choice(
            &["every", "once", "stop"],
            "the action when a job has found the source empty and it is ready again",
        ),
        "`every`",
        "the action if the source is at its end and still is after a job has found that: \
         another job `every` time, no further job (`once`), or `stop` the app",
    )
    .requires("binds", "is for tasks that bind an event source; add `binds`"),
    Key::new(
        "waits = N",
        Int(1, 64),
        "4",
        "the number of times, and of descriptors, for which an async task waits at the same \
         time, from 1 to 64; the level's async tasks share the times, the app's the \
         descriptors",
    ),
    Key::new(
        "local_task",
        Flag,
        "off",
        "an async task that need not be `Send`, started only by tasks of its level",
    ),
];

/// Default maximum of times, and of descriptors, that an async task may wait for at once: twice a
/// delay with a time limit.
const WAITS: u16 = 4;

pub(super) fn parse(marked: Marked<'_>, constants: &Constants, errors: &mut Errors) -> Task {
    let keys = Keys::of(&marked.attr, KEYS, errors);
    let priority = priority(&keys, constants, errors);
    let is_async = marked.item.sig().asyncness.is_some();
    Task {
        priority: priority.unwrap_or(1),
        computed: computed(&keys, constants),
        core: keys.ident("core", errors).map(|core| core.unraw()),
        capacity: keys.int("capacity", constants, errors).unwrap_or(1),
        capacity_key: keys.key("capacity").cloned(),
        kind: kind(&keys, is_async, errors),
        deadline: duration(&keys, "deadline", Purpose::Deadline, errors),
        interval: interval(&keys, is_async, constants, errors),
        budget: budget(&keys, errors),
        execution: duration(&keys, "execution", Purpose::Other, errors),
        waits: keys.int("waits", constants, errors).unwrap_or(WAITS),
        waits_key: keys.key("waits").cloned(),
        local_task: flag(&keys, "local_task", errors),
        handler: handler::handler(Role::Task, marked, &keys, errors),
    }
}

/// Returns the numbers other than literals, with the macro's value for each.
fn computed(keys: &Keys, constants: &Constants) -> Vec<(Expr, i128)> {
    ["priority", "capacity", "burst", "waits"]
        .into_iter()
        .filter_map(|name| keys.value(name))
        .filter(|source| !matches!(source, Expr::Lit(_)))
        .filter_map(|source| Some((source.clone(), constants.value(source)?)))
        .collect()
}

/// The level of a task determines the generated code, so it has to be known here.
fn priority(keys: &Keys, constants: &Constants, errors: &mut Errors) -> Option<u8> {
    let expr = keys.expr("priority", errors)?;
    let range = "an integer from 1 to 28";
    let given = expr.to_token_stream();
    match constants.value(expr) {
        Some(level @ 1..=28) => return u8::try_from(level).ok(),
        Some(0) => errors.at(
            expr,
            "priority 0 is reserved for `idle`; the lowest task priority is 1, so write `priority = 1`, or do the work \
             in `#[idle]`",
        ),
        Some(level) if !matches!(ungrouped(expr), Expr::Lit(_)) => {
            errors.at(expr, format_args!("`priority` is {range}, and this is {level}"));
        }
        None if matches!(ungrouped(expr), Expr::Path(_) | Expr::Binary(_) | Expr::Cast(_) | Expr::Call(_)) => errors.at(
            expr,
            format_args!(
                "`priority` is {range}, known to the macro: it evaluates integers, `+ - * / %`, \
                 and constants of this \
                 module"
            ),
        ),
        _ => errors.at(expr, format_args!("`priority` is {range}, not `{given}`")),
    }
    None
}

fn flag(keys: &Keys, name: &str, errors: &mut Errors) -> Option<Ident> {
    let set = keys.boolean(name, errors)?.value;
    keys.key(name).filter(|_| set).cloned()
}

fn kind(keys: &Keys, is_async: bool, errors: &mut Errors) -> TaskKind {
    let period = duration(keys, "period", Purpose::Period, errors);
    let offset = duration(keys, "offset", Purpose::Other, errors);
    let clock = clock(keys, errors);
    let on_overrun = overrun(keys, errors);
    let source = keys.ident("binds", errors);
    let on_idle = keys.choice("on_idle_source", [OnIdle::Every, OnIdle::Once, OnIdle::Stop], errors);
    if let (Some(_), Some(binds)) = (keys.key("period"), keys.key("binds")) {
        errors.at(binds, "a task is released by the clock or by an event source; remove `period` or `binds`");
    }
    keys.check_requirements(errors);
    match (period, source) {
        // The checks report other kinds that are async.
        (None, None) if is_async => TaskKind::Async,
        (Some(period), _) => TaskKind::Periodic { period, offset, clock, on_overrun },
        (None, Some(source)) => TaskKind::Bound { source, on_idle },
        (None, None) => TaskKind::Message,
    }
}

fn clock(keys: &Keys, errors: &mut Errors) -> Option<Path> {
    let expr = keys.expr("clock", errors)?;
    match ungrouped(expr) {
        Expr::Path(path) if path.qself.is_none() => return Some(path.path.clone()),
        Expr::Reference(reference) => errors.at(
            expr,
            format_args!("`clock` names the static itself: `clock = {}`", reference.expr.to_token_stream()),
        ),
        _ => errors.at(
            expr,
            format_args!(
                "`clock` names a static of type `punctual::ExternalClock`, such as `clock = CLOCK`, not `{}`",
                expr.to_token_stream()
            ),
        ),
    }
    None
}

fn interval(keys: &Keys, is_async: bool, constants: &Constants, errors: &mut Errors) -> Option<Interval> {
    // Must not be zero, like deadlines.
    let length = duration(keys, "min_interval", Purpose::Deadline, errors);
    let burst = keys.int("burst", constants, errors).unwrap_or(1);
    let on_early = keys.choice("on_early", [OnEarly::Count, OnEarly::Delay, OnEarly::Reject], errors);
    let key = keys.key("min_interval")?;
    if let Some(period) = keys.key("period") {
        errors.at(
            key,
            format_args!(
                "a periodic task is released once in each `{period}`; remove `min_interval` or `{period}`"
            ),
        );
    } else if is_async {
        errors.at(
            key,
            "`min_interval` is for messages and bound tasks: an async task is polled whenever it is woken; remove \
             `min_interval`, or wait in the task",
        );
    }
    Some(Interval { length: length?, burst, on_early })
}

fn budget(keys: &Keys, errors: &mut Errors) -> Option<Budget> {
    // Must not be zero, like deadlines.
    let length = duration(keys, "budget", Purpose::Deadline, errors);
    let on_budget = keys.choice("on_budget", [OnBudget::Report, OnBudget::Stop, OnBudget::Kill], errors);
    let key = keys.key("budget")?;
    Some(Budget { length: length?, on_budget, key: key.clone() })
}

fn overrun(keys: &Keys, errors: &mut Errors) -> OnOverrun {
    let Some(policy) = keys.ident("on_overrun", errors) else { return OnOverrun::Skip };
    let named = OnOverrun::NAMED.into_iter().find(|(name, _)| policy == name);
    named.map_or(OnOverrun::Task(policy), |(_, policy)| policy)
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;
    use crate::testing::{app, errors};

    #[test]
    fn task_without_keys_has_defaults() {
        let app = app(quote! { #[shared] struct Shared {} #[task] fn t(cx: t::Context, a: u32, b: u8) {} });
        let task = &app.tasks[0];
        assert!(matches!(task.kind, TaskKind::Message));
        assert_eq!((task.priority, task.capacity, task.handler.args.len()), (1, 1, 2));
        assert!(task.deadline.is_none() && task.execution.is_none());
    }

    #[test]
    fn numbers_from_constants_of_module() {
        let app = app(quote! {
            const DEPTH: usize = 4;
            #[shared] struct Shared {}
            #[task(capacity = 2 * DEPTH, min_interval = 1.secs(), burst = DEPTH)] fn t(cx: t::Context) {}
            #[task(waits = DEPTH - 1)] async fn u(cx: u::Context) {}
        });
        let [t, u] = &app.tasks[..] else { panic!("there are two tasks") };
        assert_eq!(
            (t.capacity, t.interval.as_ref().map(|interval| interval.burst), u.waits),
            (8, Some(4), 3)
        );
        let errors = errors(quote! {
            const DEPTH: usize = 2000;
            #[task(capacity = DEPTH)] fn t(cx: t::Context) {}
            #[task(capacity = other::DEPTH)] fn u(cx: u::Context) {}
        });
        assert_eq!(errors.len(), 2, "{errors:#?}");
        assert!(errors[0].contains("`capacity` is an integer from 1 to 1024, and this is 2000"));
        assert!(errors[1].contains("constants of this module"));
    }

    #[test]
    fn a_periodic_task() {
        let app = app(quote! {
            #[shared] struct Shared {}
            #[task(
                priority = 28, capacity = 1024, period = 100.Hz(), offset = 1.millis(),
                deadline = 20.millis(), execution = 2.millis(), on_overrun = queue,
            )]
            fn t(cx: t::Context) {}
        });
        let task = &app.tasks[0];
        let TaskKind::Periodic { period, offset, clock: None, on_overrun } = &task.kind else {
            panic!("the task is periodic")
        };
        assert_eq!(period.nanos, Some(10_000_000));
        assert_eq!(offset.as_ref().and_then(|offset| offset.nanos), Some(1_000_000));
        assert!(matches!(on_overrun, OnOverrun::Queue));
        assert_eq!((task.priority, task.capacity), (28, 1024));
    }

    #[test]
    fn a_task_on_an_external_clock() {
        let app = app(quote! {
            #[shared] struct Shared {}
            #[task(period = 1.millis(), clock = clocks::PTP)] fn t(cx: t::Context) {}
        });
        let TaskKind::Periodic { clock: Some(clock), .. } = &app.tasks[0].kind else {
            panic!("the task has a clock")
        };
        assert_eq!(clock.to_token_stream().to_string(), "clocks :: PTP");
        let errors = errors(quote! {
            #[task(clock = PTP)] fn t(cx: t::Context) {}
            #[task(period = 1.millis(), clock = &PTP)] fn u(cx: u::Context) {}
            #[task(period = 1.millis(), clock = "ptp0")] fn v(cx: v::Context) {}
        });
        let expected = [
            "`clock` is for periodic tasks; add a `period`",
            "`clock` names the static itself: `clock = PTP`",
            "`clock` names a static of type `punctual::ExternalClock`",
        ];
        assert_eq!(errors.len(), expected.len(), "{errors:#?}");
        errors.iter().zip(expected).for_each(|(error, part)| assert!(error.contains(part), "{error}"));
    }

    #[test]
    fn a_sporadic_task() {
        let app = app(quote! {
            #[shared] struct Shared {}
            #[task(min_interval = 5.millis())] fn t(cx: t::Context) {}
            #[task(min_interval = 1.secs(), burst = 64, on_early = delay)] fn u(cx: u::Context) {}
        });
        let given = app.tasks.iter().map(|task| task.interval.as_ref().expect("it says so"));
        let given: Vec<_> = given.map(|given| (given.length.nanos, given.burst, given.on_early)).collect();
        assert_eq!(given[0], (Some(5_000_000), 1, OnEarly::Count));
        assert_eq!(given[1], (Some(1_000_000_000), 64, OnEarly::Delay));
    }

    #[test]
    fn meaningless_intervals() {
        let errors = errors(quote! {
            #[task(burst = 2, on_early = count)] fn a(cx: a::Context) {}
            #[task(min_interval = 0.millis())] fn b(cx: b::Context) {}
            #[task(min_interval = 1.millis(), burst = 65)] fn c(cx: c::Context) {}
            #[task(min_interval = 1.millis(), on_early = drop)] fn d(cx: d::Context) {}
        });
        let expected = [
            "`burst` requires `min_interval`; add it",
            "`on_early` requires `min_interval`; add it",
            "`min_interval` cannot be zero",
            "`burst` is an integer from 1 to 64, not `65`",
            "`on_early` is `count`, `delay` or `reject`",
        ];
        assert_eq!(errors.len(), expected.len(), "{errors:#?}");
        errors.iter().zip(expected).for_each(|(error, part)| assert!(error.contains(part), "{error}"));
    }

    #[test]
    fn intervals_of_tasks_without_interval() {
        let errors = errors(quote! {
            #[task(period = 1.secs(), min_interval = 1.secs())] fn t(cx: t::Context) {}
            #[task(min_interval = 1.secs())] async fn u(cx: u::Context) {}
        });
        assert_eq!(errors.len(), 2, "{errors:#?}");
        assert!(errors[0].contains("remove `min_interval` or `period`"), "{errors:#?}");
        assert!(errors[1].contains("`min_interval` is for messages and bound tasks"), "{errors:#?}");
    }

    #[test]
    fn a_task_with_a_budget() {
        let app = app(quote! {
            #[shared] struct Shared {}
            #[task(budget = 5.millis())] fn t(cx: t::Context) {}
            #[task(budget = 1.secs(), on_budget = kill)] async fn u(cx: u::Context) {}
        });
        let given = app.tasks.iter().map(|task| task.budget.as_ref().expect("it says so"));
        let given: Vec<_> = given.map(|given| (given.length.nanos, given.on_budget)).collect();
        assert_eq!(given, [(Some(5_000_000), OnBudget::Report), (Some(1_000_000_000), OnBudget::Kill)]);
    }

    #[test]
    fn meaningless_budgets() {
        let errors = errors(quote! {
            #[task(on_budget = stop)] fn a(cx: a::Context) {}
            #[task(budget = 0.millis())] fn b(cx: b::Context) {}
            #[task(budget = 1.millis(), on_budget = panic)] fn c(cx: c::Context) {}
        });
        let expected = [
            "`on_budget` requires `budget`; add it",
            "`budget` cannot be zero",
            "`on_budget` is `report`, `stop` or `kill`",
        ];
        assert_eq!(errors.len(), expected.len(), "{errors:#?}");
        errors.iter().zip(expected).for_each(|(error, part)| assert!(error.contains(part), "{error}"));
    }

    #[test]
    fn keys_of_bound_tasks() {
        let errors = errors(quote! {
            #[local] struct Local { tick: Timer }
            #[task(on_idle_source = once)] fn a(cx: a::Context) {}
            #[task(binds = tick, on_idle_source = never, local = [tick])] fn b(cx: b::Context) {}
        });
        assert_eq!(errors.len(), 2, "{errors:#?}");
        assert!(errors[0].contains("`on_idle_source` is for tasks that bind an event source; add `binds`"));
        assert!(errors[1].contains("`on_idle_source` is `every`, `once` or `stop`"));
    }

    #[test]
    fn keys_of_periodic_tasks() {
        let errors = errors(quote! { #[task(offset = 1.secs(), on_overrun = skip)] fn t(cx: t::Context) {} });
        assert_eq!(errors.len(), 2, "{errors:#?}");
        assert!(errors[0].contains("`offset` is for periodic tasks; add a `period`"));
        assert!(errors[1].contains("`on_overrun` is for periodic tasks; add a `period`"));
    }
}
