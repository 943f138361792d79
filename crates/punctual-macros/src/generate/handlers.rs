//! Generates `mod foo` for every handler `foo`: the items that the user can name.

use proc_macro2::TokenStream;
use quote::quote;

use crate::analyse::Analysis;
use crate::model::{App, Handler, Role};

use super::{contexts, local, names, quiet, tasks};

pub(super) fn modules(app: &App, analysis: &Analysis) -> TokenStream {
    app.handlers().map(|handler| module(app, analysis, handler)).collect()
}

fn module(app: &App, analysis: &Analysis, handler: &Handler) -> TokenStream {
    let ident = &handler.ident;
    let types = contexts::types(app, analysis, handler);
    let release =
        app.task(handler).map_or_else(|| tasks::refused(&["spawn"], "SpawnsHandler"), tasks::release);
    let spawner = analysis
        .local_level(app, handler)
        .map(|(partition, level)| local::spawner(app, analysis, partition, level, handler));
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
            #types
            #release
            #spawner
        }
    }
}
