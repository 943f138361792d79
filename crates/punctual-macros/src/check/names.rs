//! The names of handlers and of other items.

use std::collections::HashSet;

use syn::{Ident, Item};

use crate::errors::{Errors, Warnings, suppresses_warnings};
use crate::model::{App, Handler};

const RESERVED: [&str; 9] =
    ["init", "idle", "shutdown", "app", "run", "main", "internal", "shared_resources", MODEL];

/// The static with the declarations of the app.
const MODEL: &str = "MODEL";

/// The prefix of generated names.
const GENERATED: &str = "__punctual";

pub(super) fn check(app: &App, errors: &mut Errors, warnings: &mut Warnings) {
    for handler in app.handlers() {
        reserved(handler, errors);
    }
    duplicate(app, errors);
    generated(app, errors);
    second_main(app, warnings);
}

/// A `main` in the module of an app does not start the program, while the generated one does.
fn second_main(app: &App, warnings: &mut Warnings) {
    for item in &app.items {
        let Item::Fn(function) = item else { continue };
        let name = &function.sig.ident;
        if name == "main" && app.generates_main() && !suppresses_warnings(&function.attrs) {
            warnings.at(
                name,
                "the program starts in the `main` that the attribute generates; to keep your own, write \
                 `#[punctual::app(main = false)]`, and move it out of the module",
            );
        }
    }
}

/// Generated items are next to the user's.
fn generated(app: &App, errors: &mut Errors) {
    for name in app.items.iter().filter(|item| is_model(item)).filter_map(item_name) {
        errors.at(name, format_args!("`{MODEL}` is the app's model; rename this item"));
    }
    let items = app.items.iter().filter_map(item_name);
    let handlers = app.handlers().map(|handler| &handler.ident);
    for name in items.chain(handlers).filter(|name| name.to_string().to_lowercase().starts_with(GENERATED)) {
        errors.at(
            name,
            format_args!(
                "names that begin with `{GENERATED}` are reserved for the framework; rename `{name}`"
            ),
        );
    }
}

/// Returns whether an item uses the name of that static.
pub(crate) fn is_model(item: &Item) -> bool {
    let is_value = matches!(item, Item::Const(_) | Item::Fn(_) | Item::Static(_) | Item::Struct(_));
    is_value && item_name(item).is_some_and(|name| name == MODEL)
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

fn is_reserved(handler: &Handler) -> bool {
    let (name, role) = (&handler.ident, handler.role.attribute());
    name != role && RESERVED.iter().any(|reserved| name == reserved)
}

fn reserved(handler: &Handler, errors: &mut Errors) {
    if is_reserved(handler) {
        let (name, role) = (&handler.ident, handler.role.attribute());
        errors.at(name, format_args!("`{name}` is reserved; give the `#[{role}]` function another name"));
    }
}

/// Each handler has a module of its name.
fn duplicate(app: &App, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for name in app.handlers().filter(|handler| !is_reserved(handler)).map(|handler| &handler.ident) {
        if !seen.insert(name) {
            errors.at(
                name,
                format_args!(
                    "a function `{name}` already exists; rename one, or give both mutually \
                     exclusive `#[cfg]`s"
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::{format_ident, quote};

    use super::RESERVED;
    use crate::testing::{assert_one, errors, errors_holding, errors_of_module, warnings};

    #[test]
    fn duplicate_task() {
        let tasks = quote! {
            #[cfg(a)] #[task] fn t(cx: t::Context) {}
            #[cfg(not(a))] #[task(priority = 2)] async fn t(cx: t::Context) {}
            #[task] fn u(cx: u::Context) {}
            #[cfg(a)] #[task] fn u(cx: u::Context) {}
        };
        let both = errors_holding(&["a"], tasks.clone());
        assert_one(&both, &["a function `u` already exists", "mutually exclusive"]);
        assert_eq!(errors_holding(&["not(a)"], tasks), [""; 0]);
    }

    #[test]
    fn reserved_task_names() {
        for name in RESERVED.map(|name| format_ident!("{name}")) {
            let errors = errors(quote! { #[task] fn #name(cx: #name::Context) {} });
            assert_one(&errors, &[&format!("`{name}` is reserved")]);
        }
    }

    #[test]
    fn items_named_like_the_model() {
        let of_module = |items| errors(quote! { #items #[task] fn t(cx: t::Context) {} });
        for item in [
            quote!(
                const MODEL: u8 = 0;
            ),
            quote!(
                static MODEL: u8 = 0;
            ),
            quote!(
                struct MODEL;
            ),
        ] {
            assert_one(&of_module(item), &["`MODEL` is the app's model"]);
        }
        assert!(
            of_module(quote!(
                mod MODEL {}
            ))
            .is_empty(),
            "modules are named apart from statics"
        );
    }

    #[test]
    fn warns_of_main_inside_the_module() {
        let warnings = warnings(quote! { fn main() {} #[task] fn t(cx: t::Context) {} });
        assert_eq!(warnings.len(), 1, "{warnings:#?}");
        assert!(warnings[0].starts_with("main: the program starts in the `main`"), "{warnings:#?}");
    }

    #[test]
    fn roles_do_not_depend_on_names() {
        let errors = errors_of_module(
            quote!(),
            quote! {
                #[shared] struct Shared {}
                #[local] struct Local {}
                #[init] fn setup(cx: setup::Context) -> (Shared, Local) { loop {} }
                #[idle] fn run(cx: run::Context) {}
                #[shutdown] fn ends(cx: ends::Context) {}
            },
        );
        assert_one(&errors, &["`run` is reserved; give the `#[idle]` function another name"]);
    }
}
