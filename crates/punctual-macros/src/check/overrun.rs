//! Overrun handlers: message tasks without arguments.

use syn::Ident;

use crate::errors::Errors;
use crate::model::{App, OnOverrun, Task, TaskKind};
use crate::suggest;

pub(super) fn check(app: &App, errors: &mut Errors) {
    for task in &app.tasks {
        if let TaskKind::Periodic { on_overrun: OnOverrun::Task(name), .. } = &task.kind {
            match app.task_named(name) {
                Some(handler) => spawnable(name, handler, errors),
                None => missing(app, name, errors),
            }
        }
    }
}

fn missing(app: &App, name: &Ident, errors: &mut Errors) {
    if app.absent.tasks.iter().any(|task| task.handler.ident == *name) {
        let message =
            format!("a `#[cfg]` removes `{name}` from this build; give this task the same `#[cfg]`");
        errors.at(name, message);
        return;
    }
    let place = format!("`{}`", app.module.ident);
    let policies = OnOverrun::NAMED.map(|(policy, _)| policy);
    let policy = suggest::meant(&name.to_string(), policies.into_iter());
    let hint = match policy.is_empty() {
        true => suggest::hint(name, &place, app.tasks.iter().map(|task| &task.handler.ident)),
        false => policy,
    };
    let policies = suggest::list(policies.into_iter());
    errors
        .at(name, format_args!("`on_overrun` is {policies} or a task, and no task is named `{name}`{hint}"));
}

fn spawnable(name: &Ident, handler: &Task, errors: &mut Errors) {
    if !matches!(handler.kind, TaskKind::Message | TaskKind::Async) {
        errors.at(
            name,
            format_args!(
                "`{name}` has its own release; an overrun handler is a task without `period` or `binds`"
            ),
        );
    } else if handler.is_local() {
        errors.at(
            name,
            format_args!(
                "`{name}` is a local task, which only tasks of its level start; an overrun handler is a task \
                 without `local_task`"
            ),
        );
    } else if !handler.handler.args.is_empty() {
        errors.at(name, format_args!("`{name}` takes arguments; an overrun handler takes only its context"));
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use crate::testing::{assert_one, errors};

    #[test]
    fn local_handler() {
        let errors = errors(quote! {
            #[task(period = 1.secs(), on_overrun = late)] fn t(cx: t::Context) {}
            #[task(local_task)] async fn late(cx: late::Context) {}
        });
        assert_one(&errors, &["`late` is a local task"]);
    }
}
