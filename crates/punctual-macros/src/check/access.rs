//! Access to shared resources: by lock, by `&`, or without a lock.

use crate::analyze::Analysis;
use crate::errors::Errors;
use crate::model::{App, Handler, Resource, SharedUse, Task};

pub(super) fn check(app: &App, analysis: &Analysis, errors: &mut Errors) {
    for (resource, users) in app.shared.resources.iter().zip(&analysis.resources) {
        if !resource.lock_free {
            mixed_access(app, resource, errors);
            continue;
        }
        lock_free_reference(app, resource, errors);
        lock_free_async(app, resource, errors);
        if users.levels.len() > 1 {
            lock_free_across_levels(app, resource, errors);
        } else if users.partitions.len() > 1 {
            lock_free_across_partitions(app, analysis, resource, errors);
        }
    }
}

/// Returns the uses of `resource` by handlers that run concurrently.
fn uses<'a>(app: &'a App, resource: &'a Resource) -> impl Iterator<Item = (u8, &'a Handler, &'a SharedUse)> {
    app.concurrent().flat_map(|(level, handler)| {
        let uses = handler.shared.iter().filter(|used| used.ident == resource.ident);
        uses.map(move |used| (level, handler, used))
    })
}

/// A reference lasts as long as its job, and no lock prevents it from seeing writes.
fn mixed_access(app: &App, resource: &Resource, errors: &mut Errors) {
    let by_reference = uses(app, resource).find(|(.., used)| used.access.is_reference());
    let by_lock = uses(app, resource).find(|(.., used)| !used.access.is_reference());
    if let (Some((_, reader, reference)), Some((_, locker, _))) = (by_reference, by_lock)
        && reader.ident != locker.ident
    {
        let (name, reader, locker) = (&resource.ident, &reader.ident, &locker.ident);
        errors.at(
            reference,
            format_args!(
                "`{reader}` takes `{name}` by `&` where `{locker}` locks it; \
                 write `{name}`, to lock here too, or `&{name}` everywhere"
            ),
        );
    }
}

fn lock_free_reference(app: &App, resource: &Resource, errors: &mut Errors) {
    for (.., used) in uses(app, resource).filter(|(.., used)| used.access.is_reference()) {
        let name = &resource.ident;
        errors.at(
            used,
            format_args!("`{name}` is `#[lock_free]`, which already gives a reference; write `{name}`"),
        );
    }
}

/// Between two polls of an async task, others of its level run.
fn lock_free_async(app: &App, resource: &Resource, errors: &mut Errors) {
    let waits = |handler: &Handler| app.task(handler).is_some_and(Task::is_async);
    for (_, handler, used) in uses(app, resource).filter(|(_, handler, _)| waits(handler)) {
        let (name, user) = (&resource.ident, &handler.ident);
        errors.at(
            used,
            format_args!(
                "`{name}` is `#[lock_free]`, but `{user}` is async, and others use `{name}` while it waits; remove \
                 `#[lock_free]`"
            ),
        );
    }
}

fn lock_free_across_levels(app: &App, resource: &Resource, errors: &mut Errors) {
    let mut uses = uses(app, resource);
    let Some((first_level, first, _)) = uses.next() else { return };
    if let Some((level, other, used)) = uses.find(|(level, ..)| *level != first_level) {
        let (name, first, other) = (&resource.ident, &first.ident, &other.ident);
        errors.at(
            used,
            format_args!(
                "`{name}` is `#[lock_free]`, but `{first}` runs at level {first_level} and `{other}` at \
                 level {level}; give them the same priority or remove `#[lock_free]`"
            ),
        );
    }
}

fn lock_free_across_partitions(app: &App, analysis: &Analysis, resource: &Resource, errors: &mut Errors) {
    let mut uses = uses(app, resource);
    let Some((_, first, _)) = uses.next() else { return };
    let partition = |handler: &Handler| analysis.partition(app, handler);
    if let Some((_, other, used)) = uses.find(|(_, other, _)| partition(other) != partition(first)) {
        let [one, two] = [first, other].map(|handler| &analysis.partitions[partition(handler)].name);
        let (name, first, other) = (&resource.ident, &first.ident, &other.ident);
        errors.at(
            used,
            format_args!(
                "`{name}` is `#[lock_free]`, but `{first}` is in the partition `{one}` and \
                 `{other}` in `{two}`; put them into the same partition or remove `#[lock_free]`"
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use crate::testing::{assert_one, errors};

    #[test]
    fn shutdown_accepts_any_resources() {
        let errors = errors(quote! {
            #[shared] struct Shared { a: u8, #[lock_free] b: u8 }
            #[task(shared = [&a, b])] fn t(cx: t::Context) {}
            #[shutdown(shared = [a, b])] fn shutdown(cx: shutdown::Context) {}
        });
        assert!(errors.is_empty(), "{errors:#?}");
    }

    #[test]
    fn lock_free_across_levels() {
        let errors = errors(quote! {
            #[shared] struct Shared { #[lock_free] a: u8 }
            #[task(priority = 2, shared = [a])] fn t(cx: t::Context) {}
            #[task(priority = 3, shared = [a])] fn u(cx: u::Context) {}
        });
        assert_one(&errors, &["`t` runs at level 2 and `u` at level 3", "remove `#[lock_free]`"]);
    }
}
