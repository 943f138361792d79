//! The static that is the app, and one for each of its parts.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use crate::analyse::{Analysis, Part, Style};
use crate::model::App;

use super::{duration, levels, locks, model, names, option, quiet, reactor, size, tasks};

pub(super) fn all(app: &App, analysis: &Analysis) -> TokenStream {
    let (quiet, runtime) = (quiet(), names::sole("runtime"));
    let model = model::ident();
    let base = option(app.args.priority_base.map(|base| quote!(#base)));
    let wake_latency = option(app.args.wake_latency.as_ref().map(duration));
    let stack = option(app.args.stack.as_ref().map(size));
    let (strict, trace, profile) = (app.args.strict, app.args.trace, app.args.profile);
    let report = option(app.args.report.as_ref().map(|report| quote!(#report)));
    let tasks = app.tasks.iter().map(|task| {
        let (cfgs, task) = (&task.handler.cfgs, tasks::place(task));
        quote!(#(#cfgs)* &#task)
    });
    let timers = analysis.parts.iter().enumerate().flat_map(|(index, part)| {
        let timed = part
            .levels
            .iter()
            .filter(|(_, tasks)| levels::timers_of(tasks.iter().map(|&t| &app.tasks[t])) > 0);
        timed.map(move |(&level, _)| names::level("timers", index, level))
    });
    let all = names::sole("tasks");
    let reactor = option(analysis.reactor(app).map(|_| {
        let reactor = reactor::name();
        quote!(&#reactor)
    }));
    let ceilings = option(locks::protocol(app).map(|protocol| quote!(&#protocol)));
    let parts = (0..analysis.parts.len()).map(|index| names::part("part", index));
    let home = names::part("part", analysis.home);
    let statics = analysis.parts.iter().enumerate().map(|(index, of)| part(app, analysis, index, of));
    quote! {
        #quiet static #all: &[&dyn ::punctual::export::Registered] = &[#(#tasks,)* #(&#timers),*];
        #(#statics)*
        #quiet static #runtime: ::punctual::export::Runtime = ::punctual::export::Runtime::new(
            &#model,
            ::punctual::export::Options {
                priority_base: #base,
                stack: #stack,
                wake_latency: #wake_latency,
                strict: #strict,
                trace: #trace,
                report: #report,
                profile: #profile,
            },
            &[#(&#parts),*],
            &#home,
            #all,
            #reactor,
            #ceilings,
        );
    }
}

fn part(app: &App, analysis: &Analysis, index: usize, part: &Part) -> TokenStream {
    let (quiet, runtime) = (quiet(), names::sole("runtime"));
    let [statik, idle] = ["part", "idle"].map(|what| names::part(what, index));
    let (name, style) = (&part.name, Ident::new(&format!("{:?}", part.style), Span::call_site()));
    let cpu = option(part.cpu.as_ref().map(|cpu| quote!(#cpu)));
    let stack = option(part.stack.as_ref().map(size));
    let levels = part.levels.keys().map(|&level| names::level("level", index, level));
    let workers = part.levels.keys().map(|&level| names::level("worker", index, level));
    let bound =
        app.tasks.iter().zip(&analysis.part_of_task).filter(|(task, of)| task.is_bound() && **of == index);
    let listeners = bound.map(|(task, _)| {
        let (cfgs, listener) = (&task.handler.cfgs, names::listener(&task.handler.ident));
        quote!(#(#cfgs)* &#listener)
    });
    let waiter = analysis.reactor(app).filter(|&(part, _)| part == index).map(|_| {
        let worker = reactor::worker();
        quote!(&#worker)
    });
    let calls = (part.style == Style::Polling).then(|| names::part("calls", index));
    let calls_static = calls.as_ref().map(
        |name| quote!(#quiet static #name: ::punctual::export::Calls = ::punctual::export::Calls::new();),
    );
    let calls = option(calls.map(|name| quote!(&#name)));
    quote! {
        #calls_static
        #quiet static #idle: ::punctual::export::Worker = ::punctual::export::Worker::new(0);
        // Levels and workers are named after their part, and each is in its list once.
        #quiet static #statik: ::punctual::export::PartitionState = unsafe { ::punctual::export::PartitionState::new(
            ::punctual::export::PartitionConfig {
                name: #name,
                model: ::punctual::export::ThreadModel::#style,
                cpu: #cpu,
                stack: #stack,
            },
            &#runtime,
            &[#(&#levels),*],
            &[&#idle, #(&#workers,)* #(#listeners,)* #waiter],
            &#idle,
            #calls,
        ) };
    }
}
