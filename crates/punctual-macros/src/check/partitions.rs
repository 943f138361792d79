//! Partitions: each has a unique name and a task, and tasks name existing ones.

use std::collections::HashSet;

use syn::Ident;

use crate::analyze::Analysis;
use crate::errors::Errors;
use crate::model::App;
use crate::suggest;

/// Maximum number of threads in the ceiling protocol of the global executor.
const MEMBERS: usize = 64;

/// Maximum number of threads that a partition can count.
const THREADS: usize = 254;

pub(super) fn check(app: &App, analysis: &Analysis, errors: &mut Errors) {
    exclusive_arguments(app, errors);
    declared_twice(app, errors);
    named_by_tasks(app, errors);
    if app.args.global.is_none() {
        without_tasks(app, analysis, errors);
        too_many_in_a_partition(app, analysis, errors);
    } else {
        too_many_threads(app, analysis, errors);
    }
}

fn exclusive_arguments(app: &App, errors: &mut Errors) {
    let first = app.args.partitions.first();
    if let Some(global) = &app.args.global {
        if let Some(first) = first {
            errors
                .at(&first.ident, "the global executor has no partitions; remove `partitions` or `executor`");
        }
        if app.args.cpu.is_some() {
            errors.at(global, "the global executor uses every CPU; remove `cpu` or `executor`");
        }
    } else if let (Some(first), Some(cpu)) = (first, &app.args.cpu) {
        let name = &first.ident;
        errors.at(
            cpu,
            format_args!("each partition has its own CPU; write `partitions = [{name}(cpu = ..), ..]`"),
        );
    }
}

fn declared_twice(app: &App, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for name in app.args.partitions.iter().map(|partition| &partition.ident) {
        if !seen.insert(name.to_string()) {
            errors.at(name, format_args!("the partition `{name}` is declared twice; rename one"));
        }
    }
}

fn named_by_tasks(app: &App, errors: &mut Errors) {
    for name in app.tasks.iter().filter_map(|task| task.core.as_ref()) {
        if app.args.global.is_some() {
            errors.at(name, "the global executor has no partitions; remove `core`");
        } else if app.args.partitions.is_empty() {
            errors.at(
                name,
                format_args!(
                    "no partitions are declared; write `#[punctual::app(partitions = [{name}, ..])]`"
                ),
            );
        } else if app.args.partitions.iter().all(|partition| partition.ident != *name) {
            let declared = app.args.partitions.iter().map(|partition| &partition.ident);
            let hint = suggest::hint(name, "`partitions`", declared);
            errors.at(name, format_args!("no partition is named `{name}`{hint}"));
        }
    }
}

fn without_tasks(app: &App, analysis: &Analysis, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (declared, partition) in app.args.partitions.iter().zip(&analysis.partitions) {
        let name = &declared.ident;
        // If two share a name, the tasks are in the first.
        if seen.insert(name.to_string()) && partition.levels.is_empty() && !has_no_members(app, name) {
            errors.at(
                name,
                format_args!("no task is in the partition `{name}`; give one `core = {name}`, or remove it"),
            );
        }
    }
}

/// Returns whether conditions remove all tasks of a partition.
fn has_no_members(app: &App, partition: &Ident) -> bool {
    app.absent.tasks.iter().any(|task| task.core.as_ref() == Some(partition))
}

/// Reports the first bound task beyond the limit: a partition has at most about thirty other
/// threads.
fn too_many_in_a_partition(app: &App, analysis: &Analysis, errors: &mut Errors) {
    let reactor = analysis.reactor(app).map(|(partition, _)| partition);
    for (index, partition) in analysis.partitions.iter().enumerate() {
        let tasks = app.tasks.iter().zip(&analysis.partition_of_task);
        let bound: Vec<_> = tasks.filter(|(task, of)| task.is_bound() && **of == index).collect();
        let others = 1 + partition.levels.len() + usize::from(reactor == Some(index));
        if let Some((task, _)) = bound.get(THREADS - others) {
            let (name, threads) = (&task.handler.ident, others + bound.len());
            let partition = match app.args.partitions.get(index) {
                Some(partition) => format!("the partition `{}`", partition.ident),
                None => "a partition".into(),
            };
            errors.at(
                name,
                format_args!(
                    "`{name}` is one bound task too many: {partition} has room for {THREADS} threads, and this one needs \
                     {threads}: one for each level and each bound task, one for `idle`, and one if there are async tasks; \
                     wait for several descriptors in one task, with epoll or in async tasks, or \
                     add partitions"
                ),
            );
        }
    }
}

fn too_many_threads(app: &App, analysis: &Analysis, errors: &mut Errors) {
    let threads = analysis.partitions.len() + app.tasks.iter().filter(|task| task.is_bound()).count() + 1;
    if let (Some(global), true) = (&app.args.global, threads > MEMBERS) {
        errors.at(
            global,
            format_args!(
                "the global executor has room for {MEMBERS} threads, and this app needs {threads}: one for \
                each level and each bound task, and two more"
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::{format_ident, quote};

    use crate::testing::{assert_one, errors_with};

    #[track_caller]
    fn rejects(args: TokenStream, items: TokenStream, parts: &[&str]) {
        assert_one(&errors_with(args, items), parts);
    }

    #[test]
    fn partitions_have_names_of_their_own_and_tasks() {
        let task = || quote! { #[task(core = a)] fn t(cx: t::Context) {} };
        rejects(quote!(partitions = [a, a]), task(), &["the partition `a` is declared twice"]);
        rejects(quote!(partitions = [a, b]), task(), &["no task is in the partition `b`", "core = b"]);
        let near = quote! { #[task(core = moter)] fn t(cx: t::Context) {} };
        rejects(
            quote!(partitions = [motor]),
            near,
            &["no partition is named `moter`; did you mean `motor`?"],
        );
        rejects(quote!(), task(), &["no partitions are declared", "partitions = [a, ..]"]);
    }

    /// Returns an app with `count` bound tasks, each with its own source.
    fn bound(count: usize, more: TokenStream) -> TokenStream {
        let sources: Vec<_> = (0..count).map(|n| format_ident!("source_{n}")).collect();
        let tasks: Vec<_> = (0..count).map(|n| format_ident!("task_{n}")).collect();
        quote! {
            #[shared] struct Shared {}
            #[local] struct Local { #(#sources: Line,)* }
            #(#[task(binds = #sources, local = [#sources])] fn #tasks(cx: #tasks::Context) {})*
            #more
        }
    }

    #[test]
    fn partition_accepts_254_threads() {
        let none = || quote!();
        // One level and `idle`.
        assert!(errors_with(none(), bound(252, none())).is_empty());
        rejects(
            none(),
            bound(253, none()),
            &["`task_252` is one bound task too many", "254 threads", "needs 255"],
        );
        rejects(none(), bound(300, none()), &["`task_252` is one bound task too many", "needs 302"]);
        let another = || quote! { #[task(priority = 2)] async fn waits(cx: waits::Context) {} };
        assert!(errors_with(none(), bound(250, another())).is_empty());
        rejects(none(), bound(251, another()), &["`task_250`", "needs 255"]);
    }

    #[test]
    fn rejects_partition_options_with_global_executor() {
        let task = || quote! { #[task] fn t(cx: t::Context) {} };
        rejects(quote!(executor = "global", cpu = 1), task(), &["every CPU"]);
        rejects(quote!(executor = "global", partitions = [a]), task(), &["no partitions"]);
        let core = quote! { #[task(core = a)] fn t(cx: t::Context) {} };
        rejects(quote!(executor = "global"), core, &["remove `core`"]);
        rejects(quote!(partitions = [a], cpu = 1), task(), &["partitions = [a(cpu = ..), ..]"]);
    }
}
