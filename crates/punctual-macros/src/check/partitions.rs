//! Partitions: each has a name of its own and a task, and tasks name those that there are.

use std::collections::HashSet;

use super::suggest;
use crate::analyse::Analysis;
use crate::errors::Errors;
use crate::model::App;

/// How many threads can take part in the ceiling protocol of the global executor.
const MEMBERS: usize = 64;

pub(super) fn check(app: &App, analysis: &Analysis, errors: &mut Errors) {
    exclusive_arguments(app, errors);
    declared_twice(app, errors);
    named_by_tasks(app, errors);
    if app.args.global.is_none() {
        without_tasks(app, analysis, errors);
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
            errors.at(name, format_args!("the partition `{name}` is declared twice"));
        }
    }
}

fn named_by_tasks(app: &App, errors: &mut Errors) {
    for core in app.tasks.iter().filter_map(|task| task.core.as_ref()) {
        let name = core.value();
        if app.args.global.is_some() {
            errors.at(core, "the global executor has no partitions; remove `core`");
        } else if app.args.partitions.is_empty() {
            errors.at(
                core,
                format_args!(
                    "no partitions are declared; write `#[punctual::app(partitions = [{name}, ..])]`"
                ),
            );
        } else if app.args.partitions.iter().all(|partition| partition.ident != name) {
            let declared = app.args.partitions.iter().map(|partition| &partition.ident);
            let hint = match syn::parse_str(&name) {
                Ok(ident) => suggest::hint(&ident, "`partitions`", declared),
                Err(_) => String::new(),
            };
            errors.at(core, format_args!("no partition is named `{name}`{hint}"));
        }
    }
}

fn without_tasks(app: &App, analysis: &Analysis, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (partition, part) in app.args.partitions.iter().zip(&analysis.parts) {
        let name = &partition.ident;
        // Of two with one name, the tasks are in the first.
        if seen.insert(name.to_string()) && part.levels.is_empty() {
            errors.at(
                name,
                format_args!(
                    "no task is in the partition `{name}`; give one `core = \"{name}\"`, or remove it"
                ),
            );
        }
    }
}

fn too_many_threads(app: &App, analysis: &Analysis, errors: &mut Errors) {
    let threads = analysis.parts.len() + app.tasks.iter().filter(|task| task.is_bound()).count() + 1;
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
    use quote::quote;

    use crate::testing::{assert_one, errors_with};

    #[track_caller]
    fn rejects(args: TokenStream, items: TokenStream, parts: &[&str]) {
        assert_one(&errors_with(args, items), parts);
    }

    #[test]
    fn partitions_have_names_of_their_own_and_tasks() {
        let task = || quote! { #[task(core = "a")] fn t(cx: t::Context) {} };
        rejects(quote!(partitions = [a, a]), task(), &["the partition `a` is declared twice"]);
        rejects(quote!(partitions = [a, b]), task(), &["no task is in the partition `b`", "core = \"b\""]);
        let near = quote! { #[task(core = "moter")] fn t(cx: t::Context) {} };
        rejects(
            quote!(partitions = [motor]),
            near,
            &["no partition is named `moter`; did you mean `motor`?"],
        );
        rejects(quote!(), task(), &["no partitions are declared", "partitions = [a, ..]"]);
    }

    #[test]
    fn what_the_global_executor_cannot_have() {
        let task = || quote! { #[task] fn t(cx: t::Context) {} };
        rejects(quote!(executor = "global", cpu = 1), task(), &["every CPU"]);
        rejects(quote!(executor = "global", partitions = [a]), task(), &["no partitions"]);
        let core = quote! { #[task(core = "a")] fn t(cx: t::Context) {} };
        rejects(quote!(executor = "global"), core, &["remove `core`"]);
        rejects(quote!(partitions = [a], cpu = 1), task(), &["partitions = [a(cpu = ..), ..]"]);
    }
}
