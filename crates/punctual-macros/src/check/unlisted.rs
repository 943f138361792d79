//! Resources that no handler lists.
//!
//! The compiler warns of fields that are never read, but not of these, because generated code reads
//! every field.

use std::collections::HashSet;

use syn::ext::IdentExt;
use syn::{Ident, ItemStruct};

use crate::errors::{Warnings, suppresses_warnings};
use crate::model::{App, Handler};

pub(super) fn check(app: &App, warnings: &mut Warnings) {
    if suppresses_warnings(&app.module.attrs) {
        return;
    }
    // A resource of a handler that a condition removes is not forgotten.
    let absent = app.absent.tasks.iter().map(|task| &task.handler).chain(&app.absent.handlers);
    let handlers: Vec<&Handler> = app.handlers().chain(absent).collect();
    let shared = handlers.iter().flat_map(|handler| &handler.shared).map(|used| &used.ident);
    unlisted(&app.shared.item, "shared", &shared.collect(), warnings);
    let local = handlers.iter().flat_map(|handler| handler.local_fields()).map(|used| &used.ident);
    unlisted(&app.local.item, "local", &local.collect(), warnings);
}

fn unlisted(item: &ItemStruct, list: &str, listed: &HashSet<&Ident>, warnings: &mut Warnings) {
    if suppresses_warnings(&item.attrs) {
        return;
    }
    for field in item.fields.iter().filter(|field| !suppresses_warnings(&field.attrs)) {
        let Some(name) = field.ident.as_ref().filter(|name| !listed.contains(name)) else { continue };
        let plain = name.unraw().to_string();
        if !plain.starts_with('_') {
            warnings.at(
                name,
                format_args!(
                    "no handler lists the {list} resource `{plain}`; add it to `{list} = [..]` of its users, remove \
                     it, or rename it to `_{plain}`"
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use crate::testing::{warnings, warnings_with_attrs};

    #[test]
    fn warns_of_resources_without_users() {
        let warnings = warnings(quote! {
            #[shared] struct Shared { used: u8, unused: u8 }
            #[local] struct Local { own: u8, r#gen: u8 }
            #[task(shared = [used], local = [declared: u8 = 0])] fn t(cx: t::Context) {}
            #[shutdown(local = [own])] fn shutdown(cx: shutdown::Context) {}
        });
        let of = |list, name| {
            format!(
                "{name}: no handler lists the {list} resource `{name}`; add it to `{list} = [..]` of its users, \
                 remove it, or rename it to `_{name}`"
            )
        };
        assert_eq!(warnings, [of("shared", "unused"), of("local", "gen").replacen("gen", "r#gen", 1)]);
    }

    #[test]
    fn allowed_resources_need_no_user() {
        let items = quote! {
            #[shared] struct Shared { _thread: u8, #[allow(dead_code, reason = "later")] a: u8 }
            #[allow(unused)] #[local] struct Local { b: u8 }
        };
        assert_eq!(warnings(items), [""; 0]);
        let items = || quote! { #[shared] struct Shared { a: u8 } };
        assert_eq!(warnings_with_attrs(quote!(#[allow(deprecated)]), items()), [""; 0]);
        assert_eq!(warnings_with_attrs(quote!(#[allow(non_snake_case)]), items()).len(), 1);
    }

    #[test]
    fn resources_of_absent_handlers_have_users() {
        let items = quote! {
            #[shared] struct Shared { a: u8, b: u8 }
            #[local] struct Local { c: u8 }
            #[cfg(absent)] #[task(shared = [a])] fn t(cx: t::Context) {}
            #[cfg(absent)] #[idle(shared = [b])] fn idle(cx: idle::Context) {}
            #[cfg(absent)] #[shutdown(local = [c])] fn shutdown(cx: shutdown::Context) {}
        };
        assert_eq!(warnings(items), [""; 0]);
    }
}
