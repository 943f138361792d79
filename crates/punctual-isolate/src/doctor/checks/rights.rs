//! Limits and capabilities for real-time priorities and locked memory.

use super::*;

pub(super) const CHECK: Check = Check {
    name: "rights",
    examines: "real-time priorities, locked memory and descriptors of the user; container flags",
    run,
};

fn run(scene: &Scene, report: &mut Report) {
    let process = &scene.machine.process;
    let highest = u64::from(*scene.band.end());
    match (process.may_schedule(), process.rtprio) {
        (Some(true), _) => report.value("any real-time priority"),
        (_, Some(limit)) => report.value(format!("real-time priorities up to {limit}")),
        _ => {}
    }
    match (process.may_schedule(), process.rtprio) {
        (Some(true), _) => {}
        (None, None) => report.unknown("the real-time priorities allowed to this user", "/proc/self/status and limits do not show them"),
        (_, limit) if limit.is_some_and(|limit| limit >= highest) => {}
        (_, limit) => report.add(with_ways(
            Finding::new(
                Severity::High,
                format!("this user may have real-time priorities up to {}, not {highest}", limit.unwrap_or(0)),
            )
            .why("Threads run with the ordinary policy, and compete with all others.")
            // cyclictest --policy=other on Linux 6.18: at most 5 ms behind one busy thread on its
            // CPU, 11 ms behind two, 32 ms behind four.
            .costs(Cost::typical(11_000_000, "behind two busy threads on the same CPU")),
            scene,
            ["--cap-add SYS_NICE --ulimit rtprio=99", "AmbientCapabilities=CAP_SYS_NICE, LimitRTPRIO=99"],
            [
                "sudo prlimit --pid $$ --rtprio=99   # for the programs of this shell",
                "echo '@realtime - rtprio 99' > /etc/security/limits.d/real-time.conf   # for users in the group realtime",
            ],
        )),
    }
    let needed = 256 << 20;
    let locked = process.memlock.unwrap_or(0);
    if process.may_lock() == Some(false) && locked < needed {
        report.add(with_ways(
            Finding::new(Severity::High, format!("this user may lock {} MiB of memory", locked >> 20))
                .why("Memory that is not locked may have to be read from disk on access.")
                .costs(Cost::typical(10_000_000, "for a page from the disk")),
            scene,
            [
                "--cap-add IPC_LOCK --ulimit memlock=-1",
                "AmbientCapabilities=CAP_IPC_LOCK, LimitMEMLOCK=infinity",
            ],
            [
                "sudo prlimit --pid $$ --memlock=unlimited   # for the programs of this shell",
                "echo '@realtime - memlock unlimited' >> /etc/security/limits.d/real-time.conf",
            ],
        ));
    }
    if let (Some(app), Some(limit)) = (&scene.app, process.descriptors)
        && limit < app.bound.len() as u64 + 32
    {
        report.add(
            Finding::new(
                Severity::High,
                format!("this user may open {limit} descriptors, {} waits for {}", app.name, app.bound.len()),
            )
            .why("The app cannot open all of them at the start.")
            .fix(Lasts::ThisStart, "ulimit -n 1024"),
        );
    }
}

/// Adds the remedies that grant a right, inside or outside of a container.
fn with_ways(finding: Finding, scene: &Scene, [flags, unit]: [&str; 2], [shell, user]: [&str; 2]) -> Finding {
    let names = flags.split(' ').nth(1).unwrap_or_default();
    match &scene.machine.process.container {
        Some(Container::Docker) => finding.fix(Lasts::ThisStart, format!("docker run {flags} IMAGE")),
        Some(Container::Podman) => finding.fix(Lasts::ThisStart, format!("podman run {flags} IMAGE")),
        Some(Container::Kubernetes) => finding.advise(
            Lasts::Always,
            format!("securityContext: {{ capabilities: {{ add: [\"{names}\"] }} }}   # of the container, in its pod"),
        ),
        _ => finding.fix(Lasts::ThisStart, shell).fix(Lasts::Always, user).advise(Lasts::Always, format!("in the [Service] of a unit of systemd: {unit}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "/proc/self/status";
    const LIMITS: &str = "/proc/self/limits";

    #[test]
    fn finds_missing_privileges() {
        let none =
            [(STATUS, "CapEff: 0"), (LIMITS, "Max realtime priority 0 0\nMax locked memory 8388608 8388608")];
        assert_eq!(found(CHECK, &none), ["high", "high"]);
        let limits =
            [(STATUS, "CapEff: 0"), (LIMITS, "Max realtime priority 99 99\nMax locked memory unlimited")];
        assert_eq!(found(CHECK, &limits), NOTHING);
        assert_eq!(found(CHECK, &[(STATUS, "CapEff: 1ffffffffff")]), NOTHING);
        assert_eq!(found(CHECK, &[]), ["unknown"]);
    }

    #[test]
    fn names_flag_of_each_container() {
        let with = |path, content| text(CHECK, &[(STATUS, "CapEff: 0"), (path, content)]);
        assert!(with("/.dockerenv", "").contains("docker run --cap-add SYS_NICE --ulimit rtprio=99"));
        assert!(with("/run/.containerenv", "").contains("podman run --cap-add IPC_LOCK"));
        assert!(with("/proc/self/cgroup", "0::/kubepods").contains("add: [\"SYS_NICE\"]"));
        for remedy in ["LimitRTPRIO=99", "sudo prlimit --pid $$ --rtprio=99"] {
            assert!(with("/x", "").contains(remedy));
        }
    }
}
