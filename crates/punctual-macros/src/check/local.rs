//! Local resources have one user each.

use std::collections::{HashMap, HashSet};

use crate::errors::Errors;
use crate::model::{App, Handler, Role};
use crate::suggest;

pub(super) fn check(app: &App, errors: &mut Errors) {
    declared_twice(app, errors);
    two_users(app, errors);
    for handler in app.handlers() {
        listed_twice(handler, errors);
        // All the locals of `init` are declared by it, and refer to no field.
        if handler.role != Role::Init {
            undeclared(app, handler, errors);
            shadowing(app, handler, errors);
        }
    }
}

fn declared_twice(app: &App, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for name in app.local.fields.iter().map(|field| &field.ident) {
        if !seen.insert(name) {
            errors.at(name, suggest::declared_twice("local", name));
        }
    }
}

fn undeclared(app: &App, handler: &Handler, errors: &mut Errors) {
    for used in handler.local_fields().filter(|used| app.local_field(&used.ident).is_none()) {
        let name = &used.ident;
        if app.absent.fields.contains(name) {
            errors.at(name, suggest::left_out(name));
            continue;
        }
        if app.resource(name).is_some() {
            let shared = &app.shared.item.ident;
            errors.at(
                name,
                format_args!(
                    "`{name}` is a shared resource, a field of `{shared}`; write `shared = [{name}]`"
                ),
            );
            continue;
        }
        let place = format!("`{}`", app.local.item.ident);
        let hint = suggest::hint(name, &place, app.local.fields.iter().map(|field| &field.ident));
        errors.at(
            name,
            format_args!(
                "no local resource is named `{name}`{hint}; to declare one in place, write \
                 `{name}: <type> = <expression>`"
            ),
        );
    }
}

fn listed_twice(handler: &Handler, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for name in handler.locals.iter().map(|local| &local.ident) {
        if !seen.insert(name) {
            errors.at(
                name,
                format_args!("`{name}` is in the `local` list of `{}` twice; remove one", handler.ident),
            );
        }
    }
}

/// `shutdown` does not count: it may take over a local of a handler that no longer runs.
fn two_users(app: &App, errors: &mut Errors) {
    let mut users = HashMap::new();
    for (_, handler) in app.concurrent() {
        for used in handler.local_fields() {
            let name = &used.ident;
            let user = users.entry(name).or_insert(&handler.ident);
            if *user != &handler.ident {
                errors.at(
                    name,
                    format_args!(
                        "`{name}` is local to `{user}`; to use it in `{}` too, make it a shared resource",
                        handler.ident
                    ),
                );
            }
        }
    }
}

fn shadowing(app: &App, handler: &Handler, errors: &mut Errors) {
    for local in handler.locals.iter().filter(|local| !local.is_field()) {
        let name = &local.ident;
        if app.local_field(name).is_some() {
            let place = &app.local.item.ident;
            errors.at(name, format_args!("`{name}` is also a field of `{place}`; rename one"));
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use crate::testing::{assert_one, errors, errors_holding};

    #[test]
    fn undeclared_local() {
        let errors = errors(quote! {
            #[local] struct Local { sensor: u8 }
            #[task(local = [senser])] fn t(cx: t::Context) {}
        });
        assert_one(
            &errors,
            &["no local resource is named `senser`; did you mean `sensor`?", "write `senser: <type>"],
        );
    }

    #[test]
    fn shared_resource_in_local_list() {
        let errors = errors(quote! {
            #[shared] struct Shared { total: u8 }
            #[task(local = [total])] fn t(cx: t::Context) {}
        });
        assert_one(&errors, &["`total` is a shared resource, a field of `Shared`; write `shared = [total]`"]);
    }

    #[test]
    fn local_of_two_tasks() {
        let errors = errors(quote! {
            #[local] struct Local { a: u8, b: u8 }
            #[idle(local = [b])] fn idle(cx: idle::Context) {}
            #[task(local = [a, b])] fn t(cx: t::Context) {}
            #[task(local = [a])] fn u(cx: u::Context) {}
        });
        assert_eq!(errors.len(), 2, "{errors:#?}");
        assert!(errors[0].contains("`b` is local to `idle`; to use it in `t` too"));
        assert!(errors[1].contains("`a` is local to `t`; to use it in `u` too"));
    }

    #[test]
    fn tasks_with_exclusive_conditions_may_share_local() {
        let items = quote! {
            #[local] struct Local { a: u8 }
            #[cfg(x)] #[task(local = [a])] fn t(cx: t::Context) {}
            #[cfg(not(x))] #[cfg_attr(not(x), task(local = [a]))] fn u(cx: u::Context) {}
        };
        for predicates in [&["x"], &["not(x)"]] {
            assert_eq!(errors_holding(predicates, items.clone()), [""; 0]);
        }
        assert_one(&errors_holding(&["x", "not(x)"], items), &["`a` is local to `t`"]);
    }

    #[test]
    fn shutdown_may_use_local_of_task() {
        let errors = errors(quote! {
            #[local] struct Local { a: u8 }
            #[task(local = [a])] fn t(cx: t::Context) {}
            #[shutdown(local = [a])] fn shutdown(cx: shutdown::Context) {}
        });
        assert!(errors.is_empty(), "{errors:#?}");
    }

    #[test]
    fn tasks_may_declare_locals_of_same_name() {
        let errors = errors(quote! {
            #[task(local = [a: u8 = 0])] fn t(cx: t::Context) {}
            #[task(local = [a: u8 = 0])] fn u(cx: u::Context) {}
        });
        assert!(errors.is_empty(), "{errors:#?}");
    }
}
