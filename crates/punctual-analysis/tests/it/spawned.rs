//! Spawned tasks whose bounds depend on more than their spawners: jobs that spawn one task instead
//! of another, that hold a resource at the spawn, and releases by the clock that cannot intervene.

use crate::support::{overheads, resource, responses, section, system, task};
use punctual_analysis::system::{Spawn, Suspension, System, Task};

const CALLED: usize = 0;
const CALLER: usize = 1;
const LEFT: usize = 2;
const LAST: usize = 3;

/// `caller` calls `called`, or spawns `left`; `last` waits for all of them.
fn branches(most: Option<u64>) -> System {
    let mut tasks = vec![
        task("called", 4, 100, 5),
        task("caller", 3, 100, 2),
        task("left", 2, 100, 3),
        task("last", 1, 100, 1),
    ];
    for at in [CALLED, LEFT] {
        tasks[at].arrivals = None;
        tasks[CALLER].spawns.push(Spawn { task: at, most: 1, earliest: 0, in_section: true });
    }
    tasks[CALLER].most_spawns = most;
    system(tasks)
}

#[test]
fn job_takes_its_longest_branch() {
    assert_eq!(responses(&branches(None))[LAST], 1 + 2 + 5 + 3);
    assert_eq!(responses(&branches(Some(2)))[LAST], 1 + 2 + 5 + 3);
    assert_eq!(responses(&branches(Some(1)))[LAST], 1 + 2 + 5);
    // Spawns of a branch's task are part of the branch.
    let mut system = branches(Some(1));
    system.tasks[LEFT].spawns.push(Spawn { task: CALLED, most: 1, earliest: 0, in_section: true });
    assert_eq!(responses(&system)[LAST], 1 + 2 + 3 + 5);
    system.tasks[CALLER].most_spawns = None;
    assert_eq!(responses(&system)[LAST], 1 + 2 + 5 + 3 + 5);
}

#[test]
fn branches_exclude_each_other() {
    assert_eq!(responses(&branches(None))[LEFT], 2 + 5 + 3);
    assert_eq!(responses(&branches(Some(2)))[LEFT], 2 + 5 + 3);
    assert_eq!(responses(&branches(Some(1)))[LEFT], 2 + 3);
    // A second job of `caller` may call.
    let mut system = branches(Some(1));
    system.tasks[CALLER].jitter = 96;
    assert_eq!(responses(&system)[LEFT], (2 + 3) + (2 + 5));
}

#[test]
fn counts_all_branches_of_same_level() {
    let mut system = branches(Some(1));
    system.tasks[LEFT].level = 1;
    // A later job of `caller` may call, because peers no longer intervene.
    assert_eq!(responses(&system)[LAST], 1 + 2 + 5 + 3);
}

#[test]
fn spawner_without_resources_blocks_no_job() {
    let mut system = branches(None);
    system.resources.push(resource("r"));
    system.tasks[CALLED].sections.push(section(0, 1));
    system.tasks[CALLER].sections.push(section(0, 2));
    system.tasks[LAST].sections.push(section(0, 1));
    system.update_ceilings();
    assert_eq!(responses(&system)[CALLED], 2 + 5);
    system.tasks[CALLER].spawns[0].in_section = false;
    assert_eq!(responses(&system)[CALLED], 5);
}

/// The same system with `last` released by the clock that releases `caller`, and a cost of 1 for
/// each release.
fn on_a_grid(period: u64, offset: u64, jitter: u64) -> System {
    let mut system = branches(Some(1));
    system.partitions[0].overheads = overheads(1, 0, 0, 0);
    system.tasks[LAST] = Task { grid: Some(offset), jitter, ..task("last", 1, period, 1) };
    system.tasks[CALLER].grid = Some(0);
    system
}

#[test]
fn releases_at_root_instant_end_before_it_starts() {
    // `called` runs within its caller, and `left` after it, both before any other release.
    let found = responses(&on_a_grid(200, 0, 0));
    assert_eq!((found[CALLED], found[LEFT]), (5, 2 + 3));
    // Without a common clock, the two releases may occur at any time.
    let mut system = on_a_grid(200, 0, 0);
    system.tasks[LAST].grid = None;
    let found = responses(&system);
    assert_eq!((found[CALLED], found[LEFT]), (5 + 1, 2 + 3 + 1));
    system.tasks[CALLER].grid = None;
    let found = responses(&system);
    assert_eq!((found[CALLED], found[LEFT]), (5 + 2, 2 + 3 + 2));
}

#[test]
fn counts_releases_before_end() {
    // `caller` ends at most 2 + 5 + 3 after its release, including its callee and three releases.
    for (period, offset, jitter, met) in [
        (200, 50, 0, 0),
        (200, 50, 50, 0),
        // The jitter may reach the next release of `caller`.
        (200, 50, 51, 1),
        (200, 5, 0, 1),
        (200, 95, 5, 0),
        (200, 95, 6, 1),
        // The least distance to releases of `caller` is 10.
        (90, 0, 0, 0),
        (95, 0, 0, 1),
        (90, 5, 0, 1),
    ] {
        let found = responses(&on_a_grid(period, offset, jitter));
        assert_eq!(found[CALLED], 5 + met, "{period} {offset} {jitter}");
    }
}

#[test]
fn counts_releases_during_suspension() {
    let mut system = on_a_grid(200, 0, 0);
    system.tasks[LAST].suspension = Some(Suspension { total: 1, times: 1 });
    assert!(responses(&system)[CALLED] > 5);
}
