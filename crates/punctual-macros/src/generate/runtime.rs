//! The static that is the app.

use proc_macro2::TokenStream;
use quote::quote;

use crate::analyse::Analysis;
use crate::model::{App, TaskKind};

use super::{levels, names, option, quiet, reactor, tasks};

pub(super) fn all(app: &App, analysis: &Analysis) -> TokenStream {
    let (quiet, runtime, idle) = (quiet(), names::sole("runtime"), names::sole("idle"));
    let name = names::plain(&app.module.ident);
    let cpu = option(app.args.cpu.as_ref().map(|cpu| quote!(#cpu)));
    let base = option(app.args.priority_base.map(|base| quote!(#base)));
    let strict = app.args.strict;
    let levels = analysis.levels.keys().map(|&level| names::level("level", level));
    let workers = analysis.levels.keys().map(|&level| names::level("worker", level));
    let listeners = app.tasks.iter().filter(|task| matches!(task.kind, TaskKind::Bound { .. })).map(|task| {
        let (cfgs, listener) = (&task.handler.cfgs, names::listener(&task.handler.ident));
        quote!(#(#cfgs)* &#listener)
    });
    let tasks = app.tasks.iter().map(|task| {
        let (cfgs, task) = (&task.handler.cfgs, tasks::place(task));
        quote!(#(#cfgs)* &#task)
    });
    let timers = analysis.levels.iter().filter_map(|(&level, tasks)| {
        let timers = levels::timers_of(tasks.iter().map(|&task| &app.tasks[task]));
        (timers > 0).then(|| names::level("timers", level))
    });
    let all = names::sole("tasks");
    let (waiter, reactor) = match reactor::level(app) {
        Some(_) => (Some(reactor::worker()), Some(reactor::name())),
        None => (None, None),
    };
    let reactor = option(reactor.map(|reactor| quote!(&#reactor)));
    let waiter = waiter.map(|waiter| quote!(&#waiter));
    quote! {
        #quiet static #all: &[&dyn ::punctual::export::Registered] = &[#(#tasks,)* #(&#timers),*];
        #quiet static #idle: ::punctual::export::Worker = ::punctual::export::Worker::new(0);
        #quiet static #runtime: ::punctual::export::Runtime = ::punctual::export::Runtime::new(
            #name,
            ::punctual::export::Options { cpu: #cpu, priority_base: #base, strict: #strict },
            &[#(&#levels),*],
            &[&#idle, #(&#workers,)* #(#listeners,)* #waiter],
            &#idle,
            #all,
            #reactor,
        );
    }
}
