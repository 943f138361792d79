//! Derives from the model the levels with their partitions, and the ceiling and the protocol of
//! every shared resource.

use std::collections::{BTreeMap, BTreeSet};

use syn::Expr;

use crate::model::{Access, App, Handler, IDLE_LEVEL, Role, SharedUse, Size};

/// The results of the analysis.
pub(crate) struct Analysis {
    /// Each shared resource, in the order of `app.shared.resources`.
    pub(crate) resources: Vec<ResourceUsers>,
    /// Units that run in parallel: the partitions in order of declaration, or each level of the
    /// global executor; and last that of `idle`, if it is in none of these.
    pub(crate) partitions: Vec<Partition>,
    /// The partition of each task, in the order of `app.tasks`.
    pub(crate) partition_of_task: Vec<usize>,
    /// The partition of `idle`.
    pub(crate) home: usize,
    /// For each group of resources shared across partitions, whether its users only ever spin.
    pub(crate) groups: Vec<bool>,
}

/// The levels that share one CPU; under the global executor, a single level.
pub(crate) struct Partition {
    pub(crate) name: String,
    pub(crate) model: ThreadModel,
    pub(crate) cpu: Option<Expr>,
    pub(crate) stack: Option<Size>,
    /// Its levels, each with the indices of its tasks in order of declaration.
    pub(crate) levels: BTreeMap<u8, Vec<usize>>,
}

/// Thread model of a partition; the names are those of the runtime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ThreadModel {
    Levels,
    Polling,
    Anywhere,
}

/// Users of a shared resource. `shutdown` does not count: when it runs, there are no others.
#[derive(Default)]
pub(crate) struct ResourceUsers {
    /// The levels of the users, 0 for `idle`; empty if none exists.
    pub(crate) levels: BTreeSet<u8>,
    /// The partitions of the users.
    pub(crate) partitions: BTreeSet<usize>,
    /// True if it has users, and all of them take it by `&`.
    pub(crate) by_reference: bool,
    /// Its group of resources shared across partitions, if any.
    pub(crate) group: Option<usize>,
}

/// Access of a handler to a shared resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LockKind {
    /// `&T`: all users only read.
    Reference,
    /// `&mut T`: the resource is `#[lock_free]`, its users never preempt one another.
    Direct,
    /// A lock without effect: the user runs at the ceiling, so no other user can preempt it.
    Exclusive,
    /// A lock that raises its user to this ceiling.
    Locked(u8),
    /// A lock of this group, for users in several partitions.
    Across(usize),
    /// A lock under the priority ceiling protocol, on any CPU.
    Ceiling,
}

impl ResourceUsers {
    /// Returns the highest level of the users, 0 if none exists.
    pub(crate) fn ceiling(&self) -> u8 {
        self.levels.last().copied().unwrap_or_default()
    }

    /// Returns whether only `idle` uses it.
    pub(crate) fn is_idles(&self) -> bool {
        self.levels.iter().eq([&IDLE_LEVEL])
    }

    /// Returns whether its users run in parallel and lock it.
    pub(crate) fn is_across(&self) -> bool {
        self.partitions.len() > 1 && !self.by_reference
    }
}

impl Analysis {
    pub(crate) fn new(app: &App) -> Self {
        let (mut partitions, partition_of_task) =
            if app.args.global.is_some() { levels_apart(app) } else { partitions(app) };
        let home = match partitions.iter().position(|partition| partition.model == ThreadModel::Levels) {
            Some(home) => home,
            None => {
                let (name, levels) = ("idle".to_owned(), BTreeMap::new());
                partitions.push(Partition {
                    name,
                    model: ThreadModel::Anywhere,
                    cpu: None,
                    stack: None,
                    levels,
                });
                partitions.len() - 1
            }
        };
        let mut analysis =
            Analysis { resources: Vec::new(), partitions, partition_of_task, home, groups: Vec::new() };
        analysis.resources = app
            .shared
            .resources
            .iter()
            .map(|resource| {
                let mut users = ResourceUsers { by_reference: true, ..ResourceUsers::default() };
                for (level, handler) in app.concurrent() {
                    for used in handler.shared.iter().filter(|used| used.ident == resource.ident) {
                        users.levels.insert(level);
                        users.partitions.insert(analysis.partition(app, handler));
                        users.by_reference &= used.access.is_reference();
                    }
                }
                users.by_reference &= !users.levels.is_empty();
                users
            })
            .collect();
        if app.args.global.is_none() {
            analysis.group(app);
        }
        analysis
    }

    /// Returns the partition that a handler runs in.
    pub(crate) fn partition(&self, app: &App, handler: &Handler) -> usize {
        let tasks = app.tasks.iter().zip(&self.partition_of_task);
        match handler.role {
            Role::Task => tasks
                .into_iter()
                .find(|(task, _)| std::ptr::eq(&task.handler, handler))
                .map_or(0, |(_, p)| *p),
            Role::Init | Role::Idle | Role::Shutdown => self.home,
        }
    }

    /// Returns the partition and the level of the thread that waits for the descriptors of async
    /// tasks, if any of them may enter the kernel: those of the highest such task, so that the
    /// thread can poll the tasks it wakes.
    pub(crate) fn reactor(&self, app: &App) -> Option<(usize, u8)> {
        let tasks = app.tasks.iter().zip(&self.partition_of_task).filter(|(task, _)| task.is_async());
        let placements = tasks.map(|(task, &partition)| (partition, task.priority));
        placements
            .filter(|&(partition, _)| self.partitions[partition].model != ThreadModel::Polling)
            .max_by_key(|&(_, level)| level)
    }

    /// Groups the resources shared across partitions that one handler may hold at once.
    ///
    /// Then no holder of one waits for another, in any nesting order of critical sections (A.
    /// Block, H. Leontyev, B. Brandenburg, J. Anderson, "A Flexible Real-Time Locking Protocol for
    /// Multiprocessors", RTCSA 2007, section 3).
    fn group(&mut self, app: &App) {
        let names = |index: usize| &app.shared.resources[index].ident;
        let across: Vec<usize> =
            (0..self.resources.len()).filter(|&index| self.resources[index].is_across()).collect();
        // Initially every resource is a separate group; each handler merges the groups of those it
        // uses.
        let mut group: BTreeMap<usize, usize> = across.iter().map(|&index| (index, index)).collect();
        for (_, handler) in app.concurrent() {
            let uses = |index: usize| handler.shared.iter().any(|used| used.ident == *names(index));
            let used: Vec<usize> =
                across.iter().copied().filter(|&index| uses(index)).map(|i| group[&i]).collect();
            let Some(&first) = used.first() else { continue };
            group.values_mut().filter(|of| used.contains(of)).for_each(|of| *of = first);
        }
        let mut numbers = BTreeMap::new();
        for (index, of) in group {
            let next = numbers.len();
            let number = *numbers.entry(of).or_insert(next);
            self.groups.resize(numbers.len(), false);
            let polls = |&partition: &usize| self.partitions[partition].model == ThreadModel::Polling;
            self.groups[number] |= self.resources[index].partitions.iter().any(polls);
            self.resources[index].group = Some(number);
        }
    }

    /// Returns the access of a handler running at `level` to `used`.
    ///
    /// An undeclared resource counts as having no other users.
    pub(crate) fn lock_kind(&self, app: &App, level: u8, used: &SharedUse) -> LockKind {
        if let Access::Reference(_) = used.access {
            return LockKind::Reference;
        }
        let declared = app.shared.resources.iter().zip(&self.resources);
        match declared.into_iter().find(|(resource, _)| resource.ident == used.ident) {
            Some((resource, _)) if resource.lock_free => LockKind::Direct,
            Some((_, ResourceUsers { group: Some(group), .. })) => LockKind::Across(*group),
            Some((_, users)) if users.is_across() => LockKind::Ceiling,
            Some((_, users)) if level < users.ceiling() => LockKind::Locked(users.ceiling()),
            _ => LockKind::Exclusive,
        }
    }
}

/// Returns the partitions as declared, or a single unnamed one.
fn partitions(app: &App) -> (Vec<Partition>, Vec<usize>) {
    let declared = app.args.partitions.iter().map(|partition| Partition {
        name: partition.ident.to_string(),
        model: if partition.poll { ThreadModel::Polling } else { ThreadModel::Levels },
        cpu: partition.cpu.clone(),
        stack: partition.stack.clone(),
        levels: BTreeMap::new(),
    });
    let mut partitions: Vec<Partition> = declared.collect();
    if partitions.is_empty() {
        let (name, cpu) = ("main".to_owned(), app.args.cpu.clone());
        partitions.push(Partition {
            name,
            model: ThreadModel::Levels,
            cpu,
            stack: None,
            levels: BTreeMap::new(),
        });
    }
    let mut of_task = Vec::new();
    for (index, task) in app.tasks.iter().enumerate() {
        let partition = task
            .core
            .as_ref()
            .and_then(|name| partitions.iter().position(|partition| name == &partition.name))
            .unwrap_or(0);
        partitions[partition].levels.entry(task.priority).or_default().push(index);
        of_task.push(partition);
    }
    (partitions, of_task)
}

/// Returns each level as a separate partition.
fn levels_apart(app: &App) -> (Vec<Partition>, Vec<usize>) {
    let levels: BTreeSet<u8> = app.tasks.iter().map(|task| task.priority).collect();
    let partitions = levels.iter().map(|&level| {
        let tasks = app.tasks.iter().enumerate().filter(|(_, task)| task.priority == level);
        let levels = BTreeMap::from([(level, tasks.map(|(index, _)| index).collect())]);
        Partition {
            name: format!("level {level}"),
            model: ThreadModel::Anywhere,
            cpu: None,
            stack: None,
            levels,
        }
    });
    let place = |level| levels.iter().position(|&other| other == level).unwrap_or(0);
    (partitions.collect(), app.tasks.iter().map(|task| place(task.priority)).collect())
}

/// Local levels: those with local tasks, whose jobs all run on one thread.
impl Analysis {
    /// Returns whether `level` of `partition` is a local level.
    pub(crate) fn is_local(&self, app: &App, partition: usize, level: u8) -> bool {
        let tasks = self.partitions[partition].levels.get(&level);
        tasks.is_some_and(|tasks| tasks.iter().any(|&task| app.tasks[task].is_local()))
    }

    /// Returns the partition and the level of a task in a local level.
    pub(crate) fn local_level(&self, app: &App, handler: &Handler) -> Option<(usize, u8)> {
        let task = app.task(handler)?;
        let place = (self.partition(app, handler), task.priority);
        self.is_local(app, place.0, place.1).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;
    use crate::testing::{app, app_with};

    fn kinds(app: &App, analysis: &Analysis, name: &str) -> Vec<LockKind> {
        let task = app.tasks.iter().find(|task| task.handler.ident == name).expect("the task exists");
        let kind = |used| analysis.lock_kind(app, task.priority, used);
        task.handler.shared.iter().map(kind).collect()
    }

    #[test]
    fn ceiling_is_highest_level_of_users() {
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
    fn lock_raises_only_below_ceiling() {
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
    fn nested_resources_share_cross_partition_lock() {
        let app = app_with(
            quote!(partitions = [x, y(poll)]),
            quote! {
                #[shared] struct Shared { a: u8, b: u8, c: u8, d: u8, e: u8 }
                #[task(shared = [a, d])] fn s(cx: s::Context) {}
                #[task(priority = 2, shared = [b, c, d])] fn t(cx: t::Context) {}
                #[task(core = y, shared = [a, b, e])] fn u(cx: u::Context) {}
                #[task(core = y, shared = [c])] fn v(cx: v::Context) {}
                #[task(priority = 3, shared = [e])] fn w(cx: w::Context) {}
            },
        );
        let analysis = Analysis::new(&app);
        let groups: Vec<_> = analysis.resources.iter().map(|users| users.group).collect();
        // `u` joins a, b and e; `t` joins b and c. The users of `d` are in one partition.
        assert_eq!(groups, [Some(0), Some(0), Some(0), None, Some(0)]);
        assert_eq!(analysis.groups, [true]);
        assert_eq!(kinds(&app, &analysis, "s"), [LockKind::Across(0), LockKind::Locked(2)]);
        assert_eq!(analysis.home, 0);
    }

    #[test]
    fn strangers_have_locks_of_their_own() {
        let app = app_with(
            quote!(partitions = [x, y]),
            quote! {
                #[shared] struct Shared { a: u8, b: u8 }
                #[task(shared = [a])] fn s(cx: s::Context) {}
                #[task(shared = [b])] fn t(cx: t::Context) {}
                #[task(core = y, shared = [a])] fn u(cx: u::Context) {}
                #[task(core = y, shared = [b])] fn v(cx: v::Context) {}
            },
        );
        let analysis = Analysis::new(&app);
        assert_eq!(
            analysis.resources.iter().map(|users| users.group).collect::<Vec<_>>(),
            [Some(0), Some(1)]
        );
        assert_eq!(analysis.groups, [false, false]);
    }

    #[test]
    fn global_executor_runs_levels_independently() {
        let app = app_with(
            quote!(executor = "global"),
            quote! {
                #[shared] struct Shared { own: u8, mixed: u8, idle: u8 }
                #[idle(shared = [idle])] fn idle(cx: idle::Context) {}
                #[task(priority = 2, shared = [own, mixed])] fn a(cx: a::Context) {}
                #[task(priority = 2, shared = [own, idle])] fn b(cx: b::Context) {}
                #[task(priority = 7, shared = [mixed])] fn c(cx: c::Context) {}
            },
        );
        let analysis = Analysis::new(&app);
        assert_eq!((analysis.partitions.len(), analysis.home), (3, 2));
        assert_eq!(analysis.partition_of_task, [0, 0, 1]);
        assert_eq!(kinds(&app, &analysis, "a"), [LockKind::Exclusive, LockKind::Ceiling]);
        assert_eq!(kinds(&app, &analysis, "b"), [LockKind::Exclusive, LockKind::Ceiling]);
        assert_eq!(kinds(&app, &analysis, "c"), [LockKind::Ceiling]);
    }

    #[test]
    fn idle_belongs_to_first_sleeping_partition() {
        let task = || quote! { #[shared] struct Shared {} #[task] fn t(cx: t::Context) {} };
        let home = |args| {
            let analysis = Analysis::new(&app_with(args, task()));
            analysis.partitions[analysis.home].name.clone()
        };
        assert_eq!(home(quote!()), "main");
        assert_eq!(home(quote!(partitions = [fast(poll)])), "idle");
    }

    #[test]
    fn shutdown_does_not_raise_ceiling() {
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
        assert_eq!(Analysis::new(&app).partitions[0].levels, BTreeMap::from([(1, vec![1]), (5, vec![0, 2])]));
    }

    #[test]
    fn level_is_local_for_exactly_its_tasks() {
        let app = app_with(
            quote!(partitions = [x, y]),
            quote! {
                #[shared] struct Shared {}
                #[task(priority = 2)] fn a(cx: a::Context) {}
                #[task(priority = 2, local_task)] async fn b(cx: b::Context) {}
                #[task(priority = 1)] fn c(cx: c::Context) {}
                #[task(priority = 2, core = y)] fn d(cx: d::Context) {}
            },
        );
        let analysis = Analysis::new(&app);
        let placements: Vec<_> =
            app.tasks.iter().map(|task| analysis.local_level(&app, &task.handler)).collect();
        assert_eq!(placements, [Some((0, 2)), Some((0, 2)), None, None]);
        assert!(!analysis.is_local(&app, 1, 2));
    }
}
