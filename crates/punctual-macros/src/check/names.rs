//! The names of handlers.

use std::collections::HashSet;

use syn::{Ident, Item};

use crate::errors::Errors;
use crate::model::{App, Handler, Role};

const RESERVED: [&str; 8] =
    ["init", "idle", "shutdown", "app", "run", "main", "internal", "shared_resources"];

/// How the names of what is generated begin.
const GENERATED: &str = "__punctual";

pub(super) fn check(app: &App, errors: &mut Errors) {
    for handler in app.handlers() {
        match handler.role {
            Role::Task => reserved(handler, errors),
            _ => named_as_role(handler, errors),
        }
    }
    duplicate(app, errors);
    generated(app, errors);
}

/// What is generated stands beside the user's items.
fn generated(app: &App, errors: &mut Errors) {
    let items = app.items.iter().filter_map(item_name);
    let handlers = app.handlers().map(|handler| &handler.ident);
    for name in items.chain(handlers).filter(|name| name.to_string().to_lowercase().starts_with(GENERATED)) {
        errors.at(
            name,
            format_args!("names that begin with `{GENERATED}` are the framework's; rename `{name}`"),
        );
    }
}

fn item_name(item: &Item) -> Option<&Ident> {
    Some(match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Mod(item) => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    })
}

fn reserved(handler: &Handler, errors: &mut Errors) {
    let name = &handler.ident;
    if RESERVED.iter().any(|reserved| name == reserved) {
        errors.at(name, format_args!("`{name}` is reserved; give the task another name"));
    }
}

fn named_as_role(handler: &Handler, errors: &mut Errors) {
    let (name, role) = (&handler.ident, handler.role.attribute());
    if name != role {
        errors.at(name, format_args!("the `#[{role}]` function is named `{role}`; rename `{name}`"));
    }
}

fn duplicate(app: &App, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for name in app.tasks.iter().map(|task| &task.handler.ident) {
        if !seen.insert(name) {
            errors.at(
                name,
                format_args!(
                    "there is a task `{name}` already, and `#[cfg]` does not tell them apart; rename one"
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::{format_ident, quote};

    use super::RESERVED;
    use crate::testing::{assert_one, errors, errors_of_module};

    #[test]
    fn duplicate_task() {
        let errors = errors(quote! {
            #[cfg(a)] #[task] fn t(cx: t::Context) {}
            #[cfg(not(a))] #[task] fn t(cx: t::Context) {}
        });
        assert_one(&errors, &["there is a task `t` already"]);
    }

    #[test]
    fn reserved_task_names() {
        for name in RESERVED.map(|name| format_ident!("{name}")) {
            let errors = errors(quote! { #[task] fn #name(cx: #name::Context) {} });
            assert_one(&errors, &[&format!("`{name}` is reserved")]);
        }
    }

    #[test]
    fn init_is_named_init() {
        let errors = errors_of_module(
            quote!(),
            quote! {
                #[shared] struct Shared {}
                #[local] struct Local {}
                #[init] fn setup(cx: setup::Context) -> (Shared, Local) { loop {} }
            },
        );
        assert_one(&errors, &["the `#[init]` function is named `init`", "rename `setup`"]);
    }
}
