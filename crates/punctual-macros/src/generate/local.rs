//! The spawners of local tasks, one for each level that has some.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::analyse::Analysis;
use crate::model::{App, Task};

use super::{names, quiet, tasks};

pub(super) fn spawners(app: &App, analysis: &Analysis) -> TokenStream {
    let partitions = analysis.partitions.iter().enumerate();
    let levels = partitions
        .flat_map(|(partition, of)| of.levels.iter().map(move |(&level, tasks)| (partition, level, tasks)));
    let local = levels.filter(|&(partition, level, _)| analysis.is_local(app, partition, level));
    local.map(|(partition, level, tasks)| one(app, partition, level, tasks)).collect()
}

/// The type of a level's spawner.
pub(super) fn spawner(partition: usize, level: u8) -> Ident {
    names::level("localspawner", partition, level)
}

fn one(app: &App, partition: usize, level: u8, tasks: &[usize]) -> TokenStream {
    let (quiet, spawner, life) = (quiet(), spawner(partition, level), names::lifetime());
    let methods = tasks.iter().map(|&task| &app.tasks[task]).filter(|task| task.is_local()).map(method);
    quote! {
        /// Starts the local tasks of a level. For its tasks, on the thread that runs them.
        #quiet
        #[derive(::core::clone::Clone, ::core::marker::Copy)]
        // Bound to the job and to its thread.
        pub struct #spawner<#life>(::core::marker::PhantomData<(&#life (), *mut ())>);

        #quiet
        impl #spawner<'_> {
            #(#methods)*
        }
    }
}

fn method(task: &Task) -> TokenStream {
    let (handler, place) = (&task.handler, tasks::place(task));
    let (method, args) = (names::own(&handler.ident), tasks::args_type(handler));
    let (types, names) = (handler.args.iter().map(|arg| &arg.ty), names::params(&handler.args));
    let value = tasks::tuple(&names);
    quote! {
        /// Starts the task. It is polled when its turn comes, after the job that starts it.
        ///
        /// # Errors
        /// `SpawnError` if the task has not completed yet.
        #[inline]
        pub fn #method(&self, #(#names: #types),*) -> ::core::result::Result<(), ::punctual::SpawnError<#args>> {
            ::punctual::export::AsyncTask::spawn_local(&#place, #value)
        }
    }
}

/// A stub for the `spawn` that a local task does not have: its error names the alternative.
pub(super) fn no_spawn(task: &Task) -> TokenStream {
    let (handler, quiet) = (&task.handler, quiet());
    let args = tasks::args_type(handler);
    let (spawn, life) = (names::of("spawn", &handler.ident), names::lifetime());
    let (types, names) = (handler.args.iter().map(|arg| &arg.ty), names::params(&handler.args));
    quote! {
        // Nothing is spawned like that. The lifetime keeps the compiler from noticing before somebody calls this.
        #quiet
        pub fn #spawn(#(#names: #types),*) -> ::core::result::Result<(), ::punctual::SpawnError<#args>>
        where
            for<#life> &#life (): ::punctual::export::SpawnedAnywhere,
        {
            ::core::unreachable!()
        }
    }
}
