//! The mangled names of what is generated.

use proc_macro2::{Ident, Span};
use quote::format_ident;

/// `__punctual_<what>_<name>`, pointing at `name` in errors.
pub(super) fn of(what: &str, name: &Ident) -> Ident {
    format_ident!("__punctual_{}_{}", what, name, span = name.span())
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
    format_ident!("__punctual_local_{}_{}", handler, local, span = local.span())
}

/// The type that stands for a task.
pub(super) fn body(task: &Ident) -> Ident {
    of("body", task)
}

/// The static of a task.
pub(super) fn task(task: &Ident) -> Ident {
    of("task", task)
}

/// The static of a periodic task's grid.
pub(super) fn grid(task: &Ident) -> Ident {
    of("grid", task)
}

/// The worker that waits for a bound task's event source.
pub(super) fn listener(task: &Ident) -> Ident {
    of("listener", task)
}

/// Something of a level.
pub(super) fn level(what: &str, level: u8) -> Ident {
    format_ident!("__punctual_{}_{}", what, level)
}

/// Something there is one of.
pub(super) fn sole(what: &str) -> Ident {
    Ident::new(&format!("__punctual_{what}"), Span::call_site())
}
