//! The levels: a worker, the nodes of the tasks' slots, and the function that runs a node's job.

use proc_macro2::TokenStream;
use quote::quote;

use crate::analyze::Analysis;
use crate::model::{App, Task, TaskKind};

use super::{names, quiet, tasks};

pub(super) fn all(app: &App, analysis: &Analysis) -> TokenStream {
    let levels = analysis
        .partitions
        .iter()
        .enumerate()
        .flat_map(|(partition, of)| of.levels.iter().map(move |level| (partition, level)));
    levels.map(|(partition, (&level, tasks))| one(app, analysis, partition, level, tasks)).collect()
}

fn one(app: &App, analysis: &Analysis, partition: usize, level: u8, tasks: &[usize]) -> TokenStream {
    let quiet = quiet();
    let [worker, queue, nodes, statik, run] =
        ["worker", "queue", "nodes", "level", "run"].map(|what| names::level(what, partition, level));
    let [me, job, now, table_name, filled] = ["me", "job", "now", "table", "filled"].map(names::var);
    let own: usize = tasks.iter().map(|&task| nodes_of(&app.tasks[task])).sum();
    let each = || tasks.iter().map(|&task| &app.tasks[task]);
    // One that has expired is in use until its job has run. They follow the nodes of the tasks.
    let timers = 2 * waits_of(each());
    let count = own + timers;
    let entry = |base: usize, nodes: usize, body: TokenStream| {
        let function = quote! {
            unsafe fn #run(
                #me: ::punctual::export::CurrentWorker,
                #job: ::punctual::export::Popped,
                #now: ::punctual::export::PackedStamp,
            ) -> ::punctual::export::PackedStamp {
                #body
            }
        };
        quote! {
            {
                #function
                #filled = ::punctual::export::fill(#filled, #base, #nodes, #run);
            }
        }
    };
    let (waking, timers) = match timers {
        0 => (None, None),
        _ => {
            let (name, words) = (names::level("timers", partition, level), timers.div_ceil(64));
            let (partition, base) = (names::partition("partition", partition), own as u32);
            let waking = entry(
                own,
                timers,
                quote! {
                    let _ = #me;
                    // The executor has popped the job and occupies the level.
                    unsafe { ::punctual::export::Timers::run(&#name, #job) };
                    #now
                },
            );
            let timers = quote! {
                // After the nodes of the tasks, so they belong only to these timers.
                #quiet static #name: ::punctual::export::Timers<#timers, #words> =
                    unsafe { ::punctual::export::Timers::new(&#partition, &#statik, #base) };
            };
            (Some(waking), Some(timers))
        }
    };
    let periodic = each().filter(|task| matches!(task.kind, TaskKind::Periodic { .. })).map(|task| {
        let grid = names::grid(&task.handler.ident);
        quote!(&#grid)
    });
    let entries = tasks.iter().map(|&index| {
        let task = &app.tasks[index];
        let (ty, place) = (tasks::kind(task), tasks::place(task));
        // The executor has popped the job and occupies the level.
        let body = quote!(unsafe { #ty::run(&#place, #me, #job, #now) });
        entry(base(app, analysis, index) as usize, nodes_of(task), body)
    });
    let table = quote! {
        // By node and not by task, so that the cost does not depend on the number of tasks.
        #quiet const #table_name: [::punctual::export::Run; #count] = {
            let mut #filled = [::punctual::export::without_task as ::punctual::export::Run; #count];
            #(#entries)*
            #waking
            #filled
        };
    };
    let mut level_value = quote! {
        {
            #table
            ::punctual::export::Level::new(
                #level, &#worker, &#queue, &#nodes, &[#(#periodic),*],
                // Each function runs the jobs of the nodes at its indices.
                unsafe { ::punctual::export::Jobs::by_node(&#table_name) }
            )
        }
    };
    if analysis.is_local(app, partition, level) {
        level_value = quote!(::punctual::export::Level::local(#level_value));
    }
    quote! {
        #timers
        #quiet static #worker: ::punctual::export::Worker = ::punctual::export::Worker::new(#level);
        #quiet static #queue: ::punctual::export::Queue = ::punctual::export::Queue::new();
        #quiet static #nodes: [::punctual::export::Node; #count] =
            [const { ::punctual::export::Node::new() }; #count];
        #quiet static #statik: ::punctual::export::Level =
            #level_value;
    }
}

/// Returns the first node of a task in its level.
pub(super) fn base(app: &App, analysis: &Analysis, index: usize) -> u32 {
    let level = &analysis.partitions[analysis.partition_of_task[index]].levels[&app.tasks[index].priority];
    let before = level.iter().take_while(|&&task| task != index);
    before.map(|&task| nodes_of(&app.tasks[task]) as u32).sum()
}

/// Returns the number of times, and of descriptors, for which the async tasks among these wait at
/// once.
pub(super) fn waits_of<'a>(tasks: impl Iterator<Item = &'a Task>) -> usize {
    tasks.filter(|task| task.is_async()).map(|task| usize::from(task.waits)).sum()
}

fn nodes_of(task: &Task) -> usize {
    usize::from(task.capacity)
}
