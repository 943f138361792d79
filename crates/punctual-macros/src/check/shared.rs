//! Shared resources are declared once, and listed at most once by a handler.

use std::collections::HashSet;

use crate::errors::Errors;
use crate::model::{App, Handler};
use crate::suggest;

pub(super) fn check(app: &App, errors: &mut Errors) {
    declared_twice(app, errors);
    for handler in app.handlers() {
        undeclared(app, handler, errors);
        listed_twice(handler, errors);
    }
}

fn declared_twice(app: &App, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for name in app.shared.resources.iter().map(|resource| &resource.ident) {
        if !seen.insert(name) {
            errors.at(name, suggest::declared_twice("shared", name));
        }
    }
}

fn undeclared(app: &App, handler: &Handler, errors: &mut Errors) {
    for used in handler.shared.iter().filter(|used| app.resource(&used.ident).is_none()) {
        let name = &used.ident;
        if app.absent.fields.contains(name) {
            errors.at(name, suggest::left_out(name));
            continue;
        }
        if app.local_field(name).is_some() {
            let (local, shared) = (&app.local.item.ident, &app.shared.item.ident);
            errors.at(
                name,
                format_args!(
                    "`{name}` is a local resource, a field of `{local}`; write `local = [{name}]`, or move it to `{shared}`"
                ),
            );
            continue;
        }
        let place = format!("`{}`", app.shared.item.ident);
        let names = app.shared.resources.iter().map(|resource| &resource.ident);
        let hint = suggest::hint(name, &place, names);
        errors.at(name, format_args!("no shared resource is named `{name}`{hint}"));
    }
}

fn listed_twice(handler: &Handler, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for used in &handler.shared {
        let name = &used.ident;
        if !seen.insert(name) {
            let message =
                format!("`{name}` is in the `shared` list of `{}` twice; remove one", handler.ident);
            errors.at(used, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use crate::testing::{assert_one, errors, errors_holding};

    #[test]
    fn undeclared_shared_resource() {
        let errors = errors(quote! {
            #[shared] struct Shared { count: u32 }
            #[task(shared = [cuont])] fn t(cx: t::Context) {}
        });
        assert_one(
            &errors,
            &["no shared resource is named `cuont`; did you mean `count`? `Shared` declares `count`"],
        );
    }

    #[test]
    fn local_resource_in_shared_list() {
        let errors = errors(quote! {
            #[local] struct Local { sensor: u8 }
            #[task(shared = [sensor])] fn t(cx: t::Context) {}
        });
        assert_one(&errors, &["`sensor` is a local resource", "`local = [sensor]`, or move it to `Shared`"]);
    }

    #[test]
    fn undeclared_shared_resource_of_idle_and_shutdown() {
        let errors = errors(quote! {
            #[idle(shared = [a])] fn idle(cx: idle::Context) {}
            #[shutdown(shared = [&a])] fn shutdown(cx: shutdown::Context) {}
        });
        assert_eq!(errors, ["no shared resource is named `a`; `Shared` declares none"; 2]);
    }

    #[test]
    fn shared_resource_declared_twice() {
        let items = quote! { #[shared] struct Shared { a: u8, #[cfg(b)] a: u16 } };
        assert_one(&errors_holding(&["b"], items.clone()), &["the shared resource `a` is declared twice"]);
        assert_eq!(errors(items), [""; 0]);
    }
}
