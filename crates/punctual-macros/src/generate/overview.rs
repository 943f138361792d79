//! The page of `run` in the generated documentation: the levels of each partition, and the
//! protection of each shared resource.

use crate::analyze::{Analysis, LockKind, ThreadModel};
use crate::model::{App, Handler, IDLE_LEVEL, Resource};

use super::names;

/// Returns the text, in Markdown.
pub(super) fn text(app: &App, analysis: &Analysis) -> String {
    let mut text = String::from("\n# Tasks\n\n| level | tasks | runs |\n|---|---|---|\n");
    let mut rows: Vec<(u8, String)> = Vec::new();
    for (index, partition) in analysis.partitions.iter().enumerate() {
        let place = match (partition.model, app.args.partitions.is_empty()) {
            (ThreadModel::Anywhere, _) => "on any CPU".to_owned(),
            (_, true) => "on the CPU of the app".to_owned(),
            (ThreadModel::Levels, false) => format!("in the partition `{}`", partition.name),
            (ThreadModel::Polling, false) => format!("in the partition `{}`, which polls", partition.name),
        };
        for (level, tasks) in &partition.levels {
            let local = if analysis.is_local(app, index, *level) { ", on one thread" } else { "" };
            let names = tasks.iter().map(|&task| code(&app.tasks[task].handler));
            rows.push((
                *level,
                format!("| {level} | {} | {place}{local} |\n", names.collect::<Vec<_>>().join(", ")),
            ));
        }
    }
    rows.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
    rows.iter().for_each(|(_, row)| text.push_str(row));
    if !app.shared.resources.is_empty() {
        text.push_str(
            "\n# Shared resources\n\n| resource | users, with their levels | protected by |\n|---|---|---|\n",
        );
        for (index, resource) in app.shared.resources.iter().enumerate() {
            let users = app.concurrent().filter(|(_, handler)| uses(handler, resource));
            let users = users.map(|(level, handler)| match level {
                IDLE_LEVEL => code(handler),
                _ => format!("{} ({level})", code(handler)),
            });
            let users = users.collect::<Vec<_>>().join(", ");
            let name = names::plain(&resource.ident);
            text.push_str(&format!("| `{name}` | {users} | {} |\n", protection(app, analysis, index)));
        }
    }
    text
}

fn uses(handler: &Handler, resource: &Resource) -> bool {
    handler.shared.iter().any(|used| used.ident == resource.ident)
}

fn code(handler: &Handler) -> String {
    format!("`{}`", names::plain(&handler.ident))
}

/// Describes the protocol of a resource.
fn protection(app: &App, analysis: &Analysis, index: usize) -> String {
    let (resource, users) = (&app.shared.resources[index], &analysis.resources[index]);
    let used = app.concurrent().find_map(|(level, handler)| {
        let used = handler.shared.iter().find(|used| used.ident == resource.ident)?;
        // The lowest user is the one whose lock has an effect.
        (users.levels.first() == Some(&level)).then_some((level, used))
    });
    let Some((level, used)) = used else { return "nothing: no task uses it".into() };
    let ceiling = users.ceiling();
    match analysis.lock_kind(app, level, used) {
        LockKind::Reference => "nothing: all users only read".into(),
        LockKind::Direct | LockKind::Exclusive => "nothing: its users never preempt one another".into(),
        LockKind::Locked(_) => {
            format!(
                "its ceiling, level {ceiling}: a lock raises its user's partition to it (SRP); at that level it is free"
            )
        }
        LockKind::Ceiling => format!("a mutex of ceiling {ceiling} under the priority ceiling protocol"),
        LockKind::Across(group) => {
            let with = app.shared.resources.iter().zip(&analysis.resources).enumerate();
            let with = with.filter(|(other, (_, users))| *other != index && users.group == Some(group));
            let with: Vec<_> =
                with.map(|(_, (other, _))| format!("`{}`", names::plain(&other.ident))).collect();
            let with = if with.is_empty() { String::new() } else { format!(", with {}", with.join(", ")) };
            let then = if analysis.groups[group] { "without entering the kernel" } else { "up to a bound" };
            format!(
                "the lock of group {group}{with} (MSRP): raises its user's partition to the top, and spins {then}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::quote;

    use crate::analyze::Analysis;
    use crate::testing::app_with;

    fn text(args: TokenStream) -> String {
        let app = app_with(
            args,
            quote! {
                #[shared] struct Shared { near: u8, far: u8, table: u8, spare: u8 }
                #[idle(shared = [far])] fn idle(cx: idle::Context) {}
                #[task(priority = 2, shared = [near, &table])] fn a(cx: a::Context) {}
                #[task(shared = [near, far])] fn b(cx: b::Context) {}
                #[task(core = io, priority = 3, shared = [far, &table])] fn c(cx: c::Context) {}
                #[task(priority = 1, local_task)] async fn d(cx: d::Context) {}
            },
        );
        super::text(&app, &Analysis::new(&app))
    }

    #[test]
    fn lists_protection_of_every_resource() {
        let text = text(quote!(partitions = [control, io]));
        for row in [
            "| 3 | `c` | in the partition `io` |",
            "| 1 | `b`, `d` | in the partition `control`, on one thread |",
            "| `near` | `a` (2), `b` (1) | its ceiling, level 2:",
            "| `far` | `idle`, `b` (1), `c` (3) | the lock of group 0 (MSRP): raises its user's partition to the top, and spins up to",
            "| `table` | `a` (2), `c` (3) | nothing: all users only read |",
            "| `spare` |  | nothing: no task uses it |",
        ] {
            assert!(text.contains(row), "{row}\nis not in\n{text}");
        }
    }

    #[test]
    fn explains_that_polling_partition_never_sleeps() {
        let text = text(quote!(partitions = [control, io(poll)]));
        assert!(text.contains("in the partition `io`, which polls"), "{text}");
        assert!(text.contains("spins without entering the kernel"), "{text}");
    }
}
