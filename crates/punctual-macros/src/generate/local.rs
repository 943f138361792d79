//! The spawners of local tasks, one for each level that has some.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::analyze::Analysis;
use crate::model::{App, Handler, Task};

use super::{names, parameters, quiet, tasks};

/// Returns the module with the spawner of a level: that of its first task.
pub(super) fn home(app: &App, analysis: &Analysis, partition: usize, level: u8) -> Ident {
    let tasks = &analysis.partitions[partition].levels[&level];
    names::own(&app.tasks[tasks[0]].handler.ident)
}

/// Returns `LocalSpawner` of a level, for the module of `handler`, one of its tasks.
pub(super) fn spawner(
    app: &App,
    analysis: &Analysis,
    partition: usize,
    level: u8,
    handler: &Handler,
) -> TokenStream {
    let home = home(app, analysis, partition, level);
    if home != handler.ident {
        return quote!(pub use super::#home::LocalSpawner;);
    }
    let life = names::lifetime();
    let tasks = analysis.partitions[partition].levels[&level].iter().map(|&task| &app.tasks[task]);
    let methods = tasks.filter(|task| task.is_local()).map(method);
    let quiet = quiet();
    quote! {
        /// Starts the local tasks of a level. For its tasks, on the thread that runs them.
        #quiet
        #[derive(::core::clone::Clone, ::core::marker::Copy)]
        #[allow(clippy::field_scoped_visibility_modifiers)]
        // Bound to the job and to its thread.
        pub struct LocalSpawner<#life>(pub(super) ::core::marker::PhantomData<(&#life (), *mut ())>);

        #quiet
        impl LocalSpawner<'_> {
            #(#methods)*
        }
    }
}

fn method(task: &Task) -> TokenStream {
    let (handler, place) = (&task.handler, tasks::place(task));
    let parameters = parameters::parameters(handler);
    let method = names::own(&handler.ident);
    let body = parameters
        .pass(|message| quote!(::punctual::export::AsyncTask::spawn_local(&super::#place, #message)));
    let (params, args) = (parameters.passed(), parameters.args);
    quote! {
        /// Starts the task. It is polled in its turn, after the job that starts it.
        ///
        /// # Errors
        /// Returns `SpawnError` if the task has not completed yet.
        #[inline]
        pub fn #method(&self, #params) -> ::core::result::Result<(), ::punctual::SpawnError<#args>> {
            #body
        }
    }
}
