//! Every kind of task, executor and protocol.
#![allow(dead_code, reason = "these apps are never run")]

use punctual::model::{Access, Executor, Kind, OnEarly, OnOverrun, Protocol, Use};
use punctual::{Duration, model};

mod global {
    #[punctual::app(main = false, executor = "global")]
    mod app {
        #[shared]
        struct Shared {
            far: u32,
            own: u32,
            table: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { far: 0, own: 0, table: 0 }, Local {})
        }

        #[idle(shared = [far])]
        fn idle(_: idle::Context) {}

        #[task(priority = 3, shared = [far, own, &table])]
        fn high(_: high::Context) {}

        #[task(shared = [far, &table])]
        fn low(_: low::Context) {}
    }

    pub(super) use app::MODEL;
}

mod mixed {
    #[punctual::app(main = false, partitions = [fast(poll), slow(cpu = 1 + 1)])]
    mod app {
        use std::os::fd::OwnedFd;

        const DEADLINE: punctual::Duration = punctual::Duration::from_micros(70);

        #[shared]
        struct Shared {
            near: u32,
            far: u32,
            #[lock_free]
            free: u32,
            #[cfg(not(all()))]
            gone: u32,
        }

        #[local]
        struct Local {
            line: OwnedFd,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            unreachable!("this app is never run")
        }

        #[cfg(not(all()))]
        #[idle(shared = [far])]
        fn idle(_: idle::Context) {}

        #[task(core = fast, priority = 4, period = 1.kHz(), offset = 10.micros(), on_overrun = late,
            shared = [far, near])]
        fn clocked(_: clocked::Context) {}

        #[task(core = fast, period = 2.millis(), deadline = 5.millis(), on_overrun = queue, capacity = 3,
            shared = [near])]
        fn queued(_: queued::Context) {}

        #[task(core = slow, priority = 2, capacity = 7, deadline = DEADLINE, shared = [far, free])]
        fn message(_: message::Context, _number: u32) {}

        #[task(core = slow, priority = 2, binds = line, local = [line], shared = [free])]
        fn bound(_: bound::Context) {}

        #[task(core = slow, min_interval = DEADLINE, burst = 5, on_early = reject)]
        fn late(_: late::Context) {}

        #[cfg(not(all()))]
        #[task(core = slow)]
        fn removed(_: removed::Context) {}
    }

    pub(super) use app::MODEL;
}

#[cfg(feature = "async")]
mod asynchronous {
    #[punctual::app(main = false)]
    mod app {
        #[shared]
        struct Shared {
            table: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { table: 0 }, Local {})
        }

        #[task(priority = 3, shared = [&table])]
        async fn waits(_: waits::Context) {}
    }

    pub(super) use app::MODEL;
}

#[cfg(feature = "async")]
#[test]
fn async_tasks_belong_to_single_partition() {
    let model = &asynchronous::MODEL;
    let task = model.task("waits").expect("it is declared");
    assert_eq!((task.kind, task.level, task.partition), (Kind::Async, 3, "main"));
    assert_eq!((task.capacity, access(task.uses, "table")), (1, Access::Shared));
    assert_eq!(model.partitions.iter().map(|partition| partition.name).collect::<Vec<_>>(), ["main"]);
}

fn access(uses: &[Use], resource: &str) -> Access {
    uses.iter().find(|used| used.resource == resource).expect("it uses it").access
}

#[test]
fn global_executor_is_one_partition_with_pcp_ceilings() {
    let model = &global::MODEL;
    let [global] = model.partitions else { panic!("{:?}", model.partitions) };
    assert_eq!((global.name, global.executor, global.cpu), ("global", Executor::Global, None));
    let [far, own, table] = model.resources else { panic!("{:?}", model.resources) };
    assert_eq!(
        (far.protocol, far.ceiling, far.group, far.partitions),
        (Protocol::Pcp, 3, None, &["global"][..])
    );
    assert_eq!((own.protocol, table.protocol), (Protocol::None, Protocol::None));
    let high = model.task("high").expect("it is declared");
    let accesses = ["far", "own", "table"].map(|name| access(high.uses, name));
    assert_eq!(accesses, [Access::Lock, Access::Exclusive, Access::Shared]);
    let idle = model.idle.expect("it is declared");
    assert_eq!((idle.partition, access(idle.uses, "far")), (Some("global"), Access::Lock));
}

#[test]
fn partitions_have_their_executors_and_cpus() {
    let placements: Vec<_> = mixed::MODEL.partitions.iter().map(|p| (p.name, p.executor, p.cpu)).collect();
    assert_eq!(placements, [("fast", Executor::Polling, None), ("slow", Executor::Preemptive, Some(2))]);
}

#[test]
fn every_task_type_has_its_declared_resources() {
    let task = |name| mixed::MODEL.task(name).expect("it is declared");
    let clocked = task("clocked");
    assert_eq!((clocked.kind, clocked.partition, clocked.level), (Kind::Periodic, "fast", 4));
    assert_eq!(clocked.period, Some(Duration::from_millis(1)));
    assert_eq!(clocked.offset, Some(Duration::from_micros(10)));
    assert_eq!(clocked.deadline, clocked.period);
    assert_eq!(clocked.on_overrun, Some(OnOverrun::Task("late")));
    let queued = task("queued");
    assert_eq!((queued.on_overrun, queued.capacity), (Some(OnOverrun::Queue), 3));
    assert_eq!(queued.deadline, Some(Duration::from_millis(5)));
    let message = task("message");
    assert_eq!((message.kind, message.capacity, message.period), (Kind::Message, 7, None));
    assert_eq!((message.deadline, message.on_overrun), (Some(Duration::from_micros(70)), None));
    assert_eq!((task("bound").kind, task("late").deadline), (Kind::Bound, None));
    let sporadic = |name| (task(name).min_interval, task(name).burst, task(name).on_early);
    assert_eq!(sporadic("late"), (Some(Duration::from_micros(70)), Some(5), Some(OnEarly::Reject)));
    assert_eq!(sporadic("message"), (None, None, None));
}

#[test]
fn excluded_items_are_absent() {
    assert!(mixed::MODEL.task("removed").is_none());
    assert!(mixed::MODEL.resource("gone").is_none());
    assert_eq!(mixed::MODEL.idle, None);
}

#[test]
fn resources_name_their_protection_and_partition() {
    let resource = |name| mixed::MODEL.resource(name).expect("it is declared");
    let near: &model::Resource = resource("near");
    assert_eq!((near.protocol, near.ceiling, near.partitions), (Protocol::Srp, 4, &["fast"][..]));
    let far = resource("far");
    assert_eq!((far.protocol, far.group, far.partitions), (Protocol::Msrp, Some(0), &["fast", "slow"][..]));
    assert_eq!(resource("free").protocol, Protocol::None);
    let clocked = mixed::MODEL.task("clocked").expect("it is declared");
    assert_eq!(access(clocked.uses, "near"), Access::Exclusive);
}
