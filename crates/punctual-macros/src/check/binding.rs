//! Event sources: a task that `binds` one owns it.

use syn::Ident;

use crate::errors::Errors;
use crate::model::{App, Task, TaskKind};
use crate::suggest;

pub(super) fn check(app: &App, errors: &mut Errors) {
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
