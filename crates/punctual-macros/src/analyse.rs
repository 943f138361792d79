//! What follows from the model: the ceiling of every shared resource, and the levels in use.
//!
//! The analysis looks through `#[cfg]`: a task that may be configured out counts as there. A ceiling can only
//! come out too high by it, never too low.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Access, App, SharedUse};

/// The results of the analysis.
pub(crate) struct Analysis {
    /// What is known of each shared resource, in the order of `app.shared.resources`.
    pub(crate) resources: Vec<ResourceUsers>,
    /// The levels that tasks run at, each with the indices of its tasks in order of declaration.
    pub(crate) levels: BTreeMap<u8, Vec<usize>>,
}

/// Who uses a shared resource. `shutdown` does not count: by the time it runs, nobody else does.
#[derive(Default)]
pub(crate) struct ResourceUsers {
    /// The levels of the users, 0 for `idle`; empty if nobody uses the resource.
    pub(crate) levels: BTreeSet<u8>,
    /// It has users, and all of them take it by `&`.
    pub(crate) by_reference: bool,
}

/// What a handler is given when it asks for a shared resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LockKind {
    /// `&T`: all users only read.
    Reference,
    /// `&mut T`: the resource is `#[lock_free]`, its users never preempt one another.
    Direct,
    /// A lock that has nothing to do: the user runs at the ceiling, so no other user can preempt it.
    Exclusive,
    /// A lock that raises its user to this ceiling.
    Locked(u8),
}

impl ResourceUsers {
    /// The highest level among the users, 0 if there are none.
    pub(crate) fn ceiling(&self) -> u8 {
        self.levels.last().copied().unwrap_or_default()
    }
}

impl Analysis {
    pub(crate) fn new(app: &App) -> Self {
        let mut levels = BTreeMap::<u8, Vec<usize>>::new();
        for (index, task) in app.tasks.iter().enumerate() {
            levels.entry(task.priority).or_default().push(index);
        }
        let resources = app.shared.resources.iter().map(|resource| {
            let mut users = ResourceUsers { by_reference: true, ..ResourceUsers::default() };
            for (level, handler) in app.concurrent() {
                for used in handler.shared.iter().filter(|used| used.ident == resource.ident) {
                    users.levels.insert(level);
                    users.by_reference &= used.access.is_reference();
                }
            }
            users.by_reference &= !users.levels.is_empty();
            users
        });
        Analysis { resources: resources.collect(), levels }
    }

    /// What a handler running at `level` is given for `used`.
    ///
    /// A resource that is not declared is given as though nobody else used it.
    pub(crate) fn lock_kind(&self, app: &App, level: u8, used: &SharedUse) -> LockKind {
        if let Access::Reference(_) = used.access {
            return LockKind::Reference;
        }
        let declared = app.shared.resources.iter().zip(&self.resources);
        match declared.into_iter().find(|(resource, _)| resource.ident == used.ident) {
            Some((resource, _)) if resource.lock_free => LockKind::Direct,
            Some((_, users)) if level < users.ceiling() => LockKind::Locked(users.ceiling()),
            _ => LockKind::Exclusive,
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;
    use crate::testing::app;

    fn kinds(app: &App, analysis: &Analysis, name: &str) -> Vec<LockKind> {
        let task = app.tasks.iter().find(|task| task.handler.ident == name).expect("the task exists");
        let kind = |used| analysis.lock_kind(app, task.priority, used);
        task.handler.shared.iter().map(kind).collect()
    }

    #[test]
    fn ceilings_are_the_highest_level_of_the_users() {
        let app = app(quote! {
            #[shared] struct Shared { low: u8, mixed: u8, idle: u8, unused: u8 }
            #[idle(shared = [idle])] fn idle(cx: idle::Context) {}
            #[task(priority = 2, shared = [low, mixed])] fn a(cx: a::Context) {}
            #[task(priority = 7, shared = [mixed])] fn b(cx: b::Context) {}
        });
        let analysis = Analysis::new(&app);
        let ceilings: Vec<_> = analysis.resources.iter().map(ResourceUsers::ceiling).collect();
        assert_eq!(ceilings, [2, 7, 0, 0]);
        assert_eq!(analysis.resources[1].levels, BTreeSet::from([2, 7]));
        assert!(analysis.resources[3].levels.is_empty());
    }

    #[test]
    fn a_lock_raises_only_below_the_ceiling() {
        let app = app(quote! {
            #[shared] struct Shared { own: u8, mixed: u8 }
            #[task(priority = 2, shared = [own, mixed])] fn a(cx: a::Context) {}
            #[task(priority = 7, shared = [mixed])] fn b(cx: b::Context) {}
        });
        let analysis = Analysis::new(&app);
        assert_eq!(kinds(&app, &analysis, "a"), [LockKind::Exclusive, LockKind::Locked(7)]);
        assert_eq!(kinds(&app, &analysis, "b"), [LockKind::Exclusive]);
    }

    #[test]
    fn references_and_lock_free_resources_need_no_lock() {
        let app = app(quote! {
            #[shared] struct Shared { table: u8, #[lock_free] count: u8 }
            #[task(priority = 2, shared = [&table, count])] fn a(cx: a::Context) {}
            #[task(priority = 2, shared = [count])] fn b(cx: b::Context) {}
            #[task(priority = 3, shared = [&table])] fn c(cx: c::Context) {}
        });
        let analysis = Analysis::new(&app);
        assert!(analysis.resources[0].by_reference);
        assert!(!analysis.resources[1].by_reference);
        assert_eq!(kinds(&app, &analysis, "a"), [LockKind::Reference, LockKind::Direct]);
    }

    #[test]
    fn shutdown_does_not_raise_a_ceiling() {
        let app = app(quote! {
            #[shared] struct Shared { a: u8 }
            #[shutdown(shared = [a])] fn shutdown(cx: shutdown::Context) {}
            #[task(shared = [&a])] fn t(cx: t::Context) {}
        });
        let analysis = Analysis::new(&app);
        assert_eq!(analysis.resources[0].levels, BTreeSet::from([1]));
        assert!(analysis.resources[0].by_reference);
    }

    #[test]
    fn levels_list_their_tasks_in_order_of_declaration() {
        let app = app(quote! {
            #[shared] struct Shared {}
            #[task(priority = 5)] fn a(cx: a::Context) {}
            #[task] fn b(cx: b::Context) {}
            #[task(priority = 5)] fn c(cx: c::Context) {}
        });
        assert_eq!(Analysis::new(&app).levels, BTreeMap::from([(1, vec![1]), (5, vec![0, 2])]));
    }
}
