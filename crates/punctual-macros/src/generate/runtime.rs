//! The static of the app, and one for each of its partitions.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use super::{duration, futures, levels, model, names, option, quiet, resources, size, tasks};
use crate::analyze::{Analysis, Partition, ThreadModel};
use crate::model::App;

pub(super) fn all(app: &App, analysis: &Analysis) -> TokenStream {
    let (quiet, runtime) = (quiet(), names::sole("runtime"));
    let model = model::ident();
    let base = option(app.args.priority_base.map(|base| quote!(#base)));
    let wake_latency = option(app.args.wake_latency.as_ref().map(duration));
    let stack = option(app.args.stack.as_ref().map(size));
    let (strict, trace, profile) = (app.args.strict, app.args.trace, app.args.profile);
    let report = option(app.args.report.as_ref().map(|report| quote!(#report)));
    let tasks = app.tasks.iter().map(|task| {
        let task = tasks::place(task);
        quote!(&#task)
    });
    let timers = analysis.partitions.iter().enumerate().flat_map(|(index, partition)| {
        let timed = partition
            .levels
            .iter()
            .filter(|(_, tasks)| levels::waits_of(tasks.iter().map(|&t| &app.tasks[t])) > 0);
        timed.map(move |(&level, _)| names::level("timers", index, level))
    });
    let all = names::sole("tasks");
    let reactor = option(futures::reactor_place(app, analysis).map(|_| {
        let reactor = futures::reactor();
        quote!(&#reactor)
    }));
    let ceilings = option(resources::protocol(app).map(|protocol| quote!(&#protocol)));
    let partitions = (0..analysis.partitions.len()).map(|index| names::partition("partition", index));
    let home = names::partition("partition", analysis.home);
    let statics =
        analysis.partitions.iter().enumerate().map(|(index, of)| partition(app, analysis, index, of));
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
            &[#(&#partitions),*],
            &#home,
            #all,
            #reactor,
            #ceilings,
        );
    }
}

fn partition(app: &App, analysis: &Analysis, index: usize, partition: &Partition) -> TokenStream {
    let (quiet, runtime) = (quiet(), names::sole("runtime"));
    let [statik, idle] = ["partition", "idle"].map(|what| names::partition(what, index));
    let (name, model) = (&partition.name, Ident::new(&format!("{:?}", partition.model), Span::call_site()));
    let cpu = option(partition.cpu.as_ref().map(|cpu| quote!(#cpu)));
    let stack = option(partition.stack.as_ref().map(size));
    let levels = partition.levels.keys().map(|&level| names::level("level", index, level));
    let workers = partition.levels.keys().map(|&level| names::level("worker", index, level));
    let bound = app
        .tasks
        .iter()
        .zip(&analysis.partition_of_task)
        .filter(|(task, of)| task.is_bound() && **of == index);
    let listeners = bound.map(|(task, _)| {
        let listener = names::listener(&task.handler.ident);
        quote!(&#listener)
    });
    let waiter =
        futures::reactor_place(app, analysis).filter(|&(partition, _)| partition == index).map(|_| {
            let worker = futures::reactor_worker();
            quote!(&#worker)
        });
    let calls = (partition.model == ThreadModel::Polling).then(|| names::partition("calls", index));
    let calls_static = calls.as_ref().map(
        |name| quote!(#quiet static #name: ::punctual::export::Calls = ::punctual::export::Calls::new();),
    );
    let calls = option(calls.map(|name| quote!(&#name)));
    quote! {
        #calls_static
        #quiet static #idle: ::punctual::export::Worker = ::punctual::export::Worker::new(0);
        // Levels and workers are named after their partition, and each is in its list once.
        #quiet static #statik: ::punctual::export::PartitionState = unsafe { ::punctual::export::PartitionState::new(
            ::punctual::export::PartitionConfig {
                name: #name,
                model: ::punctual::export::ThreadModel::#model,
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
