//! `MODEL`: the declarations of the app, as data.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};

use crate::analyze::{Analysis, LockKind, ResourceUsers, ThreadModel};
use crate::model::{App, Budget, Handler, Interval, OnOverrun, Resource, Task, TaskKind};

use super::{duration, names, option, tasks};

/// The only partition of the global executor.
const GLOBAL: &str = "global";

pub(super) fn all(app: &App, analysis: &Analysis) -> TokenStream {
    let name = names::plain(&app.module.ident);
    let (partitions, resources) = (partitions(app, analysis), resources(app, analysis));
    let tasks = app
        .tasks
        .iter()
        .zip(&analysis.partition_of_task)
        .map(|(each, &partition)| task(app, analysis, each, partition));
    let idle = option(app.idle.as_ref().map(|idle| {
        let partition = option(partition_name(app, analysis, analysis.home).map(|name| quote!(#name)));
        let uses = uses(app, analysis, &idle.handler);
        quote!(::punctual::model::Idle::new(#partition, #uses))
    }));
    let model = ident();
    quote! {
        /// The declarations of this app, as data: the input of a response-time analysis.
        #[allow(clippy::all, clippy::pedantic)]
        pub static #model: ::punctual::model::Model = ::punctual::model::Model::new(
            #name,
            #partitions,
            const { &[#(#tasks),*] },
            #resources,
            #idle,
        );
    }
}

/// Returns the name of the static.
pub(super) fn ident() -> Ident {
    Ident::new("MODEL", Span::call_site())
}

/// Returns the name of a partition for users; `None` for a separate `idle`.
fn partition_name<'a>(app: &App, analysis: &'a Analysis, partition: usize) -> Option<&'a str> {
    let partition = &analysis.partitions[partition];
    match partition.model {
        ThreadModel::Anywhere if app.args.global.is_some() => Some(GLOBAL),
        ThreadModel::Anywhere => None,
        ThreadModel::Levels | ThreadModel::Polling => Some(&partition.name),
    }
}

// The lists are `const` blocks: references to values of user expressions would not live long enough
// otherwise.
fn partitions(app: &App, analysis: &Analysis) -> TokenStream {
    let described = |name: &str, executor: &str, cpu: TokenStream| {
        let executor = Ident::new(executor, Span::call_site());
        quote!(::punctual::model::Partition::new(#name, ::punctual::model::Executor::#executor, #cpu))
    };
    if app.args.global.is_some() {
        let global = described(GLOBAL, "Global", option(None));
        return quote!(const { &[#global] });
    }
    let all = analysis.partitions.iter().filter_map(|partition| {
        let cpu = option(partition.cpu.as_ref().map(|cpu| quote!(#cpu)));
        match partition.model {
            ThreadModel::Levels => Some(described(&partition.name, "Preemptive", cpu)),
            ThreadModel::Polling => Some(described(&partition.name, "Polling", cpu)),
            ThreadModel::Anywhere => None,
        }
    });
    quote!(const { &[#(#all),*] })
}

fn task(app: &App, analysis: &Analysis, task: &Task, partition: usize) -> TokenStream {
    let (name, level, capacity) = (names::plain(&task.handler.ident), task.priority, task.capacity);
    let kind = match task.kind {
        TaskKind::Periodic { .. } => "Periodic",
        TaskKind::Message => "Message",
        TaskKind::Bound { .. } => "Bound",
        TaskKind::Async => "Async",
    };
    let kind = Ident::new(kind, Span::call_site());
    let partition = partition_name(app, analysis, partition).expect("tasks are in partitions");
    let (deadline, uses) = (tasks::deadline(task), uses(app, analysis, &task.handler));
    let made = quote! {
        ::punctual::model::Task::new(
            #name, ::punctual::model::Kind::#kind, #partition, #level, #deadline, #capacity, #uses
        )
    };
    let made = match &task.budget {
        None => made,
        Some(Budget { length, on_budget, .. }) => {
            let (length, on_budget) = (duration(length), tasks::variant(on_budget));
            quote!(::punctual::model::Task::budgeted(#made, #length, ::punctual::model::OnBudget::#on_budget))
        }
    };
    match &task.kind {
        TaskKind::Periodic { period, offset, clock, on_overrun } => {
            let (period, offset) = (duration(period), tasks::offset(offset.as_ref()));
            let on_overrun = self::on_overrun(on_overrun);
            let made = quote!(::punctual::model::Task::periodic(#made, #period, #offset, #on_overrun));
            match clock.as_ref().map(tasks::clock_name) {
                None => made,
                Some(clock) => quote!(::punctual::model::Task::follows(#made, #clock)),
            }
        }
        TaskKind::Message | TaskKind::Async | TaskKind::Bound { .. } => match &task.interval {
            None => made,
            Some(Interval { length, burst, on_early }) => {
                let (length, on_early) = (duration(length), tasks::variant(on_early));
                quote! {
                    ::punctual::model::Task::sporadic(
                        #made, #length, #burst, ::punctual::model::OnEarly::#on_early
                    )
                }
            }
        },
    }
}

fn uses(app: &App, analysis: &Analysis, handler: &Handler) -> TokenStream {
    let level = app.task(handler).map_or(crate::model::IDLE_LEVEL, |task| task.priority);
    let uses = handler.shared.iter().map(|used| {
        let resource = names::plain(&used.ident);
        let access = match analysis.lock_kind(app, level, used) {
            LockKind::Reference => quote!(Shared),
            LockKind::Direct | LockKind::Exclusive => quote!(Exclusive),
            LockKind::Locked(_) | LockKind::Across(_) | LockKind::Ceiling => quote!(Lock),
        };
        quote!(::punctual::model::Use::new(#resource, ::punctual::model::Access::#access))
    });
    quote!(const { &[#(#uses),*] })
}

fn resources(app: &App, analysis: &Analysis) -> TokenStream {
    let all = app.shared.resources.iter().zip(&analysis.resources).map(|(resource, users)| {
        let (name, ceiling) = (names::plain(&resource.ident), users.ceiling());
        let protocol = Ident::new(protocol(resource, users), Span::call_site());
        let group = option(users.group.map(|group| {
            let group = group as u16;
            quote!(#group)
        }));
        let mut partitions: Vec<&str> = users
            .partitions
            .iter()
            .filter_map(|&partition| partition_name(app, analysis, partition))
            .collect();
        // The levels of the global executor are separate partitions.
        partitions.dedup();
        quote! {
            ::punctual::model::Resource::new(
                #name, #ceiling, ::punctual::model::Protocol::#protocol, #group, &[#(#partitions),*]
            )
        }
    });
    quote!(const { &[#(#all),*] })
}

/// Returns the runtime's value of an overrun policy.
fn on_overrun(policy: &OnOverrun) -> TokenStream {
    let policy = match policy {
        OnOverrun::Task(handler) => {
            let handler = names::plain(handler);
            quote!(Task(#handler))
        }
        policy => tasks::variant(policy).into_token_stream(),
    };
    quote!(::punctual::model::OnOverrun::#policy)
}

/// Returns the protocol of a resource; the names are those of the runtime.
fn protocol(resource: &Resource, users: &ResourceUsers) -> &'static str {
    match users {
        _ if resource.lock_free || users.by_reference => "None",
        ResourceUsers { group: Some(_), .. } => "Msrp",
        _ if users.is_across() => "Pcp",
        _ if users.levels.len() > 1 => "Srp",
        _ => "None",
    }
}
