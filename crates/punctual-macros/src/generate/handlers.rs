//! `mod foo` for every handler `foo`: what the user can name of it.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::analyse::Analysis;
use crate::model::{App, Handler, Role, Task, TaskKind};

use super::{local, names, quiet};

pub(super) fn modules(app: &App, analysis: &Analysis) -> TokenStream {
    app.handlers().map(|handler| module(app, analysis, handler)).collect()
}

fn module(app: &App, analysis: &Analysis, handler: &Handler) -> TokenStream {
    let ident = &handler.ident;
    let mut exports = vec!["Context"];
    if !handler.shared.is_empty() {
        exports.push("SharedResources");
    }
    if !handler.locals.is_empty() {
        exports.push("LocalResources");
    }
    let task = app.task(handler);
    match task.map(|task| &task.kind) {
        Some(TaskKind::Message) => {
            exports.push("spawn");
            exports.extend(handler.args.is_empty().then_some("pend"));
        }
        Some(TaskKind::Async) => exports.push("spawn"),
        Some(TaskKind::Bound { .. }) => exports.push("pend"),
        Some(TaskKind::Periodic { .. }) | None => {}
    }
    if task.is_some_and(Task::is_timed) {
        exports.extend(["SpawnHandle", "spawn_after", "spawn_at"]);
    }
    let exports = exports.into_iter().map(|export| {
        let (mangled, export) = (names::of(export, ident), format_ident!("{}", export));
        quote!(pub use super::#mangled as #export;)
    });
    let spawner = analysis.local_level(app, handler).map(|(partition, level)| {
        let spawner = local::spawner(partition, level);
        quote!(pub use super::#spawner as LocalSpawner;)
    });
    let name = names::plain(ident);
    let doc = match handler.role {
        Role::Task => format!("The task `{name}`: its context and how to release it."),
        _ => format!("The context of `{name}`."),
    };
    let (quiet, module) = (quiet(), names::own(ident));
    quote! {
        #quiet
        #[doc = #doc]
        pub mod #module {
            #(#exports)*
            #spawner
        }
    }
}
