//! The names of generated items, none of which can clash with a user's name.
//!
//! Items, type parameters and lifetimes have mangled names, with a prefix that user names may not
//! have. Local variables are mangled as well, and also hygienic: user expressions do not see them.
//! Everything else in generated code is named by its path from `::core`, `::std` or `::punctual`,
//! including primitive types (`::core::primitive::u8`) and methods (`Resource::get(..)`): a type
//! `u8`, or a trait with a `get` for all types, may be in scope.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote_spanned};
use syn::Lifetime;
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use crate::model::{Arg, Handler};

/// `__punctual_<what>_<name>`, pointing at `name` in errors.
///
/// `what` loses its underscores, because the `spawn` of `after_x` is not the `spawn_after` of `x`.
pub(super) fn of(what: &str, name: &Ident) -> Ident {
    format_ident!("__punctual_{}_{}", what.replace('_', ""), name, span = at(name.span()))
}

/// Returns a local variable or parameter of generated code.
pub(super) fn var(what: &str) -> Ident {
    Ident::new(&format!("__punctual_{what}"), Span::mixed_site())
}

/// Returns an item that the user can name in the module of `handler`, pointing at `handler` in
/// errors.
pub(super) fn export(what: &str, handler: &Ident) -> Ident {
    Ident::new(what, at(handler.span()))
}

/// Returns the path of an [`export`].
pub(super) fn exported(what: &str, handler: &Ident) -> TokenStream {
    let (module, export) = (own(handler), export(what, handler));
    quote_spanned!(module.span()=> self::#module::#export)
}

/// Returns the lifetime of a job. Errors show it.
pub(super) fn lifetime() -> Lifetime {
    Lifetime::new("'_job", Span::call_site())
}

/// Returns the field that binds a handler's context, or its resources, to the job. Errors list it
/// among the fields.
pub(super) fn job(handler: &Handler) -> Ident {
    let mut job = Ident::new("_job", Span::call_site());
    let shared = handler.shared.iter().map(|used| &used.ident);
    let names: Vec<&Ident> = shared.chain(handler.locals.iter().map(|local| &local.ident)).collect();
    while names.contains(&&job) {
        job = format_ident!("{}_", job);
    }
    job
}

/// [`var`] for code that user errors refer to, which should point at `span`.
pub(super) fn var_at(what: &str, span: Span) -> Ident {
    let mut var = var(what);
    var.set_span(var.span().located_at(span));
    var
}

/// Returns the function of a handler, which a local variable of the same name does not hide.
pub(super) fn function(handler: &Ident) -> TokenStream {
    let own = own(handler);
    quote_spanned!(own.span()=> self::#own)
}

/// Returns the parameters of a generated function, with the user's names.
///
/// If a `macro_rules!` made the user's function, two of them may look the same.
pub(super) fn params(args: &[Arg]) -> Vec<Ident> {
    let mut params = Vec::<Ident>::new();
    for Arg { ident, .. } in args {
        let mut param = own(ident);
        while params.contains(&param) {
            param = format_ident!("{}_", param);
        }
        params.push(param);
    }
    params
}

/// Returns the user's name for one of our items.
///
/// Generated code has the edition of this crate, in which `gen` is a keyword.
pub(super) fn own(name: &Ident) -> Ident {
    if name == "gen" {
        return Ident::new_raw("gen", at(name.span()));
    }
    let mut own = name.clone();
    own.set_span(at(name.span()));
    own
}

/// Returns a name without the `r#` of a raw identifier.
pub(super) fn plain(name: &Ident) -> String {
    name.unraw().to_string()
}

/// Returns a location in the user's code for generated code: the user's lints are not applied to
/// it.
pub(super) fn at(span: Span) -> Span {
    span.resolved_at(Span::call_site())
}

/// The static of a shared resource.
pub(super) fn shared(resource: &Ident) -> Ident {
    of("shared", resource)
}

/// The static of a field of the `#[local]` struct.
pub(super) fn field(local: &Ident) -> Ident {
    of("field", local)
}

/// The static of a local declared by `handler`.
pub(super) fn declared(handler: &Ident, local: &Ident) -> Ident {
    of_declared("local", handler, local)
}

/// The function that makes the initial value of a local declared by `handler`.
pub(super) fn initial(handler: &Ident, local: &Ident) -> Ident {
    of_declared("initial", handler, local)
}

/// The length distinguishes the `c` of `a_b` from the `b_c` of `a`.
fn of_declared(what: &str, handler: &Ident, local: &Ident) -> Ident {
    let length = plain(handler).len();
    format_ident!("__punctual_{}{}_{}_{}", what, length, handler, local, span = at(local.span()))
}

/// The type that stands for a task.
pub(super) fn body(task: &Ident) -> Ident {
    of("body", task)
}

/// The static of a task.
pub(super) fn task(task: &Ident) -> Ident {
    of("task", task)
}

/// The type of a shared resource, which the user's own may not name in the module of a handler.
pub(super) fn shared_type(resource: &Ident) -> Ident {
    of("SharedType", resource)
}

/// The type of a field of the `#[local]` struct.
pub(super) fn field_type(local: &Ident) -> Ident {
    of("FieldType", local)
}

/// The type of a local declared by `handler`.
pub(super) fn declared_type(handler: &Ident, local: &Ident) -> Ident {
    of_declared("type", handler, local)
}

/// The types of a handler's arguments.
pub(super) fn arg_types(handler: &Handler) -> Vec<Ident> {
    let name = |(index, arg): (usize, &Arg)| {
        format_ident!("__punctual_arg{}_{}", index, handler.ident, span = at(arg.ty.span()))
    };
    handler.args.iter().enumerate().map(name).collect()
}

/// The static of a periodic task's grid.
pub(super) fn grid(task: &Ident) -> Ident {
    of("grid", task)
}

/// The static of a periodic task's external clock.
pub(super) fn discipline(task: &Ident) -> Ident {
    of("discipline", task)
}

/// The worker that waits for a bound task's event source.
pub(super) fn listener(task: &Ident) -> Ident {
    of("listener", task)
}

/// An item of a level of a partition.
pub(super) fn level(what: &str, partition: usize, level: u8) -> Ident {
    format_ident!("__punctual_{}_{}_{}", what, partition, level)
}

/// An item of a partition.
pub(super) fn partition(what: &str, partition: usize) -> Ident {
    format_ident!("__punctual_{}_{}", what, partition)
}

/// The lock of a group of resources.
pub(super) fn group(group: usize) -> Ident {
    format_ident!("__punctual_group_{}", group)
}

/// The lock of a resource under the priority ceiling protocol.
pub(super) fn ceiling(resource: &Ident) -> Ident {
    of("ceiling", resource)
}

/// An item that exists once.
pub(super) fn sole(what: &str) -> Ident {
    Ident::new(&format!("__punctual_{what}"), Span::call_site())
}

#[cfg(test)]
mod tests {
    use quote::format_ident;

    use super::*;

    #[test]
    fn similar_names_stay_distinct() {
        let [a, a_b, b_c, c] = ["a", "a_b", "b_c", "c"].map(|name| format_ident!("{name}"));
        assert_ne!(declared(&a, &b_c), declared(&a_b, &c));
        assert_ne!(initial(&a, &b_c), declared(&a, &b_c));
        assert_ne!(of("spawn_after", &a), of("spawn", &format_ident!("after_a")));
    }

    #[test]
    fn raw_identifiers_lose_their_mark() {
        let raw = Ident::new_raw("match", Span::call_site());
        assert_eq!(plain(&raw), "match");
        assert_eq!(task(&raw), "__punctual_task_match");
        assert_eq!(declared(&raw, &raw), "__punctual_local5_match_match");
    }
}
