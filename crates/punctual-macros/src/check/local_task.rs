//! Local tasks: they are async, and some task of their level can spawn them.

use crate::analyze::{Analysis, Partition};
use crate::errors::Errors;
use crate::model::{App, Task, TaskKind};

pub(super) fn check(app: &App, analysis: &Analysis, errors: &mut Errors) {
    app.tasks.iter().for_each(|task| released_otherwise(task, errors));
    for partition in &analysis.partitions {
        for (&level, tasks) in &partition.levels {
            let tasks: Vec<_> = tasks.iter().map(|&task| &app.tasks[task]).collect();
            without_spawner(app, partition, level, &tasks, errors);
        }
    }
}

fn released_otherwise(task: &Task, errors: &mut Errors) {
    let (Some(key), name) = (&task.local_task, &task.handler.ident) else { return };
    // If one of these is async, this is reported separately.
    let plain = task.handler.sig().asyncness.is_none();
    match &task.kind {
        TaskKind::Async => {}
        TaskKind::Message => errors
            .at(key, format_args!("a local task is async; write `async fn {name}`, or remove `local_task`")),
        TaskKind::Periodic { .. } if plain => errors.at(
            key,
            format_args!(
                "`{name}` is released by the clock, but a local task is released by tasks of its \
                 level; remove `period` or \
                 `local_task`"
            ),
        ),
        TaskKind::Bound { .. } if plain => errors.at(
            key,
            format_args!(
                "`{name}` is released by its event source, but a local task is released by tasks \
                 of its level; remove `binds` \
                 or `local_task`"
            ),
        ),
        TaskKind::Periodic { .. } | TaskKind::Bound { .. } => {}
    }
}

fn without_spawner(app: &App, partition: &Partition, level: u8, tasks: &[&Task], errors: &mut Errors) {
    let Some(first) = tasks.first().filter(|_| tasks.iter().all(|task| task.is_local())) else { return };
    // Another build has a task that spawns these.
    if app.absent.tasks.iter().any(|task| task.priority == level && !task.is_local()) {
        return;
    }
    let place = match app.args.partitions.is_empty() {
        true => String::new(),
        false => format!(" in the partition `{}`", partition.name),
    };
    let name = &first.handler.ident;
    if let Some(key) = &first.local_task {
        errors.at(
            key,
            format_args!(
                "no task of level {level}{place} can spawn `{name}`: all are local tasks, which only tasks of \
                 their level start; remove `local_task` from one, or give a task that spawns it `priority = {level}`"
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::quote;

    use crate::testing::{assert_one, errors, errors_with};

    #[track_caller]
    fn rejects(items: TokenStream, parts: &[&str]) {
        assert_one(&errors(items), parts);
    }

    #[test]
    fn tasks_with_other_release_sources() {
        let spawner = || quote! { #[task] fn u(cx: u::Context) {} };
        let spawner = &spawner();
        rejects(
            quote! { #spawner #[task(local_task)] fn t(cx: t::Context) {} },
            &["a local task is async; write `async fn t`"],
        );
        rejects(
            quote! { #spawner #[task(local_task, period = 1.secs())] fn t(cx: t::Context) {} },
            &["`t` is released by the clock", "remove `period` or `local_task`"],
        );
        rejects(
            quote! {
                #spawner
                #[local] struct Local { tick: Timer }
                #[task(local_task, binds = tick, local = [tick])] fn t(cx: t::Context) {}
            },
            &["`t` is released by its event source", "remove `binds` or `local_task`"],
        );
        rejects(
            quote! { #spawner #[task(local_task, period = 1.secs())] async fn t(cx: t::Context) {} },
            &["cannot be async"],
        );
    }

    #[test]
    fn rejects_local_task_without_spawner() {
        rejects(
            quote! {
                #[task] fn u(cx: u::Context) {}
                #[task(local_task, priority = 2)] async fn t(cx: t::Context) {}
                #[task(local_task = true, priority = 2)] async fn s(cx: s::Context) {}
            },
            &["no task of level 2 can spawn `t`", "give a task that spawns it `priority = 2`"],
        );
        let elsewhere = quote! {
            #[task(core = a)] fn u(cx: u::Context) {}
            #[task(core = b, local_task)] async fn t(cx: t::Context) {}
        };
        assert_one(
            &errors_with(quote!(partitions = [a, b]), elsewhere),
            &["no task of level 1 in the partition `b` can spawn `t`"],
        );
        let fine = errors(quote! {
            #[task(period = 1.secs())] fn u(cx: u::Context) {}
            #[task(local_task)] async fn t(cx: t::Context) {}
            #[task(priority = 2, local_task = false)] async fn v(cx: v::Context) {}
        });
        assert!(fine.is_empty(), "{fine:#?}");
    }
}
