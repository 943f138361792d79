//! Features that a bare board, or a build of `punctual`, lacks.

use crate::errors::Errors;
use crate::model::{App, TaskKind};

const WITHOUT_STD: &str = "`punctual` is built for a bare board, without its feature `std`";

/// Maximum number of cores of a board.
const CORES: usize = 4;

pub(super) fn check(app: &App, errors: &mut Errors) {
    if let Some(global) = &app.args.global {
        errors.at(
            global,
            format_args!(
                "a bare board has no threads for the global executor: remove `executor` ({WITHOUT_STD})"
            ),
        );
    }
    for (index, partition) in app.args.partitions.iter().enumerate() {
        let name = &partition.ident;
        if index >= CORES {
            errors.at(
                name,
                format_args!(
                    "`{name}` is one partition too many: a bare board has at most {CORES} cores, \
                     one for each partition ({WITHOUT_STD})"
                ),
            );
        }
        if let Some(cpu) = &partition.cpu {
            errors.at(
                cpu,
                format_args!(
                    "on a bare board the partitions use the cores in order, from the first on: remove `cpu` \
                     ({WITHOUT_STD})"
                ),
            );
        }
        if partition.poll {
            errors.at(
                name,
                format_args!(
                    "a bare board has no kernel, so polling has no effect: remove `poll` ({WITHOUT_STD})"
                ),
            );
        }
    }
    if let Some(cpu) = &app.args.cpu {
        errors.at(
            cpu,
            format_args!("an app on a bare board runs on the first core: remove `cpu` ({WITHOUT_STD})"),
        );
    }
    if app.args.profile {
        errors.at(
            &app.module.ident,
            format_args!("a bare board cannot store a profile: remove `profile` ({WITHOUT_STD})"),
        );
    }
    for budget in app.tasks.iter().filter_map(|task| task.budget.as_ref()) {
        errors.at(
            &budget.key,
            format_args!(
                "a bare board has no other process to monitor a budget: remove `budget` and \
                 `on_budget` ({WITHOUT_STD})"
            ),
        );
    }
    for task in &app.tasks {
        let TaskKind::Periodic { clock: Some(clock), .. } = &task.kind else { continue };
        errors.at(
            clock,
            format_args!(
                "a bare board has no clock other than the counter of its timer: remove `clock` ({WITHOUT_STD})"
            ),
        );
    }
    for task in &app.tasks {
        let TaskKind::Bound { source, .. } = &task.kind else { continue };
        if app.local_field(source).is_some() {
            errors.at(
                source,
                format_args!(
                    "a bare board has no descriptors: `binds` names an interrupt of the board, \
                     such as `binds = UART0`, not the local resource `{source}` ({WITHOUT_STD})"
                ),
            );
        }
    }
}

/// Checks that async tasks have the feature of `punctual` that they require; `punctual` enables the
/// feature of the same name here. `has_async`: true if there are async tasks.
pub(super) fn needs_async(app: &App, has_async: bool, errors: &mut Errors) {
    if has_async {
        return;
    }
    for task in app.tasks.iter().filter(|task| matches!(task.kind, TaskKind::Async)) {
        let name = &task.handler.ident;
        errors.at(
            name,
            format_args!(
                "`{name}` is an `async fn`, and `punctual` is built without async tasks: turn on its feature `async` in \
                 Cargo.toml, `punctual = {{ .., features = [\"async\"] }}`"
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::{format_ident, quote};

    use super::check;
    use crate::errors::Errors;
    use crate::testing::{app, app_with};

    fn printed(args: TokenStream, items: TokenStream) -> Vec<String> {
        let app = app_with(args, items);
        let mut errors = Errors::default();
        check(&app, &mut errors);
        let Err(error) = errors.finish() else { return Vec::new() };
        error.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn requires_threads_or_other_cores() {
        let items = || quote! { #[shared] struct Shared {} #[task(priority = 1)] fn t(cx: t::Context) {} };
        assert_eq!(printed(TokenStream::new(), items()), [""; 0]);
        let global = printed(quote!(executor = "global"), items());
        assert!(global.len() == 1 && global[0].contains("remove `executor`"), "{global:?}");
        let cpu = printed(quote!(cpu = 1), items());
        assert!(cpu.len() == 1 && cpu[0].contains("remove `cpu`"), "{cpu:?}");
        let profile = printed(quote!(profile), items());
        assert!(profile.len() == 1 && profile[0].contains("remove `profile`"), "{profile:?}");
        let budget =
            quote! { #[shared] struct Shared {} #[task(budget = 1.millis())] fn t(cx: t::Context) {} };
        let budget = printed(TokenStream::new(), budget);
        assert!(budget.len() == 1 && budget[0].contains("remove `budget`"), "{budget:?}");
        let clock = quote! {
            #[shared] struct Shared {}
            #[task(period = 1.millis(), clock = PTP)] fn t(cx: t::Context) {}
        };
        let clock = printed(TokenStream::new(), clock);
        assert!(clock.len() == 1 && clock[0].contains("remove `clock`"), "{clock:?}");
    }

    #[test]
    fn assigns_core_to_each_partition() {
        let tasks = |partitions: &[&str]| {
            let tasks = partitions.iter().map(|core| {
                let (core, name) = (format_ident!("{core}"), format_ident!("in_{core}"));
                quote! { #[task(core = #core)] fn #name(cx: #name::Context) {} }
            });
            quote! { #[shared] struct Shared {} #(#tasks)* }
        };
        let four = ["a", "b", "c", "d"];
        assert_eq!(printed(quote!(partitions = [a, b, c, d]), tasks(&four)), [""; 0]);
        let fifth = printed(quote!(partitions = [a, b, c, d, e]), tasks(&["a", "b", "c", "d", "e"]));
        assert!(fifth.len() == 1 && fifth[0].contains("`e` is one partition too many"), "{fifth:?}");
        let cpu = printed(quote!(partitions = [a, b(cpu = 2)]), tasks(&four[..2]));
        assert!(cpu.len() == 1 && cpu[0].contains("remove `cpu`"), "{cpu:?}");
        let polls = printed(quote!(partitions = [a, b(poll)]), tasks(&four[..2]));
        assert!(polls.len() == 1 && polls[0].contains("remove `poll`"), "{polls:?}");
    }

    #[test]
    fn async_task_names_required_feature() {
        let app = app(quote! {
            #[shared] struct Shared {}
            #[task(priority = 1)] async fn waits(cx: waits::Context) {}
            #[task(priority = 1)] fn runs(cx: runs::Context) {}
        });
        let printed = |has_async| {
            let mut errors = Errors::default();
            super::needs_async(&app, has_async, &mut errors);
            errors.finish().err().map(|error| error.to_string())
        };
        assert_eq!(printed(true), None);
        let printed = printed(false).expect("there is an async task");
        assert!(
            printed.starts_with("`waits` is an `async fn`") && printed.contains("feature `async`"),
            "{printed}"
        );
    }
}
